"""Runs tools, each call in a process of its own, apart from the studio and from each other (TOOLS.md §2)."""

import json
import time
import weakref
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path

from engine.canonical import JsonObject
from engine.sandbox.values import Request
from engine.tools.hosting.hosts import Host, HostError
from engine.tools.hosting.placing import hand_over
from engine.tools.hosting.processes import Call, End, Limits, Outcome, Program, Stop
from engine.tools.hosting.talking import HostLostError, NotBegunError, Question, ask
from engine.tools.hosting.warm import WarmHosts
from engine.tools.isolation import Isolation, detect

__all__ = ["Call", "End", "Limits", "Outcome", "Program", "Runner", "Stop"]

_ATTEMPTS = 3


class Runner:
    """`run` may be called from any thread, several at once. `sessions` and `data` hold the directories of calls.

    A tool keeps a warm process, for up to `most_warm` tools and `idle` seconds. `close` ends them and what runs in
    them; so does the end of this process, whichever way it ends. `isolation` is what the machine offers, unless given.
    """

    def __init__(
        self,
        *,
        sessions: Path,
        data: Path,
        limits: Limits | None = None,
        most_warm: int = 16,
        idle: float = 600.0,
        isolation: Isolation | None = None,
    ) -> None:
        self.sessions = sessions.absolute()
        self.data = data.absolute()
        self.limits = limits or Limits()
        self._isolation = isolation or detect()
        self._warm = WarmHosts(
            _Making(self.sessions, self.data, self.limits, self._isolation),
            most=most_warm,
            idle=idle,
        )
        self._closing = weakref.finalize(self, self._warm.close)

    def run(
        self,
        program: Program,
        call: Call,
        *,
        stop: Stop,
        on_output: Callable[[bytes], None] | None = None,
    ) -> Outcome:
        """Run the tool once, and wait for it; how it ended is said in the Outcome, whatever it was.

        `on_output` gets what it prints on either stream, as it comes. Raises ValueError for a directory that stands
        elsewhere than it should, and what `on_output` raises.
        """
        self._check(call)
        began = time.monotonic()
        ends = began + call.deadline
        note = ""
        for _attempt in range(_ATTEMPTS):
            try:
                with self._warm.borrowed(
                    program, lambda: stop.requested or time.monotonic() >= ends
                ) as host:
                    return self._ask(host, call, stop, on_output, began=began)
            except HostError as error:
                note = str(error)
                break
            except NotBegunError as error:  # with another process, the next time
                note = str(error)
        end = End.STOPPED if stop.requested else End.NOT_STARTED
        return Outcome(
            end=end,
            code=None,
            stdout=b"",
            stderr=b"",
            duration_ms=round((time.monotonic() - began) * 1000),
            note=note,
        )

    def forget(self, program: Program) -> None:
        """End its warm process, once no call uses it."""
        self._warm.forget(program)

    def close(self) -> None:
        """End all processes. No call can be made any more."""
        self._closing()

    def _ask(
        self,
        host: Host,
        call: Call,
        stop: Stop,
        on_output: Callable[[bytes], None] | None,
        *,
        began: float,
    ) -> Outcome:
        ends = began + call.deadline
        if call.session_directory is not None:
            call.session_directory.mkdir(parents=True, exist_ok=True)
            hand_over(call.session_directory, host.user)
        request = Request(
            user_params=_text(call.user_params),
            tool_params=_text(call.tool_params),
            deadline=max(0.0, ends - time.monotonic()),
            session=str(call.session_directory or ""),
            data=str(call.data_directory or ""),
        )
        question = Question(
            request=asdict(request),
            limits=self.limits,
            began=began,
            ends=ends,
            on_output=on_output,
        )
        try:
            return ask(host.send, question, stop)
        except NotBegunError as error:
            host.retire()
            if not error.gone:
                raise
            words = host.words
            host.lose()
            raise NotBegunError(f"{error}{words}") from error
        except HostLostError as error:
            host.lose()
            return error.outcome

    def _check(self, call: Call) -> None:
        for path, root in (
            (call.session_directory, self.sessions),
            (call.data_directory, self.data),
        ):
            if path is not None and (root not in path.parents or ".." in path.parts):
                raise ValueError(f"{str(path)!r} is not in {str(root)!r}")


class _Making:
    """Makes the process of a program, not holding the runner: that one may be forgotten, and then all of it ends."""

    def __init__(self, sessions: Path, data: Path, limits: Limits, isolation: Isolation) -> None:
        self._sessions, self._data = sessions, data
        self._limits, self._isolation = limits, isolation

    def __call__(self, program: Program) -> Host:
        return Host(
            program,
            sessions=self._sessions,
            data=self._data,
            limits=self._limits,
            isolation=self._isolation,
        )


def _text(value: JsonObject) -> str:
    return json.dumps(value, ensure_ascii=False)
