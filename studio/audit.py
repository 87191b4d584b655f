"""The audit of a turn: everything that was decided in it and why, with the text that was in force then.

The API answers with it and the sandbox's ledger is drawn from it, so both always say the same.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from django.db.models import Q

from engine import spec, trail
from engine.canonical import JsonObject
from engine.errors import ToolErrorKind
from engine.outcomes import given_responses, transient_guidelines
from studio.bridge import agent_spec, read_call
from studio.costs import cost_of_calls
from studio.effects import asks_words, effect_words
from studio.models import Event, GuidelineMatch, ModelCall, PromptPart, Session, ToolCall, Turn
from studio.models.trail import TrailRow
from studio.operations.confirmations import (
    ANSWERED,
    ASKED,
    Confirmation,
    confirmations_of,
)

DRAFT = "draft"
LOST = Q(kind="tool.finished", data__error__kind=ToolErrorKind.UNKNOWN_OUTCOME.value)


def audit(turn: Turn, *, prompts: bool = False) -> JsonObject:
    """The turn as a dictionary of plain values (times are aware datetimes), entries in the order they were recorded.

    `prompts` adds what was asked and answered word for word to every model call. A constant number of queries.
    A guideline that was judged again after a tool ran has several matches; the last one counts.
    """
    # A turn that still waits has no version, and has decided nothing.
    agent = agent_spec(turn.version) if turn.version is not None else None
    calls = list(turn.calls.order_by("pk"))
    texts = _Texts(agent, calls)
    happened = list(turn.events.filter(Q(kind__in=_READ) | LOST).order_by("offset"))
    messages = [_message(event) for event in happened if event.kind == "message"]
    model_calls = _model_calls(turn, prompts=prompts)
    return {
        "number": turn.number,
        "state": turn.state,
        "tool_mode": turn.tool_mode,
        "version": version_name(turn),
        "fingerprint": turn.version.fingerprint if turn.version is not None else "",
        "reply": reply_of(messages),
        "reply_source": texts.reply_source(turn.reply_source),
        "messages": messages,
        "lost": _lost(happened, known={call.uid for call in calls}),
        "modes": [_mode(event) for event in happened if event.kind == "mode"],
        "briefings": [_briefing(event) for event in happened if event.kind == "briefing"],
        "confirmations": [
            {**shown_confirmation(found), **texts.tool(found.tool)}
            for found in _confirmations(turn, happened)
        ],
        "created_at": turn.created_at,
        "started_at": turn.started_at,
        "finished_at": turn.finished_at,
        "duration_ms": turn.duration_ms,
        "prompt_tokens": turn.prompt_tokens,
        "completion_tokens": turn.completion_tokens,
        "cost": cost_of_calls(model_calls),
        "limit_reached": turn.limit_reached,
        "reference": turn.reference,
        "error": turn.error,
        "matches": _matches(turn, texts),
        "decisions": [
            {
                **texts.guideline(row.guideline),
                **texts.tool(row.tool),
                "state": row.state,
                "because": row.because,
                "arguments": row.arguments,
                "missing": row.missing,
                "invalid": row.invalid,
                "call": row.call,
                "model_call": row.model_call,
                **_when(row),
            }
            for row in turn.decisions.order_by("pk")
        ],
        "calls": [
            {
                "uid": row.uid,
                **texts.tool(row.tool),
                "arguments": row.arguments,
                "state": row.state,
                "guidelines": row.guidelines,
                "result": row.result,
                "error": row.error,
                "log": row.log,
                "served": row.served,
                "served_from": _place(row.served_from),
                **_when(row),
            }
            for row in calls
        ],
        "insights": [
            {
                **row.data,
                **texts.tool(row.tool),
                "parameter": row.parameter,
                "kind": row.kind,
                **_when(row),
            }
            for row in turn.insights.order_by("pk")
        ],
        "choices": [
            {**texts.tool(row.tool), "choices": row.choices, "because": row.because}
            for row in turn.choices_offered.order_by("pk")
        ],
        "adherence": [
            {
                **texts.guideline(row.guideline),
                "follows": row.follows,
                "note": row.note,
                "checked": row.checked,
                "attempt": row.attempt,
            }
            for row in turn.adherence.order_by("pk")
        ],
        "model_calls": model_calls,
    }


def shown_confirmation(found: Confirmation) -> JsonObject:
    """`labels` names the arguments that a customer is told of; `answer` is empty while it waits."""
    return {
        "call": found.call,
        "tool": found.tool,
        "arguments": found.arguments,
        "labels": found.labels,
        "guidelines": list(found.guidelines),
        "turn": found.turn,
        "asked_at": found.asked_at,
        "expires_at": found.expires_at,
        "answer": found.answer.value if found.answer is not None else "",
        "answered_in": found.answered_in,
        "by": found.by,
        "because": found.because,
    }


def tool_descriptions(session: Session, numbers: Iterable[int]) -> dict[tuple[int, str], str]:
    """(turn number, tool name) → what the tool said of itself in the version of that turn."""
    turns = session.line.turns.filter(number__in=list(numbers), version__isnull=False)
    return {
        (turn.number, name): tool.description
        for turn in turns.select_related("version").defer("version__spec", "checkpoint")
        if turn.version is not None
        for name, tool in agent_spec(turn.version).tool_by_name.items()
    }


def _matches(turn: Turn, texts: "_Texts") -> list[JsonObject]:
    rows = list(turn.matches.order_by("pk"))
    last = {row.guideline: row for row in rows}
    return [
        {
            **texts.guideline(row.guideline),
            "state": row.state,
            "because": row.because,
            "dropped_by": row.dropped_by,
            "added_by": row.added_by,
            "relation": row.relation,
            "effect": texts.effect(row) or texts.question(row, last),
            "score": row.score,
            "explained_afterwards": row.explained_afterwards,
            "model_call": row.model_call,
            **_when(row),
        }
        for row in rows
    ]


def version_name(turn: Turn) -> int | str | None:
    """The number of the published version that the turn ran on, "draft", or None while it waits."""
    if turn.version is None:
        return None
    return turn.version.number if turn.version.number is not None else DRAFT


def reply_of(messages: Iterable[JsonObject]) -> str:
    """What the agent said in a turn, of `audit(turn)["messages"]`; empty while it says nothing."""
    return "\n\n".join(message["text"] for message in messages if message["source"] == "agent")


def replies_of(turns: Sequence[Turn]) -> dict[int, str]:
    """Turn pk → reply, for a list of turns in one query."""
    said: dict[int, list[JsonObject]] = {turn.pk: [] for turn in turns}
    if turns:
        rows = Event.objects.filter(turn__in=list(said), kind="message").order_by("offset")
        for turn_id, source, data in rows.values_list("turn", "source", "data"):
            said[turn_id].append({"source": source, "text": str(data.get("text", ""))})
    return {pk: reply_of(messages) for pk, messages in said.items()}


_READ = ("message", "mode", "briefing", ASKED, ANSWERED)


class _Texts:
    """What guidelines, tools and canned responses said in the version that the turn ran on.

    Those that results of this turn's `calls` brought along count too.
    """

    def __init__(self, agent: spec.Agent | None, calls: Iterable[ToolCall]) -> None:
        self.guidelines = dict(agent.guideline_by_uid) if agent else {}
        self.tools = agent.tool_by_name if agent else {}
        self._responses = (
            {uid: response.text for uid, response in agent.canned_response_by_uid.items()}
            if agent
            else {}
        )
        self._disambiguating = frozenset(
            (relationship.source, target)
            for relationship in (agent.relationships if agent else ())
            if relationship.kind is spec.RelationKind.DISAMBIGUATES
            for target in relationship.targets
        )
        self._given_by: dict[str, str] = {}
        for call in calls:
            self._take_in(read_call(call))

    def _take_in(self, call: trail.ToolCall) -> None:
        for guideline in transient_guidelines(call):
            self.guidelines[guideline.uid] = guideline
            self._given_by[guideline.uid] = call.tool
        self._responses |= dict(given_responses([call]))

    def guideline(self, uid: str) -> JsonObject:
        found = self.guidelines.get(uid)
        return {
            "guideline": uid,
            "condition": found.condition if found else "",
            "action": found.action if found else "",
            "given_by": self._given_by.get(uid, ""),
        }

    def tool(self, name: str) -> JsonObject:
        found = self.tools.get(name)
        return {"tool": name, "tool_description": found.description if found else ""}

    def effect(self, row: GuidelineMatch) -> str:
        match = {
            "guideline": row.guideline,
            "relation": row.relation,
            "dropped_by": row.dropped_by,
            "added_by": row.added_by,
        }
        return effect_words(match, self.guidelines, self._disambiguating)

    def question(self, row: GuidelineMatch, last: Mapping[str, GuidelineMatch]) -> str:
        """What a guideline asks that says that the customer may mean one of several; empty where it asks nothing."""
        targets = {target for source, target in self._disambiguating if source == row.guideline}
        if row.state != "matched" or not targets:
            return ""
        standing = {uid for uid in targets & last.keys() if last[uid].dropped_by == row.guideline}
        between = [
            guideline
            for guideline in self.guidelines.values()
            if guideline.uid in (standing or targets) and guideline.enabled
        ]
        return asks_words(between) if between else ""

    def reply_source(self, stored: JsonObject | None) -> JsonObject | None:
        if stored is None:
            return None
        uids = stored.get("responses", ())
        return {
            "composition": stored["composition"],
            "responses": [{"uid": uid, "text": self._responses.get(uid, "")} for uid in uids],
            "because": stored.get("because", ""),
            "fits": stored.get("fits", True),
        }


def _place(served_from: str) -> JsonObject | None:
    """Where the call stands whose outcome was repeated."""
    parts = served_from.split("/")
    if len(parts) != 3 or not (parts[0].isdecimal() and parts[1].isdecimal()):
        return None
    return {"session": int(parts[0]), "turn": int(parts[1]), "call": parts[2]}


def _when(row: TrailRow) -> JsonObject:
    return {
        "iteration": row.iteration,
        "started_at": row.started_at,
        "ended_at": row.ended_at,
        "duration_ms": row.duration_ms,
    }


def _message(event: Event) -> JsonObject:
    return {
        "offset": event.offset,
        "source": event.source,
        "text": str(event.data.get("text", "")),
        "model": str(event.data.get("model", "")),
        "partial": bool(event.data.get("partial")),
        "created_at": event.created_at,
    }


def _mode(event: Event) -> JsonObject:
    return {
        "offset": event.offset,
        "mode": event.data["mode"],
        "source": event.source,
        "tool": event.data.get("tool", ""),
    }


def _briefing(event: Event) -> JsonObject:
    return {"offset": event.offset, "content": event.data["content"]}


def _lost(happened: Iterable[Event], known: set[str]) -> list[JsonObject]:
    """Calls of earlier turns of which this turn found that nobody knows how they ended."""
    return [
        {
            "offset": event.offset,
            "call": event.data["call"],
            "tool": event.data["tool"],
            "arguments": event.data["arguments"],
        }
        for event in happened
        if event.kind == "tool.finished" and event.data["call"] not in known
    ]


def _confirmations(turn: Turn, happened: Sequence[Event]) -> list[Confirmation]:
    """The calls that this turn asked the customer about, and those that were answered in it."""
    answered = [event.data["call"] for event in happened if event.kind == ANSWERED]
    asked = [event for event in happened if event.kind == ASKED]
    if answered:
        earlier = turn.session.line.events.filter(kind=ASKED, data__call__in=answered)
        earlier = earlier.exclude(turn=turn).select_related("turn").defer("turn__checkpoint")
        asked += earlier.order_by("offset")
    return confirmations_of(turn.session, sorted(asked, key=lambda event: event.offset))


def _model_calls(turn: Turn, *, prompts: bool) -> list[JsonObject]:
    rows = turn.model_calls.order_by("pk")
    if not prompts:
        rows = rows.defer("messages", "settings", "answer_text")
    calls = list(rows)
    words = _words(calls) if prompts else {}
    return [
        {
            "uid": row.uid,
            "question": row.question,
            "subject": row.subject,
            "model": row.model,
            "prompt_version": row.prompt_version,
            "prompt_tokens": row.prompt_tokens,
            "cached_tokens": row.cached_tokens,
            "completion_tokens": row.completion_tokens,
            "attempt": row.attempt,
            "used": row.used,
            "error": row.error,
            "probability": row.probability,
            "request_key": row.request_key,
            "first_token_at": row.first_token_at,
            **_when(row),
            **(_word_for_word(row, words) if prompts else {}),
        }
        for row in calls
    ]


def _words(calls: Iterable[ModelCall]) -> dict[str, str]:
    keys = {key for row in calls for _role, parts in row.messages for key in parts}
    keys |= {row.schema_id for row in calls if row.schema_id is not None}
    return {key: part.text for key, part in PromptPart.objects.in_bulk(list(keys)).items()}


def _prompt(role: str, parts: Sequence[str]) -> JsonObject:
    """`parts` are the lengths of the pieces, in characters, of which the content was put together."""
    return {"role": role, "content": "".join(parts), "parts": [len(part) for part in parts]}


def _word_for_word(row: ModelCall, words: dict[str, str]) -> dict[str, Any]:
    return {
        "messages": [
            _prompt(role, [words.get(key, "") for key in parts]) for role, parts in row.messages
        ],
        "schema": json.loads(words[row.schema_id]) if row.schema_id in words else None,
        "settings": row.settings,
        "answer_text": row.answer_text,
    }
