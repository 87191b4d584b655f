"""The table of an agent's guidelines: what the address filters, and what each row shows."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

from django.core.paginator import Page, Paginator
from django.db.models import Q

from studio.guards import guards_of
from studio.guideline_figures import fires_of
from studio.models import Agent, Guideline
from studio.models.guideline import GuidelineQuerySet

_PER_PAGE = 50
_FILTERS = ("q", "tag", "tool", "enabled")


@dataclass(frozen=True, slots=True, kw_only=True)
class Chosen:
    """What the address asks for."""

    q: str = ""
    tag: str = ""
    tool: str = ""
    enabled: str = ""  # "yes", "no" or empty
    page: str = ""

    @classmethod
    def read(cls, query: Mapping[str, str]) -> "Chosen":
        values = {name: query.get(name, "").replace("\x00", "") for name in (*_FILTERS, "page")}
        return cls(**{name: value.strip()[:200] for name, value in values.items()})

    @property
    def any(self) -> bool:
        return any(getattr(self, name) for name in _FILTERS)

    @property
    def filters(self) -> str:
        """The filters as they stand in an address, without the page."""
        return self._encoded(*_FILTERS)

    @property
    def query(self) -> str:
        """The filters and the page, with their question mark; empty where there is nothing to say."""
        encoded = self._encoded(*_FILTERS, "page")
        return f"?{encoded}" if encoded else ""

    def _encoded(self, *names: str) -> str:
        return urlencode({name: getattr(self, name) for name in names if getattr(self, name)})


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """A guideline with what stands beside it; `above` and `below` are uids of its neighbours in this view."""

    guideline: Guideline
    fired: int  # turns of the last 30 days
    tests: int  # scenarios that expect something of it or of its tools
    above: str
    below: str


def list_context(agent: Agent, chosen: Chosen) -> dict[str, Any]:
    """What the template of the table shows; the number of queries does not grow with the guidelines."""
    tags_of: dict[int, list[str]] = dict(agent.guidelines.values_list("pk", "tags"))
    found = _filtered(agent, chosen, tags_of)
    page = Paginator(found, _PER_PAGE).get_page(chosen.page)
    # With a neighbour on each side, so that also the first and the last row of a page can be moved.
    first = max(page.start_index() - 2, 0)
    around = list(found.with_parts()[first : page.end_index() + 1]) if page.object_list else []
    return {
        "agent": agent,
        "chosen": chosen,
        "page": page,
        "lines": _lines(agent, around, page),
        "guideline_count": len(tags_of),
        "tags": sorted({tag for tags in tags_of.values() for tag in tags}, key=str.casefold),
        "tools": list(agent.tools.all()),
    }


def _filtered(agent: Agent, chosen: Chosen, tags_of: Mapping[int, list[str]]) -> GuidelineQuerySet:
    found: GuidelineQuerySet = agent.guidelines.all()
    if chosen.tag:
        # SQLite cannot look into a JSON list; the tags are at hand for the choice of tags anyway.
        found = found.filter(pk__in=[pk for pk, tags in tags_of.items() if chosen.tag in tags])
    if chosen.enabled in ("yes", "no"):
        found = found.filter(enabled=chosen.enabled == "yes")
    if chosen.tool:
        found = found.filter(
            Q(tools__name=chosen.tool) | Q(reevaluate_after__name=chosen.tool)
        ).distinct()
    for word in chosen.q.split():
        found = found.filter(
            Q(condition__icontains=word) | Q(action__icontains=word) | Q(uid__iexact=word)
        )
    return found


def _lines(agent: Agent, around: list[Guideline], page: Page[Guideline]) -> list[Line]:
    before = page.start_index() - max(page.start_index() - 2, 0) - 1
    uids = [guideline.uid for guideline in around]
    shown = range(before, min(before + len(page.object_list), len(around)))
    fired = fires_of(agent, [uids[place] for place in shown])
    guards = guards_of(agent)
    return [
        Line(
            guideline=around[place],
            fired=fired.get(uids[place], 0),
            tests=len(guards.of(uids[place], [tool.name for tool in around[place].tools.all()])),
            above=uids[place - 1] if place else "",
            below=uids[place + 1] if place + 1 < len(uids) else "",
        )
        for place in shown
    ]
