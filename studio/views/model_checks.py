"""Checks of a connection's model: started, watched, stopped, and their proposal taken over."""

from typing import Any

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import HttpResponse
from django.shortcuts import redirect
from django.utils import timezone
from django.utils.translation import gettext as _
from django.views.decorators.http import require_GET, require_POST

from engine.model.check import Kind, Report
from studio.access import load_connection, load_model_check
from studio.http import show
from studio.models import ModelCheck
from studio.operations.model_checks import (
    NoProposalError,
    apply_proposal,
    result_of,
    start_check,
)
from studio.views.signed_in import SignedInRequest


@login_required
@require_POST
def checks(request: SignedInRequest, pk: int) -> HttpResponse:
    """Begin a check, or go to the one that runs."""
    connection = load_connection(request.user, pk)
    row = start_check(connection, by=request.user)
    return redirect("connection-check", pk=pk, number=row.pk)


@login_required
@require_GET
def check_page(request: SignedInRequest, pk: int, number: int) -> HttpResponse:
    ModelCheck.objects.give_up_lost()
    row = load_model_check(request.user, pk, number)
    return show(request, "settings/connection_check.html", _context(row), part="state")


@login_required
@require_POST
def check_stop(request: SignedInRequest, pk: int, number: int) -> HttpResponse:
    row = load_model_check(request.user, pk, number)
    if not row.request_stop():
        messages.info(request, _("The check is over already."))
    return redirect("connection-check", pk=pk, number=number)


@login_required
@require_POST
def check_proposal(request: SignedInRequest, pk: int, number: int) -> HttpResponse:
    """The connection asks from now on as the check proposes."""
    row = load_model_check(request.user, pk, number)
    try:
        connection = apply_proposal(row)
    except NoProposalError as error:
        messages.error(request, str(error))
        return redirect("connection-check", pk=pk, number=number)
    messages.success(
        request,
        _("“%(name)s” is now asked with batch size %(size)d, %(style)s. The next turn uses it.")
        % {
            "name": connection.name,
            "size": connection.batch_size,
            "style": connection.judging_style,
        },
    )
    return redirect("connection", pk=pk)


def _context(row: ModelCheck) -> dict[str, Any]:
    result = result_of(row)
    proposal = result.proposal if row.is_over else None
    connection = row.connection
    left = _seconds_left(row, result)
    return {
        "check": row,
        "connection": connection,
        "result": result,
        "rows": [(each, each.setting.kind is Kind.GUIDELINES) for each in result.rows],
        "proposal": proposal,
        "applied": proposal is not None
        and (connection.batch_size, connection.judging_style)
        == (proposal.batch_size, proposal.style.value),
        "left": left,
        "left_minutes": round((left or 0) / 60),
    }


def _seconds_left(row: ModelCheck, result: Report) -> int | None:
    """An estimate from the questions asked so far, in whole seconds; None where nothing can be said yet."""
    asked = sum(each.questions for each in result.rows)
    if row.is_over or row.started_at is None or asked < _ENOUGH:
        return None
    spent = (timezone.now() - row.started_at).total_seconds()
    total = sum(each.total for each in result.rows)
    return max(0, round(spent / asked * (total - asked)))


_ENOUGH = 5
