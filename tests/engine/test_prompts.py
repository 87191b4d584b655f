"""Prompts carry foreign text as data, and each begins with the whole prompt of the turn before (DESIGN.md §6)."""

import json
from collections import defaultdict
from datetime import UTC, datetime
from itertools import pairwise
from typing import Any, get_args

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from engine import prompts
from engine.customer_brief import CustomerBrief
from engine.errors import ToolError, ToolErrorKind
from engine.events import (
    Answer,
    BriefingEvent,
    ConfirmationAnsweredEvent,
    ConfirmationAskedEvent,
    Event,
    MessageEvent,
    MessagePartEvent,
    Phase,
    RecordedEvent,
    Source,
    StatusEvent,
    ToolFinishedEvent,
    ToolStartedEvent,
)
from engine.model.base import (
    ChooseResponse,
    ChooseTool,
    ComposeReply,
    ExplainMatch,
    InferToolCalls,
    JudgeCustomer,
    JudgeReply,
    JudgeStatement,
    MatchGuidelines,
    ModelRequest,
    PlayCustomer,
    Question,
    ReadConfirmation,
    Revision,
    ScoreGuideline,
    Situation,
)
from engine.model.dialect import is_strict
from engine.prompts.infer_tool_calls import answer_schema
from engine.prompts.transcript import MAX_RESULT_CHARACTERS, WINDOW_STEP, WINDOW_TURNS, transcript
from engine.spec import (
    Agent,
    CannedResponse,
    Example,
    ParameterSource,
    RelationKind,
    Relationship,
    Term,
    Tool,
    ToolParameter,
)
from engine.testing import ScriptedTools
from tests.engine.agents import agent, guideline, history, parameter, said_by, tool
from tests.engine.sessions import HOSTILE, AnsweringModel, Conversation, Generated, checked

ANY_TEXT = st.text(max_size=60) | st.sampled_from(HOSTILE)


def an_agent(text: str) -> Agent:
    """An agent with this text in every place that an author, a developer or a tool fills."""
    return Agent(
        slug="a",
        name=text,
        description=text,
        tone=text,
        guidelines=(
            guideline("g1", text, text, tools=("t",), examples=(Example(text=text),)),
            guideline("g2", "c", examples=(Example(text=text, matches=False),)),
        ),
        tools=(a_tool(text),),
        terms=(Term(uid="w", name=text, description=text, synonyms=(text, "other")),),
        canned_responses=(CannedResponse(uid="r", text=text),),
        relationships=(
            Relationship(uid="d", kind=RelationKind.DISAMBIGUATES, source="g1", targets=("g2",)),
        ),
        no_match=text,
    )


def a_tool(text: str) -> Tool:
    schema = {"type": "string", "enum": [text, "b"], "description": text}
    spoken = ToolParameter(name="p", schema=schema, description=text, examples=(text,))
    return tool("t", spoken, description=text)


def a_past(text: str) -> tuple[RecordedEvent, ...]:
    """A session with this text in every place that a customer, a person, a model or a tool fills."""
    error = ToolError(kind=ToolErrorKind.EXCEPTION, public=text, detail="never to be seen")
    return history(
        text,
        BriefingEvent(guidelines=("g1",), content={"guidelines": [{"then": text}]}),
        a_pending(text),
        ConfirmationAnsweredEvent(call="p", tool="t", answer=Answer.DECLINED, because=text),
        ToolFinishedEvent(call="c", tool="t", arguments={"p": text}, data={text: [text]}),
        ToolFinishedEvent(call="d", tool="t", arguments={}, error=error),
        said_by(Source.AGENT, text),
        said_by(Source.OPERATOR, text),
        text,
    )


def a_pending(text: str) -> ConfirmationAskedEvent:
    """A call that awaits the customer's word."""
    return ConfirmationAskedEvent(
        call="p",
        tool="t",
        arguments={"p": text},
        guidelines=("g1",),
        labels={"p": text},
        asked_at=datetime(2026, 1, 5, tzinfo=UTC),
    )


