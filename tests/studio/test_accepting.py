"""Accepting what a replay found: the verdicts, who and why, what is expected since, and taking it back."""

from typing import Any

import pytest

from engine.expecting import (
    DecisionExpectation,
    GuidelineExpectation,
    HandedOverExpectation,
    ToolExpectation,
    read_expectation,
)
from engine.replaying import Difference, DifferenceKind
from engine.testing import infers, matches, replies, said
from studio.models import AcceptedChange, Expectation, ReplayedTurn, Scenario, Session, Suite
from studio.operations.accepted_expectations import contradicts, expectation_of
from studio.operations.accepting import AcceptRefusedError, accept, take_back
from studio.operations.scenarios import add_expectation, keep_session
from studio.operations.suites import default_suite
from studio.operations.variants import Edit, save_edit
from tests.studio.replayed_depot import HELLO, Depot, asks_where, replayed, turns_of, verdicts

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("unwatched")]

WHY = "We say so on the phone."


@pytest.fixture
def depot(monkeypatch: pytest.MonkeyPatch, db: None) -> Depot:
    return Depot(monkeypatch)


def silent(depot: Depot, session: Session, **chosen: Any) -> ReplayedTurn:
    """The second turn played again, in which no guideline matches any more."""
    depot.script(*HELLO, matches(), replies("I cannot say."))
    return turns_of(replayed(session, model="live", **chosen))[1]


def expected_of(scenario: Scenario) -> list[Any]:
    return [read_expectation(row.data) for row in scenario.expectations.order_by("pk")]


def test_a_turn_whose_changes_are_all_accepted_is_changed_as_accepted(depot: Depot) -> None:
    cell = silent(depot, depot.parcels())
    accept(cell, [0], reason=WHY, by="ada")
    assert cell.verdict == "changed"
    accept(cell, None, reason=WHY, by="ada")
    assert cell.verdict == "accepted"
    rows = AcceptedChange.objects.filter(turn=cell.turn)
    assert {(row.reason, row.accepted_by) for row in rows} == {(WHY, "ada")}
    assert len(rows) == len(cell.differences)


def test_the_same_change_is_no_surprise_in_later_and_in_earlier_replays(depot: Depot) -> None:
    session = depot.parcels()
    earlier, cell = silent(depot, session), silent(depot, session)
    accept(cell, None, reason=WHY)
    assert silent(depot, session).verdict == "accepted"
    earlier.refresh_from_db()
    assert earlier.verdict == "accepted"


def test_another_change_of_the_same_turn_is_a_surprise_still(depot: Depot) -> None:
    session = depot.parcels()
    accept(silent(depot, session), None, reason=WHY)
    depot.script(*HELLO, matches(), replies("Who knows?"))
    assert verdicts(replayed(session, model="live")) == ["same", "changed"]


def test_what_was_accepted_is_expected_in_the_scenario_kept_of_the_session(depot: Depot) -> None:
    session = depot.parcels()
    cell = silent(depot, session)
    rows = accept(cell, None, reason=WHY, by="ada")
    scenario = Scenario.objects.get()
    assert (scenario.kept_from, scenario.suite.agent) == (session, depot.agent)
    assert expected_of(scenario) == [
        GuidelineExpectation(turn=2, guideline="where", matches=False),
        ToolExpectation(
            turn=2,
            tool="find_parcel",
            runs=False,
            arguments=expected_of(scenario)[1].arguments,
        ),
    ]
    assert [(a.name, a.value) for a in expected_of(scenario)[1].arguments] == [("number", "P-7")]
    assert {row.because for row in scenario.expectations.all()} == {WHY}
    assert [row.expectation is None for row in rows] == [False, False, True]  # words are not


def test_a_scenario_that_was_kept_before_is_gone_on_with(depot: Depot) -> None:
    session = depot.parcels()
    suite = Suite.objects.create(agent=depot.agent, name="Mine")
    kept = keep_session(session, suite, up_to=1)
    accept(silent(depot, session), None, reason=WHY)
    kept.refresh_from_db()
    assert Scenario.objects.get() == kept
    assert len(kept.messages) == 2
    assert kept.expectations.count() == 2


