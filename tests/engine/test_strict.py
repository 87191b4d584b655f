"""Composition (ENGINE.md §5): which mode a reply is written in, and replies that only canned responses may give."""

from datetime import UTC, datetime
from typing import Any

import pytest

from engine.canonical import JsonObject
from engine.errors import ModelError, ModelErrorKind
from engine.events import (
    BriefingEvent,
    ConfirmationAskedEvent,
    MessageEvent,
    MessagePartEvent,
    Source,
)
from engine.model.base import ChooseResponse, ComposeReply
from engine.outbox import Emission
from engine.spec import NO_MATCH, Agent, CannedResponse, Composition, Criticality
from engine.state import Checkpoint, Step
from engine.testing import (
    Expected,
    ScriptedModel,
    ScriptedTools,
    entries,
    infers,
    matches,
    play,
    replies,
    responds,
    scripted_kit,
)
from engine.tools.base import ToolResult
from engine.trail import Adherence, ModelCall, ReplySource
from tests.engine.agents import agent, guideline, parameter, said_by, tool, turn_of
from tests.engine.sessions import HOSTILE, AnsweringModel, Generated, checked, play_to_its_end

STRICT = Composition.STRICT
AT = datetime(2026, 5, 4, 12, 0, tzinfo=UTC)


def canned(*texts: str) -> tuple[CannedResponse, ...]:
    """R1 is called "r1" …"""
    return tuple(CannedResponse(uid=f"r{n}", text=text) for n, text in enumerate(texts, start=1))


def strict(*texts: str, **options: Any) -> Agent:
    return agent(
        guideline("kind", action="be kind"),
        composition=STRICT,
        canned_responses=canned(*texts),
        **options,
    )


def said(emitted: list[Emission]) -> str:
    (message,) = entries(emitted, MessageEvent)
    text: str = message.text
    return text


def source(emitted: list[Emission]) -> ReplySource:
    (found,) = entries(emitted, ReplySource)
    assert isinstance(found, ReplySource)
    return found


def offered(model: ScriptedModel) -> tuple[str, ...]:
    question = model.requests[-1].question
    assert isinstance(question, ChooseResponse)
    return question.responses


