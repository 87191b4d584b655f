"""What a package needs to be installed before it can run: its requirements.txt and the files that this refers to."""

import hashlib
import json
import platform
import posixpath
import re
import sysconfig
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from engine.tools.checking.requirements import Entry, decode, read_requirements, without_credentials

if TYPE_CHECKING:
    from engine.tools.package import Package

FORMAT = 1  # of an environment; a higher one has all of them built anew
REQUIREMENTS = "requirements.txt"

_CONSTRAINTS = frozenset({"-c", "--constraint"})
_INCLUDES = frozenset({"-r", "--requirement"}) | _CONSTRAINTS
_EDITABLE = frozenset({"-e", "--editable"})
_FINDS = frozenset({"-f", "--find-links"})
_EXTRAS = re.compile(r"(?<=.)\[[^\]]*\]$")
_SCHEME = re.compile(r"[a-z][a-z0-9+.-]*://", re.IGNORECASE)
_FILE = re.compile(r"file:(?://(?:localhost(?=/))?)?", re.IGNORECASE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Needs:
    """`requirements` as written, and the `files` it refers to: their POSIX paths beside it and what they hold."""

    requirements: str
    files: Mapping[str, bytes] = field(default_factory=dict)

    @classmethod
    def of(cls, package: "Package") -> "Needs":
        """The needs of a package, whatever it holds; what cannot be read is said when it is built."""
        text, _utf8 = decode(package.files.get(REQUIREMENTS, b""))
        return cls(requirements=text, files=_referred(text, package.files))

    @property
    def key(self) -> str:
        """SHA-256, in hexadecimal, of all that makes one environment differ from another."""
        entries = read_requirements(self.requirements)
        told = [
            FORMAT,
            python_version(),
            f"{platform.python_implementation()} {sysconfig.get_platform()}",
            # Their order means nothing, that of options may.
            sorted({_normalised(entry) for entry in entries if not entry.option}),
            [f"{entry.option} {entry.address}" for entry in entries if entry.option],
            {path: hashlib.sha256(data).hexdigest() for path, data in sorted(self.files.items())},
        ]
        return hashlib.sha256(json.dumps(told).encode()).hexdigest()

    @property
    def names(self) -> frozenset[str]:
        """The packages asked for by name, by requirements.txt and what it includes, in their normalised spelling."""
        return frozenset(entry.name for entry in self._asked() if entry.name)

    @property
    def source(self) -> str:
        """The first requirement that only installs by running code of its own; empty where none does."""
        return next((entry.public for entry in self._asked() if _is_source(entry)), "")

    @property
    def editable(self) -> bool:
        """Whether something is used where it lies among `files`, and not copied."""
        return any(entry.option in _EDITABLE for entry in self._asked())

    @property
    def included(self) -> tuple[str, ...]:
        """The paths of requirements and constraints that requirements.txt includes, directly or not."""
        walked = _walk(self.requirements, self.files)
        return tuple(
            _inside_of(entry, base) for _place, base, entry in walked if entry.option in _INCLUDES
        )

    @property
    def public(self) -> str:
        """`requirements` without user names and passwords of addresses."""
        return without_credentials(self.requirements)

    def problem(self) -> str:
        """Why nothing can be built of it, to be read by people; empty where it may."""
        for place, base, entry in _walk(self.requirements, self.files):
            if found := entry.problem or _problem(entry, base, self.files):
                return f"Line {entry.line} of {place}, {entry.public[:200]!r}: {found}"
        return ""

    def _asked(self) -> Iterator[Entry]:
        for _place, _base, entry in _walk(self.requirements, self.files, constraints=False):
            yield entry


def python_version() -> str:
    """Of the interpreter that environments are made with: the one that runs the studio."""
    return platform.python_version()


def _normalised(entry: Entry) -> str:
    if not entry.name:
        return entry.text
    parts = [entry.name, f"[{','.join(entry.extras)}]", entry.specifier, f"@{entry.address}"]
    return " ".join([*parts, f";{entry.marker}", *sorted(entry.options)])


def _walk(
    text: str, files: Mapping[str, bytes], *, constraints: bool = True
) -> Iterator[tuple[str, str, Entry]]:
    """Each line of requirements.txt and the files it includes: the file, its folder, and the line."""
    waiting, seen = [(REQUIREMENTS, text)], {REQUIREMENTS}
    while waiting:
        place, text = waiting.pop()
        base = posixpath.dirname(place)
        for entry in read_requirements(text):
            yield place, base, entry
            if entry.option not in _INCLUDES or (entry.option in _CONSTRAINTS and not constraints):
                continue
            path = _inside(entry.address, base)
            if path in files and path not in seen:
                seen.add(path)
                waiting.append((path, decode(files[path])[0]))


def _target(entry: Entry) -> str:
    """The address or path that is installed or read, without markers and extras."""
    if entry.option and entry.option not in _EDITABLE | _FINDS | _INCLUDES:
        return ""
    return _EXTRAS.sub("", entry.address.split(" ;", maxsplit=1)[0].strip())


def _path(entry: Entry) -> str:
    """The file or folder it refers to, as written; empty for a name and for an address elsewhere."""
    target = _target(entry)
    if found := _FILE.match(target):
        return target[found.end() :]
    return "" if _SCHEME.match(target) else target


def _is_source(entry: Entry) -> bool:
    if entry.option in _EDITABLE:
        return True
    target = re.split(r"[#?]", _target(entry))[0]
    return not entry.option and bool(target) and not target.lower().endswith(".whl")


def _inside(path: str, base: str = "") -> str:
    """The path from the package's folder on; begins with ".." or "/" where it leaves that."""
    return posixpath.normpath(posixpath.join(base, path))


def _inside_of(entry: Entry, base: str) -> str:
    """As installers have it: included files stand beside what includes them, all else in the package's folder."""
    return _inside(_path(entry), base if entry.option in _INCLUDES else "")


def _referred(text: str, files: Mapping[str, bytes]) -> dict[str, bytes]:
    found: dict[str, bytes] = {}
    for _place, base, entry in _walk(text, files):
        if not _path(entry):
            continue
        path = _inside_of(entry, base)
        found |= {name: data for name, data in files.items() if _holds(path, name)}
    found.pop(REQUIREMENTS, None)
    return found


def _holds(path: str, name: str) -> bool:
    return path == "." or name == path or name.startswith(f"{path}/")


def _problem(entry: Entry, base: str, files: Mapping[str, bytes]) -> str:
    if "${" in entry.text:
        return "Variables of the environment are not filled in here; write the value."
    if not _path(entry):
        return ""
    path = _inside_of(entry, base)
    if path.startswith(("/", "..")):
        return "This leads out of the package; refer only to what it holds."
    if path == REQUIREMENTS or any(_holds(path, name) for name in files):
        return ""
    return "The package does not hold this; add it, or remove the line."
