"""Many recorded sessions for the benchmark of replays: the demo's own, copied row by row."""

import copy
from typing import Any

from django.db import transaction

from studio.models import (
    Adherence,
    ChoicesOffered,
    Event,
    GuidelineMatch,
    ModelCall,
    Session,
    ToolCall,
    ToolDecision,
    ToolInsight,
    Turn,
)

_OF_TURNS: tuple[Any, ...] = (
    Event,
    GuidelineMatch,
    ToolDecision,
    ToolCall,
    ToolInsight,
    ModelCall,
    ChoicesOffered,
    Adherence,
)


@transaction.atomic
def copy_sessions(agent: str, wanted: int) -> None:
    """Until the agent has as many sessions; those that it has are copied in turn."""
    originals = list(Session.objects.filter(agent__slug=agent).order_by("pk"))
    for number in range(wanted - len(originals)):
        _copy(originals[number % len(originals)])


def _copy(original: Session) -> None:
    session = _as_new(original)
    session.save()
    turns = {}
    for turn in Turn.objects.filter(session=original).order_by("number"):
        new = _as_new(turn)
        new.session = session
        new.save()
        Turn.objects.filter(pk=new.pk).update(created_at=turn.created_at)
        turns[turn.pk] = new
    for model in _OF_TURNS:
        rows = []
        for row in model.objects.filter(turn__in=list(turns)).order_by("pk"):
            new = _as_new(row)
            new.turn = turns[row.turn_id]
            if model is Event:
                new.session = session
            rows.append(new)
        model.objects.bulk_create(rows)


def _as_new(row: Any) -> Any:
    new = copy.copy(row)
    new._state = copy.copy(row._state)
    new.pk = None
    new._state.adding = True
    return new
