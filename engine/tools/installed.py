"""Uploaded tools as a ToolService: each call is a process of the tool's own (TOOLS.md §2)."""

import asyncio
import codecs
import logging
import os
import re
import shutil
import stat
import tempfile
import time
import traceback
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any

from engine.canonical import JsonObject, digest
from engine.errors import ToolError, ToolErrorKind, ToolFailure
from engine.spec import Tool
from engine.tools.base import ToolContext, ToolResult
from engine.tools.beside import Beside, TooManyHangingError
from engine.tools.endings import outcome_of
from engine.tools.masking import Mask
from engine.tools.runner import Call, Outcome, Program, Runner, Stop

logger = logging.getLogger(__name__)

# Stopped so long (seconds) before the engine gives up on the call, that what it printed until then is known.
_BEFORE_DEADLINE = 0.25
_OF_A_CALL = "call-"  # directories of calls without a session; no session's number begins so
_FILE_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,99}")


@dataclass(frozen=True, slots=True, kw_only=True)
class InstalledTool:
    """An uploaded tool that can run here.

    `uid` and `name` are those of its `engine.spec.Tool`. `user_params` are passed with each call, `secrets` are the
    values among them that nobody may see. `output_key` is None for a tool without one. `nullable` are parameters that
    the specification calls optional and pydantic required: without a value they are passed as null.
    """

    uid: str
    name: str
    program: Program
    user_params: JsonObject = field(repr=False)  # a value that is logged shows none of them
    secrets: tuple[str, ...] = field(default=(), repr=False)
    output_key: str | None = None
    nullable: tuple[str, ...] = ()


class TemplateToolService:
    """The ToolService of uploaded tools.

    `unavailable` says of those that cannot run now why (tool uid → sentence). A call that is cancelled returns at
    once, and its process is killed. Without a `beside` of their own, all services share one.
    """

    def __init__(
        self,
        installed: Iterable[InstalledTool],
        unavailable: Mapping[str, str],
        *,
        runner: Runner,
        beside: Beside | None = None,
    ) -> None:
        self._installed = {tool.uid: tool for tool in installed}
        self._unavailable = dict(unavailable)
        self._runner = runner
        self._beside = beside or _shared_beside()

    async def describe(self) -> tuple[Tool, ...]:
        """By uid, with no more than their names: what else is to know of them stands where they were installed."""
        known = {tool.uid: tool.name for tool in self._installed.values()}
        names = {uid: known.get(uid, uid) for uid in (*self._installed, *self._unavailable)}
        return tuple(Tool(uid=uid, name=name, description="") for uid, name in names.items())

    async def choices(self, tool: Tool, context: ToolContext) -> dict[str, tuple[Any, ...]]:  # noqa: ARG002
        """None: what their parameters may be stands in their schemas."""
        return {}

    async def call(self, tool: Tool, arguments: JsonObject, context: ToolContext) -> ToolResult:
        """Run the tool (found by uid) in a process; raises ToolFailure for every way in which that can fail."""
        installed = self._installed_for(tool)
        mask = Mask(installed.secrets)
        shown = _Shown(mask, context.show_log)
        running = _Running(
            runner=self._runner,
            installed=installed,
            arguments=arguments,
            mask=mask,
            deadline=max(tool.deadline - _BEFORE_DEADLINE, tool.deadline * 0.9),
            stop=Stop(),
        )
        try:
            ended = await self._beside.run_sync(lambda: running.run(context, shown.add))
            shown.finish()
        except asyncio.CancelledError:
            running.stop.request()
            raise
        except TooManyHangingError as error:
            raise unavailable(f"tool {tool.name!r} was not started: {error}") from error
        finally:
            shown.close()
        if isinstance(ended, str):
            raise unavailable(f"tool {tool.name!r} could not be started: {ended}")
        return outcome_of(tool, ended, output_key=installed.output_key, mask=mask)

    def _installed_for(self, tool: Tool) -> InstalledTool:
        if tool.uid in self._unavailable:
            raise unavailable(self._unavailable[tool.uid])
        if tool.uid not in self._installed:
            raise unavailable(f"tool {tool.name!r} ({tool.uid}) is not installed")
        return self._installed[tool.uid]


