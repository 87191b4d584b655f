"""`tool_mode` of sessions, and where the results of calls came from in the audit."""

from django.utils import timezone

from studio.models import Session, ToolCall
from tests.studio.api.calling import Caller, is_problem
from tests.studio.factories import make_turn


def test_a_session_says_where_its_results_come_from_and_is_changed(
    admin: Caller, session: Session
) -> None:
    path = f"/sessions/{session.pk}"
    assert admin.get(path).json()["tool_mode"] == "live"

    for mode in ("recorded", "mock", "live"):
        assert admin.patch(path, {"tool_mode": mode}).json()["tool_mode"] == mode

    assert admin.patch(path, {"title": "Other"}).json()["tool_mode"] == "live"
    is_problem(admin.patch(path, {"tool_mode": "sometimes"}), 422)


def test_a_session_is_opened_with_a_mode(admin: Caller, session: Session) -> None:
    slug = session.agent.slug
    opened = admin.post("/sessions", {"agent": slug, "tool_mode": "recorded"}).json()

    assert opened["tool_mode"] == "recorded"
    is_problem(admin.post("/sessions", {"agent": slug, "tool_mode": "x"}), 422)


def test_the_audit_names_the_call_that_was_repeated(admin: Caller, session: Session) -> None:
    turn = make_turn(session, tool_mode="recorded")
    ToolCall.objects.create(
        turn=turn,
        uid="c2",
        tool="find_parcel",
        state="done",
        served="recorded",
        served_from="12/3/c1",
        started_at=timezone.now(),
    )

    audit = admin.get(f"/sessions/{session.pk}/turns/{turn.number}").json()

    assert audit["tool_mode"] == "recorded"
    assert audit["calls"][0]["served"] == "recorded"
    assert audit["calls"][0]["served_from"] == {"session": 12, "turn": 3, "call": "c1"}