class TestAStrictReply:
    async def test_it_is_the_chosen_response_word_for_word(self) -> None:
        model = ScriptedModel(responds("R2", "G1", because="They ask about opening hours."))
        spec = strict("We deliver on Fridays.", "We open at <nine> & close at five.")
        emitted = await play(turn_of(spec, "When do you open?"), scripted_kit(model))
        assert said(emitted) == "We open at <nine> & close at five."
        assert source(emitted) == ReplySource(
            composition=STRICT, responses=("r2",), because="They ask about opening hours."
        )
        assert [(a.guideline, a.follows, a.checked) for a in entries(emitted, Adherence)] == [
            ("kind", True, False)
        ]
        assert model.questions() == ["ChooseResponse"]

    async def test_nothing_of_it_is_streamed_and_the_choosing_model_is_named(self) -> None:
        emitted = await play(
            turn_of(strict("Yes."), "Well?"), scripted_kit(ScriptedModel(responds("R1")))
        )
        assert entries(emitted, MessagePartEvent) == []
        assert entries(emitted, MessageEvent)[0].model == "scripted"

    @pytest.mark.parametrize("named", ["", "R7", "R0", "the second", "R1, R2"])
    async def test_where_none_fits_the_agents_no_match_text_is_said(self, named: str) -> None:
        model = ScriptedModel(responds(named, because="None is about boats."))
        spec = strict("We open at nine.", "Bye.", no_match="Please call us on 555.")
        emitted = await play(turn_of(spec, "Do you sell boats?"), scripted_kit(model))
        assert said(emitted) == "Please call us on 555."
        assert source(emitted) == ReplySource(
            composition=STRICT, because="None is about boats.", fits=False
        )

    async def test_a_model_that_answers_with_the_very_words_has_chosen_them(self) -> None:
        model = ScriptedModel(responds("We open at nine."))
        emitted = await play(
            turn_of(strict("Bye.", "We open at nine."), "Open?"), scripted_kit(model)
        )
        assert source(emitted).responses == ("r2",)

    async def test_without_a_candidate_no_model_is_asked(self) -> None:
        model = ScriptedModel()
        emitted = await play(
            turn_of(strict("Your balance is {{ balance }}."), "Hm"), scripted_kit(model)
        )
        assert said(emitted) == NO_MATCH
        assert not source(emitted).fits
        assert entries(emitted, MessageEvent)[0].model == "scripted"  # and is no person's

    async def test_a_choice_that_fails_fails_the_turn_and_says_nothing(self) -> None:
        error = ModelError("gone", kind=ModelErrorKind.UNREACHABLE, retryable=True)
        model = ScriptedModel(Expected(question="ChooseResponse", answer=error))
        emitted, ended = await play_to_its_end(
            turn_of(strict("Yes."), "Well?"), scripted_kit(model)
        )
        assert ended is error
        assert entries(emitted, MessageEvent) == []

    async def test_after_a_crash_it_is_chosen_again_but_never_said_twice(self) -> None:
        briefing = BriefingEvent(guidelines=("kind",), content={"guidelines": "as before"})
        state = turn_of(strict("Yes."), "Well?", briefing)
        state.checkpoint = Checkpoint(step=Step.WRITING)
        emitted = await play(state, scripted_kit(ScriptedModel(responds("R1"))))
        assert said(emitted) == "Yes."
        over = turn_of(strict("Yes."), "Well?", briefing, said_by(Source.AGENT, "Yes."))
        over.checkpoint = Checkpoint(step=Step.WRITING)
        assert entries(await play(over, scripted_kit(ScriptedModel())), MessageEvent) == []

    @pytest.mark.parametrize(
        "text", [text for text in HOSTILE if text.strip() and len(text) < 9_000]
    )
    async def test_the_customers_words_stay_data_in_what_is_said(self, text: str) -> None:
        model = ScriptedModel(responds("R1"))
        state = turn_of(strict("Dear {{ customer.name }}."), "Hi", variables={"name": text})
        emitted = await play(state, scripted_kit(model))
        assert said(emitted) == f"Dear {text}."
        listed = model.requests[0].messages[1].content.split("The responses:\n")[1]
        assert len(listed.splitlines()) == 1


