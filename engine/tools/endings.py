"""How the process of an uploaded tool ended, as a ToolResult or a ToolFailure."""

from dataclasses import dataclass

from engine.errors import ToolError, ToolErrorKind, ToolFailure
from engine.spec import Tool
from engine.tools.base import ToolResult
from engine.tools.masking import Mask
from engine.tools.output import read_output
from engine.tools.results import MAX_LOG, checked
from engine.tools.runner import End, Outcome

# Characters of each stream that are kept in a log or an error, whose end tells the most.
_LONGEST_STREAM = MAX_LOG // 2 - 500


@dataclass(frozen=True, slots=True, kw_only=True)
class _Ending:
    kind: ToolErrorKind
    public: str
    detail: str  # goes on from "tool 'name' "


_ENDINGS = {
    End.EXITED: _Ending(kind=ToolErrorKind.EXCEPTION, public="it failed", detail="failed"),
    End.SIGNAL: _Ending(
        kind=ToolErrorKind.EXCEPTION, public="it failed", detail="was ended by a signal"
    ),
    End.STOPPED: _Ending(
        kind=ToolErrorKind.EXCEPTION, public="it was stopped", detail="was stopped"
    ),
    End.TIMEOUT: _Ending(
        kind=ToolErrorKind.TIMEOUT, public="it took too long", detail="was stopped at its deadline"
    ),
    End.OUTPUT: _Ending(
        kind=ToolErrorKind.TOO_LARGE,
        public="its answer was too large",
        detail="was stopped because it printed more than is kept: let it print less",
    ),
    End.MEMORY: _Ending(
        kind=ToolErrorKind.EXCEPTION,
        public="it failed",
        detail="was stopped because it used more memory than a tool may",
    ),
    End.PROCESSES: _Ending(
        kind=ToolErrorKind.EXCEPTION,
        public="it failed",
        detail="was stopped because it started more processes than a tool may",
    ),
    End.DISK: _Ending(
        kind=ToolErrorKind.EXCEPTION,
        public="it failed",
        detail="was stopped because it wrote more to disk than a tool may",
    ),
    End.NOT_STARTED: _Ending(
        kind=ToolErrorKind.UNAVAILABLE, public="it is not available", detail="could not be started"
    ),
    End.LOST: _Ending(
        kind=ToolErrorKind.UNAVAILABLE,
        public="it is not available",
        detail="was lost with the process that ran it",
    ),
}
# It said itself that it failed, or never began. All others were ended in the middle of their work.
_KNOWN = frozenset([End.EXITED, End.NOT_STARTED])


def outcome_of(tool: Tool, outcome: Outcome, *, output_key: str | None, mask: Mask) -> ToolResult:
    """The result, with the rest of what was printed as its log; raises ToolFailure for every other end.

    Nothing of either shows a secret of `mask`. A consequential tool that was ended in the middle of its work has the
    kind UNKNOWN_OUTCOME, as it has where the engine itself gives up on it.
    """
    stdout = outcome.stdout.decode("utf-8", "replace")
    stderr = outcome.stderr.decode("utf-8", "replace")
    if outcome.end is End.EXITED and outcome.code == 0:
        data, rest = read_output(stdout, output_key)
        log = _streams(mask, rest, stderr)
        return checked(tool.name, ToolResult(data=mask.value(data), log=log))
    raise ToolFailure(_error(tool, outcome, mask, _streams(mask, stdout, stderr)))


def _error(tool: Tool, outcome: Outcome, mask: Mask, printed: str) -> ToolError:
    ending = _ENDINGS[outcome.end]
    words = f"tool {tool.name!r} {ending.detail}"
    if outcome.end is End.EXITED:
        words += f" with exit code {outcome.code}"
    if outcome.end is End.TIMEOUT:
        words += f" of {tool.deadline:g} s"
    note = mask.text(outcome.note).strip().rstrip(".")[:300]
    sentence = f"{words} ({note})." if note else f"{words}."
    kind, public = ending.kind, ending.public
    if tool.consequential and outcome.end not in _KNOWN:
        kind = ToolErrorKind.UNKNOWN_OUTCOME
        cause = "it took too long" if outcome.end is End.TIMEOUT else "it was stopped"
        public = f"{cause}, and it is not known whether it was done; a person has to look"
        sentence += " What it had done by then is not known. It is not run again."
    return ToolError(
        kind=kind, public=public, detail=f"{sentence}\n\n{printed}" if printed else sentence
    )


def _streams(mask: Mask, stdout: str, stderr: str) -> str:
    """What was printed on each stream, under its name; empty where nothing was."""
    parts = (("stdout", stdout), ("stderr", stderr))
    return "\n\n".join(
        f"--- {name} ---\n{_shortened(mask.text(text.strip()))}"
        for name, text in parts
        if text.strip()
    )


def _shortened(text: str) -> str:
    """The end of a long text. Secrets were masked before: half a one is not known any more."""
    if len(text) <= _LONGEST_STREAM:
        return text
    left_out = len(text) - _LONGEST_STREAM
    return f"({left_out:,} characters left out) …{text[left_out:]}"