def questions(spec: Agent, past: tuple[RecordedEvent, ...], **options: Any) -> list[Question]:
    situation = Situation(agent=spec, history=past, turn=past[-1].turn, **options)
    first, text = spec.guidelines[0], spec.name
    revision = Revision(reply=text, problems=(("G1", text),))
    brief = CustomerBrief(persona=text, goal=text, stop=text)
    return [
        MatchGuidelines(situation=situation, guidelines=spec.guidelines),
        ScoreGuideline(situation=situation, guideline=first),
        ExplainMatch(situation=situation, guideline=first, applies=True),
        ReadConfirmation(situation=situation, pending=(a_pending(text),)),
        ChooseTool(situation=situation, tools=spec.tools, guidelines=spec.guidelines),
        InferToolCalls(situation=situation, tool=spec.tools[0], guidelines=spec.guidelines),
        ComposeReply(situation=situation, guidelines=spec.guidelines),
        ComposeReply(
            situation=situation, guidelines=spec.guidelines, style=(text,), revision=revision
        ),
        ChooseResponse(situation=situation, guidelines=spec.guidelines, responses=(text,)),
        JudgeReply(situation=situation, guidelines=spec.guidelines, reply=text),
        JudgeStatement(situation=situation, reply=text, statement=text),
        PlayCustomer(situation=situation, brief=brief),
        JudgeCustomer(situation=situation, brief=brief, ended=text),
    ]


def lines(request: ModelRequest) -> list[str]:
    """Every line of a prompt, by the most generous notion of what ends a line."""
    return [line for message in request.messages for line in message.content.splitlines()]


def told(past: tuple[RecordedEvent, ...], turn: int) -> tuple[str, ...]:
    """The transcript without briefings."""
    situation = Situation(agent=agent(), history=past, turn=turn)
    return transcript(situation, lambda _event: None)


