"""The difference of two runs of a turn: what people call a change, and nothing else."""

import json
from collections import Counter
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.canonical import canonical_json
from engine.errors import ToolErrorKind
from engine.events import Answer, ConfirmationAnsweredEvent, MessageEvent, Mode, ModeEvent, Source
from engine.replaying import (
    Difference,
    DifferenceKind,
    differences,
    is_decision,
)
from engine.spec import Composition, RelationKind
from engine.state import TurnState
from engine.testing import (
    Expected,
    ScriptedModel,
    ScriptedTools,
    infers,
    matches,
    play,
    replies,
    said,
    scripted_kit,
)
from engine.trail import (
    Adherence,
    ArgumentSource,
    CallState,
    DecisionState,
    GuidelineMatch,
    LimitReached,
    MatchState,
    ReplySource,
    Served,
    ToolCall,
    ToolDecision,
    TrailEntry,
)
from engine.turn_record import TurnRecord
from tests.engine.agents import agent, guideline, history, parameter, said_by, tool
from tests.engine.turn_records import (
    FINE,
    LIBRARY,
    WHOLE,
    YEAR,
    argument,
    called,
    decided,
    matched,
    played_again,
    record,
    records,
    replied,
    with_more,
    with_other,
    without,
)


def kinds(before: TurnRecord, after: TurnRecord) -> list[str]:
    return [difference.kind.value for difference in differences(before, after)]


def the_one(before: TurnRecord, after: TurnRecord) -> Difference:
    (found,) = differences(before, after)
    return found


def swapped(difference: Difference) -> Difference:
    return replace(
        difference,
        before=difference.after,
        after=difference.before,
        before_because=difference.after_because,
        after_because=difference.before_because,
    )


def count(found: tuple[Difference, ...]) -> Counter[str]:
    return Counter(canonical_json(difference.to_json()) for difference in found)


# --- what holds of any two records -------------------------------------------------------------------------------


@settings(max_examples=60, deadline=None)
@given(records())
def test_a_turn_does_not_differ_from_itself(turn: TurnRecord) -> None:
    assert differences(turn, turn) == ()


@settings(max_examples=60, deadline=None)
@given(records())
def test_uids_times_reasons_and_ways_to_write_a_number_are_no_difference(turn: TurnRecord) -> None:
    assert differences(turn, played_again(turn)) == ()


@settings(max_examples=60, deadline=None)
@given(records(), records())
def test_the_other_way_round_each_difference_is_the_other_way_round(
    one: TurnRecord, other: TurnRecord
) -> None:
    there, back = differences(one, other), differences(other, one)
    assert count(tuple(map(swapped, there))) == count(back)


@settings(max_examples=60, deadline=None)
@given(records(), records())
def test_differences_come_by_kind_and_in_a_kind_by_iteration(
    one: TurnRecord, other: TurnRecord
) -> None:
    order = list(DifferenceKind)
    places = [(order.index(d.kind), d.iteration) for d in differences(one, other)]
    assert places == sorted(places)


@settings(max_examples=60, deadline=None)
@given(records(), records())
def test_a_difference_has_two_sides_that_differ_and_survives_json(
    one: TurnRecord, other: TurnRecord
) -> None:
    for difference in differences(one, other):
        assert canonical_json(difference.before) != canonical_json(difference.after)
        stored = json.loads(json.dumps(difference.to_json()))
        assert Difference.read(stored) == difference


BRINGS = {"data": 1, "metadata": {}}
PARALLEL = with_more(
    WHOLE,
    *(
        entry
        for name, account in (("find_fine", "B-1"), ("renew", "B-2"), ("find_fine", "B-3"))
        for entry in (
            decided("fine", name, argument("account", account), call=account),
            called(
                account,
                name,
                {"account": account},
                result=BRINGS
                | {"guidelines": [{"condition": "", "action": account, "criticality": "low"}]},
            ),
        )
    ),
    # The first of them again, in a later iteration.
    decided("fine", "find_fine", argument("account", "B-1"), call="again", iteration=2),
    called("again", "find_fine", {"account": "B-1"}, "other", iteration=2),
    matched("B-1-1"),
    matched("B-2-1", MatchState.NOT_MATCHED),
    matched("B-3-1", MatchState.NOT_EVALUATED),
)


