"""Secrets at rest: encrypted with a key derived from the studio's secret key, shown only as a fingerprint."""

import base64
import hashlib
from functools import lru_cache
from typing import Any

from cryptography.fernet import Fernet, InvalidToken
from django.conf import settings
from django.db import models


@lru_cache(maxsize=4)
def _fernet(secret_key: str) -> Fernet:
    key = hashlib.sha256(b"guideline-studio secrets v1:" + secret_key.encode()).digest()
    return Fernet(base64.urlsafe_b64encode(key))


def encrypt(text: str) -> str:
    return _fernet(settings.SECRET_KEY).encrypt(text.encode()).decode()


def decrypt(token: str) -> str:
    """Empty where the studio's secret key is not the one it was encrypted with: the secret must be given again."""
    try:
        return _fernet(settings.SECRET_KEY).decrypt(token.encode()).decode()
    except InvalidToken:
        return ""


def fingerprint(secret: str) -> str:
    """Four hexadecimal characters by which people recognise a secret without seeing it."""
    return hashlib.sha256(b"fingerprint:" + secret.encode()).hexdigest()[:4]


class EncryptedTextField(models.TextField):  # type: ignore[type-arg]
    """Text that is encrypted in the database and plain in Python."""

    def from_db_value(self, value: str | None, *_args: Any) -> str:
        return decrypt(value) if value else ""

    def get_prep_value(self, value: Any) -> Any:
        return encrypt(value) if value else ""
