"""Words and marks for the states of a turn's audit, and values as people read them."""

from collections.abc import Mapping
from functools import lru_cache
from typing import Any, NamedTuple

from django import template
from django.utils import formats
from django.utils.functional import Promise
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.translation import get_language, gettext_lazy
from django.utils.translation import gettext as _

from engine.confirming import BY_CONFIRMATION
from studio.readable_values import counted, readable, shortened

register = template.Library()
register.filter(counted)
register.filter(readable)


class Chip(NamedTuple):
    """A state as it is shown: colour class, mark and words, so that colour is never the only signal."""

    css: str
    mark: str
    words: Promise


_MATCH = {
    "matched": Chip("matched", "✓", gettext_lazy("Matched")),
    "not_matched": Chip("", "–", gettext_lazy("Not matched")),
    "not_evaluated": Chip("", "·", gettext_lazy("Not evaluated")),
    "dropped": Chip("dropped", "↓", gettext_lazy("Dropped")),
}
_DECISION = {
    "NEEDS_TO_RUN": Chip("waiting", "…", gettext_lazy("Needs to run")),
    "DATA_ALREADY_IN_CONTEXT": Chip("known", "=", gettext_lazy("Already known")),
    "CANNOT_RUN": Chip("blocked", "!", gettext_lazy("Cannot run")),
    "NOT_NEEDED": Chip("", "–", gettext_lazy("Not needed")),
    "AWAITING_CONFIRMATION": Chip("waiting", "…", gettext_lazy("Awaiting confirmation")),
    "NOT_RUN": Chip("dropped", "↓", gettext_lazy("Did not run")),
    "started": Chip("waiting", "…", gettext_lazy("Running")),
    "done": Chip("ran", "✓", gettext_lazy("Ran")),
    "recorded": Chip("ran", "↺", gettext_lazy("Recorded")),
    "mock": Chip("ran", "✎", gettext_lazy("Mocked")),
    "failed": Chip("blocked", "!", gettext_lazy("Failed")),
    "unknown": Chip("blocked", "?", gettext_lazy("Outcome unknown")),
    "cancelled": Chip("dropped", "×", gettext_lazy("Stopped")),
}
_TURN = {
    "QUEUED": Chip("waiting", "…", gettext_lazy("Waiting")),
    "RUNNING": Chip("waiting", "…", gettext_lazy("Running")),
    "FINISHED": Chip("ran", "✓", gettext_lazy("Finished")),
    "FAILED": Chip("blocked", "!", gettext_lazy("Failed")),
    "STOPPED": Chip("dropped", "×", gettext_lazy("Stopped")),
    "SUPERSEDED": Chip("dropped", "↓", gettext_lazy("Superseded")),
}
_ERROR = {
    "timeout": gettext_lazy("It did not answer before its deadline."),
    "exception": gettext_lazy("It stopped with an error."),
    "bad_output": gettext_lazy("Its result is nothing that JSON can hold."),
    "too_large": gettext_lazy("Its result is too large."),
    "unavailable": gettext_lazy("It cannot be reached."),
    "not_allowed": gettext_lazy("It may not do this."),
    "unknown_outcome": gettext_lazy("Nobody saw it end, so it is not run again."),
}
_QUESTION = {
    "MatchGuidelines": gettext_lazy("Which guidelines apply"),
    "ScoreGuideline": gettext_lazy("Whether one guideline applies"),
    "ExplainMatch": gettext_lazy("Why that verdict, asked afterwards"),
    "ReadConfirmation": gettext_lazy("What the customer says to the calls that wait"),
    "ChooseTool": gettext_lazy("Which of the overlapping tools"),
    "InferToolCalls": gettext_lazy("Which calls to make"),
    "ComposeReply": gettext_lazy("Write the reply"),
    "ChooseResponse": gettext_lazy("Which canned response"),
    "JudgeReply": gettext_lazy("Whether the reply follows its guidelines"),
    "JudgeStatement": gettext_lazy("Whether a statement holds of the reply"),
    "PlayCustomer": gettext_lazy("What the simulated customer says"),
    "JudgeCustomer": gettext_lazy("Whether the simulated customer kept to their brief"),
}
_PHASE = {
    "queue": gettext_lazy("Waiting for a worker"),
    "confirming": gettext_lazy("Reading the customer’s word"),
    "matching": gettext_lazy("Matching"),
    "inferring": gettext_lazy("Considering"),
    "running": gettext_lazy("Running"),
    "writing": gettext_lazy("Writing"),
    "checking": gettext_lazy("Checking the reply"),
    "other": gettext_lazy("Asking the model"),
}
_SECTION = {
    "rules": gettext_lazy("Rules"),
    "agent": gettext_lazy("Agent"),
    "glossary": gettext_lazy("Glossary"),
    "guidelines": gettext_lazy("Guidelines"),
    "tool": gettext_lazy("Tools"),
    "customer": gettext_lazy("What is known of the customer"),
    "conversation": gettext_lazy("Conversation"),
    "briefing": gettext_lazy("Briefing for this reply"),
    "confirmations": gettext_lazy("What awaits the customer’s word"),
    "responses": gettext_lazy("Canned responses"),
    "style": gettext_lazy("Style to write in"),
    "revision": gettext_lazy("The earlier try, and what is wrong with it"),
    "reply": gettext_lazy("The reply to check"),
    "example": gettext_lazy("Example"),
    "other": gettext_lazy("What is asked"),
}
_ANSWER = {
    "": Chip("waiting", "…", gettext_lazy("Waits for the customer")),
    "confirmed": Chip("ran", "✓", gettext_lazy("Confirmed")),
    "declined": Chip("dropped", "×", gettext_lazy("Declined")),
    "changed": Chip("dropped", "↻", gettext_lazy("Changed")),
    "expired": Chip("dropped", "–", gettext_lazy("Expired")),
}
_ANSWERED = {
    "confirmed": gettext_lazy("The customer confirmed it"),
    "declined": gettext_lazy("The customer declined it"),
    "changed": gettext_lazy("The customer changed it, so it was not done like this"),
    "expired": gettext_lazy("Nobody answered in time, so it was not done"),
}


