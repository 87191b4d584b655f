"""Sessions as documents through the API: exported by GET, imported by POST."""

import json
from collections.abc import Callable
from typing import Any

import pytest
from django.test.client import BOUNDARY, MULTIPART_CONTENT, encode_multipart

from tests.studio.api.calling import Caller, is_problem

pytestmark = pytest.mark.django_db


def send(caller: Caller, text: str) -> Any:
    from django.core.files.uploadedfile import SimpleUploadedFile

    file = SimpleUploadedFile("s.json", text.encode())
    return caller.client.generic(
        "POST",
        "/api/v1/sessions/import",
        encode_multipart(BOUNDARY, {"file": file}),
        MULTIPART_CONTENT,
        headers=caller.headers,
    )


@pytest.fixture
def turn(session: Any) -> Any:
    from tests.studio.factories import make_turn

    return make_turn(session, text="Write to ada@example.org, parcel 7")


def test_what_is_exported_is_imported(
    caller_as: Callable[..., Caller], session: Any, turn: Any
) -> None:
    qa = caller_as("qa")
    exported = qa.get(f"/sessions/{session.pk}/export")

    answer = send(qa, exported.content.decode())

    assert exported.headers["Content-Type"] == "application/json"
    assert answer.status_code == 201, answer.content
    made = answer.json()
    assert made["title"] == "First"
    assert made["branches"] == [made["id"]]
    assert (made["made_agent"], made["missing_tools"]) == (False, [])
    first, copied = (qa.get(f"/sessions/{pk}/turns/1").json() for pk in (session.pk, made["id"]))
    assert {**copied, "session": None} == {**first, "session": None}


def test_values_and_words_are_left_out(
    caller_as: Callable[..., Caller], session: Any, turn: Any
) -> None:
    path = f"/sessions/{session.pk}/export?leave_out=emails&word=parcel"

    text = caller_as("qa").get(path).content.decode()

    said = json.loads(text)["sessions"][0]["events"][0]["data"]["text"]
    assert said == "Write to «e-mail 1», «word 1» 7"


def test_it_is_refused_with_the_place_of_what_is_wrong(
    caller_as: Callable[..., Caller], session: Any, turn: Any
) -> None:
    qa = caller_as("qa")
    document = qa.get(f"/sessions/{session.pk}/export").json()
    document["sessions"][0]["turns"][0]["state"] = "RUNNING"

    problem = is_problem(send(qa, json.dumps(document)), 422)

    assert problem["errors"][0]["field"] == "sessions[0].turns[0].state"
    is_problem(qa.get(f"/sessions/{session.pk}/export?leave_out=all"), 422)
    is_problem(qa.get("/sessions/999999/export"), 404)


def test_a_running_turn_is_a_conflict(
    caller_as: Callable[..., Caller], session: Any, turn: Any
) -> None:
    type(turn).objects.update(state="RUNNING")

    problem = is_problem(caller_as("qa").get(f"/sessions/{session.pk}/export"), 409)

    assert "Turn 1 is still running" in problem["detail"]


def test_a_new_agent_takes_an_author(
    caller_as: Callable[..., Caller], session: Any, turn: Any
) -> None:
    document = caller_as("qa").get(f"/sessions/{session.pk}/export").json()
    document["agent"]["slug"] = "elsewhere"
    # A turn says by its version what the agent was; without one there is nothing to make it of.
    none = is_problem(send(caller_as("author"), json.dumps(document)), 422)

    assert none["errors"][0]["field"] == "agent.slug"
    is_problem(send(caller_as("qa"), json.dumps(document)), 403)
