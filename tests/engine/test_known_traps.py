"""Traps that systems before this one fell into (ENGINE.md §6): one test for each, every one a whole turn."""

import asyncio
import threading
from typing import Annotated, Any

import pytest

from engine.errors import ModelError, ModelErrorKind, ToolError, ToolErrorKind, ToolFailure
from engine.events import (
    BriefingEvent,
    Event,
    MessageEvent,
    Mode,
    ModeEvent,
    ToolFinishedEvent,
    event_adapter,
)
from engine.kit import Kit, Models
from engine.model.base import ChatModel, ModelRequest
from engine.model.retrying import RetryingModel
from engine.outbox import Emission
from engine.spec import Example, RelationKind, Relationship, ToolParameter
from engine.state import Checkpoint, Limits, Step
from engine.testing import (
    Expected,
    ScriptedModel,
    ScriptedTools,
    chooses,
    entries,
    infers,
    matches,
    play,
    replies,
    said,
    scripted_kit,
)
from engine.tools.base import Control, ToolContext, ToolResult, ToolService
from engine.tools.function import FunctionToolService
from engine.tools.function import tool as tool_function
from engine.tools.parameters import ToolParameterOptions
from engine.trail import (
    CallState,
    DecisionState,
    GuidelineMatch,
    MatchState,
    ModelCall,
    ToolCall,
    ToolDecision,
    ToolInsight,
)
from tests.engine.agents import agent, guideline, parameter, tool, turn_of

NO_GUESS = Limits(likely_tools=0)
LONGEST_WAIT = 10.0  # seconds; only a turn that is in the trap waits at all


def kit_of(model: ChatModel, tools: ToolService, customer: str = "c") -> Kit:
    context = ToolContext(agent_id="a", session_id=customer, turn_id="t", customer_id=customer)
    return Kit(models=Models.same(model), tools=tools, context=context)


def prompt(request: ModelRequest) -> str:
    return "".join(message.content for message in request.messages)


def matched(emitted: list[Emission]) -> set[str]:
    last = {match.guideline: match.state for match in entries(emitted, GuidelineMatch)}
    return {uid for uid, state in last.items() if state is MatchState.MATCHED}


def briefing(emitted: list[Emission]) -> dict[str, Any]:
    (event,) = entries(emitted, BriefingEvent)
    content: dict[str, Any] = event.content
    return content


async def test_a_high_number_orders_the_reply_and_silences_no_other_topic() -> None:
    """Numeric priority that lets one high guideline silence all others of unrelated topics."""
    spec = agent(
        guideline("hours", "asks for the hours", "say them", tools=("hours",)),
        guideline("renew", "wants to renew a loan", "renew it", tools=("loans",)),
        guideline("strike", "asks about the strike", "say sorry", priority=1_000),
        tools=[tool("hours"), tool("loans")],
    )
    model = ScriptedModel(matches("G1", "G2", "G3"), replies("Well."))
    tools = ScriptedTools({"hours": lambda _a, _c: "9–5", "loans": lambda _a, _c: 3})

    emitted = await play(turn_of(spec, "Hours, renewal, strike?"), scripted_kit(model, tools))

    assert matched(emitted) == {"hours", "renew", "strike"}
    assert sorted(name for name, _arguments in tools.called) == ["hours", "loans"]
    (event,) = entries(emitted, BriefingEvent)
    assert event.guidelines == ("strike", "hours", "renew")


