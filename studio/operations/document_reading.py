"""A document on its way in: what it says, and what is wrong with each of its rows."""

import re
from collections.abc import Container, Iterable, Mapping
from typing import Any

from django.utils.text import slugify
from django.utils.translation import gettext as _

from engine.canonical import JsonObject
from studio.models import Agent, Tool
from studio.operations.contents import SECTIONS, AgentContent, GuidelineContent
from studio.operations.document_items import KINDS, clean, validated
from studio.operations.document_report import Change, DocumentError, Report, ReportRow
from studio.operations.document_text import parse
from studio.operations.soundness import problems_of
from studio.yaml_text import DocumentSyntaxError

SCHEMA_VERSION = 2
_UID = re.compile(r"[A-Za-z0-9_-]{1,32}")


class Reading:
    """One document on its way in: collects what is wrong with each row."""

    def __init__(self) -> None:
        self.agent = ReportRow(place="agent")
        self.rows: dict[str, list[ReportRow]] = {name: [] for name in SECTIONS}
        self.slug = ""

    @property
    def report(self) -> Report:
        rows = (row for rows in self.rows.values() for row in rows)
        return Report(slug=self.slug, rows=[self.agent, *rows])

    def read(self, text: str) -> AgentContent:
        """The content as far as it can be understood; raises DocumentError where it cannot at all."""
        try:
            value = parse(text)
        except DocumentSyntaxError as error:
            self.agent.wrong("", error)
            raise DocumentError(self.report) from error
        version = value.pop("schema_version", SCHEMA_VERSION)
        if version not in (1, SCHEMA_VERSION):
            self.agent.wrong(
                "schema_version",
                _("This studio reads version 1 and version %(known)d, not %(given)r.")
                % {"known": SCHEMA_VERSION, "given": version},
            )
        given = {name: self._list(name, value.pop(name, None)) for name in SECTIONS}
        content = self._agent(value)
        sections = {
            name: [self._item(name, place, item) for place, item in enumerate(items)]
            for name, items in given.items()
        }
        for name, items in sections.items():
            self._refuse_twice(name, items)
        return content.model_copy(update=sections)

    def _list(self, name: str, value: Any) -> list[Any]:
        if isinstance(value, list):
            return value
        if value is not None:
            self.agent.wrong(name, _("This is a list."))
        return []

    def _agent(self, value: JsonObject) -> AgentContent:
        content: AgentContent = validated(AgentContent, value, self.agent) or AgentContent()
        name = content.name.strip()
        prose = ("description", "tone", "no_match")
        content = content.model_copy(
            update={
                **{field: getattr(content, field).strip() for field in prose},
                "slug": content.slug or slugify(name)[:60],
                "name": name,
                "tools": sorted(set(content.tools)),
            }
        )
        self.slug, self.agent.title = content.slug, name
        if not self.agent.problems:
            clean(Agent(**content.model_dump(exclude={"tools", *SECTIONS})), self.agent)
        return content

    def _item(self, name: str, place: int, value: Any) -> Any:
        row = ReportRow(place=f"{name}[{place}]")
        self.rows[name].append(row)
        kind = KINDS[name]
        found = validated(kind.shape, value, row)
        if found is None:
            return kind.shape()
        item = kind.tidy(found)
        row.uid, row.title = item.uid, kind.title(item)
        kind.check(item, row)
        if item.uid and not _UID.fullmatch(item.uid):
            row.wrong("uid", _("1 to 32 letters, digits, - and _; leave it out of a new one."))
        return item

    def _refuse_twice(self, name: str, items: list[Any]) -> None:
        kind = KINDS[name]
        uids: set[str] = set()
        said: set[Any] = set()
        for row, item in zip(self.rows[name], items, strict=True):
            if item.uid and item.uid in uids:
                row.wrong("uid", _("Another one of this list has this uid."))
            uids.add(item.uid)
            if kind.unlike is not None and not row.problems:
                key = kind.unlike(item)
                if key in said:
                    row.wrong(kind.field, _("Another one of this list says the same; keep one."))
                said.add(key)

    def check_references(self, content: AgentContent, tools: Mapping[str, Tool]) -> None:
        """What the parts say of one another and of the tools of the shed."""
        for place, name in enumerate(content.tools):
            if name not in tools:
                self.agent.wrong(f"tools[{place}]", _no_tool(name))
        allowed = set(content.tools)
        for row, item in zip(self.rows["guidelines"], content.guidelines, strict=True):
            _check_tools(row, item, ("tools", "reevaluate_after"), tools, allowed)
        for row, overlap in zip(self.rows["overlaps"], content.overlaps, strict=True):
            _check_tools(row, overlap, ("tools",), tools, allowed)
        self._check_uids(content)

    def _check_uids(self, content: AgentContent) -> None:
        responses = {item.uid for item in content.canned_responses if item.uid}
        for row, item in zip(self.rows["guidelines"], content.guidelines, strict=True):
            for place, uid in enumerate(item.canned_responses):
                if uid not in responses:
                    row.wrong(
                        f"canned_responses[{place}]",
                        _("The document has no canned response of the uid “%(uid)s”.")
                        % {"uid": uid},
                    )
        guidelines = {item.uid for item in content.guidelines if item.uid}
        for row, relationship in zip(
            self.rows["relationships"], content.relationships, strict=True
        ):
            named = [("source", relationship.source)] if relationship.source else []
            named += [(f"targets[{n}]", uid) for n, uid in enumerate(relationship.targets)]
            for where, uid in named:
                if uid not in guidelines:
                    row.wrong(
                        where,
                        _("The document has no guideline of the uid “%(uid)s”.") % {"uid": uid},
                    )

    def check_soundness(self, content: AgentContent) -> None:
        """Whether the parts fit together, once each is right by itself and has its uid."""
        if self.report.problems:
            return
        for problem in problems_of(content):
            rows: list[ReportRow] = self.rows.get(problem.part, [])
            items = getattr(content, problem.part)
            places = [place for place, item in enumerate(items) if _uid(item) == problem.uid]
            row = rows[places[0]] if rows and places else self.agent
            row.wrong(problem.field if row is not self.agent else problem.part, problem.message)

    def compare(self, content: AgentContent, stored: AgentContent | None) -> Report:
        """Says of every row what becomes of it; those to be deleted come last."""
        before = stored or AgentContent()
        kept = {g.uid for g in before.guidelines} & {g.uid for g in content.guidelines}
        same = _bare(before) == _bare(content) and _order(before.guidelines, kept) == _order(
            content.guidelines, kept
        )
        self.agent.settle(new=stored is None, same=same)
        gone: list[ReportRow] = []
        for name, rows in self.rows.items():
            items = getattr(content, name)
            earlier = {item.uid: item for item in getattr(before, name)}
            for row, item in zip(rows, items, strict=True):
                known = earlier.pop(item.uid, None)
                row.uid = item.uid
                row.settle(new=known is None, same=known == item)
            title = KINDS[name].title
            gone += [
                ReportRow(place="", uid=uid, title=title(item), change=Change.DELETE)
                for uid, item in earlier.items()
            ]
        report = self.report
        report.rows += gone
        return report


def _check_tools(
    row: ReportRow,
    item: Any,
    fields: tuple[str, ...],
    tools: Container[str],
    allowed: Container[str],
) -> None:
    for field in fields:
        for place, name in enumerate(getattr(item, field)):
            where = f"{field}[{place}]"
            if name not in tools:
                row.wrong(where, _no_tool(name))
            elif name not in allowed:
                row.wrong(
                    where,
                    _("“%(name)s” is not among the agent's tools; add it there.") % {"name": name},
                )


def _uid(item: Any) -> str:
    return str(getattr(item, "uid", item))


def _bare(content: AgentContent) -> AgentContent:
    return content.model_copy(update={name: [] for name in SECTIONS})


def _order(items: Iterable[GuidelineContent], kept: Container[str]) -> list[str]:
    return [item.uid for item in items if item.uid in kept]


def _no_tool(name: str) -> str:
    return _("There is no tool “%(name)s” in the shed.") % {"name": name}
