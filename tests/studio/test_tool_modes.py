"""Tools live, recorded and mocked, through the worker's machinery: whose result it was stands in the record."""

from collections.abc import Callable
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from engine.kit import Models
from engine.testing import Expected, ScriptedModel, ScriptedTools, infers, matches, replies, said
from studio.audit import audit
from studio.bridge import part_key
from studio.models import Session, ToolCall, ToolMock, Turn
from studio.operations import running
from studio.operations.branches import branch_from
from studio.operations.sessions import SessionError, change_session, open_session
from studio.operations.tool_modes import (
    MockRefusedError,
    last_real_result,
    recorded_outcome,
    remove_mock,
    save_mock,
)
from studio.operations.turns import run_turn, send_message
from tests.studio.factories import (
    make_agent,
    make_customer,
    make_guideline,
    make_session,
    make_tool,
    make_turn,
    make_user,
)

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("unwatched")]

Functions = Callable[..., ScriptedTools]


@pytest.fixture
def session() -> Session:
    agent = make_agent()
    tool = make_tool(agent, name="find_parcel")
    make_guideline(agent, condition="the customer asks for a parcel", tools=[tool])
    return make_session(agent=agent)


@pytest.fixture
def tools(monkeypatch: pytest.MonkeyPatch) -> ScriptedTools:
    """What runs where tools run; `functions` may be changed."""
    scripted = ScriptedTools({"find_parcel": lambda given, _context: {"in": "Lyon", **given}})
    monkeypatch.setattr(running, "tools_for", lambda _tools: scripted)
    return scripted


@pytest.fixture
def ask(monkeypatch: pytest.MonkeyPatch) -> Callable[..., ToolCall]:
    """`ask(session, "P-7")`: a turn in which the parcel is looked for; gives its call."""

    def play(session: Session, number: str = "P-7") -> ToolCall:
        script: list[Expected] = [
            matches("G1"),
            infers("find_parcel", {"number": said(number)}),
            replies("Well."),
        ]
        model = ScriptedModel(*script)
        monkeypatch.setattr(running, "models_for", lambda _session: Models.same(model))
        turn = send_message(session, text=f"Where is {number}?", enqueue=False)
        assert turn is not None
        run_turn(turn.pk)
        turn.refresh_from_db()
        assert turn.state == "FINISHED", turn.error
        return turn.calls.get()

    return play


Ask = Callable[..., ToolCall]


def in_mode(session: Session, mode: str) -> Session:
    return change_session(session, tool_mode=mode)


def test_live_is_what_a_session_begins_with_and_the_record_says_live(
    session: Session, tools: ScriptedTools, ask: Ask
) -> None:
    call = ask(session)

    assert call.served == "live"
    assert call.served_from == ""
    assert call.turn.tool_mode == "live"
    assert tools.called == [("find_parcel", {"number": "P-7"})]


def test_recorded_repeats_the_call_of_this_session_and_names_it(
    session: Session, tools: ScriptedTools, ask: Ask
) -> None:
    first = ask(session)
    in_mode(session, "recorded")

    second = ask(session)

    assert len(tools.called) == 1
    assert second.result == first.result
    assert second.served == "recorded"
    shown = audit(second.turn)
    assert shown["tool_mode"] == "recorded"
    assert shown["calls"][0]["served_from"] == {
        "session": session.pk,
        "turn": 1,
        "call": first.uid,
    }


def test_other_arguments_have_no_record_and_the_turn_says_what_to_do(
    session: Session, tools: ScriptedTools, ask: Ask
) -> None:
    ask(session)
    in_mode(session, "recorded")

    call = ask(session, "P-8")

    assert len(tools.called) == 1
    assert call.state == "failed"
    assert call.error["kind"] == "unavailable"
    assert "run it live once, or mock it" in call.error["detail"]


