"""`/tool-instances`: made of templates, configured with secrets nobody reads, upgraded, deleted."""

from collections.abc import Callable
from typing import Any

import pytest

from studio.models import Tool, ToolEnvironment, ToolInstance
from studio.operations.instance_versions import settle
from studio.secrets import fingerprint
from tests.studio.api.calling import Caller, is_problem
from tests.studio.factories import make_agent, make_guideline
from tests.studio.tool_packages import built, make_instance, make_version

pytestmark = pytest.mark.django_db

USER = "api_key: str\ncity: str = 'Vienna'\nlimit: int = Field(default=3, le=9)"
SECRET = "sk-very-secret-0815"


@pytest.fixture
def template() -> int:
    return make_version("Weather", user=USER).template_id


def make(caller: Caller, template: int, **body: Any) -> Any:
    usual = {"name": "weather", "config": {"api_key": SECRET, "limit": 5}}
    return caller.post(f"/tool-templates/{template}/instances", usual | body)


def test_an_instance_is_made_and_its_environment_queued(
    admin: Caller, template: int, django_capture_on_commit_callbacks: Any
) -> None:
    with django_capture_on_commit_callbacks() as queued:
        response = make(admin, template)
    assert response.status_code == 202, response.content
    answer = response.json()
    assert (answer["name"], answer["tool"], answer["state"]) == ("weather", "weather", "QUEUED")
    assert (answer["log"], answer["error"], answer["upgrade"]) == ("", "", None)
    assert (answer["template"], answer["template_name"], answer["version"]) == (
        template,
        "Weather",
        1,
    )
    assert len(queued) == 1
    assert admin.get(f"/tool-instances/{answer['id']}").json() == answer
    tool = admin.get("/tools/weather").json()
    assert [parameter["name"] for parameter in tool["parameters"]] == ["query"]


def test_its_tool_says_what_it_is_and_why_it_cannot_run_yet(
    admin: Caller, template: int, agent: Any
) -> None:
    made = make(admin, template).json()
    admin.put("/agents/depot/tools/weather")

    def said() -> tuple[bool, str]:
        tool = admin.get("/tools/weather").json()
        assert (tool["kind"], tool["instance"]) == ("template", made["id"])
        of_agent = {t["name"]: t for t in admin.get("/agents/depot/tools").json()["items"]}
        assert of_agent["weather"] == tool
        return tool["available"], tool["unavailable"]

    assert said() == (False, "Its environment is being built.")
    ToolEnvironment.objects.update(state="failed", error="There is no package 'x'.")
    assert said() == (False, "Its environment could not be built: There is no package 'x'.")
    ToolEnvironment.objects.update(state="stopped", error="")
    assert said() == (False, "Building its environment was stopped.")
    built(ToolEnvironment.objects.get())
    assert said() == (True, "")
    assert admin.get("/tools/find_parcel").json()["instance"] is None


def test_secrets_are_never_answered(admin: Caller, template: int) -> None:
    made = make(admin, template, secret=["city"], config={"api_key": SECRET, "city": "Area 51"})
    path = f"/tool-instances/{made.json()['id']}"
    changed = admin.patch(path, {"config": {"limit": 7}})
    answers = [
        made,
        admin.get(path),
        admin.get("/tool-instances"),
        changed,
        admin.get("/tools/weather"),
    ]
    for answer in answers:
        assert SECRET.encode() not in answer.content
        assert b"Area 51" not in answer.content
    answer = changed.json()
    assert answer["config"] == {"limit": 7}
    assert set(answer["secrets"]) == {"api_key", "city"}
    key = answer["secrets"]["api_key"]
    assert (key["set_by"], key["fingerprint"]) == ("admin", fingerprint(SECRET))
    assert key["set_at"] is not None


def test_wrong_values_are_named_each_with_the_reason(admin: Caller, template: int) -> None:
    problem = is_problem(make(admin, template, config={"limit": "5", "x": 1}), 422)
    assert {error["field"]: error["message"] for error in problem["errors"]} == {
        "config.api_key": "This is required.",
        "config.limit": "It must be a whole number.",
        "config.x": "There is no such parameter.",
    }
    assert not Tool.objects.exists()


@pytest.mark.parametrize("name", ["", "upload", "Wetter!", "w" * 65, "weather"])
def test_a_name_that_cannot_be_is_refused(admin: Caller, template: int, name: str) -> None:
    make(admin, template)
    problem = is_problem(make(admin, template, name=name), 422)
    assert [error["field"] for error in problem["errors"]] == ["name"]
    assert ToolInstance.objects.count() == 1


