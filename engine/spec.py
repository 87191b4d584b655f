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

    FLUID = "fluid"  # the model writes
    COMPOSITED = "composited"  # the model writes in the style of the fitting canned responses
    STRICT = "strict"  # only canned responses, chosen and filled

    @property
    def strictness(self) -> int:
        """The most restrictive mode among matched guidelines and agent wins."""
        return list(Composition).index(self)


class Confirm(StrEnum):
    """When a consequential call waits for the customer's word (ENGINE.md §4)."""

    ALWAYS = "always"
    INFERRED = "inferred"  # only where an argument is the model's own conclusion


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
    provides_choices: bool = False  # its ToolService names the choices, anew in each turn

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
    confirm: Confirm = Confirm.ALWAYS  # counts for consequential tools only
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
class CannedResponse:
    """A reply written beforehand: `text` is a Jinja template (ENGINE.md §5)."""

    uid: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Term:
    """A word of the agent's business, and what it means there."""

    uid: str
    name: str
    description: str
    synonyms: tuple[str, ...] = ()


class RelationKind(StrEnum):
    """How one guideline (`source`) bears on others (`targets`), ENGINE.md §1 step 3."""

    DEPENDS_ON_ALL = "depends_on_all"  # it stays only where all targets are in force
    DEPENDS_ON_ANY = "depends_on_any"  # it stays only where one of the targets is in force
    HAS_PRIORITY_OVER = "has_priority_over"  # targets are dropped where it is in force
    ENTAILS = "entails"  # targets come into force with it
    DISAMBIGUATES = "disambiguates"  # it says that the customer may mean several targets: ask which
    ALTERNATIVE_TO = (
        "alternative_to"  # of source and targets only the highest `priority` in force stays
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Relationship:
    """Guidelines are named by uid."""

    uid: str
    kind: RelationKind
    source: str
    targets: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Guideline:
    """`condition` → `action`. No condition: always applies. No action: an observation, or its tools say what to do."""

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
    composition: Composition | None = None  # None takes the agent's
    canned_responses: tuple[str, ...] = ()  # uids; these are candidates only while it is in force

    @property
    def always(self) -> bool:
        return not self.condition.strip()


NO_MATCH = "I am sorry, I cannot help with that here. Shall I have a colleague get back to you?"
"""What an agent says that may only use canned responses, where none fits."""


@dataclass(frozen=True, kw_only=True)
class Agent:
    """A compiled agent: everything a turn needs to know of what was authored."""

    slug: str
    name: str
    description: str = ""
    tone: str = ""  # how it speaks
    guidelines: tuple[Guideline, ...] = ()
    tools: tuple[Tool, ...] = ()
    relationships: tuple[Relationship, ...] = ()
    overlaps: tuple[tuple[str, ...], ...] = ()  # tool names: of each group the better one wins
    canned_responses: tuple[CannedResponse, ...] = ()
    terms: tuple[Term, ...] = ()
    composition: Composition = Composition.FLUID
    no_match: str = ""  # what it says where no canned response fits; empty takes NO_MATCH
    verified_replies: bool = (
        False  # guidelines of HIGH criticality are checked by a question of their own
    )
    max_iterations: int = 3
    schema_version: int = field(
        default=2
    )  # 2: relationships, terms, canned responses, confirmation

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
    def canned_response_by_uid(self) -> dict[str, CannedResponse]:
        return {response.uid: response for response in self.canned_responses}

    def action_of(self, guideline: Guideline) -> str:
        """What to do: its own words, else what its tools are for (a tool attached to a condition alone)."""
        if guideline.action:
            return guideline.action
        known = [self.tool_by_name[name] for name in guideline.tools if name in self.tool_by_name]
        return " ".join(tool.description.partition("\n")[0] for tool in known)

    @cached_property
    def label_of(self) -> dict[str, str]:
        """Guideline uid → the short label that prompts use for it: G1, G2 … in the author's order."""
        return {g.uid: f"G{number}" for number, g in enumerate(self.guidelines, start=1)}


@lru_cache(maxsize=1)
def _adapter() -> TypeAdapter[Agent]:
    return TypeAdapter(Agent)
