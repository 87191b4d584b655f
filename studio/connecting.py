"""Which model a session talks to: its connection, else the default one, else the environment's, else the offline model.

Models keep their connections open between turns, so they live as long as the process, on the one loop that uses them.
"""

from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

from django.conf import settings

from engine.kit import Models
from engine.model.base import ChatModel, JudgingStyle
from engine.model.retrying import RetryingModel
from studio.models import ModelConnection, Session

if TYPE_CHECKING:
    from engine.model.openai import OpenAIModel

_DEFAULT_BATCH = 12


@dataclass(frozen=True, slots=True, kw_only=True)
class Endpoint:
    """Everything that tells one model client from another."""

    model: str
    base_url: str
    api_key: str
    batch_size: int
    timeout: float
    judging_style: JudgingStyle = JudgingStyle.REASONED

    @classmethod
    def of(cls, connection: ModelConnection, model: str) -> "Endpoint":
        return cls(
            model=model,
            base_url=connection.base_url,
            api_key=connection.api_key,
            batch_size=connection.batch_size,
            timeout=connection.timeout,
            judging_style=JudgingStyle(connection.judging_style),
        )

    @classmethod
    def of_environment(cls) -> "Endpoint | None":
        """The one that the environment names, if any."""
        if not settings.STUDIO_MODEL:
            return None
        return cls(
            model=settings.STUDIO_MODEL,
            base_url=settings.OPENAI_BASE_URL,
            api_key=settings.OPENAI_API_KEY,
            batch_size=_DEFAULT_BATCH,
            timeout=60.0,
        )


def models_for(session: Session) -> Models:
    """The models of a session's next turn. To be used on the engine's loop only."""
    return models_of(session.connection)


def models_of(connection: ModelConnection | None) -> Models:
    """The models of a connection; without one, those of the default. To be used on the engine's loop only."""
    connection = connection or ModelConnection.objects.filter(is_default=True).first()
    if connection is not None:
        return Models(
            judging=_client(Endpoint.of(connection, connection.model)),
            writing=_client(Endpoint.of(connection, connection.writing_model or connection.model)),
        )
    environment = Endpoint.of_environment()
    if environment is not None:
        return Models.same(_client(environment))
    return Models.same(_offline())


@lru_cache(maxsize=32)
def _client(endpoint: Endpoint) -> ChatModel:
    return RetryingModel(new_client(endpoint), deadline=2 * endpoint.timeout)


def new_client(endpoint: Endpoint) -> "OpenAIModel":
    """A client of its own, to be closed by the caller; raises SpecError for settings that cannot work."""
    # Imported here because the client's package is large and an offline studio never needs it.
    from engine.model.openai import OpenAIModel

    return OpenAIModel(
        model=endpoint.model,
        base_url=endpoint.base_url or None,
        api_key=endpoint.api_key,
        timeout=endpoint.timeout,
        batch_size=endpoint.batch_size,
        judging_style=endpoint.judging_style,
    )


@lru_cache(maxsize=1)
def _offline() -> ChatModel:
    from engine.model.offline import OfflineModel

    return OfflineModel()