def _chip(chip: Chip | None, state: str) -> SafeString:
    css, mark, words = chip or Chip("", "·", gettext_lazy("Unknown state"))
    title = "" if chip else state
    return format_html(
        '<span class="chip {}" data-mark="{}"{}>{}</span>',
        css,
        mark,
        format_html(' title="{}"', title) if title else "",
        words,
    )


@lru_cache(maxsize=64)
def _match_chip(state: str, _language: str | None) -> SafeString:
    return _chip(_MATCH.get(state), state)


@register.filter
def match_chip(state: str) -> SafeString:
    # A thousand guidelines have four states between them.
    return _match_chip(state, get_language())


@register.filter
def decision_chip(state: str) -> SafeString:
    """Of a ToolDecision's state, or of the state of the call that it led to."""
    return _chip(_DECISION.get(state), state)


@register.filter
def turn_chip(state: str) -> SafeString:
    return _chip(_TURN.get(state), state)


@register.filter
def version_words(audit: Mapping[str, Any]) -> str:
    """What a turn ran on, of its audit; empty while it waits."""
    match audit["version"]:
        case None:
            return ""
        case int() as number:
            return _("version %(number)d") % {"number": number}
        case _:
            return _("draft %(fingerprint)s") % {"fingerprint": audit["fingerprint"][:8]}


@register.filter
def error_words(kind: str) -> str:
    """A ToolErrorKind as a sentence."""
    return str(_ERROR.get(kind, kind))


@register.filter
def served_words(call: Mapping[str, Any]) -> str:
    """Where the outcome of a call of an audit came from; empty where the tool itself ran."""
    served, place = call.get("served", "live"), call.get("served_from")
    if served == "mock":
        return _("mocked")
    if served == "recorded" and place:
        return str(_("recorded, from #%(session)d turn %(turn)d") % place)
    return _("recorded") if served == "recorded" else ""


@register.filter
def question_words(name: str) -> str:
    return str(_QUESTION.get(name, name))


@register.filter
def phase_words(phase: str) -> str:
    """What was done in a bar of the waterfall."""
    return str(_PHASE.get(phase, phase))


@register.filter
def section_words(section: str) -> str:
    """A section of a prompt."""
    return str(_SECTION.get(section, section))


@register.filter
def answer_chip(answer: str) -> SafeString:
    """Of what became of a call that awaited the customer's word; empty while it waits."""
    return _chip(_ANSWER.get(answer), answer)


@register.filter
def answer_words(answer: str) -> str:
    return str(_ANSWERED.get(answer, answer))