@settings(max_examples=60, deadline=None)
@given(st.permutations(PARALLEL.trail))
def test_the_order_in_which_parallel_work_is_recorded_is_no_difference(
    trail: list[TrailEntry],
) -> None:
    assert differences(PARALLEL, replace(PARALLEL, trail=tuple(trail))) == ()


# --- one change, one difference ----------------------------------------------------------------------------------

CALLED = WHOLE.calls[1]
ERROR = WHOLE.calls[2].error
assert ERROR is not None


def with_argument(**changes: Any) -> TurnRecord:
    """The account that is asked about first, otherwise."""
    return with_other(WHOLE, ToolDecision, 1, arguments=(replace(FINE, **changes), YEAR))


def with_result(**parts: Any) -> TurnRecord:
    assert CALLED.result is not None
    return with_other(WHOLE, ToolCall, 1, result=CALLED.result | parts)


CHANGES = {
    "confirmation answered otherwise": with_other(
        WHOLE, ConfirmationAnsweredEvent, answer=Answer.DECLINED
    ),
    "confirmation not read": without(WHOLE, WHOLE.events[1]),
    "guideline appears": with_other(
        WHOLE, GuidelineMatch, 4, state=MatchState.MATCHED, dropped_by="", relation=None
    ),
    "guideline vanishes": with_other(WHOLE, GuidelineMatch, 2, state=MatchState.NOT_MATCHED),
    "guideline dropped no more": with_other(
        WHOLE, GuidelineMatch, 4, state=MatchState.NOT_MATCHED, dropped_by="", relation=None
    ),
    "guideline dropped by another": with_other(WHOLE, GuidelineMatch, 4, dropped_by="renew"),
    "guideline dropped otherwise": with_other(
        WHOLE, GuidelineMatch, 4, relation=RelationKind.HAS_PRIORITY_OVER
    ),
    "guideline added": with_other(
        WHOLE, GuidelineMatch, 3, added_by="fine", relation=RelationKind.ENTAILS
    ),
    "guideline left out": with_other(
        WHOLE, GuidelineMatch, 4, state=MatchState.NOT_EVALUATED, dropped_by="", relation=None
    ),
    "guideline switched on": with_other(WHOLE, GuidelineMatch, 1, state=MatchState.MATCHED),
    "decision of another state": with_other(WHOLE, ToolDecision, 1, state=DecisionState.CANNOT_RUN),
    "decision lacks something": with_other(WHOLE, ToolDecision, 1, missing=("year",)),
    "decision refuses something": with_other(WHOLE, ToolDecision, 1, invalid=("year",)),
    "decision missing": without(WHOLE, WHOLE.decisions[3]),
    "decision more": with_more(WHOLE, decided("angry", "renew", state=DecisionState.NOT_NEEDED)),
    "argument of another value": with_argument(value="A-9"),
    "argument of another type": with_other(
        WHOLE, ToolDecision, 1, arguments=(FINE, replace(YEAR, value="2026"))
    ),
    "argument from elsewhere": with_argument(source=ArgumentSource.VARIABLE),
    "argument not verified": with_argument(verified=False),
    "argument left out": with_other(WHOLE, ToolDecision, 1, arguments=(FINE,)),
    "result of other data": with_result(data={"fine": 4, "day": "today"}),
    "result true in place of 1": with_result(data={"fine": True, "day": "today"}),
    "result with a response": with_result(canned_responses=["Three."]),
    "result handing over": with_result(control={"mode": "manual", "lifespan": "session"}),
    "result failed": with_other(
        WHOLE, ToolCall, 1, state=CallState.FAILED, result=None, error=ERROR
    ),
    "result failed otherwise": with_other(
        WHOLE, ToolCall, 2, error=replace(ERROR, kind=ToolErrorKind.EXCEPTION)
    ),
    "result excused otherwise": with_other(WHOLE, ToolCall, 2, error=replace(ERROR, public="no")),
    "result unknown": with_other(WHOLE, ToolCall, 0, state=CallState.UNKNOWN),
    "result of no call": without(WHOLE, CALLED),
    "handed_over": with_more(WHOLE, ModeEvent(mode=Mode.MANUAL, tool="renew")),
    "limit reached": with_more(WHOLE, LimitReached(limit="max_calls", detail="20 at most")),
    "failure": replace(WHOLE, error="No answer."),
    "response composed otherwise": with_other(
        WHOLE, ReplySource, composition=Composition.COMPOSITED
    ),
    "response chosen": with_other(WHOLE, ReplySource, responses=("r1",)),
    "response does not fit": with_other(WHOLE, ReplySource, fits=False),
    "adherence": with_other(WHOLE, Adherence, follows=False),
    "reply in other words": with_other(WHOLE, MessageEvent, 1, text="It is 3 euros."),
    "reply missing": without(WHOLE, replied()),
}


