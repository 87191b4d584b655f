"""Instances: their tools, their configuration with its secrets, their upgrades, and their end."""

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings
from django.db import connection
from django.utils import timezone

from engine import spec
from studio.bridge import compile_tool
from studio.models import Agent, Tool, ToolEnvironment, ToolInstance, ToolTemplateVersion
from studio.operations import instances
from studio.operations.agents import allow_tool, disallow_tool, publish, snapshot
from studio.operations.configuration import ConfigRefusedError
from studio.operations.instance_versions import settle, sweep_upgrades
from studio.operations.instances import (
    InstanceInUseError,
    NameRefusedError,
    cancel_upgrade,
    configure,
    create_instance,
    delete_instance,
    instance_state,
    retry_build,
    shown_config,
    upgrade,
)
from studio.operations.tools import overridden, save_tool, sync_function_tools
from studio.secrets import fingerprint
from tests.studio.factories import make_agent, make_guideline, make_tool
from tests.studio.tool_packages import both, built, make_instance, make_version

pytestmark = pytest.mark.django_db

USER = """api_key: str
city: str = "Vienna"
limit: int = Field(default=3, ge=1, le=9)
tags: Optional[list[str]] = None
"""
SECRET = "sk-very-secret-0815"
STATE = ToolEnvironment.State


def again(instance: ToolInstance) -> ToolInstance:
    """As it is stored."""
    return ToolInstance.objects.select_related("tool", "environment", "version").get(pk=instance.pk)


def make_keyed(**overrides: Any) -> ToolInstance:
    version = make_version(user=USER)
    return make_instance(version, **({"config": {"api_key": SECRET}} | overrides))


def refused(**overrides: Any) -> dict[str, str]:
    with pytest.raises(ConfigRefusedError) as error:
        make_keyed(**overrides)
    return error.value.errors


# --- Its tool


def test_an_instance_is_a_tool_of_the_shed_with_the_parameters_of_its_template() -> None:
    version = make_version(
        "Weather",
        description="Tells the weather.",
        tool="""city: str = Field(description="Where")
days: int = Field(default=3, ge=1, description="How many")
unit: Literal["C", "F"] = "C"
note: Optional[str]
""",
    )
    instance = make_instance(version, name="weather", consequential=True)
    tool = compile_tool(instance.tool)
    assert (tool.name, tool.description) == ("weather", "Tells the weather.")
    assert (tool.consequential, tool.latency) == (True, spec.Latency.MEDIUM)
    city, days, unit, note = tool.parameters
    assert (city.name, city.required, city.description) == ("city", True, "Where")
    assert (days.required, days.default, days.schema["minimum"]) == (False, 3, 1)
    assert (unit.schema["enum"], unit.default) == (["C", "F"], "C")
    assert (note.required, note.default) == (False, None)
    assert (instance.tool.kind, instance.tool.origin) == (Tool.Kind.TEMPLATE, "Weather v1")
    assert (instance.created_by, instance.version) == ("dana", version)
    assert overridden(instance.tool) == set()


def test_words_of_a_name_are_joined() -> None:
    assert make_instance(name=" Weather  report ").tool.name == "Weather_report"


@pytest.mark.parametrize(
    "name", ["", "   ", "a" * 65, "wetter!", "naïve", "a/b", "a\x00", "upload", "Templates"]
)
def test_a_name_that_no_tool_can_have_is_refused(name: str) -> None:
    with pytest.raises(NameRefusedError):
        make_instance(name=name)
    assert not Tool.objects.exists()


def test_a_name_that_a_tool_has_is_refused_and_nothing_is_left_of_the_attempt() -> None:
    make_tool(name="weather")
    with pytest.raises(NameRefusedError, match="'weather' already"):
        make_instance(name="weather")
    assert not ToolInstance.objects.exists()
    assert not ToolEnvironment.objects.exists()


@pytest.mark.parametrize(
    ("annotation", "schema"),
    [
        ("Any", {"type": "string"}),
        ("list", {"type": "array", "items": {"type": "string"}}),
        ("Optional[Any]", {"anyOf": [{"type": "string"}, {"type": "null"}]}),
        ("bytes", {"type": "string"}),
        ("Unheard", {"type": "string"}),
        ("dict[str, Any]", {"type": "object", "additionalProperties": True}),
        (
            "list[list[Any]]",
            {"type": "array", "items": {"type": "array", "items": {"type": "string"}}},
        ),
    ],
)
def test_agents_give_text_where_a_template_does_not_say_what_it_takes(
    annotation: str, schema: dict[str, Any]
) -> None:
    instance = make_instance(make_version(tool=f"value: {annotation}"))
    (value,) = compile_tool(instance.tool).parameters
    assert value.schema == schema


