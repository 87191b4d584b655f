"""What is wrong with an agent as it was written, each with its place and remedy: refused when it is saved.

Relationships may not contradict one another. Refused are circles of priority (of two guidelines each would drop the
other), circles of dependency (neither could come first), and whatever ties a guideline to one that drops it: what needs
it, or comes along with it, could never apply; what it needs or comes along with could be neither in force nor out.
Guidelines that bring one another along are no contradiction: they come together.
"""

from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from engine.errors import SpecError
from engine.relations import Edge, Relations, named, quoted
from engine.spec import Agent, RelationKind, Relationship

_DEPENDS = frozenset({RelationKind.DEPENDS_ON_ALL, RelationKind.DEPENDS_ON_ANY})
_OVERRULES = frozenset({RelationKind.HAS_PRIORITY_OVER, RelationKind.ALTERNATIVE_TO})
_BINDS = frozenset({RelationKind.DEPENDS_ON_ALL, RelationKind.ENTAILS})
_LONGEST_LIST = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class SpecProblem:
    """`part` is the agent's field that it stands in ("guidelines", "relationships" …), `uid` which one there.

    Groups of overlapping tools have no uid; theirs is the group's number, from 0. `field` names the field of that.
    """

    part: str
    uid: str
    field: str
    message: str

    @property
    def place(self) -> str:
        return f"{self.part}.{self.uid}.{self.field}"


def check(agent: Agent) -> None:
    """Raises SpecError for the first problem."""
    for problem in problems(agent):
        raise SpecError(problem.message, field=problem.place)


def problems(agent: Agent) -> tuple[SpecProblem, ...]:
    """Everything that is wrong, in the order of the agent's fields; empty for a sound one."""
    checks: tuple[Callable[[Agent], Iterator[SpecProblem]], ...] = (
        _duplicates,
        _unknown_in_guidelines,
        _unusable_relationships,
        _contradictions,
        _unusable_overlaps,
    )
    return tuple(problem for check_one in checks for problem in check_one(agent))


def _duplicates(agent: Agent) -> Iterator[SpecProblem]:
    parts = {
        "guidelines": [(g.uid, named(g)) for g in agent.guidelines],
        "tools": [(t.uid, t.name) for t in agent.tools],
        "relationships": [(r.uid, _sentence(agent, r)) for r in agent.relationships],
        "canned_responses": [(r.uid, quoted(r.text)) for r in agent.canned_responses],
        "terms": [(t.uid, quoted(t.name)) for t in agent.terms],
    }
    for part, known in parts.items():
        for uid, count in Counter(uid for uid, _name in known).items():
            if count > 1:
                who = _listed(name for other, name in known if other == uid)
                message = f"{count} of them have the uid {uid!r}: {who}. Give each its own."
                yield SpecProblem(part=part, uid=uid, field="uid", message=message)
    for part, names in {
        "tools": Counter(tool.name for tool in agent.tools),
        "terms": Counter(term.name.strip().casefold() for term in agent.terms),
    }.items():
        for name, count in names.items():
            if count > 1:
                message = f"{count} {part} have the name {name!r}. Keep one, or rename the others."
                yield SpecProblem(part=part, uid=name, field="name", message=message)


def _unknown_in_guidelines(agent: Agent) -> Iterator[SpecProblem]:
    for guideline in agent.guidelines:
        fields = (
            ("tools", guideline.tools, agent.tool_by_name, "tool"),
            ("reevaluate_after", guideline.reevaluate_after, agent.tool_by_name, "tool"),
            (
                "canned_responses",
                guideline.canned_responses,
                agent.canned_response_by_uid,
                "canned response",
            ),
        )
        for field, wanted, known, what in fields:
            for name in dict.fromkeys(wanted):
                if name not in known:
                    message = (
                        f"{named(guideline)} names the {what} {name!r}, which this agent does not have. "
                        f"{_offer(f'{what}s', known)} or take it out."
                    )
                    yield SpecProblem(
                        part="guidelines", uid=guideline.uid, field=field, message=message
                    )


