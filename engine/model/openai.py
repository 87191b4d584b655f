"""Any OpenAI-compatible server as a ChatModel. The only importer of the `openai` package (DESIGN.md §6)."""

import asyncio
import json
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from math import isfinite
from typing import Any, NoReturn

import httpx2
import openai

from engine.errors import ModelError, ModelErrorKind, SpecError
from engine.model.answers import (
    Transcript,
    foreign_answer,
    probability_of,
    read_answer,
    shortened,
)
from engine.model.base import AttemptFailed, JudgingStyle, ModelReply, ModelRequest, TextDelta
from engine.model.dialect import Dialect, Feature, Refusal, body_for

_OPENAI = "https://api.openai.com/v1"
_IDLE = 60.0  # seconds for which an unused connection is kept: customers think between two turns
_CONNECT = 10.0  # seconds
_END = object()


class OpenAIModel:
    """A ChatModel over HTTP. Lives on one event loop and keeps its connections between calls.

    `timeout` (seconds) bounds a request from asking to the last piece, `silence` (seconds, a third of it by default)
    the wait for the next piece of a text that has begun. `base_url` None is OpenAI itself. Never retries.
    Raises SpecError for settings that cannot work.
    """

    def __init__(
        self,
        *,
        model: str,
        base_url: str | None = None,
        api_key: str = "",
        timeout: float = 60.0,
        batch_size: int = 10,
        judging_style: JudgingStyle = JudgingStyle.REASONED,
        max_connections: int | None = None,
        silence: float | None = None,
    ) -> None:
        self._model = model
        self._key = api_key.strip()
        self._url = _url_of((base_url or _OPENAI).strip())
        self._timeout = timeout
        self._silence = timeout / 3 if silence is None else silence
        self._batch_size = batch_size
        self._judging_style = judging_style
        self._dialect = Dialect()
        self._check_settings()
        limits = httpx2.Limits(
            max_connections=max_connections,
            max_keepalive_connections=max_connections,
            keepalive_expiry=_IDLE,
        )
        # Without any key the SDK would look for one in the environment; servers without keys ignore this one.
        self._client = openai.AsyncOpenAI(
            api_key=self._key or "none",
            base_url=self._url,
            max_retries=0,
            http_client=openai.DefaultAsyncHttpxClient(
                limits=limits, timeout=httpx2.Timeout(timeout, connect=min(timeout, _CONNECT))
            ),
        )

    def _check_settings(self) -> None:
        if not self._model.strip():
            raise SpecError(
                "The model has no name: enter the name that the server knows.", field="model"
            )
        if not (self._key.isascii() and self._key.isprintable()):
            raise SpecError(
                "The API key holds characters that no key has: paste it again.", field="api_key"
            )
        if self._timeout <= 0 or self._silence <= 0:
            raise SpecError("A timeout must be more than 0 seconds.", field="timeout")
        if self._batch_size < 1:
            raise SpecError("The batch size must be at least 1.", field="batch_size")

    @property
    def name(self) -> str:
        return self._model

    @property
    def batch_size(self) -> int:
        return self._batch_size

    @property
    def judging_style(self) -> JudgingStyle:
        return self._judging_style

    async def aclose(self) -> None:
        """Close all connections; the model cannot be used afterwards."""
        await self._client.close()

    def form_of(self, request: ModelRequest) -> str:
        """How this server is asked for the answer's form, as learned so far: json_schema, json_object or text."""
        return self._dialect.form_of(request)

    async def list_models(self) -> tuple[str, ...]:
        """The names of the models that the server offers, sorted. Raises ModelError."""
        try:
            async with asyncio.timeout(self._timeout):
                listed = await self._client.get("/models", cast_to=object)
        except (TimeoutError, openai.OpenAIError, httpx2.HTTPError, ValueError) as error:
            raise self._failure(error) from None
        rows = listed.get("data") if isinstance(listed, dict) else None
        if not isinstance(rows, list):
            raise foreign_answer(listed)
        return tuple(
            sorted({str(row["id"]) for row in rows if isinstance(row, dict) and "id" in row})
        )

    async def stream(
        self, request: ModelRequest
    ) -> AsyncIterator[TextDelta | AttemptFailed | ModelReply]:
        """One attempt; see ChatModel. Ways of asking that the server refuses are exchanged within it."""
        deadline = asyncio.get_running_loop().time() + self._timeout
        answer, refused = await self._ask(request, deadline)
        heard = Transcript()
        if isinstance(answer, openai.AsyncStream):
            async with aclosing(self._pieces(answer, heard, deadline)) as pieces:
                async for piece in pieces:
                    yield TextDelta(text=piece)
        else:
            self._hear(answer, heard)
        self._check_ending(request, heard)
        yield self._reply(request, refused, heard)

    async def _ask(
        self, request: ModelRequest, deadline: float
    ) -> tuple[object, frozenset[Feature]]:
        """The answer begun, as a stream or whole, and what was left out to get it.

        Each refusal gives up one feature more, so there are at most as many requests as features.
        """
        refused = self._dialect.refused_for(request)
        while True:
            body = body_for(request, model=self._model, refused=refused)
            try:
                answer = await self._post(body, deadline)
            except openai.APIStatusError as error:
                feature = self._dialect.give_up(body, _refusal(error))
                if feature is None:
                    raise self._failure(error) from None
                refused |= {feature}
            except (TimeoutError, openai.OpenAIError, httpx2.HTTPError, ValueError) as error:
                raise self._failure(error) from None
            else:
                self._dialect.accepted(request, refused)
                return answer, refused

    async def _post(self, body: dict[str, Any], deadline: float) -> object:
        # The raw JSON is asked for: answers of foreign servers are read with tolerance, and the SDK's typed
        # `create` would walk every request and answer against its own types first.
        async with asyncio.timeout_at(deadline):
            if not body.get("stream"):
                return await self._client.post("/chat/completions", body=body, cast_to=object)
            stream = await self._client.post(
                "/chat/completions",
                body=body,
                cast_to=object,
                stream=True,
                stream_cls=openai.AsyncStream[object],
            )
            if not stream.response.headers.get("content-type", "").startswith("application/json"):
                return stream
            try:  # a server that does not stream
                whole: object = json.loads(await stream.response.aread())
                return whole
            finally:
                await stream.close()

    async def _pieces(
        self, stream: openai.AsyncStream[object], heard: Transcript, deadline: float
    ) -> AsyncGenerator[str, None]:
        clock = asyncio.get_running_loop().time
        try:
            while True:
                limit = min(deadline, clock() + self._silence) if heard.text else deadline
                try:
                    # Around the waiting only: a timeout must not strike while the consumer is at work.
                    async with asyncio.timeout_at(limit):
                        chunk = await anext(stream, _END)
                except (TimeoutError, openai.OpenAIError, httpx2.HTTPError, ValueError) as error:
                    raise self._failure(error, heard=heard) from None
                if chunk is _END:
                    return
                if piece := self._hear(chunk, heard):
                    yield piece
        finally:
            await stream.close()

    def _hear(self, chunk: object, heard: Transcript) -> str:
        if isinstance(chunk, dict) and chunk.get("error") and not chunk.get("choices"):
            raise self._reported(chunk["error"], heard.text)
        return heard.add(chunk)

    def _reply(
        self, request: ModelRequest, refused: frozenset[Feature], heard: Transcript
    ) -> ModelReply:
        answer = None
        try:
            answer = read_answer(heard.text, request.schema)
        except ModelError:
            if heard.finish:
                raise
            _refuse(
                ModelErrorKind.TRUNCATED, "The model's answer broke off.", heard, retryable=True
            )
        finally:
            self._dialect.answered(request, refused, heard.text, answer)
            self._dialect.heard_logprobs(request, any_came=bool(heard.logprobs))
        return ModelReply(
            answer=answer,
            text=heard.text,
            model=heard.model or self._model,
            prompt_tokens=heard.prompt_tokens,
            cached_tokens=heard.cached_tokens,
            completion_tokens=heard.completion_tokens,
            probability=(
                probability_of(request.verdict, heard.logprobs) if request.verdict else None
            ),
        )

    def _check_ending(self, request: ModelRequest, heard: Transcript) -> None:
        if heard.refusal:
            said = f"The model {self._model!r} declined to answer: {shortened(heard.refusal)!r}."
            _refuse(ModelErrorKind.REFUSED, said, heard)
        if heard.finish == "content_filter":
            said = "The server's content filter stopped the answer: change the text that it objects to."
            _refuse(ModelErrorKind.REFUSED, said, heard)
        if heard.finish == "length":
            # At the same limit the same request ends at the same place.
            said = (
                f"The answer was cut off at {request.max_tokens} tokens: raise the limit, give fewer guidelines "
                "per question (batch size), or choose a model that thinks less before it answers."
            )
            _refuse(ModelErrorKind.TRUNCATED, said, heard)
        if not heard.text.strip():
            said = f"The model {self._model!r} answered with nothing" + (
                "." if heard.choices else ": no choices in the answer."
            )
            _refuse(ModelErrorKind.EMPTY, said, heard, retryable=True)

    def _failure(self, error: Exception, heard: Transcript | None = None) -> ModelError:
        """What went wrong, for people: raised without its cause, whose text may hold the key."""
        text = heard.text if heard is not None else ""
        match error:
            case TimeoutError() | openai.APITimeoutError() | httpx2.TimeoutException():
                kind = ModelErrorKind.TIMEOUT
                message = (
                    f"{self._address} did not answer in time ({self._timeout:g} s for an answer"
                )
                message += f", {self._silence:g} s of silence within it)." if heard else ")."
            case openai.APIConnectionError() | httpx2.HTTPError() if heard is not None:
                kind = ModelErrorKind.TRUNCATED
                message = f"The connection to {self._address} broke off in the middle of an answer."
            case openai.APIConnectionError() | httpx2.HTTPError():
                kind = ModelErrorKind.UNREACHABLE
                reason = self._masked(shortened(str(error.__cause__ or error)))
                message = (
                    f"Cannot reach {self._address} ({reason}): check that it runs and the base URL."
                )
            case openai.APIStatusError():
                return self._status_failure(error)
            case openai.APIError():
                return self._reported(error.body, text)
            case _:
                kind = ModelErrorKind.MALFORMED
                message = f"{self._address} answered with something that is not JSON."
        return ModelError(message, kind=kind, retryable=True, answer_text=text)

    def _status_failure(self, error: openai.APIStatusError) -> ModelError:
        status, headers = error.status_code, error.response.headers
        said = self._masked(shortened(_message_in(error.body)))
        kind, retryable, remedy = self._judged(status, said)
        return ModelError(
            f"{self._address} answered {status}: {said or 'no reason given'}. {remedy}".rstrip(),
            kind=kind,
            retryable=retryable,
            retry_after=_retry_after(headers) if retryable else None,
        )

    def _judged(self, status: int, said: str) -> tuple[ModelErrorKind, bool, str]:
        """Kind, whether it may pass, and what to do, for an HTTP status."""
        if status == 429 and "quota" in said.lower():
            return ModelErrorKind.RATE_LIMITED, False, "Check the plan and billing of this key."
        if status == 429:
            return ModelErrorKind.RATE_LIMITED, True, "It limits how often it may be asked."
        if status == 408:
            return ModelErrorKind.TIMEOUT, True, ""
        if status >= 500:
            return ModelErrorKind.SERVER, True, ""
        remedies = {
            401: "Check the API key of this model connection.",
            403: f"Check that the API key may use the model {self._model!r}.",
            404: f"Check the model's name {self._model!r} and the base URL.",
            413: "The prompt is too large for this server.",
        }
        remedy = remedies.get(status, f"Check the settings of the model {self._model!r}.")
        return ModelErrorKind.REFUSED, False, remedy

    def _reported(self, body: object, text: str) -> ModelError:
        """An error that came in an answer of status 200."""
        code = body.get("code") or body.get("status") if isinstance(body, dict) else None
        if "rate_limit" in str(code):
            status = 429
        else:
            status = (
                int(str(code)) if str(code).isdecimal() and 400 <= int(str(code)) < 600 else 500
            )
        said = self._masked(shortened(_message_in(body)))
        kind, retryable, remedy = self._judged(status, said)
        return ModelError(
            f"{self._address} reported an error: {said or 'no reason given'}. {remedy}".rstrip(),
            kind=kind,
            retryable=retryable,
            answer_text=text,
        )

    @property
    def _address(self) -> str:
        """The base URL without what may be secret in it."""
        port = f":{self._url.port}" if self._url.port else ""
        return self._masked(f"{self._url.scheme}://{self._url.host}{port}{self._url.path}")

    def _masked(self, text: str) -> str:
        return text.replace(self._key, "•••") if self._key else text