class TestForeignTextIsData:
    def test_every_question_that_there_is_is_asked_here(self) -> None:
        asked = {type(question) for question in questions(an_agent("x"), a_past("x"))}
        assert asked == set(get_args(Question))

    def test_a_database_may_give_what_was_recorded_back_in_another_order(self) -> None:
        """PostgreSQL does; every later prompt, and so every replay, would read otherwise."""

        def outcome(*names: str) -> ToolFinishedEvent:
            inner = {name: {key: [name, key] for key in names} for name in names}
            return ToolFinishedEvent(call="c", tool="t", arguments=inner, data=[inner])

        def briefing(*names: str) -> BriefingEvent:
            return BriefingEvent(guidelines=("g1",), content={name: [{name: 1}] for name in names})

        def asked(*names: str) -> list[str]:
            past = history("Hello", briefing(*names), outcome(*names), "And now?")
            given = questions(an_agent("x"), past, variables=dict.fromkeys(names, 1))
            return [prompts.build(question).request_key for question in given]

        assert asked("guidelines", "b", "a") == asked("a", "b", "guidelines")

    def test_the_versions_of_what_a_turn_asks_are_those_of_its_prompts(self) -> None:
        """Otherwise a replay would not notice that a prompt was reworded since, or would find it so in vain."""
        outside = {"JudgeStatement", "PlayCustomer", "JudgeCustomer"}
        asked = questions(an_agent("x"), a_past("x"))
        worded = {question.name: prompts.build(question).prompt_version for question in asked}
        assert {k: v for k, v in worded.items() if k not in outside} == prompts.VERSIONS

    @given(ANY_TEXT.filter(bool))  # what is empty is left out of its line
    @settings(max_examples=80)
    def test_no_text_can_add_or_close_a_line(self, text: str) -> None:
        """The prompt of any text has the very lines of the prompt of a harmless one, but for the text in them."""
        plain = questions(an_agent("x"), a_past("x"), variables={"v": "x"})
        given = questions(an_agent(text), a_past(text), variables={"v": text})
        for harmless, hostile in zip(
            map(prompts.build, plain), map(prompts.build, given), strict=True
        ):
            expected, found = lines(harmless), lines(hostile)
            assert len(found) == len(expected)
            for one, other in zip(expected, found, strict=True):
                assert _shape(other) == _shape(one)

    @given(ANY_TEXT)
    @settings(max_examples=40)
    def test_every_text_is_read_back_from_its_line_as_it_was(self, text: str) -> None:
        past = history(text, said_by(Source.AGENT, text))
        spoken = "".join(told(past, 1))
        _title, first, second = spoken.splitlines()
        assert json.loads(first) == {"customer": text}
        assert json.loads(second) == {"agent": text}

    @pytest.mark.parametrize("text", HOSTILE)
    def test_every_prompt_can_be_sent_and_stored(self, text: str) -> None:
        for question in questions(an_agent(text), a_past(text), variables={"v": text}):
            for message in prompts.build(question).messages:
                assert "\x00" not in message.content
                message.content.encode()

    def test_braces_and_percent_signs_stay_what_they_are(self) -> None:
        text = "{action} {0} {{}} %s %(x)d ${HOME} {% if %}"
        for question in questions(an_agent(text), a_past(text)):
            request = prompts.build(question)
            # A customer is not told how the agent is described.
            if not isinstance(question, PlayCustomer | JudgeCustomer):
                assert json.dumps(text)[1:-1] in request.messages[0].content
            assert json.dumps(text)[1:-1] in request.messages[-1].content

    def test_an_error_is_told_by_its_public_words_alone(self) -> None:
        for question in questions(an_agent("x"), a_past("x")):
            assert "never to be seen" not in "".join(lines(prompts.build(question)))

    def test_a_long_result_is_shortened_and_says_so(self) -> None:
        data = ToolFinishedEvent(call="c", tool="t", arguments={}, data="y" * 20_000)
        (_title, part) = told(history("Hi", data), 1)
        assert len(part) < MAX_RESULT_CHARACTERS + 300
        assert "(20002 characters in all)" in part

    def test_what_is_only_for_screens_is_in_no_prompt(self) -> None:
        events: list[Event] = [
            StatusEvent(phase=Phase.RUNNING, text="looking"),
            MessagePartEvent(text="half"),
            ToolStartedEvent(call="c", tool="t", arguments={}),
            ToolFinishedEvent(call="c", tool="t", arguments={}, data=1, metadata={"chart": "blue"}),
        ]
        text = "".join(told(history("Hi", *events), 1))
        assert text.splitlines()[1:] == [
            '{"customer": "Hi"}',
            '{"tool": "t", "arguments": {}, "result": 1}',
        ]

    def test_a_reply_that_was_cut_off_says_so(self) -> None:
        cut = MessageEvent(source=Source.AGENT, text="I was", partial=True)
        text = "".join(told(history("Hi", cut), 1))
        assert '{"agent": "I was", "cut off": true}' in text

    def test_a_message_that_came_during_the_turn_before_follows_its_answer(self) -> None:
        events = [
            (1, 1, said_by(Source.CUSTOMER, "First")),
            (2, 2, said_by(Source.CUSTOMER, "Second")),
            (3, 1, said_by(Source.AGENT, "To the first")),
        ]
        past = [RecordedEvent(offset=o, turn=t, event=e) for o, t, e in events]
        text = "".join(told(past, 2))
        spoken = [next(iter(json.loads(line).values())) for line in text.splitlines()[1:]]
        assert spoken == ["First", "To the first", "Second"]


def _shape(line: str) -> Any:
    """A line without its foreign words: the keys of its JSON, or the line itself where it is ours."""
    try:
        value = json.loads(line)
    except ValueError:
        return line
    return sorted(value) if isinstance(value, dict) else type(value).__name__


