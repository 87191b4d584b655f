"""Accepting a change: what a replay found is what is wanted, and is expected from now on."""

from collections.abc import Sequence

from django.db import transaction
from django.utils.translation import gettext as _

from engine.canonical import canonical_json, digest
from engine.errors import SpecError
from engine.expecting import Expectation as Expected
from engine.replaying import Difference
from studio.models import AcceptedChange, Expectation, ReplayedTurn, Scenario, ToolCall
from studio.operations.accepted_expectations import contradicts, expectation_of
from studio.operations.scenario_messages import place_of_turn, said_in
from studio.operations.scenarios import (
    ScenarioRefusedError,
    add_expectation,
    extend,
    keep_session,
    read,
)
from studio.operations.suites import default_suite

LONGEST_REASON = 2_000


class AcceptRefusedError(Exception):
    """Nothing was accepted; `field` names what to change, the text says how."""

    def __init__(self, field: str, message: str) -> None:
        super().__init__(message)
        self.field = field


def key_of(difference: Difference) -> str:
    """The same for the same change of the same turn in every replay: what it is about, before and after."""
    return digest(
        canonical_json(
            [
                difference.kind,
                difference.guideline,
                difference.tool,
                difference.parameter,
                difference.arguments,
                difference.before,
                difference.after,
            ]
        )
    )


@transaction.atomic
def accept(
    cell: ReplayedTurn, which: Sequence[int] | None, *, reason: str, by: str = ""
) -> list[AcceptedChange]:
    """Accept the differences at these places (from 0) of a turn, or all; the reason is that of each.

    Each is expected from now on, where it can be said so, in the scenario that is kept from the session. What was
    accepted before is accepted anew, with this reason. Raises AcceptRefusedError.
    """
    reason = reason.strip()
    if not reason:
        raise AcceptRefusedError("reason", _("Say why this is right, so that others know later."))
    if len(reason) > LONGEST_REASON:
        raise AcceptRefusedError(
            "reason", _("At most %(most)d characters.") % {"most": LONGEST_REASON}
        )
    chosen = _chosen(cell, which)
    expected = _Expected(cell, reason=reason, by=by)
    found = []
    for difference in chosen:
        row, _made = AcceptedChange.objects.update_or_create(
            turn_id=cell.turn_id,
            key=key_of(difference),
            defaults={
                "difference": difference.to_json(),
                "reason": reason,
                "accepted_by": by[:150],
                "expectation": expected.instead_of(difference),
            },
        )
        found.append(row)
    _judge_again(cell.turn_id)
    cell.refresh_from_db(fields=["verdict"])
    return found


@transaction.atomic
def take_back(row: AcceptedChange) -> None:
    """The change is a surprise again; what was expected because of it alone is expected no more."""
    expectation = row.expectation
    row.delete()
    if expectation is not None and not expectation.accepted.exists():
        expectation.delete()
    _judge_again(row.turn_id)


def accepted_of(turn: int) -> dict[str, AcceptedChange]:
    """Key → what was accepted of a turn."""
    rows = AcceptedChange.objects.filter(turn=turn)
    return {row.key: row for row in rows.select_related("expectation__scenario__suite__agent")}


def _chosen(cell: ReplayedTurn, which: Sequence[int] | None) -> list[Difference]:
    found = [Difference.read(each) for each in cell.differences]
    if cell.verdict == ReplayedTurn.Verdict.FAILED:
        raise AcceptRefusedError("differences", _("A failure is not accepted: replay it again."))
    if not found:
        raise AcceptRefusedError("differences", _("Nothing differs in this turn."))
    if which is None:
        return found
    if not which:
        raise AcceptRefusedError("differences", _("Choose what to accept."))
    if not all(0 <= place < len(found) for place in which):
        raise AcceptRefusedError(
            "differences",
            _("The turn has %(count)d differences, from 0.") % {"count": len(found)},
        )
    return [found[place] for place in sorted(set(which))]


class _Expected:
    """Turns changes into expectations of one scenario, which is kept where there is none yet."""

    def __init__(self, cell: ReplayedTurn, *, reason: str, by: str) -> None:
        self._cell = cell
        self._reason = reason
        self._by = by
        self._scenario: Scenario | None = None
        self._ran = frozenset(_ran(cell))
        self._place = place_of_turn(said_in(cell.session), cell.number)

    def instead_of(self, difference: Difference) -> Expectation | None:
        """None where the change cannot be said as an expectation, or not of this scenario."""
        if self._place is None:
            return None
        wanted = expectation_of(difference, turn=self._place, ran=self._ran)
        if wanted is None:
            return None
        try:
            scenario = self._scenario = self._scenario or self._kept()
            if scenario is None:
                return None
            added = add_expectation(scenario, wanted, because=self._reason, by=self._by)
        except ScenarioRefusedError:
            return None  # of a version that the draft has left behind
        self._drop_contrary(scenario, wanted, added)
        return added

    def _kept(self) -> Scenario | None:
        session, variant = self._cell.session, self._cell.replay.variant
        kept = Scenario.objects.filter(kept_from=session, suite__agent=session.agent_id)
        title = f"{session}: {variant}"[:200] if variant is not None else ""
        if variant is not None:
            kept = kept.filter(title=title)
        for scenario in kept.select_related("suite__agent").order_by("pk"):
            if extend(scenario, session, up_to=self._cell.number):
                return scenario
        suite = default_suite(session.agent, by=self._by)
        return keep_session(session, suite, title=title, variant=variant, by=self._by)

    def _drop_contrary(self, scenario: Scenario, wanted: Expected, added: Expectation) -> None:
        for row in scenario.expectations.exclude(pk=added.pk):
            try:
                known = read(row)
            except SpecError:
                continue
            if contradicts(known, wanted):
                row.delete()


def _ran(cell: ReplayedTurn) -> set[str]:
    """Names of the tools that the turn called when it was played."""
    if cell.played_id is None:
        return set()
    calls = ToolCall.objects.filter(turn__session=cell.played_id, turn__number=cell.number)
    return set(calls.values_list("tool", flat=True))


def _judge_again(turn: int) -> None:
    """The verdict of every replay of the turn whose changes may be accepted by now, or are no more."""
    keys = set(AcceptedChange.objects.filter(turn=turn).values_list("key", flat=True))
    changed, accepted = ReplayedTurn.Verdict.CHANGED, ReplayedTurn.Verdict.ACCEPTED
    for cell in ReplayedTurn.objects.filter(turn=turn, verdict__in=[changed, accepted]):
        found = (Difference.read(each) for each in cell.differences)
        verdict = accepted if all(key_of(each) in keys for each in found) else changed
        if verdict != cell.verdict:
            ReplayedTurn.objects.filter(pk=cell.pk).update(verdict=verdict)
