"""The ledger of a turn as Markdown, to be put into an issue: the same record and the same words as on the page.

What people, models and tools wrote is escaped, so that it stands there as they wrote it and never as markup.
"""

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from engine.canonical import JsonObject
from studio.ledger_text import (
    chip_words,
    confirmation_words,
    ending_words,
    follows_words,
    insight_words,
    judged_words,
    offered_words,
    printable,
    turn_words,
)
from studio.templatetags.studio_audit import (
    answer_chip,
    decision_chip,
    error_words,
    match_chip,
    provenance_chip,
    question_words,
    seconds,
    served_words,
)
from studio.templatetags.studio_text import after_when
from studio.views.ledger import GuidelineRow, Ledger, ToolRow, ledger

_LONGEST_RESULT = 4_000
_SPECIAL = re.compile(r"([\\`*_\[\]<>|~&])")
_OPENING = re.compile(r"^([-+=#:]|\d+(?=[.)](?:\s|$)))")  # what begins a list, a heading or a rule


def ledger_markdown(audit: JsonObject) -> str:
    """What `studio.audit.audit` says of a turn: messages, then guideline by guideline what was decided, and why."""
    read = ledger(audit)
    blocks = [
        "# " + escaped(" · ".join(turn_words(audit, read))),
        *(_message(message) for message in audit["messages"]),
        *(f"**{escaped(line.strip())}**" for line in ending_words(audit, read)),
    ]
    blocks += _section(_("Guidelines"), (*read.matched, *read.stopped, *read.silent))
    blocks += _loose(read)
    if read.reply:
        blocks += ["## " + _("How the reply came about"), _reply(audit, read)]
    if read.model_calls:
        blocks += ["## " + _("Model calls"), "\n".join(map(_model_call, read.model_calls))]
    return "\n\n".join(block for block in blocks if block) + "\n"


def escaped(text: str) -> str:
    """On one line, with everything that Markdown might take for its own marked as text."""
    line = _SPECIAL.sub(r"\\\1", " ".join(printable(text).split()))
    return _OPENING.sub(_literally, line)


def _literally(found: re.Match[str]) -> str:
    return f"{found[0]}\\" if found[0].isdigit() else f"\\{found[0]}"


def code(value: Any) -> str:
    """A value as JSON in a code span, which no back-ticks inside can end."""
    text = json.dumps(value, ensure_ascii=False, default=str)
    return _span(text if len(text) <= _LONGEST_RESULT else text[: _LONGEST_RESULT - 1] + "…")


def _span(words: str) -> str:
    text = printable(words).replace("\n", " ")
    longest = max((len(run) for run in re.findall("`+", text)), default=0)
    fence = "`" * (longest + 1)
    pad = " " if longest else ""
    return f"{fence}{pad}{text}{pad}{fence}"


def _message(message: Mapping[str, Any]) -> str:
    speakers = {
        "customer": _("Customer"),
        "agent": _("Agent"),
        "operator": _("Operator"),
        "system": _("System"),
    }
    said = "\n".join(
        f"> {escaped(line)}\\" for line in message["text"].splitlines() if line.strip()
    )
    partial = f" *({_('stopped here')})*" if message["partial"] else ""
    return f"**{speakers.get(message['source'], escaped(message['source']))}**{partial}\n\n" + (
        said.removesuffix("\\") or "> –"
    )


def _section(title: str, rows: Iterable[GuidelineRow]) -> list[str]:
    blocks = ["\n".join(_guideline(row)) for row in rows]
    return [f"## {title}", *blocks] if blocks else []


