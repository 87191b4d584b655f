"""Replays and variants over the API."""

from collections.abc import Callable
from typing import Any

import pytest

from engine.testing import matches, replies
from tests.studio.api.calling import Caller, is_problem

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("unwatched")]


@pytest.fixture
def unwatched(monkeypatch: pytest.MonkeyPatch) -> None:
    from studio.operations import running, watching

    watch = watching.Watch()
    monkeypatch.setattr(running, "watch", lambda: watch)


@pytest.fixture
def depot(monkeypatch: pytest.MonkeyPatch, db: None) -> Any:
    from tests.studio.replayed_depot import Depot

    return Depot(monkeypatch)


def silent(depot: Any, session: Any) -> Any:
    from tests.studio.replayed_depot import HELLO, replayed

    depot.script(*HELLO, matches(), replies("I cannot say."))
    return replayed(session, model="live")


def test_a_session_is_replayed_and_read(admin: Caller, depot: Any) -> None:
    from studio.models import Replay
    from tests.studio.replayed_depot import play

    session = depot.parcels()
    answer = admin.post(f"/sessions/{session.pk}/replays", {"against": "published"})
    assert answer.status_code == 202
    made = answer.json()
    assert (made["state"], made["total"], made["done"], made["verdicts"]) == ("queued", 2, 0, {})
    assert (made["against"], made["version"], made["model"]) == ("published", 1, "recorded")

    play(Replay.objects.get(pk=made["id"]))

    read = admin.get(f"/replays/{made['id']}").json()
    assert (read["state"], read["done"], read["verdicts"]) == ("finished", 2, {"same": 2})
    assert [(t["session"], t["number"], t["verdict"]) for t in read["turns"]] == [
        (session.pk, 1, "same"), (session.pk, 2, "same"),
    ]  # fmt: skip
    listed = admin.get(f"/sessions/{session.pk}/replays").json()
    assert (listed["count"], listed["items"][0]["id"]) == (1, made["id"])
    assert admin.get("/replays?agent=depot").json()["count"] == 1
    assert admin.get("/replays?agent=other").json()["count"] == 0


def test_differences_come_with_both_sides_and_a_sentence(admin: Caller, depot: Any) -> None:
    session = depot.parcels()
    replay = silent(depot, session)
    read = admin.get(f"/replays/{replay.pk}?verdict=changed&limit=1").json()
    assert read["count"] == 1
    (turn,) = read["turns"]
    assert [d["kind"] for d in turn["differences"]] == ["guideline", "decision", "reply"]
    first, second, _third = turn["differences"]
    assert (first["guideline"], first["before"]["state"], first["after"]["state"]) == (
        "where", "matched", "not_matched",
    )  # fmt: skip
    assert first["sentence"] == "G1 “the customer asks where a parcel is” does not match any more."
    assert first["before_because"] == "They ask where it is."
    assert (second["tool"], second["arguments"], second["after"]) == (
        "find_parcel", {"number": "P-7"}, None,
    )  # fmt: skip
    assert admin.get(f"/replays/{replay.pk}?offset=1").json()["turns"] == [turn]


def test_several_sessions_are_replayed_together(admin: Caller, depot: Any) -> None:
    first, second = depot.parcels(), depot.parcels()
    body = {"sessions": [second.pk, first.pk], "model": "live", "cap": 500, "free_running": True}
    made = admin.post("/replays", body).json()
    assert (made["total"], made["cap"], made["free_running"]) == (4, 500, True)
    is_problem(admin.post("/replays", {"sessions": []}), 422)
    missing = is_problem(admin.post("/replays", {"sessions": [first.pk, 10**9]}), 422)
    assert "1000000000" in missing["detail"]


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"against": "77"}, "against"),
        ({"against": 77}, "against"),
        ({"model": "dreamt"}, "model"),
        ({"tools": "none"}, "tools"),
        ({"cap": -1}, "cap"),
        ({"connection": "nowhere"}, "connection"),
        ({"variant": 99}, "variant"),
        ({"agianst": "draft"}, "agianst"),
    ],
)
def test_what_is_wrong_is_named_by_field(
    admin: Caller, depot: Any, body: dict[str, Any], field: str
) -> None:
    session = depot.parcels()
    problem = is_problem(admin.post(f"/sessions/{session.pk}/replays", body), 422)
    assert [error["field"] for error in problem["errors"]] == [field]


