"""Measured times beside the declared tier: a tool in the wrong one is flagged, with what to declare instead."""

from datetime import timedelta
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from studio.models import Agent, Session, Tool, ToolCall, Turn
from studio.tool_figures import ENOUGH_CALLS, figures_of, tier_warning

pytestmark = pytest.mark.django_db


@pytest.fixture
def turn() -> Turn:
    session = Session.objects.create(agent=Agent.objects.create(slug="depot", name="Depot"))
    return Turn.objects.create(session=session, number=1)


def warned(turn: Turn, latency: str, *seconds: float, state: str = "done", **options: Any) -> str:
    """What is said of a tool of this tier whose calls took so long."""
    tool = Tool.objects.create(name="look", latency=latency, **options)
    now = timezone.now()
    for number, took in enumerate(seconds):
        ToolCall.objects.create(
            turn=turn,
            iteration=1,
            uid=f"c{number}",
            tool="look",
            arguments={},
            state=state,
            started_at=now - timedelta(seconds=took),
            ended_at=now,
        )
    return tier_warning(tool, figures_of([tool])["look"])


@pytest.mark.parametrize(
    ("latency", "seconds", "fitting"),
    [
        ("fast", 5.1, "Medium: under 15 s"),  # stopped at the bound of its tier
        ("fast", 20, "Slow: under 60 s"),
        ("medium", 15.2, "Slow: under 60 s"),
        ("medium", 0.4, "Fast: under 5 s"),
        ("slow", 1.0, "Fast: under 5 s"),
        ("slow", 6.0, "Medium: under 15 s"),
    ],
)
def test_a_tool_of_the_wrong_tier_is_told_which_one_fits(
    turn: Turn, latency: str, seconds: float, fitting: str
) -> None:
    said = warned(turn, latency, *[seconds] * ENOUGH_CALLS)
    assert f"{seconds:.1f} s" in said
    assert f"declare it “{fitting}”" in said


@pytest.mark.parametrize(
    ("latency", "seconds"),
    [("fast", 0.01), ("fast", 4.9), ("medium", 2.6), ("medium", 14), ("slow", 8), ("slow", 59)],
)
def test_nothing_is_said_of_one_that_keeps_to_its_tier(
    turn: Turn, latency: str, seconds: float
) -> None:
    assert warned(turn, latency, *[seconds] * ENOUGH_CALLS) == ""


def test_a_few_calls_say_nothing(turn: Turn) -> None:
    assert warned(turn, "fast", *[20] * (ENOUGH_CALLS - 1)) == ""


def test_one_slow_call_among_many_says_nothing(turn: Turn) -> None:
    assert warned(turn, "fast", 20, *[0.2] * 30) == ""


def test_what_no_tier_covers_is_to_do_less(turn: Turn) -> None:
    said = warned(turn, "slow", *[60.5] * ENOUGH_CALLS, timeout=300)
    assert "Make it do less at a time." in said


def test_calls_that_somebody_stopped_are_not_measured(turn: Turn) -> None:
    assert warned(turn, "fast", *[20] * ENOUGH_CALLS, state="cancelled") == ""


def test_the_list_and_the_page_of_the_tool_show_the_warning(
    turn: Turn, admin_client: Client
) -> None:
    said = warned(turn, "medium", *[0.4] * ENOUGH_CALLS)
    assert "another tier fits" in admin_client.get("/tools/").content.decode()
    assert said in admin_client.get("/tools/look/").content.decode()
