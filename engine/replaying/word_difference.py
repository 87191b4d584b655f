"""What changed between two texts, word by word, for people to read."""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from difflib import Match, SequenceMatcher
from enum import StrEnum
from typing import TypeAlias

MOST_WORDS = 20_000
"""A longer text is not compared word by word: it is given as removed and added."""

# Texts whose words recur would take hours. Looks at one pair of equal words, some ten million a second:
_MOST_LOOKS = 5_000_000  # in all; what has not been compared by then counts as changed
_MANY_LOOKS = 1_000_000  # in one pass; above, frequent words alone make no match

_TINY = 3  # characters of punctuation that hold no two changes apart

# A word with the space before it. Scripts that put no space between words go by the character.
_UNSPACED = r"\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff"
_LETTERS = rf"[^\W{_UNSPACED}]+"
_WORD = re.compile(rf"(\s*)({_LETTERS}(?:[.,:'’@/-]{_LETTERS})*|\S)")


class ChangeKind(StrEnum):
    SAME = "same"
    REMOVED = "removed"
    ADDED = "added"


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """A piece of text, never empty, white space included."""

    kind: ChangeKind
    text: str


def words(before: str, after: str) -> tuple[Change, ...]:
    """The texts in pieces: SAME and REMOVED ones make up `before`, SAME and ADDED ones `after`, to the character.

    What was removed comes before what was added in its place. No two neighbours are of one kind.
    """
    if before == after:
        hunks = [_Hunk(same=before)]
    else:
        old, new = _Text(before), _Text(after)
        if max(len(old.words), len(new.words)) > MOST_WORDS:
            hunks = [_Hunk(removed=before, added=after)]
        else:
            hunks = list(_readable(_joined(_compared(old, new))))
    pieces = (
        Change(kind=kind, text=text)
        for hunk in _joined(hunks)
        for kind, text in (
            (ChangeKind.REMOVED, hunk.removed),
            (ChangeKind.ADDED, hunk.added),
            (ChangeKind.SAME, hunk.same),
        )
    )
    return tuple(piece for piece in pieces if piece.text)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Hunk:
    """A change and the text after it that stayed the same; any of the three may be empty."""

    removed: str = ""
    added: str = ""
    same: str = ""


_Spaced: TypeAlias = tuple[str, str]  # (white space, the word after it)


class _Text:
    def __init__(self, text: str) -> None:
        body = text.rstrip()
        self.spaced: list[_Spaced] = _WORD.findall(body)
        self.words = [word for _space, word in self.spaced]
        self.end = text[len(body) :]


def _compared(old: _Text, new: _Text) -> Iterator[_Hunk]:
    start = _common(old.words, new.words)
    end = _common(old.words[start:][::-1], new.words[start:][::-1])
    yield from _same(old.spaced[:start], new.spaced[:start])
    old_rest, new_rest = len(old.words) - end, len(new.words) - end
    a, b = old.words[start:old_rest], new.words[start:new_rest]
    for tag, i, i_end, j, j_end in _Matcher(a, b).get_opcodes():
        gone, come = old.spaced[start + i : start + i_end], new.spaced[start + j : start + j_end]
        if tag == "equal":
            yield from _same(gone, come)
        else:
            yield _Hunk(removed=_joint(gone), added=_joint(come))
    yield from _same(old.spaced[old_rest:], new.spaced[new_rest:])
    if old.end == new.end:
        yield _Hunk(same=old.end)
    else:
        yield _Hunk(removed=old.end, added=new.end)


def _common(left: Sequence[str], right: Sequence[str]) -> int:
    """How many words both begin with."""
    return next(
        (n for n, (a, b) in enumerate(zip(left, right, strict=False)) if a != b),
        min(len(left), len(right)),
    )


class _Matcher(SequenceMatcher[str]):
    """Finds no more matches when it has looked at _MOST_LOOKS pairs."""

    def __init__(self, a: list[str], b: list[str]) -> None:
        often = Counter(b)
        looks = sum(often[word] for word in a)
        super().__init__(None, a, b, autojunk=looks > _MANY_LOOKS)
        places: dict[str, list[int]] = self.b2j  # type: ignore[attr-defined]  # public all the same
        self._looks = [len(places.get(word, ())) for word in a]
        self._left = _MOST_LOOKS

    def find_longest_match(
        self, alo: int = 0, ahi: int | None = None, blo: int = 0, bhi: int | None = None
    ) -> Match:
        if self._left <= 0:
            return Match(alo, blo, 0)
        self._left -= sum(self._looks[alo:ahi])
        return super().find_longest_match(alo, ahi, blo, bhi)


def _same(old: Iterable[_Spaced], new: Iterable[_Spaced]) -> Iterator[_Hunk]:
    """The same words, with whatever white space stands before them on either side."""
    for (old_space, word), (new_space, _word) in zip(old, new, strict=True):
        if old_space == new_space:
            yield _Hunk(same=old_space + word)
        else:
            yield _Hunk(removed=old_space, added=new_space, same=word)


def _joint(spaced: Iterable[_Spaced]) -> str:
    return "".join(space + word for space, word in spaced)


def _joined(hunks: Iterable[_Hunk]) -> Iterator[_Hunk]:
    """Fewer hunks: changes with nothing same between them are one, and so is what stays the same after one."""
    gone, come, same = list[str](), list[str](), list[str]()
    for hunk in hunks:
        if same and (hunk.removed or hunk.added):
            yield _Hunk(removed="".join(gone), added="".join(come), same="".join(same))
            gone, come, same = [], [], []
        gone.append(hunk.removed)
        come.append(hunk.added)
        if hunk.same:
            same.append(hunk.same)
    yield _Hunk(removed="".join(gone), added="".join(come), same="".join(same))


def _readable(hunks: Iterable[_Hunk]) -> Iterator[_Hunk]:
    """One change instead of two that only a comma holds apart, and without white space that both of its sides share."""
    pending: _Hunk | None = None
    for hunk in hunks:
        if pending is None:
            pending = hunk
        elif (pending.removed or pending.added) and _is_tiny(pending.same):
            pending = _Hunk(
                removed=pending.removed + pending.same + hunk.removed,
                added=pending.added + pending.same + hunk.added,
                same=hunk.same,
            )
        else:
            yield from _trimmed(pending)
            pending = hunk
    if pending is not None:
        yield from _trimmed(pending)


def _is_tiny(same: str) -> bool:
    """Only punctuation on one line, and little of it: lists and paragraphs keep their shape."""
    return len(same) <= _TINY and "\n" not in same and not any(map(str.isalnum, same))


def _trimmed(hunk: _Hunk) -> Iterator[_Hunk]:
    removed, added = hunk.removed, hunk.added
    before = _common_space(removed, added)
    removed, added = removed[len(before) :], added[len(before) :]
    behind = _common_space(removed[::-1], added[::-1])[::-1]
    yield _Hunk(same=before)
    yield _Hunk(
        removed=removed[: len(removed) - len(behind)],
        added=added[: len(added) - len(behind)],
        same=behind + hunk.same,
    )


def _common_space(left: str, right: str) -> str:
    """The white space that both begin with."""
    length = next(
        (n for n, (a, b) in enumerate(zip(left, right, strict=False)) if a != b or not a.isspace()),
        min(len(left), len(right)),
    )
    return left[:length]
