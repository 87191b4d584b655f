"""Where the results of a session's tools come from: from the tools, from earlier calls, or written by hand."""

from typing import Any, NamedTuple

from django.db import transaction
from django.db.models import Q
from django.utils.translation import gettext as _

from engine.canonical import JsonObject, canonical_json
from engine.errors import ToolErrorKind, ToolFailure
from engine.tools.base import ToolResult
from engine.tools.mocked import Mock, MockedOutcomes
from engine.tools.recorded import FindRecord, Record, RecordedOutcomes
from engine.tools.results import checked
from engine.tools.standing_in import StandIn
from engine.trail import CallState, Served
from studio import bridge
from studio.live import in_database
from studio.models import Session, ToolCall, ToolMock, Turn

_ENDED = (CallState.DONE.value, CallState.FAILED.value)


class MockRefusedError(Exception):
    """The mock was not kept; the text says why and what to do."""


def stand_in_for(turn: Turn) -> StandIn | None:
    """What answers in place of the tools of a turn that begins or goes on; None where they run.

    Reads the mocks here; what was recorded is looked up call by call, never on the engine's loop.
    """
    match turn.tool_mode:
        case Session.ToolMode.RECORDED:
            return RecordedOutcomes(finder(turn.session))
        case Session.ToolMode.MOCK:
            return MockedOutcomes(mocks_as_outcomes(turn.session))
        case _:
            return None


def mocks_as_outcomes(session: Session) -> dict[str, Mock]:
    """Tool → what it answers in the sessions of this tree."""
    return {row.tool: _mock(row) for row in mocks_of(session)}


def finder(session: Session) -> FindRecord:
    """Looks for earlier calls on the database's own thread: `recorded_outcome`."""

    async def find(tool: str, arguments: JsonObject) -> Record | None:
        return await in_database(recorded_outcome, session, tool, arguments)

    return find


def recorded_outcome(session: Session, tool: str, arguments: JsonObject) -> Record | None:
    """How the newest earlier call of the tool with the same arguments ended, if there is one.

    Looked for first along the session's line, then with its customer, then with anybody, always with its agent. One
    row of an index each, however many calls there are.
    """
    alike = _recorded().filter(tool=tool, arguments_key=bridge.part_key(canonical_json(arguments)))
    row = _nearest(session, alike)
    return _record(row) if row is not None else None


def last_real_result(session: Session, tool: str) -> ToolCall | None:
    """The newest call of the tool that ran and gave a result, whatever its arguments; nearest first as above."""
    ran = _of_chats().filter(served=Served.LIVE.value)
    done = ran.filter(tool=tool, state=CallState.DONE.value)
    return _nearest(session, done)


class KnownTool(NamedTuple):
    name: str
    description: str
    consequential: bool


def tools_of(session: Session) -> list[KnownTool]:
    """The tools that the session's next turn can call, by name."""
    version = session.version
    if session.follows == Session.Follows.PUBLISHED:
        version = session.agent.published
    known = session.agent.tools.all() if version is None else bridge.agent_spec(version).tools
    found = [KnownTool(tool.name, tool.description, tool.consequential) for tool in known]
    return sorted(found)


def mocks_of(session: Session) -> list[ToolMock]:
    """The mocks of the tree that the session belongs to."""
    return list(ToolMock.objects.filter(session=session.root_id or session.pk))


def save_mock(
    session: Session, tool: str, *, data: Any = None, failure: str = "", by: str = ""
) -> ToolMock:
    """What the tool answers from the next turn on, in all branches of the tree. Raises MockRefusedError."""
    if failure and failure not in list(ToolErrorKind):
        raise MockRefusedError(
            _("There is no failure of the kind “%(kind)s”. Choose one of: %(kinds)s.")
            % {"kind": failure, "kinds": ", ".join(ToolErrorKind)}
        )
    kept = None if failure else _sound(tool, data)
    with transaction.atomic():
        row, _made = ToolMock.objects.update_or_create(
            session_id=session.root_id or session.pk,
            tool=tool,
            defaults={"data": kept, "failure": failure, "updated_by": by[:150]},
        )
    return row


def remove_mock(session: Session, tool: str) -> bool:
    """False where there was none."""
    gone, _kinds = ToolMock.objects.filter(
        session=session.root_id or session.pk, tool=tool
    ).delete()
    return gone > 0


def _sound(tool: str, data: Any) -> Any:
    try:
        return checked(tool, ToolResult(data=data)).data
    except ToolFailure as failure:
        raise MockRefusedError(
            _("This cannot be a result: %(why)s.") % {"why": failure.error.detail}
        ) from failure


def _mock(row: ToolMock) -> Mock:
    return Mock(data=row.data, failure=ToolErrorKind(row.failure) if row.failure else None)


def _recorded() -> Any:
    """Calls that tools answered, and repetitions of such calls."""
    repeated = Q(served=Served.RECORDED.value) & ~Q(served_from="")
    return _of_chats().filter(Q(served=Served.LIVE.value) | repeated, state__in=_ENDED)


def _of_chats() -> Any:
    """What the studio played by itself is no record."""
    return ToolCall.objects.filter(turn__session__purpose=Session.Purpose.CHAT)


def _nearest(session: Session, calls: Any) -> ToolCall | None:
    of_agent = Q(turn__session__agent=session.agent_id)
    places = [Q(turn__in=session.line.turns.values("pk"))]
    if session.customer_id is not None:
        places.append(of_agent & Q(turn__session__customer=session.customer_id))
    places.append(of_agent)
    for place in places:
        row: ToolCall | None = (
            calls.filter(place)
            .order_by("-pk")
            .select_related("turn")
            .defer("turn__checkpoint")
            .first()
        )
        if row is not None:
            return row
    return None


def _record(row: ToolCall) -> Record:
    place = row.served_from or f"{row.turn.session_id}/{row.turn.number}/{row.uid}"
    call = bridge.read_call(row)
    return Record(place=place, result=call.result, error=call.error)
