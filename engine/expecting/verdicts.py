"""What came of expectations: the Outcome of one in one run, and the Verdict over the repeats (DESIGN.md §2)."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum


class OutcomeState(StrEnum):
    HELD = "held"
    FAILED = "failed"
    UNKNOWN = "unknown"  # it could not be told


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """`because` is a sentence that says what was found; `turn` is where, None where it speaks of no one turn."""

    state: OutcomeState
    because: str
    turn: int | None = None


class Verdict(StrEnum):
    PASSED = "passed"
    FAILED = "failed"
    FLAKY = "flaky"  # it holds in some repeats, too few
    INVALID = "invalid"  # it could not be told


# The first of them that is there is the verdict on a scenario.
_WORST_FIRST = (Verdict.FAILED, Verdict.FLAKY, Verdict.INVALID, Verdict.PASSED)


def verdict_of(outcomes: Sequence[Outcome], at_least: int | None) -> Verdict:
    """The verdict over the outcomes of one expectation in the repeats of a run.

    It passes where it held `at_least` so often: every time where that is None, or more than there were repeats. An
    unknown outcome is not one that held; but nothing fails or is flaky that was never seen to fail: then the verdict
    is INVALID, as it is where there was no repeat at all.
    """
    held = sum(outcome.state is OutcomeState.HELD for outcome in outcomes)
    failed = sum(outcome.state is OutcomeState.FAILED for outcome in outcomes)
    needed = len(outcomes) if at_least is None else min(at_least, len(outcomes))
    if outcomes and held >= needed:
        return Verdict.PASSED
    if not failed:
        return Verdict.INVALID
    return Verdict.FLAKY if held else Verdict.FAILED


def scenario_verdict(verdicts: Iterable[Verdict]) -> Verdict:
    """The worst of them. A scenario that expects nothing is INVALID: it tests nothing, so nothing may pass by it."""
    given = set(verdicts)
    return next((verdict for verdict in _WORST_FIRST if verdict in given), Verdict.INVALID)
