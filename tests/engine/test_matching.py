"""Which guidelines apply (ENGINE.md §1 step 2): what is asked, what is recorded, and what is never asked."""

from typing import Any

import pytest

from engine.errors import ModelError, ModelErrorKind
from engine.events import BriefingEvent, Source, StatusEvent, ToolFinishedEvent
from engine.model.base import ModelRequest
from engine.outbox import Emission
from engine.spec import Agent, RelationKind, Relationship, Term
from engine.state import Checkpoint, Limits, Step
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
from engine.trail import DecisionState, GuidelineMatch, MatchState, ModelCall, ToolDecision
from tests.engine.agents import agent, guideline, said_by, tool, turn_of
from tests.engine.sessions import HOSTILE, AnsweringModel, Conversation, play_to_its_end

TWO = agent(guideline("a", "one", "x"), guideline("b", "two", "y"))
WEATHER = agent(
    guideline("ask", "asks for the weather", "look", tools=("forecast",)),
    guideline("rain", "it rains", "offer an umbrella", reevaluate_after=("forecast",)),
    guideline("sun", "it is sunny", "offer a hat", reevaluate_after=("forecast",)),
    guideline("other", "says goodbye", "say goodbye"),
    tools=[tool("forecast")],
)


def judges(*judgements: tuple[str, bool, str]) -> Expected:
    """MatchGuidelines with exactly these judgements: (label, applies, because)."""
    told = [{"guideline": g, "applies": a, "because": b} for g, a, b in judgements]
    return Expected(question="MatchGuidelines", answer={"newest": "", "judgements": told})


def states(emitted: list[Emission]) -> dict[str, MatchState]:
    return {m.guideline: m.state for m in entries(emitted, GuidelineMatch)}


async def turn(spec: Agent, *expected: Expected, text: str = "Hello", **options: Any) -> Any:
    model = ScriptedModel(*expected, batch_size=options.pop("batch_size", 12))
    tools = ScriptedTools({"forecast": lambda _a, _c: "rain"})
    emitted = await play(turn_of(spec, text, **options), scripted_kit(model, tools))
    model.assert_used_up()
    return emitted, model


async def test_each_match_names_the_model_call_that_judged_it_and_its_times() -> None:
    emitted, _model = await turn(TWO, matches("G1", because="It is so."), replies("Ok."))
    (call,) = (c for c in entries(emitted, ModelCall) if c.question == "MatchGuidelines")
    for match in entries(emitted, GuidelineMatch):
        assert match.model_call == call.uid
        assert match.because == "It is so."
        assert call.started_at == match.started_at <= match.ended_at == call.ended_at


async def test_a_guideline_judged_twice_in_one_answer_keeps_its_first_judgement() -> None:
    both = judges(("G1", True, "yes"), ("G2", False, "no"), ("G1", False, "or not"))
    emitted, _model = await turn(TWO, both, replies("Ok."))
    assert states(emitted) == {"a": MatchState.MATCHED, "b": MatchState.NOT_MATCHED}
    assert len(entries(emitted, GuidelineMatch)) == 2


async def test_blanks_around_a_label_do_no_harm() -> None:
    emitted, _model = await turn(TWO, judges((" G1", True, ""), ("G2\n", True, "")), replies("Ok."))
    assert set(states(emitted).values()) == {MatchState.MATCHED}


@pytest.mark.parametrize("invented", ["G0", "G3", "g1", "a", "", "G1 and G2", "GG1", "G１"])
async def test_an_answer_about_an_unknown_guideline_touches_none(invented: str) -> None:
    emitted, model = await turn(TWO, judges((invented, True, "x")), matches("G2"), replies("Ok."))
    assert states(emitted) == {"a": MatchState.NOT_MATCHED, "b": MatchState.MATCHED}
    assert model.questions()[:2] == ["MatchGuidelines G1–G2", "MatchGuidelines G1–G2"]