class TestCandidates:
    async def test_a_response_whose_fields_are_not_all_available_is_none(self) -> None:
        spec = strict(
            "Hello {{ customer.name }}.",
            "Hello {{ customer.title }} {{ customer.name }}.",
            "I am {{ agent.name }}.",
            "{{ missing|join }} please",
            "{{ nonsense",
        )
        model = ScriptedModel(responds("R1"))
        await play(turn_of(spec, "Hi", variables={"name": "Ann"}), scripted_kit(model))
        assert offered(model) == ("Hello Ann.", "I am Library.")

    async def test_those_of_a_guideline_count_only_while_it_is_in_force_and_come_first(
        self,
    ) -> None:
        spec = agent(
            guideline("a", "asks for advice", "give notice", canned_responses=("r2",)),
            guideline("b", "asks for a loan", "refuse", canned_responses=("r3",)),
            composition=STRICT,
            canned_responses=canned("At large.", "No legal advice.", "No loans."),
        )
        model = ScriptedModel(matches("G1"), responds("R1"))
        emitted = await play(turn_of(spec, "Advice?"), scripted_kit(model))
        assert offered(model) == ("No legal advice.", "At large.")
        assert source(emitted).responses == ("r2",)

    async def test_a_result_brings_templates_and_fields_for_the_reply_of_its_turn(self) -> None:
        spec = agent(
            guideline("a", "asks", "look", tools=("look",)),
            tools=[tool("look")],
            composition=STRICT,
            canned_responses=canned("You have {{ balance|number(2) }} {{ currency }}."),
        )

        def look(_arguments: JsonObject, _context: Any) -> ToolResult:
            return ToolResult(
                data=1204.5,
                canned_responses=("All is well.", "{{ broken", "Balance: {{ balance }}"),
                canned_response_fields={"balance": 1204.5, "currency": "€", "agent": "spoofed"},
            )

        model = ScriptedModel(matches("G1"), responds("R3"))
        kit = scripted_kit(model, ScriptedTools({"look": look}))
        emitted = await play(turn_of(spec, "How much?"), kit)
        assert offered(model) == ("All is well.", "Balance: 1204.5", "You have 1,204.50 €.")
        assert said(emitted) == "You have 1,204.50 €."

        again = ScriptedModel(matches("G1"), responds("R1"))
        kit = scripted_kit(again, ScriptedTools({"look": look}))
        emitted = await play(turn_of(spec, "How much?"), kit)
        (chosen,) = source(emitted).responses
        uid, number = chosen.split(":")
        assert number == "1"
        assert uid

    async def test_what_is_asked_for_fills_a_response(self) -> None:
        act = tool(
            "act",
            parameter("amount", "number", display_name="amount to send"),
            parameter("to", display_name="recipient"),
        )
        spec = agent(
            guideline("a", "sends", "send", tools=("act",)),
            tools=[act],
            composition=STRICT,
            canned_responses=canned("Please tell me the {{ missing|join(' and the ') }}."),
        )
        call = {"amount": None, "to": None}
        model = ScriptedModel(matches("G1"), infers("act", call), responds("R1"))
        emitted = await play(turn_of(spec, "Send money"), scripted_kit(model))
        assert said(emitted) == "Please tell me the amount to send and the recipient."

    async def test_what_awaits_the_customers_word_fills_a_response(self) -> None:
        asked = ConfirmationAskedEvent(
            call="c1", tool="send_money", arguments={"amount": 50, "to": "Ann"}, guidelines=("kind",),
            labels={"amount": "amount", "to": "recipient"}, asked_at=AT,
        )  # fmt: skip
        spec = strict("Shall I {{ confirmations|join(', and ') }}?")
        state = turn_of(spec, "Send 50 to Ann", asked)
        state.checkpoint = Checkpoint(step=Step.MATCHING)
        emitted = await play(state, scripted_kit(ScriptedModel(responds("R1"))))
        assert said(emitted) == "Shall I send money (amount: 50, recipient: Ann)?"

    async def test_two_that_read_alike_are_offered_once(self) -> None:
        model = ScriptedModel(responds("R1"))
        await play(
            turn_of(strict("Hello {{ agent.name }}", "Hello Library"), "Hi"), scripted_kit(model)
        )
        assert offered(model) == ("Hello Library",)

    async def test_of_very_many_those_closest_to_the_conversation_are_offered(self) -> None:
        texts = [f"Our branch number {n} has a counter." for n in range(300)]
        texts[250] = "Your parcel is delivered within three days."
        model = ScriptedModel(responds("R1"))
        await play(turn_of(strict(*texts), "Where is my parcel?"), scripted_kit(model))
        assert len(offered(model)) == 40
        assert texts[250] in offered(model)


@pytest.mark.parametrize(
    ("of_agent", "of_matched", "of_others", "wins"),
    [
        ("fluid", None, None, "fluid"),
        ("fluid", "strict", None, "strict"),
        ("fluid", None, "strict", "fluid"),
        ("fluid", "composited", None, "composited"),
        ("strict", "fluid", None, "strict"),
        ("composited", "strict", None, "strict"),
        ("composited", "fluid", "strict", "composited"),
    ],
)
async def test_the_most_restrictive_mode_among_agent_and_matched_guidelines_wins(
    of_agent: str, of_matched: str | None, of_others: str | None, wins: str
) -> None:
    spec = agent(
        guideline("a", "asks", "do", composition=of_matched and Composition(of_matched)),
        guideline("b", "leaves", "wave", composition=of_others and Composition(of_others)),
        composition=Composition(of_agent),
        canned_responses=canned("Canned."),
    )
    answer = responds("R1") if wins == "strict" else replies("Written.")
    model = ScriptedModel(matches("G1"), answer)
    emitted = await play(turn_of(spec, "Do it"), scripted_kit(model))
    assert source(emitted).composition == wins
    assert said(emitted) == ("Canned." if wins == "strict" else "Written.")


