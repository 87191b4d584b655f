"""Who calls: bearer tokens, found by their hash."""

from datetime import timedelta
from typing import TYPE_CHECKING, Any

from django.http import HttpRequest
from django.utils import timezone
from ninja.security import HttpBearer

from studio.models import ApiToken

if TYPE_CHECKING:
    from django.contrib.auth.models import User

_NOTED_EVERY = timedelta(minutes=1)


class BearerToken(HttpBearer):
    """The token's user becomes `request.auth`."""

    def authenticate(self, request: HttpRequest, token: str) -> Any:  # noqa: ARG002
        # Looked up by hash: how long it takes says nothing about a token.
        row = (
            ApiToken.objects.select_related("user")
            .filter(hashed=ApiToken.hash(token.strip()), user__is_active=True)
            .first()
        )
        if row is None:
            return None
        now = timezone.now()
        if row.last_used_at is None or now - row.last_used_at > _NOTED_EVERY:
            ApiToken.objects.filter(pk=row.pk).update(last_used_at=now)
        return row.user


def caller(request: HttpRequest) -> "User":
    """The person whose token the request carries."""
    user: User = request.auth  # type: ignore[attr-defined]
    return user
