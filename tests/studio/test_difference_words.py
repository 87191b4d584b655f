"""Differences as sentences."""

from typing import Any

import pytest

from engine.replaying import Difference, DifferenceKind
from engine.spec import Agent, CannedResponse, Guideline
from studio.difference_words import Names, kind_words, sentence

OLD = Agent(
    slug="depot",
    name="Depot",
    guidelines=(
        Guideline(uid="gone", condition="the customer swears", action="stay calm"),
        Guideline(uid="where", condition="the customer asks where", action="tell it"),
    ),
)
NEW = Agent(
    slug="depot",
    name="Depot",
    guidelines=(
        Guideline(uid="where", condition="the customer asks where it is", action="tell it"),
        Guideline(uid="new", action="be brief"),
    ),
    canned_responses=(CannedResponse(uid="r1", text="It is in {place}."),),
)
NAMES = Names(before=OLD, after=NEW)
WHERE = "G1 “the customer asks where it is”"


def standing(state: str, dropped_by: str = "", added_by: str = "") -> dict[str, Any]:
    return {"state": state, "dropped_by": dropped_by, "added_by": added_by, "relation": None}


def decided(state: str, missing: tuple[str, ...] = ()) -> dict[str, Any]:
    return {"state": state, "missing": list(missing), "invalid": []}


def argument(value: Any, source: str = "customer", *, verified: bool = True) -> dict[str, Any]:
    return {"value": value, "source": source, "evidence": "", "verified": verified}


def done(data: Any) -> dict[str, Any]:
    return {"state": "done", "data": data}


def failed(kind: str) -> dict[str, Any]:
    return {"state": "failed", "error": kind, "public": "Sorry."}


def words(kind: str, before: Any, after: Any, **more: Any) -> str:
    difference = Difference(kind=DifferenceKind(kind), before=before, after=after, **more)
    return sentence(difference, NAMES)


@pytest.mark.parametrize(
    ("before", "after", "uid", "said"),
    [
        ("not_matched", "matched", "where", f"{WHERE} matches now; it did not before."),
        ("matched", "not_matched", "where", f"{WHERE} does not match any more."),
        ("absent", "matched", "new", "G2 “be brief” is new, and matches."),
        (
            "matched",
            "absent",
            "gone",
            "G1 “the customer swears” matched; now it no longer exists.",
        ),
        (
            "matched",
            "not_evaluated",
            "find:1",
            "Guideline 1 that find brings matched; now it is not evaluated.",
        ),
    ],
)
def test_a_guideline_is_named_by_the_version_that_still_has_it(
    before: str, after: str, uid: str, said: str
) -> None:
    assert words("guideline", standing(before), standing(after), guideline=uid) == said


def test_what_dropped_or_brought_along_a_guideline_is_named() -> None:
    told = words(
        "guideline",
        standing("matched", added_by="new"),
        standing("dropped", dropped_by="gone"),
        guideline="where",
    )
    assert told == (
        f"{WHERE} matched, brought along by G2 “be brief”; "
        "now it is dropped because of G1 “the customer swears”."
    )


@pytest.mark.parametrize(
    ("kind", "before", "after", "more", "said"),
    [
        (
            "decision",
            decided("NEEDS_TO_RUN"),
            decided("CANNOT_RUN", ("number",)),
            {"tool": "find", "arguments": {"number": "P-7"}},
            "find(number=“P-7”): cannot run (number is missing); before, needs to run.",
        ),
        (
            "decision",
            None,
            decided("AWAITING_CONFIRMATION"),
            {"tool": "find", "guideline": "where"},
            f"find under {WHERE}: awaits confirmation; before, not considered.",
        ),
        (
            "argument",
            argument("P-7"),
            argument(8),
            {"tool": "find", "parameter": "number"},
            "find: number is 8 now; before, “P-7”.",
        ),
        (
            "argument",
            argument("P-7"),
            argument("P-7", "inferred", verified=False),
            {"tool": "find", "parameter": "number"},
            (
                "find: number has the same value on another ground: inferred, not verified; "
                "before, the customer said it."
            ),
        ),
        (
            "argument",
            None,
            argument(None),
            {"tool": "find", "parameter": "number"},
            "find is called with number = nothing now; before, without it.",
        ),
        (
            "argument",
            argument(1),
            None,
            {"tool": "find", "parameter": "number"},
            "find is called without number now; before, with 1.",
        ),
        (
            "result",
            done({"place": "Lyon", "days": 1}),
            done({"place": "Oslo", "days": 1.0, "late": True}),
            {"tool": "find"},
            "find gives another result now (place, late).",
        ),
        (
            "result",
            done({"place": "Lyon"}),
            failed("timeout"),
            {"tool": "find"},
            "find gives a timeout now; before, a result.",
        ),
        ("result", done("Lyon"), done([]), {"tool": "find"}, "find gives [] now; before, “Lyon”."),
        (
            "result",
            None,
            done(1),
            {"tool": "find"},
            "find gives 1 now; before, nothing: it was not called.",
        ),
        (
            "confirmation",
            {"answer": "confirmed"},
            None,
            {"tool": "send"},
            "The customer’s word about send is taken for no answer now; before, for a yes.",
        ),
        (
            "handed_over",
            False,
            True,
            {},
            "The session is handed over to a person now; it was not before.",
        ),
        ("handed_over", True, False, {}, "The session is no longer handed over to a person."),
        ("limit", None, "iterations", {}, "The limit iterations is reached now."),
        ("failure", None, "timeout: no", {}, "The turn fails now: timeout: no"),
        (
            "response",
            {"composition": "strict", "responses": ["r1"], "fits": None},
            {"composition": "strict", "responses": [], "fits": None},
            {},
            "The reply rests on no canned response now; before, on “It is in {place}.”.",
        ),
        (
            "adherence",
            {"follows": True},
            {"follows": False},
            {"guideline": "where"},
            f"The reply does not follow {WHERE} any more.",
        ),
        ("reply", "a b", "a c", {}, "The reply says it in other words."),
        ("reply", "a b", "a", {}, "The reply has other words: 1 in place of 2."),
        ("reply", "a b", "", {}, "There is no reply any more."),
    ],
)
def test_each_kind_of_difference_is_a_sentence(
    kind: str, before: Any, after: Any, more: dict[str, Any], said: str
) -> None:
    assert words(kind, before, after, **more) == said


def test_below_its_guideline_a_decision_does_not_name_it_again() -> None:
    difference = Difference(
        kind=DifferenceKind.DECISION,
        tool="find",
        guideline="where",
        before=None,
        after=decided("NOT_NEEDED"),
    )
    told = sentence(difference, NAMES, below="where")
    assert told == "find: not needed; before, not considered."


def test_every_kind_has_a_name() -> None:
    assert all(kind_words(kind) for kind in DifferenceKind)
