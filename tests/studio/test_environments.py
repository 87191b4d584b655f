"""Environments as rows: asked for once, built by a worker while people watch, built again, and removed."""

import json
import threading
import time
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.db import connection
from django.utils import timezone

from engine.tools.environment import Needs, keys_in
from engine.tools.package import Package
from studio.models import ToolEnvironment, ToolInstance
from studio.operations import environments
from studio.operations.environments import (
    clean_up,
    ensure_here,
    environment_for,
    needs_of,
    python_for,
    remove_unused,
    request_build,
    root,
    run_build,
    sweep_builds,
)
from studio.operations.instances import create_instance, delete_instance, upgrade
from tests.engine.tools.wheels import hanging_index, wheel
from tests.studio.tool_packages import built, make_instance, make_version, package_files

pytestmark = pytest.mark.django_db

STATE = ToolEnvironment.State


@pytest.fixture(autouse=True)
def var(tmp_path: Path, settings: Any) -> Path:
    folder = tmp_path / "var"
    folder.mkdir()
    settings.STUDIO_VAR = folder
    return folder


@pytest.fixture(autouse=True)
def wheels(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of packages that is all an installer finds; it holds a small pydantic."""
    folder = tmp_path / "wheels"
    wheel(folder, "pydantic", "2.99")
    configuration = tmp_path / "uv.toml"
    configuration.write_text(f"no-index = true\nfind-links = [{json.dumps(str(folder))}]\n")
    monkeypatch.setenv("UV_CONFIG_FILE", str(configuration))
    return folder


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(environments, "NOTED_EVERY", 0.05)


@pytest.fixture
def hangs(monkeypatch: pytest.MonkeyPatch, quick: None) -> Any:
    monkeypatch.delenv("UV_CONFIG_FILE")
    with hanging_index() as address:
        monkeypatch.setenv("UV_DEFAULT_INDEX", address)
        yield


def again(row: ToolEnvironment) -> ToolEnvironment:
    return ToolEnvironment.objects.get(pk=row.pk)


def make_environment(requirements: str = "pydantic", **values: Any) -> ToolEnvironment:
    """A row that nothing needs, and that waits unless said otherwise."""
    row = environment_for(Needs(requirements=requirements))
    values = {"state": STATE.QUEUED, "queued_at": timezone.now()} | values
    ToolEnvironment.objects.filter(pk=row.pk).update(**values)
    return again(row)


def needed(requirements: str = "pydantic\n", **more: str) -> ToolEnvironment:
    """A row that an instance needs, as a person's upload makes it."""
    version = make_version(requirements=requirements, **more)
    return make_instance(version, ready=False).environment


def eventually(holds: Callable[[], bool]) -> bool:
    ends = time.monotonic() + 10
    while not holds() and time.monotonic() < ends:
        time.sleep(0.02)
    return holds()


def in_a_thread(row: ToolEnvironment) -> threading.Thread:
    def work() -> None:
        try:
            run_build(row.pk)
        finally:
            connection.close()

    thread = threading.Thread(target=work)
    thread.start()
    return thread


# --- built


def test_ten_instances_that_need_the_same_have_one_environment_built_once(
    django_capture_on_commit_callbacks: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[int] = []
    monkeypatch.setattr(run_build, "delay", asked.append)
    with django_capture_on_commit_callbacks(execute=True):
        for number in range(10):
            requirements = f"# Number {number}\nPydantic\n" if number % 2 else "pydantic\n"
            version = make_version(requirements=requirements)
            create_instance(version, name=f"tool_{number}", config={}, by="dana")
    row = ToolEnvironment.objects.get()
    assert asked == [row.pk]
    assert (row.state, row.started_by, ToolInstance.objects.count()) == (STATE.QUEUED, "dana", 10)
    run_build(row.pk)
    row = again(row)
    assert (row.state, row.error, row.stage) == (STATE.FINISHED, "", "Checking")
    assert "pydantic==2.99" in row.log
    assert row.heartbeat_at is None
    python = python_for(row)
    assert python is not None
    assert python.is_relative_to(root() / row.key)
    request_build(row, by="eva")
    run_build(row.pk)
    assert again(row).finished_at == row.finished_at


@pytest.mark.django_db(transaction=True)
def test_a_build_shows_what_it_is_at_and_can_be_stopped(hangs: None) -> None:
    row = needed()
    thread = in_a_thread(row)
    assert eventually(lambda: again(row).stage == "Resolving")
    running = again(row)
    assert running.state == STATE.RUNNING
    assert "Python" in running.log
    heard = running.heartbeat_at
    assert eventually(lambda: again(row).heartbeat_at > heard)  # though its installer is silent
    assert running.request_stop()
    thread.join(timeout=5)
    stopped = again(row)
    assert (stopped.state, stopped.error) == (STATE.STOPPED, "")
    assert python_for(stopped) is None
    assert keys_in(root()) == set()


def test_a_build_that_fails_says_why_and_is_built_again_when_asked(
    wheels: Path, django_capture_on_commit_callbacks: Any
) -> None:
    row = needed("studio-greeting\n")
    run_build(row.pk)
    failed = again(row)
    assert failed.state == STATE.FAILED
    assert failed.error.startswith("There is no package 'studio-greeting'")
    assert "No solution found" in failed.log
    assert keys_in(root()) == set()
    wheel(wheels, "studio_greeting")
    with django_capture_on_commit_callbacks() as queued:
        request_build(failed, by="eva")
        request_build(again(row), by="otto")
    waiting = again(row)
    assert len(queued) == 1
    assert (waiting.state, waiting.started_by) == (STATE.QUEUED, "eva")
    assert (waiting.error, waiting.log, waiting.stage, waiting.finished_at) == ("", "", "", None)
    run_build(row.pk)
    assert again(row).state == STATE.FINISHED


def test_a_build_that_takes_too_long_fails(hangs: None, settings: Any) -> None:
    settings.STUDIO_TOOL_BUILD_TIMEOUT = 1
    row = needed()
    run_build(row.pk)
    assert again(row).error.startswith("The build took longer than 1 s")
    assert keys_in(root()) == set()


def test_what_nobody_foresaw_fails_and_is_logged(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def broken(*_arguments: Any, **_options: Any) -> Path:
        raise RuntimeError("broken")

    monkeypatch.setattr(environments.places, "build", broken)
    row = needed()
    run_build(row.pk)
    assert (again(row).state, again(row).error) == (
        STATE.FAILED,
        "It went wrong here; the log says how.",
    )
    assert "broken" in caplog.text


def test_files_and_passwords_come_from_the_package_and_stay_out_of_the_row(wheels: Path) -> None:
    wheel(wheels, "studio_greeting")
    requirements = "--extra-index-url http://user:hunter2@127.0.0.1:1/simple\n-r more.txt\n"
    row = needed(requirements, **{"more.txt": "studio_greeting\n"})
    files = package_files(requirements=requirements, **{"more.txt": "studio_greeting\n"})
    needs = needs_of(row)
    assert needs == Needs.of(Package("any", files))
    assert needs.files == {"more.txt": b"studio_greeting\n"}
    run_build(row.pk)
    row = again(row)
    assert row.state == STATE.FINISHED, row.log
    assert "studio-greeting==1.0" in row.log
    assert "hunter2" not in row.requirements + row.log + row.error


def test_what_waited_for_an_environment_becomes_its_next_version() -> None:
    first = make_version("Weather")
    instance = make_instance(first)
    second = make_version("Weather", requirements="pydantic>2\n")
    upgrade(instance, second, config={}, by="dana")
    instance = ToolInstance.objects.get(pk=instance.pk)
    assert (instance.version, instance.next_version) == (first, second)
    run_build(instance.next_environment_id)
    instance = ToolInstance.objects.get(pk=instance.pk)
    assert (instance.version, instance.next_version) == (second, None)


# --- on this machine


@pytest.mark.django_db(transaction=True)
def test_what_was_built_elsewhere_is_built_here_when_it_is_needed() -> None:
    row = built(needed())
    assert python_for(row) is None
    others = set(threading.enumerate())
    assert ensure_here(row) is None
    assert ensure_here(row) is None  # it is begun, and not begun again
    assert len([each for each in set(threading.enumerate()) - others if each.name == "build"]) == 1
    assert eventually(lambda: python_for(row) is not None)
    assert ensure_here(row) == python_for(row)
    assert again(row).state == STATE.FINISHED


def test_what_is_not_built_is_not_begun_by_a_call() -> None:
    row = needed()
    assert ensure_here(row) is None
    assert keys_in(root()) == set()


# --- lost


def test_a_build_that_lost_its_worker_begins_anew_once(
    django_capture_on_commit_callbacks: Any,
) -> None:
    long_ago = timezone.now() - timedelta(minutes=1)
    row = make_environment(state=STATE.RUNNING, heartbeat_at=long_ago, queued_at=long_ago)
    with django_capture_on_commit_callbacks() as queued:
        assert sweep_builds() == 1
        assert sweep_builds() == 0
    assert len(queued) == 1
    assert again(row).state == STATE.QUEUED
    assert "it begins anew" in again(row).error
    ToolEnvironment.objects.filter(pk=row.pk).update(state=STATE.RUNNING, heartbeat_at=long_ago)
    with django_capture_on_commit_callbacks() as queued:
        assert sweep_builds() == 1
    assert queued == []
    assert again(row).state == STATE.FAILED
    assert "was stopped in the middle" in again(row).error


def test_a_second_try_that_works_says_nothing_of_the_first() -> None:
    row = needed()
    ToolEnvironment.objects.filter(pk=row.pk).update(error="The worker was stopped.")
    run_build(row.pk)
    assert (again(row).state, again(row).error) == (STATE.FINISHED, "")


@pytest.mark.parametrize(
    "values",
    [
        {"state": STATE.RUNNING, "heartbeat_at": timezone.now() + timedelta(hours=1)},
        {"state": STATE.QUEUED, "queued_at": timezone.now() + timedelta(hours=1)},
        {"state": STATE.FAILED},
        {"state": STATE.FINISHED},
    ],
)
def test_what_lives_waits_or_is_over_is_left_alone(values: dict[str, Any]) -> None:
    row = make_environment(**values)
    assert sweep_builds() == 0
    assert again(row).state == values["state"]


def test_a_build_that_no_worker_took_is_given_up() -> None:
    row = make_environment(queued_at=timezone.now() - timedelta(minutes=6))
    assert sweep_builds() == 1
    assert "No worker took it" in again(row).error


def test_another_python_has_instances_get_their_environments_anew(
    django_capture_on_commit_callbacks: Any,
) -> None:
    instance = make_instance(make_version("Weather"))
    upgrade(instance, make_version("Weather", requirements="pydantic>2\n"), config={}, by="dana")
    current = set(ToolEnvironment.objects.values_list("key", flat=True))
    for row in ToolEnvironment.objects.all():
        ToolEnvironment.objects.filter(pk=row.pk).update(key=f"3.9 {row.key[:20]}", python="3.9.1")
    with django_capture_on_commit_callbacks(execute=False) as queued:
        clean_up()
    assert set(ToolEnvironment.objects.values_list("key", flat=True)) == current
    instance = ToolInstance.objects.get(pk=instance.pk)
    for row in (instance.environment, instance.next_environment):
        assert (row.state, row.started_by) == (STATE.QUEUED, "dana")
    assert len([each for each in queued if "_queue" in each.__qualname__]) == 2


# --- removed


def folder_of(row: ToolEnvironment, *, whole: bool = True) -> Path:
    folder = root() / row.key
    (folder / "bin").mkdir(parents=True)
    (folder / "bin" / "python").symlink_to("/usr/bin/env")
    if whole:
        (folder / ".ready").touch()
    return folder


def test_what_no_instance_needs_any_more_is_removed_with_its_folder(
    django_capture_on_commit_callbacks: Any,
) -> None:
    instance = make_instance()
    kept, wanted = instance.environment, make_environment("pydantic>1", state=STATE.FINISHED)
    ToolInstance.objects.filter(pk=instance.pk).update(
        next_environment=wanted, next_version=instance.version
    )
    unused = make_environment("pydantic>2", state=STATE.FINISHED)
    folders = [folder_of(row) for row in (kept, wanted, unused)]
    with django_capture_on_commit_callbacks(execute=True):
        assert remove_unused() == 1
    assert set(ToolEnvironment.objects.all()) == {kept, wanted}
    assert [folder.exists() for folder in folders] == [True, True, False]


def test_the_last_instance_takes_its_environment_with_it(
    django_capture_on_commit_callbacks: Any,
) -> None:
    instance = make_instance()
    folder = folder_of(instance.environment)
    with django_capture_on_commit_callbacks(execute=True):
        delete_instance(instance)
    assert not ToolEnvironment.objects.exists()
    assert not folder.exists()


@pytest.mark.django_db(transaction=True)
def test_a_build_that_nobody_needs_any_more_is_stopped_and_removed(hangs: None) -> None:
    row = make_environment()
    thread = in_a_thread(row)
    assert eventually(lambda: again(row).state == STATE.RUNNING)
    assert remove_unused() == 0
    thread.join(timeout=5)
    assert not ToolEnvironment.objects.exists()
    assert keys_in(root()) == set()


def test_a_worker_that_starts_removes_what_was_left_half_built_and_what_no_row_knows() -> None:
    known, half = make_instance().environment, needed("pydantic>1")
    folders = [folder_of(known), folder_of(half, whole=False), root() / ("0" * 64)]
    folders[2].mkdir()
    clean_up()
    assert [folder.exists() for folder in folders] == [True, False, False]
