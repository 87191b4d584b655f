"""A recorded turn is read back as the engine was given it, and played again from its record it is the same turn."""

import asyncio
import threading
from collections.abc import Callable, Iterable
from datetime import timedelta
from typing import Any

import pytest
from django.db import connections
from django.utils import timezone

from engine.errors import ModelError, ModelErrorKind
from engine.events import BY_TOOL, Answer, RecordedEvent
from engine.kit import Models
from engine.model.base import JudgingStyle
from engine.model.recorded import RecordedModel
from engine.model.retrying import RetryingModel
from engine.testing import (
    Expected,
    ScriptedModel,
    ScriptedTools,
    explains,
    inferred,
    infers,
    judges,
    known,
    matches,
    reads,
    replies,
    responds,
    said,
    scores,
)
from engine.tools.base import ToolContext, ToolResult
from studio.models import ChoicesOffered, Event, JobState, Replay, Session, Tool, Turn
from studio.operations import lanes, running, situations, turns
from studio.operations.branches import branch_from, regenerate, resend
from studio.operations.confirmations import answer_confirmation, pending_confirmations
from studio.operations.recordings import recordings_of, turns_to_replay
from studio.operations.redaction import Rules
from studio.operations.replays import start_replay
from studio.operations.session_export import export_session
from studio.operations.session_import import import_session
from studio.operations.sessions import change_mode
from studio.operations.turns import retry_turn, send_message
from tests.studio.factories import (
    make_agent,
    make_customer,
    make_guideline,
    make_response,
    make_session,
    make_tool,
)

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("unwatched")]


