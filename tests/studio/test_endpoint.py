"""Turns against an OpenAI-compatible server, good and bad: what is retried, what ends the turn, what is kept."""

import asyncio
import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from engine.kit import Models
from engine.model.openai import OpenAIModel
from engine.model.retrying import RetryingModel
from engine.tools.function import FunctionToolService
from studio.models import Agent, Session, Turn
from studio.operations import running, turns, watching
from studio.operations.agents import save_guideline
from studio.operations.documents import import_document
from studio.operations.pumping import engine_loop
from studio.operations.sessions import open_session
from studio.operations.tools import sync_function_tools
from studio.operations.turns import retry_turn, send_message
from tests.bench import scenario
from tests.openai_server import (
    BreakOff,
    Drop,
    Hang,
    NoChoices,
    OpenAIServer,
    Say,
    Stall,
    Status,
    Step,
)

pytestmark = pytest.mark.django_db(transaction=True)

INVENTED = json.dumps(
    {"newest": "", "judgements": [{"guideline": "G99", "because": "?", "applies": True}]}
)
FAULTS: dict[str, Callable[[], Step]] = {
    "429": lambda: Status(429, headers={"Retry-After": "0"}),
    "500": lambda: Status(500),
    "503": lambda: Status(503),
    "hangs": Hang,
    "drops the connection": Drop,
    "breaks off in mid-answer": lambda: BreakOff(pieces=1),
    "falls silent in mid-answer": lambda: Stall(pieces=1),
    "malformed JSON": lambda: Say('{"newest": "'),
    "prose": lambda: Say("I would rather not."),
    "wrong schema": lambda: Say('{"verdict": true}'),
    "nothing": lambda: Say(""),
    "no choices": NoChoices,
}


@pytest.fixture
def server() -> Iterator[OpenAIServer]:
    with OpenAIServer(answer=scenario.answer, checks_answers=False) as server:
        yield server


async def at_once(_seconds: float) -> None:
    """Tests do not wait between attempts."""


@pytest.fixture
def session(server: OpenAIServer, monkeypatch: pytest.MonkeyPatch) -> Iterator[Session]:
    service = FunctionToolService([scenario.fetch_balance])
    sync_function_tools(service)
    import_document(json.dumps(scenario.document("bench", 4)), dry_run=False)
    client = OpenAIModel(model="small", base_url=server.base_url, api_key="k", timeout=0.6)
    models = Models.same(RetryingModel(client, sleep=at_once))
    monkeypatch.setattr(running, "models_for", lambda _connection: models)
    monkeypatch.setattr(running, "tools_for", lambda _tools: service)
    unwatched = watching.Watch()  # its thread would look into the database after the test
    monkeypatch.setattr(running, "watch", lambda: unwatched)
    yield open_session(agent=Agent.objects.get(slug="bench"))
    asyncio.run_coroutine_threadsafe(client.aclose(), engine_loop()).result(5)


def run(turn: Turn) -> Turn:
    turns.run_turn(turn.pk)
    turn.refresh_from_db()
    return turn


def ask(session: Session) -> Turn:
    turn = send_message(session, text=scenario.MESSAGE, enqueue=False)
    assert turn is not None
    return run(turn)


def said(session: Session, source: str) -> list[str]:
    return [e.data["text"] for e in session.events.filter(kind="message", source=source)]


def test_every_request_carries_the_json_schema_of_its_answer(
    session: Session, server: OpenAIServer
) -> None:
    turn = ask(session)

    assert turn.state == Turn.State.FINISHED, turn.error
    assert said(session, "agent") == [
        "Your checking account holds 162.60 euros, which is a little low."
    ]
    names = [r.body["response_format"]["json_schema"]["name"] for r in server.completions]
    assert sorted(names) == [
        "ComposeReply",
        "InferToolCalls",
        "MatchGuidelines",
        "MatchGuidelines",
    ]
    assert all(r.form == "json_schema" for r in server.completions)