async def test_after_the_better_of_overlapping_tools_guidelines_are_judged_again() -> None:
    """Overlapping tools that never trigger re-evaluation."""
    spec = agent(
        guideline("find", "asks for a book", "find it", tools=("by_title", "by_subject")),
        guideline("out", "the book is out", "offer a place", tools=("queue",),
                  reevaluate_after=("by_title",)),
        tools=[tool("by_title", parameter("title")), tool("by_subject", parameter("subject")),
               tool("queue")],
        overlaps=(("by_title", "by_subject"),),
    )  # fmt: skip
    model = ScriptedModel(
        matches("G1"), chooses("by_title"), infers("by_title", {"title": said("Emma")}),
        matches("G2"), replies("It is out; you would be second."),
    )  # fmt: skip
    tools = ScriptedTools({"by_title": lambda _a, _c: "out", "queue": lambda _a, _c: 1})

    emitted = await play(
        turn_of(spec, "Have you got Emma?", limits=NO_GUESS), scripted_kit(model, tools)
    )

    model.assert_used_up()
    assert [name for name, _arguments in tools.called] == ["by_title", "queue"]
    assert matched(emitted) == {"find", "out"}


def _listed(name: str) -> ToolParameter:
    return ToolParameter(name=name, schema={"type": "string", "enum": ["laptops", "monitors"]})


def _several(name: str) -> ToolParameter:
    items = {"type": "string", "enum": ["laptops", "monitors"]}
    return ToolParameter(name=name, schema={"type": "array", "items": items})


def _provided(name: str) -> ToolParameter:
    return parameter(name, provides_choices=True)


@pytest.mark.parametrize(
    ("wanted", "value"),
    [
        (_listed("category"), "phones"),
        (_several("category"), ["laptops", "phones"]),
        (_provided("category"), "phones"),
    ],
    ids=["enum", "list of an enum", "choices of this turn"],
)
async def test_a_value_outside_its_choices_does_not_run_though_the_model_approves(
    wanted: ToolParameter, value: Any
) -> None:
    """Enum and choice values outside the list approved to run."""
    spec = agent(
        guideline("s", "asks for products", "show", tools=("show",)), tools=[tool("show", wanted)]
    )
    model = ScriptedModel(
        matches("G1"), infers("show", {"category": said(value, "phones")}), replies("Which?")
    )
    tools = ScriptedTools(
        {"show": lambda _a, _c: "never"}, provided={"show": {"category": ["laptops", "monitors"]}}
    )

    emitted = await play(turn_of(spec, "Show me phones"), scripted_kit(model, tools))

    assert tools.called == []
    assert entries(emitted, ToolCall) == []
    (decision,) = entries(emitted, ToolDecision)
    assert decision.state is DecisionState.CANNOT_RUN
    assert decision.invalid == ("category",)
    (wrong,) = briefing(emitted)["ask to correct"]
    assert wrong["given"] == value
    assert wrong["choices"] == ["laptops", "monitors"]


@pytest.mark.parametrize("answered", ["NOT_NEEDED", "DATA_ALREADY_IN_CONTEXT"])
async def test_what_does_not_apply_is_filed_as_not_needed(answered: str) -> None:
    """ "Not applicable" filed as "already in context": no call of the tool has ever given anything."""
    spec = agent(
        guideline("f", "asks for fees", "say", tools=("fees",)),
        tools=[tool("fees", parameter("kind"))],
    )
    other = ToolFinishedEvent(call="c0", tool="hours", arguments={}, data="9–5")
    model = ScriptedModel(
        matches("G1"),
        infers("fees", decision=DecisionState(answered), because="It has nothing to add."),
        replies("There are none."),
    )
    state = turn_of(spec, "Are you open?", other, "And the fees of nothing at all?")

    emitted = await play(state, scripted_kit(model))

    (decision,) = entries(emitted, ToolDecision)
    assert decision.state is DecisionState.NOT_NEEDED
    assert decision.because == "It has nothing to add."
    assert decision.call == ""