class TestMatchGuidelines:
    def test_each_guideline_is_asked_by_its_label_with_condition_and_examples(self) -> None:
        examples = (Example(text="where is Emma?"), Example(text="hello", matches=False))
        spec = agent(guideline("a", "off"), guideline("b", "asks for a book", examples=examples))
        situation = Situation(agent=spec, history=history("Hi"), turn=1)
        request = prompts.build(
            MatchGuidelines(situation=situation, guidelines=spec.guidelines[1:])
        )
        assert (
            '{"id": "G2", "when": "asks for a book", "applies to": ["where is Emma?"], '
            '"does not apply to": ["hello"]}' in request.messages[0].content
        )
        assert '"id": "G1"' not in request.messages[0].content
        assert request.subject == "G2"

    def test_only_what_this_batch_judges_is_told_as_acted_on(self) -> None:
        spec = agent(guideline("a", "one"), guideline("b", "two"))
        past = history("Hi", BriefingEvent(guidelines=("b", "a", "gone")), "Again")
        situation = Situation(agent=spec, history=past, turn=2)
        for asked, told in (((0, 1), '{"acted on": ["G1", "G2"]}'), ((1,), '{"acted on": ["G2"]}')):
            batch = tuple(spec.guidelines[number] for number in asked)
            request = prompts.build(MatchGuidelines(situation=situation, guidelines=batch))
            assert told in request.messages[1].content


class TestInferToolCalls:
    def test_the_prompt_names_the_tool_its_parameters_and_what_it_is_there_for(self) -> None:
        title = ToolParameter(
            name="title", schema={"type": "string"}, description="of the book", examples=("Emma",)
        )
        shelf = parameter("shelf", required=False, source=ParameterSource.CONTEXT)
        who = parameter("who", source=ParameterSource.CUSTOMER)
        spec = agent(
            guideline("a", "asks for a book", "find it", tools=("find",)),
            guideline("b", action="always look", tools=("find",)),
            guideline("c", "not this one", tools=("find",), enabled=False),
            guideline("d", "of another tool", tools=("other",)),
            tools=[tool("find", title, shelf, who, consequential=True)],
        )
        situation = Situation(agent=spec, history=history("Emma?"), turn=1)
        question = InferToolCalls(
            situation=situation, tool=spec.tools[0], guidelines=spec.guidelines[:1]
        )
        system = prompts.build(question).messages[0].content
        assert '{"parameter": "title", "required": true, "means": "of the book"' in system
        assert '"comes from": "the context; it is not asked of the customer"' in system
        assert '"comes from": "the customer\'s own words only"' in system
        assert "It changes something." in system
        assert '{"guideline": "asks for a book", "action": "find it"}' in system
        assert '{"guideline": "always", "action": "always look"}' in system
        assert "not this one" not in system
        assert "of another tool" not in system

    @pytest.mark.parametrize(
        ("schema", "value"),
        [
            ({"type": "string", "enum": ["EUR", "USD"]}, "Galleons"),
            ({"enum": ["EUR", 5]}, "Galleons"),
            ({"type": "number", "exclusiveMinimum": 0}, -5),
            ({"type": "integer"}, 2.5),
            ({"type": "string", "format": "email"}, "ann at home"),
            ({"type": "string", "pattern": "^[A-Z]{3}$"}, "abc"),
            ({"anyOf": [{"type": "string", "maxLength": 2}, {"type": "null"}]}, "long"),
            ({"oneOf": [{"type": "string", "format": "date"}, {"type": "string", "format": "time"}]}, "x"),
            ({"type": "array", "items": {"type": "string", "enum": ["a"]}, "maxItems": 1}, ["a", "z"]),
        ],
    )  # fmt: skip
    def test_a_value_that_the_parameter_refuses_can_be_told(self, schema: Any, value: Any) -> None:
        """Else a customer who gives a wrong one would fail the turn, or make the model invent a right one."""
        parameter = ToolParameter(name="p", schema=schema)
        claim = {"evidence": "so", "source": "customer", "value": value}
        answer = {"because": "", "decision": "NEEDS_TO_RUN", "calls": [{"p": claim}]}
        assert Draft202012Validator(answer_schema(tool("t", parameter))).is_valid(answer)

    def test_a_value_of_another_type_cannot(self) -> None:
        schema = answer_schema(tool("t", parameter("n", "number")))
        claim = {"evidence": "so", "source": "customer", "value": "many"}
        answer = {"because": "", "decision": "NEEDS_TO_RUN", "calls": [{"n": claim}]}
        assert not Draft202012Validator(schema).is_valid(answer)

    def test_each_argument_may_be_null_and_none_may_be_left_out(self) -> None:
        schema = answer_schema(tool("t", parameter("a"), parameter("b")))
        answer = {"because": "", "decision": "CANNOT_RUN", "calls": [{"a": None, "b": None}]}
        assert Draft202012Validator(schema).is_valid(answer)
        assert not Draft202012Validator(schema).is_valid(answer | {"calls": [{"a": None}]})

    def test_a_tool_of_plain_types_can_be_asked_about_strictly(self) -> None:
        choices = ToolParameter(name="c", schema={"type": "string", "enum": ["a", "b"]})
        day = ToolParameter(name="d", schema={"type": "string", "format": "date"})
        rooms = ToolParameter(name="r", schema={"type": "array", "items": {"type": "integer"}})
        assert is_strict(answer_schema(tool("t", parameter("n", "number"), choices, day, rooms)))


