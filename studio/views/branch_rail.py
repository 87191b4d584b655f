"""The rail that names a session's branches."""

from dataclasses import dataclass

from studio.models import Event, Session
from studio.operations.branches import branches_of

HUES = 6  # colours that the style sheet has for branches; after them they begin again


@dataclass(frozen=True, slots=True, kw_only=True)
class Branch:
    """One branch as the rail shows it. `after` is the turn it goes on from, None for the first; `said` begins it."""

    session: Session
    letter: str
    hue: int
    depth: int
    after: int | None
    said: str
    current: bool


def branch_rail(session: Session) -> list[Branch]:
    """The branches of the session's tree, each under the one it goes on from. Two queries."""
    tree = branches_of(session)
    if len(tree) < 2:
        return []
    places = {row.pk: place for place, row in enumerate(tree)}
    said = _first_words(tree)
    lines = {
        row.pk: Branch(
            session=row,
            letter=letter_of(places[row.pk]),
            hue=places[row.pk] % HUES,
            depth=len(row.ancestry),
            after=row.ancestry[0][1] if row.ancestry else None,
            said=said.get(row.pk, ""),
            current=row.pk == session.pk,
        )
        for row in tree
    }
    return [lines[row.pk] for row in _in_order(tree)]


def letter_of(place: int) -> str:
    """0 → A, 25 → Z, 26 → AA."""
    letters = ""
    place += 1
    while place:
        place, rest = divmod(place - 1, 26)
        letters = chr(ord("A") + rest) + letters
    return letters


def _first_words(tree: list[Session]) -> dict[int, str]:
    """What the customer said first in each branch itself."""
    found: dict[int, str] = {}
    events = Event.objects.filter(session__in=tree, kind="message", source="customer")
    begun = {row.pk: row.ancestry[0][2] if row.ancestry else 0 for row in tree}
    # A branch has few messages before its first turn, and the first of it is all that is wanted.
    first = events.filter(turn__number__in={_first_turn(row) for row in tree})
    for pk, offset, data in first.order_by("offset").values_list("session", "offset", "data"):
        if offset > begun[pk]:
            found.setdefault(pk, str(data.get("text", "")))
    return found


def _first_turn(branch: Session) -> int:
    return int(branch.ancestry[0][1]) + 1 if branch.ancestry else 1


def _in_order(tree: list[Session]) -> list[Session]:
    """Each after the one it goes on from, or after the first where that is none of them."""
    known = {row.pk for row in tree}
    children: dict[int, list[Session]] = {}
    for row in tree[1:]:
        above = (pk for pk, _turn, _offset in row.ancestry if pk in known)
        children.setdefault(next(above, tree[0].pk), []).append(row)

    ordered: list[Session] = []
    waiting = [tree[0]]
    while waiting:
        row = waiting.pop()
        ordered.append(row)
        waiting.extend(reversed(children.get(row.pk, [])))
    return ordered