@pytest.mark.parametrize(("name", "after"), CHANGES.items(), ids=list(CHANGES))
def test_one_change_is_one_difference_of_its_kind(name: str, after: TurnRecord) -> None:
    assert kinds(WHOLE, after) == [name.partition(" ")[0]]
    assert kinds(after, WHOLE) == [name.partition(" ")[0]]


SAME = {
    "metadata": with_result(metadata={"took": 9}),
    "what a tool printed": with_other(WHOLE, ToolCall, 1, log="printed"),
    "where an outcome came from": with_other(WHOLE, ToolCall, 1, served=Served.RECORDED),
    "an error's detail": with_other(WHOLE, ToolCall, 2, error=replace(ERROR, detail="other")),
    "keys in another order": with_result(data={"day": "today", "fine": 3.0}),
    "other words of evidence": with_argument(evidence="account A-1, please"),
    "a message of a tool": with_more(
        WHOLE, MessageEvent(source=Source.AGENT, text="One moment.", model="tool find_fine")
    ),
    "what the writer says of itself": with_other(WHOLE, Adherence, 1, follows=False),
    "a reply that follows and is not checked": without(WHOLE, WHOLE.adherence[0]),
    "a version of the reply that was revised": replace(
        WHOLE,
        trail=(
            Adherence(guideline="fine", follows=False, checked=True),
            *(replace(e, attempt=2) if isinstance(e, Adherence) else e for e in WHOLE.trail),
        ),
    ),
    "a version that was revised and then not checked again": with_more(
        without(WHOLE, WHOLE.adherence[0]),
        Adherence(guideline="fine", follows=False, checked=True),
        Adherence(guideline="fine", follows=True, attempt=2),
    ),
    "a record that does not tell what the reply rests on": without(
        WHOLE, ReplySource(composition=Composition.FLUID)
    ),
    "a later iteration": with_other(WHOLE, GuidelineMatch, 3, iteration=2),
    "switched off or judged not to apply": with_other(
        WHOLE, GuidelineMatch, 1, state=MatchState.NOT_MATCHED
    ),
    "switched off or dropped": with_other(
        WHOLE, GuidelineMatch, 1, state=MatchState.DROPPED, dropped_by="fine"
    ),
    "a guideline that is new and does not apply": with_more(
        WHOLE, matched("new", MatchState.NOT_MATCHED)
    ),
}


@pytest.mark.parametrize("after", SAME.values(), ids=list(SAME))
def test_what_changes_no_decision_and_no_word_is_no_difference(after: TurnRecord) -> None:
    assert differences(WHOLE, after) == ()
    assert differences(after, WHOLE) == ()


# --- what is told ------------------------------------------------------------------------------------------------

NOTHING = {"dropped_by": "", "added_by": "", "relation": None}


def test_a_guideline_is_told_with_both_states_and_reasons() -> None:
    after = with_other(
        WHOLE,
        GuidelineMatch,
        2,
        state=MatchState.DROPPED,
        dropped_by="renew",
        relation=RelationKind.HAS_PRIORITY_OVER,
        because="‘wants to renew’ has priority.",
    )
    assert the_one(WHOLE, after) == Difference(
        kind=DifferenceKind.GUIDELINE,
        guideline="fine",
        iteration=1,
        before={"state": "matched", **NOTHING},
        after={
            "state": "dropped",
            "dropped_by": "renew",
            "added_by": "",
            "relation": "has_priority_over",
        },
        before_because="fine is matched.",
        after_because="‘wants to renew’ has priority.",
    )


def test_a_guideline_in_force_that_the_other_agent_lacks_is_absent_there() -> None:
    fewer = replace(LIBRARY, guidelines=LIBRARY.guidelines[1:])
    after = replace(without(WHOLE, matched("fine", score=0.9)), agent=fewer)
    found = the_one(WHOLE, after)
    assert (found.guideline, found.after) == ("fine", {"state": "absent", **NOTHING})
    assert (found.before_because, found.after_because) == ("fine is matched.", "")


