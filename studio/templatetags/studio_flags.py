"""The open flags of a message, for every template that shows one."""

from django import template

from studio.models import Flag, Session
from studio.operations.flags import flags_of

register = template.Library()

_READ = "_studio_open_flags"  # on the session's own object, so that it lives as long as what is drawn of it


@register.simple_tag
def open_flags(session: Session, offset: int) -> list[Flag]:
    """Of the message at this offset of the session's line; one query for all messages."""
    found: dict[int, list[Flag]] | None = getattr(session, _READ, None)
    if found is None:
        found = {}
        for flag in flags_of(session).filter(closed_at=None):
            found.setdefault(flag.event.offset, []).append(flag)
        setattr(session, _READ, found)
    return found.get(offset, [])
