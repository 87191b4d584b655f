"""Writing the reply (ENGINE.md §1 step 8, §3 insights): what the writer is told, and what reaches the customer."""

from typing import Any

import pytest

from engine.drafting import reply_so_far
from engine.errors import ModelError, ModelErrorKind
from engine.events import (
    BriefingEvent,
    MessageEvent,
    MessagePartEvent,
    Source,
)
from engine.model.base import AttemptFailed, JudgingStyle, ModelReply, ModelRequest, TextDelta
from engine.outbox import Emission
from engine.state import Checkpoint, Step
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
from engine.trail import Adherence, ModelCall
from tests.engine.agents import agent, guideline, said_by, tool, turn_of
from tests.engine.sessions import play_to_its_end

KIND = agent(guideline("kind", action="be kind"))


def the_reply(emitted: list[Emission]) -> MessageEvent:
    message: MessageEvent = entries(emitted, MessageEvent)[-1]
    return message


class TestTheReply:
    async def test_a_reply_names_the_model_that_wrote_it(self) -> None:
        emitted = await play(turn_of(KIND, "Hello"), scripted_kit(ScriptedModel(replies(" Hi! "))))
        assert (the_reply(emitted).text, the_reply(emitted).model) == ("Hi!", "scripted")

    async def test_nul_characters_of_a_model_reach_nobody(self) -> None:
        model = ScriptedModel(replies("a\x00b \\u0000"))
        emitted = await play(turn_of(KIND, "Hello"), scripted_kit(model))
        assert the_reply(emitted).text == "ab \\u0000"
        assert not any("\x00" in part.text for part in entries(emitted, MessagePartEvent))

    async def test_pieces_of_a_failed_attempt_are_void(self) -> None:
        class Stumbling:
            name, batch_size, judging_style = "stumbling", 12, JudgingStyle.REASONED

            async def stream(self, _request: ModelRequest) -> Any:
                from datetime import UTC, datetime

                now = datetime.now(UTC)
                error = ModelError("broke off", kind=ModelErrorKind.TRUNCATED, retryable=True)
                yield TextDelta(text='{"reply": "I thi')
                yield AttemptFailed(error=error, started_at=now, ended_at=now)
                yield TextDelta(text='{"reply": "Good morn')
                answer = {"reply": "Good morning", "follows": []}
                yield ModelReply(answer=answer, text="…", model="stumbling")

        emitted = await play(turn_of(KIND, "Hello"), scripted_kit(Stumbling()))
        parts = [(p.text, p.restart) for p in entries(emitted, MessagePartEvent)]
        assert parts[0] == ("I thi", False)
        assert all(restart for _text, restart in parts[1:2])
        assert the_reply(emitted).text == "Good morning"
        first, second = entries(emitted, ModelCall)
        assert (first.attempt, first.used, second.attempt, second.used) == (1, False, 2, True)
        assert first.error == "truncated: broke off"

    async def test_a_model_that_gives_up_leaves_no_message(self) -> None:
        error = ModelError("down", kind=ModelErrorKind.SERVER, retryable=True, answer_text="half")
        model = ScriptedModel(Expected(question="ComposeReply", answer=error))
        emitted, ended = await play_to_its_end(turn_of(KIND, "Hello"), scripted_kit(model))
        assert ended is error
        assert entries(emitted, MessageEvent) == []
        assert entries(emitted, ModelCall)[-1].answer_text == "half"
        assert emitted[-1] != Checkpoint(step=Step.FINISHED)

    async def test_a_resumed_turn_is_briefed_as_before_and_voids_the_pieces_shown(self) -> None:
        briefing = BriefingEvent(guidelines=("kind",), content={"guidelines": "as before"})
        model = ScriptedModel(replies("Hi!"))
        state = turn_of(KIND, "Hello", briefing)
        state.checkpoint = Checkpoint(step=Step.WRITING)
        emitted = await play(state, scripted_kit(model))
        assert entries(emitted, BriefingEvent) == []
        assert '"as before"' in model.requests[0].messages[1].content
        assert entries(emitted, MessagePartEvent)[0].restart

    async def test_a_reply_that_was_out_before_a_crash_is_not_written_twice(self) -> None:
        briefing = BriefingEvent(guidelines=("kind",), content={})
        state = turn_of(KIND, "Hello", briefing, said_by(Source.AGENT, "Hi!"))
        state.checkpoint = Checkpoint(step=Step.WRITING)
        emitted = await play(state, scripted_kit(ScriptedModel()))
        assert emitted == [Checkpoint(step=Step.FINISHED)]

    async def test_a_reply_that_was_cut_off_is_written_anew(self) -> None:
        cut = MessageEvent(source=Source.AGENT, text="H", partial=True)
        state = turn_of(KIND, "Hello", BriefingEvent(guidelines=("kind",), content={}), cut)
        state.checkpoint = Checkpoint(step=Step.WRITING)
        emitted = await play(state, scripted_kit(ScriptedModel(replies("Hi!"))))
        assert the_reply(emitted).text == "Hi!"

    async def test_what_a_tool_said_before_is_no_reply(self) -> None:
        spec = agent(guideline("a", "asks", "look", tools=("look",)), tools=[tool("look")])

        async def speak(_arguments: Any, context: Any) -> int:
            await context.emit_message("One moment")
            return 1

        model = ScriptedModel(matches("G1"), replies("Done."))
        kit = scripted_kit(model, ScriptedTools({"look": speak}))
        emitted = await play(turn_of(spec, "Look"), kit)
        assert the_reply(emitted).text == "Done."

    async def test_the_report_covers_what_was_in_force_and_nothing_else(self) -> None:
        spec = agent(guideline("a", action="x"), guideline("b", action="y"), guideline("c", "z"))
        follows = [
            {"guideline": "G1 ", "follows": False},
            {"guideline": "G2", "follows": True},
            {"guideline": "G2", "follows": False},
            {"guideline": "G3", "follows": True},
            {"guideline": "G77", "follows": True},
        ]
        answer = {"reply": "Hi!", "follows": follows}
        model = ScriptedModel(matches(), Expected(question="ComposeReply", answer=answer))
        emitted = await play(turn_of(spec, "Hello"), scripted_kit(model))
        found = [(a.guideline, a.follows) for a in entries(emitted, Adherence)]
        assert found == [("a", False), ("b", False)]