def test_a_parameter_that_the_engine_cannot_fill_is_named_with_the_remedy() -> None:
    version = make_version()
    version.report["tool_parameters"][0]["schema"] = {"$ref": "#/$defs/Elsewhere"}
    with pytest.raises(ConfigRefusedError, match=r"'query'.*write the referenced schema"):
        make_instance(version)


def test_a_default_that_its_own_type_refuses_is_no_obstacle() -> None:
    instance = make_instance(make_version(tool="query: str = None"))
    (query,) = compile_tool(instance.tool).parameters
    assert (query.required, query.default) == (False, None)


def test_tools_of_uploaded_templates_are_not_what_the_code_lost() -> None:
    instance = make_instance()
    sync_function_tools()
    assert again(instance).tool.missing_since is None


def test_a_function_of_a_name_that_an_instance_has_leaves_the_instance_its_tool() -> None:
    instance = make_instance(name="calculator")
    report = sync_function_tools()
    assert report.taken == ["calculator"]
    assert "get_datetime" in report.created
    assert Tool.objects.get(name="calculator") == instance.tool


# --- Its environment


def test_the_environment_is_queued_and_shared_by_all_that_need_the_same(
    django_capture_on_commit_callbacks: Any,
) -> None:
    with django_capture_on_commit_callbacks() as queued:
        made = [make_instance(make_version(), ready=False) for _ in range(10)]
    assert len({instance.environment_id for instance in made}) == 1
    assert ToolEnvironment.objects.get().state == STATE.QUEUED
    assert len(queued) == 1


@pytest.mark.parametrize(
    ("state", "said"),
    [
        (STATE.QUEUED, "QUEUED"),
        (STATE.RUNNING, "BUILDING"),
        (STATE.FINISHED, "READY"),
        (STATE.FAILED, "FAILED"),
        (STATE.STOPPED, "FAILED"),
    ],
)
def test_the_state_is_that_of_the_environment(state: str, said: str) -> None:
    instance = make_instance()
    instance.environment.state = state
    assert instance_state(instance) == said


def test_a_failed_build_is_queued_again() -> None:
    instance = make_instance()
    ToolEnvironment.objects.update(state=STATE.FAILED, error="There is no such package.")
    retry_build(again(instance), by="dana")
    row = ToolEnvironment.objects.get()
    assert (row.state, row.error, row.started_by) == (STATE.QUEUED, "", "dana")


# --- Its configuration


def test_values_are_kept_encrypted() -> None:
    instance = make_keyed(config={"api_key": SECRET, "limit": 5, "tags": ["a", "b"]})
    assert again(instance).config == {"api_key": SECRET, "limit": 5, "tags": ["a", "b"]}
    with connection.cursor() as cursor:
        cursor.execute("SELECT * FROM studio_toolinstance")
        stored = str(cursor.fetchall())
    assert SECRET not in stored
    assert "limit" not in stored


def test_what_is_shown_of_a_secret_is_who_set_it_when_and_its_fingerprint() -> None:
    key, city, limit, tags = shown_config(make_keyed(config={"api_key": SECRET, "limit": 5}))
    assert (key.is_secret, key.is_set, key.value, key.set_by) == (True, True, None, "dana")
    assert key.fingerprint == fingerprint(SECRET)
    assert key.set_at is not None
    assert timezone.now() - key.set_at < timedelta(minutes=1)
    assert (city.is_secret, city.is_set, city.value) == (False, False, None)
    assert (limit.is_set, limit.value, limit.set_by) == (True, 5, "")
    assert (tags.field.name, tags.is_set) == ("tags", False)


def test_any_value_can_be_kept_secret() -> None:
    instance = make_keyed(config={"api_key": SECRET, "city": "Area 51"}, secret_names=["city"])
    shown = {each.field.name: each for each in shown_config(instance)}
    assert (shown["city"].is_secret, shown["city"].value) == (True, None)
    configure(instance, config={"city": "Groom Lake"}, by="eve")  # it stays one
    city = shown_config(again(instance))[1]
    assert (city.value, city.set_by, city.fingerprint) == (None, "eve", fingerprint("Groom Lake"))


