"""An agent as one document, YAML or JSON: written in a stable order, fit for version control, and read back."""

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Literal

from django.core.exceptions import ValidationError as DjangoError
from django.db import transaction
from django.db.models import Model
from django.utils.text import slugify
from django.utils.translation import gettext as _
from pydantic import BaseModel, ValidationError

from engine.canonical import JsonObject
from studio.models import Agent, Guideline, GuidelineExample, Tool
from studio.models.agent import new_uid
from studio.operations.agents import mark_changed
from studio.operations.drafts import (
    AgentContent,
    ExampleContent,
    GuidelineContent,
    content_of,
    replace_draft,
    rows_of_tools,
    tools_named,
)
from studio.yaml_text import DocumentSyntaxError, read_yaml, write_yaml

SCHEMA_VERSION = 1
_UID = re.compile(r"[A-Za-z0-9_-]{1,32}")
_TITLE_LENGTH = 80


class Change(StrEnum):
    """What the import does to a row."""

    CREATE = "create"
    UPDATE = "update"
    UNCHANGED = "unchanged"
    DELETE = "delete"
    ERROR = "error"


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """What is wrong, and where: `guidelines[0].tools[2]` is the third tool of the first guideline."""

    place: str
    message: str


@dataclass(slots=True, kw_only=True)
class ReportRow:
    """What becomes of the agent, or of one guideline; `place` is empty for one that the document no longer has."""

    place: str
    uid: str = ""
    title: str = ""
    change: Change = Change.UNCHANGED
    problems: list[Problem] = field(default_factory=list)


@dataclass(slots=True, kw_only=True)
class Report:
    slug: str
    rows: list[ReportRow]

    @property
    def problems(self) -> list[Problem]:
        return [problem for row in self.rows for problem in row.problems]

    @property
    def changed(self) -> bool:
        return any(row.change is not Change.UNCHANGED for row in self.rows)


class DocumentError(Exception):
    """The document cannot be imported, and nothing was changed; `report` says why, row by row."""

    def __init__(self, report: Report) -> None:
        super().__init__("\n".join(f"{p.place}: {p.message}" for p in report.problems))
        self.report = report


# --- Writing ---------------------------------------------------------------------------------------------------------


def to_json(content: AgentContent) -> JsonObject:
    """The document as a JSON object. What is as usual is left out of a guideline, so that it reads easily."""
    agent: JsonObject = content.model_dump(exclude={"guidelines"})
    guidelines = [
        {"uid": item.uid, **item.model_dump(exclude_defaults=True)} for item in content.guidelines
    ]
    return {"schema_version": SCHEMA_VERSION, **agent, "guidelines": guidelines}


def to_text(content: AgentContent, style: Literal["yaml", "json"] = "yaml") -> str:
    """The document as text: the same text for the same content."""
    value = to_json(content)
    if style == "json":
        return json.dumps(value, indent=2, ensure_ascii=False) + "\n"
    return write_yaml(value)


# --- Reading ---------------------------------------------------------------------------------------------------------


def import_document(
    text: str,
    *,
    dry_run: bool = False,
    authorise: Callable[[str, bool], None] | None = None,
) -> Report:
    """Make the draft of the agent that the document names what the document says; a new agent where there is none.

    Guidelines are the same by `uid`; those that the document no longer has are deleted. Nothing is changed on a
    `dry_run`, and nothing on a DocumentError. `authorise(slug, exists)` may raise before anything is read or changed.
    """
    reading = _Reading()
    content = reading.read(text)
    with transaction.atomic():
        agent = Agent.objects.filter(slug=content.slug).first()
        if authorise is not None:
            authorise(content.slug, agent is not None)
        tools = rows_of_tools(tools_named(content))
        reading.check_tools(content, tools)
        content = reading.settle_uids(content, agent)
        report = reading.compare(content, agent)
        if report.problems:
            raise DocumentError(report)
        if report.changed and not dry_run:
            if agent is None:
                agent = Agent.objects.create(slug=content.slug, name=content.name)
            replace_draft(agent, content, tools)
            mark_changed(agent.pk)
    return report


