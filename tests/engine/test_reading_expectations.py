"""Expectations as JSON: what is read is what was written, and what cannot be read says where and what to do."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.canonical import canonical_json
from engine.errors import SpecError
from engine.expecting import (
    ArgumentExpectation,
    BelowExpectation,
    Comparing,
    DecisionExpectation,
    Expectation,
    GuidelineExpectation,
    HandedOverExpectation,
    JudgedExpectation,
    Measure,
    NoPromiseExpectation,
    OrderExpectation,
    ReplyContainsExpectation,
    ReplyMatchesExpectation,
    ToolExpectation,
    read_expectation,
    to_json,
)
from engine.trail import DecisionState
from tests.engine.sessions import HOSTILE

NAMES = st.text(
    st.characters(codec="utf-8", exclude_characters="\x00"), min_size=1, max_size=20
).filter(lambda text: text.isprintable() and bool(text.strip()))
WORDS = st.from_regex(r"[a-z]{1,8}( [a-z]{1,8}){0,3}", fullmatch=True)
NUMBERS = st.integers(-(10**6), 10**6) | st.floats(-1e6, 1e6)
VALUES = st.recursive(
    st.none() | st.booleans() | NUMBERS | WORDS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(WORDS, inner, max_size=3),
    max_leaves=5,
)
ARGUMENTS = st.one_of(
    st.builds(ArgumentExpectation, name=NAMES, value=VALUES, tolerance=st.just(0)),
    st.builds(
        ArgumentExpectation,
        name=NAMES,
        how=st.just(Comparing.ABOUT),
        value=NUMBERS,
        tolerance=st.floats(0, 9),
    ),
    st.builds(
        ArgumentExpectation,
        name=NAMES,
        how=st.just(Comparing.ONE_OF),
        value=st.lists(VALUES, min_size=1, max_size=3),
        tolerance=st.just(0),
    ),
    st.builds(
        ArgumentExpectation,
        name=NAMES,
        how=st.just(Comparing.CONTAINS),
        value=WORDS,
        tolerance=st.just(0),
    ),
)


def of(kind: Any, **fields: Any) -> st.SearchStrategy[Any]:
    counts = st.none() | st.integers(1, 99)
    return st.builds(kind, turn=counts, at_least=counts, **fields)


EXPECTATIONS: st.SearchStrategy[Expectation] = st.one_of(
    of(GuidelineExpectation, guideline=NAMES, matches=st.booleans()),
    of(
        ToolExpectation,
        tool=NAMES,
        runs=st.booleans(),
        arguments=st.lists(ARGUMENTS, max_size=3).map(tuple),
    ),
    of(
        DecisionExpectation,
        tool=NAMES,
        state=st.sampled_from(DecisionState),
        guideline=st.just("") | NAMES,
    ),
    of(OrderExpectation, tools=st.lists(NAMES, min_size=2, max_size=4, unique=True).map(tuple)),
    of(ReplyContainsExpectation, text=WORDS, contains=st.booleans()),
    of(ReplyMatchesExpectation, pattern=st.sampled_from(["a+", r"\d{2}"]), matches=st.booleans()),
    of(NoPromiseExpectation, text=WORDS),
    of(JudgedExpectation, statement=WORDS),
    of(HandedOverExpectation, expected=st.booleans()),
    of(BelowExpectation, measure=st.sampled_from(Measure), limit=st.floats(0.001, 1e6)),
)


@given(EXPECTATIONS)
@settings(deadline=None)
def test_what_is_written_is_read_back(expectation: Expectation) -> None:
    written = to_json(expectation)
    assert written["kind"] == expectation.kind
    assert read_expectation(written) == expectation
    assert canonical_json(to_json(read_expectation(written))) == canonical_json(written)


def test_what_is_usual_may_be_left_out() -> None:
    assert read_expectation({"kind": "tool", "tool": "renew"}) == ToolExpectation(tool="renew")
    assert read_expectation({"kind": "handed_over"}) == HandedOverExpectation()


ARGUMENT = {"name": "x", "how": "equal", "value": 1}


def tool(**argument: Any) -> dict[str, Any]:
    return {"kind": "tool", "tool": "t", "arguments": [ARGUMENT | argument]}


def reply(**fields: Any) -> dict[str, Any]:
    return {"kind": "reply_contains", "text": "x"} | fields


@pytest.mark.parametrize(
    ("value", "field", "words"),
    [
        ([], "kind", "An expectation is an object with a kind, one of: below, decision, guideline"),
        ({}, "kind", "An expectation is an object with a kind, one of: below"),
        ({"kind": "nope"}, "kind", "There is no expectation of kind 'nope'. Choose one of: below"),
        ({"kind": None}, "kind", "no expectation of kind"),
        ({"kind": "tool"}, "tool", "'tool' of a 'tool' expectation is missing. Give the name"),
        ({"kind": "tool", "tool": ""}, "tool", 'cannot be "". Give the name of a tool'),
        ({"kind": "tool", "tool": 5}, "tool", "cannot be 5. Give the name of a tool"),
        ({"kind": "tool", "tool": "t", "run": True}, "run", "'run' of a 'tool' expectation is not known. Leave"),
        ({"kind": "tool", "tool": "t", "runs": "yes"}, "runs", 'cannot be "yes". Give true or'),
        ({"kind": "tool", "tool": "t", "runs": 1}, "runs", "Give true or false."),
        (reply(turn=0), "turn", "'turn' of a 'reply_contains' expectation cannot be 0. Give the n"),
        (reply(turn=1.5), "turn", "Give the number of a turn"),
        (reply(at_least=0), "at_least", "Give the number of repeats"),
        (reply(text=" \u00ad "), "text", "'text' shows nothing."),
        (reply(text="x" * 2001), "text", "Give a text of 1 to 2000"),
        (reply(text="a\x00b"), "", "NUL"),
        (reply(text="half \ud83d a character"), "", "whole characters"),
        (tool(how="like"), "arguments.0.how", "Choose one of: equal, contains, about, one_of."),
        (tool(extra=1), "arguments.0.extra", "'arguments.0.extra' of a 'tool' expectation is not"),
        (tool(how="one_of", value=[]), "arguments.0.value", "needs a list of values"),
        (tool(how="one_of", value="ab"), "arguments.0.value", "needs a list of values"),
        (tool(how="about", value="20"), "arguments.0.value", "needs a number"),
        (tool(how="about", value=True), "arguments.0.value", "needs a number"),
        (tool(how="about", tolerance=-1), "arguments.0.tolerance", "from 0 on"),
        (tool(how="contains", value=""), "arguments.0.value", "every text contains the empty"),
        (tool(how="contains", value=None), "arguments.0.value", "to be contained"),
        (tool(tolerance=2), "arguments.0.tolerance", "counts only with 'about'. Leave it out."),
        (tool(value=float("nan")), "", "has to be JSON"),
        ({"kind": "decision", "tool": "t", "state": "RAN"}, "state", "Choose one of: NEEDS_TO_RUN"),
        ({"kind": "order", "tools": ["a"]}, "tools", "Give a list of at least two names"),
        ({"kind": "order", "tools": ["a", ""]}, "tools.1", "at least two names of tools"),
        ({"kind": "order", "tools": ["a", "b", "a"]}, "tools", "names a tool twice"),
        ({"kind": "reply_matches", "pattern": "(a"}, "pattern", "is no regular expression: missing )"),
        ({"kind": "reply_matches", "pattern": "a" * 501}, "pattern", "of 1 to 500 characters"),
        ({"kind": "below", "measure": "cost", "limit": 0}, "limit", "Give a number above 0."),
        ({"kind": "below", "measure": "words", "limit": 1}, "measure", "round_trips, seconds, tok"),
    ],
)  # fmt: skip
def test_what_cannot_be_read_says_where_and_what_to_do(value: Any, field: str, words: str) -> None:
    with pytest.raises(SpecError) as caught:
        read_expectation(value)
    assert words in str(caught.value)
    assert caught.value.field == field


@pytest.mark.parametrize(
    "pattern", ["((a{900}){900}){900}", "a{300}{300}", "(x|a{0,200}){,300}", "a{1,99999999999}"]
)
def test_a_pattern_that_would_grow_too_large_is_refused_at_once(pattern: str) -> None:
    with pytest.raises(SpecError, match="Lower the numbers in braces"):
        read_expectation({"kind": "reply_matches", "pattern": pattern})


def test_many_counted_repeats_side_by_side_are_no_trouble() -> None:
    pattern = r"\d{4}-\d{2}-\d{2}.{0,900}(?:[A-Z]{2,6}\d{,99}-){1,9}.{0,900}\}{3}"
    assert as_read({"kind": "reply_matches", "pattern": pattern})["pattern"] == pattern


def test_a_value_too_deep_is_refused() -> None:
    deep: Any = 1
    for _level in range(200):
        deep = [deep]
    with pytest.raises(SpecError, match="nested deeper"):
        read_expectation(tool(value=deep))


def as_read(value: Any) -> Any:
    """The JSON of what was read, or None where it was refused in words."""
    try:
        return to_json(read_expectation(value))
    except SpecError as error:
        words = str(error)
    assert words.endswith(".")
    return None


@given(st.dictionaries(st.sampled_from(["kind", "tool", "turn", "text", "tools", "x"]), VALUES))
@settings(deadline=None)
def test_any_json_is_read_or_refused_in_words(value: Any) -> None:
    as_read(value)


@pytest.mark.parametrize("text", HOSTILE)
def test_any_text_is_read_as_it_is_or_refused_in_words(text: str) -> None:
    read = as_read(reply(text=text))
    assert read is None or read["text"] == text
    read = as_read({"kind": "reply_matches", "pattern": text})
    assert read is None or read["pattern"] == text
    read = as_read(tool(value=text))
    assert read is None or read["arguments"][0]["value"] == text
