"""An agent as one document, YAML or JSON: written in a stable order, fit for version control, and read back."""

import json
from collections.abc import Callable
from typing import Literal

from django.db import transaction

from engine.canonical import JsonObject
from studio.models import Agent
from studio.operations.agents import mark_changed
from studio.operations.contents import (
    SECTIONS,
    AgentContent,
    content_of,
    rows_of_tools,
    settled,
    tools_named,
)
from studio.operations.document_reading import SCHEMA_VERSION, Reading
from studio.operations.document_report import Change, DocumentError, Problem, Report, ReportRow
from studio.operations.drafts import replace_draft
from studio.yaml_text import write_yaml

__all__ = [
    "Change",
    "DocumentError",
    "Problem",
    "Report",
    "ReportRow",
    "import_document",
    "to_json",
    "to_text",
]

# What came with version 2 of the document: where nothing of it is used, the document is still one of version 1.
_SECOND = (
    "tone",
    "no_match",
    "verified_replies",
    "terms",
    "canned_responses",
    "relationships",
    "overlaps",
)


def to_json(content: AgentContent) -> JsonObject:
    """The document as a JSON object. What is as usual is left out of an item, so that it reads easily."""
    agent: JsonObject = content.model_dump(exclude=set(SECTIONS))
    sections: dict[str, list[JsonObject]] = {
        name: [
            {"uid": item.uid, **item.model_dump(exclude_defaults=True)}
            for item in getattr(content, name)
        ]
        for name in SECTIONS
    }
    usual = AgentContent()
    left_out = {name for name in _SECOND if getattr(content, name) == getattr(usual, name)}
    body = {name: value for name, value in (agent | sections).items() if name not in left_out}
    first = len(left_out) == len(_SECOND) and not any(
        item.composition or item.canned_responses for item in content.guidelines
    )
    return {"schema_version": 1 if first else SCHEMA_VERSION, **body}


def to_text(content: AgentContent, style: Literal["yaml", "json"] = "yaml") -> str:
    """The document as text: the same text for the same content."""
    value = to_json(content)
    if style == "json":
        return json.dumps(value, indent=2, ensure_ascii=False) + "\n"
    return write_yaml(value)


def import_document(
    text: str,
    *,
    dry_run: bool = False,
    authorise: Callable[[str, bool], None] | None = None,
) -> Report:
    """Make the draft of the agent that the document names what the document says; a new agent where there is none.

    Guidelines and the other items are the same by `uid`; those that the document no longer has are deleted. Nothing is
    changed on a `dry_run`, and nothing on a DocumentError. `authorise(slug, exists)` may raise before anything is read
    or changed.
    """
    reading = Reading()
    content = reading.read(text)
    with transaction.atomic():
        agent = Agent.objects.filter(slug=content.slug).first()
        if authorise is not None:
            authorise(content.slug, agent is not None)
        tools = rows_of_tools(tools_named(content))
        reading.check_references(content, tools)
        stored = content_of(agent) if agent is not None else None
        content = settled(content, stored or AgentContent())
        reading.check_soundness(content)
        report = reading.compare(content, stored)
        if report.problems:
            raise DocumentError(report)
        if report.changed and not dry_run:
            if agent is None:
                agent = Agent.objects.create(slug=content.slug, name=content.name)
            replace_draft(agent, content, tools)
            mark_changed(agent.pk)
    return report
