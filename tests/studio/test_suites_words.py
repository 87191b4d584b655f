"""Expectations as sentences, and the forms that they are written in."""

from typing import Any

import pytest

from engine.expecting import Expectation, read_expectation
from engine.spec import Agent, Guideline, Tool, ToolParameter
from studio.expectation_words import sentence
from studio.forms.expectations import KINDS, ExpectationForm, initial_of, posted
from studio.models import Scenario, Suite

AGENT = Agent(
    slug="depot",
    name="Depot",
    guidelines=(
        Guideline(uid="kind", action="be kind"),
        Guideline(uid="refund", condition="the customer asks for a refund"),
    ),
    tools=(
        Tool(
            uid="t1",
            name="refund",
            description="Refunds.",
            parameters=(
                ToolParameter(name="order", schema={"type": "string"}),
                ToolParameter(name="amount", schema={"type": "number"}),
                ToolParameter(name="rush", schema={"type": "boolean"}),
                ToolParameter(name="tags", schema={"type": "array"}),
            ),
        ),
        Tool(uid="t2", name="find_order", description="Finds."),
    ),
)


@pytest.mark.parametrize(
    ("told", "words"),
    [
        (
            {"kind": "guideline", "guideline": "refund", "turn": 2},
            "G2 “the customer asks for a refund” must match in turn 2",
        ),
        (
            {"kind": "guideline", "guideline": "kind", "matches": False},
            "G1 “be kind” must not match in any turn",
        ),
        (
            {"kind": "guideline", "guideline": "gone"},
            "A guideline that is no longer there (gone) must match in some turn",
        ),
        (
            {"kind": "guideline", "guideline": "refund:2", "turn": 1},
            "Guideline 2 that refund brings must match in turn 1",
        ),
        (
            {
                "kind": "tool",
                "tool": "refund",
                "turn": 1,
                "arguments": [
                    {"name": "order", "value": "A-1"},
                    {"name": "amount", "how": "about", "value": 5, "tolerance": 0.5},
                    {"name": "rush", "how": "one_of", "value": [True, None]},
                ],
            },
            (
                "refund must run in turn 1 with order = “A-1”, amount about 5 (± 0.5) and "
                "rush one of true, null"
            ),
        ),
        (
            {"kind": "tool", "tool": "sell", "runs": False},
            "sell (which the agent no longer has) must not run in any turn",
        ),
        (
            {"kind": "decision", "tool": "refund", "state": "CANNOT_RUN", "guideline": "refund"},
            (
                "The decision must be that refund cannot run in some turn, "
                "under G2 “the customer asks for a refund”"
            ),
        ),
        (
            {"kind": "order", "tools": ["find_order", "refund"]},
            "These must run in this order: find_order, refund",
        ),
        (
            {"kind": "reply_contains", "text": "sorry", "contains": False},
            "No reply may contain “sorry”",
        ),
        (
            {"kind": "reply_matches", "pattern": "\\d+", "turn": 1, "at_least": 2},
            "The reply of turn 1 must match the pattern \\d+, in at least 2 runs",
        ),
        ({"kind": "no_promise", "text": "a refund"}, "No reply may promise a refund"),
        (
            {"kind": "judged", "statement": "It is kind.", "turn": 3},
            "A model must find of the reply of turn 3: “It is kind.”",
        ),
        (
            {"kind": "handed_over", "expected": False},
            "The session must not be handed over to a person",
        ),
        (
            {"kind": "below", "measure": "round_trips", "limit": 4},
            "Every turn must take fewer than 4 round trips to the model",
        ),
        (
            {"kind": "below", "measure": "cost", "limit": 0.05},
            "The whole conversation must cost less than 0.05",
        ),
    ],
)
def test_an_expectation_reads_as_a_sentence(told: dict[str, Any], words: str) -> None:
    assert sentence(read_expectation(told), AGENT) == words


def a_form(kind: str, /, **data: str) -> ExpectationForm:
    return ExpectationForm(data, kind=kind, scenario=a_scenario(), agent=AGENT)


def a_scenario() -> Scenario:
    return Scenario(suite=Suite(repeats=3), messages=[{"text": "Hello"}, {"text": "Refund?"}])


def rows(*given: tuple[str, str, str], **more: str) -> dict[str, str]:
    """Arguments as a page sends them: (name, how, value)."""
    found = {"arguments-rows": str(len(given)), **more}
    for place, row in enumerate(given):
        for part, value in zip(("name", "how", "value"), row, strict=True):
            found[f"arguments-{place}-{part}"] = value
    return found


def test_arguments_are_read_by_what_their_parameters_take() -> None:
    form = a_form(
        "tool",
        tool="refund",
        runs="yes",
        turn="2",
        **rows(
            ("order", "equal", "007"),
            ("", "equal", ""),
            ("amount", "one_of", "5, 7.5"),
            ("rush", "equal", "no"),
            ("tags", "equal", '["a"]'),
        ),
    )
    assert form.is_valid(), form.errors
    assert form.expectation() == read_expectation(
        {
            "kind": "tool",
            "tool": "refund",
            "turn": 2,
            "arguments": [
                {"name": "order", "value": "007"},
                {"name": "amount", "how": "one_of", "value": [5, 7.5]},
                {"name": "rush", "value": False},
                {"name": "tags", "value": ["a"]},
            ],
        }
    )