@pytest.mark.parametrize(
    ("config", "errors"),
    [
        ({}, {"api_key": "This is required."}),
        ({"api_key": None}, {"api_key": "This is required."}),
        ({"api_key": 5}, {"api_key": "It must be text."}),
        ({"api_key": "k", "limit": "5"}, {"limit": "It must be a whole number."}),
        ({"api_key": "k", "limit": True}, {"limit": "It must be a whole number."}),
        ({"api_key": "k", "limit": 10}, {"limit": "It must be at most 9."}),
        ({"api_key": "k", "colour": "red"}, {"colour": "There is no such parameter."}),
        (
            {"limit": 0, "x": 1},
            {
                "api_key": "This is required.",
                "limit": "It must be at least 1.",
                "x": "There is no such parameter.",
            },
        ),
    ],
)
def test_values_that_do_not_fit_are_refused_each_with_the_reason(
    config: dict[str, Any], errors: dict[str, str]
) -> None:
    assert refused(config=config) == errors
    assert not Tool.objects.exists()


@pytest.mark.parametrize("constraint", [r'pattern=r"^\p{L}+$"', 'pattern="("'])
def test_a_constraint_that_only_pydantic_understands_is_left_to_the_tool(constraint: str) -> None:
    version = make_version(user=f"name: str = Field({constraint})")

    assert make_instance(version, config={"name": "Zoë"}).config == {"name": "Zoë"}


def test_a_refused_secret_is_not_cited() -> None:
    version = make_version(user='api_key: str = Field(pattern="^sk-[a-z]+$")\npin: Literal["1234"]')
    with pytest.raises(ConfigRefusedError) as error:
        make_instance(version, config={"api_key": "hunter2-hunter2", "pin": "9876"})
    assert "hunter2" not in str(error.value)
    assert set(error.value.errors) == {"api_key", "pin"}


def test_given_values_replace_those_there_are_null_removes_and_the_rest_stays() -> None:
    instance = make_keyed(config={"api_key": SECRET, "city": "Graz", "limit": 5})
    configure(instance, config={"city": "Linz", "limit": None}, by="eve")
    stored = again(instance)
    assert stored.config == {"api_key": SECRET, "city": "Linz"}
    assert stored.secrets["api_key"]["by"] == "dana"
    configure(instance, config={"api_key": "another"}, by="eve")
    assert again(instance).secrets["api_key"]["by"] == "eve"


@pytest.mark.parametrize(
    ("config", "wrong"),
    [({"api_key": None}, "api_key"), ({"limit": 99}, "limit"), ({"colour": None}, "colour")],
)
def test_a_change_that_does_not_fit_changes_nothing(config: dict[str, Any], wrong: str) -> None:
    instance = make_keyed(config={"api_key": SECRET, "limit": 5})
    with pytest.raises(ConfigRefusedError) as error:
        configure(instance, config={"city": "Linz", **config}, by="eve")
    assert set(error.value.errors) == {wrong}
    assert again(instance).config == {"api_key": SECRET, "limit": 5}


# --- Upgrades

NEXT = {"user": USER + "region: str\n", "requirements": "pydantic\nrequests\n"}


@pytest.fixture
def old() -> ToolInstance:
    """An instance of version 1 that an agent uses; version 2 needs a region and another environment."""
    version = make_version("Weather", user=USER)
    instance = make_instance(version, name="weather", config={"api_key": SECRET})
    make_version("Weather", tool="query: str\ndays: int = 3", **NEXT)
    agent = make_agent(slug="depot")
    allow_tool(agent, instance.tool)
    make_guideline(agent, tools=[instance.tool])
    return instance


def to_second(instance: ToolInstance, **config: Any) -> ToolInstance:
    version = instance.template.versions.get(number=2)
    return upgrade(instance, version, config=config or {"region": "EU"}, by="eve")


def test_it_runs_as_it_is_until_the_new_environment_is_built(old: ToolInstance) -> None:
    waiting = to_second(old)
    assert (waiting.version.number, waiting.config) == (1, {"api_key": SECRET})
    assert waiting.next_version is not None
    assert waiting.next_version.number == 2
    assert instance_state(waiting) == "READY"
    assert [p["name"] for p in waiting.tool.parameters] == ["query"]
    settle(waiting.next_environment)  # not built yet
    assert again(old).version.number == 1


def test_it_becomes_the_new_version_by_itself_and_its_agents_see_it(old: ToolInstance) -> None:
    before = snapshot(Agent.objects.get())
    environment = built(to_second(old).next_environment)
    settle(environment)
    now = again(old)
    assert (now.version.number, now.environment, now.next_version) == (2, environment, None)
    assert now.config == {"api_key": SECRET, "region": "EU"}
    assert now.encrypted_next_config == ""
    assert [p["name"] for p in now.tool.parameters] == ["query", "days"]
    assert now.tool.origin == "Weather v2"
    assert snapshot(Agent.objects.get()).fingerprint != before.fingerprint
    stored = ToolInstance.objects.values().get()
    settle(environment)
    assert ToolInstance.objects.values().get() == stored