@pytest.mark.parametrize(
    ("raw", "reply"),
    [
        ("", ""),
        ("{", ""),
        ('{"reply', ""),
        ('{"reply": "', ""),
        ('{"reply": "Hi', "Hi"),
        ('{"reply": "Hi \\', "Hi "),
        ('{"reply": "Hi \\u00e', "Hi "),
        ('{"reply": "Hi \\u00e9', "Hi é"),
        ('{"reply": "a \\"quote\\"', 'a "quote"'),
        ('{"reply": "Hi", "follows": [{"gui', "Hi"),
        ('{"follows": [], "reply": "late', "late"),
        ('{"reply": 5', ""),
        ('{"reply": null, ', ""),
        ("Sure! Here is", ""),
        ("[1, 2", ""),
        ('{"reply": "nul \\u0000 in', "nul  in"),
    ],
)
def test_the_reply_is_read_out_of_unfinished_json(raw: str, reply: str) -> None:
    assert reply_so_far(raw) == reply


def test_no_piece_of_a_reply_is_ever_taken_back() -> None:
    import json

    text = 'Zoë said: "50 € — \\ 👩‍👩‍👧"\n\tand left \x07 \u2028 {"reply": "no"}'
    for ascii_only in (True, False):
        raw = json.dumps({"reply": text, "follows": []}, ensure_ascii=ascii_only)
        seen = ""
        for end in range(len(raw) + 1):
            now = reply_so_far(raw[:end])
            if now:
                assert now.startswith(seen)
                seen = now
        assert seen == text
