"""Flags: remarks of people on messages. They are no part of the conversation, and change nothing in it."""

from typing import TYPE_CHECKING

from django.db.models import QuerySet
from django.utils import timezone
from django.utils.translation import gettext as _

from studio.models import Event, Flag, Session

if TYPE_CHECKING:
    from django.contrib.auth.models import User

MAX_COMMENT_CHARACTERS = 2_000


class FlagRefusedError(Exception):
    """The comment cannot be kept; the text says why and what to do."""


def set_flag(event: Event, comment: str, *, by: "User") -> Flag:
    """Remark on a message. Raises FlagRefusedError where the comment is empty, too long or cannot be stored."""
    words = comment.strip()
    if not words:
        raise FlagRefusedError(_("Say in a few words what is to be looked at."))
    if len(words) > MAX_COMMENT_CHARACTERS:
        raise FlagRefusedError(
            _("The comment has %(count)d characters; at most %(most)d are kept. Shorten it.")
            % {"count": len(words), "most": MAX_COMMENT_CHARACTERS}
        )
    if "\x00" in words:
        raise FlagRefusedError(_("The comment holds a character that cannot be stored; remove it."))
    return Flag.objects.create(event=event, comment=words, created_by=by.username)


def close_flag(flag: Flag, *, by: "User") -> bool:
    """It has been seen to; False where somebody closed it before."""
    open_ones = Flag.objects.filter(pk=flag.pk, closed_at=None)
    closed = open_ones.update(closed_at=timezone.now(), closed_by=by.username) == 1
    flag.refresh_from_db(fields=["closed_at", "closed_by"])
    return closed


def reopen_flag(flag: Flag) -> bool:
    """It has to be looked at again; False where it is open."""
    closed_ones = Flag.objects.filter(pk=flag.pk, closed_at__isnull=False)
    reopened = closed_ones.update(closed_at=None, closed_by="") == 1
    flag.refresh_from_db(fields=["closed_at", "closed_by"])
    return reopened


def flags_of(session: Session) -> QuerySet[Flag]:
    """On messages along the session's line, in the order of the messages."""
    along = Flag.objects.filter(event__in=session.line.events).select_related("event")
    return along.order_by("event__offset", "pk")
