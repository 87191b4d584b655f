"""Whether what a conversation took stays below a limit."""

from collections.abc import Sequence

from engine.expecting.kinds import BelowExpectation, Measure
from engine.expecting.sightings import broken_among
from engine.expecting.verdicts import Outcome, OutcomeState
from engine.turn_record import TurnRecord

_SUMMED = frozenset({Measure.TOKENS, Measure.COST})


def measured(expectation: BelowExpectation, turns: Sequence[TurnRecord]) -> Outcome:
    """There is at least one turn. What is known to have reached the limit fails, whatever else is not known."""
    taken = [(record, _taken(record, expectation.measure)) for record in turns]
    known = [(record.number, value) for record, value in taken if value is not None]
    if expectation.measure in _SUMMED:
        value, where = sum(value for _number, value in known), None
    else:
        where, value = max(known, key=lambda pair: pair[1], default=(None, 0.0))
    if len(turns) == 1:
        where = turns[0].number
    unknown = next((record for record, value in taken if value is None), None)
    if value >= expectation.limit:
        because = f"{_told(expectation.measure, value)}, not below {_number(expectation.limit)}."
        return Outcome(state=OutcomeState.FAILED, because=because, turn=where)
    if unknown is not None:
        because = _why_unknown(unknown, expectation.measure)
        return Outcome(state=OutcomeState.UNKNOWN, because=because, turn=unknown.number)
    if broken := broken_among(turns):
        return broken
    because = f"{_told(expectation.measure, value)}, below {_number(expectation.limit)}."
    return Outcome(state=OutcomeState.HELD, because=because, turn=where)


def _taken(record: TurnRecord, measure: Measure) -> float | None:
    match measure:
        case Measure.ROUND_TRIPS:
            return record.round_trips
        case Measure.SECONDS:
            return None if record.duration_ms is None else record.duration_ms / 1000
        case Measure.TOKENS:
            return record.tokens
        case Measure.COST:
            return record.cost


def _told(measure: Measure, value: float) -> str:
    """ "It took 3 round trips"."""
    match measure:
        case Measure.ROUND_TRIPS:
            return f"It took {_number(value)} round trip{'s' * (value != 1)}"
        case Measure.SECONDS:
            return f"It took {_number(value)} s"
        case Measure.TOKENS:
            return f"It took {_number(value)} token{'s' * (value != 1)}"
        case Measure.COST:
            return f"It cost {_number(value)}"


def _why_unknown(record: TurnRecord, measure: Measure) -> str:
    if measure is not Measure.COST:
        return f"When turn {record.number} began and ended is not on record."
    models = sorted({call.model for call in record.model_calls if call.model})
    named = f": the price list lacks one of {', '.join(models)}" if models else ""
    if len(models) == 1:
        named = f": the price list lacks {models[0]}"
    return f"What turn {record.number} cost is not known{named}."


def _number(value: float) -> str:
    """Without what floating point adds: 0.3, not 0.30000000000000004."""
    return f"{value:.10g}" if value < 1e9 else f"{value:.0f}"
