"""Uploaded tools as a process finds them: unpacked once, with their values, called by turns and by hand."""

import os
import stat
import threading
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
from django.template.loader import render_to_string
from pytest_django.fixtures import Settings

from engine.errors import ToolErrorKind
from engine.kit import Models
from engine.testing import ScriptedModel, infers, matches, replies, said
from engine.tools.environment import READY
from engine.tools.masking import MASK
from engine.tools.package import write_archive
from engine.tools.runner import Call, End, Outcome, Program, Stop
from engine.tools.template import Report, TemplateField
from studio import installing, toolbox
from studio.audit import audit
from studio.bridge import compile_tool
from studio.installing import installed_tools
from studio.models import (
    ApiToken,
    Guideline,
    Session,
    Tool,
    ToolEnvironment,
    ToolInstance,
    ToolTemplate,
    ToolTemplateVersion,
    Turn,
)
from studio.operations import running, turns, watching
from studio.operations.agents import save_guideline
from studio.operations.sessions import open_session
from studio.toolbox import tool_service, tools_for
from studio.views.ledger import ledger
from tests.studio.api.calling import Caller
from tests.studio.factories import make_agent, make_tool, make_user

pytestmark = pytest.mark.django_db(transaction=True)

SECRET = "hunter-22-secret"
FILES = {"tool.py": b"print(1)\n", "data/places.json": b"[]", "requirements.txt": b"pydantic\n"}


def make_field(name: str, **overrides: Any) -> TemplateField:
    values: dict[str, Any] = {
        "type": "str",
        "schema": {"type": "string"},
        "required": True,
        "required_by_pydantic": True,
    }
    return TemplateField(name=name, **(values | overrides))


def make_version(name: str = "Parcel Finder", **files: bytes) -> ToolTemplateVersion:
    template = ToolTemplate.objects.create(
        name=name, slug=f"{name.lower().replace(' ', '_')}_abc123"
    )
    report = Report(
        name=name,
        output_key="OUT",
        user_parameters=(
            make_field("api_key", secret=True),
            make_field("account"),
            make_field("region", required=False),
            make_field("retries", required=False, required_by_pydantic=False),
        ),
        tool_parameters=(
            make_field("number"),
            make_field("day", required=False),
            make_field("fast", required=False, required_by_pydantic=False),
        ),
    )
    archive = write_archive(FILES | {"name.txt": name.encode()} | files)
    return ToolTemplateVersion.objects.create(
        template=template,
        number=1,
        archive=archive,
        digest=sha256(archive).hexdigest(),
        report=report.to_json(),
    )


def make_environment(key: str = "e" * 64, **overrides: Any) -> ToolEnvironment:
    values = {"requirements": "pydantic", "python": "3.11", "state": "finished"}
    row, _new = ToolEnvironment.objects.get_or_create(key=key, defaults=values | overrides)
    return row


def make_instance(
    name: str = "find_parcel",
    *,
    version: ToolTemplateVersion | None = None,
    environment: ToolEnvironment | None = None,
    config: dict[str, Any] | None = None,
    **tool: Any,
) -> ToolInstance:
    version = version or make_version(name.replace("_", " "))
    values = {"parameters": [{"name": "number", "schema": {"type": "string"}}]} | tool
    row = ToolInstance(
        template=version.template,
        version=version,
        environment=environment or make_environment(),
        tool=make_tool(name=name, kind=Tool.Kind.TEMPLATE, **values),
        secrets={"account": {"by": "ann", "at": "2026-01-01T00:00:00+00:00"}},
    )
    row.config = {"api_key": SECRET, "account": "ACC-4711"} if config is None else config
    row.save()
    return row


def build(root: Path, key: str = "e" * 64) -> Path:
    python = root / "tools" / "environments" / key / "bin" / "python"
    python.parent.mkdir(parents=True)
    python.touch()
    (python.parent.parent / READY).touch()
    return python


@pytest.fixture(autouse=True)
def var(settings: Settings, tmp_path: Path) -> Path:
    settings.STUDIO_VAR = tmp_path
    return tmp_path


def found(*rows: ToolInstance) -> tuple[list[Any], dict[str, str]]:
    return installed_tools([compile_tool(row.tool) for row in rows])


# --- from rows to what can run


def test_an_instance_whose_environment_is_built_can_run(var: Path) -> None:
    python, row = build(var), make_instance()

    (tool,), unavailable = found(row)

    assert unavailable == {}
    assert (tool.uid, tool.name, tool.output_key) == (row.tool.uid, "find_parcel", "OUT")
    # What pydantic wants though the specification does not, is null.
    assert tool.user_params == {"api_key": SECRET, "account": "ACC-4711", "region": None}
    assert tool.nullable == ("day",)
    assert set(tool.secrets) == {SECRET, "ACC-4711"}  # by its template, and by who set it
    assert tool.program == Program(
        package=var / "tools" / "packages" / row.version.digest,
        slug="find_parcel_abc123",
        workspace=var / "tools" / "workspaces" / str(row.pk),
        python=python,
    )
    assert tool.program.workspace.is_dir()


