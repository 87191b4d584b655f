"""Keeping what was seen in a session as a test: where it is kept, and what is expected there."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from django.db import transaction
from django.db.models import Exists, OuterRef, Q
from django.utils.translation import gettext as _

from engine.errors import SpecError
from engine.expecting import Expectation, read_expectation, to_json
from studio.models import RunCell, Scenario, Session, Suite
from studio.operations.expectation_checks import ScenarioRefusedError, make_sure_it_fits
from studio.operations.proposals import Proposal, in_scenario
from studio.operations.scenario_messages import SaidTurn, as_messages, said_in
from studio.operations.scenarios import add_expectation, draft_of, extend, keep_session
from studio.operations.suites import default_suite

NEW = "new"


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where something of a session can be kept: a scenario that was kept of it or that it is a run of, or a new one.

    `name` is what a form sends: the scenario's key, or "new" with the suite's; "new" alone makes the first suite too.
    """

    name: str
    suite: Suite | None
    scenario: Scenario | None = None


def places_for(session: Session, *, turn: int) -> list[Place]:
    """First the newest scenario of this session that still goes on like it; new ones in each suite last."""
    said = as_messages(said_in(session, up_to=turn))
    played = RunCell.objects.filter(session=session, run__suite=OuterRef("suite"))
    own = Q(kept_from=session) | Q(Exists(played.filter(scenario=OuterRef("uid"))))
    kept = Scenario.objects.filter(own, suite__agent=session.agent_id)
    places = [
        Place(name=str(row.pk), suite=row.suite, scenario=row)
        for row in kept.select_related("suite").order_by("-pk")
        if _goes_on_like(row, said)
    ]
    suites = list(session.agent.suites.order_by("pk"))
    places += [Place(name=f"{NEW}-{suite.pk}", suite=suite) for suite in suites]
    return places if suites else [*places, Place(name=NEW, suite=None)]


def _goes_on_like(scenario: Scenario, said: Sequence[object]) -> bool:
    """Is what is said in one of them the beginning of the other?"""
    common = min(len(scenario.messages), len(said))
    return bool(common) and scenario.messages[:common] == list(said)[:common]


@transaction.atomic
def keep_at(
    session: Session,
    place: str,
    expectations: Iterable[Expectation],
    *,
    turn: int,
    because: str = "",
    by: str = "",
) -> Scenario:
    """Expect these of the scenario at this place, which then reaches the session's turn `turn`.

    Their turns are numbered as in the session. Raises ScenarioRefusedError.
    """
    chosen = next((one for one in places_for(session, turn=turn) if one.name == place), None)
    if chosen is None:
        raise ScenarioRefusedError("place", _("Choose where it is kept."))
    scenario = chosen.scenario
    if scenario is None:
        suite = chosen.suite or default_suite(session.agent, by)
        scenario = keep_session(session, suite, up_to=turn, by=by)
    else:
        extend(scenario, session, up_to=turn)
    expect_all(session, scenario, expectations, because=because, by=by)
    return scenario


def expect_all(
    session: Session,
    scenario: Scenario,
    expectations: Iterable[Expectation],
    *,
    because: str = "",
    by: str = "",
) -> None:
    """Expectations of the session, of the scenario that was kept of it. Raises ScenarioRefusedError."""
    said = said_in(session)
    for expectation in expectations:
        here = in_scenario(expectation, said)
        if here is None:
            raise ScenarioRefusedError(
                "turn",
                _("Nothing was said in turn %(turn)s, so no scenario can have it.")
                % {"turn": expectation.turn},
            )
        add_expectation(scenario, here, because=because, by=by)


def keepable(
    session: Session, proposals: Iterable[Proposal]
) -> tuple[list[Proposal], list[Proposal]]:
    """Those that the agent's draft can be held to, and those that speak of what it no longer has."""
    agent = draft_of(session.agent)
    said: Sequence[SaidTurn] = said_in(session)
    whole = Scenario(messages=as_messages(said))
    can: list[Proposal] = []
    cannot: list[Proposal] = []
    for proposal in proposals:
        here = in_scenario(proposal.expectation, said)
        try:
            if here is None:
                raise ScenarioRefusedError("turn", "")
            make_sure_it_fits(read_expectation(to_json(here)), whole, agent)
        except (ScenarioRefusedError, SpecError):
            cannot.append(proposal)
        else:
            can.append(proposal)
    return can, cannot
