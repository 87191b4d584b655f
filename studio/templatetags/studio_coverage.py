"""Cells of the heat map, and verdicts, with a mark and words beside their colour."""

from collections.abc import Sequence
from urllib.parse import urlencode

from django import template
from django.utils.html import conditional_escape, format_html
from django.utils.safestring import SafeString, mark_safe
from django.utils.translation import ngettext_lazy

from engine.expecting import Verdict
from studio.coverage import Column, Heat, Source
from studio.run_words import KINDS, MARKS, VERDICTS

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
    common = "" if of == Source.RUNS else f"of={of}&"
    parts = []
    for column, heat in cells:
        state = heat.state
        if state == "never":
            parts.append('<td class="heat never">·</td>')
            continue
        words = _WORDS[state] % {"count": heat.turns}
        query = conditional_escape(common + urlencode({"in": column.key}))
        title = conditional_escape(column.title)
        parts.append(
            f'<td class="heat {state}"><a href="{address}?{query}"><b>{_MARKS[state]} {heat.turns}</b>'
            f'<span class="of">{words}: <bdi>{title}</bdi></span></a></td>'
        )
    return mark_safe("".join(parts))  # noqa: S308 - titles and addresses are escaped


@register.filter
def verdict_chip(verdict: str) -> SafeString | str:
    """Of a run or a scenario; nothing where there is none yet."""
    if verdict not in set(Verdict):
        return ""
    known = Verdict(verdict)
    return format_html(
        '<span class="chip {}" data-mark="{}">{}</span>',
        KINDS[known],
        MARKS[known],
        VERDICTS[known],
    )
