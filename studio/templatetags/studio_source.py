"""Source text as people read it: highlighted, line by line, with what an editor would hide made visible."""

import difflib
from collections.abc import Iterable, Sequence
from functools import lru_cache
from pathlib import PurePosixPath
from typing import Any

from django import template
from django.utils.html import format_html
from django.utils.safestring import SafeString, mark_safe
from pygments import lex
from pygments.lexer import Lexer
from pygments.lexers.data import JsonLexer
from pygments.lexers.markup import MarkdownLexer
from pygments.lexers.python import PythonLexer
from pygments.lexers.special import TextLexer
from pygments.token import Comment, Generic, Keyword, Name, Number, Operator, String

register = template.Library()

MAX_SHOWN = 100_000  # characters
_MAX_COMPARED = 4_000  # lines of one file: comparing takes the square of it at worst
_CONTEXT = 3

# Only such as take no longer than the text is long, whatever it says; that of TOML, for one, takes its square.
_LEXERS: dict[str, type[Lexer]] = {
    ".py": PythonLexer,
    ".pyi": PythonLexer,
    ".json": JsonLexer,
    ".md": MarkdownLexer,
}
# Few colours: more of them say less.
_CLASSES: tuple[tuple[Any, str], ...] = (
    (Comment, "quiet"),
    (String.Doc, "doc"),
    (String, "text"),
    (Number, "number"),
    (Keyword, "word"),
    (Operator.Word, "word"),
    (Name.Function, "named"),
    (Name.Class, "named"),
    (Name.Decorator, "mark"),
    (Name.Builtin, "known"),
    (Name.Exception, "known"),
    (Name.Tag, "named"),
    (Generic.Heading, "named"),
    (Generic.Subheading, "named"),
)
# Characters that reorder or hide what stands around them, so that a reader sees other code than what runs.
_UNSEEN = frozenset(
    map(chr, (*range(0x200B, 0x2010), *range(0x202A, 0x202F), *range(0x2066, 0x206A)))
).union("\u061c\ufeff\u00ad\x00")


@register.filter
def source_lines(text: str, path: str = "") -> list[SafeString]:
    """The first MAX_SHOWN characters as lines of HTML, highlighted as what the name of the file says it is."""
    return list(_lines(text[:MAX_SHOWN], PurePosixPath(path).suffix.casefold()))


@register.filter
def one_line(text: str) -> SafeString:
    """A line of source by itself."""
    return _visible(text.strip("\r\n"))


@register.filter
def is_cut(text: str) -> bool:
    """Is there more of it than is shown?"""
    return len(text) > MAX_SHOWN


@register.simple_tag
def text_diff(before: str, after: str) -> list[tuple[str, SafeString]]:
    """(kind, line) of what differs: "added", "removed", "same" for what stands around it, "place" for where it is.

    Empty where the texts are too long to be compared line by line.
    """
    old, new = before.splitlines(), after.splitlines()
    if max(len(old), len(new)) > _MAX_COMPARED:
        return []
    return list(_diff(old, new))


_KINDS = {"+": "added", "-": "removed", " ": "same", "@": "place"}


def _diff(old: Sequence[str], new: Sequence[str]) -> Iterable[tuple[str, SafeString]]:
    lines = difflib.unified_diff(old, new, n=_CONTEXT, lineterm="")
    for number, line in enumerate(lines):
        if number > 1:  # past the names of the two files
            yield _KINDS[line[0]], _visible(line if line[0] == "@" else line[1:])


@lru_cache(maxsize=16)
def _lines(text: str, suffix: str) -> tuple[SafeString, ...]:
    lexer = _LEXERS.get(suffix, TextLexer)(stripnl=False, ensurenl=False)
    lines: list[list[SafeString]] = [[]]
    for kind, value in lex(text, lexer):
        css = _class(kind)
        for number, part in enumerate(value.split("\n")):
            if number:
                lines.append([])
            if part:
                lines[-1].append(_token(part, css))
    if len(lines) > 1 and not lines[-1]:
        lines.pop()
    return tuple(mark_safe("".join(line)) for line in lines)  # noqa: S308 - of escaped parts


def _class(kind: Any) -> str:
    return next((css for parent, css in _CLASSES if kind in parent), "")


def _token(text: str, css: str) -> SafeString:
    shown = _visible(text)
    return format_html('<span class="{}">{}</span>', css, shown) if css else shown


def _visible(text: str) -> SafeString:
    if _UNSEEN.isdisjoint(text):
        return format_html("{}", text)
    parts = (
        format_html('<span class="unseen">U+{}</span>', f"{ord(each):04X}")
        if each in _UNSEEN
        else format_html("{}", each)
        for each in text
    )
    return mark_safe("".join(parts))  # noqa: S308 - of escaped parts
