"""Moments in words."""

from datetime import UTC, datetime, timedelta

import pytest
from django.utils import timezone

from studio.templatetags.studio_time import ago, exactly


@pytest.mark.parametrize(
    ("past", "words"),
    [
        (timedelta(seconds=-5), ">just now<"),
        (timedelta(seconds=59), ">just now<"),
        (timedelta(minutes=3, seconds=50), ">3\xa0minutes ago<"),
        (timedelta(days=2, hours=5), ">2\xa0days ago<"),
    ],
)
def test_how_long_ago_is_told_by_its_largest_unit(past: timedelta, words: str) -> None:
    assert words in ago(timezone.now() - past)


def test_the_exact_time_stands_behind_the_words_with_its_zone_for_scripts() -> None:
    html = ago(datetime(2026, 3, 1, 13, 5, 7, tzinfo=UTC))
    assert 'datetime="2026-03-01T13:05:07+00:00"' in html
    assert 'title="March 1, 2026, 1:05 p.m."' in html


def test_an_exact_time_names_its_zone_until_a_script_puts_it_into_the_viewers() -> None:
    html = exactly(datetime(2026, 3, 1, 13, 5, tzinfo=UTC))
    assert " data-local>March 1, 2026, 1:05 p.m. UTC</time>" in html


def test_what_never_happened_is_never() -> None:
    assert ago(None) == exactly(None) == "never"
