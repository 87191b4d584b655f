"""What a tool may read of the agent that calls it and of the customer it works for; nothing here can be changed."""

from collections.abc import Mapping
from copy import deepcopy
from dataclasses import dataclass, field
from functools import cached_property
from types import MappingProxyType
from typing import Any

from engine.canonical import JsonObject
from engine.spec import Agent


@dataclass(frozen=True, slots=True, kw_only=True)
class GuidelineView:
    uid: str
    condition: str
    action: str
    tools: tuple[str, ...]  # names


class AgentView:
    """The agent as it is in force in this turn: the compiled version, not the draft that somebody edits."""

    def __init__(self, agent: Agent) -> None:
        self._agent = agent

    def __repr__(self) -> str:
        return f"<agent {self.id!r}>"

    @property
    def id(self) -> str:
        """As in `ToolContext.agent_id`."""
        return self._agent.slug

    @property
    def name(self) -> str:
        return self._agent.name

    @property
    def description(self) -> str:
        return self._agent.description

    @property
    def tone(self) -> str:
        return self._agent.tone

    @property
    def tools(self) -> tuple[str, ...]:
        """Names of the tools that it may use."""
        return tuple(tool.name for tool in self._agent.tools)

    @cached_property
    def guidelines(self) -> tuple[GuidelineView, ...]:
        """Those that are switched on, in the author's order."""
        return tuple(
            GuidelineView(uid=g.uid, condition=g.condition, action=g.action, tools=g.tools)
            for g in self._agent.guidelines
            if g.enabled
        )

    @cached_property
    def terms(self) -> Mapping[str, str]:
        """The words of its business, and what they mean there."""
        return MappingProxyType({term.name: term.description for term in self._agent.terms})


@dataclass(frozen=True, slots=True, kw_only=True)
class CustomerView:
    """Whom the session is with. Private data is looked up by `id`, never by what was said."""

    id: str  # as in `ToolContext.customer_id`
    name: str
    variables: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def of(cls, *, id: str, name: str, variables: JsonObject) -> "CustomerView":  # noqa: A002 - as the field
        """With variables of its own, which do not follow what becomes of the given ones."""
        return cls(id=id, name=name, variables=MappingProxyType(deepcopy(variables)))