def _unusable_relationships(agent: Agent) -> Iterator[SpecProblem]:
    known = agent.guideline_by_uid
    for relationship in agent.relationships:
        sentence = _sentence(agent, relationship)
        found = []
        if relationship.source not in known:
            unknown = f"This agent has no guideline {relationship.source!r}."
            found.append(("source", f"{sentence}: {unknown} Choose another, or remove it."))
        if not relationship.targets:
            found.append(
                ("targets", f"{sentence}: it names no other guideline. Choose at least one.")
            )
        missing = [uid for uid in dict.fromkeys(relationship.targets) if uid not in known]
        if missing:
            unknown = f"This agent has no guideline {', '.join(map(repr, missing))}."
            found.append(("targets", f"{sentence}: {unknown} Choose another, or take it out."))
        if relationship.source in relationship.targets:
            remedy = "A guideline cannot relate to itself. Take it out of the other side."
            found.append(("targets", f"{sentence}: {remedy}"))
        if relationship.kind is RelationKind.DISAMBIGUATES and len(set(relationship.targets)) == 1:
            remedy = "There is only one to choose. Add what else the customer may mean."
            found.append(("targets", f"{sentence}: {remedy}"))
        for field, message in found:
            yield SpecProblem(
                part="relationships", uid=relationship.uid, field=field, message=message
            )


def _contradictions(agent: Agent) -> Iterator[SpecProblem]:
    relations = Relations(agent)
    overruling = _circles(relations.edges, through=_OVERRULES)
    depending = _circles([e for e in relations.edges if e.kind in _DEPENDS], through=_DEPENDS)
    for circle in (*overruling, *depending):
        told = "; ".join(_as_sentence(agent, edge) for edge in circle)
        message = f"These contradict one another: {told}. Take one of them out."
        yield _of_relationship(agent, circle[0], message)
    ties = {(edge.first, edge.then): edge for edge in relations.edges if edge.kind in _BINDS}
    for edge in relations.edges:
        tie = ties.get((edge.first, edge.then))
        if tie and edge.kind in _OVERRULES:
            message = (
                f"{_as_sentence(agent, edge)}, but {_as_sentence(agent, tie)}: "
                f"{_name(agent, edge.then)} could never apply. Take one of the two out."
            )
            yield _of_relationship(agent, edge, message)
        if _defeats_a_choice(relations, edge):
            asker, meant = edge.first, edge.then
            if meant in relations.choices and asker in relations.choices[meant]:
                asker, meant = meant, asker
            message = (
                f"{_name(agent, asker)} asks whether the customer means {_name(agent, meant)}, but "
                f"{_as_sentence(agent, edge)}. Take one of the two out."
            )
            yield _of_relationship(agent, edge, message)


def _defeats_a_choice(relations: Relations, edge: Edge) -> bool:
    """Whether it ties a disambiguating guideline to what it asks about; that may only bring the question along."""
    if edge.then in relations.choices.get(edge.first, ()):
        return True
    asks = edge.first in relations.choices.get(edge.then, ())
    return asks and edge.kind is not RelationKind.ENTAILS


def _circles(edges: Iterable[Edge], through: frozenset[RelationKind]) -> Iterator[list[Edge]]:
    """Shortest circles with an edge of the kinds `through`, until one or other holds both ends of each such edge."""
    left = _in_circles(edges)
    leaving: dict[str, list[Edge]] = {}
    for edge in left:
        leaving.setdefault(edge.first, []).append(edge)
    told: list[set[str]] = []
    for edge in left:
        if edge.kind not in through or any({edge.first, edge.then} <= known for known in told):
            continue
        way = _way(leaving, edge.then, edge.first)
        if way is not None:
            told.append({edge.first, *(each.first for each in way)})
            yield [edge, *way]


def _in_circles(edges: Iterable[Edge]) -> list[Edge]:
    """Without the edges that no circle can use: those to or from a loose end."""
    left = list(edges)
    while True:
        ends = {edge.then for edge in left} & {edge.first for edge in left}
        kept = [edge for edge in left if edge.first in ends and edge.then in ends]
        if len(kept) == len(left):
            return kept
        left = kept


