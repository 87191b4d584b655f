"""What the customer is asked, in words: data that is missing or wrong, a yes or no, which of several is meant."""

import re
from collections.abc import Sequence
from typing import Any

from engine.canonical import JsonObject, canonical_json
from engine.model.offline.rendering import doing_of, scalar, shortened
from engine.model.offline.turning import ability, capital, finished, joined, to_customer
from engine.trail import InsightKind, ToolInsight

_QUESTION_START = re.compile(r"(?:which|what|how|when|where|who)\b[^.?]*", re.IGNORECASE)


def asked_for(insights: Sequence[ToolInsight]) -> str:
    """What has to be given or corrected, or nothing."""
    told = [insight for insight in insights if not insight.hidden]
    parts = [_correction(i) for i in told if i.kind is InsightKind.INVALID]
    missing = [i for i in told if i.kind is InsightKind.MISSING]
    if len(missing) == 1:
        parts.append(_request(missing[0]))
    elif missing:
        doing = doing_of(missing[0].tool)
        rows = [f"- {capital(_described(insight))}" for insight in missing]
        parts.append("\n".join([f"To {doing}, could you give me the following?", *rows]))
    return "\n\n".join(parts)


def confirmed_by(told: Sequence[JsonObject]) -> str:
    """The question whether to go ahead, with each value; `told` is the "confirm" of a briefing."""
    if not told:
        return ""
    again = all(item.get("asked before") for item in told)
    start = "I still need your word. Shall I go ahead" if again else "Shall I go ahead"
    if len(told) == 1:
        return f"{start}: {deed(told[0])}?"
    return "\n".join([f"{start} with these?", *(f"- {capital(deed(item))}" for item in told)])


def deed(told: JsonObject) -> str:
    """A call of a briefing: "transfer money (amount: 50, to: Ann)"."""
    arguments = [f"{label}: {_value(value)}" for label, value in told.get("with", {}).items()]
    what = str(told.get("what", ""))
    return f"{what} ({', '.join(arguments)})" if arguments else what


def which(told: Sequence[JsonObject]) -> str:
    """The question which of several things is meant; `told` is the "ask which" of a briefing."""
    parts = []
    for item in told:
        meant = [f"- {_meaning(str(text))}" for text in item.get("the customer may mean", ())]
        parts.append("\n".join(["Which of these do you mean?", *meant]))
    return "\n\n".join(parts)


def _meaning(condition: str) -> str:
    able = ability(condition)
    return finished(f"you {able}" if able else to_customer(condition))


def _value(value: Any) -> str:
    match value:
        case list():
            return ", ".join(_value(item) for item in value)
        case dict():
            return ", ".join(f"{key} {_value(item)}" for key, item in value.items())
        case _:
            return scalar(value)


def _request(insight: ToolInsight) -> str:
    reason = f" {_sentence(insight.significance)}" if insight.significance else ""
    asking = _QUESTION_START.match(insight.description)
    if asking:
        wording = asking.group().strip()
        helps = re.search(r" \(.*\)$", _described(insight))
        wording = f"{wording[:1].lower()}{wording[1:]}{helps.group() if helps else ''}"
        return f"Could you tell me {wording}?{reason}"
    return f"Could you tell me the {_described(insight)}?{reason}"


def _described(insight: ToolInsight) -> str:
    """The label with what helps to answer: description, choices or examples."""
    helps = []
    description = insight.description.strip().rstrip(".")
    if _QUESTION_START.match(description):
        description = ""
    if description.lower().startswith(f"{insight.label.lower()} "):
        description = description[len(insight.label) :].strip()
    if description and description.lower() != insight.label.lower():
        helps.append(
            description[:1].lower() + description[1:] if description[:2].istitle() else description
        )
    if insight.choices:
        helps.append(joined([scalar(choice) for choice in insight.choices[:12]], "or"))
    elif insight.examples:
        helps.append(f"for example {joined([_example(e) for e in insight.examples[:3]], 'or')}")
    return f"{insight.label} ({'; '.join(helps)})" if helps else insight.label


def _example(value: Any) -> str:
    return value if isinstance(value, str) else scalar(value)


def _correction(insight: ToolInsight) -> str:
    value = insight.value if isinstance(insight.value, str) else canonical_json(insight.value)
    reason = insight.reason.strip().rstrip(".") or "it does not fit"
    choices = (
        f" Possible are {joined([scalar(choice) for choice in insight.choices[:12]], 'and')}."
        if insight.choices and "one of" not in reason
        else ""
    )
    return f"I cannot use “{shortened(value, 80)}” as the {insight.label}: it {reason}.{choices} Could you correct it?"


def _sentence(text: str) -> str:
    text = capital(text.strip())
    return text if text.endswith((".", "!", "?")) else f"{text}."
