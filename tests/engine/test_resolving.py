"""What guidelines make of one another (ENGINE.md §1 step 3), and what the trail says of it."""

from dataclasses import replace
from typing import Any, assert_never

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.events import BriefingEvent, ToolFinishedEvent
from engine.outbox import Emission
from engine.resolving import Outcome, outcomes, questions, resolve
from engine.soundness import problems
from engine.spec import Agent, Guideline, RelationKind, Relationship
from engine.state import TurnState
from engine.testing import (
    Expected,
    ScriptedModel,
    ScriptedTools,
    entries,
    matches,
    play,
    replies,
    scripted_kit,
)
from engine.trail import GuidelineMatch, MatchState, ToolDecision
from tests.engine.agents import agent, guideline, tool, turn_of

ALL, ANY = RelationKind.DEPENDS_ON_ALL, RelationKind.DEPENDS_ON_ANY
OVER, ENTAILS = RelationKind.HAS_PRIORITY_OVER, RelationKind.ENTAILS
ASKS, ELSE = RelationKind.DISAMBIGUATES, RelationKind.ALTERNATIVE_TO


def related(kind: RelationKind, source: str, *targets: str) -> Relationship:
    return Relationship(uid=f"{source}-{kind}", kind=kind, source=source, targets=targets)


def letters(spec: str, *relationships: Relationship, **options: Any) -> Agent:
    """Guidelines a, b, c …; a number after a letter is its priority, a minus switches it off: "a b5 c-"."""
    found = []
    for part in spec.split():
        uid, rest = part[0], part[1:]
        found.append(
            guideline(
                uid,
                f"condition {uid}",
                f"do {uid}",
                priority=int(rest) if rest.isdigit() else 0,
                enabled=rest != "-",
                tools=(uid,) if options.get("tools") else (),
            )
        )
    tools = [tool(g.uid) for g in found] if options.pop("tools", False) else []
    return agent(*found, relationships=relationships, tools=tools, **options)


def in_force(spec: Agent, judged: str) -> str:
    """The letters in force when these are judged to apply."""
    found = outcomes(spec, set(judged))
    return "".join(sorted(uid for uid, o in found.items() if o.state is MatchState.MATCHED))


def dropped(spec: Agent, judged: str) -> dict[str, tuple[RelationKind | None, str]]:
    """Dropped letter → (relationship, counterpart)."""
    found = outcomes(spec, set(judged))
    return {
        uid: (o.relation, o.dropped_by) for uid, o in found.items() if o.state is MatchState.DROPPED
    }


def test_without_relationships_what_matched_is_in_force() -> None:
    assert outcomes(letters("a b"), {"a"}) == {"a": Outcome(state=MatchState.MATCHED)}


class TestNumericPriority:
    def test_one_high_guideline_does_not_silence_all_others_of_unrelated_topics(self) -> None:
        """A trap of systems before us (ENGINE.md §6): the number only orders the reply."""
        spec = letters("a9 b c3", related(OVER, "a", "b"))
        assert in_force(spec, "ac") == "ac"
        assert in_force(letters("a9 b c3"), "abc") == "abc"

    async def test_it_orders_the_guidelines_of_the_reply(self) -> None:
        emitted = await turn(letters("a b9 c3"), matches("G1", "G2", "G3"), replies("Ok."))
        assert entries(emitted, BriefingEvent)[0].guidelines == ("b", "c", "a")


