"""What guidelines make of one another (ENGINE.md §1, step 3): who comes along, who is dropped, and because of whom.

`outcomes` is a pure function of the agent and of which guidelines apply by their own judgement. It is asked anew in
each iteration with all that was judged up to then, so a dropped guideline comes back exactly when nothing drops it any
more. Its order:

1. What the matched guidelines entail comes in, transitively.
2. What misses a guideline that it depends on is dropped; so is what came along only with dropped ones. This follows
   every later drop too.
3. Priorities, from the top down: a guideline in force drops those it has priority over, and its alternatives of lower
   numeric priority. A dropped guideline drops nobody. Between guidelines without a relationship, numeric priority only
   orders the reply.
4. Disambiguation. Of what the customer may mean exactly one is in force: it is clear, and the disambiguating guideline
   is dropped (and 1 to 3 done again without it). Several are: all of them are dropped, so that their tools do not run,
   and the reply asks (`questions`). What they had dropped stays so while that is open.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import assert_never

from engine.kit import Kit
from engine.relations import Relations, named
from engine.spec import Agent, Guideline, RelationKind
from engine.state import TurnState
from engine.trail import GuidelineMatch, MatchState


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """A guideline in force (MATCHED) or DROPPED, with the relationship and the guideline that made it so.

    One with `added_by` does not apply by its own judgement.
    """

    state: MatchState
    relation: RelationKind | None = None
    added_by: str = ""
    dropped_by: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Choosing:
    """The reply must ask the customer which of `between` is meant; `guideline` says so."""

    guideline: Guideline
    between: tuple[Guideline, ...]


async def resolve(state: TurnState, kit: Kit) -> None:
    """Record what relationships change; doing it again changes nothing."""
    if not state.agent.relationships:
        return
    judged = {uid for uid, match in state.matches.items() if match.judged_to_apply}
    found = outcomes(state.agent, judged)
    for guideline in state.agent.guidelines:
        changed = _changed(state, guideline, found)
        if changed is not None:
            state.learn(changed)
            await kit.outbox.put(changed)


def questions(state: TurnState) -> tuple[Choosing, ...]:
    """What the reply must ask: between the guidelines that matched, or all where none did."""
    if not state.agent.relationships:
        return ()
    found = []
    relations = Relations(state.agent)
    for uid in relations.in_order(relations.choices):
        guideline = state.agent.guideline_by_uid[uid]
        if not state.in_force(guideline):
            continue
        enabled = [
            target
            for target in map(state.agent.guideline_by_uid.__getitem__, relations.choices[uid])
            if target.enabled
        ]
        standing = [target for target in enabled if _is_in_doubt(state, target)]
        between = standing or enabled
        if len(between) > 1:
            found.append(Choosing(guideline=guideline, between=tuple(between)))
    return tuple(found)


def _is_in_doubt(state: TurnState, guideline: Guideline) -> bool:
    match = state.matches.get(guideline.uid)
    return (
        match is not None
        and match.state is MatchState.DROPPED
        and match.relation is RelationKind.DISAMBIGUATES
    )


def outcomes(agent: Agent, judged: Collection[str]) -> dict[str, Outcome]:
    """By uid, the outcome of each guideline that is judged to apply or that such a one brings along."""
    enabled = {guideline.uid for guideline in agent.guidelines if guideline.enabled}
    relations = Relations(agent)
    roots = frozenset(enabled.intersection(judged))
    clear: dict[str, _Drop] = {}
    while True:
        settling = _Settling(relations, roots, clear)
        found = settling.clear_choices()
        if not found:
            settling.leave_in_doubt()
            return settling.outcomes()
        clear |= found


@dataclass(frozen=True, slots=True, kw_only=True)
class _Drop:
    kind: RelationKind
    by: str


class _Settling:
    """Steps 1 to 3 done; from then on guidelines are only dropped."""

    def __init__(
        self, relations: Relations, roots: frozenset[str], ruled_out: dict[str, _Drop]
    ) -> None:
        self._relations = relations
        self._roots = roots
        self._came_with = relations.brought_along(roots)
        self._force = set(self._came_with)
        self._dropped: dict[str, _Drop] = {}
        self._drop({uid: drop for uid, drop in ruled_out.items() if uid in self._force})
        for uid in relations.top_down:
            if uid in self._force:
                below = relations.over[uid].items()
                drops = {u: _Drop(kind=kind, by=uid) for u, kind in below if u in self._force}
                if drops:
                    self._drop(drops)

    def clear_choices(self) -> dict[str, _Drop]:
        """Disambiguating guidelines that need not ask, each dropped by the one that is meant."""
        return {
            uid: _Drop(kind=RelationKind.DISAMBIGUATES, by=standing[0])
            for uid, standing in self._choices().items()
            if len(standing) == 1
        }

    def leave_in_doubt(self) -> None:
        """Drop what the customer must choose from."""
        found: dict[str, _Drop] = {}
        for uid, standing in self._choices().items():
            if len(standing) > 1:
                for target in standing:
                    found.setdefault(target, _Drop(kind=RelationKind.DISAMBIGUATES, by=uid))
        self._drop(found)

    def outcomes(self) -> dict[str, Outcome]:
        with_whom = self._supported()
        found = {
            uid: Outcome(
                state=MatchState.MATCHED,
                relation=RelationKind.ENTAILS if with_whom[uid] else None,
                added_by=with_whom[uid],
            )
            for uid in self._force
        }
        for uid, drop in self._dropped.items():
            found[uid] = Outcome(
                state=MatchState.DROPPED,
                relation=drop.kind,
                dropped_by=drop.by,
                added_by=self._came_with[uid],
            )
        return found

    def _choices(self) -> dict[str, list[str]]:
        """Disambiguating guideline in force → what the customer may mean of what is in force."""
        choices = self._relations.choices
        return {
            uid: [target for target in choices[uid] if target in self._force]
            for uid in self._relations.in_order(choices)
            if uid in self._force
        }

    def _drop(self, drops: dict[str, _Drop]) -> None:
        """Drop these, and then what loses its support, until nothing does."""
        while True:
            self._dropped |= drops
            self._force.difference_update(drops)
            drops = self._unsupported()
            if not drops:
                return

    def _supported(self) -> dict[str, str]:
        return self._relations.brought_along(self._roots & self._force, within=self._force)

    def _unsupported(self) -> dict[str, _Drop]:
        supported = self._supported()
        found = {}
        for uid in self._force:
            if uid not in supported:
                found[uid] = _Drop(kind=RelationKind.ENTAILS, by=self._came_with[uid])
            elif missed := self._missed(uid):
                found[uid] = missed
        return found

    def _missed(self, uid: str) -> _Drop | None:
        """The first demand of a guideline that is not met."""
        for kind, targets in self._relations.needs.get(uid, ()):
            missing = [target for target in targets if target not in self._force]
            enough = kind is RelationKind.DEPENDS_ON_ANY and len(missing) < len(targets)
            if missing and not enough:
                return _Drop(kind=kind, by=missing[0])
        return None


def _changed(
    state: TurnState, guideline: Guideline, found: Mapping[str, Outcome]
) -> GuidelineMatch | None:
    """What to record of a guideline now; None where the record says so already."""
    match = state.matches.get(guideline.uid) or _unjudged(state, guideline)
    outcome = found.get(guideline.uid)
    if outcome is None:
        if not match.added_by:
            return None
        gone = Outcome(state=MatchState.NOT_MATCHED)
        because = f"{_name(state, match.added_by)}, which brought it along, applies no more."
        return _recorded(state, match, gone, because)
    known = Outcome(
        state=match.state,
        relation=match.relation,
        added_by=match.added_by,
        dropped_by=match.dropped_by,
    )
    if known == outcome:
        return None
    changed = _recorded(state, match, outcome, _because(state, match, outcome))
    if match.state is outcome.state is MatchState.MATCHED:
        # In force as before, so its tools are not asked about again; told only where the one that brought it is gone.
        adder = found.get(match.added_by)
        stands = adder is not None and adder.state is MatchState.MATCHED
        return None if stands else replace(changed, iteration=match.iteration)
    return changed


def _because(state: TurnState, match: GuidelineMatch, outcome: Outcome) -> str:
    """One sentence for people."""
    if outcome.state is MatchState.MATCHED:
        if outcome.added_by:
            return f"It comes along with {_name(state, outcome.added_by)}."
        return f"It applies, and {_name(state, match.dropped_by)} no longer keeps it out."
    return _why_dropped(state, match.guideline, outcome)


def _why_dropped(state: TurnState, uid: str, outcome: Outcome) -> str:
    by = _name(state, outcome.dropped_by)
    match outcome.relation:
        case RelationKind.ENTAILS:
            return f"It came along with {by}, which is dropped."
        case RelationKind.DEPENDS_ON_ALL:
            return f"It applies only together with {by}, which is not in force."
        case RelationKind.DEPENDS_ON_ANY:
            return f"It applies only together with others, and none is in force: {by} is not."
        case RelationKind.HAS_PRIORITY_OVER:
            return f"{by} has priority."
        case RelationKind.ALTERNATIVE_TO:
            return f"{by} is the alternative with the higher priority."
        case RelationKind.DISAMBIGUATES if _chooses(state, uid, outcome.dropped_by):
            return f"There is nothing to ask: only {by} is in force of what the customer may mean."
        case RelationKind.DISAMBIGUATES:
            return f"The customer may mean something else: {by}."
        case None:
            return f"{by} keeps it out."
        case _:
            assert_never(outcome.relation)


def _chooses(state: TurnState, source: str, target: str) -> bool:
    return target in Relations(state.agent).choices.get(source, ())


def _name(state: TurnState, uid: str) -> str:
    known = state.agent.guideline_by_uid.get(uid)
    return named(known) if known else "another guideline"


def _unjudged(state: TurnState, guideline: Guideline) -> GuidelineMatch:
    now = datetime.now(UTC)
    return GuidelineMatch(
        guideline=guideline.uid,
        state=MatchState.NOT_EVALUATED,
        because="",
        iteration=state.checkpoint.iteration,
        started_at=now,
        ended_at=now,
    )


def _recorded(
    state: TurnState, match: GuidelineMatch, outcome: Outcome, because: str
) -> GuidelineMatch:
    now = datetime.now(UTC)
    return replace(
        match,
        state=outcome.state,
        because=because,
        iteration=state.checkpoint.iteration,
        started_at=now,
        ended_at=now,
        relation=outcome.relation,
        added_by=outcome.added_by,
        dropped_by=outcome.dropped_by,
        explained_afterwards=False,
    )