@register.filter
def tool_words(name: str) -> str:
    """A tool's name as people say it: `transfer_money` is "Transfer money"."""
    words = " ".join(name.replace("_", " ").replace("-", " ").split())
    return words[:1].upper() + words[1:]


@register.filter
def score_words(score: float | None) -> str:
    """A probability with two digits; empty where there is none."""
    return "" if score is None else formats.number_format(score, 2)


_SAID = {
    "customer": (gettext_lazy("customer: “%s”"), "said", "“”"),
    "guideline": (gettext_lazy("guideline: “%s”"), "matched", "§"),
    "tool_result": (gettext_lazy("%s"), "known", "↳"),
    "variable": (gettext_lazy("customer variable %s"), "known", "↳"),
}
_BARE = {
    "customer": gettext_lazy("customer"),
    "guideline": gettext_lazy("guideline"),
    "tool_result": gettext_lazy("tool result"),
    "variable": gettext_lazy("customer variable"),
}


@register.simple_tag
def provenance_chip(
    argument: Mapping[str, Any], elsewhere: Mapping[int, str] | None = None
) -> SafeString:
    """Where an argument's value came from; what the engine did not find there is shown in warning colour.

    A customer's words lead to the message that holds them; `elsewhere` has the addresses (by offset) of those that
    are not on this page.
    """
    source, evidence = str(argument.get("source", "")), str(argument.get("evidence") or "")
    if source == "default":
        return _provenance("", "=", _("default"), "", "")
    if source not in _SAID:
        return _provenance("inferred", "~", _("inferred"), evidence, "")
    if evidence == BY_CONFIRMATION:
        return _provenance("said", "✓", _("the customer’s confirmation"), "", "")
    pattern, css, mark = _SAID[source]
    words = str(pattern) % shortened(evidence, 60) if evidence else str(_BARE[source])
    if not argument.get("verified"):
        return _provenance("inferred", "?", _("%s, not verified") % words, evidence, "")
    offset = argument.get("offset") if source == "customer" else None
    link = (elsewhere or {}).get(offset, f"#event-{offset}") if offset else ""
    return _provenance(css, mark, words, evidence, link)


def _provenance(css: str, mark: str, words: str, evidence: str, link: str) -> SafeString:
    tag = format_html('a href="{}" data-lights', link) if link else "span"
    return format_html(
        '<{} class="chip {}" data-mark="{}" title="{}" dir="auto"><bdi>{}</bdi></{}>',
        tag,
        css,
        mark,
        evidence,
        words,
        "a" if link else "span",
    )


@register.filter
def seconds(milliseconds: float | None) -> str:
    """Milliseconds as people read them: 0.93 s, 2 min 5 s; empty where there is none worth saying."""
    if milliseconds is None or milliseconds < 10:
        return ""
    value = milliseconds / 1000
    if value >= 60:
        return _("%(minutes)d min %(seconds)d s") % {
            "minutes": value // 60,
            "seconds": value % 60,
        }
    digits = 2 if value < 10 else 1
    return _("%(seconds)s s") % {"seconds": formats.number_format(value, digits)}


@register.filter
def instant(milliseconds: float) -> str:
    """A place on a time line or a short length: 0, 40 ms, 0.3 s, 12 s, 2 min 30 s."""
    if milliseconds < 100:
        return _("%(count)d ms") % {"count": milliseconds} if milliseconds else "0"
    value = milliseconds / 1000
    if value < 60:
        text = formats.number_format(value, 2 if value < 10 else 1)
        separator = formats.get_format("DECIMAL_SEPARATOR")
        return _("%(seconds)s s") % {"seconds": text.rstrip("0").rstrip(separator)}
    minutes, rest = divmod(round(value), 60)
    words = _("%(minutes)d min") % {"minutes": minutes}
    return f"{words} {_('%(seconds)s s') % {'seconds': rest}}" if rest else words


@register.filter
def share_of(part: float, whole: float) -> str:
    """A part of a whole as a percentage, for SVG; at most the whole."""
    return f"{min(100.0, 100 * part / whole):.3f}%"


@register.filter
def breadth_of(part: float, whole: float) -> str:
    """The same for the width of a bar: something that took no time is a sliver, not nothing."""
    return f"{min(100.0, max(0.4, 100 * part / whole)):.3f}%"
