"""An agent's coverage: guidelines by scenarios or chats, the turns behind each cell, and the tests that are missing."""

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, Final
from urllib.parse import urlencode

from django.contrib.auth.decorators import login_required
from django.core.paginator import Page, Paginator
from django.http import Http404, HttpResponse
from django.shortcuts import redirect
from django.urls import reverse
from django.utils.functional import Promise
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from django.views.decorators.http import require_GET, require_http_methods

from studio.access import May, allowed, load_agent, load_guideline
from studio.coverage import (
    NEVER,
    Column,
    Coverage,
    Heat,
    Missing,
    Record,
    Source,
    Standing,
    coverage_of,
    heats_of,
    record_of_chats,
    record_of_runs,
)
from studio.coverage_turns import turns_of
from studio.expectation_words import sentence
from studio.http import show
from studio.missing_tests import MissingTest, matching_test, silent_test, tool_test
from studio.models import Agent, Suite
from studio.operations.scenarios import draft_of
from studio.operations.suites import default_suite
from studio.views.signed_in import SignedInRequest

_PAGE = "coverage/coverage.html"
_TURNS = "coverage/turns.html"
_PER_PAGE = 25
_COLUMNS = 50
_TURNS_PER_PAGE = 50
STATES: Final[dict[str, Promise]] = {
    "missing": gettext_lazy("Lacking a test"),
    "fired": gettext_lazy("Never fired"),
    "positive": gettext_lazy("No test that it matches"),
    "negative": gettext_lazy("No test that it does not match"),
    "observation": gettext_lazy("Observations never noted"),
    "covered": gettext_lazy("Covered"),
    "off": gettext_lazy("Switched off"),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Chosen:
    """What the address asks for; what it cannot mean counts as absent."""

    of: str = Source.RUNS.value
    q: str = ""
    state: str = ""  # of STATES
    columns: str = ""  # page of the columns
    page: str = ""  # of the guidelines

    @classmethod
    def read(cls, query: Mapping[str, str]) -> "Chosen":
        given = {
            each.name: query.get(each.name, "").replace("\x00", "").strip()[:200]
            for each in fields(cls)
        }
        given["of"] = given["of"] if given["of"] in set(Source) else Source.RUNS.value
        given["state"] = given["state"] if given["state"] in STATES else ""
        return cls(**given)

    @property
    def source(self) -> Source:
        return Source(self.of)

    @property
    def filtered(self) -> bool:
        return bool(self.q or self.state)

    @property
    def for_pages(self) -> str:
        """As it stands in the address of another page of guidelines."""
        return self._without("page")

    @property
    def for_columns(self) -> str:
        """As it stands in the address of other columns."""
        return self._without("columns")

    def _without(self, left_out: str) -> str:
        values = {each.name: getattr(self, each.name) for each in fields(self)}
        values["of"] = "" if self.source is Source.RUNS else self.of
        return urlencode({name: v for name, v in values.items() if v and name != left_out})


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """A guideline with its cells; the counts are of the columns that are shown."""

    standing: Standing
    cells: tuple[tuple[Column, Heat], ...]
    fired_in: int
    dropped_in: int
    silent_in: int
    never_in: int


@login_required
@require_GET
def coverage_page(request: SignedInRequest, slug: str) -> HttpResponse:
    """The heat map, what is missing, and how much is covered."""
    agent = load_agent(request.user, slug)
    chosen = Chosen.read(request.GET)
    found = coverage_of(agent, chosen.source)
    columns = Paginator(found.record.columns, _COLUMNS).get_page(chosen.columns)
    page = Paginator(_chosen_standings(found, chosen), _PER_PAGE).get_page(chosen.page)
    context = {
        "agent": agent,
        "chosen": chosen,
        "found": found,
        "columns": columns,
        "page": page,
        "rows": _rows(page, list(columns.object_list)),
        "figures": _figures(found),
        "states": STATES.items(),
        "may_test": allowed(request.user, May.TEST),
        **_about(found.record),
    }
    part = "map" if request.headers.get("HX-Target") == "map" else ""
    return show(request, _PAGE, context, part=part)


def _about(record: Record) -> dict[str, Any]:
    return {
        "in_runs": record.source is Source.RUNS,
        "played": any(column.sessions for column in record.columns),
    }


def _chosen_standings(found: Coverage, chosen: Chosen) -> list[Standing]:
    """Those that need something first, else in the author's order; those that are switched off last."""
    words = chosen.q.casefold().split()
    fitting = [
        standing
        for standing in found.standings
        if _is_in(standing, chosen.state)
        and all(word in f"{standing.condition} {standing.action}".casefold() for word in words)
    ]
    return sorted(fitting, key=lambda standing: (not standing.enabled, -standing.need))


def _is_in(standing: Standing, state: str) -> bool:
    match state:
        case "missing":
            return bool(standing.missing)
        case "observation":
            return standing.is_observation and Missing.FIRED in standing.missing
        case "covered":
            return standing.enabled and standing.covered
        case "off":
            return not standing.enabled
        case "":
            return True
        case _:
            return state in standing.missing


def _figures(found: Coverage) -> list[dict[str, Any]]:
    """How many guidelines are in each of the states that want something done."""
    counts = {
        "fired": len(found.lacking(Missing.FIRED)),
        "positive": len(found.lacking(Missing.POSITIVE)),
        "negative": len(found.lacking(Missing.NEGATIVE)),
        "observation": len(found.unseen_observations),
    }
    return [
        {"state": state, "words": STATES[state], "count": count} for state, count in counts.items()
    ]


def _rows(page: Page[Standing], columns: list[Column]) -> list[Row]:
    standings = list(page.object_list)
    heats = heats_of(columns, [standing.uid for standing in standings])
    rows = []
    for standing in standings:
        cells = [(column, heats.get((standing.uid, column.key), NEVER)) for column in columns]
        states = [heat.state for _column, heat in cells]
        rows.append(
            Row(
                standing=standing,
                cells=tuple(cells),
                fired_in=states.count("fired"),
                dropped_in=states.count("dropped"),
                silent_in=states.count("silent"),
                never_in=states.count("never"),
            )
        )
    return rows


@login_required
@require_GET
def coverage_turns(request: SignedInRequest, slug: str, uid: str) -> HttpResponse:
    """The turns behind a cell (`?in=`), or behind all cells of a guideline."""
    guideline = load_guideline(request.user, slug, uid)
    agent, chosen = guideline.agent, Chosen.read(request.GET)
    record = record_of_runs(agent) if chosen.source is Source.RUNS else record_of_chats(agent)
    key = request.GET.get("in", "")
    columns = [column for column in record.columns if key in ("", column.key)]
    if not columns and key:
        raise Http404(_("That scenario or chat is not among what is read here."))
    turns = Paginator(turns_of(columns, uid), _TURNS_PER_PAGE).get_page(request.GET.get("page"))
    context = {
        "agent": agent,
        "guideline": guideline,
        "column": columns[0] if key else None,
        "page": turns,
        "query": urlencode({"of": chosen.of, "in": key}),
        "back": _address(slug, chosen.source),
        **_about(record),
    }
    return show(request, _TURNS, context, part="turns")


def _address(slug: str, source: Source) -> str:
    query = "" if source is Source.RUNS else f"?of={source}"
    return reverse("coverage", args=[slug]) + query


@login_required
@require_http_methods(["GET", "POST"])
def coverage_test(request: SignedInRequest, slug: str) -> HttpResponse:
    """On to the form of a new scenario, filled with the test that `?guideline=…&expect=match|silent` or `?tool=` lacks.

    An agent without a suite is told that one will be made, and a POST makes it.
    """
    agent = load_agent(request.user, slug, May.TEST)
    if not request.GET.get("tool") and not request.GET.get("guideline"):
        return redirect("coverage", slug=slug)
    test = _missing_test(agent, request.GET)
    if request.method == "POST":
        suite = default_suite(agent, by=request.user.get_username())
        return redirect(_form_address(suite, test))
    first = agent.suites.order_by("pk").first()
    if first is not None:
        return redirect(_form_address(first, test))
    words = sentence(test.expectation, draft_of(agent))
    return show(request, "coverage/first_test.html", {"agent": agent, "test": test, "words": words})


def _missing_test(agent: Agent, query: Mapping[str, str]) -> MissingTest:
    """Raises Http404 where the agent has no such guideline or tool."""
    if tool := query.get("tool", ""):
        if not agent.tools.filter(name=tool).exists():
            raise Http404(_("This agent has no tool %(name)r.") % {"name": tool})
        return tool_test(agent, tool)
    uid = query.get("guideline", "")
    guideline = agent.guidelines.select_related("agent").filter(uid=uid).first()
    if guideline is None:
        raise Http404(_("This agent has no guideline %(uid)r.") % {"uid": uid})
    return silent_test(guideline) if query.get("expect") == "silent" else matching_test(guideline)


def _form_address(suite: Suite, test: MissingTest) -> str:
    return f"{reverse('scenario-new', args=[suite.pk])}?{test.query}"
