"""What the viewer may do, so that pages offer nothing that would be refused."""

from typing import Any

from django import template

from studio.access import May, allowed

register = template.Library()


@register.simple_tag(takes_context=True)
def may(context: Any, what: str) -> bool:
    """`{% may "publish" as may_publish %}`; the words are those of `studio.access.May`."""
    user = context.get("user")
    return user is not None and allowed(user, May(what))
