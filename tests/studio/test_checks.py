"""`manage.py check`: what is wrong with the configuration, and the remedy."""

from pathlib import Path

import pytest
from django.core.checks import run_checks
from pytest_django.fixtures import Settings


def found() -> dict[str, str]:
    """Remedies by id, of our own checks."""
    return {
        message.id: str(message.hint)
        for message in run_checks()
        if message.id and message.id.startswith("studio.")
    }


def test_the_configuration_of_a_fresh_checkout_is_in_order() -> None:
    assert found() == {}


def test_a_folder_that_is_gone_is_an_error(settings: Settings, tmp_path: Path) -> None:
    settings.STUDIO_VAR = tmp_path / "gone"
    assert "STUDIO_VAR" in found()["studio.E001"]


def test_a_short_secret_key_is_an_error(settings: Settings) -> None:
    settings.SECRET_KEY = "short"
    assert "32" in found()["studio.E002"]


def test_secure_cookies_on_a_plain_address_are_an_error(settings: Settings) -> None:
    settings.SESSION_COOKIE_SECURE = True
    settings.STUDIO_PUBLIC_URL = "http://studio.example.com"
    assert "STUDIO_SECURE_COOKIES=off" in found()["studio.E003"]


def test_insecure_cookies_on_a_secure_address_are_warned_of(settings: Settings) -> None:
    settings.SESSION_COOKIE_SECURE = False
    settings.STUDIO_PUBLIC_URL = "https://studio.example.com"
    assert "studio.W001" in found()


@pytest.mark.parametrize(
    ("engine", "broker"),
    [("sqlite3", "redis://queue:6379/0"), ("postgresql", "filesystem://localhost")],
)
def test_a_shared_queue_without_a_shared_database_is_warned_of_and_the_other_way_round(
    settings: Settings, monkeypatch: pytest.MonkeyPatch, engine: str, broker: str
) -> None:
    database = settings.DATABASES["default"]
    monkeypatch.setitem(database, "ENGINE", f"django.db.backends.{engine}")
    settings.CELERY_BROKER_URL = broker
    assert "DATABASE_URL" in found()["studio.W002"]


def test_an_endpoint_without_a_model_name_is_warned_of(settings: Settings) -> None:
    settings.OPENAI_API_KEY = "key"
    settings.STUDIO_MODEL = ""
    assert "STUDIO_MODEL" in found()["studio.W003"]
