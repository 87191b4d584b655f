"""System checks of the configuration: what is wrong, and what to do about it."""

import os
from collections.abc import Sequence
from typing import Any
from urllib.parse import urlsplit

from django.conf import settings
from django.core import checks
from django.core.checks import CheckMessage, Error, register

CONFIGURATION = "configuration"


@register(CONFIGURATION)
def var_is_writable(**_kwargs: Any) -> Sequence[CheckMessage]:
    if os.access(settings.STUDIO_VAR, os.W_OK | os.X_OK):
        return []
    return [
        Error(
            f"The studio may not write to {str(settings.STUDIO_VAR)!r}.",
            hint="Give it the folder, or name another one in STUDIO_VAR.",
            id="studio.E001",
        )
    ]


@register(CONFIGURATION)
def secret_key_is_long(**_kwargs: Any) -> Sequence[CheckMessage]:
    if len(settings.SECRET_KEY) >= 32:
        return []
    return [
        Error(
            f"STUDIO_SECRET_KEY has {len(settings.SECRET_KEY)} characters.",
            hint="Use at least 32 random ones, or leave it out to have one generated.",
            id="studio.E002",
        )
    ]


@register(CONFIGURATION)
def cookies_can_come_back(**_kwargs: Any) -> Sequence[CheckMessage]:
    https = urlsplit(settings.STUDIO_PUBLIC_URL).scheme == "https"
    if settings.SESSION_COOKIE_SECURE and settings.STUDIO_PUBLIC_URL and not https:
        return [
            Error(
                f"Cookies go over https only, but the studio is reached at {settings.STUDIO_PUBLIC_URL!r}: "
                "nobody could sign in.",
                hint="Make STUDIO_PUBLIC_URL an https address, or set STUDIO_SECURE_COOKIES=off.",
                id="studio.E003",
            )
        ]
    if https and not settings.SESSION_COOKIE_SECURE:
        return [
            checks.Warning(
                "Cookies are sent without https too, although the studio is reached by https.",
                hint="Leave out STUDIO_SECURE_COOKIES.",
                id="studio.W001",
            )
        ]
    return []


@register(CONFIGURATION)
def many_machines_share_a_queue(**_kwargs: Any) -> Sequence[CheckMessage]:
    broker_is_files = settings.CELERY_BROKER_URL.startswith("filesystem")
    sqlite = settings.DATABASES["default"]["ENGINE"].endswith("sqlite3")
    if broker_is_files == sqlite or settings.CELERY_BROKER_URL.startswith("memory"):
        return []
    return [
        checks.Warning(
            "The database is made for many machines and the queue for one."
            if broker_is_files
            else "The queue is made for many machines and the database for one.",
            hint="To run on many machines set both DATABASE_URL and CELERY_BROKER_URL.",
            id="studio.W002",
        )
    ]


@register(CONFIGURATION)
def an_endpoint_needs_a_model(**_kwargs: Any) -> Sequence[CheckMessage]:
    if settings.STUDIO_MODEL or not (settings.OPENAI_API_KEY or settings.OPENAI_BASE_URL):
        return []
    return [
        checks.Warning(
            "A model endpoint is configured, but not which of its models to ask; the offline model answers.",
            hint="Set STUDIO_MODEL to the model's name.",
            id="studio.W003",
        )
    ]
