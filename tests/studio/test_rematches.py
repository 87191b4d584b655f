"""One guideline judged again on a turn, under another wording: in the situation of that turn, and leaving no trace."""

import asyncio
import threading
from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest

from engine.errors import ModelError, ModelErrorKind
from engine.kit import Models
from engine.model.base import JudgingStyle, MatchGuidelines, ModelReply, ModelRequest, TextDelta
from engine.testing import (
    Expected,
    ScriptedModel,
    ScriptedTools,
    explains,
    infers,
    matches,
    replies,
    said,
    scores,
)
from engine.tools.base import ToolResult
from studio.audit import audit
from studio.models import Customer, Event, Guideline, Rematch, Session, Tool, Turn
from studio.operations import rematches, running, turns
from studio.operations.agents import save_guideline
from studio.operations.branches import branch_from
from studio.operations.rematches import (
    KEPT,
    GuidelineUnknownError,
    RematchRefusedError,
    rematch,
    start_rematch,
)
from studio.operations.situations import last_judgement, situation_at
from studio.operations.turns import send_message
from tests.studio.factories import make_agent, make_customer, make_guideline, make_session

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rematches, "NOTED_EVERY", 0.03)


class Stage:
    """What the next turns and rematches are answered with."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self._monkeypatch = monkeypatch
        self.model: Any = ScriptedModel()
        self.tools = ScriptedTools()

    def play(self, session: Session, text: str, *expected: Expected, **tools: Any) -> Turn:
        """A turn, to its end."""
        self.use(ScriptedModel(*expected), **tools)
        turn = send_message(session, text=text)
        assert turn is not None
        turns.run_turn(turn.pk)
        turn.refresh_from_db()
        assert turn.state == Turn.State.FINISHED, turn.error
        self.model.assert_used_up()
        return turn

    def use(self, model: Any, **tools: Any) -> None:
        self.model, self.tools = model, ScriptedTools(tools)
        for module in (running, rematches):
            self._monkeypatch.setattr(module, "models_for", lambda _s: Models.same(self.model))
            self._monkeypatch.setattr(module, "tools_for", lambda _tools: self.tools)

    def judge(self, turn: Turn, uid: str, condition: str | None, *expected: Expected) -> Rematch:
        """A rematch, to its end."""
        self.use(ScriptedModel(*expected))
        row = start_rematch(turn, uid, condition, by="ada")
        rematch(row.pk)
        row.refresh_from_db()
        self.model.assert_used_up()
        assert self.tools.called == []
        return row


@pytest.fixture
def stage(monkeypatch: pytest.MonkeyPatch) -> Iterator[Stage]:
    return Stage(monkeypatch)


@pytest.fixture
def session() -> Session:
    """Three guidelines: one owns a tool, one is about its result, one is about something else."""
    agent = make_agent(name="Depot")
    tool = Tool.objects.create(
        name="find_parcel",
        description="Where a parcel is.",
        parameters=[{"name": "number", "schema": {"type": "string"}}],
    )
    agent.tools.add(tool)
    make_guideline(
        agent, uid="where", condition="the customer asks where a parcel is", tools=[tool]
    )
    make_guideline(agent, uid="late", condition="the parcel is late", reevaluate_after=[tool])
    make_guideline(
        agent, uid="refund", condition="the customer asks for a refund", matching=["Money back"]
    )
    customer = make_customer(name="Ada", variables={"plan": "gold"})
    return make_session(agent, customer=customer)


def parcel(stage: Stage, session: Session) -> Turn:
    """The second turn of the session, in which the tool ran."""
    stage.play(session, "Hello", matches(), replies("Hello, Ada."))
    return stage.play(
        session,
        "Where is P-7? I paid for it!",
        matches("G1", because="They ask where it is."),
        infers("find_parcel", {"number": said("P-7")}),
        matches("G2", because="It is two days late."),
        replies("It is in Lyon. Sorry!", "G1", "G2"),
        find_parcel=lambda a, _c: {"place": "Lyon", "days late": 2},
    )


def trace(turn: Turn) -> tuple[Any, ...]:
    """Everything that a turn has left."""
    turn = Turn.objects.select_related("session", "version").get(pk=turn.pk)
    events = list(Event.objects.filter(session=turn.session).values())
    return audit(turn, prompts=True), events, Session.objects.filter(pk=turn.session_id).values()[0]


def user_message(request: ModelRequest) -> str:
    return request.messages[-1].content


# --- works


def test_only_that_guideline_is_asked_about_in_the_whole_conversation_of_the_turn(
    session: Session, stage: Stage
) -> None:
    turn = parcel(stage, session)
    first = stage.model.requests[0]
    before = trace(turn)
    row = stage.judge(
        turn, "refund", "the customer speaks of money", matches("G3", because="They paid.")
    )
    (request,) = stage.model.requests
    assert isinstance(request.question, MatchGuidelines)
    assert [g.uid for g in request.question.guidelines] == ["refund"]
    system = request.messages[0].content
    assert "the customer speaks of money" in system
    assert "Money back" in system
    told = system.partition("The guidelines:")[2]  # before it are rules with examples
    assert "asks for a refund" not in told
    assert "asks where a parcel is" not in system
    # Word for word what the judgement of the turn was asked with: no result yet, and not the reply.
    assert user_message(request) == user_message(first)
    assert '"plan": "gold"' in user_message(request)
    assert "Hello, Ada." in user_message(request)
    assert "Lyon" not in user_message(request)
    assert row.state == "finished"
    assert row.started_by == "ada"
    assert row.result is not None
    assert (row.result["state"], row.result["because"]) == ("matched", "They paid.")
    assert (row.result["model"], row.result["score"]) == ("scripted", None)
    assert row.result["duration_ms"] >= 0
    assert trace(turn) == before


def test_what_rested_on_a_result_is_judged_with_that_result_and_without_the_reply(
    session: Session, stage: Stage
) -> None:
    turn = parcel(stage, session)
    second = [r for r in stage.model.requests if r.question.name == "MatchGuidelines"][1]
    row = stage.judge(turn, "late", "it comes more than a week late", matches())
    (request,) = stage.model.requests
    assert user_message(request) == user_message(second)
    assert "Lyon" in user_message(request)
    assert "Sorry" not in user_message(request)
    assert row.result is not None
    assert row.result["state"] == "not_matched"


def test_the_recorded_wording_asks_the_very_same_question_again(
    session: Session, stage: Stage
) -> None:
    turn = parcel(stage, session)
    again = [r for r in stage.model.requests if r.question.name == "MatchGuidelines"][1]
    row = stage.judge(turn, "late", None, matches("G2"))
    assert row.condition == "the parcel is late"
    assert stage.model.requests[0].request_key == again.request_key


def test_a_result_that_was_for_its_own_turn_alone_is_seen_again(
    session: Session, stage: Stage
) -> None:
    secret = ToolResult(data={"place": "Lyon"}, control={"lifespan": "response"})
    turn = stage.play(
        session,
        "Where is P-7?",
        matches("G1"),
        infers("find_parcel", {"number": said("P-7")}),
        matches("G2"),
        replies("Lyon."),
        find_parcel=lambda _a, _c: secret,
    )
    stage.play(session, "Thanks", matches(), replies("Gladly."))
    stage.judge(turn, "late", "it is in Lyon", matches("G2"))
    text = user_message(stage.model.requests[0])
    assert "Lyon" in text
    assert "Thanks" not in text


def test_a_guideline_that_a_result_brought_can_be_tried(session: Session, stage: Stage) -> None:
    brought = [{"condition": "it is fragile", "action": "warn", "criticality": "high"}]
    turn = stage.play(
        session,
        "Where is P-7?",
        matches("G1"),
        infers("find_parcel", {"number": said("P-7")}),
        matches(),
        replies("Lyon."),
        find_parcel=lambda _a, _c: ToolResult(data="glass", guidelines=brought),
    )
    uid = turn.matches.last().guideline
    assert uid not in {"where", "late", "refund"}
    stage.judge(turn, uid, "it is made of glass", matches("G4"))
    assert "it is made of glass" in stage.model.requests[0].messages[0].content


def test_scored_judging_gives_the_score_and_the_reason_afterwards(
    session: Session, stage: Stage
) -> None:
    turn = parcel(stage, session)
    model = ScriptedModel(
        scores("G3", 0.11), explains("G3", "Nobody wants it."), judging_style=JudgingStyle.SCORED
    )
    stage.use(model)
    row = start_rematch(turn, "refund", "the customer is cross", by="ada")
    rematch(row.pk)
    row.refresh_from_db()
    assert row.result is not None
    told = {k: row.result[k] for k in ("state", "score", "because", "explained_afterwards")}
    assert told == {
        "state": "not_matched",
        "score": 0.11,
        "because": "Nobody wants it.",
        "explained_afterwards": True,
    }


def test_one_that_was_switched_off_and_one_that_always_applied_can_be_given_a_condition(
    session: Session, stage: Stage
) -> None:
    off = Guideline(agent=session.agent, uid="off", condition="the moon is full", enabled=False)
    save_guideline(off, tools=[])
    save_guideline(Guideline(agent=session.agent, uid="brief", action="be brief"), tools=[])
    turn = stage.play(session, "Hello", matches(), replies("Hello."))
    assert stage.judge(turn, "off", None, matches("G4")).result["state"] == "matched"  # type: ignore[index]
    assert stage.judge(turn, "brief", "they greet", matches()).result["state"] == "not_matched"  # type: ignore[index]
    with pytest.raises(RematchRefusedError, match="always applies"):
        start_rematch(turn, "brief", by="ada")


def test_it_is_the_version_of_the_turn_and_not_the_draft_of_today(
    session: Session, stage: Stage
) -> None:
    turn = parcel(stage, session)
    Guideline.objects.filter(uid="refund").delete()
    session.agent.guidelines.update(condition="everything is different")
    row = stage.judge(turn, "refund", None, matches())
    assert row.condition == "the customer asks for a refund"


def test_a_turn_that_a_branch_shares_is_the_same_turn(session: Session, stage: Stage) -> None:
    turn = parcel(stage, session)
    branch = branch_from(session, 2, by=None)
    stage.play(branch, "And now?", matches(), replies("Wait."))
    shared = branch.line.turns.get(number=2)
    stage.judge(shared, "refund", "anything", matches())
    assert shared.pk == turn.pk
    assert "And now?" not in user_message(stage.model.requests[0])


def test_the_offline_model_judges_the_same_twice(session: Session, monkeypatch: Any) -> None:
    turn = send_message(session, text="I want a refund for P-7")
    assert turn is not None
    turns.run_turn(turn.pk)
    turn.refresh_from_db()
    recorded = turn.matches.get(guideline="refund")
    found = []
    for _ in range(2):
        row = start_rematch(turn, "refund", by="ada")
        rematch(row.pk)
        row.refresh_from_db()
        assert row.result is not None
        found.append((row.result["state"], row.result["because"]))
    assert found == [(recorded.state, recorded.because)] * 2
    other = start_rematch(turn, "refund", "the customer wants to speak to a person", by="ada")
    rematch(other.pk)
    other.refresh_from_db()
    assert other.result is not None
    assert other.result["state"] == "not_matched"


# --- one at a time, stopping, and what goes wrong


def test_the_same_wording_is_asked_once_and_another_beside_it(
    session: Session, stage: Stage, django_capture_on_commit_callbacks: Any
) -> None:
    turn = stage.play(session, "Hello", matches(), replies("Hello."))
    first = start_rematch(turn, "refund", "they want money", by="ada")
    assert start_rematch(turn, "refund", " they want money\n", by="bo").pk == first.pk
    assert start_rematch(turn, "refund", "they want a coin", by="bo").pk != first.pk
    assert start_rematch(turn, "where", "they want money", by="bo").pk != first.pk


def test_old_tries_of_the_guideline_are_deleted(session: Session, stage: Stage) -> None:
    turn = stage.play(session, "Hello", matches(), replies("Hello."))
    other = start_rematch(turn, "where", "kept", by="ada")
    for number in range(KEPT + 3):
        start_rematch(turn, "refund", f"wording {number}", by="ada")
    left = turn.rematches.filter(guideline="refund")
    assert left.count() == KEPT
    assert left.first().condition == f"wording {KEPT + 2}"
    assert Rematch.objects.filter(pk=other.pk).exists()


def test_a_model_that_fails_fails_the_try_in_words(session: Session, stage: Stage) -> None:
    turn = parcel(stage, session)
    before = trace(turn)
    gone = ModelError("Cannot reach the model.", kind=ModelErrorKind.UNREACHABLE, retryable=False)
    row = stage.judge(turn, "refund", "x", Expected(question="MatchGuidelines", answer=gone))
    assert (row.state, row.error, row.result) == ("failed", "Cannot reach the model.", None)
    assert trace(turn) == before


def test_an_error_of_ours_is_told_without_its_insides(
    session: Session, stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    turn = parcel(stage, session)

    def broken(*_args: Any) -> Any:
        raise RuntimeError("secret detail")

    monkeypatch.setattr(rematches, "models_for", broken)
    row = start_rematch(turn, "refund", "x", by="ada")
    rematch(row.pk)
    row.refresh_from_db()
    assert row.state == "failed"
    assert "the log says how" in row.error


class Hanging:
    name = "hanging"
    batch_size = 12
    judging_style = JudgingStyle.REASONED

    def __init__(self) -> None:
        self.asked = threading.Event()
        self.left = threading.Event()

    async def stream(self, request: ModelRequest) -> AsyncIterator[TextDelta | ModelReply]:
        self.asked.set()
        try:
            await asyncio.Event().wait()
        finally:
            self.left.set()
        yield TextDelta(text="never")


def test_it_is_stopped_while_the_model_is_at_work(session: Session, stage: Stage) -> None:
    turn = parcel(stage, session)
    model = Hanging()
    stage.use(model)
    row = start_rematch(turn, "refund", "x", by="ada")
    working = threading.Thread(target=rematch, args=[row.pk])
    working.start()
    assert model.asked.wait(5)
    assert row.request_stop()
    working.join(5)
    assert not working.is_alive()
    assert model.left.wait(5)
    row.refresh_from_db()
    assert (row.state, row.result) == ("stopped", None)
    rematch(row.pk)  # delivered once more
    row.refresh_from_db()
    assert row.state == "stopped"


def test_a_turn_that_runs_or_has_not_begun_is_refused(session: Session, stage: Stage) -> None:
    turn = stage.play(session, "Hello", matches(), replies("Hello."))
    Turn.objects.filter(pk=turn.pk).update(state=Turn.State.RUNNING)
    turn.refresh_from_db()
    with pytest.raises(RematchRefusedError, match="still running"):
        start_rematch(turn, "refund", "x", by="ada")
    waiting = Turn.objects.create(session=session, number=99)
    with pytest.raises(GuidelineUnknownError):
        start_rematch(waiting, "refund", "x", by="ada")
    with pytest.raises(GuidelineUnknownError, match="no guideline 'nothing'"):
        start_rematch(turn, "nothing", "x", by="ada")
    assert not Rematch.objects.exists()


# --- the situation


def test_the_situation_knows_what_was_decided_before_the_judgement(
    session: Session, stage: Stage
) -> None:
    turn = parcel(stage, session)
    judged = last_judgement(turn, "late")
    assert judged is not None
    assert judged.iteration == 2
    state = situation_at(turn, judged.started_at, iteration=2)
    assert [call.tool for call in state.calls.values()] == ["find_parcel"]
    assert {uid: m.state.value for uid, m in state.matches.items()} == {
        "where": "matched",
        "late": "not_matched",
        "refund": "not_matched",
    }
    assert state.checkpoint.iteration == 2
    first = last_judgement(turn, "refund")
    assert first is not None
    assert situation_at(turn, first.started_at).calls == {}


def test_what_was_said_outside_of_turns_counts_if_it_was_there_in_time(
    session: Session, stage: Stage
) -> None:
    stage.play(session, "Hello", matches(), replies("Hello."))
    send_message(session, text="I am Bo, a person.", source="operator")
    turn = stage.play(session, "And now?", matches(), replies("Now this."))
    send_message(session, text="Bo once more.", source="operator")
    stage.judge(turn, "refund", "x", matches())
    text = user_message(stage.model.requests[0])
    assert "I am Bo, a person." in text
    assert "Bo once more." not in text


def test_what_a_turn_knew_of_its_customer_is_known_when_it_is_judged_again(
    session: Session, stage: Stage
) -> None:
    turn = parcel(stage, session)
    Customer.objects.update(variables={"tier": "silver"})
    stage.judge(turn, "refund", "x", matches())
    assert "gold" in user_message(stage.model.requests[0])
    Customer.objects.all().delete()
    stage.judge(turn, "refund", "y", matches())
    assert "gold" in user_message(stage.model.requests[-1])


def test_a_turn_that_kept_nothing_of_its_customer_is_judged_with_what_is_known_today(
    session: Session, stage: Stage
) -> None:
    turn = parcel(stage, session)
    Turn.objects.update(ran_with={})
    Customer.objects.update(variables={"tier": "silver"})
    stage.judge(turn, "refund", "x", matches())
    assert "silver" in user_message(stage.model.requests[0])