def test_an_upgrade_whose_worker_was_killed_before_it_happened_happens_later(
    old: ToolInstance,
) -> None:
    waiting = to_second(old)
    assert sweep_upgrades() == 0
    built(waiting.next_environment)
    assert sweep_upgrades() == 1
    assert again(old).version.number == 2
    assert sweep_upgrades() == 0


@pytest.mark.django_db(transaction=True)
def test_two_workers_that_settle_it_at_once_make_it_the_new_version_once() -> None:
    instance = make_instance(make_version("Weather", user=USER), config={"api_key": SECRET})
    make_version("Weather", tool="query: str\ndays: int = 3", **NEXT)
    environment = built(to_second(instance).next_environment)
    answers = both(*[lambda: settle(environment)] * 3)
    assert answers == [None] * 3
    now = again(instance)
    assert (now.version.number, now.next_version) == (2, None)
    assert now.config == {"api_key": SECRET, "region": "EU"}


def test_it_becomes_the_new_version_at_once_where_the_environment_is_there() -> None:
    version = make_version("Weather", user=USER)
    instance = make_instance(version, config={"api_key": SECRET})
    second = make_version("Weather", user=USER, description="Better.")
    now = upgrade(instance, second, config={}, by="eve")
    assert (now.version, now.next_version, now.tool.description) == (second, None, "Better.")
    assert now.secrets["api_key"]["by"] == "dana"


def test_what_the_new_version_needs_is_asked_for(old: ToolInstance) -> None:
    with pytest.raises(ConfigRefusedError) as error:
        to_second(old, city="Linz")
    assert error.value.errors == {"region": "This is required."}
    assert again(old).next_version is None


def test_a_failed_build_leaves_the_old_version_running_and_can_be_tried_again(
    old: ToolInstance,
) -> None:
    waiting = to_second(old)
    assert waiting.next_environment is not None
    ToolEnvironment.objects.filter(pk=waiting.next_environment_id).update(
        state=STATE.FAILED, error="There is no such package."
    )
    now = again(old)
    assert (now.version.number, instance_state(now)) == (1, "READY")
    assert now.next_environment is not None
    assert now.next_environment.error == "There is no such package."
    retry_build(now, by="eve")
    assert ToolEnvironment.objects.get(pk=now.next_environment_id).state == STATE.QUEUED
    assert ToolEnvironment.objects.get(pk=now.environment_id).state == STATE.FINISHED


def test_an_upgrade_that_is_cancelled_never_happens(
    old: ToolInstance, django_capture_on_commit_callbacks: Any
) -> None:
    environment = to_second(old).next_environment
    with django_capture_on_commit_callbacks(execute=True):
        cancel_upgrade(old)
    now = again(old)
    assert (now.next_version, now.next_environment, now.next_config) == (None, None, {})
    settle(built(make_instance().environment))
    assert again(old).version.number == 1
    assert environment is not None


def test_what_is_configured_meanwhile_stays_after_the_upgrade(old: ToolInstance) -> None:
    waiting = to_second(old, region="EU", city="Brno")
    configure(old, config={"api_key": "newer", "city": "Linz", "limit": 7}, by="fay")
    settle(built(waiting.next_environment))
    now = again(old)
    assert now.config == {"api_key": "newer", "city": "Brno", "limit": 7, "region": "EU"}
    assert now.secrets["api_key"]["by"] == "fay"


def test_values_that_the_new_version_does_not_know_are_dropped() -> None:
    instance = make_keyed(config={"api_key": SECRET, "city": "Graz"})
    second = make_version(instance.template.name, user="city: str")
    assert upgrade(instance, second, config={}, by="eve").config == {"city": "Graz"}
    assert again(instance).secrets == {}


def test_what_people_changed_about_the_tool_outlives_an_upgrade(old: ToolInstance) -> None:
    tool = old.tool
    tool.description, tool.timeout, tool.consequential = "Our weather.", 30.0, True
    tool.parameters[0]["display_name"] = "question"
    save_tool(tool)
    settle(built(to_second(old).next_environment))
    row = again(old).tool
    assert (row.description, row.timeout, row.consequential) == ("Our weather.", 30.0, True)
    assert row.parameters[0]["display_name"] == "question"
    assert row.parameters[1]["default"] == 3


def test_one_goes_back_to_an_older_version_the_same_way(old: ToolInstance) -> None:
    first = old.version
    settle(built(to_second(old).next_environment))
    now = upgrade(again(old), first, config={}, by="eve")
    assert now.next_version is None  # the environment is there still
    assert again(old).version == first
    assert again(old).config == {"api_key": SECRET}