class _Reading:
    """One document on its way in: collects what is wrong with each row."""

    def __init__(self) -> None:
        self.agent = ReportRow(place="agent")
        self.guidelines: list[ReportRow] = []
        self.slug = ""

    @property
    def report(self) -> Report:
        return Report(slug=self.slug, rows=[self.agent, *self.guidelines])

    def read(self, text: str) -> AgentContent:
        """The content as far as it can be understood; raises DocumentError where it cannot at all."""
        try:
            value = _parse(text)
        except DocumentSyntaxError as error:
            self._wrong(self.agent, "", str(error))
            raise DocumentError(self.report) from error
        version = value.pop("schema_version", SCHEMA_VERSION)
        if version != SCHEMA_VERSION:
            self._wrong(
                self.agent,
                "schema_version",
                _("This studio reads version %(known)d, not %(given)r.")
                % {"known": SCHEMA_VERSION, "given": version},
            )
        items = value.pop("guidelines", None) or []
        if not isinstance(items, list):
            self._wrong(self.agent, "guidelines", _("This is a list."))
            items = []
        content = self._agent(value)
        guidelines = [self._guideline(place, item) for place, item in enumerate(items)]
        self._unique_uids(guidelines)
        return content.model_copy(update={"guidelines": guidelines})

    def check_tools(self, content: AgentContent, tools: Mapping[str, Tool]) -> None:
        for place, name in enumerate(content.tools):
            if name not in tools:
                self._wrong(self.agent, f"tools[{place}]", _no_tool(name))
        allowed = set(content.tools)
        for row, item in zip(self.guidelines, content.guidelines, strict=True):
            for name_of_field in ("tools", "reevaluate_after"):
                for place, name in enumerate(getattr(item, name_of_field)):
                    where = f"{name_of_field}[{place}]"
                    if name not in tools:
                        self._wrong(row, where, _no_tool(name))
                    elif name not in allowed:
                        self._wrong(
                            row,
                            where,
                            _("“%(name)s” is not among the agent's tools; add it there.")
                            % {"name": name},
                        )

    def settle_uids(self, content: AgentContent, agent: Agent | None) -> AgentContent:
        """Gives every guideline its uid: one without is the stored one of the same words, or new."""
        named = {item.uid for item in content.guidelines}
        same_words: dict[tuple[str, str], list[str]] = {}
        if agent is not None:
            stored = agent.guidelines.exclude(uid__in=named).order_by("-position", "-pk")
            for uid, condition, action in stored.values_list("uid", "condition", "action"):
                same_words.setdefault((condition, action), []).append(uid)
        settled = []
        for row, item in zip(self.guidelines, content.guidelines, strict=True):
            known = same_words.get((item.condition, item.action))
            row.uid = item.uid or (known.pop() if known else new_uid())
            settled.append(item.model_copy(update={"uid": row.uid}))
        return content.model_copy(update={"guidelines": settled})

    def compare(self, content: AgentContent, agent: Agent | None) -> Report:
        """Says of every row what becomes of it; those to be deleted come last."""
        stored = content_of(agent) if agent is not None else AgentContent()
        before = {item.uid: item for item in stored.guidelines}
        kept = before.keys() & {item.uid for item in content.guidelines}
        moved = _order(stored, kept) != _order(content, kept)
        same_agent = _without_guidelines(stored) == _without_guidelines(content)
        self.agent.change = _change(self.agent, agent is None, same=same_agent and not moved)
        for row, item in zip(self.guidelines, content.guidelines, strict=True):
            earlier = before.get(item.uid)
            row.change = _change(row, earlier is None, same=earlier == item)
        gone = [
            ReportRow(place="", uid=item.uid, title=_title(item), change=Change.DELETE)
            for item in stored.guidelines
            if item.uid not in kept
        ]
        report = self.report
        report.rows += gone
        return report

    def _agent(self, value: JsonObject) -> AgentContent:
        content = self._validated(AgentContent, value, self.agent) or AgentContent()
        name = content.name.strip()
        content = content.model_copy(
            update={
                "slug": content.slug or slugify(name)[:60],
                "name": name,
                "description": content.description.strip(),
                "tools": sorted(set(content.tools)),
            }
        )
        self.slug, self.agent.title = content.slug, name
        if not self.agent.problems:
            values = content.model_dump(exclude={"tools", "guidelines"})
            self._clean(Agent(**values), self.agent)
        return content

    def _guideline(self, place: int, value: Any) -> GuidelineContent:
        row = ReportRow(place=f"guidelines[{place}]")
        self.guidelines.append(row)
        found = self._validated(GuidelineContent, value, row)
        if found is None:
            return GuidelineContent()
        content = _tidy(found)
        row.uid, row.title = content.uid, _title(content)
        values = content.model_dump(exclude={"tools", "reevaluate_after", "examples"})
        self._clean(Guideline(**values), row, exclude={"agent", "uid"})
        if content.uid and not _UID.fullmatch(content.uid):
            self._wrong(
                row, "uid", _("1 to 32 letters, digits, - and _; leave it out of a new one.")
            )
        if not content.condition and not content.action:
            self._wrong(row, "", _("Write when it applies, what to do, or both."))
        self._check_examples(content, row)
        return content

    def _check_examples(self, content: GuidelineContent, row: ReportRow) -> None:
        seen: set[str] = set()
        for place, example in enumerate(content.examples):
            self._clean(
                GuidelineExample(text=example.text),
                row,
                exclude={"guideline"},
                prefix=f"examples[{place}].",
            )
            if example.text in seen:
                self._wrong(row, f"examples[{place}].text", _("This message stands here twice."))
            seen.add(example.text)

    def _unique_uids(self, guidelines: list[GuidelineContent]) -> None:
        seen: set[str] = set()
        for row, item in zip(self.guidelines, guidelines, strict=True):
            if item.uid and item.uid in seen:
                self._wrong(row, "uid", _("Another guideline of the document has this uid."))
            seen.add(item.uid)

    def _validated(self, shape: type[Any], value: Any, row: ReportRow) -> Any:
        try:
            return shape.model_validate(value)
        except ValidationError as error:
            for problem in error.errors(include_url=False, include_input=False):
                self._wrong(row, _dotted(problem["loc"]), problem["msg"])
            return None

    def _clean(
        self, instance: Model, row: ReportRow, *, exclude: set[str] | None = None, prefix: str = ""
    ) -> None:
        try:
            instance.clean_fields(exclude=exclude)
        except DjangoError as error:
            for name, messages in error.message_dict.items():
                for message in messages:
                    self._wrong(row, f"{prefix}{name}", message)

    def _wrong(self, row: ReportRow, where: str, message: str) -> None:
        place = where if row is self.agent else f"{row.place}.{where}".rstrip(".")
        row.problems.append(Problem(place=place or row.place, message=str(message)))