@pytest.mark.parametrize(
    ("kind", "data", "field", "said"),
    [
        ("guideline", {"guideline": "gone", "matches": "yes"}, "guideline", "Choose the guideline"),
        ("guideline", {"guideline": "", "matches": "yes"}, "guideline", "Choose the guideline"),
        ("tool", {"tool": "sell", "runs": "yes"}, "tool", "“sell” is not among the choices"),
        ("reply_matches", {"pattern": "(", "matches": "yes"}, "pattern", "no regular expression"),
        ("reply_contains", {"text": "a", "contains": "yes", "turn": "3"}, "turn", "3"),
        ("below", {"measure": "seconds", "limit": "0"}, "limit", "above 0"),
        ("below", {"measure": "seconds", "limit": "soon"}, "limit", "Give a number above 0"),
        ("handed_over", {"expected": "yes", "at_least": "0"}, "at_least", "from 1 to 20"),
        ("order", {"tools-rows": "2", "tools-0-tool": "refund"}, "tools", "at least two"),
        ("judged", {"statement": " "}, "statement", "Write what"),
    ],
)
def test_bad_input_is_told_beside_its_field(
    kind: str, data: dict[str, str], field: str, said: str
) -> None:
    form = a_form(kind, **data)
    assert not form.is_valid()
    assert said in str(form.errors[field])


@pytest.mark.parametrize(
    ("row", "said"),
    [
        (("ordr", "equal", "1"), "Did you mean “order”?"),
        (("amount", "equal", "lots"), "amount must be a number"),
        (("amount", "about", "soon"), "must be a number"),
        (("rush", "equal", "maybe"), "must be yes or no"),
        (("order", "equal", ""), "Write the value of order"),
        (("", "equal", "x"), "which parameter"),
        (("order", "one_of", ","), "at least one"),
    ],
)
def test_what_is_wrong_with_an_argument_is_told_at_its_row(
    row: tuple[str, str, str], said: str
) -> None:
    form = a_form(
        "tool", tool="refund", runs="yes", **rows(("order", "equal", "1"), ("", "equal", ""), row)
    )
    assert not form.is_valid()
    first, _blank, wrong = form.rows("arguments")
    assert first["errors"] == []
    assert said in wrong["errors"][0]
    assert wrong["value"] == row[2]  # nothing is lost


STORED: list[dict[str, Any]] = [
    {"kind": "guideline", "guideline": "refund", "matches": False, "turn": 1},
    {
        "kind": "tool",
        "tool": "refund",
        "arguments": [
            {"name": "order", "how": "one_of", "value": ["a", "b"]},
            {"name": "order", "how": "one_of", "value": ["a, b", "c"]},
            {"name": "amount", "how": "about", "value": 5, "tolerance": 2},
            {"name": "tags", "value": [1, {"a": None}]},
        ],
    },
    {"kind": "decision", "tool": "refund", "state": "CANNOT_RUN", "at_least": 2},
    {"kind": "order", "tools": ["find_order", "refund"]},
    {"kind": "reply_contains", "text": "sorry"},
    {"kind": "reply_matches", "pattern": "^a", "matches": False},
    {"kind": "no_promise", "text": "a refund"},
    {"kind": "judged", "statement": "It is kind."},
    {"kind": "handed_over", "expected": False},
    {"kind": "below", "measure": "tokens", "limit": 1500},
]


def as_posted(initial: dict[str, Any]) -> dict[str, str]:
    """What a page sends of a form that nobody changed."""
    sent: dict[str, str] = {}
    for name, value in initial.items():
        if isinstance(value, list):
            sent[f"{name}-rows"] = str(len(value))
            for place, row in enumerate(value):
                sent |= {f"{name}-{place}-{part}": each for part, each in row.items()}
        elif value is not None:
            sent[name] = str(value)
    return sent


@pytest.mark.parametrize("told", STORED, ids=lambda told: str(told["kind"]))
def test_a_form_that_nobody_changed_says_what_is_stored(told: dict[str, Any]) -> None:
    stored: Expectation = read_expectation(told)
    form = a_form(stored.kind, **as_posted(initial_of(stored)))
    assert form.is_valid(), form.errors
    assert form.expectation() == stored


def test_every_kind_has_a_form_and_a_way_back_into_it() -> None:
    assert {told["kind"] for told in STORED} == set(KINDS)


def test_another_row_keeps_what_was_filled_in() -> None:
    data = {"tool": "refund", "turn": "2", "add": "arguments", **rows(("order", "equal", "1"))}
    now = posted(data, "tool", AGENT)
    assert (now["tool"], now["turn"]) == ("refund", "2")
    assert now["arguments"] == [
        {"name": "order", "how": "equal", "value": "1", "tolerance": ""},
        {},
    ]