class Studio:
    """Records turns with scripted answers and tools, and plays them again with neither."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.tools = ScriptedTools()
        self.model: Any = ScriptedModel()
        self.begun: dict[int, tuple[RecordedEvent, ...]] = {}
        self.recorded_models: list[RecordedModel] = []
        self._monkeypatch = monkeypatch
        monkeypatch.setattr(running, "models_for", lambda _session: Models.same(self.model))
        monkeypatch.setattr(running, "tools_for", lambda _tools: self.tools)
        monkeypatch.setattr(running, "beginning", self._beginning)
        make = RecordedModel.__init__

        def made(model: RecordedModel, *args: Any, **kwargs: Any) -> None:
            make(model, *args, **kwargs)
            self.recorded_models.append(model)

        monkeypatch.setattr(RecordedModel, "__init__", made)

    def _beginning(self, turn: Turn) -> Any:
        state = situations.beginning(turn)
        self.begun[turn.pk] = state.history
        return state

    def answers(self, *expected: Expected, **options: Any) -> None:
        self.model = ScriptedModel(*expected, **options)

    def run(self, turn: Turn | None, state: str = "FINISHED") -> Turn:
        assert turn is not None
        turns.run_turn(turn.pk)
        turn.refresh_from_db()
        assert turn.state == state, turn.error
        return turn

    def ask(
        self, session: Session, text: str, *expected: Expected, state: str = "FINISHED"
    ) -> Turn:
        """A turn that is asked for and answered like this, to the last answer."""
        self.answers(*expected)
        turn = self.run(send_message(session, text=text, enqueue=False), state)
        self.model.assert_used_up()
        return turn

    def reads_back(self, session: Session) -> None:
        """Every turn that ran here is read as the engine was given it."""
        rows = list(turns_to_replay(session))
        read = {recording.turn.pk: recording for recording in recordings_of(session, rows)}
        seen = [row.pk for row in rows if row.pk in self.begun]
        assert seen
        for pk in seen:
            given = by_turn(self.begun[pk])
            assert by_turn(read[pk].history + read[pk].said) == given, read[pk].turn.number

    def replay(self, session: Session, **options: Any) -> Replay:
        """Frozen, against the draft, with no model and no tool, to its end."""
        with self._monkeypatch.context() as without:
            without.setattr("studio.connecting.models_of", nobody_asks)
            replay = start_replay([session], **({"against": "draft"} | options))
            while not Replay.objects.get(pk=replay.pk).is_over:
                lanes.lane("replay", replay.pk)
        replay.refresh_from_db()
        assert (replay.state, replay.error) == (JobState.FINISHED, "")
        return replay

    def same_again(self, session: Session, *, but: Iterable[int] = (), free: bool = True) -> None:
        """Read back, and replayed the same turn by turn and running `free`; the turns `but` had no end of their own."""
        self.reads_back(session)
        called = list(self.tools.called)
        for options in ({}, {"free_running": True}) if free else ({},):
            self.recorded_models.clear()
            replay = self.replay(session, **options)
            found = {
                cell.number: (cell.verdict, cell.reason, cell.differences)
                for cell in replay.turns.exclude(number__in=list(but))
            }
            assert found
            assert {n: v for n, v in found.items() if v != ("same", "", [])} == {}
            assert [model.missing for model in self.recorded_models if model.missing] == []
        assert self.tools.called == called


def by_turn(history: Iterable[RecordedEvent]) -> list[RecordedEvent]:
    """As prompts tell them."""
    return sorted(history, key=lambda entry: entry.turn)


def nobody_asks(*_args: Any) -> Models:
    raise AssertionError("A frozen replay looked for a model.")


@pytest.fixture
def studio(monkeypatch: pytest.MonkeyPatch) -> Studio:
    return Studio(monkeypatch)


@pytest.fixture
def session() -> Session:
    """G1 owns find_parcel, G2 is judged again after it, G3 always applies."""
    agent = make_agent()
    tool = make_tool(agent, name="find_parcel")
    make_guideline(agent, condition="the customer asks where a parcel is", tools=[tool])
    make_guideline(agent, condition="the parcel is late", reevaluate_after=[tool])
    make_guideline(agent, condition="", action="be brief")
    customer = make_customer(variables={"street": "Rose Lane"})
    return make_session(agent=agent, customer=customer)


def finds(number: str = "P-7") -> list[Expected]:
    """The parcel is looked for and found late."""
    return [
        matches("G1"),
        infers("find_parcel", {"number": said(number)}),
        matches("G2"),
        replies(f"{number} is in Lyon, and late.", "G1", "G2"),
    ]


def in_lyon(given: Any, _context: ToolContext) -> Any:
    return {"in": "Lyon", **given}


# --- one session after another


def test_a_conversation_with_a_tool_and_what_later_turns_know_of_it(
    studio: Studio, session: Session
) -> None:
    studio.tools.functions["find_parcel"] = in_lyon
    studio.ask(session, "Where is P-7?", *finds())
    studio.ask(session, "Thanks!", matches(), replies("You are welcome."))
    studio.ask(session, "And P-8?", *finds("P-8"))
    studio.same_again(session)


def test_what_the_agent_knew_of_its_customer_then(studio: Studio, session: Session) -> None:
    studio.ask(session, "Hello", matches(), replies("Hello!"))
    customer = session.customer
    assert customer is not None
    customer.variables = {"street": "Elm Street"}
    customer.save()
    studio.ask(session, "Hello again", matches(), replies("Hello, Elm Street!"))
    studio.same_again(session)


def test_more_turns_than_prompts_show(studio: Studio, session: Session) -> None:
    for number in range(45):
        studio.ask(session, f"Word {number}", matches(), replies(f"Word {number}!"))
    studio.same_again(session)


def test_several_messages_that_one_turn_answers(studio: Studio, session: Session) -> None:
    turn = send_message(session, text="Hello", enqueue=False)
    assert send_message(session, text="Where is P-7?", enqueue=False) == turn
    studio.tools.functions["find_parcel"] = in_lyon
    studio.answers(*finds())
    studio.run(turn)
    studio.same_again(session)


# --- branches


def test_branches_and_what_they_go_on_from(studio: Studio, session: Session) -> None:
    studio.tools.functions["find_parcel"] = in_lyon
    studio.ask(session, "Where is P-7?", *finds())
    studio.ask(session, "Thanks!", matches(), replies("You are welcome."))
    branch = branch_from(session, 1)
    studio.ask(branch, "Why?", matches("G1"), infers("find_parcel"), replies("Snow."))
    other = resend(session, 2, "No thanks!", enqueue=False)
    studio.answers(matches(), replies("Oh."))
    studio.run(other.turn)
    again = regenerate(session, 1, enqueue=False)
    studio.answers(*finds())
    studio.run(again.turn)
    deep = branch_from(branch, 2)
    studio.ask(deep, "Snow?", matches(), replies("Much."))
    for row in (session, branch, other.session, again.session, deep):
        studio.same_again(Session.objects.get(pk=row.pk))


def test_what_was_said_outside_of_turns_before_and_after_a_branch_begins(
    studio: Studio, session: Session
) -> None:
    studio.ask(session, "Hello", matches(), replies("Hello!"))
    send_message(session, text="This is Ann of the depot.", source="operator")
    branch = branch_from(session, 1)
    send_message(session, text="Still there?", source="operator")
    studio.ask(session, "Yes", matches(), replies("Good."))
    studio.ask(branch, "Hello Ann", matches(), replies("She is away."))
    for row in (session, branch):
        studio.same_again(Session.objects.get(pk=row.pk))


# --- confirmations


@pytest.fixture
def bank() -> Session:
    """G1 owns send_money, which asks first."""
    agent = make_agent()
    parameters = [
        {"name": "amount", "schema": {"type": "integer"}},
        {"name": "payee", "schema": {"type": "string"}},
    ]
    tool = make_tool(agent, name="send_money", consequential=True, parameters=parameters)
    make_guideline(agent, condition="the customer wants to send money", tools=[tool])
    return make_session(agent=agent)


def wants_to_send(studio: Studio, bank: Session, text: str = "Send 50 to Ann") -> str:
    """The customer is asked for their word; the call that waits."""
    studio.tools.functions["send_money"] = lambda given, _context: {"sent": given["amount"]}
    arguments = {"amount": said(50, "50"), "payee": said("Ann", "Ann")}
    inference = infers("send_money", arguments)
    studio.ask(bank, text, matches("G1"), inference, replies("Shall I send 50 to Ann?", "G1"))
    bank.refresh_from_db()
    (pending,) = pending_confirmations(bank)
    return pending.call


@pytest.mark.parametrize("answer", [Answer.CONFIRMED, Answer.DECLINED])
def test_a_call_that_was_answered_by_a_button(
    studio: Studio, bank: Session, answer: Answer
) -> None:
    call = wants_to_send(studio, bank)
    studio.answers(matches(), replies("As you wish."))
    studio.run(answer_confirmation(bank, call, answer, enqueue=False))
    assert len(studio.tools.called) == (1 if answer is Answer.CONFIRMED else 0)
    studio.ask(bank, "Thanks", matches(), replies("You are welcome."))
    studio.same_again(bank)


@pytest.mark.parametrize("answer", ["confirmed", "declined", "unanswered"])
def test_a_call_that_was_answered_in_words(studio: Studio, bank: Session, answer: str) -> None:
    wants_to_send(studio, bank)
    further = [matches()] if answer == "unanswered" else []
    studio.ask(bank, "Well then", reads(answer), *further, replies("As you wish."))
    assert len(studio.tools.called) == (1 if answer == "confirmed" else 0)
    studio.same_again(bank)


def test_a_call_that_was_changed_and_asked_for_anew(studio: Studio, bank: Session) -> None:
    wants_to_send(studio, bank)
    changed = {"amount": said(70, "70"), "payee": said("Ann", "Ann")}
    studio.ask(
        bank,
        "No, 70",
        reads("changed", other="70"),
        infers("send_money", changed),
        replies("Shall I send 70 to Ann?"),
    )
    studio.ask(bank, "Yes", reads("confirmed"), replies("Done."))
    assert studio.tools.called == [("send_money", {"amount": 70, "payee": "Ann"})]
    studio.same_again(bank)


def test_a_call_that_expired_unanswered(studio: Studio, bank: Session) -> None:
    wants_to_send(studio, bank)
    asked = Event.objects.get(kind="confirmation.asked")
    long_ago = timezone.now() - timedelta(hours=2)
    asked.data = {**asked.data, "asked_at": long_ago.isoformat()}
    asked.save()
    studio.ask(bank, "Yes", matches(), replies("That was long ago."))
    assert Event.objects.filter(kind="confirmation.answered", data__answer="expired").exists()
    # What the first turn asked, it asked at another time by now: only the second is looked at.
    studio.reads_back(bank)
    replay = studio.replay(bank)
    assert replay.turns.get(number=2).verdict == "same"


# --- by hand


def test_a_session_that_a_person_took_over_and_handed_back(
    studio: Studio, session: Session
) -> None:
    studio.ask(session, "Hello", matches(), replies("Hello!"))
    change_mode(session, "manual")
    send_message(session, text="Here is Ann.", source="operator")
    assert send_message(session, text="Where is P-7?") is None
    handed_back = change_mode(session, "auto", enqueue=False)
    assert handed_back is not None
    studio.tools.functions["find_parcel"] = in_lyon
    studio.answers(*finds())
    studio.run(handed_back.turn)
    studio.ask(session, "Thanks", matches(), replies("You are welcome."))
    studio.same_again(session)


def test_a_session_that_was_handed_back_with_nothing_to_answer(
    studio: Studio, session: Session
) -> None:
    studio.ask(session, "Hello", matches(), replies("Hello!"))
    change_mode(session, "manual")
    send_message(session, text="Anything else?", source="operator")
    change_mode(session, "auto", enqueue=False)
    studio.ask(session, "No", matches(), replies("Goodbye."))
    studio.same_again(session)


def test_a_tool_that_hands_over_to_a_person(studio: Studio, session: Session) -> None:
    handing_over = ToolResult(data="a person knows", control={"mode": "manual"})
    studio.tools.functions["find_parcel"] = lambda _given, _context: handing_over
    studio.ask(session, "Where is P-7?", *finds())
    send_message(session, text="Here is Ann.", source="operator")
    change_mode(session, "auto", enqueue=False)
    session.refresh_from_db()
    studio.ask(session, "Thanks", matches(), replies("You are welcome."))
    studio.same_again(session)


# --- messages that come while a turn runs


def test_a_turn_that_a_newer_message_took_over_from(studio: Studio, session: Session) -> None:
    started, ended = threading.Event(), threading.Event()

    async def slow(_given: Any, context: ToolContext) -> None:
        await context.emit_message("One moment.")
        started.set()
        try:
            await asyncio.sleep(30)
        finally:
            ended.set()

    studio.tools.functions["find_parcel"] = slow
    studio.answers(
        matches("G1"),
        infers("find_parcel", {"number": said("P-7")}),
        matches(),
        replies("Never mind, then."),
    )
    first = send_message(session, text="Where is P-7?", enqueue=False)
    assert first is not None
    worker = threading.Thread(target=in_a_thread(lambda: turns.run_turn(first.pk)))
    worker.start()
    assert started.wait(5)
    second = send_message(session, text="Never mind.", enqueue=False)
    running.watch()._stop_requested()
    worker.join(10)
    assert ended.is_set()
    studio.run(second)
    first.refresh_from_db()
    assert first.state == Turn.State.SUPERSEDED
    studio.ask(session, "Hello?", matches(), replies("Yes?"))
    studio.same_again(session, but=[1])


def in_a_thread(work: Callable[[], object]) -> Callable[[], None]:
    def run() -> None:
        try:
            work()
        finally:
            connections.close_all()

    return run


# --- tools


@pytest.fixture
def two_tools() -> Session:
    """G1 owns find_parcel and find_weather."""
    agent = make_agent()
    tools = [make_tool(agent, name=name) for name in ("find_parcel", "find_weather")]
    make_guideline(agent, condition="the customer asks where a parcel is", tools=tools)
    return make_session(agent=agent)


def asks_for_both() -> list[Expected]:
    return [
        matches("G1"),
        infers("find_parcel", {"number": said("P-7")}),
        infers("find_weather", {"number": said("P-7")}),
        replies("It snows."),
    ]


@pytest.mark.parametrize("first", ["find_parcel", "find_weather"])
def test_two_tools_that_speak_while_they_work_side_by_side(
    studio: Studio, two_tools: Session, first: str
) -> None:
    """Which of them ends first is not which of them was asked for first."""
    ended: dict[str, asyncio.Event] = {}

    def tool(name: str) -> Callable[[Any, ToolContext], Any]:
        async def work(given: Any, context: ToolContext) -> Any:
            mine = ended.setdefault(name, asyncio.Event())
            await context.emit_message(f"{name} looks.")
            if name != first:
                await ended.setdefault(first, asyncio.Event()).wait()
            await context.emit_message(f"{name} found it.")
            mine.set()
            return {name: given["number"]}

        return work

    for name in ("find_parcel", "find_weather"):
        studio.tools.functions[name] = tool(name)
    studio.ask(two_tools, "Where is P-7?", *asks_for_both())
    said_by_tools = Event.objects.filter(kind="message", data__model__startswith=BY_TOOL)
    assert said_by_tools.count() == 4
    studio.ask(two_tools, "Thanks", matches(), replies("You are welcome."))
    studio.same_again(two_tools)


@pytest.mark.parametrize("failing", ["find_parcel", "find_weather"])
def test_one_of_two_tools_fails(studio: Studio, two_tools: Session, failing: str) -> None:
    def fails(_given: Any, _context: ToolContext) -> Any:
        raise ValueError("no such parcel")

    for name in ("find_parcel", "find_weather"):
        studio.tools.functions[name] = fails if name == failing else in_lyon
    studio.ask(two_tools, "Where is P-7?", *asks_for_both())
    studio.ask(two_tools, "Thanks", matches(), replies("You are welcome."))
    studio.same_again(two_tools)


def test_a_tool_that_is_called_twice_and_ends_otherwise_the_second_time(
    studio: Studio, session: Session
) -> None:
    answers = iter(["Lyon", "Turin"])
    studio.tools.functions["find_parcel"] = lambda _given, _context: next(answers)
    studio.ask(session, "Where is P-7?", *finds())
    studio.ask(session, "And now, P-7?", *finds())
    studio.same_again(session)


def test_a_result_that_brings_guidelines_and_is_not_kept(studio: Studio, session: Session) -> None:
    studio.tools.functions["find_parcel"] = lambda _given, _context: ToolResult(
        data="secret place",
        control={"lifespan": "response"},
        guidelines=[{"action": "do not tell the street"}, {"condition": "they ask for the street"}],
        canned_responses=["It is near."],
    )
    studio.answers(
        matches("G1"),
        infers("find_parcel", {"number": said("P-7")}),
        matches("G2"),
        matches(),
        replies("It is near."),
    )
    studio.run(send_message(session, text="Where is P-7?", enqueue=False))
    studio.ask(session, "Where?", matches(), replies("I may not say."))
    studio.same_again(session)


def test_choices_that_a_tool_offered_in_that_turn(studio: Studio) -> None:
    agent = make_agent()
    account = {"name": "account", "schema": {"type": "string"}, "provides_choices": True}
    tool = make_tool(agent, name="get_balance", parameters=[account])
    make_guideline(agent, condition="the customer asks for a balance", tools=[tool])
    session = make_session(agent=agent)
    studio.tools.functions["get_balance"] = lambda given, _context: {given["account"]: 12}
    studio.tools.provided["get_balance"] = {"account": ["giro", "savings"]}
    balance = infers("get_balance", {"account": said("giro")})
    studio.ask(session, "My giro balance?", matches("G1"), balance, replies("12."))
    studio.tools.provided["get_balance"] = {"account": ["bonds"]}
    refused = infers("get_balance", {"account": said("giro")})
    studio.ask(session, "And giro?", matches("G1"), refused, replies("There is none."))

    def fails(_context: ToolContext) -> Any:
        raise RuntimeError("the accounts are down")

    studio.tools.provided["get_balance"] = fails
    studio.ask(session, "And giro now?", matches("G1"), replies("I cannot look."))
    studio.tools.provided.clear()
    studio.same_again(session)
    kept = Session.objects.get(purpose="replay")
    for row in (session, kept):
        offered = ChoicesOffered.objects.filter(turn__session=row).order_by("turn__number")
        assert [(each.choices, each.because) for each in offered] == [
            ({"account": ["giro", "savings"]}, ""),
            ({"account": ["bonds"]}, ""),
            ({}, "The choices for account could not be looked up."),
        ]


# --- replies


def test_verified_replies_with_revisions(studio: Studio) -> None:
    agent = make_agent(verified_replies=True)
    make_guideline(agent, condition="the customer greets", criticality="high")
    session = make_session(agent=agent)
    studio.ask(
        session,
        "Hello",
        matches("G1"),
        replies("Hi.", "G1"),
        judges(G1="Too short."),
        replies("Hello!", "G1"),
        judges(G1="Still too short."),
        replies("Hello, dear!", "G1"),
        judges(G1=True),
    )
    studio.ask(session, "Hello!", matches("G1"), replies("Good day, dear!", "G1"), judges(G1=True))
    studio.same_again(session)


def test_canned_responses_alone(studio: Studio) -> None:
    agent = make_agent(composition="strict")
    make_response(agent, text="Good day.")
    make_guideline(agent, condition="the customer greets")
    session = make_session(agent=agent)
    studio.ask(session, "Hello", matches("G1"), responds("R1", "G1"))
    studio.ask(session, "What is the weather?", matches(), responds(""))
    studio.same_again(session)


def test_bare_verdicts_with_probabilities_explained_afterwards(
    studio: Studio, session: Session
) -> None:
    studio.tools.functions["find_parcel"] = in_lyon
    script = [
        scores("G1", 0.9),
        scores("G2", 0.1),
        infers("find_parcel", {"number": said("P-7")}),
        scores("G2", 0.3),
        replies("It is in Lyon."),
        explains("G1", "They ask where it is."),
        explains("G2", "It is on time."),
    ]
    studio.answers(*script, judging_style=JudgingStyle.SCORED)
    studio.run(send_message(session, text="Where is P-7?", enqueue=False))
    studio.same_again(session)


def test_an_argument_from_an_earlier_result_and_one_that_nobody_said(
    studio: Studio, session: Session
) -> None:
    studio.tools.functions["find_parcel"] = in_lyon
    studio.ask(session, "Where is P-7?", *finds())
    studio.ask(
        session,
        "And the other one?",
        matches("G1"),
        infers("find_parcel", {"number": known("Lyon", "find_parcel.in")}, {"number": inferred(8)}),
        matches(),
        replies("I do not know."),
    )
    studio.same_again(session)


# --- what goes wrong


def problem(words: str, kind: ModelErrorKind = ModelErrorKind.SERVER) -> ModelError:
    return ModelError(words, kind=kind, retryable=True)


def test_a_turn_that_failed_because_the_model_did(studio: Studio, session: Session) -> None:
    failing = [matches(), Expected(question="ComposeReply", answer=problem("It is down."))]
    studio.ask(session, "Hello", *failing, state="FAILED")
    studio.ask(session, "Hello?", matches(), replies("Hello!"))
    studio.same_again(session, free=False)  # what runs free ends with a failed turn


def test_a_turn_that_failed_otherwise_at_each_try(studio: Studio, session: Session) -> None:
    tries = [
        Expected(question="MatchGuidelines", answer=problem("It is busy.")),
        Expected(question="MatchGuidelines", answer=problem("It is down.")),
    ]
    studio.model = RetryingModel(ScriptedModel(*tries), attempts=2, first_pause=0)
    studio.run(send_message(session, text="Hello", enqueue=False), "FAILED")
    studio.ask(session, "Hello?", matches(), replies("Hello!"))
    studio.same_again(session, free=False)


def test_a_question_that_was_answered_at_the_second_try(studio: Studio, session: Session) -> None:
    script = [
        Expected(question="MatchGuidelines", answer=problem("It is busy.")),
        matches(),
        Expected(question="ComposeReply", answer=problem("Cut.", ModelErrorKind.TRUNCATED)),
        replies("Hello!"),
    ]
    studio.model = RetryingModel(ScriptedModel(*script), attempts=2, first_pause=0)
    studio.run(send_message(session, text="Hello", enqueue=False))
    studio.same_again(session)


def test_a_failed_turn_that_was_run_again(studio: Studio, session: Session) -> None:
    studio.tools.functions["find_parcel"] = in_lyon
    failing = [*finds()[:-1], Expected(question="ComposeReply", answer=problem("It is down."))]
    turn = studio.ask(session, "Where is P-7?", *failing, state="FAILED")
    studio.answers(replies("P-7 is in Lyon.", "G1", "G2"))
    studio.run(retry_turn(turn, enqueue=False))
    studio.ask(session, "Thanks", matches(), replies("You are welcome."))
    assert len(studio.tools.called) == 1
    replay = studio.replay(session)
    assert {cell.verdict for cell in replay.turns.all()} == {"same"}


def test_a_batch_that_left_a_guideline_out(studio: Studio, session: Session) -> None:
    one = {"guideline": "G1", "because": "No.", "applies": False}
    other = {"guideline": "G2", "because": "No.", "applies": False}
    studio.ask(
        session,
        "Hello",
        Expected(question="MatchGuidelines", answer={"newest": "", "judgements": [one]}),
        Expected(question="MatchGuidelines", answer={"newest": "", "judgements": [other]}),
        replies("Hello!"),
    )
    studio.same_again(session)


def test_a_guess_that_nobody_waited_for(studio: Studio, session: Session) -> None:
    """The tool's question is asked beside matching, and given up when its guideline does not apply."""

    class Slow(ScriptedModel):
        async def stream(self, request: Any) -> Any:
            if request.question.name == "InferToolCalls":
                self.requests.append(request)
                await asyncio.sleep(30)
            async for item in super().stream(request):
                yield item

    studio.model = Slow(matches(), replies("Which one?"))
    studio.run(send_message(session, text="Where is a parcel, the customer asks", enqueue=False))
    assert "InferToolCalls find_parcel" in studio.model.questions()
    studio.same_again(session)


