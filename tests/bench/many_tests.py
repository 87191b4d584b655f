"""An agent with 1,000 guidelines and a suite of 50 scenarios, run against it: every turn judged every guideline.

Run in the studio's own process: `manage.py shell -c "from tests.bench.many_tests import fill; fill()"`.
"""

import random
from typing import Any

from django.db import transaction
from django.utils import timezone

from studio.bridge import agent_spec
from studio.models import (
    Agent,
    Event,
    Expectation,
    Guideline,
    GuidelineMatch,
    JobState,
    RunCell,
    Scenario,
    Session,
    Suite,
    SuiteRun,
    Tool,
    ToolCall,
    Turn,
)
from studio.operations.agents import publish
from studio.operations.run_snapshots import snapshot_of

AGENT = "many-tests"
GUIDELINES, SCENARIOS, TURNS = 1_000, 50, 3


@transaction.atomic
def fill() -> None:
    chance = random.Random(1)
    agent = Agent.objects.create(slug=AGENT, name="Many Tests")
    tools = list(Tool.objects.all()[:8])
    agent.tools.set(tools)
    guidelines = Guideline.objects.bulk_create(
        Guideline(
            agent=agent,
            uid=f"g{place}",
            condition=f"the customer asks for matter {place}",
            action=f"help with matter {place}",
            position=place,
        )
        for place in range(GUIDELINES)
    )
    for place, tool in enumerate(tools):
        guidelines[place].tools.add(tool)
    version = publish(agent, note="Everything.", by=None)
    suite = Suite.objects.create(agent=agent, name="Regression")
    scenarios = Scenario.objects.bulk_create(
        Scenario(suite=suite, title=f"Matter {place}, and what follows", position=place)
        for place in range(SCENARIOS)
    )
    Expectation.objects.bulk_create(
        Expectation(scenario=scenario, data=_expected(f"g{chance.randrange(GUIDELINES)}", wanted))
        for scenario in scenarios
        for wanted in (True, True, True, False, False)
    )
    now = timezone.now()
    run = SuiteRun.objects.create(
        suite=suite,
        against=["published"],
        state=JobState.FINISHED,
        verdict="failed",
        finished_at=now,
        total=SCENARIOS,
        scenarios=snapshot_of(
            suite.scenarios.prefetch_related("expectations"), agent_spec(version)
        ),
    )
    run.versions.add(version)
    for scenario in scenarios:
        session = Session.objects.create(
            agent=agent, purpose=Session.Purpose.TEST, next_turn=TURNS + 1, next_offset=TURNS + 1
        )
        _fill_session(session, version, tools, chance)
        RunCell.objects.create(
            run=run,
            scenario=scenario.uid,
            version=version,
            repeat=1,
            session=session,
            state=RunCell.State.DONE,
            outcomes=[
                {"expectation": uid, "state": state, "because": "Seen.", "turn": 1}
                for uid in scenario.expectations.values_list("uid", flat=True)
                for state in [chance.choice(["held", "held", "failed"])]
            ],
        )


def _expected(guideline: str, wanted: bool) -> dict[str, Any]:
    return {"kind": "guideline", "guideline": guideline, "matches": wanted}


def _fill_session(session: Session, version: Any, tools: list[Tool], chance: random.Random) -> None:
    now = timezone.now()
    for number in range(1, TURNS + 1):
        turn = Turn.objects.create(
            session=session,
            number=number,
            first_offset=number,
            state=Turn.State.FINISHED,
            version=version,
            finished_at=now,
        )
        Event.objects.create(
            session=session,
            turn=turn,
            offset=number,
            kind="message",
            source="customer",
            data={"text": f"I need help with matter {number}, please."},
        )
        GuidelineMatch.objects.bulk_create(
            GuidelineMatch(
                turn=turn,
                guideline=f"g{place}",
                state="matched" if chance.random() < 0.005 else "not_matched",
                because="The customer does not ask for this in the last message.",
                started_at=now,
                ended_at=now,
            )
            for place in range(GUIDELINES)
        )
        ToolCall.objects.create(
            turn=turn, uid="c1", tool=tools[0].name, state="done", started_at=now, ended_at=now
        )
