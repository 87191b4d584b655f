"""What changed between two texts, word by word."""

import time
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.replaying import Change, ChangeKind, words
from engine.replaying.word_difference import MOST_WORDS

TEXTS = st.one_of(
    st.text(),
    st.lists(
        st.sampled_from(
            ["the ", "fine", "is", " ", "\n", ",", ".", "- ", "3.50", "don't", "退款", "é"]
        )
    ).map("".join),
)


def told(before: str, after: str) -> str:
    """The changes as text: [-removed-]{+added+}."""
    marks = {
        ChangeKind.SAME: ("", ""),
        ChangeKind.REMOVED: ("[-", "-]"),
        ChangeKind.ADDED: ("{+", "+}"),
    }
    return "".join(c.text.join(marks[c.kind]) for c in words(before, after))


@settings(deadline=None)
@given(TEXTS, TEXTS)
def test_nothing_of_either_text_is_lost(before: str, after: str) -> None:
    pieces = words(before, after)
    assert "".join(p.text for p in pieces if p.kind is not ChangeKind.ADDED) == before
    assert "".join(p.text for p in pieces if p.kind is not ChangeKind.REMOVED) == after


@settings(deadline=None)
@given(TEXTS, TEXTS)
def test_no_piece_is_empty_and_neighbours_are_of_different_kinds(before: str, after: str) -> None:
    pieces = words(before, after)
    assert all(piece.text for piece in pieces)
    order = {(left.kind, right.kind) for left, right in pairwise(pieces)}
    same, removed, added = ChangeKind.SAME, ChangeKind.REMOVED, ChangeKind.ADDED
    assert order <= {
        (same, removed),
        (same, added),
        (removed, added),
        (removed, same),
        (added, same),
    }


@settings(deadline=None)
@given(TEXTS)
def test_a_text_does_not_differ_from_itself(text: str) -> None:
    assert words(text, text) == ((Change(kind=ChangeKind.SAME, text=text),) if text else ())


@pytest.mark.parametrize(
    ("before", "after", "shown"),
    [
        ("The fine is 3 euros.", "The fine is 4 euros.", "The fine is [-3-]{+4+} euros."),
        ("It is 1,204.50 €.", "It is 1,204.60 €.", "It is [-1,204.50-]{+1,204.60+} €."),
        ("You can't renew.", "You can renew.", "You [-can't-]{+can+} renew."),
        ("Yes.", "Yes, of course.", "Yes{+, of course+}."),
        ("Please wait here.", "Please wait.", "Please wait[- here-]."),
        ("Well, yes.", "yes.", "[-Well, -]yes."),
        ("a red car", "a blue car", "a [-red-]{+blue+} car"),
        ("two  words", "two words", "two [- -]words"),
        ("the end\n", "the end", "the end[-\n-]"),
        ("", "All new.", "{+All new.+}"),
        ("我想退款", "我要退款", "我[-想-]{+要+}退款"),
    ],
)
def test_changes_go_by_whole_words(before: str, after: str, shown: str) -> None:
    assert told(before, after) == shown


def test_a_comma_does_not_hold_two_changes_apart() -> None:
    assert (
        told("We are open, always.", "We are closed, sorry.")
        == "We are [-open, always-]{+closed, sorry+}."
    )


def test_lines_hold_changes_apart() -> None:
    assert (
        told("- tea\n- rice\n", "- milk\n- bread\n") == "- [-tea-]{+milk+}\n- [-rice-]{+bread+}\n"
    )


def test_texts_beyond_the_bound_are_given_whole() -> None:
    before = "word " * MOST_WORDS + "end"
    assert [c.kind for c in words(before, before + " more")] == [
        ChangeKind.REMOVED,
        ChangeKind.ADDED,
    ]


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("no " * 1400, "yes no " * 700),
        ("no " * (MOST_WORDS - 1), "yes no " * (MOST_WORDS // 2 - 1)),
        (" ".join(map(str, range(120))) * 60, " x ".join(map(str, range(120))) * 60),
    ],
)
def test_long_texts_that_repeat_themselves_are_compared_in_time(before: str, after: str) -> None:
    began = time.perf_counter()
    pieces = words(before, after)
    assert time.perf_counter() - began < 15  # minutes, where all is compared with all
    assert "".join(p.text for p in pieces if p.kind is not ChangeKind.REMOVED) == after