def test_it_is_paused_gone_on_with_and_cancelled(admin: Caller, depot: Any) -> None:
    session = depot.parcels()
    made = admin.post(f"/sessions/{session.pk}/replays", {}).json()
    path = f"/replays/{made['id']}"
    assert admin.post(f"{path}/pause").json()["paused"] is True
    is_problem(admin.post(f"{path}/pause"), 409)
    resumed = admin.post(f"{path}/resume", {"cap": 7})
    assert (resumed.status_code, resumed.json()["cap"]) == (202, 7)
    assert admin.post(f"{path}/cancel").json()["state"] == "stopped"
    is_problem(admin.post(f"{path}/cancel"), 409)
    assert admin.post(f"{path}/resume").json()["state"] == "queued"


def test_a_change_is_accepted(admin: Caller, depot: Any) -> None:
    session = depot.parcels()
    replay = silent(depot, session)
    path = f"/replays/{replay.pk}/turns/{session.pk}/2/accept"
    assert "reason" in is_problem(admin.post(path, {"reason": " "}), 422)["detail"]
    wrong = is_problem(admin.post(path, {"reason": "So.", "differences": [9]}), 422)
    assert wrong["errors"][0]["field"] == "differences"
    accepted = admin.post(path, {"reason": "By phone.", "differences": [0]}).json()
    assert [(a["reason"], a["accepted_by"]) for a in accepted] == [("By phone.", "admin")]
    assert accepted[0]["expectation"].endswith("must not match in turn 2")
    admin.post(path, {"reason": "All of it."})
    assert admin.get(f"/replays/{replay.pk}").json()["verdicts"] == {"accepted": 1, "same": 1}
    is_problem(
        admin.post(f"/replays/{replay.pk}/turns/{session.pk}/9/accept", {"reason": "x"}), 404
    )


def test_to_a_stranger_no_replay_is_there(caller_as: Callable[..., Caller], depot: Any) -> None:
    session = depot.parcels()
    replay = silent(depot, session)
    stranger = caller_as()
    is_problem(stranger.get(f"/replays/{replay.pk}"), 404)
    is_problem(stranger.post(f"/sessions/{session.pk}/replays", {}), 404)


def test_variants_are_written_read_changed_and_deleted(admin: Caller, depot: Any) -> None:
    session = depot.parcels()
    call = session.turns.get(number=2).calls.get().uid
    path = f"/sessions/{session.pk}/variants"
    body = {"edits": [{"call": call, "kind": "result", "data": {"place": "Oslo"}}]}
    answer = admin.post(path, body)
    assert answer.status_code == 201
    made = answer.json()
    assert (made["title"], made["created_by"]) == ("find_parcel: result", "admin")
    assert made["edits"] == [
        {"turn": 2, "call": call, "tool": "find_parcel", "kind": "result",
         "data": {"place": "Oslo"}},
    ]  # fmt: skip
    assert admin.get(path).json() == {"items": [made], "count": 1}
    one = f"{path}/{made['id']}"
    changed = admin.patch(one, {"title": "Late", "edits": [{"call": call, "kind": "timeout"}]})
    assert (changed.json()["title"], changed.json()["edits"][0]["kind"]) == ("Late", "timeout")
    assert admin.patch(one, {"title": "Later"}).json()["edits"][0]["kind"] == "timeout"
    replayed = admin.post(f"/sessions/{session.pk}/replays", {"variant": made["id"]}).json()
    assert replayed["variant"] == made["id"]
    assert admin.delete(one).status_code == 204
    is_problem(admin.get(one), 404)


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"edits": []}, "edits"),
        ({"edits": [{"call": "none", "kind": "empty"}]}, "edits.0.call"),
        ({"edits": [{"call": "CALL", "kind": "odd"}]}, "edits.0.kind"),
        ({"edits": [{"call": "CALL", "kind": "empty"}], "title": "x" * 201}, "title"),
    ],
)
def test_a_wrong_edit_is_named_by_its_place(
    admin: Caller, depot: Any, body: dict[str, Any], field: str
) -> None:
    session = depot.parcels()
    call = session.turns.get(number=2).calls.get().uid
    for edit in body["edits"]:
        edit["call"] = edit["call"].replace("CALL", call)
    problem = is_problem(admin.post(f"/sessions/{session.pk}/variants", body), 422)
    assert [error["field"] for error in problem["errors"]] == [field]


def test_a_variant_keeps_a_title(admin: Caller, depot: Any) -> None:
    session = depot.parcels()
    call = session.turns.get(number=2).calls.get().uid
    path = f"/sessions/{session.pk}/variants"
    made = admin.post(path, {"edits": [{"call": call, "kind": "empty"}], "title": "Empty"}).json()
    problem = is_problem(admin.patch(f"{path}/{made['id']}", {"title": " "}), 422)
    assert problem["errors"][0]["field"] == "title"