def test_an_instance_may_be_of_an_older_version(admin: Caller, template: int) -> None:
    make_version("Weather", user=USER, description="Better.")
    assert make(admin, template, name="new").json()["version"] == 2
    assert make(admin, template, name="old", version=1).json()["version"] == 1
    is_problem(make(admin, template, name="none", version=9), 404)
    is_problem(make(admin, 12345), 404)


def test_a_failed_build_says_why_and_is_started_again(admin: Caller, template: int) -> None:
    path = f"/tool-instances/{make(admin, template).json()['id']}"
    ToolEnvironment.objects.update(
        state="failed", error="There is no package 'x'.", log="Resolving", stage="Resolving"
    )
    answer = admin.get(path).json()
    assert (answer["state"], answer["error"]) == ("FAILED", "There is no package 'x'.")
    assert (answer["log"], answer["stage"]) == ("Resolving", "Resolving")
    response = admin.post(f"{path}/build")
    assert (response.status_code, response.json()["state"]) == (202, "QUEUED")
    built(ToolEnvironment.objects.get())
    assert admin.post(f"{path}/build").json()["state"] == "READY"


def test_instances_are_listed_with_a_constant_number_of_queries(
    admin: Caller, template: int, django_assert_num_queries: Any
) -> None:
    for name in ("b", "a", "c"):
        make(admin, template, name=name)
    ToolEnvironment.objects.update(log="long " * 99)
    other = make_instance(name="d").template_id
    with django_assert_num_queries(4):  # token, roles; rows, count
        listed = admin.get("/tool-instances").json()
    shown = [(item["name"], item["log"]) for item in listed["items"]]
    assert shown == [("a", ""), ("b", ""), ("c", ""), ("d", "")]
    assert admin.get(f"/tool-instances?template={other}").json()["count"] == 1


def test_a_change_that_does_not_fit_is_refused(admin: Caller, template: int) -> None:
    path = f"/tool-instances/{make(admin, template).json()['id']}"
    problem = is_problem(admin.patch(path, {"config": {"api_key": None}}), 422)
    assert [error["field"] for error in problem["errors"]] == ["config.api_key"]
    is_problem(admin.patch(path, {"configuration": {}}), 422)
    is_problem(admin.patch(path, {"config": []}), 422)


def test_an_upgrade_waits_for_its_environment(admin: Caller, template: int) -> None:
    path = f"/tool-instances/{make(admin, template).json()['id']}"
    built(ToolEnvironment.objects.get())
    make_version("Weather", user=USER + "\nregion: str", requirements="pydantic\nrequests\n")
    problem = is_problem(admin.post(f"{path}/upgrade", {"version": 2}), 422)
    assert [error["field"] for error in problem["errors"]] == ["config.region"]
    is_problem(admin.post(f"{path}/upgrade", {"version": 3}), 404)
    is_problem(admin.post(f"{path}/upgrade", {"version": 1}), 422)
    response = admin.post(f"{path}/upgrade", {"version": 2, "config": {"region": "EU"}})
    assert response.status_code == 202
    answer = response.json()
    assert (answer["version"], answer["state"]) == (1, "READY")
    assert (answer["upgrade"]["version"], answer["upgrade"]["state"]) == (2, "QUEUED")
    cancelled = admin.delete(f"{path}/upgrade").json()
    assert cancelled["upgrade"] is None
    admin.post(f"{path}/upgrade", {"version": 2, "config": {"region": "EU"}})
    row = ToolInstance.objects.get()
    settle(built(row.next_environment))
    answer = admin.get(path).json()
    assert (answer["version"], answer["upgrade"]) == (2, None)
    assert answer["config"] == {"limit": 5, "region": "EU"}


def test_an_instance_is_deleted_unless_somebody_uses_it(admin: Caller, template: int) -> None:
    answer = make(admin, template).json()
    path = f"/tool-instances/{answer['id']}"
    agent = make_agent(slug="depot")
    guideline = make_guideline(agent, uid="rain", tools=[Tool.objects.get(name="weather")])
    problem = is_problem(admin.delete(path), 409)
    assert problem["guidelines"] == ["rain"]
    guideline.delete()
    assert admin.delete(path).status_code == 204
    is_problem(admin.get(path), 404)
    is_problem(admin.get("/tools/weather"), 404)


def test_an_author_reads_and_changes_nothing(
    admin: Caller, template: int, caller_as: Callable[..., Caller]
) -> None:
    path = f"/tool-instances/{make(admin, template).json()['id']}"
    author = caller_as("author")
    assert author.get(path).status_code == 200
    for response in (
        make(author, template, name="mine"),
        author.patch(path, {"config": {}}),
        author.post(f"{path}/build"),
        author.post(f"{path}/upgrade", {"version": 1}),
        author.delete(f"{path}/upgrade"),
        author.delete(path),
    ):
        is_problem(response, 403)
    assert ToolInstance.objects.count() == 1
