"""Expectations as sentences that people can read, in the words of their agent."""

from typing import Any, assert_never

from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext

from engine.canonical import canonical_json
from engine.expecting import (
    ArgumentExpectation,
    BelowExpectation,
    Comparing,
    DecisionExpectation,
    Expectation,
    GuidelineExpectation,
    HandedOverExpectation,
    JudgedExpectation,
    Measure,
    NoPromiseExpectation,
    OrderExpectation,
    ReplyContainsExpectation,
    ReplyMatchesExpectation,
    ToolExpectation,
)
from engine.spec import Agent
from engine.trail import DecisionState
from studio.readable_values import shortened

_LONG = 160
_VALUE = 80

DECISIONS = {
    DecisionState.NEEDS_TO_RUN: gettext_lazy("needs to run"),
    DecisionState.CANNOT_RUN: gettext_lazy("cannot run"),
    DecisionState.NOT_NEEDED: gettext_lazy("is not needed"),
    DecisionState.DATA_ALREADY_IN_CONTEXT: gettext_lazy("has its data already"),
    DecisionState.AWAITING_CONFIRMATION: gettext_lazy("awaits the customer’s word"),
}
"""What a tool comes to: "get_balance … "."""


def sentence(expectation: Expectation, agent: Agent) -> str:
    """Plain text, such as: G3 “the customer asks for a refund” must match in turn 2, in at least 2 runs.

    What the agent no longer has is named as missing.
    """
    words = _sentence(expectation, agent)
    if expectation.at_least is None:
        return words
    runs = ngettext(
        "in at least %(count)d run", "in at least %(count)d runs", expectation.at_least
    ) % {"count": expectation.at_least}
    return _("%(sentence)s, %(runs)s") % {"sentence": words, "runs": runs}


def guideline_words(uid: str, agent: Agent) -> str:
    """G3 “the customer asks for a refund”; one that a result brings is told by its tool."""
    found = agent.guideline_by_uid.get(uid)
    if found is not None:
        text = found.condition.strip() or found.action.strip() or uid
        return _("%(label)s “%(text)s”") % {
            "label": agent.label_of[uid],
            "text": shortened(" ".join(text.split()), _LONG),
        }
    tool, colon, number = uid.rpartition(":")
    if colon and number.isdecimal():
        return _("Guideline %(number)s that %(tool)s brings") % {"number": number, "tool": tool}
    return _("A guideline that is no longer there (%(uid)s)") % {"uid": uid}


def value_words(value: Any) -> str:
    """A value of JSON in a sentence: text between quotes, all else as it is written."""
    if isinstance(value, str):
        return _("“%(text)s”") % {"text": shortened(value, _VALUE)}
    return shortened(canonical_json(value), _VALUE)


def _sentence(expectation: Expectation, agent: Agent) -> str:
    match expectation:
        case GuidelineExpectation():
            return _of_guideline(expectation, agent)
        case ToolExpectation():
            return _of_tool(expectation, agent)
        case DecisionExpectation():
            return _of_decision(expectation, agent)
        case OrderExpectation():
            return _of_order(expectation, agent)
        case ReplyContainsExpectation():
            return _of_text(expectation)
        case ReplyMatchesExpectation():
            return _of_pattern(expectation)
        case NoPromiseExpectation() | JudgedExpectation():
            return _of_judgement(expectation)
        case HandedOverExpectation():
            return _of_hand_over(expectation)
        case BelowExpectation():
            return _of_measure(expectation)
        case _:
            assert_never(expectation)


def _of_guideline(expectation: GuidelineExpectation, agent: Agent) -> str:
    told = {
        "guideline": guideline_words(expectation.guideline, agent),
        "turn": expectation.turn,
    }
    if expectation.turn is not None:
        if expectation.matches:
            return _("%(guideline)s must match in turn %(turn)d") % told
        return _("%(guideline)s must not match in turn %(turn)d") % told
    if expectation.matches:
        return _("%(guideline)s must match in some turn") % told
    return _("%(guideline)s must not match in any turn") % told


def _tool(name: str, agent: Agent) -> str:
    if name in agent.tool_by_name:
        return name
    return _("%(tool)s (which the agent no longer has)") % {"tool": name}


def _of_tool(expectation: ToolExpectation, agent: Agent) -> str:
    told = {"tool": _tool(expectation.tool, agent), "turn": expectation.turn}
    if expectation.turn is not None:
        words = (
            _("%(tool)s must run in turn %(turn)d")
            if expectation.runs
            else _("%(tool)s must not run in turn %(turn)d")
        )
    else:
        words = (
            _("%(tool)s must run in some turn")
            if expectation.runs
            else _("%(tool)s must not run in any turn")
        )
    if not expectation.arguments:
        return words % told
    arguments = _listed([_argument(argument) for argument in expectation.arguments])
    return _("%(sentence)s with %(arguments)s") % {
        "sentence": words % told,
        "arguments": arguments,
    }