@pytest.mark.parametrize(
    "calls",
    [
        [],
        [{}],
        [{"title": None, "copies": None}],
        [{"copies": said(2)}],
        [{"title": said(None, "nothing"), "copies": said(2)}],
    ],
    ids=["no call", "no argument", "all null", "required one absent", "required one null inside"],
)
async def test_a_call_does_not_run_without_a_required_argument_though_the_model_approves(
    calls: list[dict[str, Any]],
) -> None:
    """A call approved although the model left a required argument out."""
    order = tool("order", parameter("title"), parameter("copies", "integer", required=False))
    spec = agent(guideline("o", "wants a book", "order it", tools=("order",)), tools=[order])
    model = ScriptedModel(matches("G1"), infers("order", *calls), replies("Which book?"))
    tools = ScriptedTools({"order": lambda _a, _c: "ordered"})

    emitted = await play(turn_of(spec, "Order 2, please"), scripted_kit(model, tools))

    assert tools.called == []
    (decision,) = entries(emitted, ToolDecision)
    assert decision.state is DecisionState.CANNOT_RUN
    assert decision.missing == ("title",)
    assert briefing(emitted)["ask for"] == [{"what": "title", "needed for": "order"}]


def _accounts_of(context: ToolContext) -> list[str]:
    return [f"{context.customer_id}-checking", f"{context.customer_id}-savings"]


async def test_each_session_has_the_choices_of_its_own_customer_and_no_others() -> None:
    """Choice lists leaking between sessions: side by side, and one after the other."""
    served: list[tuple[str, str]] = []

    @tool_function
    def open_account(
        context: ToolContext,
        account: Annotated[str, ToolParameterOptions(choice_provider=_accounts_of)],
    ) -> str:
        served.append((context.customer_id, account))
        return account

    spec = agent(
        guideline("o", "wants an account", "open it", tools=("open_account",)),
        tools=[open_account.spec],
    )
    service = FunctionToolService([open_account])

    async def a_session(customer: str, wanted: str) -> tuple[list[Emission], ScriptedModel]:
        model = ScriptedModel(
            matches("G1"), infers("open_account", {"account": said(wanted)}), replies("Well.")
        )
        state = turn_of(spec, f"Open {wanted}", limits=NO_GUESS)
        return await play(state, kit_of(model, service, customer)), model

    (ann, of_ann), (ben, of_ben) = await asyncio.gather(
        a_session("ann", "ann-savings"), a_session("ben", "ann-savings")
    )
    eve, of_eve = await a_session("eve", "ben-savings")

    assert served == [("ann", "ann-savings")]
    assert [entries(e, ToolDecision)[0].state for e in (ann, ben, eve)] == [
        DecisionState.NEEDS_TO_RUN,
        DecisionState.CANNOT_RUN,
        DecisionState.CANNOT_RUN,
    ]
    for customer, model in (("ann", of_ann), ("ben", of_ben), ("eve", of_eve)):
        asked = next(r for r in model.requests if r.question.name == "InferToolCalls")
        offered = {name for name in ("ann", "ben", "eve") if f"{name}-checking" in prompt(asked)}
        assert offered == {customer}
    (insight,) = entries(ben, ToolInsight)
    assert insight.choices == ("ben-checking", "ben-savings")


@pytest.mark.parametrize(
    "text", ["{", "}", "{0}", "{condition}", "{{x}}", "{a[b]!r:>{w}}", "%s %(name)s %", "${HOME}"]
)
async def test_braces_are_text_like_any_other_wherever_somebody_writes_them(text: str) -> None:
    """Braces in a guideline breaking the prompt; so too in tools, terms, messages and results."""
    look = tool("look", parameter("what", description=text), description=f"Looks up {text}.")
    spec = agent(
        guideline("g", f"asks about {text}", f"say {text}", tools=("look",),
                  examples=(Example(text=f"Is it {text}?"),)),
        tools=[look],
        description=f"Knows {text}.",
    )  # fmt: skip
    model = ScriptedModel(
        matches("G1"), infers("look", {"what": said(text)}), replies(f"It is {text}.")
    )
    tools = ScriptedTools({"look": lambda a, _c: {"found": a["what"]}})

    emitted = await play(turn_of(spec, f"What is {text}"), scripted_kit(model, tools))

    assert tools.called == [("look", {"what": text})]
    assert entries(emitted, MessageEvent)[-1].text == f"It is {text}."
    asked = {request.question.name: prompt(request) for request in model.requests}
    written = {
        "MatchGuidelines": (f'"asks about {text}"', f'"Is it {text}?"'),
        "InferToolCalls": (f"Looks up {text}.", f'"What is {text}"'),
        "ComposeReply": (f'"say {text}"', f'"found": "{text}"'),
    }
    assert asked.keys() == written.keys()
    for question, texts in written.items():
        assert [t for t in (f"Knows {text}.", *texts) if t not in asked[question]] == []


