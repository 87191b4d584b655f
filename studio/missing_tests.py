"""The test that a guideline or a tool lacks, as far as it can be proposed: what the customer says, what is expected."""

from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

from django.db.models import QuerySet
from django.utils.translation import gettext as _

from engine.canonical import canonical_json
from engine.expecting import Expectation, GuidelineExpectation, ToolExpectation, to_json
from engine.trail import CallState, MatchState
from studio.models import (
    Agent,
    Guideline,
    GuidelineExample,
    GuidelineMatch,
    Session,
    ToolCall,
    Turn,
)
from studio.readable_values import shortened

_TITLE = 120
_SAID = 4_000  # characters that an address carries of what was said
_SCORED = 200  # newest turns that are looked through for one in which it nearly applied


@dataclass(frozen=True, slots=True, kw_only=True)
class MissingTest:
    title: str
    said: tuple[
        str, ...
    ]  # by the customer, one message after the other; empty where nothing is known
    expectation: Expectation

    @property
    def query(self) -> str:
        """As the form of a new scenario reads it from its address."""
        said = [("say", text) for text in self.said]
        expect = ("expect", canonical_json(to_json(self.expectation)))
        return urlencode([("title", self.title), *said, expect])


def matching_test(guideline: Guideline) -> MissingTest:
    """That it matches: said is an example, or what was said in the newest chat in which it did, or nearly did."""
    said = _example(guideline, matches=True)
    for state in (MatchState.MATCHED, MatchState.DROPPED):
        said = said or _said_in(_ended(guideline, state))
    return MissingTest(
        title=_("Matches: %(guideline)s") % {"guideline": shortened(str(guideline), _TITLE)},
        said=said,
        expectation=GuidelineExpectation(guideline=guideline.uid),
    )


def silent_test(guideline: Guideline) -> MissingTest:
    """That it does not match: said is an example, or what was said where it was dropped, or came closest."""
    said = _example(guideline, matches=False)
    said = said or _said_in(_ended(guideline, MatchState.DROPPED)) or _said_in(_closest(guideline))
    return MissingTest(
        title=_("Does not match: %(guideline)s") % {"guideline": shortened(str(guideline), _TITLE)},
        said=said,
        expectation=GuidelineExpectation(guideline=guideline.uid, matches=False),
    )


def tool_test(agent: Agent, tool: str) -> MissingTest:
    """That the tool runs: said is what was said in the newest chat in which it did, or a guideline's example."""
    calls = ToolCall.objects.filter(tool=tool, state=CallState.DONE, **_in_chats(agent))
    examples = GuidelineExample.objects.filter(
        guideline__agent=agent, guideline__enabled=True, guideline__tools__name=tool, matches=True
    )
    said = _said_in(calls.order_by("-started_at"))
    if not said:
        said = tuple(
            examples.order_by("guideline__position", "pk").values_list("text", flat=True)[:1]
        )
    return MissingTest(
        title=_("Runs: %(tool)s") % {"tool": tool},
        said=said,
        expectation=ToolExpectation(tool=tool),
    )


def _example(guideline: Guideline, *, matches: bool) -> tuple[str, ...]:
    rows = guideline.examples.filter(matches=matches).order_by("pk")
    return tuple(rows.values_list("text", flat=True)[:1])


def _in_chats(agent: Agent) -> dict[str, object]:
    return {"turn__session__agent": agent, "turn__session__purpose": Session.Purpose.CHAT}


def _ended(guideline: Guideline, state: MatchState) -> QuerySet[GuidelineMatch]:
    rows = GuidelineMatch.objects.filter(guideline=guideline.uid, **_in_chats(guideline.agent))
    rows = rows.that_fired() if state is MatchState.MATCHED else rows.filter(state=state)
    return rows.order_by("-started_at")


def _closest(guideline: Guideline) -> QuerySet[GuidelineMatch]:
    """The one of the newest judgements that gave it the highest probability; none where models give none."""
    rows = _ended(guideline, MatchState.NOT_MATCHED).filter(score__gt=0)
    scored = list(rows.values_list("score", "pk")[:_SCORED])
    return GuidelineMatch.objects.filter(pk=max(scored)[1]) if scored else rows.none()


def _said_in(rows: "QuerySet[Any]") -> tuple[str, ...]:
    """What the customer said up to the turn of the first of these rows; the last of it, where it is much."""
    key = rows.values_list("turn", flat=True).first()
    if key is None:
        return ()
    turn = Turn.objects.select_related("session").get(pk=key)
    events = turn.session.line.events.filter(
        kind="message", source="customer", turn__number__lte=turn.number
    )
    texts = [str(text) for text in events.order_by("offset").values_list("data__text", flat=True)]
    kept: list[str] = []
    left = _SAID
    for text in reversed(texts):
        left -= len(text)
        if kept and left < 0:
            break
        kept.append(text[:_SAID])
    return tuple(reversed(kept))
