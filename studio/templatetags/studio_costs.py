"""What model calls cost, as people read it."""

from collections.abc import Mapping
from decimal import ROUND_HALF_UP, Decimal
from typing import Any

from django import template
from django.utils import formats
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from studio.costs import plain

register = template.Library()

_LEAST = Decimal("0.000001")


@register.filter
def money(cost: Mapping[str, Any] | None) -> str:
    """“0.0012 USD”, each currency for itself; empty where nothing has a price."""
    amounts = cost["amounts"] if cost else ()
    return " + ".join(f"{_figure(Decimal(one['amount']))} {one['currency']}" for one in amounts)


@register.filter
def price(amount: Decimal | None) -> str:
    """A price of the list as it was typed in, without needless zeros."""
    return "" if amount is None else str(formats.localize(Decimal(plain(amount))))


@register.filter
def unpriced(cost: Mapping[str, Any] | None) -> str:
    """“2 calls of gpt-x have no price.” for each model without one; empty where all have."""
    return " ".join(
        ngettext(
            "%(calls)d call of %(model)s has no price.",
            "%(calls)d calls of %(model)s have no price.",
            one["calls"],
        )
        % one
        for one in (cost["unpriced"] if cost else ())
    )


def _figure(amount: Decimal) -> str:
    """Two decimals; of what is less than one, the first two digits that say something."""
    if not amount:
        return "0"
    if amount < _LEAST:
        return _("less than %(least)s") % {"least": formats.number_format(_LEAST)}
    places = max(2, 1 - amount.adjusted())
    rounded = amount.quantize(Decimal(1).scaleb(-places), ROUND_HALF_UP)
    return str(formats.number_format(rounded, places, use_l10n=True))
