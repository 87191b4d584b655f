"""The ledger of a turn as lines of text, for the terminal: the same record and the same words as on the page."""

import html
import textwrap
import unicodedata
from collections.abc import Iterator, Mapping
from typing import Any

from django.utils.html import strip_tags
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from engine.canonical import JsonObject
from studio.templatetags.studio_audit import (
    counted,
    decision_chip,
    error_words,
    match_chip,
    provenance_chip,
    seconds,
    turn_chip,
)
from studio.views.ledger import GuidelineRow, Ledger, ToolRow, ledger

_LONGEST_VALUE = 60
_LONGEST_RESULT = 240
_MARKS = {
    "done": "✓",
    "failed": "!",
    "unknown": "?",
    "CANNOT_RUN": "!",
    "AWAITING_CONFIRMATION": "…",
}


def ledger_text(audit: JsonObject, *, every: bool = False, width: int = 100) -> str:
    """What `studio.audit.audit` says of a turn, in lines of at most `width` characters.

    Guidelines that matched or whose tools were considered; with `every` the silent ones too, each with its reason.
    """
    read = ledger(audit)
    lines = [_heading(audit, read)]
    for row in (*read.matched, *read.stopped):
        lines += _guideline(row)
    if every:
        for row in read.silent:
            lines += _guideline(row)
    elif read.silent:
        lines.append("– " + _silent(read))
    for call in read.other_calls:
        lines.append(f"  {_call_line(call['tool'], call['state'], '', call)}")
    lines += _ending(audit)
    return "\n".join(_wrapped(printable(line), width) for line in lines)


def printable(text: str) -> str:
    """Without control characters: what a customer wrote or a tool returned must not steer the terminal."""
    return "".join(
        char if char in "\n\t" or unicodedata.category(char)[0] != "C" or _joins(char) else "�"
        for char in text
    )


def _joins(char: str) -> bool:
    return char in "\u200c\u200d"  # inside words and emoji of many languages


def _heading(audit: JsonObject, read: Ledger) -> str:
    version = audit["version"]
    named = _("version %(number)d") % {"number": version} if isinstance(version, int) else version
    writers = {message["model"] for message in audit["messages"] if message["model"]}
    parts = [
        _("Turn %(number)d") % {"number": audit["number"]},
        _words(turn_chip(audit["state"])).lower(),
        f"{named} {audit['fingerprint'][:8]}".strip() if named else "",
        seconds(audit["duration_ms"]),
        _tokens(read),
        _("written by the %(model)s model") % {"model": ", ".join(writers)} if writers else "",
    ]
    return "── " + " · ".join(part for part in parts if part)


def _tokens(read: Ledger) -> str:
    questions = len(read.model_calls)
    asked = ngettext(
        "%(count)d question to the model", "%(count)d questions to the model", questions
    )
    tokens = ngettext("%(count)s token", "%(count)s tokens", read.tokens) % {
        "count": counted(read.tokens)
    }
    failed = read.failed_attempts
    trouble = ngettext("%(count)d failed", "%(count)d failed", failed) % {"count": failed}
    return f"{asked % {'count': questions}}{f' ({trouble})' if failed else ''}, {tokens}"


def _guideline(row: GuidelineRow) -> Iterator[str]:
    mark = {"matched": "✓", "dropped": "↓"}.get(row.state, "–")
    subject = row.condition or _("(always)")
    yield f"{mark} {_words(match_chip(row.state))}: {subject}{_action(row)}"
    yield f"    {row.because}" + (f" ({row.dropped_by})" if row.dropped_by else "")
    if row.follows is not None and not row.follows["follows"]:
        yield "    " + _("By its own report, the reply does not follow it.")
    for tool in row.tools:
        yield from _tool(tool)


def _action(row: GuidelineRow) -> str:
    return f" → {row.action}" if row.action else ""


def _tool(row: ToolRow) -> Iterator[str]:
    yield "    " + _call_line(row.tool, row.state, row.because, row.call)
    for argument in row.arguments:
        value = _shortened(_plain(argument["value"]), _LONGEST_VALUE)
        yield f"        {argument['name']} = {value}  [{_words(provenance_chip(argument))}]"
    for insight in row.missing:
        yield "        " + _("missing: %(what)s") % {"what": insight["label"]}
    for insight in row.invalid:
        reason = insight.get("reason", "")
        yield "        " + _("invalid: %(what)s %(reason)s") % {
            "what": insight["label"],
            "reason": reason,
        }
    if row.call is not None:
        yield from _outcome(row.call)


def _call_line(tool: str, state: str, because: str, call: Mapping[str, Any] | None) -> str:
    took = f" ({seconds(call['duration_ms'])})" if call and call["duration_ms"] is not None else ""
    reason = f": {because}" if because else ""
    return f"{_MARKS.get(state, '·')} {_words(decision_chip(state))} {tool}{took}{reason}"


def _outcome(call: Mapping[str, Any]) -> Iterator[str]:
    error = call["error"]
    if error:
        yield f"        → {error_words(error['kind'])} {_shortened(error['public'], _LONGEST_RESULT)}"
    elif call["result"] is not None:
        yield f"        → {_shortened(_plain(call['result']['data']), _LONGEST_RESULT)}"


def _silent(read: Ledger) -> str:
    count = len(read.silent)
    words = ngettext(
        "%(count)d guideline did not match", "%(count)d guidelines did not match", count
    )
    return words % {"count": count}


def _ending(audit: JsonObject) -> Iterator[str]:
    if audit["limit_reached"]:
        yield "! " + _("Stopped preparing: %(limit)s") % {"limit": audit["limit_reached"]}
    if audit["state"] == "FAILED":
        yield "! " + _("Failed, reference %(reference)s: %(error)s") % {
            "reference": audit["reference"],
            "error": audit["error"],
        }


def _words(chip: str) -> str:
    """A chip of the page without its markup."""
    return html.unescape(strip_tags(chip))


def _plain(value: Any) -> str:
    """JSON on one line as people read it: `balance: 12.5, currency: EUR`."""
    match value:
        case dict():
            return ", ".join(
                f"{str(key).replace('_', ' ')}: {_nested(v)}" for key, v in value.items()
            )
        case list():
            return "; ".join(_nested(item) for item in value) or _("an empty list")
        case bool():
            return _("yes") if value else _("no")
        case None:
            return _("nothing")
        case _:
            return str(value)


def _nested(value: Any) -> str:
    return f"({_plain(value)})" if isinstance(value, dict | list) and value else _plain(value)


def _shortened(text: str, most: int) -> str:
    line = " ".join(text.split())
    return line if len(line) <= most else f"{line[: most - 1].rstrip()}…"


def _wrapped(line: str, width: int) -> str:
    indent = " " * (len(line) - len(line.lstrip()) + 2)
    return "\n".join(
        textwrap.wrap(line, width, subsequent_indent=indent, break_on_hyphens=False) or [""]
    )