class TestEntailment:
    def test_what_it_brings_comes_into_force_though_judged_not_to_apply(self) -> None:
        found = outcomes(letters("a b", related(ENTAILS, "a", "b")), {"a"})
        assert found["b"] == Outcome(state=MatchState.MATCHED, relation=ENTAILS, added_by="a")

    def test_it_goes_on_along_the_chain_each_naming_the_one_before(self) -> None:
        spec = letters("a b c", related(ENTAILS, "a", "b"), related(ENTAILS, "b", "c"))
        found = outcomes(spec, {"a"})
        assert {uid: o.added_by for uid, o in found.items()} == {"a": "", "b": "a", "c": "b"}

    def test_one_that_applies_by_itself_was_not_added_by_anyone(self) -> None:
        found = outcomes(letters("a b", related(ENTAILS, "a", "b")), {"a", "b"})
        assert found["b"] == Outcome(state=MatchState.MATCHED)

    def test_it_does_not_work_backwards(self) -> None:
        assert in_force(letters("a b", related(ENTAILS, "a", "b")), "b") == "b"

    def test_a_switched_off_guideline_neither_brings_nor_is_brought(self) -> None:
        spec = letters("a b- c", related(ENTAILS, "a", "b"), related(ENTAILS, "b", "c"))
        assert in_force(spec, "ab") == "a"

    def test_what_came_along_goes_with_the_only_one_that_brought_it(self) -> None:
        brings, over = related(ENTAILS, "a", "b"), related(OVER, "c", "a")
        assert dropped(letters("a b c", brings, over), "ac") == {
            "a": (OVER, "c"),
            "b": (ENTAILS, "a"),
        }

    def test_it_stays_when_another_brings_it_too_or_it_applies_by_itself(self) -> None:
        brings, over = related(ENTAILS, "a", "b"), related(OVER, "c", "a")
        also = related(ENTAILS, "d", "b")
        assert in_force(letters("a b c d", brings, over, also), "acd") == "bcd"
        assert outcomes(letters("a b c d", brings, over, also), set("acd"))["b"].added_by == "d"
        assert in_force(letters("a b c", brings, over), "abc") == "bc"

    def test_two_that_bring_each_other_do_not_hold_each_other_up(self) -> None:
        spec = letters(
            "a b c s", related(ENTAILS, "a", "b"), related(ENTAILS, "b", "a"),
            related(ENTAILS, "s", "a"), related(OVER, "c", "s"),
        )  # fmt: skip
        assert in_force(spec, "s") == "abs"
        assert in_force(spec, "sc") == "c"


class TestDependency:
    def test_on_all_drops_for_the_first_that_is_missing(self) -> None:
        spec = letters("a b c d", related(ALL, "d", "c", "b", "a"))
        assert in_force(spec, "abcd") == "abcd"
        assert dropped(spec, "ad") == {"d": (ALL, "b")}

    def test_on_any_stays_with_one_of_them(self) -> None:
        spec = letters("a b c", related(ANY, "c", "a", "b"))
        assert in_force(spec, "bc") == "bc"
        assert dropped(spec, "c") == {"c": (ANY, "a")}

    def test_a_switched_off_guideline_counts_as_not_in_force(self) -> None:
        assert dropped(letters("a- b", related(ALL, "b", "a")), "ab") == {"b": (ALL, "a")}

    def test_one_that_was_removed_makes_no_demand(self) -> None:
        assert in_force(letters("a", related(ALL, "a", "gone")), "a") == "a"

    def test_it_cascades(self) -> None:
        spec = letters("a b c", related(ALL, "b", "a"), related(ALL, "c", "b"))
        assert dropped(spec, "bc") == {"b": (ALL, "a"), "c": (ALL, "b")}

    def test_one_brought_along_meets_a_dependency(self) -> None:
        spec = letters("a b c", related(ENTAILS, "a", "b"), related(ALL, "c", "b"))
        assert in_force(spec, "ac") == "abc"

    def test_one_brought_along_has_dependencies_of_its_own(self) -> None:
        spec = letters("a b c", related(ENTAILS, "a", "b"), related(ALL, "b", "c"))
        found = outcomes(spec, {"a"})
        assert found["b"] == Outcome(
            state=MatchState.DROPPED, relation=ALL, dropped_by="c", added_by="a"
        )


