"""`manage.py chat`: turns run in the terminal's own process, the reply, and the ledger in the words of the page."""

import _thread
import asyncio
import sys
from collections.abc import Iterator
from io import StringIO
from typing import Any

import pytest
from django.core.management import call_command
from django.core.management.base import CommandError
from kombu.transport.memory import Channel

from engine.errors import ModelError, ModelErrorKind
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
from studio.ledger_text import ledger_text, printable
from studio.models import Agent, Customer, Guideline, Session, Tool, Turn
from studio.operations import running
from studio.operations.agents import publish, save_guideline

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def agent() -> Agent:
    agent = Agent.objects.create(slug="depot", name="Depot")
    tool = Tool.objects.create(
        name="find_parcel",
        description="Where a parcel is.",
        parameters=[{"name": "number", "schema": {"type": "string"}}],
    )
    agent.tools.add(tool)
    asks = Guideline(agent=agent, condition="the customer asks for a parcel", action="tell where")
    save_guideline(asks, tools=[tool])
    save_guideline(Guideline(agent=agent, condition="the customer swears", action="stay calm"))
    return agent


class Stage:
    """What the next turns' model answers and tools do."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self._monkeypatch = monkeypatch
        self.model = ScriptedModel()

    def script(self, *expected: Expected, **functions: Any) -> None:
        self.model = ScriptedModel(*expected)
        tools = ScriptedTools(functions)
        self._monkeypatch.setattr(running, "models_for", lambda _s: Models.same(self.model))
        self._monkeypatch.setattr(running, "tools_for", lambda _tools: tools)


@pytest.fixture
def stage(monkeypatch: pytest.MonkeyPatch) -> Iterator[Stage]:
    stage = Stage(monkeypatch)
    yield stage
    stage.model.assert_used_up()


FOUND = [
    matches("G1", because="They name parcel P-7."),
    infers("find_parcel", {"number": said("P-7")}, because="Its place is not known yet."),
    replies("It is in Lyon.", "G1"),
]
DOWN = ModelError("The model's server is down.", kind=ModelErrorKind.SERVER, retryable=False)


def chat(*arguments: str, **options: Any) -> str:
    out = StringIO()
    call_command("chat", *arguments, stdout=out, **options)
    return out.getvalue()


def pipe(monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    monkeypatch.setattr(sys, "stdin", StringIO(text))


def test_the_reply_and_its_ledger_are_printed(agent: Agent, stage: Stage) -> None:
    stage.script(*FOUND, find_parcel=lambda _a, _c: {"place": "Lyon", "days_left": 2})

    printed = chat("depot", message=["Where is parcel P-7?"])

    assert "You: Where is parcel P-7?" in printed
    assert "Depot: It is in Lyon.\n" in printed
    _reply, ledger = printed.split("── ")
    assert "Turn 1 · finished · draft" in ledger
    assert "written by the scripted model" in ledger.replace("\n  ", " ")
    assert "✓ Matched: the customer asks for a parcel → tell where" in ledger
    assert "They name parcel P-7." in ledger
    assert "✓ Ran find_parcel" in ledger
    assert "Its place is not known yet." in ledger
    assert "number = P-7  [customer: “P-7”]" in ledger
    assert "→ place: Lyon, days left: 2" in ledger
    assert "1 guideline did not match" in ledger
    assert "swears" not in ledger


def test_all_shows_the_silent_guidelines_with_their_reasons(agent: Agent, stage: Stage) -> None:
    stage.script(matches(because="Nobody swore."), replies("Hello."))

    printed = chat("depot", "--all", message=["Hi"])

    assert "– Not matched: the customer swears" in printed
    assert "Nobody swore." in printed


def test_neither_a_queue_nor_a_worker_is_used(agent: Agent, stage: Stage) -> None:
    stage.script(matches(), replies("Hello."))

    chat("depot", message=["Hi"])

    assert Turn.objects.get().state == Turn.State.FINISHED
    assert not any(queue.qsize() for queue in Channel.queues.values())


def test_several_messages_are_one_conversation(agent: Agent, stage: Stage) -> None:
    stage.script(matches(), replies("Hello."), matches(), replies("Goodbye."))

    printed = chat("depot", "--message", "Hi", "Bye")

    assert printed.index("Depot: Hello.") < printed.index("You: Bye")
    assert "Depot: Goodbye." in printed
    assert Session.objects.get().turns.count() == 2


def test_a_pipe_is_read_line_by_line_until_it_ends(
    agent: Agent, stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    stage.script(matches(), replies("Hello."), matches(), replies("Fine."))
    pipe(monkeypatch, "Hi\n\n   \nHow are you?\n")

    printed = chat("depot")

    assert "You: Hi\n" in printed
    assert "Depot: Fine." in printed
    assert Turn.objects.count() == 2


def test_quit_ends_before_what_follows(
    agent: Agent, stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    stage.script(matches(), replies("Hello."))
    pipe(monkeypatch, "Hi\n/quit\nHi again\n")

    chat("depot")

    assert Turn.objects.count() == 1


def test_the_customer_and_the_version_are_chosen(agent: Agent, stage: Stage) -> None:
    Customer.objects.create(uid="ada", name="Ada")
    publish(agent, note="", by=None)
    stage.script(matches(), replies("Hello."))

    printed = chat("depot", "--version", "1", "--customer", "ada", message=["Hi"])

    assert "Depot · 1 · customer: Ada" in printed
    assert "version 1" in printed
    session = Session.objects.get()
    assert session.customer is not None
    assert (session.customer.uid, session.follows) == ("ada", "version")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["nobody"], "There is no agent 'nobody'; there are: depot."),
        (["depot", "--customer", "eve"], "There is no customer 'eve'; there is no customer yet"),
        (["depot", "--version", "9"], "no version 9"),
        (["depot", "--version", "newest"], "A version is “draft”, “published” or a number."),
        (["depot", "--version", "published"], "no published version yet"),
    ],
)
def test_what_does_not_exist_is_named_with_what_does(
    agent: Agent, arguments: list[str], words: str
) -> None:
    with pytest.raises(CommandError) as caught:
        chat(*arguments, message=["Hi"])
    assert words in str(caught.value)
    assert not Session.objects.exists()


def test_without_any_agent_it_is_said_where_one_comes_from() -> None:
    with pytest.raises(CommandError, match="load_demo"):
        chat("depot", message=["Hi"])


def test_a_failed_turn_shows_its_reference_and_how_to_go_on(agent: Agent, stage: Stage) -> None:
    stage.script(Expected(question="MatchGuidelines", answer=DOWN))
    out = StringIO()

    with pytest.raises(CommandError, match="1 of the turns failed"):
        call_command("chat", "depot", message=["Hi"], stdout=out)

    turn = Turn.objects.get()
    assert turn.reference
    assert f"Failed, reference {turn.reference}: The model's server is down." in out.getvalue()
    assert f"/sessions/{turn.session_id}/" in out.getvalue()


def test_retry_goes_on_with_the_failed_turn(
    agent: Agent, stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    failing = Expected(question="MatchGuidelines", answer=DOWN)
    stage.script(failing, matches(), replies("Hello."))
    pipe(monkeypatch, "/retry\nHi\n/retry\n/retry\n")

    printed = chat("depot")

    assert "There is no turn yet" in printed
    assert "Say /retry to go on" in printed
    assert "Depot: Hello." in printed
    assert "Only the last turn of a session can be run again" in printed
    turn = Turn.objects.get()
    assert (turn.number, turn.state, turn.claims) == (1, Turn.State.FINISHED, 2)


def test_an_empty_message_is_refused_in_words(agent: Agent) -> None:
    out = StringIO()
    with pytest.raises(CommandError):
        call_command("chat", "depot", message=["  "], stdout=out)
    assert "The message is empty: write something." in out.getvalue()


def test_ctrl_c_stops_the_turn_and_ends(agent: Agent, stage: Stage) -> None:
    async def hang(_arguments: Any, _context: Any) -> None:
        _thread.interrupt_main()
        await asyncio.sleep(50)

    stage.script(*FOUND[:2], find_parcel=hang)

    printed = chat("depot", message=["Where is parcel P-7?", "Hello?"])

    turn = Turn.objects.get()
    assert turn.state == Turn.State.STOPPED
    assert "Turn 1 · stopped" in printed
    assert "Hello?" not in printed


def test_nothing_steers_the_terminal(agent: Agent, stage: Stage) -> None:
    stage.script(
        *FOUND[:2],
        replies("It is in \x1b[2JLyon.", "G1"),
        find_parcel=lambda _a, _c: {"place": "\x1b]0;pwned\x07Lyon"},
    )

    printed = chat("depot", message=["Where is\x1b[31m parcel P-7?"])

    assert "\x1b" not in printed
    assert "\x07" not in printed
    assert "Lyon." in printed
    assert printable("naïve 👩‍🚒 \t日本\n") == "naïve 👩‍🚒 \t日本\n"


def test_long_values_are_shortened_and_lines_kept_within_the_width() -> None:
    told: dict[str, Any] = {
        "number": 1,
        "state": "FINISHED",
        "version": "draft",
        "fingerprint": "0" * 64,
        "duration_ms": 1500,
        "prompt_tokens": 1200,
        "completion_tokens": 34,
        "limit_reached": "",
        "messages": [],
        "insights": [],
        "adherence": [],
        "model_calls": [],
        "matches": [
            {
                "guideline": "g",
                "condition": "the customer asks " + "for the balance " * 20,
                "action": "",
                "state": "matched",
                "because": "so",
                "iteration": 1,
                "duration_ms": 1,
                "dropped_by": "",
                "added_by": "",
                "relation": "",
                "effect": "",
                "score": None,
                "explained_afterwards": False,
                "given_by": "",
            }
        ],
        "reply_source": None,
        "lost": [],
        "modes": [],
        "confirmations": [],
        "decisions": [],
        "calls": [
            {
                "uid": "c",
                "tool": "get_balance",
                "state": "done",
                "duration_ms": 3,
                "result": {"data": ["x" * 900], "metadata": {}},
                "error": None,
            }
        ],
    }

    lines = ledger_text(told, width=60).splitlines()

    assert max(map(len, lines)) <= 60
    assert "1,234 tokens" in " ".join(lines)
    assert "get_balance" in " ".join(lines)
