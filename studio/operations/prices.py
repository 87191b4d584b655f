"""The price list: what may stand in it, and writing it."""

import re
from typing import TYPE_CHECKING

from django.utils.translation import gettext as _

from studio.models import ModelPrice

if TYPE_CHECKING:
    from django.contrib.auth.models import User

_CURRENCY = re.compile(r"[A-Z]{3}")


def why_no_model(name: str) -> str:
    """Why `name` names no model and no beginning of one; empty where it does."""
    if "*" in name[:-1]:
        return _("“*” stands only at the end: gpt-4o* is every model whose name begins so.")
    if any(letter.isspace() for letter in name):
        return _("A model's name has no spaces: write it as the model connection does.")
    return ""


def why_no_currency(code: str) -> str:
    if _CURRENCY.fullmatch(code):
        return ""
    return _("Write the three letters of the currency, such as USD or EUR.")


def usual_currency() -> str:
    """The one that was used last."""
    last = ModelPrice.objects.order_by("-updated_at").values_list("currency", flat=True).first()
    return last or "USD"


def save_price(price: ModelPrice, *, by: "User") -> ModelPrice:
    price.updated_by = by.get_username()
    price.save()
    return price
