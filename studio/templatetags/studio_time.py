"""Moments as people read them: how long ago, with the exact time behind it."""

from datetime import datetime, timedelta

from django import template
from django.utils import timezone
from django.utils.formats import date_format
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.timesince import timesince
from django.utils.translation import gettext as _

register = template.Library()


@register.filter
def ago(moment: datetime | None) -> SafeString | str:
    """“3 minutes ago” as a <time>, whose title is the exact time; a script puts that into the viewer's zone."""
    if moment is None:
        return _("never")
    if timezone.now() - moment < timedelta(minutes=1):
        return _time(moment, _("just now"), local=False)
    words = _("%(time)s ago") % {"time": timesince(moment, depth=1)}
    return _time(moment, words, local=False)


@register.filter
def exactly(moment: datetime | None) -> SafeString | str:
    """Date and time, in the viewer's zone as soon as the script ran."""
    if moment is None:
        return _("never")
    shown = date_format(timezone.localtime(moment), "DATETIME_FORMAT")
    return _time(moment, f"{shown} {timezone.localtime(moment).tzname()}", local=True)


def _time(moment: datetime, words: str, *, local: bool) -> SafeString:
    return format_html(
        '<time datetime="{}" title="{}"{}>{}</time>',
        moment.isoformat(timespec="seconds"),
        date_format(timezone.localtime(moment), "DATETIME_FORMAT"),
        " data-local" if local else "",
        words,
    )
