"""The relationships of an agent as a graph: who brings along, needs, overrules and tells apart whom (ENGINE.md §1).

Guidelines are named by uid. What is not among the agent's guidelines is left out, so that a version keeps working
from which one was removed. Nothing here depends on the order of `Agent.relationships`.
"""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import permutations

from engine.model.answers import shortened
from engine.spec import Agent, Guideline, RelationKind

_LONGEST_NAME = 60


@dataclass(frozen=True, slots=True, kw_only=True)
class Edge:
    """Whether `first` is in force has to be known before it can be said of `then`; `kind` says why."""

    first: str
    then: str
    kind: RelationKind


class Relations:
    """Read once from an agent."""

    def __init__(self, agent: Agent) -> None:
        self._guidelines = agent.guideline_by_uid
        self._position = {guideline.uid: n for n, guideline in enumerate(agent.guidelines)}
        self._by_kind: dict[RelationKind, list[tuple[str, tuple[str, ...]]]] = {}
        for relationship in agent.relationships:
            source = relationship.source
            targets = {uid for uid in relationship.targets if uid in self._position} - {source}
            if source in self._position and targets:
                found = self._by_kind.setdefault(relationship.kind, [])
                found.append((source, tuple(self.in_order(targets))))

    def in_order(self, uids: Iterable[str]) -> list[str]:
        """In the author's order."""
        return sorted(uids, key=self._position.__getitem__)

    @cached_property
    def needs(self) -> dict[str, list[tuple[RelationKind, tuple[str, ...]]]]:
        """Source → what it depends on, each with all or any; those of which nothing is left make no demand."""
        found: dict[str, list[tuple[RelationKind, tuple[str, ...]]]] = {}
        for kind in (RelationKind.DEPENDS_ON_ALL, RelationKind.DEPENDS_ON_ANY):
            for source, targets in self._of(kind):
                found.setdefault(source, []).append((kind, targets))
        return {source: sorted(demands) for source, demands in found.items()}

    @cached_property
    def over(self) -> dict[str, dict[str, RelationKind]]:
        """Guideline → those it drops when it is in force: by priority, or as the better one of alternatives."""
        found: dict[str, dict[str, RelationKind]] = {}
        for source, targets in self._of(RelationKind.HAS_PRIORITY_OVER):
            found.setdefault(source, {}).update(
                dict.fromkeys(targets, RelationKind.HAS_PRIORITY_OVER)
            )
        for source, targets in self._of(RelationKind.ALTERNATIVE_TO):
            for one, other in permutations({source, *targets}, 2):
                if self._guidelines[one].priority > self._guidelines[other].priority:
                    found.setdefault(one, {}).setdefault(other, RelationKind.ALTERNATIVE_TO)
        return found

    @cached_property
    def choices(self) -> dict[str, tuple[str, ...]]:
        """Disambiguating guideline → what the customer may mean."""
        found: dict[str, set[str]] = {}
        for source, targets in self._of(RelationKind.DISAMBIGUATES):
            found.setdefault(source, set()).update(targets)
        return {source: tuple(self.in_order(targets)) for source, targets in found.items()}

    @cached_property
    def edges(self) -> tuple[Edge, ...]:
        """In the author's order of guidelines, by kind."""
        found = [
            Edge(first=upper, then=lower, kind=kind)
            for upper, below in self.over.items()
            for lower, kind in below.items()
        ]
        found += [
            Edge(first=target, then=source, kind=kind)
            for source, demands in self.needs.items()
            for kind, targets in demands
            for target in targets
        ]
        found += [
            Edge(first=source, then=target, kind=RelationKind.ENTAILS)
            for source, targets in self._of(RelationKind.ENTAILS)
            for target in targets
        ]
        place = self._position
        return tuple(sorted(set(found), key=lambda e: (place[e.first], place[e.then], e.kind)))

    @cached_property
    def top_down(self) -> tuple[str, ...]:
        """Those that overrule others, so that each comes after whatever decides about it.

        In a circle, which `engine.soundness` refuses, the author's order decides.
        """
        before: dict[str, list[str]] = {}
        for edge in self.edges:
            before.setdefault(edge.then, []).append(edge.first)
        ordered = _after_their_own(self.in_order(self.over), before)
        return tuple(uid for uid in ordered if uid in self.over)

    def brought_along(
        self, roots: Collection[str], within: Collection[str] | None = None
    ) -> dict[str, str]:
        """`roots` and all that they entail, transitively: uid → the guideline that brings it, empty for the roots.

        `within` limits what can be brought; switched off guidelines cannot.
        """
        found = dict.fromkeys(self.in_order(roots), "")
        newest = list(found)
        while newest:
            brought: dict[str, str] = {}
            for source in newest:
                for target in self._entails.get(source, ()):
                    allowed = self._guidelines[target].enabled and (
                        within is None or target in within
                    )
                    if allowed and target not in found:
                        brought.setdefault(target, source)
            found |= brought
            newest = self.in_order(brought)
        return found

    @cached_property
    def _entails(self) -> dict[str, list[str]]:
        found: dict[str, list[str]] = {}
        for source, targets in self._of(RelationKind.ENTAILS):
            found.setdefault(source, []).extend(targets)
        return found

    def _of(self, kind: RelationKind) -> list[tuple[str, tuple[str, ...]]]:
        """(source, known targets) of one kind."""
        return self._by_kind.get(kind, [])


def _after_their_own(wanted: Iterable[str], before: Mapping[str, list[str]]) -> list[str]:
    """`wanted` and what comes before them, each after all that stands before it (a depth-first walk)."""
    done: dict[str, None] = {}
    entered: set[str] = set()
    for start in wanted:
        path = [(start, iter(before.get(start, ())))] if start not in entered else []
        entered.add(start)
        while path:
            here, waiting = path[-1]
            earlier = next((uid for uid in waiting if uid not in entered), None)
            if earlier is None:
                done[here] = None
                path.pop()
            else:
                entered.add(earlier)
                path.append((earlier, iter(before.get(earlier, ()))))
    return list(done)


def named(guideline: Guideline) -> str:
    """A guideline in words for people: the beginning of its condition, else of its action, in quotation marks."""
    return quoted(guideline.condition.strip() or guideline.action.strip() or guideline.uid)


def quoted(text: str) -> str:
    """The beginning of a text on one line, in quotation marks."""
    return f"‘{shortened(text, _LONGEST_NAME)}’"