class TestPriority:
    def test_what_is_in_force_drops_those_it_has_priority_over(self) -> None:
        spec = letters("a b c", related(OVER, "a", "b", "c"))
        assert dropped(spec, "abc") == {"b": (OVER, "a"), "c": (OVER, "a")}
        assert in_force(spec, "bc") == "bc"

    def test_a_dropped_guideline_drops_nobody(self) -> None:
        spec = letters("a b c", related(OVER, "a", "b"), related(OVER, "b", "c"))
        assert in_force(spec, "abc") == "ac"

    def test_one_without_what_it_depends_on_drops_nobody(self) -> None:
        spec = letters("a b c", related(ALL, "a", "c"), related(OVER, "a", "b"))
        assert in_force(spec, "ab") == "b"
        assert in_force(spec, "abc") == "ac"

    def test_what_depends_on_a_dropped_one_is_dropped_too(self) -> None:
        spec = letters("a b c", related(OVER, "a", "b"), related(ALL, "c", "b"))
        assert dropped(spec, "abc") == {"b": (OVER, "a"), "c": (ALL, "b")}

    def test_one_that_falls_with_a_dropped_one_drops_nobody_however_the_author_ordered_them(
        self,
    ) -> None:
        """a falls with b, which c drops; so d stays."""
        relations = (related(OVER, "a", "d"), related(ALL, "a", "b"), related(OVER, "c", "b"))
        for order in ("a b c d", "d c b a", "c a d b"):
            assert in_force(letters(order, *relations), "abcd") == "cd"

    def test_what_it_drops_first_and_brings_later_is_settled_from_the_top(self) -> None:
        """c comes along with b only, which a drops: so c does not drop d."""
        relations = (related(OVER, "a", "b"), related(ENTAILS, "b", "c"), related(OVER, "c", "d"))
        for order in ("a b c d", "d c b a"):
            assert in_force(letters(order, *relations), "abd") == "ad"


class TestAlternatives:
    def test_only_the_highest_of_those_in_force_stays(self) -> None:
        spec = letters("a1 b5 c3", related(ELSE, "a", "b", "c"))
        assert dropped(spec, "abc") == {"a": (ELSE, "b"), "c": (ELSE, "b")}
        assert dropped(spec, "ac") == {"a": (ELSE, "c")}
        assert in_force(spec, "a") == "a"

    def test_equal_ones_all_stay(self) -> None:
        spec = letters("a5 b5 c3", related(ELSE, "a", "b", "c"))
        assert in_force(spec, "abc") == "ab"
        assert dropped(spec, "abc") == {"c": (ELSE, "a")}

    def test_others_are_left_alone(self) -> None:
        assert in_force(letters("a1 b5 c0", related(ELSE, "a", "b")), "abc") == "bc"

    def test_one_that_has_lost_to_another_guideline_wins_nothing(self) -> None:
        spec = letters("a1 b5 c", related(ELSE, "a", "b"), related(OVER, "c", "b"))
        assert in_force(spec, "abc") == "ac"