async def test_a_switched_off_guideline_cannot_be_matched_by_an_answer() -> None:
    spec = agent(guideline("off", "one", "x", enabled=False), guideline("on", "two", "y"))
    both = judges(("G1", True, "sneaked in"), ("G2", True, "yes"))
    emitted, model = await turn(spec, both, replies("Ok."))
    assert states(emitted) == {"off": MatchState.NOT_EVALUATED, "on": MatchState.MATCHED}
    assert '"id": "G1"' not in model.requests[0].messages[0].content


async def test_one_without_a_condition_is_in_force_whatever_an_answer_says_of_it() -> None:
    spec = agent(guideline("always", action="be kind"), guideline("on", "two", "y"))
    emitted, _model = await turn(
        spec, judges(("G1", False, "no"), ("G2", False, "no")), replies("Ok.")
    )
    assert states(emitted)["always"] is MatchState.MATCHED


async def test_a_long_reason_is_kept_as_one_short_line() -> None:
    emitted, _model = await turn(
        TWO, judges(("G1", True, "so\n" * 1000), ("G2", True, "ok")), replies("Ok.")
    )
    because = entries(emitted, GuidelineMatch)[0].because
    assert len(because) <= 300
    assert "\n" not in because


async def test_the_missing_are_asked_about_as_often_as_the_limit_says() -> None:
    only_a = judges(("G1", True, "yes"))
    nothing = judges()
    emitted, model = await turn(
        TWO, only_a, nothing, replies("Ok."), limits=Limits(batch_retries=1)
    )
    assert model.questions() == [
        "MatchGuidelines G1–G2",
        "MatchGuidelines G2",
        "ComposeReply",
    ]
    left = entries(emitted, GuidelineMatch)[-1]
    assert (left.guideline, left.state) == ("b", MatchState.NOT_EVALUATED)
    assert "no judgement" in left.because


async def test_a_model_error_in_one_batch_ends_the_turn_and_keeps_what_others_judged() -> None:
    error = ModelError("down", kind=ModelErrorKind.UNREACHABLE, retryable=False)
    model = ScriptedModel(
        matches("G1"), Expected(question="MatchGuidelines", answer=error), batch_size=1
    )
    emitted, ended = await play_to_its_end(turn_of(TWO, "Hello"), scripted_kit(model))
    assert ended is error
    failed = [c for c in entries(emitted, ModelCall) if c.error]
    assert [c.error for c in failed] == ["unreachable: down"]
    assert not failed[0].used


async def test_a_resumed_turn_judges_only_what_has_no_judgement_yet() -> None:
    spec = agent(
        guideline("a", "one"), guideline("b", "two"), guideline("c", action="x"),
        guideline("d", "off", enabled=False),
    )  # fmt: skip
    emitted, _model = await turn(spec, matches("G1"), replies("Ok."))
    known = [m for m in entries(emitted, GuidelineMatch) if m.guideline != "b"]
    state = turn_of(spec, "Hello")
    state.recall(known)
    model = ScriptedModel(matches("G2"), replies("Ok."))

    again = await play(state, scripted_kit(model))

    assert model.questions() == ["MatchGuidelines G2", "ComposeReply"]
    assert [m.guideline for m in entries(again, GuidelineMatch)] == ["b"]
    assert entries(again, BriefingEvent)[0].guidelines == ("a", "b", "c")