def test_what_says_the_contrary_is_expected_no_more(depot: Depot) -> None:
    session = depot.parcels()
    kept = keep_session(session, default_suite(depot.agent))
    add_expectation(kept, GuidelineExpectation(turn=2, guideline="where", matches=True))
    add_expectation(kept, GuidelineExpectation(turn=1, guideline="where", matches=False))
    accept(silent(depot, session), [0], reason=WHY)
    assert expected_of(kept) == [
        GuidelineExpectation(turn=1, guideline="where", matches=False),
        GuidelineExpectation(turn=2, guideline="where", matches=False),
    ]


def test_another_argument_is_expected_of_the_call(depot: Depot) -> None:
    session = depot.parcels()
    depot.script(
        *HELLO,
        matches("G1"),
        infers("find_parcel", {"number": said("P-8")}),
        replies("Not found.", "G1"),
    )
    depot.tools.functions = {"find_parcel": lambda _a, _c: None}
    cell = turns_of(replayed(session, model="live", tools="live"))[1]
    place = next(i for i, each in enumerate(cell.differences) if each["kind"] == "argument")
    (row,) = accept(cell, [place], reason=WHY)
    assert row.expectation is not None
    expected = read_expectation(row.expectation.data)
    assert isinstance(expected, ToolExpectation)
    assert expected.runs
    assert [(a.name, a.value) for a in expected.arguments] == [("number", "P-8")]


def test_what_the_draft_no_longer_has_is_accepted_without_an_expectation(depot: Depot) -> None:
    session = depot.parcels()
    depot.where.delete()
    depot.find.delete()
    cell = silent(depot, session)
    assert [row.expectation for row in accept(cell, None, reason=WHY)] == [None, None, None]
    assert cell.verdict == "accepted"


def test_changes_under_a_variant_are_expected_of_a_scenario_with_its_results(depot: Depot) -> None:
    session = depot.parcels()
    call = session.turns.get(number=2).calls.get()
    variant = save_edit(session, Edit(call=call, kind="timeout"), title="Late")
    depot.script(*HELLO, matches("G1", "G2"), *asks_where("P-7")[1:], infers("send_back"))
    depot.script(*HELLO, matches(), replies("I cannot say."))
    cell = turns_of(replayed(session, model="live", variant=variant))[1]
    accept(cell, None, reason=WHY)
    scenario = Scenario.objects.get()
    assert "Late" in scenario.title
    assert scenario.results[0]["error"]["kind"] == "timeout"


def test_taken_back_it_is_a_surprise_again_and_expected_no_more(depot: Depot) -> None:
    cell = silent(depot, depot.parcels())
    rows = accept(cell, None, reason=WHY)
    take_back(rows[0])
    cell.refresh_from_db()
    assert cell.verdict == "changed"
    assert [e.kind for e in expected_of(Scenario.objects.get())] == ["tool"]
    assert AcceptedChange.objects.count() == 2


def test_accepted_once_more_it_has_the_newer_reason(depot: Depot) -> None:
    cell = silent(depot, depot.parcels())
    accept(cell, [0], reason=WHY, by="ada")
    accept(cell, [0], reason="It was decided anew.", by="bob")
    row = AcceptedChange.objects.get()
    assert (row.reason, row.accepted_by) == ("It was decided anew.", "bob")
    assert Expectation.objects.count() == 1


@pytest.mark.parametrize(
    ("which", "reason", "field"),
    [
        (None, "  ", "reason"),
        (None, "x" * 2_001, "reason"),
        ([], WHY, "differences"),
        ([7], WHY, "differences"),
        ([-1], WHY, "differences"),
    ],
)
def test_without_a_reason_or_a_change_nothing_is_accepted(
    depot: Depot, which: list[int] | None, reason: str, field: str
) -> None:
    cell = silent(depot, depot.parcels())
    with pytest.raises(AcceptRefusedError) as refusal:
        accept(cell, which, reason=reason)
    assert refusal.value.field == field
    assert not AcceptedChange.objects.exists()