async def test_a_model_that_fails_once_is_asked_again_and_the_turn_goes_on() -> None:
    """A retry that never runs because the `try` encloses the loop."""

    def overloaded(question: str) -> Expected:
        error = ModelError("Overloaded.", kind=ModelErrorKind.SERVER, retryable=True)
        return Expected(question=question, answer=error)

    async def at_once(_seconds: float) -> None:
        return None

    spec = agent(guideline("g", "the customer greets", "greet"))
    model = ScriptedModel(
        overloaded("MatchGuidelines"), overloaded("MatchGuidelines"), matches("G1"),
        overloaded("ComposeReply"), replies("Hello!"),
    )  # fmt: skip
    retrying = RetryingModel(model, attempts=3, sleep=at_once)

    emitted = await play(turn_of(spec, "Hello"), scripted_kit(retrying))

    model.assert_used_up()
    assert entries(emitted, MessageEvent)[-1].text == "Hello!"
    attempts = [(c.question, c.attempt, bool(c.error)) for c in entries(emitted, ModelCall)]
    assert attempts == [
        ("MatchGuidelines", 1, True),
        ("MatchGuidelines", 2, True),
        ("MatchGuidelines", 3, False),
        ("ComposeReply", 1, True),
        ("ComposeReply", 2, False),
    ]


async def test_a_session_with_slow_tools_delays_no_other() -> None:
    """One slow session delaying all others: they share a loop, and the tools of one block until the other is done."""
    begun, other_is_done = threading.Barrier(3), threading.Event()

    @tool_function(timeout=2 * LONGEST_WAIT)
    def slow_sync(context: ToolContext) -> bool:
        begun.wait(LONGEST_WAIT)
        return other_is_done.wait(LONGEST_WAIT)

    @tool_function(timeout=2 * LONGEST_WAIT)
    async def slow_async(context: ToolContext) -> bool:
        await asyncio.to_thread(begun.wait, LONGEST_WAIT)
        return await asyncio.to_thread(other_is_done.wait, LONGEST_WAIT)

    @tool_function
    async def quick(context: ToolContext) -> str:
        return "9–5"

    service = FunctionToolService([slow_sync, slow_async, quick])
    known = [function.spec for function in service.functions]
    slow = agent(guideline("s", "asks", "look", tools=("slow_sync", "slow_async")), tools=known)
    fast = agent(guideline("f", "asks", "look", tools=("quick",)), tools=known)

    async def a_session(spec: Any, customer: str) -> list[Emission]:
        kit = kit_of(ScriptedModel(matches("G1"), replies("Well.")), service, customer)
        return await play(turn_of(spec, "Look!"), kit)

    waiting = asyncio.create_task(a_session(slow, "slow"))
    await asyncio.to_thread(begun.wait, LONGEST_WAIT)
    emitted = await a_session(fast, "fast")
    assert emitted[-1] == Checkpoint(step=Step.FINISHED)
    other_is_done.set()

    results = {event.tool: event.data for event in entries(await waiting, ToolFinishedEvent)}
    assert results == {"slow_sync": True, "slow_async": True}