def _url_of(text: str) -> httpx2.URL:
    try:
        url = httpx2.URL(text)
    except httpx2.InvalidURL:
        url = httpx2.URL()
    if url.scheme not in {"http", "https"} or not url.host:
        shown = text.rpartition("@")[2]  # what stands before may be a password
        raise SpecError(
            f"{shown!r} is no base URL: write it as http://HOST/v1 or https://HOST/v1.",
            field="base_url",
        )
    return url


def _refuse(
    kind: ModelErrorKind, message: str, heard: Transcript, *, retryable: bool = False
) -> NoReturn:
    text = heard.text or heard.refusal
    raise ModelError(message, kind=kind, retryable=retryable, answer_text=text) from None


def _refusal(error: openai.APIStatusError) -> Refusal:
    body = error.body if isinstance(error.body, str) else json.dumps(error.body)
    param = error.param if isinstance(error.param, str) else ""
    return Refusal(status=error.status_code, text=body, param=param)


def _message_in(body: object) -> str:
    """What an error's body says; servers agree on neither the key nor the depth."""
    if isinstance(body, dict):
        for key in ("error", "message", "detail", "msg"):
            if body.get(key):
                return _message_in(body[key])
    if isinstance(body, list) and body:
        return _message_in(body[0])
    return body if isinstance(body, str) else ""


def _retry_after(headers: httpx2.Headers) -> float | None:
    """Seconds, from `retry-after-ms` or `Retry-After` in seconds or as an HTTP date; None without a usable one."""
    if (milliseconds := _seconds(headers.get("retry-after-ms"))) is not None:
        return milliseconds / 1000
    wish = headers.get("retry-after")
    if wish is None or (seconds := _seconds(wish)) is not None:
        return seconds if wish is not None else None
    try:
        date = parsedate_to_datetime(wish)
    except ValueError:
        return None
    aware = date if date.tzinfo is not None else date.replace(tzinfo=UTC)
    return max(0.0, (aware - datetime.now(UTC)).total_seconds())


def _seconds(text: str | None) -> float | None:
    try:
        value = float(text or "")
    except ValueError:
        return None
    return value if isfinite(value) and value >= 0 else None