def unavailable(detail: str) -> ToolFailure:
    return ToolFailure(
        ToolError(kind=ToolErrorKind.UNAVAILABLE, public="it is not available", detail=detail)
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Running:
    """One call, as the thread makes it."""

    runner: Runner
    installed: InstalledTool
    arguments: JsonObject
    mask: Mask
    deadline: float
    stop: Stop

    def run(self, context: ToolContext, on_output: Callable[[bytes], None]) -> Outcome | str:
        """How it ended, or why it could not be started; never raises."""
        try:
            with _session_directory(self.runner.sessions, context.session_id) as session:
                call = Call(
                    user_params=self.installed.user_params,
                    tool_params=dict.fromkeys(self.installed.nullable) | self.arguments,
                    deadline=self.deadline,
                    session_directory=session,
                    data_directory=_directory(self.runner.data, context.agent_id),
                )
                return self.runner.run(
                    self.installed.program, call, stop=self.stop, on_output=on_output
                )
        except Exception as error:  # noqa: BLE001 - whatever it was, somebody waits for the end of the call
            # Not as it is: what the call holds may stand in it.
            told = self.mask.text("".join(traceback.format_exception(error)))
            logger.error("tool %r could not be run: %s", self.installed.name, told)  # noqa: TRY400 - masked
            return self.mask.text(f"{type(error).__name__}: {error}")


class _Shown:
    """Shows what the tool prints as it comes, without its secrets, for as long as the call is waited for."""

    def __init__(self, mask: Mask, show: Callable[[str], None]) -> None:
        self._show = show
        self._stream = mask.stream()
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._open = True

    def add(self, chunk: bytes) -> None:
        self._tell(self._stream.feed(self._decoder.decode(chunk)))

    def finish(self) -> None:
        """Shows what was kept back, once nothing more comes."""
        self._tell(self._stream.feed(self._decoder.decode(b"", final=True)))
        self._tell(self._stream.end())

    def close(self) -> None:
        """Nothing is shown any more: the call may go on for a moment in its thread."""
        self._open = False

    def _tell(self, text: str) -> None:
        if not self._open or not text:
            return
        try:
            self._show(text)
        except Exception:
            logger.exception("what a tool printed could not be shown")


@contextmanager
def _session_directory(root: Path, session_id: str) -> Iterator[Path]:
    """That of the session; without one, one of its own that goes with the call. Raises OSError."""
    kept = _directory(root, session_id)
    if kept is not None:
        yield kept
        return
    root.mkdir(parents=True, exist_ok=True)
    path = Path(tempfile.mkdtemp(prefix=_OF_A_CALL, dir=root))
    try:
        yield path
    finally:
        remove_tree(path)


def _directory(root: Path, name: str) -> Path | None:
    """The directory of that name under `root`, made where it is not there; None without a name. Raises OSError."""
    if not name:
        return None
    path = root / (name if _FILE_NAME.fullmatch(name) else digest(name)[:32])
    path.mkdir(parents=True, exist_ok=True)
    return path


def sweep_calls(sessions: Path, *, older_than: float) -> None:
    """Remove what calls without a session left behind that were killed with their process, so many seconds ago."""
    for path in sessions.glob(f"{_OF_A_CALL}*"):
        with suppress(FileNotFoundError):  # another process sweeps at the same moment
            if path.stat().st_mtime < time.time() - older_than:
                remove_tree(path)


def remove_tree(path: Path) -> None:
    """Remove a directory that may have been made read-only; what cannot be removed is logged, and stays."""
    try:
        path.chmod(stat.S_IRWXU)
        for folder, names, _files in os.walk(path):
            for inner in (Path(folder) / name for name in names):
                if not inner.is_symlink():
                    inner.chmod(stat.S_IRWXU)  # before the walk enters it
        shutil.rmtree(path)
    except OSError:
        logger.warning("%s could not be removed", path, exc_info=True)


@lru_cache(maxsize=1)
def _shared_beside() -> Beside:
    return Beside()
