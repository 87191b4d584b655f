"""Which model a session talks to: its connection, else the default one, else the environment's, else the offline model.

Models keep their connections open between turns, so they live as long as the process, on the one loop that uses them.
"""

from dataclasses import dataclass
from functools import lru_cache

from django.conf import settings

from engine.kit import Models
from engine.model.base import ChatModel
from engine.model.retrying import RetryingModel
from studio.models import ModelConnection, Session

_DEFAULT_BATCH = 12


@dataclass(frozen=True, slots=True, kw_only=True)
class Endpoint:
    """Everything that tells one model client from another."""

    model: str
    base_url: str
    api_key: str
    batch_size: int
    timeout: float

    @classmethod
    def of(cls, connection: ModelConnection, model: str) -> "Endpoint":
        return cls(
            model=model,
            base_url=connection.base_url,
            api_key=connection.api_key,
            batch_size=connection.batch_size,
            timeout=connection.timeout,
        )


def models_for(session: Session) -> Models:
    """The models of a session's next turn. To be used on the engine's loop only."""
    connection = session.connection or ModelConnection.objects.filter(is_default=True).first()
    if connection is not None:
        return Models(
            judging=_client(Endpoint.of(connection, connection.model)),
            writing=_client(Endpoint.of(connection, connection.writing_model or connection.model)),
        )
    if settings.STUDIO_MODEL:
        return Models.same(
            _client(
                Endpoint(
                    model=settings.STUDIO_MODEL,
                    base_url=settings.OPENAI_BASE_URL,
                    api_key=settings.OPENAI_API_KEY,
                    batch_size=_DEFAULT_BATCH,
                    timeout=60.0,
                )
            )
        )
    return Models.same(_offline())


@lru_cache(maxsize=32)
def _client(endpoint: Endpoint) -> ChatModel:
    # Imported here because the client's package is large and an offline studio never needs it.
    from engine.model.openai import OpenAIModel

    client = OpenAIModel(
        model=endpoint.model,
        base_url=endpoint.base_url or None,
        api_key=endpoint.api_key,
        timeout=endpoint.timeout,
        batch_size=endpoint.batch_size,
    )
    return RetryingModel(client, deadline=2 * endpoint.timeout)


@lru_cache(maxsize=1)
def _offline() -> ChatModel:
    from engine.model.offline import OfflineModel

    return OfflineModel()