class TestReevaluation:
    async def test_all_that_wait_for_the_tool_are_judged_with_its_result_in_view(self) -> None:
        emitted, model = await turn(
            WEATHER, matches("G1"), matches("G2"), replies("Ok."), text="Weather?"
        )
        second = model.requests[1]
        assert second.subject == "G2–G3"
        assert '"result": "rain"' in second.messages[1].content
        assert states(emitted) == {
            "ask": MatchState.MATCHED,
            "rain": MatchState.MATCHED,
            "sun": MatchState.NOT_MATCHED,
            "other": MatchState.NOT_MATCHED,
        }
        assert entries(emitted, BriefingEvent)[0].guidelines == ("ask", "rain")

    async def test_one_that_is_in_force_already_is_not_judged_again(self) -> None:
        _emitted, model = await turn(
            WEATHER, matches("G1", "G2"), matches(), replies("Ok."), text="Weather?"
        )
        assert model.requests[1].subject == "G3"

    async def test_a_judgement_that_stays_no_is_recorded_for_its_iteration_too(self) -> None:
        emitted, _model = await turn(
            WEATHER, matches("G1"), matches(), replies("Ok."), text="Weather?"
        )
        found = [m.iteration for m in entries(emitted, GuidelineMatch) if m.guideline == "rain"]
        assert found == [1, 2]

    async def test_without_a_tool_that_ran_nothing_is_judged_again(self) -> None:
        _emitted, model = await turn(WEATHER, matches("G4"), replies("Bye."))
        assert model.questions() == ["MatchGuidelines G1–G4", "ComposeReply"]

    async def test_a_switched_off_guideline_is_not_judged_after_a_tool_either(self) -> None:
        spec = agent(
            guideline("ask", "asks", "look", tools=("forecast",)),
            guideline("rain", "it rains", "x", reevaluate_after=("forecast",), enabled=False),
            tools=[tool("forecast")],
        )
        emitted, _model = await turn(spec, matches("G1"), replies("Ok."))
        assert states(emitted)["rain"] is MatchState.NOT_EVALUATED
        assert emitted[-1] == Checkpoint(step=Step.FINISHED, iteration=1)

    async def test_a_chain_of_results_goes_as_far_as_the_agent_allows(self) -> None:
        chain = [guideline("g1", "starts", "go", tools=("t1",))]
        for n in range(2, 6):
            link = guideline(
                f"g{n}", f"t{n - 1} ran", "go", tools=(f"t{n}",), reevaluate_after=(f"t{n - 1}",)
            )
            chain.append(link)
        spec = agent(*chain, tools=[tool(f"t{n}") for n in range(1, 6)], max_iterations=3)
        tools = ScriptedTools({f"t{n}": lambda _a, _c: 1 for n in range(1, 6)})
        model = ScriptedModel(matches("G1"), matches("G2"), matches("G3"), replies("Ok."))

        emitted = await play(turn_of(spec, "Go"), scripted_kit(model, tools))

        assert [name for name, _ in tools.called] == ["t1", "t2", "t3"]
        assert emitted[-1] == Checkpoint(step=Step.FINISHED, iteration=3)
        iterations = {d.tool: d.iteration for d in entries(emitted, ToolDecision)}
        assert iterations == {"t1": 1, "t2": 2, "t3": 3}

    async def test_a_tool_that_runs_for_a_new_guideline_without_parameters_runs_once(self) -> None:
        spec = agent(
            guideline("ask", "asks", "look", tools=("forecast",)),
            guideline("rain", "it rains", "look", tools=("forecast",), reevaluate_after=("forecast",)),
            tools=[tool("forecast")],
        )  # fmt: skip
        emitted, _model = await turn(spec, matches("G1"), matches("G2"), replies("Ok."))
        first, second = entries(emitted, ToolDecision)
        assert (first.state, second.state) == (
            DecisionState.NEEDS_TO_RUN,
            DecisionState.DATA_ALREADY_IN_CONTEXT,
        )
        assert first.call == second.call
        assert second.guideline == "rain"


