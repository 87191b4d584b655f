"""Guidelines in two runs of a turn: which were in force, what kept out or brought along others, what was followed."""

from collections.abc import Iterator

from engine.canonical import JsonObject
from engine.replaying.difference import Difference, DifferenceKind
from engine.trail import Adherence, GuidelineMatch, MatchState
from engine.turn_record import TurnRecord

ABSENT = "absent"
"""The state of a guideline that the agent of a run does not have."""


def guidelines(before: TurnRecord, after: TurnRecord) -> Iterator[Difference]:
    """Guidelines that did not end the turn in the same way.

    A run has no say about one that its agent lacks or has switched off, or that it broke off before judging: that
    differs only from a run which has it in force. All else counts: in force or not, judged or left out though it is
    switched on, dropped or added, by this one or by that one.
    """
    old, new = _matches(before), _matches(after)
    for uid in old | new:
        left, right = old.get(uid), new.get(uid)
        if _is_alike(left, right):
            continue
        standing = (_standing(before, uid, left), _standing(after, uid, right))
        if standing[0] == standing[1]:
            continue
        in_force = any(m is not None and m.state is MatchState.MATCHED for m in (left, right))
        if in_force or (_has_a_say(before, left) and _has_a_say(after, right)):
            yield Difference(
                kind=DifferenceKind.GUIDELINE,
                guideline=uid,
                iteration=min(m.iteration for m in (left, right) if m is not None),
                before=standing[0],
                after=standing[1],
                before_because=left.because if left is not None else "",
                after_because=right.because if right is not None else "",
            )


def _is_alike(left: GuidelineMatch | None, right: GuidelineMatch | None) -> bool:
    if left is None or right is None:
        return False
    return (left.state, left.relation, left.dropped_by, left.added_by) == (
        right.state,
        right.relation,
        right.dropped_by,
        right.added_by,
    )


def _matches(record: TurnRecord) -> dict[str, GuidelineMatch]:
    """By lasting uid."""
    return {record.lasting_uid(uid): match for uid, match in record.matches.items()}


def _has_a_say(record: TurnRecord, match: GuidelineMatch | None) -> bool:
    if match is None:
        return False
    guideline = record.agent.guideline_by_uid.get(match.guideline)
    return guideline is None or guideline.enabled


def _standing(record: TurnRecord, uid: str, match: GuidelineMatch | None) -> JsonObject:
    if match is None:
        known = uid in record.agent.guideline_by_uid
        state = MatchState.NOT_EVALUATED.value if known else ABSENT
        return {"state": state, "dropped_by": "", "added_by": "", "relation": None}
    return {
        "state": match.state.value,
        "dropped_by": record.lasting_uid(match.dropped_by),
        "added_by": record.lasting_uid(match.added_by),
        "relation": match.relation.value if match.relation is not None else None,
    }


def adherence(before: TurnRecord, after: TurnRecord) -> Iterator[Difference]:
    """Guidelines that the reply was found to break in one run alone; one that is not checked is not found to."""
    old, new = _checked(before), _checked(after)
    for uid in old | new:
        left, right = old.get(uid), new.get(uid)
        if _is_broken(left) != _is_broken(right):
            yield Difference(
                kind=DifferenceKind.ADHERENCE,
                guideline=uid,
                before=None if left is None else {"follows": left.follows},
                after=None if right is None else {"follows": right.follows},
                before_because="" if left is None else left.note,
                after_because="" if right is None else right.note,
            )


def _checked(record: TurnRecord) -> dict[str, Adherence]:
    """By lasting uid, what was found about the version of the reply that stands."""
    last = max((entry.attempt for entry in record.adherence), default=0)
    return {
        record.lasting_uid(entry.guideline): entry
        for entry in record.adherence
        if entry.checked and entry.attempt == last
    }


def _is_broken(found: Adherence | None) -> bool:
    return found is not None and not found.follows