class TestDisambiguation:
    SPEC = letters("d a b c", related(ASKS, "d", "a", "b", "c"), tools=True)

    def test_several_in_force_are_dropped_and_asked_about(self) -> None:
        assert dropped(self.SPEC, "dab") == {"a": (ASKS, "d"), "b": (ASKS, "d")}
        assert in_force(self.SPEC, "dab") == "d"

    def test_with_one_in_force_it_is_clear_and_nothing_is_asked(self) -> None:
        assert dropped(self.SPEC, "da") == {"d": (ASKS, "a")}

    def test_with_none_in_force_it_stays_to_ask(self) -> None:
        assert in_force(self.SPEC, "d") == "d"

    def test_where_it_does_not_apply_nothing_is_in_doubt(self) -> None:
        assert in_force(self.SPEC, "abc") == "abc"

    def test_priority_between_those_in_question_settles_it_first(self) -> None:
        spec = letters("d a b", related(ASKS, "d", "a", "b"), related(OVER, "a", "b"))
        assert dropped(spec, "dab") == {"b": (OVER, "a"), "d": (ASKS, "a")}

    def test_what_falls_with_one_in_doubt_falls_too(self) -> None:
        spec = letters("d a b x", related(ASKS, "d", "a", "b"), related(ALL, "x", "a"))
        assert dropped(spec, "dabx")["x"] == (ALL, "a")

    def test_one_that_need_not_ask_drops_nobody(self) -> None:
        spec = letters("d a b x", related(ASKS, "d", "a", "b"), related(OVER, "d", "x"))
        assert in_force(spec, "dax") == "ax"
        assert in_force(spec, "dabx") == "d"

    async def test_tools_wait_until_it_is_clear_and_the_reply_asks_between_those_that_matched(
        self,
    ) -> None:
        state = turn_of(self.SPEC, "The one with A and B")
        tools = ScriptedTools({"d": lambda _a, _c: 1})
        model = ScriptedModel(matches("G1", "G2", "G3"), replies("Which one?"))
        await play(state, scripted_kit(model, tools))
        assert [name for name, _ in tools.called] == ["d"]
        (asked,) = questions(state)
        assert asked.guideline.uid == "d"
        assert [g.condition for g in asked.between] == ["condition a", "condition b"]

    async def test_where_none_matched_the_reply_asks_between_all_that_are_switched_on(self) -> None:
        spec = letters("d a b- c", related(ASKS, "d", "a", "b", "c"))
        state = turn_of(spec, "Hm")
        await play(state, scripted_kit(ScriptedModel(matches("G1"), replies("Which one?"))))
        (asked,) = questions(state)
        assert [g.uid for g in asked.between] == ["a", "c"]

    async def test_when_it_is_clear_the_tool_runs_and_nothing_is_asked(self) -> None:
        state = turn_of(self.SPEC, "A")
        tools = ScriptedTools({"a": lambda _a, _c: 1, "d": lambda _a, _c: 1})
        await play(state, scripted_kit(ScriptedModel(matches("G1", "G2"), replies("Ok.")), tools))
        assert [name for name, _ in tools.called] == ["a"]
        assert questions(state) == ()


async def turn(spec: Agent, *expected: Expected, tools: ScriptedTools | None = None) -> Any:
    model = ScriptedModel(*expected)
    emitted = await play(turn_of(spec, "Hello"), scripted_kit(model, tools))
    model.assert_used_up()
    return emitted


def last_of(emitted: list[Emission]) -> dict[str, GuidelineMatch]:
    return {m.guideline: m for m in entries(emitted, GuidelineMatch)}


