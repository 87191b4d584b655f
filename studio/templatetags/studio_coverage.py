"""Cells of the heat map, with a mark and words beside their colour."""

from collections.abc import Sequence
from functools import lru_cache
from urllib.parse import urlencode

from django import template
from django.utils.html import conditional_escape
from django.utils.safestring import SafeString, mark_safe
from django.utils.translation import get_language, ngettext_lazy

from studio.coverage import Column, Heat, Source

register = template.Library()

_MARKS = {"fired": "✓", "dropped": "↓", "silent": "–", "never": "·"}
_WORDS = {
    "fired": ngettext_lazy("fired in %(count)d turn", "fired in %(count)d turns", "count"),
    "dropped": ngettext_lazy("dropped in %(count)d turn", "dropped in %(count)d turns", "count"),
    "silent": ngettext_lazy("silent in %(count)d turn", "silent in %(count)d turns", "count"),
}


@register.simple_tag
def heat_cells(cells: Sequence[tuple[Column, Heat]], address: str, of: str) -> SafeString:
    """The cells of a row, each a link to its turns: one string, because a page has thousands of them."""
    if not cells:
        return mark_safe("<td></td>")
    parts, language = [], get_language()
    for column, heat in cells:
        state, turns = heat.state, heat.turns
        if state == "never":
            parts.append('<td class="heat never">·</td>')
            continue
        parts.append(
            f'<td class="heat {state}"><a href="{address}?{_query(column.key, of)}"><b>{_MARKS[state]} {turns}</b>'
            f'<span class="of">{_words(state, turns, language)}: <bdi>{_title(column.title)}</bdi></span></a></td>'
        )
    return mark_safe("".join(parts))  # noqa: S308 - titles and addresses are escaped


# Each is asked for again in every row.
@lru_cache(maxsize=512)
def _query(key: str, of: str) -> str:
    given = {"in": key} if of == Source.RUNS else {"of": of, "in": key}
    return conditional_escape(urlencode(given))


@lru_cache(maxsize=512)
def _title(title: str) -> str:
    return conditional_escape(title)


@lru_cache(maxsize=512)
def _words(state: str, turns: int, _language: str | None) -> str:
    return str(_WORDS[state] % {"count": turns})
