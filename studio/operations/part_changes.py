"""What differs between two compiled agents beside their guidelines: terms, canned responses, relationships, tools."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any, TypeVar

from django.utils.translation import gettext as _

from engine import spec
from studio.models import Agent, Relationship

_NAME_LENGTH = 80
Part = TypeVar("Part", spec.Term, spec.CannedResponse, spec.Relationship)


class How(StrEnum):
    ADDED = "added"
    CHANGED = "changed"
    REMOVED = "removed"


@dataclass(frozen=True, slots=True, kw_only=True)
class PartChange:
    """`what` is the kind of part in a word, `words` what it says; of a changed one also what it said `before`."""

    how: How
    what: str
    words: str
    before: str = ""


def part_changes(before: spec.Agent, after: spec.Agent) -> tuple[PartChange, ...]:
    """Terms, canned responses, relationships and groups of overlapping tools, in this order."""
    return (
        *_compared(_("Term"), before.terms, after.terms, _term_words, _term_words),
        *_compared(
            _("Response"),
            before.canned_responses,
            after.canned_responses,
            lambda response: response.text,
            lambda response: response.text,
        ),
        *_compared(
            _("Relationship"),
            before.relationships,
            after.relationships,
            lambda relationship: _relationship_words(before, relationship),
            lambda relationship: _relationship_words(after, relationship),
        ),
        *_overlaps(before, after),
    )


def _compared(
    what: str,
    old: tuple[Part, ...],
    new: tuple[Part, ...],
    said: Callable[[Part], str],
    says: Callable[[Part], str],
) -> Iterator[PartChange]:
    known: Mapping[str, Part] = {part.uid: part for part in old}
    for part in new:
        earlier = known.get(part.uid)
        if earlier is None:
            yield PartChange(how=How.ADDED, what=what, words=says(part))
        elif earlier != part:
            yield PartChange(how=How.CHANGED, what=what, words=says(part), before=said(earlier))
    kept = {part.uid for part in new}
    for part in old:
        if part.uid not in kept:
            yield PartChange(how=How.REMOVED, what=what, words=said(part))


def _overlaps(before: spec.Agent, after: spec.Agent) -> Iterator[PartChange]:
    old, new = set(before.overlaps), set(after.overlaps)
    for how, groups in ((How.ADDED, new - old), (How.REMOVED, old - new)):
        for group in sorted(groups):
            yield PartChange(how=how, what=_("Overlapping tools"), words=", ".join(group))


def _term_words(term: spec.Term) -> str:
    if not term.synonyms:
        return f"{term.name}: {term.description}"
    return _("%(name)s: %(meaning)s (also: %(names)s)") % {
        "name": term.name,
        "meaning": term.description,
        "names": ", ".join(term.synonyms),
    }


def _relationship_words(agent: spec.Agent, relationship: spec.Relationship) -> str:
    kinds: dict[str, Any] = dict(Relationship.Kind.choices)
    return " ".join(
        (
            _name(agent, relationship.source),
            str(kinds[relationship.kind.value]),
            ", ".join(_name(agent, uid) for uid in relationship.targets),
        )
    )


def _name(agent: spec.Agent, uid: str) -> str:
    guideline = agent.guideline_by_uid.get(uid)
    words = (guideline.condition or guideline.action) if guideline is not None else uid
    return f"“{words[:_NAME_LENGTH]}…”" if len(words) > _NAME_LENGTH else f"“{words}”"


def agent_sentences(before: spec.Agent, after: spec.Agent) -> list[str]:
    """What differs in the agent's own settings."""
    said = []
    if before.name != after.name:
        said.append(_("The name is now “%(name)s”.") % {"name": after.name})
    if before.description != after.description:
        said.append(_("The description was rewritten."))
    if before.tone != after.tone:
        said.append(_("The tone is now: %(tone)s") % {"tone": after.tone or _("none of its own")})
    if before.composition is not after.composition:
        ways: dict[str, Any] = dict(Agent.Composition.choices)
        said.append(
            _("How replies are written is now: %(way)s") % {"way": ways[after.composition.value]}
        )
    if before.no_match != after.no_match:
        words = after.no_match or spec.NO_MATCH
        said.append(_("When no response fits it now says: “%(words)s”") % {"words": words})
    if before.verified_replies != after.verified_replies:
        said.append(
            _("Replies are now verified.")
            if after.verified_replies
            else _("Replies are no longer verified.")
        )
    if before.max_iterations != after.max_iterations:
        said.append(
            _("A turn may take %(count)d iterations instead of %(before)d.")
            % {"count": after.max_iterations, "before": before.max_iterations}
        )
    return said


def tool_sentences(before: spec.Agent, after: spec.Agent) -> list[str]:
    old, new = before.tool_by_name, after.tool_by_name
    said = []
    for name in sorted(old.keys() | new.keys()):
        if name not in old:
            said.append(_("The tool %(name)s was added.") % {"name": name})
        elif name not in new:
            said.append(_("The tool %(name)s is no longer there.") % {"name": name})
        elif replace(old[name], uid="") != replace(new[name], uid=""):
            said.append(_("The tool %(name)s changed.") % {"name": name})
    return said