class TestAReplyInTheMannerOfCannedResponses:
    async def test_the_writer_sees_them_after_the_briefing_and_the_reply_is_streamed(self) -> None:
        spec = agent(
            guideline("kind", action="be kind"),
            composition=Composition.COMPOSITED,
            canned_responses=canned("Hello there, {{ customer.name }}!", "No {{ field }}."),
        )
        model = ScriptedModel(replies("Hello there, Ann! How are you?" + " Fine?" * 10))
        state = turn_of(spec, "Hi", variables={"name": "Ann"})
        emitted = await play(state, scripted_kit(model))
        question = model.requests[0].question
        assert isinstance(question, ComposeReply)
        assert question.style == ("Hello there, Ann!",)
        briefing, manner = model.requests[0].messages[1].content.splitlines()[-2:]
        assert briefing.startswith('{"briefing"')
        assert manner == '{"write like these": ["Hello there, Ann!"]}'
        assert entries(emitted, MessagePartEvent)
        assert source(emitted) == ReplySource(composition=Composition.COMPOSITED, responses=("r1",))

    async def test_without_a_fitting_one_it_is_written_freely(self) -> None:
        spec = agent(guideline("kind", action="be kind"), composition=Composition.COMPOSITED)
        model = ScriptedModel(replies("Hi."))
        emitted = await play(turn_of(spec, "Hi"), scripted_kit(model))
        assert said(emitted) == "Hi."
        assert source(emitted).responses == ()


async def test_every_reply_says_where_it_comes_from() -> None:
    spec = agent(guideline("kind", action="be kind"))
    emitted = await play(turn_of(spec, "Hi"), scripted_kit(ScriptedModel(replies("Hi."))))
    assert source(emitted) == ReplySource(composition=Composition.FLUID)
    assert [call.question for call in entries(emitted, ModelCall)] == ["ComposeReply"]


RESPONSES = ("We open at nine.", "Hello {{ customer.name }}.", "{{ nothing }}", "{% for x in y %}")


def _answers(seed: int) -> Any:
    """Anything of the right schema, spoilt ones too; judgements of replies about any guideline."""
    generated = Generated(seed, words=["R1", "R2", "R9", RESPONSES[0], "{{ x }}"])

    def answer(request: Any) -> Any:
        if request.question.name == "JudgeReply":
            return generated.fitting(request.schema)
        return generated.anything(request)

    return answer


@pytest.mark.parametrize("mode", list(Composition))
@pytest.mark.parametrize("verified", [False, True])
async def test_whatever_models_answer_there_is_one_whole_reply_of_the_mode_or_an_error(
    mode: Composition, verified: bool
) -> None:
    spec = agent(
        guideline("law", action="say it", criticality=Criticality.HIGH),
        guideline("kind", action="be kind", canned_responses=("r1",)),
        composition=mode,
        canned_responses=canned(*RESPONSES),
        verified_replies=verified,
    )
    for seed in range(60):
        model = checked(AnsweringModel(_answers(seed)))
        state = turn_of(spec, "Hi", variables={"name": "{{ 7 * 7 }}"})
        emitted, error = await play_to_its_end(state, scripted_kit(model))
        messages = entries(emitted, MessageEvent)
        assert len(messages) == (0 if error else 1)
        assert all(entry.attempt <= 3 for entry in entries(emitted, Adherence))
        if verified or mode is STRICT:
            assert entries(emitted, MessagePartEvent) == []
        if messages and mode is STRICT:
            assert messages[0].text in {RESPONSES[0], "Hello {{ 7 * 7 }}.", NO_MATCH}
        if messages and verified and mode is not STRICT:
            judged = [a for a in entries(emitted, Adherence) if a.checked or a.note]
            assert {a.guideline for a in judged} == {"law"}
