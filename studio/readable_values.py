"""JSON as people read it: rows, tables and folds in place of braces. Never as markup of its own."""

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from django.utils import formats
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

_ITEMS = 5  # shown of a long list before it is folded
_FIELDS = 12
_COLUMNS = 6
_LONG = 240  # characters
_DEPTH = 4
_HUGE = 20_000  # characters of JSON, past which its beginning is shown as it is
_SHOWN = 50_000  # characters of that


def counted(value: int | None) -> str:
    """A whole number with its thousands apart."""
    return formats.number_format(value or 0, use_l10n=True, force_grouping=True)


def readable(value: Any) -> SafeString:
    """JSON as people read it: fields as rows, lists of alike objects as tables, long ones folded. Never as markup."""
    if isinstance(value, Mapping | list | tuple):
        text = json.dumps(value, ensure_ascii=False, default=str)
        if len(text) > _HUGE:
            return _beginning(text)
    return _readable(value, 0)


def _beginning(text: str) -> SafeString:
    words = ngettext("%(count)s character", "%(count)s characters", len(text))
    return _folded(
        _quiet(_("A long value, too long to lay out.")),
        words % {"count": counted(len(text))},
        format_html('<pre dir="auto" tabindex="0">{}</pre>', shortened(text, _SHOWN)),
    )


def _readable(value: Any, depth: int) -> SafeString:
    if isinstance(value, Mapping):
        return _fields(value, depth) if value else _quiet(_("nothing"))
    if isinstance(value, list | tuple):
        return _list(value, depth) if value else _quiet(_("an empty list"))
    return _scalar(value)


def _quiet(words: str) -> SafeString:
    return format_html('<span class="none">{}</span>', words)


def _scalar(value: Any) -> SafeString:
    if value is None or value == "":
        return _quiet(_("nothing") if value is None else _("empty"))
    if isinstance(value, bool):
        return format_html("{}", _("yes") if value else _("no"))
    text = str(value)
    if len(text) <= _LONG:
        return format_html("<bdi>{}</bdi>", text)
    words = ngettext("%(count)s character", "%(count)s characters", len(text))
    return _folded(
        format_html("<bdi>{}</bdi>", shortened(text, 120)),
        words % {"count": counted(len(text))},
        format_html('<span class="long" dir="auto">{}</span>', text),
    )


def _folded(before: SafeString, words: str, inside: SafeString) -> SafeString:
    return format_html(
        '{}<details class="fold"><summary>{}</summary>{}</details>', before, words, inside
    )


def _fields(value: Mapping[str, Any], depth: int) -> SafeString:
    if depth >= _DEPTH:
        return _scalar(str(dict(value)))
    items = list(value.items())
    shown, hidden = items[:_FIELDS], items[_FIELDS:]
    rows = _rows(shown, depth)
    if not hidden:
        return rows
    words = ngettext("%(count)s more field", "%(count)s more fields", len(items) - _FIELDS)
    more = words % {"count": counted(len(items) - _FIELDS)}
    return _folded(rows, more, _rows(hidden, depth))


def _rows(items: Iterable[tuple[str, Any]], depth: int) -> SafeString:
    return format_html(
        '<dl class="fields">{}</dl>',
        format_html_join(
            "",
            '<div><dt dir="auto">{}</dt><dd>{}</dd></div>',
            ((str(name).replace("_", " "), _readable(inner, depth + 1)) for name, inner in items),
        ),
    )


def _list(value: Sequence[Any], depth: int) -> SafeString:
    if depth >= _DEPTH:
        return _scalar(str(list(value)))
    if not any(isinstance(item, Mapping | list | tuple) for item in value):
        return _line(value)
    columns = _columns(value)
    draw = _table if columns else _items
    shown, hidden = value[:_ITEMS], value[_ITEMS:]
    first = draw(shown, columns, depth)
    if not hidden:
        return first
    left = len(value) - _ITEMS
    words = ngettext("%(count)s more", "%(count)s more", left) % {"count": counted(left)}
    return _folded(first, words, draw(hidden, columns, depth))


def _line(value: Sequence[Any]) -> SafeString:
    """Items without parts of their own, one after another."""
    words = [_plain(item) for item in value]
    line = ", ".join(words)
    if len(line) <= _LONG:
        return format_html("<bdi>{}</bdi>", line)
    shown = shortened(", ".join(words[:_ITEMS]), _LONG)
    count = ngettext("all %(count)s item", "all %(count)s items", len(words))
    return _folded(
        format_html("<bdi>{}</bdi>…", shown),
        count % {"count": counted(len(words))},
        format_html('<span class="long" dir="auto">{}</span>', line),
    )


def _columns(value: Sequence[Any]) -> tuple[str, ...]:
    """The common fields of a list of flat objects; empty where a table would not suit."""
    if len(value) < 2 or not all(isinstance(item, Mapping) and item for item in value):
        return ()
    names = tuple(value[0])
    flat = all(
        tuple(item) == names
        and not any(isinstance(inner, Mapping | list | tuple) for inner in item.values())
        for item in value
    )
    return names if flat and len(names) <= _COLUMNS else ()


def _table(value: Sequence[Any], columns: tuple[str, ...], _depth: int) -> SafeString:
    head = format_html_join(
        "", '<th scope="col">{}</th>', ((str(name).replace("_", " "),) for name in columns)
    )
    cells = (
        (format_html_join("", "<td>{}</td>", ((_scalar(item[c]),) for c in columns)),)
        for item in value
    )
    body = format_html_join("", "<tr>{}</tr>", cells)
    return format_html(
        '<table class="values"><thead><tr>{}</tr></thead><tbody>{}</tbody></table>', head, body
    )


def _items(value: Sequence[Any], _columns: tuple[str, ...], depth: int) -> SafeString:
    rows = format_html_join("", "<li>{}</li>", ((_readable(i, depth + 1),) for i in value))
    return format_html('<ul class="values">{}</ul>', rows)


def _plain(value: Any) -> str:
    if value is None:
        return _("nothing")
    if isinstance(value, bool):
        return _("yes") if value else _("no")
    return str(value)


def shortened(text: str, most: int) -> str:
    return text if len(text) <= most else text[: most - 1].rstrip() + "…"