def _argument(expected: ArgumentExpectation) -> str:
    name = expected.name
    match expected.how:
        case Comparing.EQUAL:
            return _("%(name)s = %(value)s") % {"name": name, "value": value_words(expected.value)}
        case Comparing.CONTAINS:
            return _("%(name)s containing %(value)s") % {
                "name": name,
                "value": value_words(expected.value),
            }
        case Comparing.ABOUT:
            if expected.tolerance:
                return _("%(name)s about %(value)s (± %(tolerance)s)") % {
                    "name": name,
                    "value": value_words(expected.value),
                    "tolerance": _number(expected.tolerance),
                }
            return _("%(name)s about %(value)s") % {
                "name": name,
                "value": value_words(expected.value),
            }
        case Comparing.ONE_OF:
            return _("%(name)s one of %(values)s") % {
                "name": name,
                "values": ", ".join(value_words(value) for value in expected.value),
            }
        case _:
            assert_never(expected.how)


def _of_decision(expectation: DecisionExpectation, agent: Agent) -> str:
    told = {
        "tool": _tool(expectation.tool, agent),
        "state": DECISIONS[expectation.state],
        "turn": expectation.turn,
    }
    words = (
        _("The decision must be that %(tool)s %(state)s in some turn")
        if expectation.turn is None
        else _("The decision in turn %(turn)d must be that %(tool)s %(state)s")
    )
    if not expectation.guideline:
        return words % told
    return _("%(sentence)s, under %(guideline)s") % {
        "sentence": words % told,
        "guideline": guideline_words(expectation.guideline, agent),
    }


def _of_order(expectation: OrderExpectation, agent: Agent) -> str:
    told = {
        "tools": ", ".join(_tool(name, agent) for name in expectation.tools),
        "turn": expectation.turn,
    }
    if expectation.turn is None:
        return _("These must run in this order: %(tools)s") % told
    return _("In turn %(turn)d these must run in this order: %(tools)s") % told


def _of_text(expectation: ReplyContainsExpectation) -> str:
    told = {"text": shortened(expectation.text, _LONG), "turn": expectation.turn}
    if expectation.turn is not None:
        if expectation.contains:
            return _("The reply of turn %(turn)d must contain “%(text)s”") % told
        return _("The reply of turn %(turn)d must not contain “%(text)s”") % told
    if expectation.contains:
        return _("Some reply must contain “%(text)s”") % told
    return _("No reply may contain “%(text)s”") % told


def _of_pattern(expectation: ReplyMatchesExpectation) -> str:
    told = {"pattern": shortened(expectation.pattern, _LONG), "turn": expectation.turn}
    if expectation.turn is not None:
        if expectation.matches:
            return _("The reply of turn %(turn)d must match the pattern %(pattern)s") % told
        return _("The reply of turn %(turn)d must not match the pattern %(pattern)s") % told
    if expectation.matches:
        return _("Some reply must match the pattern %(pattern)s") % told
    return _("No reply may match the pattern %(pattern)s") % told


def _of_judgement(expectation: NoPromiseExpectation | JudgedExpectation) -> str:
    if isinstance(expectation, NoPromiseExpectation):
        told = {"text": shortened(expectation.text, _LONG), "turn": expectation.turn}
        if expectation.turn is not None:
            return _("The reply of turn %(turn)d must not promise %(text)s") % told
        return _("No reply may promise %(text)s") % told
    told = {"statement": shortened(expectation.statement, _LONG), "turn": expectation.turn}
    if expectation.turn is not None:
        return _("A model must find of the reply of turn %(turn)d: “%(statement)s”") % told
    return _("A model must find of some reply: “%(statement)s”") % told


def _of_hand_over(expectation: HandedOverExpectation) -> str:
    told = {"turn": expectation.turn}
    if expectation.turn is not None:
        if expectation.expected:
            return _("Turn %(turn)d must hand the session over to a person") % told
        return _("Turn %(turn)d must not hand the session over to a person") % told
    if expectation.expected:
        return _("The session must be handed over to a person")
    return _("The session must not be handed over to a person")


def _of_measure(expectation: BelowExpectation) -> str:
    told = {"limit": _number(expectation.limit), "turn": expectation.turn}
    one = expectation.turn is not None
    match expectation.measure:
        case Measure.ROUND_TRIPS:
            words = (
                _("Turn %(turn)d must take fewer than %(limit)s round trips to the model")
                if one
                else _("Every turn must take fewer than %(limit)s round trips to the model")
            )
        case Measure.SECONDS:
            words = (
                _("Turn %(turn)d must take less than %(limit)s s")
                if one
                else _("Every turn must take less than %(limit)s s")
            )
        case Measure.TOKENS:
            words = (
                _("Turn %(turn)d must use fewer than %(limit)s tokens")
                if one
                else _("The whole conversation must use fewer than %(limit)s tokens")
            )
        case Measure.COST:
            words = (
                _("Turn %(turn)d must cost less than %(limit)s")
                if one
                else _("The whole conversation must cost less than %(limit)s")
            )
        case _:
            assert_never(expectation.measure)
    return words % told


def _number(value: float) -> str:
    """1500, 0.05: as people write it, without zeros behind."""
    return f"{value:.10g}" if value < 1e9 else f"{value:.0f}"


def _listed(items: list[str]) -> str:
    if len(items) < 2:
        return "".join(items)
    return _("%(most)s and %(last)s") % {"most": ", ".join(items[:-1]), "last": items[-1]}