class TestTheTrail:
    async def test_a_dropped_guideline_says_by_which_one_and_why_and_keeps_its_judgement(
        self,
    ) -> None:
        spec = letters("a b", related(OVER, "a", "b"))
        emitted = await turn(
            spec, matches("G1", "G2", because="The customer says so."), replies("Ok.")
        )
        first, last = (m for m in entries(emitted, GuidelineMatch) if m.guideline == "b")
        assert (first.state, first.because) == (MatchState.MATCHED, "The customer says so.")
        assert (last.state, last.relation, last.dropped_by) == (MatchState.DROPPED, OVER, "a")
        assert last.because == "‘condition a’ has priority."
        assert last.model_call == first.model_call != ""

    async def test_every_guideline_ends_the_turn_with_a_state(self) -> None:
        spec = letters("a b c d e-", related(OVER, "a", "b"), related(ENTAILS, "a", "c"))
        emitted = await turn(spec, matches("G1", "G2"), replies("Ok."))
        assert {uid: match.state for uid, match in last_of(emitted).items()} == {
            "a": MatchState.MATCHED,
            "b": MatchState.DROPPED,
            "c": MatchState.MATCHED,
            "d": MatchState.NOT_MATCHED,
            "e": MatchState.NOT_EVALUATED,
        }

    async def test_only_what_changed_is_recorded_a_second_time(self) -> None:
        spec = letters("a b c", related(OVER, "a", "b"))
        emitted = await turn(spec, matches("G1", "G2", "G3"), replies("Ok."))
        assert [m.guideline for m in entries(emitted, GuidelineMatch)] == ["a", "b", "c", "b"]

    @pytest.mark.parametrize(
        ("relationship", "judged", "uid", "because"),
        [
            (related(ENTAILS, "a", "b"), "a", "b", "It comes along with ‘condition a’."),
            (related(ALL, "b", "a", "c"), "bc", "b",
             "It applies only together with ‘condition a’, which is not in force."),
            (related(ANY, "c", "a", "b"), "c", "c",
             "It applies only together with others, and none is in force: ‘condition a’ is not."),
            (related(ELSE, "a", "c"), "ac", "a", "‘condition c’ is the alternative with the higher priority."),
            (related(ASKS, "a", "b", "c"), "abc", "b", "The customer may mean something else: ‘condition a’."),
            (related(ASKS, "a", "b", "c"), "ab", "a",
             "There is nothing to ask: only ‘condition b’ is in force of what the customer may mean."),
        ],
    )  # fmt: skip
    async def test_each_relationship_has_its_sentence(
        self, relationship: Relationship, judged: str, uid: str, because: str
    ) -> None:
        labels = [f"G{'abc'.index(one) + 1}" for one in judged]
        emitted = await turn(letters("a b c3", relationship), matches(*labels), replies("Ok."))
        assert last_of(emitted)[uid].because == because

    async def test_the_reply_is_told_of_those_in_force_only(self) -> None:
        spec = letters("a b c", related(OVER, "a", "b"), related(ENTAILS, "a", "c"))
        emitted = await turn(spec, matches("G1", "G2"), replies("Ok."))
        assert entries(emitted, BriefingEvent)[0].guidelines == ("a", "c")

    async def test_the_tools_of_a_dropped_guideline_do_not_run_and_those_of_an_added_one_do(
        self,
    ) -> None:
        spec = letters("a b c", related(OVER, "a", "b"), related(ENTAILS, "a", "c"), tools=True)
        tools = ScriptedTools({name: lambda _a, _c: 1 for name in "ac"})
        emitted = await turn(spec, matches("G1", "G2"), replies("Ok."), tools=tools)
        assert sorted(name for name, _ in tools.called) == ["a", "c"]
        assert {d.guideline for d in entries(emitted, ToolDecision)} == {"a", "c"}

    async def test_an_observation_counts_in_relationships(self) -> None:
        """A guideline without an action is in force as any other: here it lets another apply."""
        spec = agent(
            guideline("member", "the customer is a member"),
            guideline("refund", "asks for a refund", "refund at once"),
            relationships=(related(ALL, "refund", "member"),),
        )
        assert in_force_uids(outcomes(spec, {"refund", "member"})) == {"refund", "member"}
        assert in_force_uids(outcomes(spec, {"refund"})) == set()


def in_force_uids(found: dict[str, Outcome]) -> set[str]:
    return {uid for uid, outcome in found.items() if outcome.state is MatchState.MATCHED}