# --- what cannot be frozen


def test_a_tool_that_is_gone_by_now_is_not_needed(studio: Studio, session: Session) -> None:
    studio.tools.functions["find_parcel"] = in_lyon
    turn = studio.ask(session, "Where is P-7?", *finds())
    Tool.objects.all().delete()
    assert turn.version is not None
    turn.version.number = 1
    turn.version.published_at = timezone.now()
    turn.version.save()
    replay = studio.replay(session, against=1)
    assert [(cell.verdict, cell.reason) for cell in replay.turns.all()] == [("same", "")]


# --- brought from elsewhere


def test_an_imported_session_is_played_again_like_the_original(
    studio: Studio, session: Session
) -> None:
    studio.tools.functions["find_parcel"] = in_lyon
    studio.ask(session, "Where is P-7?", *finds())
    send_message(session, text="This is Ann.", source="operator")
    failing = [matches(), Expected(question="ComposeReply", answer=problem("It is down."))]
    studio.ask(session, "Thanks", *failing, state="FAILED")
    branch = branch_from(session, 1)
    studio.ask(branch, "Why?", matches("G1"), infers("find_parcel"), replies("Snow."))
    for tree in (True, False):
        imported = import_session(export_session(branch, by="x", tree=tree).text)
        for brought in imported.sessions:
            replay = studio.replay(brought)
            assert {cell.verdict for cell in replay.turns.all()} == {"same"}
    assert len(studio.tools.called) == 1


def test_an_imported_session_of_a_bank_is_played_again(studio: Studio, bank: Session) -> None:
    call = wants_to_send(studio, bank)
    studio.answers(matches(), replies("Done."))
    studio.run(answer_confirmation(bank, call, Answer.CONFIRMED, enqueue=False))
    wants_to_send(studio, bank, "Send 50 to Ann again")
    brought = import_session(export_session(bank, by="x").text).session
    replay = studio.replay(brought)
    assert [cell.verdict for cell in replay.turns.all()] == ["same"] * 3


def test_of_a_redacted_session_it_is_said_that_it_cannot_be_frozen(
    studio: Studio, session: Session
) -> None:
    studio.ask(session, "I am at ann@example.org", matches(), replies("Hello!"))
    studio.ask(session, "Thanks", matches(), replies("You are welcome."))
    text = export_session(session, by="x", rules=Rules(emails=True)).text
    brought = import_session(text).session
    found = studio.replay(brought).turns.values_list("number", "verdict", "reason")
    for number, (at, verdict, reason) in enumerate(found.order_by("number"), start=1):
        assert (at, verdict) == (number, "impossible")
        assert "redacted when it was exported" in reason
        assert "Replay it with the live model" in reason
