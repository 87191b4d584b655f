"""A prompt in the sections that people look for: rules, agent, glossary, guidelines, conversation, task.

What anybody said stands in a prompt as one line of JSON each, so a line that is no JSON is the prompt's own heading.
"""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from itertools import accumulate, pairwise
from typing import Any, TypeAlias

Json: TypeAlias = Mapping[str, Any]


class Section(StrEnum):
    RULES = "rules"
    AGENT = "agent"
    GLOSSARY = "glossary"
    GUIDELINES = "guidelines"
    TOOL = "tool"
    CUSTOMER = "customer"
    CONVERSATION = "conversation"
    BRIEFING = "briefing"
    CONFIRMATIONS = "confirmations"
    RESPONSES = "responses"
    STYLE = "style"
    REVISION = "revision"
    REPLY = "reply"
    EXAMPLE = "example"
    OTHER = "other"


# How the lines begin that open a section; everything up to the next such line belongs to it.
_HEADINGS = {
    "The guidelines:": Section.GUIDELINES,
    "The guideline:": Section.GUIDELINES,
    "The tools:": Section.TOOL,
    "It is there for:": Section.GUIDELINES,
    "They are there for:": Section.GUIDELINES,
    "Words that it uses, and what they mean:": Section.GLOSSARY,
    "The conversation, oldest first, one JSON object a line:": Section.CONVERSATION,
    "What awaits the customer's word:": Section.CONFIRMATIONS,
    "The responses:": Section.RESPONSES,
    "The reply to check:": Section.REPLY,
}
_FIELDS = {
    "agent": Section.AGENT,
    "tool": Section.TOOL,
    "known of the customer": Section.CUSTOMER,
    "briefing": Section.BRIEFING,
    "write like these": Section.STYLE,
    "your earlier try": Section.REVISION,
}
# What may open a section in the midst of another; "tool" stands in conversations too, "agent" is also who speaks.
_WITHIN_CONVERSATION = frozenset(
    {Section.CUSTOMER, Section.BRIEFING, Section.STYLE, Section.REVISION}
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Piece:
    """One section of a prompt, word for word; `tokens` is its share of the call's prompt tokens by length."""

    role: str
    section: Section
    text: str
    tokens: int


def prompt_pieces(call: Json) -> tuple[Piece, ...]:
    """The sections of a model call of the audit with prompts, in their order; together they are the whole prompt."""
    found = [
        (message["role"], section, text)
        for place, message in enumerate(call["messages"])
        for section, text in _message(message, last=place == len(call["messages"]) - 1)
    ]
    length = sum(len(text) for _role, _section, text in found) or 1
    return tuple(
        Piece(
            role=role,
            section=section,
            text=text,
            tokens=round(call["prompt_tokens"] * len(text) / length),
        )
        for role, section, text in found
    )


def _message(message: Json, *, last: bool) -> Iterator[tuple[Section, str]]:
    """Its sections. Those between the rules and the task are examples of how to answer."""
    parts = list(_parts(message))
    if not parts:
        return
    if message["role"] == "system":
        yield Section.RULES, parts[0]
        yield from _sections("".join(parts[1:]))
    elif last:
        yield from _told("".join(parts))
    else:
        yield Section.EXAMPLE, message["content"]


def _parts(message: Json) -> Iterator[str]:
    for begin, end in pairwise(accumulate(message["parts"], initial=0)):
        if end > begin:
            yield message["content"][begin:end]


def _told(text: str) -> Iterator[tuple[Section, str]]:
    """The last message; of the conversation only the newest briefing is for this reply, the others were said before."""
    pieces = list(_sections(text))
    last = max(
        (n for n, (section, _) in enumerate(pieces) if section is Section.BRIEFING), default=-1
    )
    merged: list[tuple[Section, str]] = []
    for place, (kind, words) in enumerate(pieces):
        past = kind is Section.BRIEFING and place != last
        section = Section.CONVERSATION if past else kind
        if merged and (_is_bare(merged[-1][1]) or merged[-1][0] is section is Section.CONVERSATION):
            merged[-1] = (section, merged[-1][1] + words)
        else:
            merged.append((section, words))
    yield from merged


def _is_bare(words: str) -> bool:
    """Only a heading, whose first line opened a section of its own."""
    return words.strip() in _HEADINGS


def _sections(text: str) -> Iterator[tuple[Section, str]]:
    section, lines = Section.OTHER, list[str]()
    for line in text.splitlines(keepends=True):
        opened = _opened(line, section)
        if opened is not None and lines:
            yield section, "".join(lines)
            lines = []
        section = opened or section
        lines.append(line)
    if lines:
        yield section, "".join(lines)


def _opened(line: str, within: Section) -> Section | None:
    """The section that this line opens, or None where it goes on with the one that it stands in."""
    heading = _HEADINGS.get(line.strip())
    if heading is not None:
        return heading
    if not line.startswith("{"):
        # A task in words after the data; a line of the rules, where a prompt is not of our making.
        return Section.OTHER if within is not Section.OTHER else None
    field = _FIELDS.get(_first_field(line))
    if within in {Section.CONVERSATION, Section.CUSTOMER, Section.BRIEFING}:
        if field in _WITHIN_CONVERSATION:
            return field
        return Section.CONVERSATION if within is not Section.CONVERSATION else None
    return field if field is not within else None


def _first_field(line: str) -> str:
    try:
        value = json.loads(line)
    except ValueError:
        return ""
    return next(iter(value), "") if isinstance(value, dict) else ""