def test_a_turn_that_broke_off_before_it_judged_differs_by_what_was_in_force_and_by_its_failure() -> (
    None
):
    after = record(*WHOLE.events[:1], error="No answer.")
    found = differences(record(*WHOLE.events[:1], *WHOLE.matches.values()), after)
    assert [(d.kind.value, d.guideline) for d in found] == [
        ("guideline", "fine"),
        ("guideline", "renew"),
        ("guideline", "polite"),
        ("failure", ""),
    ]
    assert found[0].after == {"state": "not_evaluated", **NOTHING}
    assert (found[-1].before, found[-1].after) == (None, "No answer.")


def test_guidelines_are_listed_by_iteration_and_then_in_the_authors_order() -> None:
    before = record(
        *(matched(uid) for uid in ("angry", "polite", "fine")), matched("renew", iteration=2)
    )
    after = record(
        *(matched(uid, MatchState.NOT_MATCHED) for uid in ("polite", "angry", "fine")),
        matched("renew", MatchState.NOT_MATCHED, iteration=2),
    )
    assert [d.guideline for d in differences(before, after)] == ["fine", "polite", "angry", "renew"]


def test_a_guideline_inserted_at_the_front_does_not_mix_up_the_order() -> None:
    more = replace(
        LIBRARY, guidelines=(guideline("first"), guideline("second"), *LIBRARY.guidelines)
    )
    before = record(matched("fine"), matched("renew"))
    after = record(*(matched(uid) for uid in ("second", "first")), agent=more)
    in_order = ["first", "second", "fine", "renew"]
    assert [d.guideline for d in differences(before, after)] == in_order
    assert [d.guideline for d in differences(after, before)] == in_order


BROUGHT = {"condition": "", "action": "Say so.", "criticality": "low"}


def brought_by(*calls: tuple[str, str]) -> TurnRecord:
    """Each call (its tool, its uid) brings a guideline that applies."""
    made = [called(uid, name, {}, result=BRINGS | {"guidelines": [BROUGHT]}) for name, uid in calls]
    return record(*made, *(matched(f"{uid}-1", because=f"Given by {name}.") for name, uid in calls))


def test_a_guideline_that_a_result_brings_is_known_by_its_tool_in_whatever_order_calls_began() -> (
    None
):
    before = brought_by(("find_fine", "x"), ("renew", "y"))
    assert differences(before, brought_by(("renew", "p"), ("find_fine", "q"))) == ()
    found = the_one(before, brought_by(("renew", "p")))
    assert found.guideline == "find_fine:1"
    assert (found.before["state"], found.after["state"]) == ("matched", "absent")
    known = before.guideline(found.guideline)
    assert known is not None
    assert known.action == "Say so."


def test_a_decision_is_told_with_what_is_missing() -> None:
    idle, blocked = DecisionState.NOT_NEEDED, DecisionState.CANNOT_RUN
    before = record(decided("fine", "find_fine", state=idle, because="Nobody asks."))
    lacking = {"missing": ("account",), "because": "account is missing."}
    after = record(decided("fine", "find_fine", state=blocked, iteration=2, **lacking))
    assert the_one(before, after) == Difference(
        kind=DifferenceKind.DECISION,
        guideline="fine",
        tool="find_fine",
        iteration=1,
        before={"state": "NOT_NEEDED", "missing": [], "invalid": []},
        after={"state": "CANNOT_RUN", "missing": ["account"], "invalid": []},
        before_because="Nobody asks.",
        after_because="account is missing.",
    )


def about(*accounts: Any, state: DecisionState = DecisionState.NEEDS_TO_RUN) -> TurnRecord:
    """Decisions of one guideline about calls for these accounts, in the order of their iterations."""
    return record(
        *(
            decided("fine", "find_fine", argument("account", account), state=state, iteration=n)
            for n, account in enumerate(accounts, start=1)
        )
    )


def test_calls_of_one_tool_are_paired_by_their_arguments_before_their_order() -> None:
    found = the_one(about("A-1", "A-2", "A-3"), about("A-3", "A-1"))
    assert (found.kind, found.arguments) == (DifferenceKind.DECISION, {"account": "A-2"})
    assert found.before is not None
    assert found.after is None


def transfers(*amounts: tuple[str, int]) -> TurnRecord:
    return record(
        *(
            decided("fine", "pay", argument("to", who), argument("amount", amount))
            for who, amount in amounts
        )
    )


