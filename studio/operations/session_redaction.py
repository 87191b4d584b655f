"""Where people, models and tools wrote something: the texts of a session's document and of a turn's audit.

All else in them are names that refer to one another (of guidelines, tools, parameters, calls), states and times.
"""

from collections.abc import Mapping
from enum import Enum, auto
from typing import Any, TypeAlias

from engine.canonical import JsonObject
from studio.operations.redaction import Redactor


class Written(Enum):
    TEXT = auto()
    FREE = auto()  # JSON whose every text and number counts, keys included


TEXT, FREE = Written.TEXT, Written.FREE
Shape: TypeAlias = Written | list[Any] | Mapping[str, Any]

_ERROR: Shape = {"public": TEXT, "detail": TEXT}
_RESULT: Shape = {
    "data": FREE,
    "metadata": FREE,
    "canned_responses": [TEXT],
    "canned_response_fields": FREE,
    "guidelines": [{"condition": TEXT, "action": TEXT}],
}
_ARGUMENTS: Shape = [{"value": FREE, "evidence": TEXT}]
_INSIGHT: dict[str, Any] = {
    **dict.fromkeys(("label", "reason", "description", "significance"), TEXT),
    **dict.fromkeys(("examples", "choices", "value"), FREE),
}
_MODEL_CALL: dict[str, Any] = {
    "subject": TEXT,
    "settings": FREE,
    "answer_text": TEXT,
    "error": TEXT,
}
_CHOICES: dict[str, Any] = {"choices": FREE, "because": TEXT}
_TURN: dict[str, Any] = {
    "error": TEXT,
    "limit_reached": TEXT,
    "reply_source": {"because": TEXT, "responses": [{"text": TEXT}]},
    "matches": [{"because": TEXT, "condition": TEXT, "action": TEXT, "effect": TEXT}],
    "decisions": [
        {
            "because": TEXT,
            "arguments": _ARGUMENTS,
            "condition": TEXT,
            "action": TEXT,
            "tool_description": TEXT,
        }
    ],
    "calls": [
        {
            "arguments": FREE,
            "result": _RESULT,
            "error": _ERROR,
            "log": TEXT,
            "tool_description": TEXT,
        }
    ],
    "adherence": [{"note": TEXT, "condition": TEXT, "action": TEXT}],
}
_EVENT: Shape = {
    "data": {
        "text": TEXT,
        "because": TEXT,
        "also": TEXT,
        "error": _ERROR,
        **dict.fromkeys(("arguments", "data", "metadata", "content"), FREE),
        "labels": FREE,
    }
}
_SPEC: Shape = {
    **dict.fromkeys(("name", "description", "tone", "no_match"), TEXT),
    "guidelines": [
        {"condition": TEXT, "action": TEXT, "tags": [TEXT], "examples": [{"text": TEXT}]}
    ],
    "tools": [
        {
            "description": TEXT,
            "parameters": [
                {
                    **dict.fromkeys(("description", "display_name", "significance"), TEXT),
                    **dict.fromkeys(("schema", "default", "examples"), FREE),
                }
            ],
        }
    ],
    "canned_responses": [{"text": TEXT}],
    "terms": [{"name": TEXT, "description": TEXT, "synonyms": [TEXT]}],
}
_SESSION: Shape = {
    "title": TEXT,
    "events": [_EVENT],
    "turns": [
        {
            **_TURN,
            "ran_with": {"variables": FREE},
            "insights": [{"data": _INSIGHT}],
            "choices_offered": [_CHOICES],
            "model_calls": [_MODEL_CALL],
        }
    ],
}
_DOCUMENT: Shape = {
    "agent": {"name": TEXT},
    "versions": [{"spec": _SPEC}],
    "customer": {"name": TEXT, "variables": FREE},
    "sessions": [_SESSION],
}
_AUDIT: Shape = {
    **_TURN,
    "reply": TEXT,
    "messages": [{"text": TEXT}],
    "lost": [{"arguments": FREE}],
    "briefings": [{"content": FREE}],
    "confirmations": [
        {"arguments": FREE, "labels": FREE, "because": TEXT, "tool_description": TEXT}
    ],
    "insights": [{**_INSIGHT, "tool_description": TEXT}],
    "choices": [{**_CHOICES, "tool_description": TEXT}],
    "model_calls": [{**_MODEL_CALL, "schema": FREE}],
}


