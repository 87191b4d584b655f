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
from studio.readable_values import counted
from studio.templatetags.studio_audit import (
    answer_chip,
    answer_words,
    decision_chip,
    error_words,
    match_chip,
    provenance_chip,
    score_words,
    seconds,
    served_words,
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
    lines = ["── " + " · ".join(turn_words(audit, read))]
    for row in (*read.matched, *read.stopped):
        lines += _guideline(row)
    if every:
        for row in read.silent:
            lines += _guideline(row)
    elif read.silent:
        lines.append("– " + _silent(read))
    for found in read.other_confirmations:
        lines.append(f"  {chip_words(answer_chip(found['answer']))} {found['tool']}")
        lines.append(f"      {confirmation_words(found, '')}")
    for call in read.other_calls:
        lines.append(f"  {_call_line(call['tool'], call['state'], '', call)}")
    if read.reply:
        lines.append("  " + _came_about(audit, read))
    lines += ending_words(audit, read)
    return "\n".join(_wrapped(printable(line), width) for line in lines)


def printable(text: str) -> str:
    """Without control characters: what a customer wrote or a tool returned must not steer the terminal."""
    return "".join(
        char if char in "\n\t" or unicodedata.category(char)[0] != "C" or _joins(char) else "�"
        for char in text
    )


def _joins(char: str) -> bool:
    return char in "\u200c\u200d"  # inside words and emoji of many languages


def turn_words(audit: JsonObject, read: Ledger) -> list[str]:
    """The turn in a few words each: its number, how it ended, what it ran on, how long and how much it took."""
    version = audit["version"]
    named = _("version %(number)d") % {"number": version} if isinstance(version, int) else version
    writers = {message["model"] for message in audit["messages"] if message["model"]}
    parts = [
        _("Turn %(number)d") % {"number": audit["number"]},
        chip_words(turn_chip(audit["state"])).lower(),
        f"{named} {audit['fingerprint'][:8]}".strip() if named else "",
        seconds(audit["duration_ms"]),
        _tokens(read),
        _("written by the %(model)s model") % {"model": ", ".join(writers)} if writers else "",
    ]
    return [part for part in parts if part]


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
    yield f"{mark} {chip_words(match_chip(row.state))}: {subject}{_action(row)}"
    if row.effect:
        yield f"    {row.effect}"
    if row.because or row.score is not None:
        yield f"    {row.because}{judged_words(row)}"
    if row.given_by:
        yield "    " + _("Brought by %(tool)s, for this turn only.") % {"tool": row.given_by}
    if follows := follows_words(row):
        yield f"    {follows}"
    for tool in row.tools:
        yield from _tool(tool)


def judged_words(row: GuidelineRow) -> str:
    parts = [
        _("score %(score)s") % {"score": score_words(row.score)} if row.score is not None else ""
    ]
    parts.append(_("explained afterwards") if row.explained_afterwards else "")
    words = ", ".join(part for part in parts if part)
    return f" ({words})" if words else ""


def follows_words(row: GuidelineRow) -> str:
    """Only what a reader must know: that it was checked, or that it is not followed."""
    if row.checked is not None:
        times = ngettext("after %(count)d revision", "after %(count)d revisions", row.revisions) % {
            "count": row.revisions
        }
        revised = f" ({times})" if row.revisions else ""
        if row.checked["follows"]:
            return _("Checked: the reply follows it.") + revised
        return _("Checked: the reply does not follow it.") + revised
    if row.follows is not None and not row.follows["follows"]:
        return _("By its own report, the reply does not follow it.")
    return ""


def _action(row: GuidelineRow) -> str:
    return f" → {row.action}" if row.action else ""


def _tool(row: ToolRow) -> Iterator[str]:
    yield "    " + _call_line(row.tool, row.state, row.because, row.call)
    if row.confirmation is not None:
        yield f"        {confirmation_words(row.confirmation, row.state)}"
    for argument in row.arguments:
        value = _shortened(_plain(argument["value"]), _LONGEST_VALUE)
        yield f"        {argument['name']} = {value}  [{chip_words(provenance_chip(argument))}]"
    for words in offered_words(row):
        yield f"        {words}"
    for insight in row.missing:
        yield "        " + _("missing: %(what)s") % {"what": insight_words(insight)}
    for insight in row.invalid:
        yield "        " + _("invalid: %(what)s") % {"what": insight_words(insight)}
    if row.call is not None:
        yield from _outcome(row.call)


def offered_words(row: ToolRow) -> Iterator[str]:
    """What its service named as choices, a line for each parameter; why it could not, where nothing else says it."""
    if row.offered is None:
        return
    if row.offered["because"] and row.offered["because"] not in row.because:
        yield row.offered["because"]
    for name, values in row.offered["choices"].items():
        words = {"name": name, "values": _shortened(_plain(values), _LONGEST_RESULT)}
        yield _("offered for %(name)s: %(values)s") % words


def insight_words(insight: Mapping[str, Any]) -> str:
    """The parameter in words, what is wrong about it, why it is needed, and what it may be."""
    parts = [insight["label"]]
    if reason := insight.get("reason"):
        parts.append(f" {reason}")
    if why := insight.get("significance"):
        parts.append(f" – {why}")
    if offered := insight.get("choices") or insight.get("examples"):
        parts.append(f" ({_shortened(_plain(list(offered)), _LONGEST_RESULT)})")
    return "".join(parts)


def confirmation_words(found: Mapping[str, Any], state: str) -> str:
    """What a call waits for, or what the customer said to it, and in which turns."""
    if not found["answer"]:
        return _("It is done only once the customer says yes.")
    if state == "AWAITING_CONFIRMATION":
        words = _("%(answered)s, turn %(number)s.")
        return words % {
            "answered": answer_words(found["answer"]),
            "number": found["answered_in"] or "–",
        }
    words = _("Asked for in turn %(number)d. %(answered)s.")
    return words % {"number": found["turn"], "answered": answer_words(found["answer"])}


def _call_line(tool: str, state: str, because: str, call: Mapping[str, Any] | None) -> str:
    lasted = seconds(call["duration_ms"]) if call else ""
    served = served_words(call) if call else ""
    took = f" ({', '.join(filter(None, (lasted, served)))})" if lasted or served else ""
    reason = f": {because}" if because else ""
    return f"{_MARKS.get(state, '·')} {chip_words(decision_chip(state))} {tool}{took}{reason}"


def _outcome(call: Mapping[str, Any]) -> Iterator[str]:
    error = call["error"]
    if error:
        yield f"        → {error_words(error['kind'])} {_shortened(error['public'], _LONGEST_RESULT)}"
    elif call["result"] is not None:
        yield f"        → {_shortened(_plain(call['result']['data']), _LONGEST_RESULT)}"
        yield from _control(call["result"])


def _control(result: Mapping[str, Any]) -> Iterator[str]:
    """What a result asks for besides being told."""
    control = result.get("control") or {}
    if control.get("lifespan") == "response":
        yield "        " + _("Used for this reply only, not kept.")
    if control.get("mode") == "manual":
        yield "        " + _("It hands the customer over to a person.")


def _silent(read: Ledger) -> str:
    count = len(read.silent)
    words = ngettext(
        "%(count)d guideline did not match", "%(count)d guidelines did not match", count
    )
    return words % {"count": count}


def _came_about(audit: JsonObject, read: Ledger) -> str:
    named = "; ".join(
        f"“{_shortened(response['text'] or response['uid'], _LONGEST_VALUE)}”"
        for response in audit["reply_source"]["responses"]
    )
    return f"{read.reply} {named}".rstrip()


def ending_words(audit: JsonObject, read: Ledger) -> Iterator[str]:
    if read.unknown:
        yield "! " + _("A person has to look: a call was started, and nobody knows how it ended.")
    for change in audit["modes"]:
        if change["mode"] == "manual" and change["tool"]:
            yield "! " + _("Handed over to a person by %(tool)s.") % {"tool": change["tool"]}
        elif change["mode"] == "manual":
            yield "! " + _("Handed over to a person.")
        else:
            yield "  " + _("Handed back to the agent.")
    if audit["limit_reached"]:
        yield "! " + _("Stopped preparing: %(limit)s") % {"limit": audit["limit_reached"]}
    if audit["state"] == "FAILED":
        yield "! " + _("Failed, reference %(reference)s: %(error)s") % {
            "reference": audit["reference"],
            "error": audit["error"],
        }


def chip_words(chip: str) -> str:
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
