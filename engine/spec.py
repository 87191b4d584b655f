"""What the author wrote, frozen: an Agent with its guidelines and tools (DESIGN.md §5).

Every value here survives `Agent.to_json` → `Agent.from_json` unchanged, and `Agent.fingerprint` names its content.
"""

from dataclasses import dataclass, field
from enum import StrEnum
from functools import cached_property, lru_cache
from typing import Any

from pydantic import TypeAdapter

from engine.canonical import JsonObject, canonical_json, digest


class Criticality(StrEnum):
    LOW = "low"
    MEDIUM = "medium"
    HIGH = "high"


class Composition(StrEnum):
    """How replies are written (ENGINE.md §5)."""

    FLUID = "fluid"


class Latency(StrEnum):
    """How long a tool usually takes; gives its deadline where none is set (ENGINE.md §4)."""

    FAST = "fast"
    MEDIUM = "medium"
    SLOW = "slow"

    @property
    def deadline(self) -> float:
        """Seconds."""
        return {Latency.FAST: 5.0, Latency.MEDIUM: 15.0, Latency.SLOW: 60.0}[self]


class ParameterSource(StrEnum):
    """Where an argument may come from."""

    ANY = "any"
    CUSTOMER = "customer"
    CONTEXT = "context"


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolParameter:
    """One parameter of a tool. `schema` is the JSON Schema of its value; an `enum` there lists its choices."""

    name: str
    schema: JsonObject
    required: bool = True
    default: Any = None
    description: str = ""
    display_name: str = ""
    source: ParameterSource = ParameterSource.ANY
    hidden: bool = False
    precedence: int | None = None
    significance: str = ""
    examples: tuple[Any, ...] = ()

    @property
    def label(self) -> str:
        """The name to show to people."""
        return self.display_name or self.name.replace("_", " ")


@dataclass(frozen=True, slots=True, kw_only=True)
class Tool:
    """What the engine can call; `name` is what the model sees and is unique within an agent."""

    uid: str
    name: str
    description: str
    parameters: tuple[ToolParameter, ...] = ()
    consequential: bool = False
    latency: Latency = Latency.FAST
    timeout: float | None = None  # seconds; None takes the deadline of the latency tier

    @property
    def deadline(self) -> float:
        """Seconds after which a call is stopped."""
        return self.timeout if self.timeout is not None else self.latency.deadline


@dataclass(frozen=True, slots=True, kw_only=True)
class Example:
    """A customer message that its guideline should (`matches`) or should not match."""

    text: str
    matches: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Guideline:
    """`condition` → `action`. No condition: always applies. No action: an observation."""

    uid: str
    condition: str = ""
    action: str = ""
    criticality: Criticality = Criticality.MEDIUM
    priority: int = 0
    enabled: bool = True
    tags: tuple[str, ...] = ()
    tools: tuple[str, ...] = ()  # tool names
    reevaluate_after: tuple[str, ...] = ()  # tool names
    examples: tuple[Example, ...] = ()

    @property
    def always(self) -> bool:
        return not self.condition.strip()


@dataclass(frozen=True, kw_only=True)
class Agent:
    """A compiled agent: everything a turn needs to know of what was authored."""

    slug: str
    name: str
    description: str = ""
    guidelines: tuple[Guideline, ...] = ()
    tools: tuple[Tool, ...] = ()
    composition: Composition = Composition.FLUID
    max_iterations: int = 3
    schema_version: int = field(default=1)

    def to_json(self) -> JsonObject:
        """A JSON object that `from_json` reads back to an equal value."""
        value: JsonObject = _adapter().dump_python(self, mode="json")
        return value

    @staticmethod
    def from_json(value: JsonObject) -> "Agent":
        """Raises pydantic.ValidationError when `value` was not made by `to_json`."""
        return _adapter().validate_python(value)

    @cached_property
    def fingerprint(self) -> str:
        """SHA-256 of the canonical JSON, 64 hexadecimal characters."""
        return digest(canonical_json(self.to_json()))

    @cached_property
    def guideline_by_uid(self) -> dict[str, Guideline]:
        return {guideline.uid: guideline for guideline in self.guidelines}

    @cached_property
    def tool_by_name(self) -> dict[str, Tool]:
        return {tool.name: tool for tool in self.tools}

    @cached_property
    def label_of(self) -> dict[str, str]:
        """Guideline uid → the short label that prompts use for it: G1, G2 … in the author's order."""
        return {g.uid: f"G{number}" for number, g in enumerate(self.guidelines, start=1)}


@lru_cache(maxsize=1)
def _adapter() -> TypeAdapter[Agent]:
    return TypeAdapter(Agent)
