"""Does an expectation fit the agent and the scenario that it is written for?"""

from collections.abc import Iterable
from difflib import get_close_matches

from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from engine import spec
from engine.expecting import (
    DecisionExpectation,
    Expectation,
    GuidelineExpectation,
    OrderExpectation,
    ToolExpectation,
)
from studio.models import Scenario
from studio.operations.scenario_messages import turn_count
from studio.readable_values import shortened


class ScenarioRefusedError(Exception):
    """Nothing was kept; `field` names what to change, the text says how."""

    def __init__(self, field: str, message: str) -> None:
        super().__init__(message)
        self.field = field


def make_sure_it_fits(expectation: Expectation, scenario: Scenario, agent: spec.Agent) -> None:
    """Raises ScenarioRefusedError: the agent has no such guideline, tool or parameter, or the scenario no such turn."""
    match expectation:
        case GuidelineExpectation(guideline=uid):
            _refuse_guideline(uid, agent)
        case ToolExpectation(tool=tool):
            _refuse_tool("tool", tool, agent)
            _refuse_parameters(expectation, agent.tool_by_name[tool])
        case DecisionExpectation(tool=tool, guideline=uid):
            _refuse_tool("tool", tool, agent)
            if uid:
                _refuse_guideline(uid, agent)
        case OrderExpectation(tools=tools):
            for name in tools:
                _refuse_tool("tools", name, agent)
        case _:
            pass
    _refuse_turn(expectation.turn, scenario)


def doubts(expectation: Expectation, repeats: int) -> list[str]:
    """What is odd about it, though it can be kept; sentences."""
    wanted = expectation.at_least
    if wanted is not None and wanted > repeats:
        words = ngettext(
            "It has to hold in %(wanted)d runs, but the suite runs each scenario %(repeats)d time: "
            "it then has to hold every time.",
            "It has to hold in %(wanted)d runs, but the suite runs each scenario %(repeats)d times: "
            "it then has to hold every time.",
            repeats,
        )
        return [words % {"wanted": wanted, "repeats": repeats}]
    return []


def _refuse_guideline(uid: str, agent: spec.Agent) -> None:
    if uid in agent.guideline_by_uid:
        return
    tool, colon, number = uid.rpartition(":")
    if colon and number.isdecimal() and tool in agent.tool_by_name:
        return  # one that a result of the tool brings
    raise ScenarioRefusedError(
        "guideline",
        _("%(agent)s has no guideline %(uid)s; choose one of those there are.")
        % {"agent": agent.name, "uid": shortened(repr(uid), 60)},
    )


def _refuse_tool(field: str, name: str, agent: spec.Agent) -> None:
    if name in agent.tool_by_name:
        return
    raise ScenarioRefusedError(
        field,
        _("%(agent)s has no tool “%(tool)s”. %(remedy)s")
        % {
            "agent": agent.name,
            "tool": shortened(name, 60),
            "remedy": _nearest(name, agent.tool_by_name)
            or _("Choose one of its tools, or add it to them first."),
        },
    )


def _refuse_parameters(expectation: ToolExpectation, tool: spec.Tool) -> None:
    known = [parameter.name for parameter in tool.parameters]
    for place, argument in enumerate(expectation.arguments):
        if known and argument.name not in known:
            raise ScenarioRefusedError(
                f"arguments.{place}.name",
                _("%(tool)s has no parameter “%(name)s”. %(remedy)s")
                % {
                    "tool": tool.name,
                    "name": shortened(argument.name, 60),
                    "remedy": _nearest(argument.name, known)
                    or _("It has: %(names)s.") % {"names": ", ".join(known)},
                },
            )


def _nearest(name: str, known: Iterable[str]) -> str:
    near = get_close_matches(name, list(known), n=1)
    return _("Did you mean “%(name)s”?") % {"name": near[0]} if near else ""


def _refuse_turn(turn: int | None, scenario: Scenario) -> None:
    last = turn_count(scenario)
    if turn is None or turn <= last:
        return
    words = ngettext(
        "The scenario has %(count)d turn, not %(turn)d; choose another, or the whole conversation.",
        "The scenario has %(count)d turns, not %(turn)d; choose another, or the whole conversation.",
        last,
    )
    raise ScenarioRefusedError("turn", words % {"count": last, "turn": turn})
