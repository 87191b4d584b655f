"""A depot's agent with recorded sessions to replay: what was asked and answered in them is known."""

from typing import Any

import pytest

from engine.events import Answer
from engine.kit import Models
from engine.testing import (
    Expected,
    ScriptedModel,
    ScriptedTools,
    infers,
    matches,
    replies,
    said,
)
from studio.models import Agent, Guideline, Replay, ReplayedTurn, Session, Turn
from studio.operations import lanes, replay_player, replays, running, turns
from studio.operations.agents import publish, save_guideline
from studio.operations.confirmations import answer_confirmation
from studio.operations.replays import CREW, start_replay
from studio.operations.turns import send_message
from tests.studio.factories import (
    make_agent,
    make_customer,
    make_guideline,
    make_session,
    make_tool,
)

HELLO = (matches(), replies("Hello, Ada."))


class Depot:
    """G1 finds parcels, G2 sends them back once the customer confirms it; published as version 1."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self._monkeypatch = monkeypatch
        self.agent: Agent = make_agent(slug="depot", name="Depot")
        number = [{"name": "number", "schema": {"type": "string"}}]
        self.find = make_tool(
            self.agent, name="find_parcel", description="Where it is.", parameters=number
        )
        self.send = make_tool(
            self.agent,
            name="send_back",
            description="Sends it back.",
            parameters=number,
            consequential=True,
        )
        self.where = make_guideline(
            self.agent,
            uid="where",
            condition="the customer asks where a parcel is",
            action="tell the place",
            tools=[self.find],
        )
        self.back = make_guideline(
            self.agent,
            uid="back",
            condition="the customer wants a parcel sent back",
            action="send it back",
            tools=[self.send],
        )
        publish(self.agent, note="First.", by=None)
        self.customer = make_customer(name="Ada", variables={"plan": "gold"})
        self.tools = ScriptedTools()
        # Lanes begin anywhere, so as not to meet; a script is played in order.
        monkeypatch.setattr(replays.random, "randint", lambda least, _most: least)
        self.nobody_is_asked()

    # --- recording

    def session(self, **more: Any) -> Session:
        return make_session(self.agent, version="published", customer=self.customer, **more)

    def say(self, session: Session, text: str, *expected: Expected, **tools: Any) -> Turn:
        """A recorded turn, to its end."""
        self._record(expected, tools)
        turn = send_message(session, text=text)
        assert turn is not None
        return self._ended(turn)

    def press(self, session: Session, answer: str, *expected: Expected, **tools: Any) -> Turn:
        """A turn that begins with a button."""
        self._record(expected, tools)
        asked = session.events.filter(kind="confirmation.asked").order_by("offset").last()
        assert asked is not None
        turn = answer_confirmation(session, asked.data["call"], Answer(answer))
        assert turn is not None
        return self._ended(turn)

    def _record(self, expected: tuple[Expected, ...], tools: dict[str, Any]) -> None:
        model, functions = ScriptedModel(*expected), ScriptedTools(tools)
        self._monkeypatch.setattr(running, "models_for", lambda _s: Models.same(model))
        self._monkeypatch.setattr(running, "tools_for", lambda _tools: functions)

    @staticmethod
    def _ended(turn: Turn) -> Turn:
        turns.run_turn(turn.pk)
        turn.refresh_from_db()
        assert turn.state == Turn.State.FINISHED, turn.error
        return turn

    def parcels(self, session: Session | None = None) -> Session:
        """Two turns: a greeting, and a question that a tool answers."""
        session = session or self.session()
        self.say(session, "Hello", *HELLO)
        self.say(
            session,
            "Where is P-7?",
            *asks_where("P-7"),
            find_parcel=lambda _a, _c: {"place": "Lyon"},
        )
        return session

    def sent_back(self) -> Session:
        """A question that waits for the customer's word, and the button that gives it."""
        session = self.session()
        self.say(session, "Send P-7 back!", *wants_back("P-7"))
        self.press(
            session,
            "confirmed",
            matches(),
            replies("It is on its way."),
            send_back=lambda _a, _c: {"sent": True},
        )
        return session

    # --- replaying

    def script(self, *expected: Expected, **tools: Any) -> ScriptedModel:
        """What the live model and live tools answer in replays."""
        model = ScriptedModel(*expected)
        self.tools.functions = tools
        self._monkeypatch.setattr(replay_player, "models_of", lambda _c: Models.same(model))
        self._monkeypatch.setattr(replay_player, "tools_for", lambda _tools: self.tools)
        return model

    def nobody_is_asked(self) -> None:
        self.script()

    def change(self, guideline: Guideline, **fields: Any) -> None:
        for name, value in fields.items():
            setattr(guideline, name, value)
        save_guideline(guideline)


def asks_where(number: str, place: str = "Lyon") -> tuple[Expected, ...]:
    return (
        matches("G1", because="They ask where it is."),
        infers("find_parcel", {"number": said(number)}),
        replies(f"It is in {place}.", "G1"),
    )


def wants_back(number: str) -> tuple[Expected, ...]:
    return (
        matches("G2", because="They want it sent back."),
        infers("send_back", {"number": said(number)}),
        replies("Shall I send it back?"),
    )


def play(replay: Replay) -> Replay:
    """Work it through in this thread, as one worker's lane would."""
    while Replay.objects.unfinished().filter(pk=replay.pk, paused=False).exists():
        lanes._work_for_a_moment(CREW, replay.pk)
    replay.refresh_from_db()
    return replay


def replayed(*sessions: Session, **chosen: Any) -> Replay:
    chosen.setdefault("against", "published")
    return play(start_replay(list(sessions), enqueue=False, **chosen))


def turns_of(replay: Replay) -> list[ReplayedTurn]:
    return list(replay.turns.order_by("session_id", "number"))


def verdicts(replay: Replay) -> list[str]:
    return [cell.verdict for cell in turns_of(replay)]
