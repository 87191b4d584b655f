"""How two runs of a turn ended: handed over, stopped by a limit, failed, and what was replied."""

from collections.abc import Iterator

from engine.canonical import JsonObject
from engine.outcomes import given_responses
from engine.replaying.difference import Difference, DifferenceKind
from engine.trail import LimitReached
from engine.turn_record import TurnRecord


def hand_overs(before: TurnRecord, after: TurnRecord) -> Iterator[Difference]:
    if before.handed_over != after.handed_over:
        yield Difference(
            kind=DifferenceKind.HANDED_OVER, before=before.handed_over, after=after.handed_over
        )


def limits(before: TurnRecord, after: TurnRecord) -> Iterator[Difference]:
    """By the last limit that each reached: records keep no more of them."""
    left, right = _last_limit(before), _last_limit(after)
    names = [None if found is None else found.limit for found in (left, right)]
    if names[0] != names[1]:
        yield Difference(
            kind=DifferenceKind.LIMIT,
            before=names[0],
            after=names[1],
            before_because="" if left is None else left.detail,
            after_because="" if right is None else right.detail,
        )


def _last_limit(record: TurnRecord) -> LimitReached | None:
    return next((e for e in reversed(record.trail) if isinstance(e, LimitReached)), None)


def failures(before: TurnRecord, after: TurnRecord) -> Iterator[Difference]:
    if before.error != after.error:
        yield Difference(
            kind=DifferenceKind.FAILURE, before=before.error or None, after=after.error or None
        )


def responses(before: TurnRecord, after: TurnRecord) -> Iterator[Difference]:
    """Where both runs tell what their reply rests on; the order of responses shown as style does not count."""
    left, right = before.reply_source, after.reply_source
    if left is None or right is None:
        return
    old, new = _response(before), _response(after)
    if old != new:
        yield Difference(
            kind=DifferenceKind.RESPONSE,
            before=old,
            after=new,
            before_because=left.because,
            after_because=right.because,
        )


def _response(record: TurnRecord) -> JsonObject | None:
    """Responses that tools gave are named by their text: their uids are those of calls."""
    source = record.reply_source
    if source is None:
        return None
    given = dict(given_responses(record.calls))
    return {
        "composition": source.composition.value,
        "responses": sorted(given.get(uid, uid) for uid in source.responses),
        "fits": source.fits,
    }


def replies(before: TurnRecord, after: TurnRecord) -> Iterator[Difference]:
    if before.reply != after.reply:
        yield Difference(kind=DifferenceKind.REPLY, before=before.reply, after=after.reply)
