"""The form of a model's price, for its page and for the API."""

from collections.abc import Mapping
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from django import forms
from django.core.exceptions import ValidationError
from django.utils.translation import gettext_lazy

from engine.canonical import JsonObject
from studio.costs import plain
from studio.forms.base import RowForm
from studio.models import ModelPrice
from studio.operations.prices import save_price, usual_currency, why_no_currency, why_no_model

if TYPE_CHECKING:
    from django.contrib.auth.models import User

_AMOUNT_ERRORS = {
    "required": gettext_lazy("Give the price of a million tokens; 0 where they cost nothing."),
    "min_value": gettext_lazy("A price is 0 or more."),
}
_FIGURE = {"inputmode": "decimal", "autocomplete": "off"}


def price_json(price: ModelPrice) -> JsonObject:
    """What `PriceForm.from_json` reads; amounts are strings, so that none is rounded."""
    return {
        "model": price.model,
        "input_price": plain(price.input_price),
        "cached_price": None if price.cached_price is None else plain(price.cached_price),
        "output_price": plain(price.output_price),
        "currency": price.currency,
    }


class _Amount(forms.DecimalField):
    """Shown as it was typed in, without the zeros that the database keeps behind it."""

    def prepare_value(self, value: Any) -> Any:
        return plain(value) if isinstance(value, Decimal) else value


class PriceForm(RowForm[ModelPrice]):
    class Meta:
        model = ModelPrice
        fields = ["model", "input_price", "cached_price", "output_price", "currency"]
        field_classes = dict.fromkeys(("input_price", "cached_price", "output_price"), _Amount)
        labels = {
            "model": gettext_lazy("Model"),
            "input_price": gettext_lazy("Input"),
            "cached_price": gettext_lazy("Cached input"),
            "output_price": gettext_lazy("Output"),
            "currency": gettext_lazy("Currency"),
        }
        error_messages = dict.fromkeys(
            ("input_price", "cached_price", "output_price"), _AMOUNT_ERRORS
        )
        help_texts = {
            "model": gettext_lazy("Its name, or the beginning of it with “*” at the end: gpt-4o*"),
            "input_price": gettext_lazy("Per million tokens."),
            "cached_price": gettext_lazy("Per million tokens; empty: as other input."),
            "output_price": gettext_lazy("Per million tokens."),
        }
        widgets = {
            "model": forms.TextInput({"autocomplete": "off", "spellcheck": "false"}),
            "input_price": forms.TextInput(_FIGURE),
            "cached_price": forms.TextInput(_FIGURE),
            "output_price": forms.TextInput(_FIGURE),
            "currency": forms.TextInput({"autocomplete": "off", "size": 4}),
        }

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        if self.instance.pk is None:
            self.initial["currency"] = usual_currency()

    @classmethod
    def from_json(
        cls, payload: Mapping[str, Any], instance: ModelPrice | None = None
    ) -> "PriceForm":
        now = price_json(instance) if instance is not None else {}
        return cls({**now, **payload}, instance=instance)

    def clean_model(self) -> str:
        name: str = self.cleaned_data["model"]
        if why := why_no_model(name):
            raise ValidationError(why, code="model")
        return name

    def clean_currency(self) -> str:
        code: str = self.cleaned_data["currency"].upper()
        if why := why_no_currency(code):
            raise ValidationError(why, code="currency")
        return code

    def store(self, by: "User") -> ModelPrice:
        return save_price(self.instance, by=by)
