"""What the expectations of an agent's scenarios say of its guidelines and tools: which is guarded, and by what."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from django.db.models import QuerySet
from pydantic import ValidationError

from engine.expecting import (
    DecisionExpectation,
    Expectation,
    GuidelineExpectation,
    OrderExpectation,
    ToolExpectation,
    expectation_adapter,
)
from studio.models import Agent
from studio.models import Expectation as ExpectationRow

_SPEAKING = ("guideline", "tool", "decision", "order")  # the kinds that name a guideline or a tool


class ScenarioKey(NamedTuple):
    """A scenario by its suite and its uid, which is its own in that suite only."""

    suite: int
    uid: str


Scenarios = frozenset[ScenarioKey]


@dataclass(frozen=True, slots=True, kw_only=True)
class Guards:
    """Scenarios by the guideline (uid) or the tool (name) that they speak of."""

    positive: Mapping[str, Scenarios]  # that expect it to be in force
    negative: Mapping[str, Scenarios]  # that expect it not to be
    tools: Mapping[str, Scenarios]  # that expect something of its calls

    def of(self, guideline: str, tools: Iterable[str]) -> Scenarios:
        """Those that speak of the guideline, or of one of its tools."""
        found = self.positive.get(guideline, frozenset()) | self.negative.get(
            guideline, frozenset()
        )
        return found.union(*(self.tools.get(name, frozenset()) for name in tools))


@dataclass(frozen=True, slots=True, kw_only=True)
class Share:
    """How many of the guidelines that are switched on have all the tests that they can have.

    That is a scenario that expects it to match, and one that expects it not to match; one that always applies needs
    the first only.
    """

    covered: int
    enabled: int

    @property
    def percent(self) -> int:
        """Rounded down, so that 100 means all; 0 where none is switched on."""
        return 100 * self.covered // self.enabled if self.enabled else 0


def expectations_of(agent: Agent) -> QuerySet[ExpectationRow]:
    """Those of the agent's scenarios that name a guideline or a tool."""
    return ExpectationRow.objects.filter(scenario__suite__agent=agent, data__kind__in=_SPEAKING)


def guards_of(agent: Agent) -> Guards:
    """One query."""
    rows = expectations_of(agent).order_by()
    sides: dict[str, dict[str, set[ScenarioKey]]] = defaultdict(lambda: defaultdict(set))
    for suite, uid, data in rows.values_list("scenario__suite", "scenario__uid", "data"):
        for side, name in _named_in(data):
            sides[side][name].add(ScenarioKey(suite, uid))
    positive, negative, tools = (
        {name: frozenset(keys) for name, keys in sides[side].items()}
        for side in ("positive", "negative", "tools")
    )
    return Guards(positive=positive, negative=negative, tools=tools)


def share_of(agent: Agent, guards: Guards) -> Share:
    """One query."""
    rows = agent.guidelines.enabled().order_by().values_list("uid", "condition")
    enabled = list(rows)
    covered = sum(is_covered(uid, condition, guards) for uid, condition in enabled)
    return Share(covered=covered, enabled=len(enabled))


def is_covered(uid: str, condition: str, guards: Guards) -> bool:
    """Has it all the tests that it can have?"""
    return uid in guards.positive and (uid in guards.negative or not condition.strip())


def _named_in(data: Any) -> Iterator[tuple[str, str]]:
    try:
        expectation = expectation_adapter().validate_python(data)
    except (
        ValidationError
    ):  # a studio of other expectations stored it: it holds nothing that is known here
        return
    yield from _spoken_of(expectation)


def speaks_of(expectation: Expectation, guideline: str, tools: Iterable[str]) -> bool:
    """Does it say something of this guideline, or of one of these tools?"""
    named = {(side == "tools", name) for side, name in _spoken_of(expectation)}
    return (False, guideline) in named or any((True, tool) in named for tool in tools)


def _spoken_of(expectation: Expectation) -> Iterator[tuple[str, str]]:
    """(which field of Guards, the name in it), each."""
    match expectation:
        case GuidelineExpectation(guideline=guideline, matches=matches):
            yield "positive" if matches else "negative", guideline
        case ToolExpectation(tool=tool):
            yield "tools", tool
        case DecisionExpectation(tool=tool, guideline=guideline):
            yield "tools", tool
            if guideline:  # a decision under it is only made while it is in force
                yield "positive", guideline
        case OrderExpectation(tools=tools):
            for tool in tools:
                yield "tools", tool
