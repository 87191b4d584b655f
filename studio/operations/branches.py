"""Going on from an earlier turn another way: regenerate, edit and resend, branch. Nothing is ever deleted."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from django.db import transaction
from django.db.models import Max, Q
from django.utils.translation import gettext as _

from engine.events import ConfirmationAnsweredEvent, MessageEvent, Source
from studio.bridge import read_event
from studio.models import Event, Session, Tool, Turn
from studio.operations.confirmations import ANSWERED
from studio.operations.turns import append_event, check_text, supersede, turn_to_answer

if TYPE_CHECKING:
    from django.contrib.auth.models import User


class BranchRefusedError(Exception):
    """The session cannot be gone on from there; the text says why and what to do."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Branched:
    """The new branch, and the turn of it that was asked for at once, if any."""

    session: Session
    turn: Turn | None


def branch_from(session: Session, after_turn: int, *, by: "User | None" = None) -> Session:
    """A branch that goes on after the turn `after_turn` of the session's line; after 0, from the beginning.

    It runs on what the session runs on. Raises BranchRefusedError where there is no such turn or it is not over.
    """
    with transaction.atomic():
        locked = Session.objects.select_for_update().get(pk=session.pk)
        parent, until = _place(locked, after_turn)
        branch = Session(
            agent_id=locked.agent_id,
            follows=locked.follows,
            version_id=locked.version_id,
            customer_id=locked.customer_id,
            connection_id=locked.connection_id,
            title=locked.title,
            tool_mode=locked.tool_mode,
            created_by=by,
            root_id=locked.root_id or locked.pk,
            ancestry=_ancestry(parent, after_turn, until),
            next_turn=after_turn + 1,
            next_offset=until + 1,
        )
        branch.mode = _mode_at(locked, branch)
        branch.save()
    return branch


def rehearsal_branch(session: Session, after_turn: int) -> Session:
    """A branch in which the studio plays a turn by itself; it stands in no list. Raises BranchRefusedError."""
    branch = branch_from(session, after_turn)
    branch.purpose = Session.Purpose.REPLAY
    branch.mode = Session.Mode.AUTO
    branch.save(update_fields=["purpose", "mode"])
    return branch


def regenerate(
    session: Session, number: int, *, by: "User | None" = None, enqueue: bool = True
) -> Branched:
    """Answer what was said in a turn once more, in a sibling branch. Raises BranchRefusedError.

    `enqueue` as in `operations.turns.send_message`.
    """
    return _again(session, number, {}, by=by, enqueue=enqueue)


def resend(
    session: Session,
    number: int,
    text: str,
    *,
    offset: int | None = None,
    by: "User | None" = None,
    enqueue: bool = True,
) -> Branched:
    """Say something else in place of the customer's message at `offset` (the last of the turn, unless given).

    The answer comes in a sibling branch. Raises BranchRefusedError and MessageRefusedError.
    """
    words = check_text(text)
    said = _said(_turn(session, number))
    edited = [event for event in said if event.kind == "message"]
    if offset is not None:
        edited = [event for event in edited if event.offset == offset]
    if not edited:
        raise BranchRefusedError(_("In this turn the customer wrote nothing that could be edited."))
    return _again(session, number, {edited[-1].offset: words}, by=by, enqueue=enqueue)


def branches_of(session: Session) -> list[Session]:
    """All branches that somebody talks in of the session's tree, in the order in which they were begun."""
    root = session.root_id or session.pk
    return list(Session.objects.chats().filter(Q(pk=root) | Q(root=root)).order_by("pk"))


def tree_of(session: Session) -> list[Session]:
    """The session, all branches of its tree and everything that these go on from, in that order too."""
    branches = branches_of(session)
    known = {row.pk for row in branches}
    wanted = {pk for row in (session, *branches) for pk, _turn, _offset in row.ancestry}
    missing = (wanted | {session.pk}) - known
    if not missing:
        return branches
    return list(Session.objects.filter(pk__in=known | missing).order_by("pk"))