@pytest.mark.parametrize("refuses", [["json_schema"], ["json_schema", "json_object"]])
def test_a_server_without_schema_support_still_works(
    session: Session, server: OpenAIServer, refuses: list[str]
) -> None:
    def answer(body: dict[str, Any]) -> dict[str, Any]:
        # Without a schema in the request the prompt says which answer is wanted.
        system = body["messages"][0]["content"]
        name = (
            "MatchGuidelines"
            if "which guidelines apply" in system
            else "InferToolCalls"
            if "whether one tool" in system
            else "ComposeReply"
        )
        return scenario.answer(
            {"messages": body["messages"], "response_format": {"json_schema": {"name": name}}}
        )

    server.refuses = refuses
    server.answer = answer

    turn = ask(session)

    assert turn.state == Turn.State.FINISHED, turn.error
    assert turn.calls.get().state == "done"


@pytest.mark.parametrize("fault", FAULTS)
def test_one_bad_answer_is_asked_again_and_stands_in_the_trail(
    session: Session, server: OpenAIServer, fault: str
) -> None:
    server.plan(FAULTS[fault]())

    turn = ask(session)

    assert turn.state == Turn.State.FINISHED, turn.error
    failed = turn.model_calls.exclude(error="")
    assert failed.count() == 1
    assert turn.model_calls.filter(attempt=2, error="").count() == 1
    assert len(said(session, "agent")) == 1


@pytest.mark.parametrize("fault", FAULTS)
def test_a_reply_that_goes_wrong_in_writing_is_written_once(
    session: Session, server: OpenAIServer, fault: str
) -> None:
    # An agent without conditions is asked for nothing but the reply.
    for guideline in session.agent.guidelines.all():
        guideline.condition = ""
        save_guideline(guideline, tools=[])
    server.plan(FAULTS[fault]())

    turn = ask(session)

    assert turn.state == Turn.State.FINISHED, turn.error
    assert turn.model_calls.filter(question="ComposeReply").exclude(error="").count() == 1
    assert len(said(session, "agent")) == 1
    assert not session.events.filter(kind="message.part").exists()


@pytest.mark.parametrize("fault", FAULTS)
def test_a_model_that_stays_bad_ends_the_turn_and_a_person_can_run_it_again(
    session: Session, server: OpenAIServer, fault: str
) -> None:
    server.plan(*(FAULTS[fault]() for _ in range(20)))

    turn = ask(session)

    assert turn.state == Turn.State.FAILED
    assert turn.reference
    assert turn.model_calls.exclude(error="").filter(attempt=3).exists()
    assert said(session, "customer") == [scenario.MESSAGE]
    assert said(session, "agent") == []

    server.steps.clear()
    run(retry_turn(turn, enqueue=False))

    assert turn.state == Turn.State.FINISHED, turn.error
    assert len(said(session, "agent")) == 1


def test_an_endpoint_that_is_down_ends_the_turn(session: Session, server: OpenAIServer) -> None:
    server.down()

    turn = ask(session)

    assert turn.state == Turn.State.FAILED
    assert turn.model_calls.filter(error__startswith="unreachable").count() >= 3
    server.up()
    run(retry_turn(turn, enqueue=False))
    assert turn.state == Turn.State.FINISHED, turn.error


def test_answers_about_nothing_but_unknown_ids_end_the_turn_without_a_call(
    session: Session, server: OpenAIServer
) -> None:
    def answer(body: dict[str, Any]) -> Any:
        name = body["response_format"]["json_schema"]["name"]
        return INVENTED if name == "MatchGuidelines" else scenario.answer(body)

    server.answer = answer

    turn = ask(session)

    assert turn.state == Turn.State.FAILED
    assert "judged none" in turn.error
    assert not turn.calls.exists()


def test_a_wrong_key_ends_the_turn_at_once_and_is_not_told_to_the_customer(
    session: Session, server: OpenAIServer
) -> None:
    server.api_key = "another-key"

    turn = ask(session)

    assert turn.state == Turn.State.FAILED
    assert "key" in turn.error
    events = str(list(session.events.values_list("data", flat=True)))
    assert "key" not in events