def test_a_turn_that_is_the_same_or_failed_has_nothing_to_accept(depot: Depot) -> None:
    depot.script(*HELLO)
    for cell in turns_of(replayed(depot.parcels(), model="live")):
        with pytest.raises(AcceptRefusedError):
            accept(cell, None, reason=WHY)


# --- Which expectation says a change


def difference(kind: DifferenceKind, before: Any, after: Any, **more: Any) -> Difference:
    return Difference(kind=kind, before=before, after=after, **more)


def standing(state: str) -> dict[str, Any]:
    return {"state": state, "dropped_by": "", "added_by": "", "relation": None}


def decided(state: str) -> dict[str, Any]:
    return {"state": state, "missing": [], "invalid": []}


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        (
            difference(
                DifferenceKind.GUIDELINE, standing("dropped"), standing("matched"), guideline="g"
            ),
            GuidelineExpectation(turn=3, guideline="g", matches=True),
        ),
        (
            difference(
                DifferenceKind.GUIDELINE,
                standing("dropped"),
                standing("not_matched"),
                guideline="g",
            ),
            None,
        ),
        (
            difference(
                DifferenceKind.DECISION, decided("NEEDS_TO_RUN"), decided("CANNOT_RUN"), tool="t"
            ),
            DecisionExpectation(turn=3, tool="t", state="CANNOT_RUN"),
        ),
        (
            difference(DifferenceKind.DECISION, None, decided("NEEDS_TO_RUN"), tool="t"),
            ToolExpectation(turn=3, tool="t", runs=True),
        ),
        (difference(DifferenceKind.DECISION, decided("CANNOT_RUN"), None, tool="t"), None),
        (
            difference(
                DifferenceKind.ARGUMENT, None, {"value": 1}, tool="another", parameter="number"
            ),
            None,  # the tool was not called
        ),
        (
            difference(DifferenceKind.HANDED_OVER, False, True),
            HandedOverExpectation(turn=3, expected=True),
        ),
        (difference(DifferenceKind.REPLY, "a", "b"), None),
    ],
)
def test_a_change_is_said_as_an_expectation_where_one_says_it(
    found: Difference, expected: Any
) -> None:
    assert expectation_of(found, turn=3, ran=frozenset({"t"})) == expected


def tool(turn: int | None, *, runs: bool = True, **arguments: Any) -> ToolExpectation:
    from engine.expecting import ArgumentExpectation

    told = tuple(ArgumentExpectation(name=n, value=v) for n, v in arguments.items())
    return ToolExpectation(turn=turn, tool="t", runs=runs, arguments=told)


@pytest.mark.parametrize(
    ("known", "wanted", "contrary"),
    [
        (tool(2), tool(2, runs=False), True),
        (tool(1), tool(2, runs=False), False),
        (tool(None, runs=False), tool(2), True),  # in no turn at all
        (tool(None), tool(2, runs=False), False),  # it may run in another turn
        (tool(2, a=1), tool(2, runs=False, a=2), False),
        (tool(2, a=1, b=1), tool(2, a=1, b=2), True),
        (tool(2, a=1), tool(2, a=1.0), False),
        (
            DecisionExpectation(turn=2, tool="t", state="CANNOT_RUN"),
            tool(2),
            True,
        ),
        (tool(2), DecisionExpectation(turn=2, tool="t", state="NOT_NEEDED"), True),
        (HandedOverExpectation(turn=2), HandedOverExpectation(turn=2, expected=False), True),
        (HandedOverExpectation(expected=False), HandedOverExpectation(turn=2), True),
        (GuidelineExpectation(turn=2, guideline="t"), tool(2, runs=False), False),
    ],
)
def test_only_what_cannot_both_hold_is_contrary(known: Any, wanted: Any, contrary: bool) -> None:
    assert contradicts(known, wanted) is contrary