class TestJudgeStatement:
    def request(self, statement: str, reply: str = "We look into it.") -> ModelRequest:
        situation = Situation(agent=agent(), history=history("My book is torn."), turn=1)
        return prompts.build(JudgeStatement(situation=situation, reply=reply, statement=statement))

    def test_the_reply_follows_the_conversation_and_the_statement_comes_last(self) -> None:
        *_examples, asked = self.request("The reply promises a new one.").messages
        told = asked.content.splitlines()
        assert told[1:-1] == [
            '{"customer": "My book is torn."}',
            "The reply to judge:",
            '{"reply": "We look into it."}',
            "The statement:",
            '{"statement": "The reply promises a new one."}',
        ]
        assert told[-1].startswith("Is the statement true of the reply?")

    def test_statements_about_one_reply_share_all_that_stands_before_them(self) -> None:
        one, other = (self.request(text) for text in ("It is kind.", "It is long."))
        assert one.messages[:-1] == other.messages[:-1]
        shared = one.messages[-1].content.partition('{"statement"')[0]
        assert other.messages[-1].content.startswith(shared)
        assert one.request_key != other.request_key

    def test_the_examples_answer_as_is_asked_with_the_reason_first(self) -> None:
        request = self.request("It is kind.")
        assert is_strict(request.schema)
        answers = [m.content for m in request.messages if m.role == "assistant"]
        verdicts = []
        for answer in map(json.loads, answers):
            Draft202012Validator(request.schema).validate(answer)
            assert list(answer) == ["because", "holds"]
            verdicts.append(answer["holds"])
        assert {True, False} == set(verdicts)


@pytest.mark.parametrize("change", ["name", "description", "history", "turn"])
def test_the_request_key_names_the_question_as_it_is_asked(change: str) -> None:
    def request(
        name: str = "A", description: str = "", text: str = "Hi", repeat: int = 0
    ) -> ModelRequest:
        spec = Agent(
            slug="a", name=name, description=description, guidelines=(guideline("g", "c"),)
        )
        situation = Situation(agent=spec, history=history(text), turn=1)
        return prompts.build(MatchGuidelines(situation=situation, guidelines=spec.guidelines))

    other = {
        "name": request(name="B"),
        "description": request(description="d"),
        "history": request(text="Ho"),
    }.get(change)
    assert request().request_key == request().request_key
    if other is not None:
        assert other.request_key != request().request_key


# --- The prefix property --------------------------------------------------------------------------------------------

BANK = agent(
    guideline("a", "asks for the balance", "tell it", tools=("balance",)),
    guideline("b", "wants to convert", "convert it", tools=("balance", "convert")),
    guideline("c", "the balance is low", "warn", reevaluate_after=("balance",), tools=("convert",)),
    guideline("d", action="be brief"),
    guideline("e", "asks for people", "call them", tools=("hours",), reevaluate_after=("convert",)),
    tools=[
        tool("balance", parameter("account", required=False)),
        tool("convert", parameter("amount", "number"), parameter("to", required=False)),
        tool("hours"),
    ],
)


