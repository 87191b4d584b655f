"""The difference of two runs of a turn, decisions first and words last: what people read of a replay (DESIGN.md §2).

What is no difference: uids of calls and model calls, times, reasons, scores, where an outcome was served from, the
order of what was decided or run in parallel, and in which iteration something came about that both runs have.
"""

from engine.replaying.comparing import differences
from engine.replaying.difference import (
    Difference,
    DifferenceKind,
    difference_adapter,
    is_decision,
)
from engine.replaying.word_difference import Change, ChangeKind, words

__all__ = [
    "Change",
    "ChangeKind",
    "Difference",
    "DifferenceKind",
    "difference_adapter",
    "differences",
    "is_decision",
    "words",
]
