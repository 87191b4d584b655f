"""A studio after years of use: 1,000 guidelines, 10,000 sessions, 100,000 events, with their trails.

Run in the studio's own process: `manage.py shell -c "from tests.bench.many_rows import fill; fill()"`.
"""

import random
from datetime import timedelta

from django.db import transaction
from django.utils import timezone

from studio.models import (
    Agent,
    Event,
    Guideline,
    GuidelineMatch,
    ModelCall,
    Session,
    Tool,
    ToolCall,
    ToolDecision,
    Turn,
)
from studio.operations.agents import publish

AGENT = "many-rows"
GUIDELINES, SESSIONS, TURNS = 1_000, 10_000, 3
_WORDS = (
    "account balance card money order invoice parcel refund please could you what when today "
    "month branch phone number thanks hello question problem loan interest payment confirm cancel"
).split()


@transaction.atomic
def fill() -> None:
    chance = random.Random(1)
    agent = Agent.objects.create(slug=AGENT, name="Many Rows")
    tools = list(Tool.objects.all()[:8])
    agent.tools.set(tools)
    Guideline.objects.bulk_create(
        Guideline(
            agent=agent,
            uid=f"g{place}",
            condition=f"the customer asks for matter {place}",
            action=f"help with matter {place}",
            position=place,
        )
        for place in range(GUIDELINES)
    )
    version = publish(agent, note="Everything.", by=None)
    now = timezone.now()
    events_each = 3 * TURNS + 1
    sessions = Session.objects.bulk_create(
        [
            Session(
                agent=agent,
                last_event_at=now - timedelta(minutes=place),
                next_turn=TURNS + 1,
                next_offset=events_each + 1,
            )
            for place in range(SESSIONS)
        ]
    )
    turns = Turn.objects.bulk_create(
        [
            Turn(
                session=session,
                number=number,
                first_offset=3 * number - 2,
                state=Turn.State.FAILED if chance.random() < 0.02 else Turn.State.FINISHED,
                version=version,
                finished_at=now,
            )
            for session in sessions
            for number in range(1, TURNS + 1)
        ]
    )
    _fill_events(turns, sessions, chance)
    _fill_trails(turns, tools, chance)


def _fill_events(turns: list[Turn], sessions: list[Session], chance: random.Random) -> None:
    def said() -> dict[str, str]:
        return {"text": " ".join(chance.choices(_WORDS, k=12))}

    def of_turn(turn: Turn) -> list[Event]:
        told = (
            ("message", "customer", said()),
            ("status", "agent", {"phase": "matching", "count": 40}),
            ("message", "agent", said()),
        )
        return [
            Event(
                session_id=turn.session_id,
                turn=turn,
                offset=turn.first_offset + place,
                kind=kind,
                source=source,
                data=data,
            )
            for place, (kind, source, data) in enumerate(told)
        ]

    Event.objects.bulk_create([event for turn in turns for event in of_turn(turn)])
    Event.objects.bulk_create(
        Event(
            session=session,
            offset=3 * TURNS + 1,
            kind="mode",
            source="operator",
            data={"mode": "auto"},
        )
        for session in sessions
    )


def _fill_trails(turns: list[Turn], tools: list[Tool], chance: random.Random) -> None:
    now = timezone.now()
    GuidelineMatch.objects.bulk_create(
        GuidelineMatch(
            turn=turn,
            guideline=f"g{chance.randrange(GUIDELINES)}",
            state=chance.choice(["matched", "not_matched", "not_matched"]),
            because="The customer says so in the last message.",
            started_at=now,
            ended_at=now,
        )
        for turn in turns
        for _ in range(10)
    )
    ToolDecision.objects.bulk_create(
        ToolDecision(
            turn=turn,
            guideline=f"g{chance.randrange(GUIDELINES)}",
            tool=chance.choice(tools).name,
            state=chance.choice(["NEEDS_TO_RUN", "NEEDS_TO_RUN", "CANNOT_RUN"]),
            because="The guideline calls for it.",
            started_at=now,
        )
        for turn in turns
    )
    ToolCall.objects.bulk_create(
        ToolCall(
            turn=turn,
            uid="c1",
            tool=chance.choice(tools).name,
            state="done",
            started_at=now,
            ended_at=now,
            result={"data": {"rows": ["x" * 40] * 10}, "metadata": {}},
        )
        for turn in turns
    )
    ModelCall.objects.bulk_create(
        ModelCall(
            turn=turn,
            uid=f"m{place}",
            question=question,
            model="small",
            prompt_version="1",
            request_key=f"{turn.pk}-{place}",
            prompt_tokens=900,
            completion_tokens=50,
            started_at=now,
            ended_at=now,
        )
        for turn in turns
        for place, question in enumerate(("match_guidelines", "compose_reply"))
    )
