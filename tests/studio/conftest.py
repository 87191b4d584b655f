"""For tests of the studio: Django, and a queue that starts and ends empty."""

from collections.abc import Iterator

import pytest

from tests.django_setup import adapt_settings, choose_settings

choose_settings()


def pytest_configure() -> None:
    adapt_settings()


@pytest.fixture(autouse=True)
def _an_empty_queue() -> Iterator[None]:
    """Nothing takes work from the queue unless a test does; what one test leaves there, no other finds."""
    from kombu.transport.memory import Channel

    Channel.queues.clear()
    yield
    Channel.queues.clear()


@pytest.fixture
def unwatched(monkeypatch: pytest.MonkeyPatch) -> None:
    """Turns run without the thread that watches over them, which would look into the database after the test."""
    from studio.operations import running, watching

    watch = watching.Watch()
    monkeypatch.setattr(running, "watch", lambda: watch)
