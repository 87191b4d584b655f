"""The time is told where the customer is, and a wrong name of a zone is said to be wrong."""

from datetime import UTC, datetime
from typing import Any

import pytest

from engine.errors import ToolFailure
from engine.tools.base import ToolContext
from engine.tools.builtin import get_datetime as module
from engine.tools.builtin.get_datetime import get_datetime

NOON = datetime(2026, 11, 21, 12, 5, 9, tzinfo=UTC)


def make_context(**overrides: Any) -> ToolContext:
    return ToolContext(
        **{"agent_id": "a", "session_id": "s", "turn_id": "t", "customer_id": "c", **overrides}
    )


@pytest.fixture(autouse=True)
def clock(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "current_time", lambda: NOON)
    monkeypatch.delenv("TZ", raising=False)


def test_it_answers_in_the_customers_zone_with_a_sentence_to_say() -> None:
    assert get_datetime(make_context(variables={"timezone": "Asia/Tokyo"})) == {
        "iso": "2026-11-21T21:05:09+09:00",
        "date": "2026-11-21",
        "time": "21:05",
        "weekday": "Saturday",
        "timezone": "Asia/Tokyo",
        "text": "It is 21:05 on Saturday, 21 November 2026 (Asia/Tokyo).",
    }


def test_the_date_is_that_of_the_zone_too() -> None:
    answer = get_datetime(make_context(), timezone="Pacific/Kiritimati")
    assert (answer["date"], answer["weekday"]) == ("2026-11-22", "Sunday")


def test_customer_goes_before_agent_before_server_before_utc(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    customer = {"variables": {"timezone": "Asia/Tokyo"}}
    agent = {"plugin_data": {"timezone": "Europe/Berlin"}}
    assert get_datetime(make_context())["timezone"] == "UTC"
    monkeypatch.setenv("TZ", ":America/New_York")
    assert get_datetime(make_context())["timezone"] == "America/New_York"
    assert get_datetime(make_context(**agent))["timezone"] == "Europe/Berlin"
    assert get_datetime(make_context(**agent, **customer))["timezone"] == "Asia/Tokyo"
    assert get_datetime(make_context(**customer), timezone="UTC")["timezone"] == "UTC"


@pytest.mark.parametrize("broken", ["Mars/Olympus", "", 7, None, "../../etc/passwd"])
def test_a_broken_profile_keeps_nobody_from_the_time(broken: Any) -> None:
    assert get_datetime(make_context(variables={"timezone": broken}))["timezone"] == "UTC"


@pytest.mark.parametrize("name", ["europe/berlin", " Europe/Berlin ", "EUROPE/BERLIN"])
def test_case_does_not_matter_in_the_name_of_a_zone(name: str) -> None:
    assert get_datetime(make_context(), timezone=name)["timezone"] == "Europe/Berlin"


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("Berlin", "did you mean Europe/Berlin?"),
        ("new york", "did you mean America/New_York?"),
        ("Europe/Berln", "did you mean Europe/Berlin"),
        ("../../etc/passwd", "is not the name of a time zone"),
        ("America", "is not the name of a time zone"),
        ("x\x00y", "is not the name of a time zone"),
        ("x" * 5000, "is not the name of a time zone"),
    ],
)
def test_a_wrong_name_is_refused_with_what_may_be_meant(name: str, reason: str) -> None:
    with pytest.raises(ToolFailure) as caught:
        get_datetime(make_context(), timezone=name)
    assert reason in caught.value.error.public
    assert len(caught.value.error.public) < 200