def make_unusable() -> ToolTemplateVersion:
    version = make_version("Weather", user=USER, tool="x: str")
    version.report["tool_parameters"][0]["schema"] = {"$ref": "#/$defs/Elsewhere"}
    return version


@pytest.mark.parametrize("which", ["same", "foreign", "unusable"])
def test_a_version_that_it_cannot_become_is_refused(old: ToolInstance, which: str) -> None:
    version = {
        "same": lambda: old.version,
        "foreign": make_version,
        "unusable": make_unusable,
    }[which]()
    with pytest.raises(ConfigRefusedError) as error:
        upgrade(old, version, config={}, by="eve")
    assert list(error.value.errors) == [""]


def test_others_of_the_template_stay_as_they_are(old: ToolInstance) -> None:
    other = make_instance(old.version, config={"api_key": "k"})
    settle(built(to_second(old).next_environment))
    assert again(other).version.number == 1


# --- Its end


@pytest.fixture
def workspaces(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.setattr(settings, "STUDIO_VAR", tmp_path)
    return tmp_path / "tools" / "workspaces"


def test_it_is_deleted_with_its_tool_its_files_and_its_environment(
    workspaces: Path, django_capture_on_commit_callbacks: Any
) -> None:
    instance = make_instance()
    place = workspaces / str(instance.pk) / "tools" / "deep"
    place.mkdir(parents=True)
    (place / "kept.txt").write_text("x")
    place.chmod(0o500)  # as a tool may leave it
    with django_capture_on_commit_callbacks(execute=True):
        delete_instance(instance)
    assert not Tool.objects.exists()
    assert not ToolInstance.objects.exists()
    assert not ToolEnvironment.objects.exists()
    assert list(workspaces.iterdir()) == []


def test_the_environment_stays_for_others_that_need_it(
    workspaces: Path, django_capture_on_commit_callbacks: Any
) -> None:
    version = make_version()
    first, second = make_instance(version), make_instance(version)
    with django_capture_on_commit_callbacks(execute=True):
        delete_instance(first)
    assert again(second).environment.is_ready


def test_it_is_not_deleted_while_an_agent_may_use_it_or_has_published_it() -> None:
    instance = make_instance()
    agent = make_agent()
    allow_tool(agent, instance.tool)
    guideline = make_guideline(agent, tools=[instance.tool])
    with pytest.raises(InstanceInUseError) as error:
        delete_instance(instance)
    assert (error.value.agents, error.value.guidelines) == ((agent,), (guideline,))
    publish(agent, note="With it.", by=None)
    guideline.delete()
    disallow_tool(agent, instance.tool)
    with pytest.raises(InstanceInUseError) as error:
        delete_instance(instance)
    assert (error.value.agents, error.value.guidelines) == ((agent,), ())
    publish(agent, note="Without it.", by=None)
    delete_instance(instance)
    assert not ToolInstance.objects.exists()


def test_what_somebody_else_deleted_meanwhile_is_changed_no_more() -> None:
    instance = make_keyed()
    second = make_version(instance.template.name, user="city: str")
    delete_instance(ToolInstance.objects.get())
    delete_instance(instance)
    assert cancel_upgrade(instance) == instance
    for change in (
        lambda: configure(instance, config={"city": "Graz"}, by="eve"),
        lambda: upgrade(instance, second, config={"city": "Graz"}, by="eve"),
    ):
        with pytest.raises(ConfigRefusedError, match="deleted it meanwhile"):
            change()
    assert not ToolInstance.objects.exists()


@pytest.mark.django_db(transaction=True)
def test_of_several_requests_for_one_name_at_once_one_has_it() -> None:
    version = make_version()
    answers = both(*[lambda: make_instance(version, name="weather", ready=False)] * 4)
    refused = [answer for answer in answers if isinstance(answer, NameRefusedError)]
    assert len(refused) == 3, answers
    assert ToolInstance.objects.count() == Tool.objects.count() == 1


def test_a_guideline_that_is_judged_again_after_it_keeps_it_too() -> None:
    instance = make_instance()
    make_guideline(reevaluate_after=[instance.tool])
    with pytest.raises(InstanceInUseError):
        delete_instance(instance)


def test_nothing_that_a_failed_attempt_began_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    version = make_version()

    def fail(*_args: Any, **_more: Any) -> None:
        raise RuntimeError

    monkeypatch.setattr(instances, "request_build", fail)
    with pytest.raises(RuntimeError):
        create_instance(version, name="weather", config={}, by="dana")
    assert not Tool.objects.exists()
    assert not ToolEnvironment.objects.exists()