def _way(leaving: dict[str, list[Edge]], start: str, end: str) -> list[Edge] | None:
    """A shortest way along edges; None where there is none."""
    came_by: dict[str, Edge] = {}
    queue = deque([start])
    while queue and end not in came_by and start != end:
        for edge in leaving.get(queue.popleft(), ()):
            if edge.then not in came_by:
                came_by[edge.then] = edge
                queue.append(edge.then)
    way: list[Edge] = []
    while end != start:
        if end not in came_by:
            return None
        way.append(came_by[end])
        end = came_by[end].first
    return way[::-1]


def _unusable_overlaps(agent: Agent) -> Iterator[SpecProblem]:
    for number, group in enumerate(agent.overlaps):
        names = ", ".join(map(repr, group)) or "none"
        found = []
        if len(set(group)) < 2:
            found.append(f"Overlapping tools ({names}): a group needs two tools at least. Add one.")
        found += [
            f"Overlapping tools ({names}): this agent does not have {name!r}. "
            f"{_offer('tools', agent.tool_by_name)} or take it out."
            for name in dict.fromkeys(group)
            if name not in agent.tool_by_name
        ]
        for message in found:
            yield SpecProblem(part="overlaps", uid=str(number), field="tools", message=message)


def _of_relationship(agent: Agent, edge: Edge, message: str) -> SpecProblem:
    """A problem of the relationship that an edge comes from."""

    def is_behind(relationship: Relationship) -> bool:
        if relationship.kind is not edge.kind:
            return False
        if edge.kind is RelationKind.ALTERNATIVE_TO:
            return {edge.first, edge.then} <= {relationship.source, *relationship.targets}
        return relationship.source == source and target in relationship.targets

    source, target = _in_writing(edge)
    behind = sorted(r.uid for r in agent.relationships if is_behind(r))
    return SpecProblem(part="relationships", uid=behind[0], field="targets", message=message)


_VERBS = {
    RelationKind.DEPENDS_ON_ALL: "applies only together with",
    RelationKind.DEPENDS_ON_ANY: "applies only together with",
    RelationKind.HAS_PRIORITY_OVER: "has priority over",
    RelationKind.ENTAILS: "brings along",
    RelationKind.DISAMBIGUATES: "asks whether the customer means",
    RelationKind.ALTERNATIVE_TO: "is an alternative to",
}


def _sentence(agent: Agent, relationship: Relationship) -> str:
    """A relationship in words, as a person would say it."""
    between = " or " if relationship.kind is RelationKind.DEPENDS_ON_ANY else ", "
    targets = between.join(_name(agent, uid) for uid in relationship.targets[:_LONGEST_LIST])
    return f"{_name(agent, relationship.source)} {_VERBS[relationship.kind]} {targets}".rstrip()


def _as_sentence(agent: Agent, edge: Edge) -> str:
    source, target = (_name(agent, uid) for uid in _in_writing(edge))
    if edge.kind is RelationKind.ALTERNATIVE_TO:
        return f"{source} is the alternative to {target} with the higher priority"
    return f"{source} {_VERBS[edge.kind]} {target}"


def _in_writing(edge: Edge) -> tuple[str, str]:
    """(source, target) of an edge, as its relationship is written."""
    return (edge.then, edge.first) if edge.kind in _DEPENDS else (edge.first, edge.then)


def _name(agent: Agent, uid: str) -> str:
    known = agent.guideline_by_uid.get(uid)
    return named(known) if known else repr(uid)


def _offer(what: str, known: Iterable[str]) -> str:
    names = sorted(known)
    return f"Choose one of its {what} ({_listed(names)})" if names else f"It has no {what}: add it"


def _listed(names: Iterable[str]) -> str:
    told = list(names)
    more = len(told) - _LONGEST_LIST
    return ", ".join(told[:_LONGEST_LIST]) + (f" and {more} more" if more > 0 else "")