async def test_nothing_that_a_customer_can_read_holds_a_traceback() -> None:
    """A traceback in a customer-readable event."""

    @tool_function
    def sync_one(context: ToolContext) -> None:
        raise RuntimeError("cannot open sqlite:///secret.db")

    @tool_function
    async def async_one(context: ToolContext) -> None:
        raise ToolFailure(
            ToolError(
                kind=ToolErrorKind.UNAVAILABLE,
                public="the vault is closed",
                detail="Traceback of sqlite:///secret.db",
            )
        )

    service = FunctionToolService([sync_one, async_one])
    spec = agent(
        guideline("g", "asks", "look", tools=("sync_one", "async_one")),
        tools=[function.spec for function in service.functions],
    )
    model = ScriptedModel(matches("G1"), replies("I could not look."))

    emitted = await play(turn_of(spec, "Look!"), kit_of(model, service))

    kinds = Event.__args__  # type: ignore[attr-defined]
    readable = [event_adapter().dump_json(item).decode() for item in entries(emitted, kinds)]
    assert len([event for event in readable if '"kind":"tool.finished"' in event]) == 2
    for inner in ("Traceback", "RuntimeError", "secret.db", "File ", ".py"):
        assert [event for event in readable if inner in event] == []
        assert inner not in prompt(model.requests[-1])
    failed = [c for c in entries(emitted, ToolCall) if c.state is CallState.FAILED]
    assert all(call.error and "secret.db" in call.error.detail for call in failed)
    assert len(failed) == 2


def _raise(_arguments: Any, _context: Any) -> None:
    raise RuntimeError("boom")


def _refuse(_arguments: Any, _context: Any) -> None:
    error = ToolError(kind=ToolErrorKind.NOT_ALLOWED, public="the card is blocked", detail="E-17")
    raise ToolFailure(error)


async def _hang(_arguments: Any, _context: Any) -> None:
    await asyncio.sleep(60)


@pytest.mark.parametrize(
    ("function", "why"),
    [
        (_raise, "it failed"),
        (_refuse, "the card is blocked"),
        (_hang, "it took too long"),
        (lambda _a, _c: {1, 2}, "its answer could not be read"),
        (lambda _a, _c: "x" * 2_000_000, "its answer was too large"),
    ],
    ids=["raises", "refuses", "hangs", "bad output", "too large"],
)
async def test_the_writer_of_the_reply_is_told_why_a_tool_failed(function: Any, why: str) -> None:
    """The agent never learning why a tool failed."""
    spec = agent(guideline("g", "asks", "look", tools=("look",)), tools=[tool("look", timeout=0.1)])
    model = ScriptedModel(matches("G1"), replies("I could not look."))

    emitted = await play(
        turn_of(spec, "Look!"), scripted_kit(model, ScriptedTools({"look": function}))
    )

    assert briefing(emitted)["failed"] == [{"tool": "look", "because": why}]
    told = prompt(model.requests[-1])
    assert f'{{"tool": "look", "arguments": {{}}, "failed": "{why}"}}' in told
    assert "E-17" not in told
    assert entries(emitted, MessageEvent)[-1].text == "I could not look."


@pytest.mark.parametrize("later", [None, Mode.AUTO])
async def test_a_later_result_takes_nothing_back_from_a_hand_over(later: Mode | None) -> None:
    """A later result resetting manual mode."""
    spec = agent(
        guideline("a", "wants a person", "hand over", tools=("call_a_person",)),
        guideline("b", "a person was called", "say the hours", tools=("hours",),
                  reevaluate_after=("call_a_person",)),
        tools=[tool("call_a_person"), tool("hours")],
    )  # fmt: skip
    model = ScriptedModel(matches("G1"), matches("G2"), replies("A colleague takes over."))
    tools = ScriptedTools(
        {
            "call_a_person": lambda _a, _c: ToolResult(
                data="called", control=Control(mode=Mode.MANUAL)
            ),
            "hours": lambda _a, _c: ToolResult(data="9–5", control=Control(mode=later)),
        }
    )

    emitted = await play(turn_of(spec, "A person, please"), scripted_kit(model, tools))

    assert [name for name, _arguments in tools.called] == ["call_a_person", "hours"]
    shown = [item for item in emitted if isinstance(item, MessageEvent | ModeEvent)]
    assert shown == [
        MessageEvent(source=shown[0].source, text="A colleague takes over.", model="scripted"),
        ModeEvent(mode=Mode.MANUAL, tool="call_a_person"),
    ]


