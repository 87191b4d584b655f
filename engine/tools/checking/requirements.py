"""What the lines of a requirements.txt ask for, in pip's format."""

import codecs
import re
from collections.abc import Iterator
from dataclasses import dataclass

from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import canonicalize_name

LONGEST_LINE = 2_000
MOST_LINES = 2_000
"""Characters of a line, and lines, that are read."""

_BYTE_ORDER_MARKS = (
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
_COMMENT = re.compile(r"(?:^|\s)#.*\Z", re.DOTALL)
_WITH_VALUE = frozenset(
    "-i --index-url --extra-index-url -r --requirement -c --constraint -e --editable -f --find-links "
    "--no-binary --only-binary --trusted-host --use-feature".split()
)
_ALONE = frozenset("--no-index --prefer-binary --require-hashes --pre".split())
_ASKING = frozenset("-r --requirement -e --editable".split())
_OF_ONE = re.compile(r"\s--(?:hash|global-option|config-settings?)(?:[= ]|\Z)")
_ADDRESS = re.compile(r"(?:[a-z][a-z0-9+.-]*://|file:|\.{0,2}/)", re.IGNORECASE)
_FILE = re.compile(r"[^\s@<>=!~;]+\.(?:whl|zip|tar\.gz|tgz|tar\.bz2|tar\.xz)", re.IGNORECASE)
_CREDENTIALS = re.compile(r"(?<=://)[^/@\s]+@")


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One logical line. `line` counts from 1, of its first line; `text` is what it says, without comments.

    Of a requirement from an index `name` is the normalised name, and `specifier`, `extras` and `marker` what stands
    with it. `address` is the URL or path it is installed from, where it says one, or what an option such as `-r`
    names. `option` is empty for a requirement, `options` are those of one line (`--hash=…`). `problem` says why the
    line cannot be read, and what to write.
    """

    line: int
    text: str
    name: str = ""
    specifier: str = ""
    extras: tuple[str, ...] = ()
    marker: str = ""
    address: str = ""
    option: str = ""
    options: tuple[str, ...] = ()
    problem: str = ""

    @property
    def asks(self) -> bool:
        """Whether it has something installed, and is not only a setting of the installer."""
        return not self.option or self.option in _ASKING

    @property
    def public(self) -> str:
        """`text` without user names and passwords of addresses."""
        return without_credentials(self.text)


def without_credentials(text: str) -> str:
    return _CREDENTIALS.sub("…@", text)


def decode(content: bytes) -> tuple[str, bool]:
    """The text of a requirements.txt, and whether it is UTF-8, with or without a byte order mark."""
    for mark, encoding in _BYTE_ORDER_MARKS:
        if content.startswith(mark):
            return content.decode(encoding, errors="replace"), encoding == "utf-8-sig"
    try:
        return content.decode(), True
    except UnicodeDecodeError:
        return content.decode("latin-1"), False


def read_requirements(text: str) -> tuple[Entry, ...]:
    """All lines that say something, those that cannot be read among them; of very many the first MOST_LINES."""
    entries: list[Entry] = []
    for number, line in _logical_lines(text):
        if len(entries) == MOST_LINES:
            problem = f"requirements.txt has more than {MOST_LINES:,} lines; the rest is not read."
            entries.append(Entry(line=number, text=line, problem=problem))
            break
        entries.append(_entry(number, line))
    return tuple(entries)


def _logical_lines(text: str) -> Iterator[tuple[int, str]]:
    """Lines without comments, joined where a backslash ends one. A comment is not continued."""
    begun = 0
    parts: list[str] = []
    for number, line in enumerate(re.split(r"\r\n|\r|\n", text), start=1):
        begun = begun if parts else number
        is_comment = line.lstrip().startswith("#")
        if line.endswith("\\") and not is_comment:
            parts.append(line[:-1])
            continue
        joined = _COMMENT.sub("", " ".join((*parts, line))).strip()
        parts = []
        if joined:
            yield begun, joined
    if said := _COMMENT.sub("", " ".join(parts)).strip():
        yield begun, said


def _entry(number: int, text: str) -> Entry:
    if len(text) > LONGEST_LINE:
        problem = f"The line has more than {LONGEST_LINE:,} characters; shorten it."
        return Entry(line=number, text=text[:LONGEST_LINE], problem=problem)
    if text.startswith("-"):
        return _option(number, text)
    own = _OF_ONE.search(text)
    asked = text[: own.start()].rstrip() if own else text
    options = tuple(text[own.start() :].split()) if own else ()
    if _ADDRESS.match(asked) or _FILE.fullmatch(asked):
        return Entry(line=number, text=text, address=asked, options=options)
    try:
        found = Requirement(asked)
    except (InvalidRequirement, RecursionError):
        return Entry(line=number, text=text, problem=_remedy(asked))
    return Entry(
        line=number,
        text=text,
        name=canonicalize_name(found.name),
        specifier=str(found.specifier),
        extras=tuple(sorted(found.extras)),
        marker=str(found.marker or ""),
        address=found.url or "",
        options=options,
    )


def _option(number: int, text: str) -> Entry:
    option, _, value = text.partition("=") if text.startswith("--") else text.partition(" ")
    if " " in option:
        option, _, value = text.partition(" ")
    if not text.startswith("--") and len(option) > 2:  # as in -rmore.txt
        option, value = text[:2], text[2:]
    value = value.strip()
    problem = ""
    if option in _WITH_VALUE:
        problem = "" if value else f"{option!r} needs a value."
    elif option not in _ALONE:
        problem = f"pip knows no option {option!r} in a requirements.txt; remove it."
    elif value:
        problem = f"{option!r} takes no value."
    return Entry(line=number, text=text, option=option, address=value, problem=problem)


def _remedy(text: str) -> str:
    if re.match(r"(?:python\d? -m )?pip\d? install\b|(?:import|from)\s", text):
        return "This is a command, not a requirement; write the package's name alone."
    if re.fullmatch(r"[\w.\[\]-]+\s*=\s*[\w.*]+", text):
        return "A version is pinned with two equals signs; write “name==version”."
    return "This is not a requirement; write it as in “requests>=2.28.0”."
