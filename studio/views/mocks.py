"""What tools answer in a session whose tools are mocked: a value written by hand, or a failure."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.translation import gettext as _
from django.views.decorators.http import require_http_methods

from engine.errors import ToolErrorKind
from engine.tools.results import MAX_RESULT_BYTES
from studio.access import May, allowed, load_session
from studio.forms.written_values import UnreadableError, json_of
from studio.models import Session, ToolMock
from studio.operations.tool_modes import (
    MockRefusedError,
    last_real_result,
    mocks_of,
    remove_mock,
    save_mock,
    tools_of,
)
from studio.views.signed_in import SignedInRequest

_RESULT = "result"
_ANY_JSON: dict[str, Any] = {"type": ["object", "array", "number", "boolean", "null"]}


@dataclass(frozen=True, slots=True, kw_only=True)
class MockedTool:
    """A tool with what it answers, as the page shows it; `text` is what stands in its field."""

    name: str
    about: str
    consequential: bool = False
    known: bool = True  # does the agent still have it
    mock: ToolMock | None = None
    answer: str = _RESULT  # or a failure's kind
    text: str = ""
    error: str = ""
    taken: str = ""  # in which turn the tool gave what stands in the field


@login_required
@require_http_methods(["GET", "POST"])
def session_mocks(request: SignedInRequest, pk: int) -> HttpResponse:
    """The agent's tools with their mocks. POST keeps that of `tool`, or removes it where `remove` is given.

    `?take=<tool>` puts the last result that the tool really gave into its field; nothing is kept by that.
    """
    session = load_session(request.user, pk, May.CONVERSE if request.method == "POST" else May.VIEW)
    if request.method == "GET":
        return _page(request, session, taking=request.GET.get("take", ""))
    tool = request.POST.get("tool", "")
    found = {each.name: each for each in _tools_of(session)}
    if tool not in found:
        messages.error(
            request, _("This agent has no tool “%(name)s”.") % {"name": tool.replace("\x00", "")}
        )
        return _page(request, session, status=422)
    if "remove" in request.POST:
        remove_mock(session, tool)
        messages.success(request, _("The mock of “%(name)s” is removed.") % {"name": tool})
        return redirect("session-mocks", pk=pk)
    try:
        _keep(request, session, tool)
    except MockRefusedError as refusal:
        return _page(request, session, refused={tool: str(refusal)}, status=422)
    messages.success(
        request, _("Kept: “%(name)s” answers this from the next turn on.") % {"name": tool}
    )
    return redirect(reverse("session-mocks", args=[pk]) + f"#tool-{tool}")


def _keep(request: SignedInRequest, session: Session, tool: str) -> None:
    answer = request.POST.get("answer", _RESULT)
    by = request.user.get_username()
    if answer != _RESULT:
        save_mock(session, tool, failure=answer, by=by)
        return
    save_mock(session, tool, data=_value(request.POST.get("data", "")), by=by)


def _value(text: str) -> Any:
    if not text.strip():
        raise MockRefusedError(
            _('Write what the tool answers, as JSON: for example {"balance": 412.60}.')
        )
    if len(text) > MAX_RESULT_BYTES:
        raise MockRefusedError(
            _("This has %(count)d characters; at most %(limit)d can be a result.")
            % {"count": len(text), "limit": MAX_RESULT_BYTES}
        )
    try:
        return json_of(text.strip(), _ANY_JSON)
    except UnreadableError as error:
        raise MockRefusedError(_("What you wrote %(why)s.") % {"why": error}) from error


def _page(
    request: SignedInRequest,
    session: Session,
    *,
    taking: str = "",
    refused: Mapping[str, str] | None = None,
    status: int = 200,
) -> HttpResponse:
    context = {
        "session": session,
        "tools": [
            _shown(request, session, each, taking, refused or {}) for each in _tools_of(session)
        ],
        "failures": list(ToolErrorKind),
        "may_converse": allowed(request.user, May.CONVERSE),
        "mocked": session.tool_mode == Session.ToolMode.MOCK,
    }
    return render(request, "sandbox/mocks.html", context, status=status)


def _shown(
    request: SignedInRequest,
    session: Session,
    tool: MockedTool,
    taking: str,
    refused: Mapping[str, str],
) -> MockedTool:
    """With what was sent where it was refused, with the last real result where that was asked for."""
    if tool.name in refused:
        sent, answer = request.POST.get("data", ""), request.POST.get("answer", _RESULT)
        return replace(tool, text=sent, answer=answer, error=refused[tool.name])
    if tool.name != taking:
        return tool
    real = last_real_result(session, tool.name)
    if real is None or real.result is None:
        none = _("The tool has given no result yet in sessions of this agent: run it live once.")
        return replace(tool, error=none)
    place = _("session #%(session)d, turn %(turn)d") % {
        "session": real.turn.session_id,
        "turn": real.turn.number,
    }
    return replace(tool, text=_written(real.result["data"]), answer=_RESULT, taken=place)


def _tools_of(session: Session) -> list[MockedTool]:
    """The tools of what the session's next turn runs on; then mocks of tools that the agent no longer has."""
    mocks = {row.tool: row for row in mocks_of(session)}
    found = [
        _with(
            mocks.pop(tool.name, None),
            MockedTool(name=tool.name, about=tool.description, consequential=tool.consequential),
        )
        for tool in tools_of(session)
    ]
    gone = [_with(row, MockedTool(name=name, about="", known=False)) for name, row in mocks.items()]
    return found + gone


def _with(mock: ToolMock | None, tool: MockedTool) -> MockedTool:
    if mock is None:
        return tool
    text = "" if mock.failure else _written(mock.data)
    return replace(tool, mock=mock, answer=mock.failure or _RESULT, text=text)


def _written(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, indent=2)
