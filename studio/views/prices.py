"""The price list: what models cost, as people type it in."""

from typing import Any

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import HttpResponse
from django.shortcuts import redirect
from django.utils.translation import gettext as _
from django.views.decorators.http import require_http_methods, require_POST

from studio.access import May, load_price, require
from studio.costs import unpriced_lately
from studio.forms.prices import PriceForm
from studio.http import refused, show
from studio.models import ModelPrice
from studio.views.signed_in import SignedInRequest

_PAGE = "settings/prices.html"


@login_required
@require_http_methods(["GET", "POST"])
def prices(request: SignedInRequest) -> HttpResponse:
    """The list, and below it the form of a new price; `?model=` is written into it."""
    require(request.user, May.MANAGE_CONNECTIONS)
    if request.method == "POST":
        form = PriceForm(request.POST)
        if form.is_valid():
            return _stored(request, form)
        return refused(request, _PAGE, _context(form))
    asked = request.GET.get("model", "").replace("\x00", "")[:120]
    return show(request, _PAGE, _context(PriceForm(initial={"model": asked}), asked=asked))


@login_required
@require_http_methods(["GET", "POST"])
def price(request: SignedInRequest, pk: int) -> HttpResponse:
    """The list with one price in the form."""
    row = load_price(request.user, pk)
    form = PriceForm(request.POST if request.method == "POST" else None, instance=row)
    if request.method == "POST" and form.is_valid():
        return _stored(request, form)
    # A refused form has changed the row that it was made of.
    stored = load_price(request.user, pk)
    if form.errors:
        return refused(request, _PAGE, _context(form, price=stored))
    return show(request, _PAGE, _context(form, price=stored))


@login_required
@require_POST
def price_delete(request: SignedInRequest, pk: int) -> HttpResponse:
    row = load_price(request.user, pk)
    row.delete()
    messages.success(request, _("“%(model)s” is off the list.") % {"model": row.model})
    return redirect("prices")


def _stored(request: SignedInRequest, form: PriceForm) -> HttpResponse:
    row = form.store(request.user)
    messages.success(
        request, _("“%(model)s” has its price. It counts from now on.") % {"model": row.model}
    )
    return redirect("prices")


def _context(form: PriceForm, **more: Any) -> dict[str, Any]:
    return {
        "rows": list(ModelPrice.objects.all()),
        "unpriced": unpriced_lately(),
        "form": form,
        **more,
    }
