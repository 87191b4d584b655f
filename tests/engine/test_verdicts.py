"""From the outcomes of repeats to a verdict, and from verdicts to that of a scenario."""

from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.expecting import Outcome, OutcomeState, Verdict, scenario_verdict, verdict_of

STATES = {"h": OutcomeState.HELD, "f": OutcomeState.FAILED, "u": OutcomeState.UNKNOWN}
FROM_WORST = [Verdict.FAILED, Verdict.FLAKY, Verdict.INVALID, Verdict.PASSED]


def verdict(outcomes: str, at_least: int | None = None) -> Verdict:
    return verdict_of([Outcome(state=STATES[s], because="") for s in outcomes], at_least)


@pytest.mark.parametrize(
    ("outcomes", "at_least", "expected"),
    [
        ("hhh", None, Verdict.PASSED),
        ("hhf", None, Verdict.FLAKY),
        ("hhf", 2, Verdict.PASSED),
        ("hff", 2, Verdict.FLAKY),
        ("fff", 1, Verdict.FAILED),
        ("f", None, Verdict.FAILED),
        ("fuu", None, Verdict.FAILED),
        ("uuu", 1, Verdict.INVALID),
        ("hhu", None, Verdict.INVALID),  # nothing was seen to fail, and not all was seen to hold
        ("hhu", 2, Verdict.PASSED),
        ("hfu", None, Verdict.FLAKY),
        ("hh", 5, Verdict.PASSED),  # as often as it was tried
        ("hf", 5, Verdict.FLAKY),
        ("", None, Verdict.INVALID),
        ("", 1, Verdict.INVALID),
    ],
)
def test_the_verdict_over_repeats(outcomes: str, at_least: int | None, expected: Verdict) -> None:
    assert verdict(outcomes, at_least) is expected


@given(st.text("hfu", min_size=1, max_size=6), st.none() | st.integers(1, 7), st.data())
def test_one_more_that_holds_never_makes_it_worse(
    outcomes: str, at_least: int | None, data: st.DataObject
) -> None:
    place = data.draw(st.integers(0, len(outcomes) - 1))
    better = outcomes[:place] + "h" + outcomes[place + 1 :]
    before, after = verdict(outcomes, at_least), verdict(better, at_least)
    assert FROM_WORST.index(after) >= FROM_WORST.index(before)


@given(st.text("hfu", max_size=6), st.none() | st.integers(1, 7))
def test_the_order_of_repeats_does_not_count(outcomes: str, at_least: int | None) -> None:
    shuffled = "".join(sorted(outcomes))
    assert verdict(outcomes, at_least) is verdict(shuffled, at_least)


def test_a_scenario_is_as_good_as_its_worst_expectation() -> None:
    for one, other in product(FROM_WORST, FROM_WORST):
        worst = min(one, other, key=FROM_WORST.index)
        assert scenario_verdict([one, other]) is worst
        assert scenario_verdict(iter([Verdict.PASSED, one, other])) is worst


def test_a_scenario_that_expects_nothing_does_not_pass() -> None:
    assert scenario_verdict([]) is Verdict.INVALID