def _guideline(row: GuidelineRow) -> Iterator[str]:
    when = (
        _("When %(condition)s") % {"condition": escaped(after_when(row.condition))}
        if row.condition
        else ""
    )
    action = escaped(row.action)
    subject = " → ".join(part for part in (when or _("Always"), action) if part)
    lasted = seconds(row.duration_ms)
    yield f"- **{escaped(chip_words(match_chip(row.state)))}**: {subject}" + (
        f" ({lasted})" if lasted else ""
    )
    reason = f"{row.because}{judged_words(row)}"
    brought = (
        _("Brought by %(tool)s, for this turn only.") % {"tool": row.given_by}
        if row.given_by
        else ""
    )
    for words in (row.effect, reason, brought, follows_words(row)):
        if words.strip():
            yield f"  - {escaped(words)}"
    for tool in row.tools:
        yield from _tool(tool)


def _tool(row: ToolRow) -> Iterator[str]:
    yield "  - " + _ran(row.tool, row.state, row.because, row.call)
    if row.confirmation is not None:
        yield f"    - {escaped(confirmation_words(row.confirmation, row.state))}"
    for argument in row.arguments:
        source = escaped(chip_words(provenance_chip(argument)))
        yield f"    - {escaped(argument['name'])} = {code(argument['value'])} ({source})"
    for words in offered_words(row):
        yield f"    - {escaped(words)}"
    for insight in row.missing:
        yield "    - " + escaped(_("missing: %(what)s") % {"what": insight_words(insight)})
    for insight in row.invalid:
        yield "    - " + escaped(_("invalid: %(what)s") % {"what": insight_words(insight)})
    if row.call is not None:
        yield from _outcome(row.call)


def _ran(tool: str, state: str, because: str, call: Mapping[str, Any] | None) -> str:
    lasted = seconds(call["duration_ms"]) if call is not None else ""
    served = served_words(call) if call is not None else ""
    took = f" ({escaped(', '.join(filter(None, (lasted, served))))})" if lasted or served else ""
    reason = f": {escaped(because)}" if because else ""
    return f"**{escaped(chip_words(decision_chip(state)))}** {_span(tool)}{took}{reason}"


def _outcome(call: Mapping[str, Any]) -> Iterator[str]:
    if call["error"]:
        yield f"    - → {escaped(error_words(call['error']['kind']))} {escaped(call['error']['public'])}"
    elif call["result"] is not None:
        yield f"    - → {code(call['result']['data'])}"


def _loose(read: Ledger) -> list[str]:
    """What stands under no guideline: calls, and confirmations that were answered here."""
    lines = [
        f"- **{escaped(chip_words(answer_chip(found['answer'])))}** {_span(found['tool'])}: "
        f"{escaped(confirmation_words(found, ''))} {code(found['arguments'])}"
        for found in read.other_confirmations
    ]
    for call in read.other_calls:
        lines.append("- " + _ran(call["tool"], call["state"], "", call))
        lines += [line.removeprefix("  ") for line in _outcome(call)]
    return ["## " + _("Calls under no guideline shown here"), "\n".join(lines)] if lines else []


def _reply(audit: JsonObject, read: Ledger) -> str:
    source = audit["reply_source"]
    because = f" {escaped(source['because'])}" if source["because"] else ""
    responses = [f"- {escaped(each['text'] or each['uid'])}" for each in source["responses"]]
    return "\n\n".join(filter(None, (escaped(read.reply) + because, "\n".join(responses))))


def _model_call(call: Mapping[str, Any]) -> str:
    tokens = ngettext(
        "%(asked)d + %(answered)d token",
        "%(asked)d + %(answered)d tokens",
        call["prompt_tokens"] + call["completion_tokens"],
    ) % {"asked": call["prompt_tokens"], "answered": call["completion_tokens"]}
    parts = [
        f"{question_words(call['question'])} {call['subject']}".strip(),
        call["model"],
        seconds(call["duration_ms"]),
        tokens,
        _("attempt %(number)d") % {"number": call["attempt"]} if call["attempt"] > 1 else "",
        "" if call["used"] else _("not used"),
        call["error"],
    ]
    return "- " + escaped(" · ".join(part for part in parts if part))
