"""What differs between two runs of a turn, as sentences: the page, the API and the command say the same."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, assert_never

from django.utils.functional import Promise
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext

from engine.replaying import Difference, DifferenceKind
from engine.replaying.pairing import same_json
from engine.spec import Agent
from studio.expectation_words import guideline_words, value_words
from studio.readable_values import shortened

_LONG = 120  # characters of a value or a condition in a sentence

_MATCH: Mapping[str, str | Promise] = {
    "matched": gettext_lazy("matched"),
    "not_matched": gettext_lazy("did not match"),
    "not_evaluated": gettext_lazy("was not evaluated"),
    "dropped": gettext_lazy("was dropped"),
    "absent": gettext_lazy("did not exist"),
}
_NOW: Mapping[str, str | Promise] = {
    "matched": gettext_lazy("matches"),
    "not_matched": gettext_lazy("does not match"),
    "not_evaluated": gettext_lazy("is not evaluated"),
    "dropped": gettext_lazy("is dropped"),
    "absent": gettext_lazy("no longer exists"),
}
_DECISION: Mapping[str, str | Promise] = {
    "NEEDS_TO_RUN": gettext_lazy("needs to run"),
    "DATA_ALREADY_IN_CONTEXT": gettext_lazy("already known"),
    "CANNOT_RUN": gettext_lazy("cannot run"),
    "NOT_NEEDED": gettext_lazy("not needed"),
    "AWAITING_CONFIRMATION": gettext_lazy("awaits confirmation"),
}
_SOURCE: Mapping[str, str | Promise] = {
    "customer": gettext_lazy("the customer said it"),
    "guideline": gettext_lazy("from the guideline"),
    "tool_result": gettext_lazy("from a tool’s result"),
    "variable": gettext_lazy("known of the customer"),
    "default": gettext_lazy("the default"),
    "inferred": gettext_lazy("inferred"),
}
_ANSWER: Mapping[str, str | Promise] = {
    "confirmed": gettext_lazy("a yes"),
    "declined": gettext_lazy("a no"),
    "changed": gettext_lazy("a change"),
    "expired": gettext_lazy("too late"),
}
_OUTCOME: Mapping[str, str | Promise] = {
    "timeout": gettext_lazy("a timeout"),
    "exception": gettext_lazy("an error"),
    "bad_output": gettext_lazy("a result that JSON cannot hold"),
    "too_large": gettext_lazy("a result that is too large"),
    "unavailable": gettext_lazy("a tool that cannot be reached"),
    "not_allowed": gettext_lazy("a refusal"),
    "unknown_outcome": gettext_lazy("an unknown outcome"),
}
_KINDS: Mapping[DifferenceKind, str | Promise] = {
    DifferenceKind.CONFIRMATION: gettext_lazy("Confirmation"),
    DifferenceKind.GUIDELINE: gettext_lazy("Guideline"),
    DifferenceKind.DECISION: gettext_lazy("Tool decision"),
    DifferenceKind.ARGUMENT: gettext_lazy("Argument"),
    DifferenceKind.RESULT: gettext_lazy("Result"),
    DifferenceKind.HANDED_OVER: gettext_lazy("Handing over"),
    DifferenceKind.LIMIT: gettext_lazy("Limit"),
    DifferenceKind.FAILURE: gettext_lazy("Failure"),
    DifferenceKind.RESPONSE: gettext_lazy("Canned response"),
    DifferenceKind.ADHERENCE: gettext_lazy("Check of the reply"),
    DifferenceKind.REPLY: gettext_lazy("Words"),
}


def kind_words(kind: DifferenceKind) -> str:
    return str(_KINDS[kind])


@dataclass(frozen=True, slots=True, kw_only=True)
class Names:
    """How the guidelines of both runs are called: by the newer version where it still has them."""

    before: Agent
    after: Agent

    def guideline(self, uid: str) -> str:
        known = self.after if uid in self.after.guideline_by_uid else self.before
        return guideline_words(uid, known)

    def response(self, uid: str) -> str:
        """The text of a canned response; one that a tool gave is named by its text already."""
        for agent in (self.after, self.before):
            for response in agent.canned_responses:
                if response.uid == uid:
                    return shortened(response.text, _LONG)
        return shortened(uid, _LONG)


def sentence(  # noqa: C901 - one branch for each kind
    difference: Difference, names: Names, *, below: str = ""
) -> str:
    """Plain text that names guidelines as the authors wrote them; not again the one that it stands `below`."""
    match difference.kind:
        case DifferenceKind.CONFIRMATION:
            return _confirmation(difference)
        case DifferenceKind.GUIDELINE:
            return _guideline(difference, names)
        case DifferenceKind.DECISION:
            return _decision(difference, names, below)
        case DifferenceKind.ARGUMENT:
            return _argument(difference)
        case DifferenceKind.RESULT:
            return _result(difference)
        case DifferenceKind.HANDED_OVER:
            if difference.after:
                return _("The session is handed over to a person now; it was not before.")
            return _("The session is no longer handed over to a person.")
        case DifferenceKind.LIMIT:
            return _limit(difference)
        case DifferenceKind.FAILURE:
            if difference.after:
                return _("The turn fails now: %(why)s") % {"why": difference.after}
            return _("The turn no longer fails; it did with: %(why)s") % {"why": difference.before}
        case DifferenceKind.RESPONSE:
            return _response(difference, names)
        case DifferenceKind.ADHERENCE:
            named = {"guideline": names.guideline(difference.guideline)}
            broken = difference.after is not None and not difference.after["follows"]
            if broken:
                return _("The reply does not follow %(guideline)s any more.") % named
            return _("The reply follows %(guideline)s now; it did not before.") % named
        case DifferenceKind.REPLY:
            return _reply(difference)
        case _:
            assert_never(difference.kind)


def _confirmation(difference: Difference) -> str:
    told = {
        "tool": called(difference),
        "before": _answer(difference.before),
        "after": _answer(difference.after),
    }
    return (
        _("The customer’s word about %(tool)s is taken for %(after)s now; before, for %(before)s.")
        % told
    )


def _answer(side: Any) -> str:
    return str(_ANSWER.get(side["answer"], side["answer"])) if side else _("no answer")


def _guideline(difference: Difference, names: Names) -> str:
    before, after = difference.before, difference.after
    told = {"guideline": names.guideline(difference.guideline)}
    if before["state"] == "absent" and after["state"] == "matched" and not after["added_by"]:
        return _("%(guideline)s is new, and matches.") % told
    if before["state"] == "not_matched" and after["state"] == "matched" and not after["added_by"]:
        return _("%(guideline)s matches now; it did not before.") % told
    if before["state"] == "matched" and after["state"] == "not_matched":
        return _("%(guideline)s does not match any more.") % told
    told["before"] = _standing(before, _MATCH, names)
    told["after"] = _standing(after, _NOW, names)
    return _("%(guideline)s %(before)s; now it %(after)s.") % told


def _standing(side: Mapping[str, Any], words: Mapping[str, str | Promise], names: Names) -> str:
    state = str(words.get(side["state"], side["state"]))
    if side["dropped_by"]:
        return _("%(state)s because of %(other)s") % {
            "state": state,
            "other": names.guideline(side["dropped_by"]),
        }
    if side["added_by"]:
        return _("%(state)s, brought along by %(other)s") % {
            "state": state,
            "other": names.guideline(side["added_by"]),
        }
    return state


def _decision(difference: Difference, names: Names, below: str) -> str:
    told = {
        "tool": called(difference),
        "guideline": names.guideline(difference.guideline),
        "before": _decided(difference.before),
        "after": _decided(difference.after),
    }
    if difference.guideline in {"", below}:
        return _("%(tool)s: %(after)s; before, %(before)s.") % told
    return _("%(tool)s under %(guideline)s: %(after)s; before, %(before)s.") % told


def _decided(side: Any) -> str:
    if side is None:
        return _("not considered")
    words = str(_DECISION.get(side["state"], side["state"]))
    wrong = [_("%(name)s is missing") % {"name": name} for name in side["missing"]]
    wrong += [_("%(name)s is not valid") % {"name": name} for name in side["invalid"]]
    return f"{words} ({', '.join(wrong)})" if wrong else words


def _argument(difference: Difference) -> str:
    told = {"tool": difference.tool, "name": difference.parameter}
    before, after = difference.before, difference.after
    if before is None:
        return _("%(tool)s is called with %(name)s = %(after)s now; before, without it.") % (
            told | {"after": _value(after["value"])}
        )
    if after is None:
        return _("%(tool)s is called without %(name)s now; before, with %(before)s.") % (
            told | {"before": _value(before["value"])}
        )
    if before["value"] == after["value"]:
        return _(
            "%(tool)s: %(name)s has the same value on another ground: %(after)s; before, %(before)s."
        ) % (told | {"before": _ground(before), "after": _ground(after)})
    return _("%(tool)s: %(name)s is %(after)s now; before, %(before)s.") % (
        told | {"before": _value(before["value"]), "after": _value(after["value"])}
    )


def _ground(side: Mapping[str, Any]) -> str:
    words = str(_SOURCE.get(side["source"], side["source"]))
    return words if side["verified"] else _("%(source)s, not verified") % {"source": words}


def _result(difference: Difference) -> str:
    before, after = difference.before, difference.after
    told = {"tool": called(difference)}
    if _is_object(before) and _is_object(after):
        names = _differing(before["data"], after["data"])
        if not names:  # it brings something else besides its data
            return _("%(tool)s gives another result now.") % told
        told["names"] = shortened(", ".join(names), _LONG)
        return _("%(tool)s gives another result now (%(names)s).") % told
    told |= {"before": _outcome(before), "after": _outcome(after)}
    return _("%(tool)s gives %(after)s now; before, %(before)s.") % told


def _is_object(side: Any) -> bool:
    return side is not None and isinstance(side.get("data"), dict)


def _differing(before: Mapping[str, Any], after: Mapping[str, Any]) -> list[str]:
    both = before.keys() & after.keys()
    return [
        name
        for name in {**before, **after}
        if name not in both or not same_json(before[name], after[name])
    ]


def _outcome(side: Any) -> str:
    if side is None:
        return _("nothing: it was not called")
    if "error" in side:
        return str(_OUTCOME.get(side["error"], side["error"]))
    if side["state"] == "cancelled":
        return _("nothing: it was stopped")
    if "data" not in side:
        return _("no result")
    return _("a result") if isinstance(side["data"], dict) else _value(side["data"])


def _limit(difference: Difference) -> str:
    if difference.before is None:
        return _("The limit %(limit)s is reached now.") % {"limit": difference.after}
    if difference.after is None:
        return _("The limit %(limit)s is no longer reached.") % {"limit": difference.before}
    return _("Another limit is reached: %(after)s; before, %(before)s.") % {
        "before": difference.before,
        "after": difference.after,
    }


def _response(difference: Difference, names: Names) -> str:
    before, after = (_response_side(side, names) for side in (difference.before, difference.after))
    return _("The reply rests on %(after)s now; before, on %(before)s.") % {
        "before": before,
        "after": after,
    }


def _response_side(side: Any, names: Names) -> str:
    if side is None or not side["responses"]:
        return _("no canned response")
    return ", ".join(f"“{names.response(uid)}”" for uid in side["responses"])


def _reply(difference: Difference) -> str:
    if not difference.after:
        return _("There is no reply any more.")
    if not difference.before:
        return _("There is a reply now; before, there was none.")
    before, after = len(difference.before.split()), len(difference.after.split())
    if before == after:
        return _("The reply says it in other words.")
    return ngettext(
        "The reply has other words: %(after)d in place of %(before)d.",
        "The reply has other words: %(after)d in place of %(before)d.",
        after,
    ) % {"before": before, "after": after}


def called(difference: Difference) -> str:
    """transfer_money(amount=50): the tool, with the arguments that tell its calls apart."""
    if not difference.arguments:
        return difference.tool
    told = [f"{name}={_value(value)}" for name, value in difference.arguments.items()]
    return f"{difference.tool}({shortened(', '.join(told), _LONG)})"


def _value(value: Any) -> str:
    return _("nothing") if value is None else value_words(value)
