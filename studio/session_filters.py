"""Which sessions somebody wants to see: the filters of the list, of the page and of the API alike.

Version, guideline, tool and error are looked for in one and the same turn: "this guideline fired and that tool could
not run" means both at once.
"""

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, fields
from datetime import date, datetime, time, timedelta
from urllib.parse import urlencode

from django.db.models import Q, QuerySet
from django.utils import timezone
from django.utils.dateparse import parse_date

from engine.trail import CallState, DecisionState
from studio.models import Flag, GuidelineMatch, Session, ToolCall, ToolDecision, Turn
from studio.session_search import MAX_CHARACTERS, Asked, saying

_DECISIONS = {
    "cannot_run": DecisionState.CANNOT_RUN,
    "known": DecisionState.DATA_ALREADY_IN_CONTEXT,
    "awaiting": DecisionState.AWAITING_CONFIRMATION,
    "not_needed": DecisionState.NOT_NEEDED,
}
_FAILED_CALLS = [CallState.FAILED, CallState.UNKNOWN]
_DAY = timedelta(days=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Filters:
    """Each is empty where it does not filter; a value that names nothing there is finds nothing."""

    q: str = ""  # words that were said; studio.session_search
    agent: str = ""  # slug
    version: str = ""  # "draft", "published", or a number: that a turn ran on
    guideline: str = ""  # uid of one that matched
    tool: str = ""  # name of one that was decided about
    decision: str = ""  # ran, or one of _DECISIONS: about `tool`, or about any
    error: str = ""  # turn, call, any
    flag: str = ""  # open, any
    customer: str = ""  # uid
    mode: str = ""  # of Session.Mode
    by: str = ""  # name of who started it
    running: str = ""  # yes: a turn runs or waits
    since: str = ""  # ISO date of the last event, and
    until: str = ""  # until the end of that day

    @classmethod
    def read(cls, query: Mapping[str, str]) -> "Filters":
        """From an address: what no filter could mean counts as absent."""
        given = {
            each.name: query.get(each.name, "").replace("\x00", "").strip()[:MAX_CHARACTERS]
            for each in fields(cls)
        }
        for name, known in _CHOICES.items():
            given[name] = given[name] if given[name] in known else ""
        for name in ("since", "until"):
            given[name] = given[name] if _day(given[name]) else ""
        return cls(**given)

    @property
    def given(self) -> dict[str, str]:
        return {name: value for name, value in asdict(self).items() if value}

    @property
    def query(self) -> str:
        """As they stand in an address."""
        return urlencode(self.given)

    @property
    def asked(self) -> Asked:
        return Asked.read(self.q)

    @property
    def concern_turns(self) -> bool:
        """Is something asked of a turn, so that a session has turns that fit?"""
        numbered = self.version.isdecimal()
        return bool(self.guideline or self.tool or self.decision or self.error or numbered)

    def sessions(self, purpose: str = Session.Purpose.CHAT) -> QuerySet[Session]:
        """All chats that fit, or sessions of another purpose, in no order."""
        found = Session.objects.filter(purpose=purpose)
        for name, fits in _OF_SESSION.items():
            if value := getattr(self, name):
                found = found.filter(fits(value))
        if self.concern_turns:
            found = found.filter(pk__in=self.turns().values("session"))
        if self.asked:
            found = found.filter(pk__in=saying(self.asked).values("session"))
        return found

    def turns(self) -> QuerySet[Turn]:
        """The turns that fit what is asked of turns."""
        found = Turn.objects.all()
        if self.version.isdecimal():
            found = found.filter(version__number=_number(self.version))
        if self.guideline:
            fired = GuidelineMatch.objects.filter(guideline=self.guideline).that_fired()
            found = found.filter(pk__in=fired.values("turn"))
        if self.tool or self.decision:
            found = found.filter(self._decided())
        if self.error:
            found = found.filter(_failed(self.error))
        return found

    def _decided(self) -> Q:
        about = {"tool": self.tool} if self.tool else {}
        if self.decision == "ran":
            ran = ToolCall.objects.filter(**about, state=CallState.DONE)
            return Q(pk__in=ran.values("turn"))
        if self.decision:
            about["state"] = _DECISIONS[self.decision]
        return Q(pk__in=ToolDecision.objects.filter(**about).values("turn"))


def _failed(what: str) -> Q:
    call = Q(pk__in=ToolCall.objects.filter(state__in=_FAILED_CALLS).values("turn"))
    turn = Q(state=Turn.State.FAILED)
    return {"turn": turn, "call": call}.get(what, turn | call)


def _version(choice: str) -> Q:
    # A number is asked of the turns: a session may have changed what it runs on.
    return Q() if choice.isdecimal() else Q(follows=choice)


def _flagged(which: str) -> Q:
    flags = Flag.objects.all() if which == "any" else Flag.objects.filter(closed_at=None)
    return Q(pk__in=flags.values("event__session"))


def _day(text: str) -> date | None:
    try:
        return parse_date(text)
    except ValueError:  # as a date is written, and yet none
        return None


def _midnight(text: str, days: int = 0) -> datetime:
    """The beginning of the day in the current time zone; the last day there is for what lies beyond it."""
    try:
        day = (_day(text) or date.max) + days * _DAY
        return timezone.make_aware(datetime.combine(day, time.min))
    except (OverflowError, ValueError):
        return timezone.make_aware(datetime.combine(date.max - _DAY, time.min))


def _number(text: str) -> int:
    """0, which no version has, for more than the database can hold."""
    return int(text) if len(text) < 10 else 0


_CHOICES = {
    "decision": {"ran", *_DECISIONS},
    "error": {"turn", "call", "any"},
    "flag": {"open", "any"},
    "mode": set(Session.Mode.values),
    "running": {"yes"},
}
_OF_SESSION: dict[str, Callable[[str], Q]] = {
    "agent": lambda slug: Q(agent__slug=slug),
    "version": _version,
    "customer": lambda uid: Q(customer__uid=uid),
    "mode": lambda mode: Q(mode=mode),
    "by": lambda name: Q(created_by__username=name),
    "running": lambda _yes: Q(pk__in=Turn.objects.unfinished().values("session")),
    "flag": _flagged,
    "since": lambda day: Q(last_event_at__gte=_midnight(day)),
    "until": lambda day: Q(last_event_at__lt=_midnight(day, 1)),
}