def redacted_document(document: JsonObject, redactor: Redactor) -> JsonObject:
    """The document without what the redactor's rules leave out. Prompts stand in it in full, as lists of texts."""
    rules = redactor.rules
    if not rules.any:
        return document
    found: JsonObject = _redacted(document, _DOCUMENT, redactor)
    if rules.customer and found["customer"] is not None:
        found["customer"] |= {"uid": "", "variables": {}}
    for session in found["sessions"]:
        for turn in session["turns"]:
            if turn["ran_with"]:
                turn["ran_with"]["redacted"] = True
                if rules.customer:
                    turn["ran_with"] |= {"customer": "", "variables": {}}
            turn["calls"] = [_call(row, redactor) for row in turn["calls"]]
            turn["model_calls"] = [_model_call(row, redactor) for row in turn["model_calls"]]
        if rules.metadata:
            for event in session["events"]:
                if "metadata" in event["data"]:
                    event["data"]["metadata"] = {}
    return found


def redacted_audit(audit: JsonObject, redactor: Redactor) -> JsonObject:
    """The same of `studio.audit.audit`, with its prompts."""
    if not redactor.rules.any:
        return audit
    found: JsonObject = _redacted(audit, _AUDIT, redactor)
    found["calls"] = [_call(row, redactor) for row in found["calls"]]
    for asked in found["model_calls"]:
        asked["request_key"] = ""
        if redactor.rules.prompts:
            asked |= {"messages": [], "schema": None, "settings": {}, "answer_text": ""}
        for message in asked.get("messages", ()):
            message["content"] = redactor.text(message["content"])
            message["parts"] = [len(message["content"])]
    return found


def redacted_event(event: JsonObject, redactor: Redactor) -> JsonObject:
    """The same of an event: `kind`, `source` and `data`."""
    found: JsonObject = _redacted(event, _EVENT, redactor)
    return found


def _redacted(value: Any, shape: Shape, redactor: Redactor) -> Any:
    match shape:
        case Written.TEXT:
            return redactor.text(value) if isinstance(value, str) else value
        case Written.FREE:
            return redactor.value(value)
        case list():
            return [_redacted(item, shape[0], redactor) for item in value or ()]
        case _ if not isinstance(value, dict):
            return value
        case _:
            return {
                name: _redacted(inner, shape[name], redactor) if name in shape else inner
                for name, inner in value.items()
            }


def _call(row: JsonObject, redactor: Redactor) -> JsonObject:
    if not redactor.rules.metadata:
        return row
    result = row["result"]
    return {**row, "log": "", "result": {**result, "metadata": {}} if result else result}


def _model_call(row: JsonObject, redactor: Redactor) -> JsonObject:
    # The key of a request is made of its words.
    found = {**row, "request_key": ""}
    if redactor.rules.prompts:
        return {**found, "messages": [], "schema": None, "settings": {}, "answer_text": ""}
    found["messages"] = [[role, _pieces(parts, redactor)] for role, parts in row["messages"]]
    found["schema"] = None if row["schema"] is None else redactor.text(row["schema"])
    return found


def _pieces(parts: list[str], redactor: Redactor) -> list[str]:
    """Each by itself, so that they recur; as one where a value stands across two of them."""
    pieces = [redactor.text(part) for part in parts]
    whole = redactor.text("".join(parts))
    return pieces if "".join(pieces) == whole else [whole]