def test_what_was_missing_is_no_record_once_it_ran_live(
    session: Session, tools: ScriptedTools, ask: Ask
) -> None:
    ask(in_mode(session, "recorded"))
    live = ask(in_mode(session, "live"))

    call = ask(in_mode(session, "recorded"))

    assert call.state == "done"
    assert call.served_from == f"{session.pk}/2/{live.uid}"
    assert len(tools.called) == 1


def test_a_recorded_failure_fails_again(session: Session, tools: ScriptedTools, ask: Ask) -> None:
    def fail(*_given: Any) -> None:
        raise RuntimeError("down")

    tools.functions["find_parcel"] = fail
    ask(session)

    call = ask(in_mode(session, "recorded"))

    assert len(tools.called) == 1
    assert (call.state, call.error["kind"], call.served) == ("failed", "exception", "recorded")


def kept(session: Session, place: str, **arguments: Any) -> ToolCall:
    """A call of `find_parcel` that ran in the next turn of the session, with `place` as its result."""
    turn = make_turn(session)
    return ToolCall.objects.create(
        turn=turn,
        uid=f"c{turn.pk}",
        tool="find_parcel",
        arguments=arguments,
        arguments_key=part_key(
            "{" + ",".join(f'"{k}":"{v}"' for k, v in sorted(arguments.items())) + "}"
        ),
        state="done",
        result={"data": place, "metadata": {}},
        started_at=timezone.now(),
    )


def found(session: Session) -> Any:
    record = recorded_outcome(session, "find_parcel", {"number": "P-7"})
    return record.result["data"] if record is not None and record.result else None


def test_the_nearest_record_counts_and_of_those_the_newest(session: Session) -> None:
    agent, maya = session.agent, make_customer()
    session = change_session(session, customer=maya)
    other_agent = make_session(agent=make_agent())
    kept(other_agent, "of another agent", number="P-7")
    assert found(session) is None

    kept(make_session(agent=agent, customer=make_customer()), "of the agent", number="P-7")
    assert found(session) == "of the agent"

    of_maya = make_session(agent=agent, customer=maya)
    kept(of_maya, "of the customer, older", number="P-7")
    kept(of_maya, "of the customer", number="P-7")
    kept(of_maya, "of other arguments", number="P-9")
    assert found(session) == "of the customer"

    kept(session, "of the session", number="P-7")
    kept(of_maya, "of the customer, newer", number="P-7")
    assert found(session) == "of the session"


def test_a_branch_has_the_records_of_its_line_and_its_mode(session: Session) -> None:
    kept(session, "before", number="P-7")
    in_mode(session, "recorded")

    branch = branch_from(session, 1)
    kept(session, "beside", number="P-7")

    assert branch.tool_mode == "recorded"
    assert found(branch) == "before"


def test_a_record_is_found_by_a_handful_of_index_look_ups(session: Session) -> None:
    change_session(session, customer=make_customer())
    for _ in range(20):
        kept(make_session(agent=session.agent), "there", number="P-7")

    with CaptureQueriesContext(
        connection,
    ) as queries:
        assert found(session) == "there"

    assert len(queries) == 3


def test_mocked_tools_answer_what_was_written_and_run_nothing(
    session: Session, tools: ScriptedTools, ask: Ask
) -> None:
    save_mock(session, "find_parcel", data={"in": "Oslo"}, by="kim")

    call = ask(in_mode(session, "mock"))

    assert tools.called == []
    assert call.result == {"data": {"in": "Oslo"}, "metadata": {}}
    assert (call.served, call.turn.tool_mode) == ("mock", "mock")


def test_a_mocked_failure_is_what_the_agent_meets(
    session: Session, tools: ScriptedTools, ask: Ask
) -> None:
    save_mock(session, "find_parcel", failure="timeout")

    call = ask(in_mode(session, "mock"))

    assert tools.called == []
    assert (call.state, call.error["kind"]) == ("failed", "timeout")


def test_without_a_mock_a_mocked_tool_is_unavailable(
    session: Session, tools: ScriptedTools, ask: Ask
) -> None:
    call = ask(in_mode(session, "mock"))

    assert tools.called == []
    assert call.error["kind"] == "unavailable"
    assert "has no mock in this session" in call.error["detail"]