class TestOneOffActions:
    async def test_what_was_acted_on_is_part_of_the_question_in_every_later_turn(self) -> None:
        past = [BriefingEvent(guidelines=("a",)), said_by(Source.AGENT, "Welcome!")]
        model = ScriptedModel(matches(), replies("Ok."))
        state = turn_of(TWO, "Hello", *past, "How are you?", said_by(Source.AGENT, "Fine."), "Well")
        await play(state, scripted_kit(model))
        told = model.requests[0].messages[1].content.splitlines()
        assert told.index('{"acted on": ["G1"]}') < told.index('{"agent": "Welcome!"}')
        assert '"acted on" lists' in model.requests[0].messages[0].content

    async def test_a_one_off_action_is_not_repeated_unless_its_condition_arises_anew(self) -> None:
        """The welcome is given once, and again only to whoever comes back."""
        spec = agent(guideline("welcome", "the customer arrives", "welcome them"))

        def obedient(request: ModelRequest) -> dict[str, Any]:
            """Answers as the rules of the prompt ask for."""
            if request.question.name == "ComposeReply":
                return {"reply": "Ok.", "follows": []}
            past, newest = request.messages[1].content.rstrip().rsplit("\n", 1)
            acted_on = '{"acted on": ["G1"]}' in past
            applies = "I am back" in newest or not acted_on
            told = {"guideline": "G1", "because": "", "applies": applies}
            return {"newest": "", "judgements": [told]}

        session = Conversation(agent=spec, model=AnsweringModel(obedient))
        in_force = []
        for text in ("Good morning", "Where are the books?", "I am back", "Well then"):
            emitted = await session.say(text)
            in_force.append(entries(emitted, BriefingEvent)[0].guidelines)
        assert in_force == [("welcome",), (), ("welcome",), ()]

    async def test_an_uid_that_the_agent_no_longer_has_is_not_told(self) -> None:
        past = [BriefingEvent(guidelines=("gone",)), said_by(Source.AGENT, "Welcome!")]
        model = ScriptedModel(matches(), replies("Ok."))
        await play(turn_of(TWO, "Hello", *past, "Well"), scripted_kit(model))
        assert '"acted on"' not in model.requests[0].messages[1].content


@pytest.mark.parametrize("text", HOSTILE)
async def test_text_that_looks_like_anything_else_changes_nothing_but_itself(text: str) -> None:
    spec = agent(
        guideline("a", text, text, tools=("forecast",)), guideline("b", "two", text),
        guideline("c", "three", text),
        tools=[tool("forecast", description=text)], description=text, tone=text,
        terms=(Term(uid="w", name=text, description=text, synonyms=(text,)),),
        relationships=(
            Relationship(uid="r", kind=RelationKind.HAS_PRIORITY_OVER, source="a", targets=("c",)),
        ),
    )  # fmt: skip
    enabled_labels = ["G1", "G2", "G3"] if text.strip() else ["G2", "G3"]
    expected = [matches("G2", "G1", "G3"), replies("Ok.")]
    emitted, model = await turn(spec, *expected, text=text)
    assert states(emitted) == {
        "a": MatchState.MATCHED,
        "b": MatchState.MATCHED,
        "c": MatchState.DROPPED,
    }
    asked = model.requests[0].question
    assert [spec.label_of[g.uid] for g in asked.guidelines] == enabled_labels
    assert emitted[-1] == Checkpoint(step=Step.FINISHED, iteration=1)
    assert len(entries(emitted, ToolFinishedEvent)) == 1


async def test_batches_of_any_size_ask_each_guideline_once() -> None:
    spec = agent(*(guideline(f"g{n}", f"c{n}") for n in range(1, 26)))

    def by_label(request: ModelRequest) -> dict[str, Any]:
        answer: Any = matches("G13").answer
        return dict(answer(request))

    for size in (1, 2, 7, 12, 25, 100):
        asks = [
            Expected(question="MatchGuidelines", answer=by_label) for _ in range(-(-25 // size))
        ]
        emitted, model = await turn(spec, *asks, replies("Ok."), batch_size=size)
        asked = [g.uid for r in model.requests[:-1] for g in r.question.guidelines]
        assert sorted(asked) == sorted(g.uid for g in spec.guidelines)
        matched = [u for u, s in states(emitted).items() if s is MatchState.MATCHED]
        assert matched == ["g13"]
        assert entries(emitted, StatusEvent)[0].count == 25
