"""Relationships as sentences: what each kind says of its guideline, and of those it is about."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from django.db.models import Q
from django.utils.translation import gettext_lazy

from studio.models import Agent, Guideline, Relationship
from studio.operations.removal import relationships_of

_FOUND = 20
Kind = Relationship.Kind


@dataclass(frozen=True, slots=True, kw_only=True)
class KindWords:
    """`title` names the kind, `does` says what it does, `is_done` what it means for a target: before "‘x’"."""

    title: Any
    does: Any
    is_done: Any


KINDS: dict[str, KindWords] = {
    Kind.HAS_PRIORITY_OVER.value: KindWords(
        title=gettext_lazy("has priority over"),
        does=gettext_lazy("While it applies, the others are dropped."),
        is_done=gettext_lazy("is dropped while this applies:"),
    ),
    Kind.DEPENDS_ON_ALL.value: KindWords(
        title=gettext_lazy("applies only together with all of"),
        does=gettext_lazy("It is dropped unless all the others apply too."),
        is_done=gettext_lazy("is needed by"),
    ),
    Kind.DEPENDS_ON_ANY.value: KindWords(
        title=gettext_lazy("applies only together with one of"),
        does=gettext_lazy("It is dropped unless at least one of the others applies too."),
        is_done=gettext_lazy("is one of those needed by"),
    ),
    Kind.ENTAILS.value: KindWords(
        title=gettext_lazy("brings along"),
        does=gettext_lazy("When it applies, the others apply too."),
        is_done=gettext_lazy("is brought along by"),
    ),
    Kind.DISAMBIGUATES.value: KindWords(
        title=gettext_lazy("asks which is meant of"),
        does=gettext_lazy("When it applies, the customer is asked which of the others they mean."),
        is_done=gettext_lazy("waits for the customer's choice when this applies:"),
    ),
    Kind.ALTERNATIVE_TO.value: KindWords(
        title=gettext_lazy("is an alternative to"),
        does=gettext_lazy(
            "Of those that apply, only the one of the highest priority number stays."
        ),
        is_done=gettext_lazy("is an alternative to"),
    ),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """One relationship, said of one guideline: its `words`, and the `others`."""

    relationship: Relationship
    words: Any
    others: tuple[Guideline, ...]
    incoming: bool = False


def lines_of(guideline: Guideline) -> list[Line]:
    """What relates a guideline to others, its own relationships first."""
    return [
        _line(row) if row.source_id == guideline.pk else _incoming(row)
        for row in relationships_of(guideline)
    ]


def _line(row: Relationship) -> Line:
    targets = sorted(row.targets.all(), key=lambda target: (target.position, target.pk))
    return Line(relationship=row, words=KINDS[row.kind].title, others=tuple(targets))


def _incoming(row: Relationship) -> Line:
    words = KINDS[row.kind].is_done
    return Line(relationship=row, words=words, others=(row.source,), incoming=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """The relationships of one kind, on this page."""

    kind: str
    words: KindWords
    lines: tuple[Line, ...]


def grouped(rows: Iterable[Relationship]) -> list[Group]:
    """By kind, in the order of KINDS."""
    found: dict[str, list[Line]] = {}
    for row in rows:
        found.setdefault(row.kind, []).append(_line(row))
    return [
        Group(kind=kind, words=words, lines=tuple(found[kind]))
        for kind, words in KINDS.items()
        if kind in found
    ]


@dataclass(frozen=True, slots=True, kw_only=True)
class Picker:
    """Guidelines to choose from: those `chosen`, and of the others the first that fit the words searched for."""

    name: str
    q: str
    chosen: tuple[Guideline, ...]
    found: tuple[Guideline, ...]
    more: int


def picker(agent: Agent, name: str, *, chosen: Iterable[str], q: str, without: str = "") -> Picker:
    """`without` is the uid of one that cannot be chosen."""
    uids = {uid for uid in chosen if "\x00" not in uid}
    words = q.replace("\x00", "").strip()[:200]
    fitting = agent.guidelines.exclude(uid__in=uids | {without})
    for word in words.split():
        fitting = fitting.filter(
            Q(condition__icontains=word) | Q(action__icontains=word) | Q(uid__iexact=word)
        )
    found = tuple(fitting[:_FOUND])
    return Picker(
        name=name,
        q=words,
        chosen=tuple(agent.guidelines.filter(uid__in=uids)),
        found=found,
        more=fitting.count() - len(found),
    )
