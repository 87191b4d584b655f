"""The source of a tool.py as a tree. It is parsed, never compiled or run."""

import ast
import codecs
import io
import re
import subprocess
import sys
import threading
import tokenize
import warnings
from dataclasses import dataclass

LONGEST_SOURCE = 1_000_000
"""Bytes of a tool.py."""
HARMLESS = 16_000
"""Characters that the parser reads within some megabytes, whatever they are."""
MOST_MEMORY = 400_000_000
MOST_SECONDS = 3
"""Bytes, and seconds of computing, that a longer source may take."""
LONGEST_WAIT = 20
"""Seconds, on a machine that is busy with other things."""

_ENCODINGS = re.compile(r"(?:utf-8|ascii|iso8859-\d+|cp125\d)\Z")
_LINE_END = re.compile(r"\r\n|\r|\n")
_TRIAL = """
import ast, resource, sys, warnings
for what, most in (("AS", int(sys.argv[1])), ("CPU", int(sys.argv[2])), ("CORE", 0)):
    resource.setrlimit(getattr(resource, f"RLIMIT_{what}"), (most, most))
warnings.simplefilter("ignore")
ast.parse(sys.stdin.buffer.read().decode())
"""
_PYTHON_2_SAYS = (
    ("Missing parentheses in call to 'print'", "print statement"),
    ("Missing parentheses in call to 'exec'", "exec statement"),
    ("multiple exception types must be parenthesized", "except with a comma"),
    ("leading zeros in decimal integer literals", "octal number without 0o"),
)
_PYTHON_2_WRITES = (
    (re.compile(r"^\s*print\s+[^\s=(.,\[]"), "print statement"),
    (re.compile(r"^\s*exec\s+[\"'\w]"), "exec statement"),
    (re.compile(r"^\s*raise\s+[\w.]+\s*,"), "raise with a comma"),
    (re.compile(r"^\s*except\s+[\w.]+\s*,"), "except with a comma"),
    (re.compile(r"<>"), "<>"),
    (re.compile(r"`"), "backticks"),
    (re.compile(r"\b[uU][rR][\"']"), "ur string"),
    (re.compile(r"\b\d+[lL]\b"), "long number"),
)
_MUTED = threading.Lock()


class SourceError(Exception):
    """The source cannot be read; the message says why and what to do. `line` is 0 where no line is to blame."""

    def __init__(self, message: str, *, line: int = 0, source: str = "") -> None:
        super().__init__(message)
        self.line = line
        self.source = source


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    tree: ast.Module
    lines: tuple[str, ...]

    def line(self, number: int) -> str:
        """A line by its number from 1 on, without the space around it; empty where there is none."""
        return self.lines[number - 1].strip() if 0 < number <= len(self.lines) else ""


def parse(content: bytes) -> Source:
    """Raises SourceError, and nothing else, whatever the bytes are; takes some seconds at most."""
    if len(content) > LONGEST_SOURCE:
        raise SourceError(
            f"tool.py has {len(content) / 1_000_000:.1f} MB; more than {LONGEST_SOURCE / 1_000_000:.0f} MB "
            "is not read as source. Move data to files of the package."
        )
    text = _decoded(content)
    lines = tuple(_LINE_END.split(text))
    if "\0" in text:
        number = text[: text.index("\0")].count("\n") + 1
        raise SourceError("tool.py has a null byte; save it as UTF-8 text.", line=number)
    if len(text) > HARMLESS:
        _try_elsewhere(text)
    return Source(tree=_tree(text, lines), lines=lines)


def _decoded(content: bytes) -> str:
    if content.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        raise SourceError("tool.py is UTF-16; save it as UTF-8.")
    try:
        encoding, _ = tokenize.detect_encoding(io.BytesIO(content).readline)
    except SyntaxError as error:
        raise SourceError(
            f"The encoding of tool.py cannot be told ({error.msg}); save it as UTF-8.", line=1
        ) from error
    plain = encoding.removesuffix("-sig")
    if not _ENCODINGS.match(codecs.lookup(plain).name):
        raise SourceError(f"tool.py declares the encoding {plain!r}; save it as UTF-8.", line=1)
    try:
        return content.decode(encoding)
    except UnicodeDecodeError as error:
        number = content[: error.start].count(b"\n") + 1
        raise SourceError(f"tool.py is not {plain} text; save it as UTF-8.", line=number) from error


def _tree(text: str, lines: tuple[str, ...]) -> ast.Module:
    try:
        # What a source only ought not to do is no affair of ours, and would be told to whoever runs the studio.
        with _MUTED, warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return ast.parse(text, "tool.py")
    except SyntaxError as error:
        number = error.lineno or 0
        line = lines[number - 1].strip() if 0 < number <= len(lines) else ""
        raise SourceError(_said(error, line), line=number, source=line) from error
    except (RecursionError, MemoryError) as error:
        raise SourceError(_TOO_DEEP) from error
    except ValueError as error:
        raise SourceError(f"tool.py cannot be read as Python ({error}).") from error


_TOO_DEEP = "tool.py is nested too deep, or too long, to be read; split long expressions."


def _said(error: SyntaxError, line: str) -> str:
    message = error.msg or "invalid syntax"
    old = next((name for said, name in _PYTHON_2_SAYS if said in message), "") or next(
        (name for pattern, name in _PYTHON_2_WRITES if pattern.search(line)), ""
    )
    if old:
        return f"This looks like Python 2 ({old}): {message}. Rewrite the tool in Python 3."
    return f"This is not valid Python 3: {message}."


def _try_elsewhere(text: str) -> None:
    """Lets another process parse it first: some sources of a few kilobytes make the parser take gigabytes."""
    try:
        tried = subprocess.run(
            [sys.executable, "-I", "-S", "-c", _TRIAL, str(MOST_MEMORY), str(MOST_SECONDS)],
            input=text.encode(),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            env={},
            timeout=LONGEST_WAIT,
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        raise SourceError(_TOO_DEEP) from error
    said = tried.stderr.decode(errors="replace").rstrip().rpartition("\n")[2]
    # Other errors are found again here, where they can be told in full.
    if tried.returncode < 0 or said.startswith(("MemoryError", "RecursionError")):
        raise SourceError(_TOO_DEEP)