async def converse(seed: int, texts: list[str], batch_size: int = 3) -> list[list[ModelRequest]]:
    """The requests of each turn of a conversation."""

    async def convert(_arguments: Any, context: Any) -> dict[str, Any]:
        await context.emit_message("One moment")
        if seed % 3 == 0:
            raise RuntimeError("no rates today")
        return {"rate": 1.1}

    model = AnsweringModel(Generated(seed, texts), batch_size=batch_size)
    tools = ScriptedTools(
        {
            "balance": lambda _a, _c: {"amount": 12},
            "convert": convert,
            "hours": lambda _a, _c: "9–5",
        }
    )
    session = Conversation(agent=BANK, model=checked(model), tools=tools)
    asked: list[list[ModelRequest]] = []
    for text in texts:
        before = len(model.requests)
        await session.say(text)
        asked.append(model.requests[before:])
    return asked


def what_is_asked(request: ModelRequest) -> str:
    """A batch of guidelines, one tool, or the reply."""
    return f"{request.question.name} {request.subject}".strip()


def by_subject(requests: list[ModelRequest]) -> dict[str, list[ModelRequest]]:
    found: dict[str, list[ModelRequest]] = defaultdict(list)
    for request in requests:
        found[what_is_asked(request)].append(request)
    return found


@given(seed=st.integers(0, 10**6), texts=st.lists(ANY_TEXT, min_size=12, max_size=15))
@settings(max_examples=15, deadline=None)
async def test_every_prompt_begins_with_the_whole_prompt_of_the_turn_before(
    seed: int, texts: list[str]
) -> None:
    asked = await converse(seed, texts)
    last: dict[str, ModelRequest] = {}
    compared = 0
    for requests in asked:
        current = by_subject(requests)
        for subject, now in current.items():
            before = last.get(subject)
            for request in now if before is not None else ():
                assert before is not None
                system, conversation = before.messages
                assert request.messages[0].content == system.content
                assert request.messages[1].content.startswith(conversation.content)
                compared += 1
        last |= {subject: now[-1] for subject, now in current.items()}
    assert compared >= len(texts) - 1  # at least every reply


async def test_the_window_moves_seldom_and_then_keeps_at_least_twenty_turns() -> None:
    first_turns = []
    for turn in range(1, 200):
        past = history(*(f"message {number}" for number in range(1, turn + 1)))
        parts = told(past, turn)
        kept = [part for part in parts if part.startswith('{"customer"')]
        assert f"message {turn}" in kept[-1]
        assert min(turn, WINDOW_TURNS - WINDOW_STEP) <= len(kept) <= WINDOW_TURNS + 1
        first_turns.append(kept[0])
        said_so = any("left out" in part for part in parts)
        assert said_so is (len(kept) < turn)
    moves = sum(one != other for one, other in pairwise(first_turns))
    assert moves == (199 - WINDOW_TURNS) // WINDOW_STEP + 1


async def test_three_of_a_hundred_turns_pay_for_the_window_and_the_rest_share_their_prompt() -> (
    None
):
    asked = await converse(4, [f"What about account {number}?" for number in range(100)])
    shares = [
        _shared(before[-1].messages[1].content, now[-1].messages[1].content)
        for before, now in pairwise(asked)
    ]
    broken = [turn for turn, share in enumerate(shares, start=2) if share < 1]
    assert broken == [41, 61, 81]
    # Past the window, over all: how much of each prompt was already in the one of the turn before.
    late = asked[39:]
    sent = sum(len(requests[-1].messages[1].content) for requests in late[1:])
    known = sum(
        len(before[-1].messages[1].content) * (share >= 1)
        for before, share in zip(late, shares[39:], strict=False)
    )
    assert known / sent > 0.9


def _shared(before: str, now: str) -> float:
    """The share of the earlier text that the later one begins with."""
    same = next((n for n, (a, b) in enumerate(zip(before, now, strict=False)) if a != b), None)
    return 1.0 if same is None and len(now) >= len(before) else (same or 0) / len(before)
