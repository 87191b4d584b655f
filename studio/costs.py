"""What model calls cost, at the prices that stand in the price list today.

A cost is a dictionary of plain values, as the audit holds it: `amounts` [{"currency", "amount"}] with exact decimal
strings, one for each currency, and `unpriced` [{"model", "calls"}] with the models that have no price.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from django.db.models import Count, Q, QuerySet, Sum

from engine.canonical import JsonObject
from studio.models import ModelCall, ModelPrice, Session, Turn

ANY = "*"
OFFLINE_MODEL = "offline"  # engine.model.offline: it runs in the studio and costs nothing
_PER = Decimal(1_000_000)
_LATEST_TURNS = 2_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Usage:
    """What one model was asked and answered, in tokens; `cached` ones are among those of the prompt."""

    model: str
    calls: int = 1
    prompt_tokens: float = 0
    cached_tokens: float = 0
    completion_tokens: float = 0


class PriceList:
    """The prices of today. A model's own name wins over a beginning with “*”, and a longer beginning over a shorter."""

    def __init__(self, prices: Iterable[ModelPrice]) -> None:
        self._named: dict[str, ModelPrice] = {}
        self._beginning: dict[str, ModelPrice] = {}
        for price in prices:
            if price.model.endswith(ANY):
                self._beginning[price.model.removesuffix(ANY)] = price
            else:
                self._named[price.model] = price

    @classmethod
    def today(cls) -> "PriceList":
        return cls(ModelPrice.objects.all())

    def price_of(self, model: str) -> ModelPrice | None:
        if model in self._named:
            return self._named[model]
        fitting = [start for start in self._beginning if model.startswith(start)]
        return self._beginning[max(fitting, key=len)] if fitting else None

    def cost(self, usages: Iterable[Usage]) -> JsonObject:
        amounts: dict[str, Decimal] = defaultdict(Decimal)
        unpriced: Counter[str] = Counter()
        for usage in usages:
            if _is_free(usage):
                continue
            price = self.price_of(usage.model)
            if price is None:
                unpriced[usage.model] += usage.calls
            else:
                amounts[price.currency] += _amount(usage, price)
        return {
            "amounts": [
                {"currency": currency, "amount": plain(amounts[currency])}
                for currency in sorted(amounts)
            ],
            "unpriced": [{"model": name, "calls": unpriced[name]} for name in sorted(unpriced)],
        }


def _is_free(usage: Usage) -> bool:
    return usage.model == OFFLINE_MODEL or not (usage.prompt_tokens or usage.completion_tokens)


def _amount(usage: Usage, price: ModelPrice) -> Decimal:
    cached_price = price.input_price if price.cached_price is None else price.cached_price
    asked, answered = Decimal(usage.prompt_tokens), Decimal(usage.completion_tokens)
    cached = min(Decimal(usage.cached_tokens), asked)
    asked_for = (asked - cached) * price.input_price + cached * cached_price
    return (asked_for + answered * price.output_price) / _PER


def plain(amount: Decimal) -> str:
    """Without an exponent and without needless zeros: "0.00125", "20"."""
    text = f"{amount:f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def cost_of(usages: Iterable[Usage]) -> JsonObject:
    """At most one query: none where nothing costs anything."""
    used = [usage for usage in usages if not _is_free(usage)]
    return (PriceList.today() if used else PriceList([])).cost(used)


def cost_of_calls(model_calls: Iterable[Mapping[str, Any]]) -> JsonObject:
    """Of the model calls of an audit, attempts that failed and answers that nobody used included: they are paid too."""
    return cost_of(
        Usage(
            model=call["model"],
            prompt_tokens=call["prompt_tokens"],
            cached_tokens=call["cached_tokens"],
            completion_tokens=call["completion_tokens"],
        )
        for call in model_calls
    )


def cost_of_turns(turns: QuerySet[Turn]) -> JsonObject:
    """Of all model calls of these turns, in two queries."""
    return cost_of(usage for _key, usage in _used(ModelCall.objects.filter(turn__in=turns)))


def costs_of_sessions(sessions: Iterable[int]) -> dict[int, JsonObject]:
    """Session pk → the cost of its own turns, without those that it goes on from; two queries."""
    used: dict[int, list[Usage]] = {pk: [] for pk in sessions}
    calls = ModelCall.objects.filter(turn__session__in=list(used))
    for pk, usage in _used(calls, by="turn__session"):
        used[pk].append(usage)
    prices = PriceList.today()
    return {pk: prices.cost(usages) for pk, usages in used.items()}


def unpriced_lately() -> list[JsonObject]:
    """Models of the chats' newest turns that have no price, those with the most calls first: [{"model", "calls"}]."""
    chats = Turn.objects.filter(session__purpose=Session.Purpose.CHAT)
    newest = chats.order_by("-pk").values_list("pk", flat=True)[:_LATEST_TURNS]
    used = _used(ModelCall.objects.filter(turn__in=newest))
    found: list[JsonObject] = cost_of(usage for _key, usage in used)["unpriced"]
    return sorted(found, key=lambda one: -one["calls"])


def _used(calls: QuerySet[ModelCall], by: str = "") -> Iterable[tuple[Any, Usage]]:
    """What each model used, apart for each value of the field `by`."""
    told = Q(prompt_tokens__gt=0) | Q(completion_tokens__gt=0)
    rows = calls.order_by().values(*filter(None, (by, "model")))
    for row in rows.annotate(
        told=Count("pk", filter=told),
        asked=Sum("prompt_tokens"),
        cached=Sum("cached_tokens"),
        answered=Sum("completion_tokens"),
    ):
        yield (
            row[by] if by else None,
            Usage(
                model=row["model"],
                calls=row["told"],
                prompt_tokens=row["asked"],
                cached_tokens=row["cached"],
                completion_tokens=row["answered"],
            ),
        )
