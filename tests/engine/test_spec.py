"""A compiled agent is a value: it survives JSON, and its fingerprint names its content and nothing else."""

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from engine.canonical import canonical_json, is_too_deep, without_nul
from engine.spec import (
    Agent,
    Criticality,
    Example,
    Guideline,
    Latency,
    ParameterSource,
    Tool,
    ToolParameter,
)
from tests.engine.agents import agent, guideline, parameter, tool

TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
NAMES = st.lists(st.sampled_from(["a", "b", "find_book", "c-1"]), unique=True, max_size=3)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3),
    max_leaves=5,
)  # fmt: skip

PARAMETERS = st.builds(
    ToolParameter,
    name=TEXT,
    schema=st.dictionaries(TEXT, JSON, max_size=3),
    required=st.booleans(),
    default=JSON,
    description=TEXT,
    display_name=TEXT,
    source=st.sampled_from(ParameterSource),
    hidden=st.booleans(),
    precedence=st.none() | st.integers(-5, 5),
    significance=TEXT,
    examples=st.lists(JSON, max_size=2).map(tuple),
)
TOOLS = st.builds(
    Tool,
    uid=TEXT,
    name=TEXT,
    description=TEXT,
    parameters=st.lists(PARAMETERS, max_size=2).map(tuple),
    consequential=st.booleans(),
    latency=st.sampled_from(Latency),
    timeout=st.none() | st.floats(0.1, 60),
)
GUIDELINES = st.builds(
    Guideline,
    uid=TEXT,
    condition=TEXT,
    action=TEXT,
    criticality=st.sampled_from(Criticality),
    priority=st.integers(-100, 100),
    enabled=st.booleans(),
    tags=NAMES.map(tuple),
    tools=NAMES.map(tuple),
    reevaluate_after=NAMES.map(tuple),
    examples=st.lists(st.builds(Example, text=TEXT, matches=st.booleans()), max_size=2).map(tuple),
)
AGENTS = st.builds(
    Agent,
    slug=TEXT,
    name=TEXT,
    description=TEXT,
    guidelines=st.lists(GUIDELINES, max_size=3).map(tuple),
    tools=st.lists(TOOLS, max_size=2).map(tuple),
    max_iterations=st.integers(1, 9),
)


@given(AGENTS)
@settings(max_examples=60)
def test_an_agent_survives_json_unchanged_and_keeps_its_fingerprint(spec: Agent) -> None:
    import json

    text = json.dumps(spec.to_json())
    again = Agent.from_json(json.loads(text))
    assert again == spec
    assert again.fingerprint == spec.fingerprint


def test_the_fingerprint_is_the_same_in_every_process_and_version_of_ours() -> None:
    """A fixed figure: when it changes, stored versions no longer find themselves."""
    spec = agent(
        guideline("g1", "the customer asks for a book", "find it", tools=("find_book",)),
        tools=[tool("find_book", parameter("title"))],
    )
    assert spec.fingerprint == "e426abb426e719bc4f5a139b913a061d7014a669e382f32f8c5ae4ed9b925436"


def test_the_order_of_keys_in_a_schema_does_not_matter() -> None:
    one = ToolParameter(name="n", schema={"type": "string", "minLength": 1})
    other = ToolParameter(name="n", schema={"minLength": 1, "type": "string"})
    assert agent(tools=[tool("t", one)]).fingerprint == agent(tools=[tool("t", other)]).fingerprint


def test_the_order_of_guidelines_matters() -> None:
    one, other = guideline("a", action="x"), guideline("b", action="y")
    assert agent(one, other).fingerprint != agent(other, one).fingerprint
    assert agent(one, other).label_of == {"a": "G1", "b": "G2"}
    assert agent(other, one).label_of == {"a": "G2", "b": "G1"}


@pytest.mark.parametrize(
    "change",
    [
        {"condition": "other"},
        {"action": "other"},
        {"criticality": Criticality.HIGH},
        {"priority": 1},
        {"enabled": False},
        {"tags": ("x",)},
        {"tools": ("t",)},
        {"reevaluate_after": ("t",)},
        {"examples": (Example(text="hi"),)},
    ],
)
def test_every_change_of_a_guideline_gives_another_fingerprint(change: dict[str, Any]) -> None:
    before = guideline("a", "c", "x")
    assert agent(replace(before, **change)).fingerprint != agent(before).fingerprint


def test_labels_do_not_move_when_a_guideline_is_switched_off() -> None:
    spec = agent(guideline("a", "c", enabled=False), guideline("b", "c"))
    assert spec.label_of["b"] == "G2"


def test_a_condition_of_white_space_is_no_condition() -> None:
    assert guideline("a", " \n\t").always


def test_what_was_not_made_by_to_json_is_refused() -> None:
    with pytest.raises(ValidationError):
        Agent.from_json({"slug": "a", "name": "A", "guidelines": "none"})


def test_a_tool_without_a_timeout_takes_the_deadline_of_its_tier() -> None:
    assert [tool("t", latency=tier).deadline for tier in Latency] == [5.0, 15.0, 60.0]
    assert tool("t", timeout=0.5).deadline == 0.5


class TestCanonicalJson:
    def test_equal_values_have_one_text(self) -> None:
        assert canonical_json({"b": 1, "a": [None, "é"]}) == '{"a":[null,"é"],"b":1}'

    @pytest.mark.parametrize("value", [float("nan"), float("inf"), {"x": {1, 2}}, object()])
    def test_what_json_cannot_hold_is_refused(self, value: Any) -> None:
        with pytest.raises((ValueError, TypeError)):
            canonical_json(value)

    @given(JSON | st.text())
    def test_nul_characters_go_and_everything_else_stays(self, value: Any) -> None:
        import json

        def clean(here: Any) -> Any:
            match here:
                case str():
                    return here.replace("\x00", "")
                case list():
                    return [clean(item) for item in here]
                case dict():
                    return {clean(key): clean(item) for key, item in here.items()}
            return here

        assert json.loads(without_nul(json.dumps(value))) == clean(value)

    def test_the_characters_of_an_escape_are_not_the_escape(self) -> None:
        import json

        for text in (r"\u0000", "\\\x00", "\x00\x00", "\\\\\x00u0000"):
            assert json.loads(without_nul(json.dumps(text))) == text.replace("\x00", "")

    def test_a_hundred_levels_are_deep_enough(self) -> None:
        value: Any = 1
        for _ in range(99):
            value = {"a": [value]} if _ % 2 else [value]
        assert not is_too_deep([[1]])
        assert is_too_deep(value)
