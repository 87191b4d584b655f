"""What came of a guideline's tools, in words."""

from django import template
from django.utils.translation import gettext_lazy

from studio.guideline_figures import ToolFigures

register = template.Library()

_WORDS = {
    "ran": gettext_lazy("ran %(count)d"),
    "failed": gettext_lazy("failed %(count)d"),
    "known": gettext_lazy("already known %(count)d"),
    "asked": gettext_lazy("asked to confirm %(count)d"),
    "not_needed": gettext_lazy("not needed %(count)d"),
    "other": gettext_lazy("not run to the end %(count)d"),
    "cannot_run": gettext_lazy("could not run %(count)d"),
}


@register.filter
def outcomes(figures: ToolFigures) -> str:
    """“ran 10 · failed 1”, without what never happened; why it could not run may follow."""
    counted = ((words, getattr(figures, name)) for name, words in _WORDS.items())
    return " · ".join(str(words) % {"count": count} for words, count in counted if count)
