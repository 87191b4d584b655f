"""In words: what a relationship between guidelines did to one of them, and how a reply came about."""

from collections.abc import Collection, Iterable, Mapping
from typing import Any

from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from engine.spec import Composition, Guideline, RelationKind
from studio.templatetags.studio_text import after_when

_LONGEST_NAME = 70


def name_of(guideline: Guideline | None, uid: str) -> str:
    """How a sentence names a guideline: by its condition, else its action, in quotes."""
    if guideline is None:
        return _quoted(uid)
    return _quoted(after_when(guideline.condition) if guideline.condition else guideline.action)


def _quoted(words: str) -> str:
    line = " ".join(words.split())
    short = line if len(line) <= _LONGEST_NAME else f"{line[: _LONGEST_NAME - 1].rstrip()}…"
    return _("‘%s’") % short


def effect_words(
    match: Mapping[str, Any],
    guidelines: Mapping[str, Guideline],
    disambiguating: Collection[tuple[str, str]],
) -> str:
    """Why a guideline was dropped or came into force although it was judged otherwise; empty where nothing did it.

    `disambiguating` holds (source, target) of every disambiguation.
    """
    dropped_by, added_by = match["dropped_by"], match["added_by"]
    if added_by and not dropped_by:
        return _("Brought along by %(name)s.") % {
            "name": name_of(guidelines.get(added_by), added_by)
        }
    if not dropped_by:
        return ""
    other = {"name": name_of(guidelines.get(dropped_by), dropped_by)}
    match match["relation"]:
        case RelationKind.HAS_PRIORITY_OVER:
            return _("%(name)s has priority.") % other
        case RelationKind.DEPENDS_ON_ALL:
            return _("It needs %(name)s, which is not in force.") % other
        case RelationKind.DEPENDS_ON_ANY:
            return _("It needs %(name)s or another of its kind, and none is in force.") % other
        case RelationKind.ALTERNATIVE_TO:
            return _("%(name)s has the higher priority number.") % other
        case RelationKind.ENTAILS:
            return _("It came only with %(name)s, which was dropped.") % other
        case RelationKind.DISAMBIGUATES if (match["guideline"], dropped_by) in disambiguating:
            return _("There is nothing to ask: %(name)s is meant.") % other
        case RelationKind.DISAMBIGUATES:
            return _("%(name)s asks first which is meant.") % other
        case _:
            return _("Dropped by %(name)s.") % other


def asks_words(meant: Iterable[Guideline]) -> str:
    """What a guideline does that says that the customer may mean one of several, at least one."""
    names = [name_of(guideline, guideline.uid) for guideline in meant]
    last = names.pop()
    if not names:
        return _("Asks whether %(last)s is meant.") % {"last": last}
    return _("Asks which is meant: %(names)s or %(last)s.") % {
        "names": ", ".join(names),
        "last": last,
    }


def reply_words(source: Mapping[str, Any]) -> str:
    """How the reply came about, of `audit["reply_source"]`, as a sentence."""
    count = len(source["responses"])
    match source["composition"]:
        case Composition.STRICT if not source["fits"]:
            return _("No canned response fitted, so the agent’s text for that was said.")
        case Composition.STRICT:
            return _("A canned response, word for word.")
        case Composition.COMPOSITED if count:
            words = ngettext(
                "Written in the style of %(count)d canned response.",
                "Written in the style of %(count)d canned responses.",
                count,
            )
            return words % {"count": count}
        case Composition.COMPOSITED:
            return _("Written freely: no canned response was there to set the style.")
        case _:
            return _("Written freely.")