def test_mocks_belong_to_the_whole_tree_of_branches(
    session: Session, tools: ScriptedTools, ask: Ask
) -> None:
    make_turn(session)
    branch = in_mode(branch_from(session, 1), "mock")
    save_mock(branch, "find_parcel", data="Oslo")

    assert ToolMock.objects.get().session == session
    assert ask(branch).result["data"] == "Oslo"  # type: ignore[index]


def test_mocked_results_are_no_records(session: Session, tools: ScriptedTools, ask: Ask) -> None:
    save_mock(session, "find_parcel", data="Oslo")
    ask(in_mode(session, "mock"))

    assert found(session) is None
    assert last_real_result(session, "find_parcel") is None


def test_a_turn_that_goes_on_keeps_the_mode_it_began_with(
    session: Session, tools: ScriptedTools, ask: Ask, monkeypatch: pytest.MonkeyPatch
) -> None:
    in_mode(session, "mock")
    turn = send_message(session, text="Where is P-7?", enqueue=False)
    assert turn is not None
    Turn.objects.filter(pk=turn.pk).update(tool_mode="mock")
    in_mode(session, "live")
    model = ScriptedModel(
        matches("G1"), infers("find_parcel", {"number": said("P-7")}), replies("Well.")
    )
    monkeypatch.setattr(running, "models_for", lambda _session: Models.same(model))

    run_turn(turn.pk)

    assert tools.called == []
    assert turn.calls.get().served == "mock"


def test_saving_a_mock_again_replaces_it_and_removing_it_twice_is_fine(session: Session) -> None:
    save_mock(session, "find_parcel", failure="timeout")
    save_mock(session, "find_parcel", data=None, by="kim")

    row = ToolMock.objects.get()
    assert (row.data, row.failure, row.updated_by) == (None, "", "kim")
    assert remove_mock(session, "find_parcel")
    assert not remove_mock(session, "find_parcel")


@pytest.mark.parametrize("data", ["x" * 2_000_000, float("nan")])
def test_what_no_tool_could_return_is_no_mock(session: Session, data: Any) -> None:
    with pytest.raises(MockRefusedError, match="cannot be a result"):
        save_mock(session, "find_parcel", data=data)


def test_an_unknown_failure_is_refused_with_those_there_are(session: Session) -> None:
    with pytest.raises(MockRefusedError, match="timeout"):
        save_mock(session, "find_parcel", failure="sulks")


def test_an_unknown_mode_is_refused(session: Session) -> None:
    with pytest.raises(SessionError, match="live"):
        in_mode(session, "sometimes")
    with pytest.raises(SessionError):
        open_session(agent=session.agent, tool_mode="sometimes")


def test_the_page_marks_what_did_not_run_and_leads_to_where_it_came_from(
    session: Session, tools: ScriptedTools, ask: Ask
) -> None:
    first = ask(session)
    ask(in_mode(session, "recorded"))
    client = Client()
    client.force_login(make_user("qa"))

    html = client.get(f"/sessions/{session.pk}/?turn=2").content.decode()

    assert f"recorded, from #{session.pk} turn 1" in html
    assert f'href="/sessions/{session.pk}/turns/1/#call-{first.uid}"' in html
    chat = html.split('id="turn-2"')[1]
    assert '<b>find_parcel</b> <span class="label">recorded</span>' in chat
    assert "ran <b>" not in chat.split("</section>")[0]
    text = client.get(f"/sessions/{session.pk}/turns/2/record.md").content.decode()
    assert "turn 1" in text


def test_a_tool_that_has_nothing_to_answer_says_on_the_page_what_to_do(
    session: Session, tools: ScriptedTools, ask: Ask
) -> None:
    ask(in_mode(session, "mock"))
    client = Client()
    client.force_login(make_user("qa"))

    html = client.get(f"/sessions/{session.pk}/").content.decode()

    assert "has no mock in this session: write one" in html
    assert f'href="/sessions/{session.pk}/mocks/"' in html