def test_its_files_are_unpacked_once_and_read_only(
    var: Path, django_assert_num_queries: Any
) -> None:
    build(var)
    rows = [make_instance(f"tool_{number}") for number in range(3)]
    tools = [compile_tool(row.tool) for row in rows]

    with django_assert_num_queries(2):
        installed_tools(tools)
    with django_assert_num_queries(1):
        installed_tools(tools)

    place = var / "tools" / "packages" / rows[0].version.digest
    written = {str(p.relative_to(place)): p.read_bytes() for p in place.rglob("*") if p.is_file()}
    assert written == FILES | {"name.txt": b"tool 0"}
    modes = {stat.S_IMODE(path.stat().st_mode) for path in (place, *place.rglob("*"))}
    assert modes == {0o444, 0o555}
    assert sorted(p.name for p in place.parent.iterdir()) == sorted(
        row.version.digest for row in rows
    )


def test_two_that_unpack_at_once_find_the_same_whole(var: Path) -> None:
    archive = write_archive(FILES | {f"data/{n}.txt": b"x" * 1000 for n in range(50)})
    place = var / "packages" / "digest"
    problems: list[BaseException] = []
    start = threading.Barrier(6)

    def unpack() -> None:
        start.wait()
        try:
            installing._unpack(archive, place)
            assert len(list(place.rglob("*.txt"))) == 51
        except BaseException as error:  # noqa: BLE001 - a thread's failure is the test's
            problems.append(error)

    threads = [threading.Thread(target=unpack) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert problems == []
    assert [path.name for path in place.parent.iterdir()] == ["digest"]


def test_files_that_cannot_be_unpacked_leave_nothing_and_are_told(var: Path) -> None:
    build(var)
    good, bad = make_instance("good"), make_instance("bad")
    ToolTemplateVersion.objects.filter(pk=bad.version.pk).update(archive=b"no zip")

    installed, unavailable = found(good, bad)

    assert [tool.name for tool in installed] == ["good"]
    assert "could not be written" in unavailable[bad.tool.uid]
    assert [p.name for p in (var / "tools" / "packages").iterdir()] == [good.version.digest]


@pytest.mark.parametrize(
    ("state", "words"),
    [
        ("queued", "still being built"),
        ("running", "still being built"),
        ("failed", "could not be built: no such package"),
        ("stopped", "was stopped"),
        ("finished", "not on this machine"),
    ],
)
def test_one_without_its_environment_says_why(
    state: str, words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[ToolEnvironment] = []
    monkeypatch.setattr(installing, "ensure_here", asked.append)
    row = make_instance(environment=make_environment(state=state, error="no such package"))

    installed, unavailable = found(row)

    assert installed == []
    assert words in unavailable[row.tool.uid]
    assert asked == [row.environment]  # who builds it here again, where it was built


def test_one_whose_secrets_can_be_read_no_more_says_what_it_lacks(
    var: Path, settings: Settings
) -> None:
    build(var)
    row = make_instance()
    settings.SECRET_KEY = "another"

    installed, unavailable = found(row)

    assert installed == []
    assert "'api_key', 'account'" in unavailable[row.tool.uid]


# --- the tools of a turn


def test_functions_alone_cost_no_query(django_assert_num_queries: Any) -> None:
    functions = [function.spec for function in tool_service().functions]
    with django_assert_num_queries(0):
        assert tools_for(functions) is tool_service()


def test_a_function_whose_module_moved_is_still_a_function() -> None:
    moved = make_tool(name="calculator", uid="elsewhere")

    assert tools_for([compile_tool(moved)]) is tool_service()


class FakeRunner:
    """Answers every call alike; keeps what it was called with."""

    def __init__(self, root: Path) -> None:
        self.sessions, self.data = root / "sessions", root / "data"
        self.outcome: dict[str, Any] = {"code": 0, "stdout": b"looking\nOUT {'place': 'Lyon'}"}
        self.calls: list[Call] = []

    def run(
        self, program: Program, call: Call, *, stop: Stop, on_output: Callable[[bytes], None]
    ) -> Outcome:
        self.calls.append(call)
        given = {"end": End.EXITED, "stderr": b"", "duration_ms": 3, "note": ""} | self.outcome
        on_output(given["stdout"])
        on_output(given["stderr"])
        return Outcome(**given)


@pytest.fixture
def runner(var: Path, monkeypatch: pytest.MonkeyPatch) -> FakeRunner:
    build(var)
    runner = FakeRunner(var)
    monkeypatch.setattr(toolbox, "runner", lambda: runner)
    return runner


@pytest.fixture
def session() -> Session:
    agent = make_agent(slug="depot")
    row = make_instance()
    agent.tools.add(row.tool)
    guideline = Guideline(agent=agent, condition="they ask for a parcel", action="say where")
    save_guideline(guideline, tools=[row.tool])
    return open_session(agent=agent)


def play(session: Session, monkeypatch: pytest.MonkeyPatch) -> Turn:
    model = ScriptedModel(
        matches("G1"), infers("find_parcel", {"number": said("P-7")}), replies("Lyon.", "G1")
    )
    monkeypatch.setattr(running, "models_for", lambda _session: Models.same(model))
    unwatched = watching.Watch()  # its thread would look into the database after the test
    monkeypatch.setattr(running, "watch", lambda: unwatched)
    turn = turns.send_message(session, text="Where is parcel P-7?", enqueue=False)
    assert turn is not None
    turns.run_turn(turn.pk)
    turn.refresh_from_db()
    return turn


def test_a_turn_calls_it_and_what_it_printed_stands_in_the_ledger_alone(
    session: Session, runner: FakeRunner, monkeypatch: pytest.MonkeyPatch, var: Path
) -> None:
    runner.outcome["stderr"] = f"<b>key {SECRET}</b>".encode()

    turn = play(session, monkeypatch)

    (call,) = runner.calls
    assert call.tool_params == {"number": "P-7", "day": None}
    assert call.session_directory == var / "sessions" / str(session.pk)
    assert call.data_directory == var / "data" / "depot"
    (shown,) = audit(turn)["calls"]
    assert shown["result"]["data"] == {"place": "Lyon"}
    assert shown["log"] == f"--- stdout ---\nlooking\n\n--- stderr ---\n<b>key {MASK}</b>"
    record = audit(turn)
    context = {"session": session, "turn": turn, "audit": record, "ledger": ledger(record)}
    page = render_to_string("sandbox/_ledger.html", context)
    assert "What it printed" in page
    assert f"&lt;b&gt;key {MASK}&lt;/b&gt;" in page
    assert "looking" not in str(list(session.events.values_list("data", flat=True)))


def test_a_tool_that_is_not_ready_fails_its_call_and_the_turn_goes_on(
    session: Session, runner: FakeRunner, monkeypatch: pytest.MonkeyPatch
) -> None:
    ToolEnvironment.objects.update(state="running", key="f" * 64)

    turn = play(session, monkeypatch)

    assert turn.state == Turn.State.FINISHED
    (shown,) = audit(turn)["calls"]
    assert shown["error"]["kind"] == ToolErrorKind.UNAVAILABLE
    assert "still being built" in shown["error"]["detail"]
    assert runner.calls == []


# --- by hand


def run(body: dict[str, Any]) -> Any:
    _row, token = ApiToken.make(make_user("developer").pk)
    return Caller(token).post("/tools/find_parcel/run", body)


def test_it_is_run_by_hand_with_what_it_printed(runner: FakeRunner) -> None:
    make_instance()
    runner.outcome["stdout"] = f"key {SECRET}\nOUT [1]\n".encode()

    answer = run({"arguments": {"number": "P-7"}})

    assert answer.status_code == 200
    assert answer.json()["data"] == [1]
    assert answer.json()["log"] == [{"kind": "print", "text": f"key {MASK}\nOUT [1]\n"}]
    (call,) = runner.calls
    assert call.session_directory is not None
    assert not call.session_directory.exists()  # it had no session


def test_a_failed_run_by_hand_shows_what_it_printed(runner: FakeRunner) -> None:
    make_instance()
    runner.outcome |= {"code": 3, "stdout": b"no such parcel\n", "stderr": SECRET.encode()}

    answer = run({"arguments": {"number": "P-7"}})

    assert answer.status_code == 502
    problem = answer.json()
    assert problem["kind"] == "exception"
    assert problem["log"] == [{"kind": "print", "text": f"no such parcel\n{MASK}"}]
    assert "exit code 3" in problem["explanation"]
    assert SECRET not in answer.content.decode()


# --- the runner of a process


def test_a_process_has_one_runner_with_the_folders_of_the_studio(var: Path) -> None:
    toolbox.runner.cache_clear()
    left = var / "tools" / "sessions" / "call-of-yesterday"
    left.mkdir(parents=True)
    os.utime(left, (0, 0))
    try:
        first = toolbox.runner()

        assert toolbox.runner() is first
        assert first.sessions == var / "tools" / "sessions"
        assert first.data == var / "tools" / "data"
        assert not left.exists()
        first.close()
    finally:
        toolbox.runner.cache_clear()
