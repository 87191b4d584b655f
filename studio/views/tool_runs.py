"""Running a tool by hand: its form, a run while and after it runs, the examples that are kept."""

import json
from typing import Any

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import HttpResponse
from django.shortcuts import get_object_or_404, redirect
from django.urls import reverse
from django.utils import timezone
from django.utils.translation import gettext as _
from django.views.decorators.http import require_GET, require_http_methods, require_POST
from django_htmx.http import HttpResponseClientRedirect

from studio.access import May, load_tool, load_tool_run
from studio.bridge import compile_tool
from studio.forms.arguments import MODE, ArgumentsForm, ExampleForm, RunForm
from studio.forms.schema_inputs import RowsInput
from studio.http import is_part, refused, show
from studio.models import Tool, ToolRun
from studio.operations.hand_calls import ArgumentsRefusedError
from studio.operations.tool_trials import (
    ExampleNameTakenError,
    TooManyExamplesError,
    keep_example,
    start_run,
)
from studio.views.signed_in import SignedInRequest

_PAGE = "tools/run_form.html"
_SHOWN_RUNS = 20
_LONGEST_NUMBER = 18
_FOR_TURNS = ("control", "canned_responses", "canned_response_fields", "guidelines")
_SWITCH = "switch"  # the button that shows the other form of the arguments


@login_required
@require_http_methods(["GET", "POST"])
def run_form(request: SignedInRequest, name: str) -> HttpResponse:
    """What to run the tool with; sending it starts a run."""
    tool = load_tool(request.user, name, May.MANAGE_TOOLS)
    if request.method == "GET":
        return _begin(request, tool)
    arguments = ArgumentsForm(compile_tool(tool), request.POST)
    asked = {"customer": request.POST.get("customer", ""), "sure": "sure" in request.POST}
    if _SWITCH in request.POST:
        return _form(request, tool, arguments.in_the_other_form(), initial=asked)
    if RowsInput.MORE in request.POST:
        return _form(request, tool, arguments, initial=asked)
    form = RunForm(request.POST, consequential=tool.consequential)
    if not (arguments.is_valid() & form.is_valid()):
        context = _context(tool, arguments, form)
        return refused(request, _PAGE, context, part="form")
    row = start_run(
        tool,
        arguments.arguments,
        by=request.user.username,
        customer=form.cleaned_data["customer"],
    )
    return _go_to(request, row)


def _begin(request: SignedInRequest, tool: Tool) -> HttpResponse:
    """An empty form, or one with the arguments of an earlier run or of an example."""
    given, initial = {}, {}
    if number := _number(request, "again"):
        earlier = get_object_or_404(tool.runs.select_related("customer"), pk=number)
        given = earlier.arguments
        initial = {"customer": earlier.customer.uid if earlier.customer else ""}
    elif number := _number(request, "example"):
        given = get_object_or_404(tool.run_examples, pk=number).arguments
    as_json = request.GET.get(MODE) == "json"
    arguments = ArgumentsForm(compile_tool(tool), arguments=given, as_json=as_json)
    return _form(request, tool, arguments, initial=initial)


def _number(request: SignedInRequest, name: str) -> int:
    """A row's number in the address; 0 where there is none."""
    text = request.GET.get(name, "")
    return int(text) if text.isdecimal() and len(text) < _LONGEST_NUMBER else 0


def _form(
    request: SignedInRequest, tool: Tool, arguments: ArgumentsForm, *, initial: dict[str, Any]
) -> HttpResponse:
    form = RunForm(consequential=tool.consequential, initial=initial)
    return show(request, _PAGE, _context(tool, arguments, form), part="form")


def _context(tool: Tool, arguments: ArgumentsForm, form: RunForm) -> dict[str, Any]:
    return {
        "tool": tool,
        "limit": f"{compile_tool(tool).deadline:g}",
        "arguments": arguments,
        "form": form,
        "MODE": MODE,
        "SWITCH": _SWITCH,
        "examples": list(tool.run_examples.all()),
        "runs": list(tool.runs.select_related("customer").defer("log", "result")[:_SHOWN_RUNS]),
    }


def _go_to(request: SignedInRequest, row: ToolRun) -> HttpResponse:
    address = reverse("tool-run", args=[row.tool.name, row.pk])
    return HttpResponseClientRedirect(address) if is_part(request) else redirect(address)


@login_required
@require_GET
def run_page(request: SignedInRequest, name: str, pk: int) -> HttpResponse:
    ToolRun.objects.give_up_lost()
    row = load_tool_run(request.user, name, pk)
    return show(request, "tools/run.html", _run_context(row, ExampleForm()), part="run")


def _run_context(row: ToolRun, form: ExampleForm) -> dict[str, Any]:
    result = row.result or {}
    return {
        "run": row,
        "tool": row.tool,
        "result": result,
        "extras": {name: result[name] for name in _FOR_TURNS if result.get(name)},
        "is_text": isinstance(result.get("data"), str),
        "raw": json.dumps(result.get("data"), ensure_ascii=False, indent=2),
        "elapsed_ms": _elapsed(row),
        "example_form": form,
    }


def _elapsed(row: ToolRun) -> int | None:
    """Milliseconds since it began to run; None before that."""
    if row.started_at is None:
        return None
    return round(((row.finished_at or timezone.now()) - row.started_at).total_seconds() * 1000)


@login_required
@require_POST
def run_stop(request: SignedInRequest, name: str, pk: int) -> HttpResponse:
    row = load_tool_run(request.user, name, pk)
    if not row.request_stop():
        messages.info(request, _("The run is over already."))
    return redirect("tool-run", name=name, pk=pk)


@login_required
@require_POST
def run_example(request: SignedInRequest, name: str, pk: int) -> HttpResponse:
    """Keep the arguments of the run as an example."""
    row = load_tool_run(request.user, name, pk)
    form = ExampleForm(request.POST)
    if form.is_valid():
        try:
            example = keep_example(
                row.tool, form.cleaned_data["name"], row.arguments, by=request.user.username
            )
        except (ExampleNameTakenError, TooManyExamplesError) as error:
            form.add_error("name", str(error))
        else:
            messages.success(request, _("Kept as “%(name)s”.") % {"name": example.name})
            return redirect("tool-run-form", name=name)
    return show(request, "tools/run.html", _run_context(row, form), part="run", status=422)


@login_required
@require_POST
def example_run(request: SignedInRequest, name: str, pk: int) -> HttpResponse:
    """Run the tool with the arguments of an example; one that changes something is run from its form alone."""
    tool = load_tool(request.user, name, May.MANAGE_TOOLS)
    example = get_object_or_404(tool.run_examples, pk=pk)
    form = f"{reverse('tool-run-form', args=[name])}?example={pk}"
    if tool.consequential:
        messages.info(request, _("It changes something: look at the arguments, and run it here."))
        return redirect(form)
    try:
        row = start_run(tool, example.arguments, by=request.user.username)
    except ArgumentsRefusedError:
        messages.error(
            request, _("The tool has changed since: these arguments no longer fit. Correct them.")
        )
        return redirect(form)
    return _go_to(request, row)


@login_required
@require_POST
def example_delete(request: SignedInRequest, name: str, pk: int) -> HttpResponse:
    tool = load_tool(request.user, name, May.MANAGE_TOOLS)
    example = get_object_or_404(tool.run_examples, pk=pk)
    example.delete()
    messages.success(request, _("The example “%(name)s” is deleted.") % {"name": example.name})
    return redirect("tool-run-form", name=name)
