"""The items of a document's lists: how each is read, what it is called, and what is wrong with one by itself."""

from collections.abc import Callable, Hashable
from dataclasses import dataclass
from typing import Any

from django.core.exceptions import ValidationError as DjangoError
from django.db.models import Model, TextField
from django.utils.translation import gettext as _
from pydantic import ValidationError

from studio.models import (
    CannedResponse,
    Guideline,
    GuidelineExample,
    Relationship,
    Term,
)
from studio.operations.contents import (
    SAME,
    ExampleContent,
    GuidelineContent,
    OverlapContent,
    RelationshipContent,
    ResponseContent,
    TermContent,
)
from studio.operations.document_report import ReportRow
from studio.operations.wording import tidy_synonyms, why_no_synonyms, why_no_template

_TITLE_LENGTH = 80


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind:
    """One list of the document."""

    shape: type[Any]
    tidy: Callable[
        [Any], Any
    ]  # as it would be stored and read again, so that comparing tells changes and no more
    title: Callable[[Any], str]
    check: Callable[[Any, ReportRow], None]
    # What no two items of the list share, with the field it is reported at; guidelines may say the same twice.
    unlike: Callable[[Any], Hashable] | None = None
    field: str = ""


def validated(shape: type[Any], value: Any, row: ReportRow) -> Any:
    """The value as its shape, or None and the reasons in the row."""
    try:
        return shape.model_validate(value)
    except ValidationError as error:
        for problem in error.errors(include_url=False, include_input=False):
            row.wrong(_dotted(problem["loc"]), problem["msg"])
        return None


def clean(
    instance: Model, row: ReportRow, *, exclude: set[str] | None = None, prefix: str = ""
) -> None:
    """What the fields of the unsaved row refuse."""
    try:
        instance.clean_fields(exclude=exclude)
    except DjangoError as error:
        for name, messages in error.message_dict.items():
            for message in messages:
                row.wrong(f"{prefix}{name}", message)
    for field in instance._meta.fields:  # of these, only forms look at the length
        value = getattr(instance, field.attname)
        limit = field.max_length
        if isinstance(field, TextField) and limit is not None and len(value) > limit:
            row.wrong(
                f"{prefix}{field.name}",
                _("This has %(count)d characters; at most %(limit)d are kept. Shorten it.")
                % {"count": len(value), "limit": limit},
            )


def _dotted(location: tuple[int | str, ...]) -> str:
    text = "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in location)
    return text.removeprefix(".")


def _short(text: str) -> str:
    return text if len(text) <= _TITLE_LENGTH else f"{text[: _TITLE_LENGTH - 1]}…"


# --- Guidelines ------------------------------------------------------------------------------------------------------


def _tidy_guideline(item: GuidelineContent) -> GuidelineContent:
    examples = [
        ExampleContent(text=example.text.strip(), matches=example.matches)
        for example in item.examples
    ]
    return item.model_copy(
        update={
            "condition": item.condition.strip(),
            "action": item.action.strip(),
            "tags": list(dict.fromkeys(tag.strip() for tag in item.tags if tag.strip())),
            "tools": sorted(set(item.tools)),
            "reevaluate_after": sorted(set(item.reevaluate_after)),
            "canned_responses": sorted(set(item.canned_responses)),
            "examples": sorted(examples, key=lambda example: not example.matches),
        }
    )


def _check_guideline(item: GuidelineContent, row: ReportRow) -> None:
    values = item.model_dump(exclude={"tools", "reevaluate_after", "canned_responses", "examples"})
    clean(Guideline(**values), row, exclude={"agent", "uid"})
    if not item.condition and not item.action:
        row.wrong("", _("Write when it applies, what to do, or both."))
    seen: set[str] = set()
    for place, example in enumerate(item.examples):
        where = f"examples[{place}]."
        clean(GuidelineExample(text=example.text), row, exclude={"guideline"}, prefix=where)
        if example.text in seen:
            row.wrong(f"{where}text", _("This message stands here twice."))
        seen.add(example.text)


# --- Words -----------------------------------------------------------------------------------------------------------


def _tidy_term(item: TermContent) -> TermContent:
    return item.model_copy(
        update={
            "name": item.name.strip(),
            "description": item.description.strip(),
            "synonyms": tidy_synonyms(item.name, item.synonyms),
        }
    )


def _check_term(item: TermContent, row: ReportRow) -> None:
    term = Term(name=item.name, description=item.description, synonyms=item.synonyms)
    clean(term, row, exclude={"agent", "uid"})
    if why := why_no_synonyms(item.synonyms):
        row.wrong("synonyms", why)


def _tidy_response(item: ResponseContent) -> ResponseContent:
    return item.model_copy(update={"text": item.text.strip()})


def _check_response(item: ResponseContent, row: ReportRow) -> None:
    clean(CannedResponse(text=item.text), row, exclude={"agent", "uid"})
    if not row.problems and (why := why_no_template(item.text)):
        row.wrong("text", why)


# --- Relationships ---------------------------------------------------------------------------------------------------


def _tidy_relationship(item: RelationshipContent) -> RelationshipContent:
    return item.model_copy(update={"targets": sorted(set(item.targets))})


def _check_relationship(item: RelationshipContent, row: ReportRow) -> None:
    clean(Relationship(kind=item.kind), row, exclude={"agent", "uid", "source"})
    if not item.source:
        row.wrong("source", _("Name the guideline that it is about, by its uid."))
    if not item.targets:
        row.wrong("targets", _("Name at least one guideline, by its uid."))
    elif item.source in item.targets:
        row.wrong(
            "targets", _("A guideline has no relationship to itself; take it off the targets.")
        )


def _relationship_title(item: RelationshipContent) -> str:
    kinds: dict[str, Any] = dict(Relationship.Kind.choices)
    return _short(f"{item.source} {kinds.get(item.kind, item.kind)} {', '.join(item.targets)}")


def _tidy_overlap(item: OverlapContent) -> OverlapContent:
    return item.model_copy(update={"tools": sorted(set(item.tools))})


def _check_overlap(item: OverlapContent, row: ReportRow) -> None:
    if len(item.tools) < 2:
        row.wrong("tools", _("Name at least two tools."))


KINDS: dict[str, Kind] = {
    "terms": Kind(
        shape=TermContent,
        tidy=_tidy_term,
        title=lambda item: _short(item.name),
        check=_check_term,
        unlike=SAME["terms"],
        field="name",
    ),
    "canned_responses": Kind(
        shape=ResponseContent,
        tidy=_tidy_response,
        title=lambda item: _short(item.text),
        check=_check_response,
        unlike=SAME["canned_responses"],
        field="text",
    ),
    "guidelines": Kind(
        shape=GuidelineContent,
        tidy=_tidy_guideline,
        title=lambda item: _short(item.condition or item.action),
        check=_check_guideline,
    ),
    "relationships": Kind(
        shape=RelationshipContent,
        tidy=_tidy_relationship,
        title=_relationship_title,
        check=_check_relationship,
        unlike=SAME["relationships"],
        field="kind",
    ),
    "overlaps": Kind(
        shape=OverlapContent,
        tidy=_tidy_overlap,
        title=lambda item: _short(", ".join(item.tools)),
        check=_check_overlap,
        unlike=SAME["overlaps"],
        field="tools",
    ),
}