def changing_tools(turn: Turn) -> list[str]:
    """Names of the tools that the turn ran and that change something: answering it again may run them again."""
    ran = set(turn.calls.values_list("tool", flat=True))
    tools = Tool.objects.filter(name__in=ran, consequential=True)
    return list(tools.values_list("name", flat=True))


def _again(
    session: Session,
    number: int,
    edited: dict[int, str],
    *,
    by: "User | None",
    enqueue: bool,
) -> Branched:
    said = _said(_turn(session, number))
    if not said:
        raise BranchRefusedError(
            _(
                "Turn %(number)d answered no message of the customer: there is nothing to answer anew."
            )
            % {"number": number}
        )
    with transaction.atomic():
        branch = branch_from(session, number - 1, by=by)
        if branch.mode == Session.Mode.MANUAL:
            # The turn ran although a person answers by now: it is answered by the agent again.
            branch.mode = Session.Mode.AUTO
            branch.save(update_fields=["mode"])
        turn = turn_to_answer(branch)
        for event in said:
            append_event(branch, turn, _as_said(event, edited))
        supersede(branch, turn, enqueue=enqueue)
    return Branched(session=branch, turn=turn)


def _as_said(event: Event, edited: dict[int, str]) -> MessageEvent | ConfirmationAnsweredEvent:
    if event.kind == "message":
        text = edited.get(event.offset, str(event.data.get("text", "")))
        return MessageEvent(source=Source.CUSTOMER, text=text)
    answer = read_event(event)
    assert isinstance(answer, ConfirmationAnsweredEvent)  # noqa: S101 - `_said` takes no other kind
    return answer


def _turn(session: Session, number: int) -> Turn:
    turn = session.line.turns.select_related("session").filter(number=number).first()
    if turn is None:
        raise BranchRefusedError(_("This session has no turn %(number)d.") % {"number": number})
    return turn


def _said(turn: Turn) -> list[Event]:
    """What the customer said in the turn, in words and by button."""
    events = turn.events.filter(kind__in=["message", ANSWERED], source=Source.CUSTOMER)
    return [
        event
        for event in events.order_by("offset")
        # An answer that was read from the customer's words will be read from them again.
        if event.kind == "message" or not event.data.get("because")
    ]


def _place(session: Session, after_turn: int) -> tuple[Session, int]:
    """The session that a branch after this turn goes on from, and the last offset that it takes over."""
    own = 0
    if after_turn:
        turn = _turn(session, after_turn)
        if not turn.is_over:
            raise BranchRefusedError(
                _("Turn %(number)d is still running: stop it, or wait for its end.")
                % {"number": after_turn}
            )
        # A turn that was superseded may end after the next one began.
        own = turn.events.aggregate(last=Max("offset"))["last"] or 0
    later = session.line.turns.select_related("session").filter(number__gt=after_turn)
    following = later.order_by("number").first()
    if following is None:
        # Up to now: what was said outside of turns since belongs to it.
        return session, session.next_offset - 1
    return following.session, max(own, following.first_offset - 1)


def _ancestry(parent: Session, turn: int, offset: int) -> list[list[int]]:
    """Without the parent where nothing of its own comes before the branch."""
    if parent.ancestry and offset <= parent.ancestry[0][2]:
        return list(parent.ancestry)
    return [[parent.pk, turn, offset], *parent.ancestry]


def _mode_at(session: Session, branch: Session) -> str:
    """The mode at the point where the branch begins."""
    until = branch.next_offset - 1
    said = session.line.events.filter(kind="mode").order_by("offset")
    before = said.filter(offset__lte=until).last()
    if before is not None:
        return str(before.data["mode"])
    later = said.first()
    if later is None:
        return session.mode
    handed_over = later.data["mode"] == Session.Mode.MANUAL
    return str(Session.Mode.AUTO if handed_over else Session.Mode.MANUAL)
