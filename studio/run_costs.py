"""What a run of a suite cost, at today's prices."""

from collections import defaultdict
from collections.abc import Iterable
from decimal import Decimal

from engine.canonical import JsonObject
from studio.costs import Usage, cost_of, cost_of_turns, plain
from studio.models import SuiteRun, Turn


def cost_of_run(run: SuiteRun) -> JsonObject:
    """As studio.costs gives it: of the turns, of simulated customers, and of what judged."""
    turns = Turn.objects.filter(session__in=run.cells.values("session"))
    beside = run.cells.exclude(model_calls=[]).values_list("model_calls", flat=True)
    by_itself = cost_of(_usage(call) for calls in beside for call in calls)
    return _together([cost_of_turns(turns), by_itself])


def _usage(call: JsonObject) -> Usage:
    return Usage(
        model=call["model"],
        prompt_tokens=call["prompt_tokens"],
        cached_tokens=call["cached_tokens"],
        completion_tokens=call["completion_tokens"],
    )


def _together(costs: Iterable[JsonObject]) -> JsonObject:
    amounts: dict[str, Decimal] = defaultdict(Decimal)
    unpriced: dict[str, int] = defaultdict(int)
    for cost in costs:
        for one in cost["amounts"]:
            amounts[one["currency"]] += Decimal(one["amount"])
        for one in cost["unpriced"]:
            unpriced[one["model"]] += one["calls"]
    return {
        "amounts": [
            {"currency": currency, "amount": plain(amounts[currency])}
            for currency in sorted(amounts)
        ],
        "unpriced": [{"model": model, "calls": unpriced[model]} for model in sorted(unpriced)],
    }