class TestIterations:
    """Results make other guidelines match; everything judged up to then is settled together."""

    @staticmethod
    def looking(*more: Guideline, relationships: tuple[Relationship, ...]) -> Agent:
        return agent(
            guideline("ask", "asks", "look", tools=("look",)),
            *more,
            relationships=relationships,
            tools=[tool("look"), tool("next")],
        )

    async def test_one_whose_tool_has_run_may_still_be_dropped_for_the_reply(self) -> None:
        found = guideline("low", "it is low", "warn", reevaluate_after=("look",))
        spec = self.looking(found, relationships=(related(OVER, "low", "ask"),))
        tools = ScriptedTools({"look": lambda _a, _c: 3})
        emitted = await turn(spec, matches("G1"), matches("G2"), replies("Ok."), tools=tools)
        assert len(entries(emitted, ToolFinishedEvent)) == 1
        assert entries(emitted, BriefingEvent)[0].guidelines == ("low",)
        last = last_of(emitted)["ask"]
        assert (last.state, last.iteration, last.dropped_by) == (MatchState.DROPPED, 2, "low")

    async def test_a_dropped_one_comes_back_with_its_tools_when_nothing_drops_it_any_more(
        self,
    ) -> None:
        more = (
            guideline("other", "also asks", "go on", tools=("next",)),
            guideline("low", "it is low", "warn", reevaluate_after=("look",)),
        )
        relations = (related(OVER, "ask", "other"), related(OVER, "low", "ask"))
        spec = self.looking(*more, relationships=relations)
        tools = ScriptedTools({"look": lambda _a, _c: 3, "next": lambda _a, _c: 4})
        emitted = await turn(spec, matches("G1", "G2"), matches("G3"), replies("Ok."), tools=tools)
        assert [name for name, _ in tools.called] == ["look", "next"]
        last = last_of(emitted)["other"]
        assert (last.state, last.iteration) == (MatchState.MATCHED, 2)
        assert last.because == "It applies, and ‘asks’ no longer keeps it out."

    async def test_a_dropped_one_that_applies_is_not_judged_again_after_a_tool(self) -> None:
        more = (
            guideline("other", "also asks", "go on", reevaluate_after=("look",)),
            guideline("low", "it is low", "warn", reevaluate_after=("look",)),
        )
        spec = self.looking(*more, relationships=(related(OVER, "ask", "other"),))
        model = ScriptedModel(matches("G1", "G2"), matches(), replies("Ok."))
        tools = ScriptedTools({"look": lambda _a, _c: 3})
        await play(turn_of(spec, "Hello"), scripted_kit(model, tools))
        assert model.requests[1].subject == "G3"

    async def test_a_tool_is_not_run_again_when_another_guideline_brings_its_own_along(
        self,
    ) -> None:
        """ "other" came with "ask"; then "low" drops "ask" and brings "other" itself."""
        more = (
            guideline("other", "nothing else", "go on", tools=("next",)),
            guideline("low", "it is low", "warn", reevaluate_after=("look",)),
        )
        relations = (
            related(ENTAILS, "ask", "other"), related(ENTAILS, "low", "other"), related(OVER, "low", "ask"),
        )  # fmt: skip
        spec = self.looking(*more, relationships=relations)
        tools = ScriptedTools({"look": lambda _a, _c: 3, "next": lambda _a, _c: 4})
        emitted = await turn(spec, matches("G1"), matches("G3"), replies("Ok."), tools=tools)
        assert sorted(name for name, _ in tools.called) == ["look", "next"]
        last = last_of(emitted)["other"]
        assert (last.state, last.added_by, last.iteration) == (MatchState.MATCHED, "low", 1)

    async def test_resolving_again_records_nothing_wherever_it_was_interrupted(self) -> None:
        spec = letters(
            "a b c d", related(OVER, "a", "b"), related(ENTAILS, "a", "c"), related(ALL, "d", "b")
        )
        emitted = await turn(spec, matches("G1", "G2", "G4"), replies("Ok."))
        recorded = entries(emitted, GuidelineMatch)
        assert [m.guideline for m in recorded] == ["a", "b", "c", "d", "b", "c", "d"]
        for kept in range(4, 8):
            state = turn_of(spec, "Hello")
            state.recall(recorded[:kept])
            again = await resolved(state)
            assert [(m.guideline, m.state) for m in again] == [
                (m.guideline, m.state) for m in recorded[kept:]
            ]
            assert await resolved(state) == []


async def resolved(state: TurnState) -> list[GuidelineMatch]:
    """What `resolve` records now."""
    kit = scripted_kit(ScriptedModel())
    before = dict(state.matches)
    kit.outbox.abandon()
    await resolve(state, kit)
    return [match for uid, match in state.matches.items() if match is not before.get(uid)]


# --- Whatever the relationships -------------------------------------------------------------------------------------