def _parse(text: str) -> JsonObject:
    """The document's outermost object; raises DocumentSyntaxError."""
    value = _value(text.removeprefix("\ufeff"))
    if not isinstance(value, dict):
        raise DocumentSyntaxError(
            _("The document is one object with the fields name, tools, guidelines …")
        )
    for found in _texts(value):
        if "\x00" in found or (not found.isascii() and _half_characters(found)):
            raise DocumentSyntaxError(
                _("%(text)r contains a character that cannot be stored.") % {"text": found[:80]}
            )
    return {str(key): item for key, item in value.items()}


def _value(text: str) -> Any:
    if not text.lstrip().startswith("{"):
        return read_yaml(text)
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        problem = DocumentSyntaxError(_("This is not JSON: %(why)s") % {"why": error})
    try:  # YAML may begin with a brace too
        return read_yaml(text)
    except DocumentSyntaxError:
        raise problem from None


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, list):
        for item in value:
            yield from _texts(item)
    elif isinstance(value, dict):
        for key, item in value.items():
            yield str(key)
            yield from _texts(item)


def _half_characters(text: str) -> bool:
    return any("\ud800" <= character <= "\udfff" for character in text)


def _tidy(item: GuidelineContent) -> GuidelineContent:
    """As it would be stored and read again, so that comparing tells changes and nothing else."""
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
            "examples": sorted(examples, key=lambda example: not example.matches),
        }
    )


def _without_guidelines(content: AgentContent) -> BaseModel:
    return content.model_copy(update={"guidelines": []})


def _order(content: AgentContent, uids: Iterable[str]) -> list[str]:
    kept = set(uids)
    return [item.uid for item in content.guidelines if item.uid in kept]


def _change(row: ReportRow, new: bool, *, same: bool) -> Change:
    if row.problems:
        return Change.ERROR
    if new:
        return Change.CREATE
    return Change.UNCHANGED if same else Change.UPDATE


def _title(item: GuidelineContent) -> str:
    title = item.condition or item.action
    return title if len(title) <= _TITLE_LENGTH else f"{title[: _TITLE_LENGTH - 1]}…"


def _dotted(location: tuple[int | str, ...]) -> str:
    text = "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in location)
    return text.removeprefix(".")


def _no_tool(name: str) -> str:
    return _("There is no tool “%(name)s” in the shed.") % {"name": name}
