"""Verified replies (ENGINE.md §1 step 8): what must hold is checked by a question of its own, and put right."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest

from engine.errors import ModelError, ModelErrorKind
from engine.events import BriefingEvent, MessageEvent, MessagePartEvent, Source
from engine.kit import Kit, Models
from engine.model.base import ComposeReply, JudgeReply, ModelRequest
from engine.outbox import Emission
from engine.spec import Agent, CannedResponse, Composition, Criticality
from engine.state import Checkpoint, Step
from engine.testing import (
    Expected,
    ScriptedModel,
    entries,
    judges,
    play,
    replies,
    responds,
    scripted_kit,
)
from engine.trail import Adherence, ModelCall
from engine.verifying import UNCHECKED
from tests.engine.agents import agent, guideline, said_by, turn_of
from tests.engine.sessions import HOSTILE

HIGH = Criticality.HIGH
GONE = ModelError("gone", kind=ModelErrorKind.UNREACHABLE, retryable=True)


def careful(**options: Any) -> Agent:
    """G1 must hold, G2 is advice; replies are verified."""
    return agent(
        guideline("law", action="say that calls are recorded", criticality=HIGH),
        guideline("nice", action="be brief", criticality=Criticality.LOW),
        verified_replies=True,
        **options,
    )


def said(emitted: list[Emission]) -> list[str]:
    return [message.text for message in entries(emitted, MessageEvent)]


def checks(emitted: list[Emission]) -> list[tuple[str, int, bool, str]]:
    """(guideline, attempt, follows, note) of what was checked."""
    return [
        (a.guideline, a.attempt, a.follows, a.note)
        for a in entries(emitted, Adherence)
        if a.checked
    ]


async def test_a_reply_that_follows_is_said_after_one_check() -> None:
    model = ScriptedModel(replies("Hello. Calls are recorded.", "G1", "G2"), judges(G1=True))
    emitted = await play(turn_of(careful(), "Hi"), scripted_kit(model))
    assert model.questions() == ["ComposeReply", "JudgeReply G1"]
    assert said(emitted) == ["Hello. Calls are recorded."]
    assert checks(emitted) == [("law", 1, True, "It does.")]
    own = [(a.guideline, a.follows) for a in entries(emitted, Adherence) if not a.checked]
    assert own == [("law", True), ("nice", True)]


async def test_only_what_must_hold_and_says_what_to_do_is_checked() -> None:
    spec = agent(
        guideline("law", action="say that calls are recorded", criticality=HIGH),
        guideline("seen", criticality=HIGH),
        guideline("usual", action="be kind"),
        verified_replies=True,
    )
    model = ScriptedModel(replies("Recorded."), judges(G1=True))
    await play(turn_of(spec, "Hi"), scripted_kit(model))
    question = model.requests[1].question
    assert isinstance(question, JudgeReply)
    assert [g.uid for g in question.guidelines] == ["law"]
    assert question.reply == "Recorded."


@pytest.mark.parametrize(
    "spec",
    [
        agent(guideline("law", action="say it", criticality=HIGH)),
        agent(guideline("usual", action="say it"), verified_replies=True),
    ],
    ids=["the agent does not ask for it", "nothing of it must hold"],
)
async def test_nothing_is_checked_where(spec: Agent) -> None:
    model = ScriptedModel(replies("Hi."))
    await play(turn_of(spec, "Hi"), scripted_kit(model))
    assert model.questions() == ["ComposeReply"]


async def test_a_chosen_canned_response_is_not_rewritten_and_so_not_checked() -> None:
    spec = careful(
        composition=Composition.STRICT, canned_responses=(CannedResponse(uid="r", text="Hi."),)
    )
    model = ScriptedModel(responds("R1"))
    emitted = await play(turn_of(spec, "Hi"), scripted_kit(model))
    assert said(emitted) == ["Hi."]
    assert checks(emitted) == []


async def test_a_reply_that_does_not_follow_is_revised_and_checked_again() -> None:
    model = ScriptedModel(
        replies("Hello.", "G1"),
        judges(G1="It does not say that calls are recorded."),
        replies("Hello. Calls are recorded.", "G1"),
        judges(G1=True),
    )
    emitted = await play(turn_of(careful(), "Hi"), scripted_kit(model))
    assert said(emitted) == ["Hello. Calls are recorded."]
    assert checks(emitted) == [
        ("law", 1, False, "It does not say that calls are recorded."),
        ("law", 2, True, "It does."),
    ]
    question = model.requests[2].question
    assert isinstance(question, ComposeReply)
    assert question.revision is not None
    assert question.revision.reply == "Hello."
    assert question.revision.problems == (("G1", "It does not say that calls are recorded."),)


async def test_what_is_to_be_put_right_stands_after_the_briefing_so_that_the_prompt_is_reused() -> (
    None
):
    model = ScriptedModel(replies("No."), judges(G1="Not said."), replies("Yes."), judges(G1=True))
    await play(turn_of(careful(), "Hi"), scripted_kit(model))
    first, revision = (model.requests[n].messages for n in (0, 2))
    assert revision[0].content == first[0].content
    assert revision[1].content.startswith(first[1].content)
    assert revision[1].content[len(first[1].content) :] == (
        '{"your earlier try": "No.", "wrong with it": [{"guideline": "G1", "problem": "Not said."}]}\n'
    )


async def test_it_is_revised_at_most_twice_and_the_last_version_is_checked_too() -> None:
    model = ScriptedModel(
        replies("One."), judges(G1="No."), replies("Two."), judges(G1="Nor that."),
        replies("Three."), judges(G1="Still not."),
    )  # fmt: skip
    emitted = await play(turn_of(careful(), "Hi"), scripted_kit(model))
    model.assert_used_up()
    assert said(emitted) == ["Three."]
    assert checks(emitted) == [
        ("law", 1, False, "No."),
        ("law", 2, False, "Nor that."),
        ("law", 3, False, "Still not."),
    ]


async def test_nothing_reaches_the_customer_before_a_version_stands() -> None:
    long = "Hello, dear customer. " * 20
    model = ScriptedModel(
        replies(long), judges(G1="No."), replies(long + "Recorded."), judges(G1=True)
    )
    emitted = await play(turn_of(careful(), "Hi"), scripted_kit(model))
    assert entries(emitted, MessagePartEvent) == []
    last_check = max(
        n for n, item in enumerate(emitted)
        if isinstance(item, ModelCall) and item.question == "JudgeReply"
    )  # fmt: skip
    assert emitted.index(entries(emitted, MessageEvent)[0]) > last_check


class TestWhenAModelFails:
    async def test_a_reply_that_could_not_be_checked_is_kept_and_the_record_says_so(self) -> None:
        model = ScriptedModel(replies("Hello.", "G1"), Expected(question="JudgeReply", answer=GONE))
        emitted = await play(turn_of(careful(), "Hi"), scripted_kit(model))
        assert said(emitted) == ["Hello."]
        assert checks(emitted) == []
        assert Adherence(guideline="law", follows=True, note=UNCHECKED) in emitted
        assert [c.error for c in entries(emitted, ModelCall)] == ["", "unreachable: gone"]

    async def test_a_judgement_that_leaves_a_guideline_out_or_invents_one_checks_only_the_rest(
        self,
    ) -> None:
        spec = agent(
            guideline("law", action="say a", criticality=HIGH),
            guideline("rule", action="say b", criticality=HIGH),
            verified_replies=True,
        )
        model = ScriptedModel(replies("A.", "G2"), judges(G1=True, G9="What?"))
        emitted = await play(turn_of(spec, "Hi"), scripted_kit(model))
        assert checks(emitted) == [("law", 1, True, "It does.")]
        assert Adherence(guideline="rule", follows=True, note=UNCHECKED) in emitted

    @pytest.mark.parametrize("answer", [GONE, {"reply": "  ", "follows": []}])
    async def test_where_no_revision_can_be_written_the_version_before_stands(
        self, answer: Any
    ) -> None:
        model = ScriptedModel(
            replies("Hello."), judges(G1="No."), Expected(question="ComposeReply", answer=answer)
        )
        emitted = await play(turn_of(careful(), "Hi"), scripted_kit(model))
        assert said(emitted) == ["Hello."]
        assert checks(emitted) == [("law", 1, False, "No.")]


async def test_a_turn_that_is_stopped_during_the_check_has_said_nothing() -> None:
    kit: Kit

    class Stopping(ScriptedModel):
        async def stream(self, request: ModelRequest) -> AsyncIterator[Any]:
            if request.question.name == "JudgeReply":
                kit.stop.set()
                await asyncio.sleep(60)
            async for item in super().stream(request):
                yield item

    model = Stopping(replies("A long reply. " * 20))
    kit = scripted_kit(model)
    emitted = await play(turn_of(careful(), "Hi"), kit)
    assert said(emitted) == []
    assert entries(emitted, Checkpoint)[-1].step is Step.STOPPED


async def test_after_a_crash_during_the_check_it_is_written_again_and_said_once() -> None:
    briefing = BriefingEvent(guidelines=("law", "nice"), content={"guidelines": "as before"})
    state = turn_of(careful(), "Hi", briefing)
    state.checkpoint = Checkpoint(step=Step.WRITING)
    emitted = await play(state, scripted_kit(ScriptedModel(replies("Hi."), judges(G1=True))))
    assert said(emitted) == ["Hi."]
    assert entries(emitted, BriefingEvent) == []

    over = turn_of(careful(), "Hi", briefing, said_by(Source.AGENT, "Hi."))
    over.checkpoint = Checkpoint(step=Step.WRITING)
    assert await play(over, scripted_kit(ScriptedModel())) == [Checkpoint(step=Step.FINISHED)]


async def test_the_judging_model_checks_what_the_writing_model_wrote() -> None:
    writing = ScriptedModel(replies("Hello."))
    judging = ScriptedModel(judges(G1=True))
    kit = scripted_kit(writing)
    kit = Kit(models=Models(judging=judging, writing=writing), tools=kit.tools, context=kit.context)
    emitted = await play(turn_of(careful(), "Hi"), kit)
    assert judging.questions() == ["JudgeReply G1"]
    assert said(emitted) == ["Hello."]


@pytest.mark.parametrize("text", HOSTILE)
async def test_no_reply_and_no_guideline_can_forge_a_line_of_the_check(text: str) -> None:
    spec = agent(guideline("law", action=text or "x", criticality=HIGH), verified_replies=True)
    reply = text.strip().replace("\x00", "") or "Hi."
    model = ScriptedModel(replies(reply), *([judges(G1=True)] if text.strip() else []))
    emitted = await play(turn_of(spec, "Hi"), scripted_kit(model))
    assert said(emitted) == [reply]
    if text.strip():
        told = model.requests[1].messages[1].content.split("The guidelines:\n")[1]
        assert len(told.splitlines()) == 3


async def test_the_check_is_asked_with_the_conversation_first_and_the_reply_last() -> None:
    model = ScriptedModel(replies("Hello."), judges(G1=True))
    await play(turn_of(careful(), "Hi"), scripted_kit(model))
    lines = model.requests[1].messages[1].content.splitlines()
    assert lines[1:] == [
        '{"customer": "Hi"}',
        "The guidelines:",
        '{"id": "G1", "then": "say that calls are recorded"}',
        "The reply to check:",
        '{"reply": "Hello."}',
    ]
