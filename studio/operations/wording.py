"""The words of an agent: its canned responses and the terms of its glossary. What one may say, and writing it."""

from collections.abc import Iterable, Sequence

from django.db import transaction
from django.utils.translation import gettext as _

from engine.canned import check_template
from engine.errors import SpecError
from studio.models import CannedResponse, Guideline, Term
from studio.operations.agents import mark_changed

MAX_SYNONYMS = 20
MAX_SYNONYM_CHARACTERS = 120


class ResponseInUseError(Exception):
    """Guidelines of the agent use the canned response; `guidelines` are they."""

    def __init__(self, response: CannedResponse, guidelines: Sequence[Guideline]) -> None:
        super().__init__(f"{response.uid!r} is used by {len(guidelines)} guidelines")
        self.response = response
        self.guidelines = guidelines


def why_no_template(text: str) -> str:
    """Why `text` is no template of a canned response, with the line and the remedy; empty where it is one."""
    try:
        check_template(text)
    except SpecError as error:
        return str(error)
    return ""


def tidy_synonyms(name: str, synonyms: Iterable[str]) -> list[str]:
    """Each once, in whatever letters, and never the name itself."""
    kept: dict[str, str] = {}
    for synonym in synonyms:
        kept.setdefault(synonym.strip().casefold(), synonym.strip())
    for said in ("", name.strip().casefold()):
        kept.pop(said, None)
    return list(kept.values())


def why_no_synonyms(synonyms: Sequence[str]) -> str:
    """Why a term cannot have these other names; empty where it can."""
    if len(synonyms) > MAX_SYNONYMS:
        return _("These are %(count)d other names; at most %(limit)d are kept. Remove some.") % {
            "count": len(synonyms),
            "limit": MAX_SYNONYMS,
        }
    for synonym in synonyms:
        if len(synonym) > MAX_SYNONYM_CHARACTERS:
            return _(
                "“%(name)s…” has %(count)d characters; at most %(limit)d are kept. Shorten it."
            ) % {
                "name": synonym[:40],
                "count": len(synonym),
                "limit": MAX_SYNONYM_CHARACTERS,
            }
        if "," in synonym:
            return _("“%(name)s” contains a comma; write it as two names.") % {"name": synonym}
    return ""


def users_of(response: CannedResponse) -> list[Guideline]:
    """The guidelines that use it, in the author's order."""
    return list(Guideline.objects.filter(canned_responses=response).order_by("position", "pk"))


@transaction.atomic
def save_response(response: CannedResponse) -> CannedResponse:
    response.save()
    mark_changed(response.agent_id)
    return response


@transaction.atomic
def delete_response(response: CannedResponse, *, detach: bool = False) -> None:
    """Raises ResponseInUseError while guidelines use it, unless `detach` says that they lose it."""
    users = users_of(response)
    if users and not detach:
        raise ResponseInUseError(response, users)
    response.delete()
    mark_changed(response.agent_id)


@transaction.atomic
def save_term(term: Term) -> Term:
    term.save()
    mark_changed(term.agent_id)
    return term


@transaction.atomic
def delete_term(term: Term) -> None:
    term.delete()
    mark_changed(term.agent_id)