async def test_everything_that_was_decided_is_on_the_trail() -> None:
    """Decisions computed and thrown away: what said no, lost, was dropped, or was asked for nothing counts too."""
    title = parameter("title")
    spec = agent(
        guideline("find", "asks for a book", "find it", tools=("by_title", "by_words")),
        guideline("order", "wants copies of a book", "order them", tools=("order",)),
        guideline("shop", "wants to buy a book", "name a shop"),
        guideline("fines", "asks about fines for lost books", "explain", tools=("fines",)),
        guideline("off", "the customer swears", "stay calm", enabled=False),
        guideline("tone", action="be brief"),
        tools=[tool("by_title", title), tool("by_words", parameter("words")),
               tool("order", title, parameter("copies", "integer")), tool("fines", title)],
        overlaps=(("by_title", "by_words"),),
        relationships=(
            Relationship(uid="r", kind=RelationKind.HAS_PRIORITY_OVER, source="find",
                         targets=("shop",)),
        ),
    )  # fmt: skip
    both = ({"title": said("Emma"), "copies": said(2)}, {"title": said("Ivanhoe"), "copies": None})
    model = ScriptedModel(
        matches("G1", "G2", "G3", because="It is asked."),
        infers("fines", {"title": said("Emma")}),  # beside matching, for nothing
        chooses("by_title", "The title is known."),
        infers("by_title", decision=DecisionState.NOT_NEEDED, because="The order finds it."),
        infers("order", *both),
        replies("How many of Ivanhoe?"),
    )
    tools = ScriptedTools({"order": lambda a, _c: a})
    said_now = "What are the fines for lost books? And 2 of Emma, and copies of Ivanhoe"

    emitted = await play(
        turn_of(spec, said_now, limits=Limits(likely_tools=1)), scripted_kit(model, tools)
    )

    model.assert_used_up()
    last = {match.guideline: match for match in entries(emitted, GuidelineMatch)}
    assert {uid: match.state for uid, match in last.items()} == {
        "find": MatchState.MATCHED,
        "order": MatchState.MATCHED,
        "shop": MatchState.DROPPED,
        "fines": MatchState.NOT_MATCHED,
        "off": MatchState.NOT_EVALUATED,
        "tone": MatchState.MATCHED,
    }
    assert last["shop"].dropped_by == "find"
    assert all(match.because for match in last.values())

    decided = [(d.tool, d.state, d.missing) for d in entries(emitted, ToolDecision)]
    assert sorted(decided) == [
        ("by_title", DecisionState.NOT_NEEDED, ()),
        ("by_words", DecisionState.NOT_NEEDED, ()),
        ("order", DecisionState.CANNOT_RUN, ("copies",)),
        ("order", DecisionState.NEEDS_TO_RUN, ()),
    ]
    why = {d.tool: d.because for d in entries(emitted, ToolDecision)}
    assert why["by_words"] == "by_title serves better: The title is known."
    assert why["by_title"] == "The order finds it."
    assert tools.called == [("order", {"title": "Emma", "copies": 2})]

    asked = sorted((c.question, c.subject, c.used) for c in entries(emitted, ModelCall))
    assert [(question, subject) for question, subject, _used in asked] == sorted(
        (request.question.name, request.subject) for request in model.requests
    )
    assert [subject for _question, subject, used in asked if not used] == ["fines"]