UIDS = "abcdefg"
RELATIONSHIPS = st.builds(
    Relationship,
    uid=st.uuids().map(str),
    kind=st.sampled_from(RelationKind),
    source=st.sampled_from(UIDS + "z"),
    targets=st.lists(st.sampled_from(UIDS + "z"), max_size=4).map(tuple),
)


@st.composite
def agents(draw: st.DrawFn) -> Agent:
    guidelines = [
        guideline(uid, uid, enabled=draw(st.sampled_from([True, True, True, False])), priority=draw(st.integers(0, 3)))
        for uid in UIDS
    ]  # fmt: skip
    relationships = draw(st.lists(RELATIONSHIPS, max_size=9))
    return agent(*guidelines, relationships=tuple(relationships))


@given(spec=agents(), judged=st.sets(st.sampled_from(UIDS)), order=st.randoms())
@settings(max_examples=300)
def test_any_relationships_come_to_an_end_with_every_effect_named(
    spec: Agent, judged: set[str], order: Any
) -> None:
    found = outcomes(spec, judged)
    shuffled = list(spec.relationships)
    order.shuffle(shuffled)
    assert outcomes(replace(spec, relationships=tuple(shuffled)), judged) == found

    known = spec.guideline_by_uid
    enabled = {uid for uid in judged if known[uid].enabled}
    assert enabled <= found.keys()
    for uid, outcome in found.items():
        assert known[uid].enabled
        assert (outcome.added_by == "") is (uid in enabled)
        match outcome.state:
            case MatchState.MATCHED:
                assert outcome.dropped_by == ""
                assert outcome.relation is (ENTAILS if outcome.added_by else None)
                if outcome.added_by:
                    assert found[outcome.added_by].state is MatchState.MATCHED
            case MatchState.DROPPED:
                assert outcome.dropped_by in known
                assert outcome.relation is not None
            case _:
                pytest.fail(f"{uid} is {outcome.state}")


@given(spec=agents(), judged=st.sets(st.sampled_from(UIDS)))
@settings(max_examples=300)
def test_of_sound_relationships_each_holds_in_the_end(spec: Agent, judged: set[str]) -> None:
    """Checked against their meaning, one by one, by nothing that the code is made of."""
    spec = soundly_related(spec)
    found = outcomes(spec, judged)
    for relationship in spec.relationships:
        if relationship.source in in_force_uids(found):
            assert holds(spec, found, relationship), relationship
    in_doubt = any(
        o.relation is ASKS
        and o.state is MatchState.DROPPED
        and o.dropped_by in in_force_uids(found)
        for o in found.values()
    )
    for outcome in found.values():
        if outcome.state is MatchState.DROPPED and outcome.relation in {OVER, ELSE}:
            # Nobody is dropped by one that is out itself, unless that one may come back with the customer's answer.
            assert outcome.dropped_by in in_force_uids(found) or in_doubt


def soundly_related(spec: Agent) -> Agent:
    """With as many of its relationships as do not contradict one another."""
    sound = replace(spec, relationships=())
    for relationship in spec.relationships:
        more = replace(sound, relationships=(*sound.relationships, relationship))
        sound = sound if problems(more) else more
    return sound


def holds(spec: Agent, found: dict[str, Outcome], relationship: Relationship) -> bool:
    """What a relationship says, where its source is in force."""
    force = in_force_uids(found)
    source, targets = relationship.source, set(relationship.targets)
    match relationship.kind:
        case RelationKind.DEPENDS_ON_ALL:
            return targets <= force
        case RelationKind.DEPENDS_ON_ANY:
            return bool(targets & force)
        case RelationKind.HAS_PRIORITY_OVER | RelationKind.DISAMBIGUATES:
            return not targets & force
        case RelationKind.ENTAILS:
            return {uid for uid in targets if spec.guideline_by_uid[uid].enabled} <= found.keys()
        case RelationKind.ALTERNATIVE_TO:
            together = {source, *targets} & force
            return len({spec.guideline_by_uid[uid].priority for uid in together}) == 1
        case _:
            assert_never(relationship.kind)
