"""What a run of scenarios will use and cost, as far as earlier conversations tell: said before it is started."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from django.db.models import Max, Sum

from engine.canonical import JsonObject
from studio.connecting import models_of
from studio.costs import OFFLINE_MODEL, Usage, cost_of
from studio.models import ModelCall, ModelConnection, RunCell, Scenario
from studio.operations.scenario_messages import turn_count

USUAL_TURN: Final = Usage(model="", prompt_tokens=4_000, completion_tokens=300)
"""What a turn is taken to use of which nothing is known; ENGINE.md's scenario stays below 6,000."""
_WRITING = "ComposeReply"


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimate:
    """Of some conversations: `cost` as studio.costs gives it; `guessed` where nothing like them is on record."""

    conversations: int
    tokens: int
    cost: JsonObject
    guessed: bool


def tokens_of(scenarios: Sequence[Scenario], connection: ModelConnection | None) -> dict[str, int]:
    """Scenario uid → the tokens that one conversation of it will use."""
    used, _guessed = _used(scenarios, connection)
    return {
        uid: round(sum(one.prompt_tokens + one.completion_tokens for one in usages))
        for uid, usages in used.items()
    }


def estimate(
    scenarios: Sequence[Scenario],
    *,
    versions: int,
    repeats: int,
    connection: ModelConnection | None,
) -> Estimate:
    """What the scenarios will use against so many versions, so many times each."""
    used, guessed = _used(scenarios, connection)
    times = versions * repeats
    usages = [
        replace(
            one,
            prompt_tokens=one.prompt_tokens * times,
            cached_tokens=one.cached_tokens * times,
            completion_tokens=one.completion_tokens * times,
        )
        for of_scenario in used.values()
        for one in of_scenario
    ]
    return Estimate(
        conversations=len(scenarios) * times,
        tokens=round(sum(one.prompt_tokens + one.completion_tokens for one in usages)),
        cost=cost_of(usages),
        guessed=guessed,
    )


def _used(
    scenarios: Sequence[Scenario], connection: ModelConnection | None
) -> tuple[dict[str, list[Usage]], bool]:
    """By scenario, what its judging and its writing use; and whether some of it had to be guessed."""
    models = models_of(connection)
    judging, writing = models.judging.name, models.writing.name
    if judging == OFFLINE_MODEL:
        return {row.uid: [] for row in scenarios}, False
    like = _sessions_like(scenarios)
    on_record = _on_record(list(like.values()))
    found: dict[str, list[Usage]] = {}
    guessed = False
    for row in scenarios:
        known = on_record.get(like.get(row.uid, 0))
        guessed = guessed or not known
        found[row.uid] = [
            replace(one, model=writing if one.model == _WRITING else judging)
            for one in known or [_usual(turn_count(row))]
        ]
        if row.kind == Scenario.Kind.SIMULATED:
            most = int(row.brief.get("tokens") or 0)
            found[row.uid].append(Usage(model=writing, prompt_tokens=most))
    return found, guessed


def _usual(turns: int) -> Usage:
    return replace(
        USUAL_TURN,
        prompt_tokens=USUAL_TURN.prompt_tokens * turns,
        completion_tokens=USUAL_TURN.completion_tokens * turns,
    )


def _sessions_like(scenarios: Sequence[Scenario]) -> dict[str, int]:
    """Scenario uid → its newest conversation in a run that asked a model, else the session it was kept from."""
    found = {row.uid: row.kept_from_id for row in scenarios if row.kept_from_id}
    suites = {row.suite_id for row in scenarios}
    cells = RunCell.objects.filter(
        run__suite__in=suites,
        scenario__in=[row.uid for row in scenarios],
        prompt_tokens__gt=0,
        session__isnull=False,
    )
    found.update(cells.order_by().values_list("scenario").annotate(newest=Max("session")))
    return found


def _on_record(sessions: Sequence[int]) -> dict[int, list[Usage]]:
    """Session → what was used in it, with the question in place of the model."""
    rows = (
        ModelCall.objects.filter(turn__session__in=sessions)
        .order_by()
        .values_list("turn__session", "question")
        .annotate(
            asked=Sum("prompt_tokens"),
            cached=Sum("cached_tokens"),
            answered=Sum("completion_tokens"),
        )
    )
    found: dict[int, list[Usage]] = defaultdict(list)
    for session, question, asked, cached, answered in rows:
        if asked:
            found[session].append(
                Usage(
                    model=question,
                    prompt_tokens=asked,
                    cached_tokens=cached,
                    completion_tokens=answered,
                )
            )
    return dict(found)
