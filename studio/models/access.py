"""Who may call the API."""

import hashlib
import secrets

from django.conf import settings
from django.db import models


class ApiToken(models.Model):
    """A bearer token: shown once when made, stored hashed."""

    user = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="api_tokens"
    )
    name = models.CharField(max_length=80, blank=True)
    hashed = models.CharField(max_length=64)
    prefix = models.CharField(max_length=8)
    created_at = models.DateTimeField(auto_now_add=True)
    last_used_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        ordering = ["-created_at", "-pk"]
        constraints = [models.UniqueConstraint(fields=["hashed"], name="api_token_unique")]

    def __str__(self) -> str:
        return f"{self.prefix}…"

    @staticmethod
    def hash(token: str) -> str:
        # A random 256-bit token needs no salt and no slow hash.
        return hashlib.sha256(token.encode()).hexdigest()

    @classmethod
    def make(cls, user_id: int, name: str = "") -> tuple["ApiToken", str]:
        """The stored row and the token itself, which cannot be read again."""
        token = "gs_" + secrets.token_urlsafe(32)
        row = cls.objects.create(
            user_id=user_id, name=name, hashed=cls.hash(token), prefix=token[:8]
        )
        return row, token