def test_a_call_is_compared_with_the_one_most_like_it() -> None:
    found = differences(
        transfers(("Ann", 10), ("Bob", 20), ("Cem", 50)),
        transfers(("Cem", 50), ("Bob", 30), ("Ann", 40)),
    )
    assert [(d.arguments, d.parameter, d.before["value"], d.after["value"]) for d in found] == [
        ({"to": "Ann"}, "amount", 10, 40),
        ({"to": "Bob"}, "amount", 20, 30),
    ]


def test_an_argument_is_told_with_its_provenance() -> None:
    after = with_argument(value="A-9", source=ArgumentSource.INFERRED, evidence="", verified=False)
    assert the_one(WHOLE, after) == Difference(
        kind=DifferenceKind.ARGUMENT,
        guideline="fine",
        tool="find_fine",
        parameter="account",
        arguments={"year": 2026},
        iteration=1,
        before={"value": "A-1", "source": "customer", "evidence": "words", "verified": True},
        after={"value": "A-9", "source": "inferred", "evidence": "", "verified": False},
        before_because="It is needed.",
        after_because="It is needed.",
    )


def test_an_argument_that_is_null_is_not_one_that_is_left_out() -> None:
    found = the_one(about(None), record(decided("fine", "find_fine")))
    assert (found.kind, found.after) == (DifferenceKind.ARGUMENT, None)
    assert found.before["value"] is None


def test_a_tool_that_is_not_needed_has_no_arguments_to_compare() -> None:
    idle = record(decided("fine", "find_fine", state=DecisionState.NOT_NEEDED))
    assert kinds(about("A-1"), idle) == ["decision"]
    blocked = record(decided("fine", "find_fine", state=DecisionState.CANNOT_RUN))
    assert kinds(about("A-1"), blocked) == ["decision", "argument"]


def test_a_result_is_told_with_the_arguments_of_its_call() -> None:
    after = with_other(WHOLE, ToolCall, 1, state=CallState.FAILED, result=None, error=ERROR)
    assert the_one(WHOLE, after) == Difference(
        kind=DifferenceKind.RESULT,
        guideline="fine",
        tool="find_fine",
        arguments={"account": "A-1"},
        iteration=1,
        before={"state": "done", "data": {"fine": 3, "day": "today"}},
        after={"state": "failed", "error": "timeout", "public": "it took too long"},
    )


def test_a_result_is_named_under_the_first_guideline_that_asked_for_it_on_either_side() -> None:
    before = record(called("x", "find_fine", {}, 1, guidelines=("angry",)))
    after = record(called("y", "find_fine", {}, 2, guidelines=("angry", "renew")))
    assert the_one(before, after).guideline == "renew"
    assert the_one(after, before).guideline == "renew"


def test_what_was_called_otherwise_has_no_result_to_compare() -> None:
    def asked(account: str, data: Any) -> TurnRecord:
        return record(
            decided("fine", "find_fine", argument("account", account), call="c"),
            called("c", "find_fine", {"account": account}, data),
        )

    assert kinds(asked("A-1", 1), asked("A-2", 2)) == ["argument"]
    assert kinds(asked("A-1", 1), about("A-1", state=DecisionState.NOT_NEEDED)) == ["decision"]


def test_a_default_that_is_given_calls_the_tool_as_one_that_is_left_out() -> None:
    given = with_other(
        with_other(WHOLE, ToolCall, 1, arguments={"account": "A-1", "year": 2026}),
        ToolCall,
        1,
        result={"data": "other", "metadata": {}},
    )
    assert kinds(WHOLE, given) == ["result"]


def test_a_confirmation_is_told_by_the_call_that_it_is_about() -> None:
    after = with_other(WHOLE, ConfirmationAnsweredEvent, answer=Answer.CHANGED, because="“no, L-8”")
    assert the_one(WHOLE, after) == Difference(
        kind=DifferenceKind.CONFIRMATION,
        tool="renew",
        arguments={"loan": "L-7"},
        before={"answer": "confirmed"},
        after={"answer": "changed"},
        before_because="“Yes”",
        after_because="“no, L-8”",
    )


def test_of_several_answers_about_one_call_the_last_one_counts() -> None:
    first = ConfirmationAnsweredEvent(call="c1", tool="renew", answer=Answer.DECLINED)
    after = replace(WHOLE, events=(WHOLE.events[0], first, *WHOLE.events[1:]))
    assert differences(WHOLE, after) == ()


