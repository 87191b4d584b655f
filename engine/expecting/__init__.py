"""Expectations: checkable sentences about a conversation, and what came of them (DESIGN.md §2).

`read_expectation` makes one of JSON. `check` tells what came of it in one run, or `judge` where it `needs_model`;
`verdict_of` sums up the repeats of a run, and `scenario_verdict` the expectations of a scenario.
"""

from engine.expecting.checking import check
from engine.expecting.judging import Judged, judge
from engine.expecting.kinds import (
    ArgumentExpectation,
    Aspect,
    BelowExpectation,
    Comparing,
    DecisionExpectation,
    Expectation,
    GuidelineExpectation,
    HandedOverExpectation,
    JudgedExpectation,
    Measure,
    NoPromiseExpectation,
    OrderExpectation,
    ReplyContainsExpectation,
    ReplyMatchesExpectation,
    ToolExpectation,
    about,
    needs_model,
)
from engine.expecting.reading import expectation_adapter, read_expectation, to_json
from engine.expecting.verdicts import (
    Outcome,
    OutcomeState,
    Verdict,
    scenario_verdict,
    verdict_of,
)

__all__ = [
    "ArgumentExpectation",
    "Aspect",
    "BelowExpectation",
    "Comparing",
    "DecisionExpectation",
    "Expectation",
    "GuidelineExpectation",
    "HandedOverExpectation",
    "Judged",
    "JudgedExpectation",
    "Measure",
    "NoPromiseExpectation",
    "OrderExpectation",
    "Outcome",
    "OutcomeState",
    "ReplyContainsExpectation",
    "ReplyMatchesExpectation",
    "ToolExpectation",
    "Verdict",
    "about",
    "check",
    "expectation_adapter",
    "judge",
    "needs_model",
    "read_expectation",
    "scenario_verdict",
    "to_json",
    "verdict_of",
]