def test_a_check_that_the_reply_fails_in_one_run_alone_is_told_though_the_other_made_none() -> None:
    after = with_more(
        WHOLE, Adherence(guideline="polite", follows=False, note="It is rude.", checked=True)
    )
    found = the_one(WHOLE, after)
    assert (found.guideline, found.before, found.after) == ("polite", None, {"follows": False})
    assert found.after_because == "It is rude."


def test_a_response_that_a_tool_gave_is_named_by_its_text() -> None:
    def chosen(uid: str, text: str) -> TurnRecord:
        source = ReplySource(composition=Composition.STRICT, responses=(f"{uid}:1",))
        call = called(uid, "find_fine", {}, result=BRINGS | {"canned_responses": [text]})
        return record(call, source)

    assert differences(chosen("x", "Three."), chosen("y", "Three.")) == ()
    found = [
        d for d in differences(chosen("x", "Three."), chosen("y", "Four.")) if d.kind == "response"
    ]
    assert [(d.before["responses"], d.after["responses"]) for d in found] == [
        (["Three."], ["Four."])
    ]


def test_the_order_of_responses_shown_as_style_is_no_difference() -> None:
    def styled(*uids: str) -> TurnRecord:
        return record(ReplySource(composition=Composition.COMPOSITED, responses=uids))

    assert differences(styled("r1", "r2"), styled("r2", "r1")) == ()
    assert kinds(styled("r1", "r2"), styled("r1")) == ["response"]


def test_another_limit_is_another_ending() -> None:
    calls = LimitReached(limit="max_calls", detail="20 at most")
    rounds = LimitReached(limit="max_iterations", detail="3 at most")
    found = the_one(with_more(WHOLE, calls), with_more(WHOLE, calls, rounds))
    assert (found.before, found.after) == ("max_calls", "max_iterations")
    assert found.after_because == "3 at most"


def test_words_come_last_and_are_no_decision() -> None:
    assert [kind.value for kind in DifferenceKind if not is_decision(kind)] == [
        "response",
        "adherence",
        "reply",
    ]
    everything = record(replied("Other."), error="No answer.")
    found = kinds(WHOLE, everything)
    assert found == sorted(found, key=list(DifferenceKind).index)
    assert found[-1] == "reply"


# --- turns that were played --------------------------------------------------------------------------------------

SHOP = agent(
    guideline("orders", "asks for an order", "say where it is", tools=("find_order",)),
    guideline("thanks", "says thanks", "you are welcome"),
    tools=[tool("find_order", parameter("number"))],
)
TALK = history("Where is order 7?")


async def played(*script: Expected, found: Any = "on its way") -> TurnRecord:
    model, tools = ScriptedModel(*script), ScriptedTools({"find_order": lambda _a, _c: found})
    state = TurnState(agent=SHOP, turn=1, history=TALK)
    emitted = await play(state, scripted_kit(model, tools))
    return record(said_by(Source.CUSTOMER, "Where is order 7?"), *emitted, agent=SHOP)


AS_USUAL = (
    matches("G1"),
    infers("find_order", {"number": said("7")}),
    replies("It is on its way."),
)


async def test_a_turn_played_twice_with_the_same_answers_is_the_same() -> None:
    once, again = await played(*AS_USUAL), await played(*AS_USUAL)
    assert {c.uid for c in once.calls}.isdisjoint(c.uid for c in again.calls)
    assert len(once.calls) == 1
    assert differences(once, again) == ()


async def test_a_guideline_that_no_longer_matches_takes_its_decision_and_its_words_along() -> None:
    after = await played(matches("G2"), replies("You are welcome."))
    found = differences(await played(*AS_USUAL), after)
    assert [(d.kind.value, d.guideline) for d in found] == [
        ("guideline", "orders"),
        ("guideline", "thanks"),
        ("decision", "orders"),
        ("reply", ""),
    ]
    assert (found[2].before["state"], found[2].after) == ("NEEDS_TO_RUN", None)


async def test_another_result_differs_in_the_result_alone_where_the_reply_stays() -> None:
    found = the_one(await played(*AS_USUAL), await played(*AS_USUAL, found="lost"))
    assert (found.before, found.after) == (
        {"state": "done", "data": "on its way"},
        {"state": "done", "data": "lost"},
    )
