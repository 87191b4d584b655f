"""A loopback server that speaks the chat completions protocol, well and badly, as a test programs it.

    with OpenAIServer(answer=lambda body: {"judgements": []}) as server:
        server.plan(Status(429, headers={"Retry-After": "1"}), Say("no JSON"))
        ...  # server.base_url; the third request and all later ones get the answer
        assert server.requests[0].body["model"] == "m"

It runs on its own thread, so that it serves synchronous, asynchronous and browser tests alike. Without Django.
"""

import asyncio
import json
import math
import re
import socket
import threading
import time
from collections import deque
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, Self, TypeAlias

from jsonschema import Draft202012Validator

Body: TypeAlias = dict[str, Any]
Answer: TypeAlias = Callable[[Body], str | Body] | str | Body


@dataclass(frozen=True, slots=True)
class Status:
    """An HTTP error; `body` is a whole body, by default OpenAI's error object with `message`."""

    code: int
    message: str = "it went wrong"
    headers: Mapping[str, str] = field(default_factory=dict)
    body: str | None = None
    content_type: str = "application/json"


@dataclass(frozen=True, slots=True)
class Raw:
    """Status 200 with these bytes."""

    body: bytes
    content_type: str = "application/json"


@dataclass(frozen=True, slots=True)
class Say:
    """A proper completion with this text, whatever the request's schema."""

    text: str = ""
    finish: str | None = "stop"
    refusal: str | None = None
    message: Mapping[str, Any] = field(default_factory=dict)  # more keys of the message


@dataclass(frozen=True, slots=True)
class NoChoices:
    """A completion without choices."""


@dataclass(frozen=True, slots=True)
class Hang:
    """Takes the request and never answers."""


@dataclass(frozen=True, slots=True)
class Drop:
    """Closes the connection without a word."""


@dataclass(frozen=True, slots=True)
class BreakOff:
    """Begins the good answer and cuts the connection after `pieces` pieces of text (unstreamed: half the body).

    `cleanly` ends the HTTP body properly, but without finish_reason and `[DONE]`.
    """

    pieces: int = 1
    cleanly: bool = False


@dataclass(frozen=True, slots=True)
class Stall:
    """Begins the good answer and falls silent after `pieces` pieces of text."""

    pieces: int = 1


@dataclass(frozen=True, slots=True)
class Events:
    """A stream of these `data:` lines, then `[DONE]`."""

    data: tuple[str, ...]


Step: TypeAlias = Status | Raw | Say | NoChoices | Hang | Drop | BreakOff | Stall | Events


class ReceivedRequest:
    """A request as it came. `gone` is set when the client went away before the whole answer was written."""

    def __init__(
        self, method: str, path: str, headers: dict[str, str], body: Body, connection: int
    ) -> None:
        self.method = method
        self.path = path
        self.headers = headers  # names in lower case
        self.body = body
        self.connection = connection  # counted from 1: equal numbers share a connection
        self.at = time.monotonic()
        self.gone = threading.Event()

    @property
    def form(self) -> str:
        """The response_format's type, "text" without one."""
        return str((self.body.get("response_format") or {}).get("type", "text"))

    @property
    def prompt(self) -> str:
        """All messages' contents, one after another."""
        return "\n".join(str(message["content"]) for message in self.body["messages"])


class OpenAIServer:
    """See the module. All attributes may be changed while it runs.

    `answer` gives the good answers: a text, an object, or a function of the request's body (called on the server's
    thread). An object is checked against the schema that the request asks for. `latency` is in seconds before the
    answer, `piece_delay` in seconds before each streamed piece of `piece_length` characters. `refuses` names what it
    answers with `refusal_status`: "json_schema", "json_object", "strict" or any parameter; with `vague` it does not
    say what it was. `confidence` is the probability of each "true" and "false" that it says, told where logprobs are
    asked for; without it, it ignores that wish. `ignores_schema` answers objects wrapped in prose. With `api_key` other
    keys get 401.
    """

    def __init__(
        self,
        *,
        answer: Answer = "{}",
        latency: float = 0.0,
        piece_delay: float = 0.0,
        piece_length: int = 12,
        refuses: Collection[str] = (),
        refusal_status: int = 400,
        vague: bool = False,
        ignores_schema: bool = False,
        streams: bool = True,
        api_key: str = "",
        cached_tokens: int = 0,
        models: Collection[str] = ("small", "large"),
        checks_answers: bool = True,
        confidence: float | None = None,
    ) -> None:
        self.answer = answer
        self.latency = latency
        self.piece_delay = piece_delay
        self.piece_length = piece_length
        self.refuses = refuses
        self.refusal_status = refusal_status
        self.vague = vague
        self.ignores_schema = ignores_schema
        self.streams = streams
        self.api_key = api_key
        self.cached_tokens = cached_tokens
        self.models = models
        self.checks_answers = checks_answers
        self.confidence = confidence
        self.requests: list[ReceivedRequest] = []
        self.steps: deque[Step] = deque()
        self.port = 0
        self.connections: set[_Connection] = set()
        self.connections_made = 0
        self.loop = asyncio.new_event_loop()
        self._listening: asyncio.Server | None = None
        self._thread = threading.Thread(target=self._run, name="openai-server", daemon=True)

    @property
    def base_url(self) -> str:
        return f"http://127.0.0.1:{self.port}/v1"

    @property
    def completions(self) -> list[ReceivedRequest]:
        """The requests for a chat completion, oldest first."""
        return [each for each in self.requests if each.path == "/v1/chat/completions"]

    def plan(self, *steps: Step) -> None:
        """What the next requests for a completion get, one each; after them the good answer again."""
        self.steps.extend(steps)

    def start(self) -> Self:
        self._thread.start()
        self.up()
        return self

    def stop(self) -> None:
        self.down()
        self.loop.call_soon_threadsafe(self.loop.stop)
        self._thread.join(5)
        self.loop.close()

    def down(self) -> None:
        """Refuse connections and cut those that are open; `up` listens on the same port again."""
        asyncio.run_coroutine_threadsafe(self._down(), self.loop).result(5)

    def up(self) -> None:
        asyncio.run_coroutine_threadsafe(self._up(), self.loop).result(5)

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stop()

    def _run(self) -> None:
        asyncio.set_event_loop(self.loop)
        self.loop.run_forever()

    async def _up(self) -> None:
        if self._listening is None:
            self._listening = await self.loop.create_server(
                lambda: _Connection(self), "127.0.0.1", self.port, reuse_address=True
            )
            self.port = self._listening.sockets[0].getsockname()[1]

    async def _down(self) -> None:
        if self._listening is not None:
            self._listening.close()
            self._listening = None
        tasks = [each.task for each in self.connections if each.task is not None]
        for connection in tuple(self.connections):
            connection.cut()
        await asyncio.gather(*tasks, return_exceptions=True)
        await asyncio.sleep(0)  # lets the transports close their sockets

    def good_answer(self, body: Body) -> str:
        answer = self.answer(body) if callable(self.answer) else self.answer
        if isinstance(answer, str):
            return answer
        schema = ((body.get("response_format") or {}).get("json_schema") or {}).get("schema")
        if self.checks_answers and schema is not None and not self.ignores_schema:
            Draft202012Validator(schema).validate(answer)
        text = json.dumps(answer, ensure_ascii=False)
        return (
            f"Sure, here it is:\n```json\n{text}\n```\nAnything else?"
            if self.ignores_schema
            else text
        )

    def refused(self, body: Body) -> str:
        """The name of what this server refuses in the request, or empty."""
        form = body.get("response_format") or {}
        asked = {form.get("type"), *body}
        if (form.get("json_schema") or {}).get("strict"):
            asked.add("strict")
        return next((name for name in self.refuses if name in asked), "")


class _Connection(asyncio.Protocol):
    """One keep-alive connection; answers its requests one after another."""

    def __init__(self, server: OpenAIServer) -> None:
        self.server = server
        self.task: asyncio.Task[None] | None = None
        self._buffer = b""
        self._current: ReceivedRequest | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport
        transport.get_extra_info("socket").setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.server.connections.add(self)
        self.server.connections_made += 1
        self.number = self.server.connections_made

    def connection_lost(self, exc: Exception | None) -> None:
        self.server.connections.discard(self)
        if self.task is not None and not self.task.done():
            if self._current is not None:
                self._current.gone.set()
            self.task.cancel()

    def cut(self) -> None:
        self.transport.abort()

    def data_received(self, data: bytes) -> None:
        self._buffer += data
        head, separator, rest = self._buffer.partition(b"\r\n\r\n")
        if not separator or (self.task is not None and not self.task.done()):
            return
        first, *lines = head.decode("latin-1").split("\r\n")
        method, path, _version = first.split(" ", 2)
        headers = {
            name.lower(): value.strip()
            for name, _, value in (each.partition(":") for each in lines)
        }
        length = int(headers.get("content-length", "0"))
        if len(rest) < length:
            return
        self._buffer = rest[length:]
        body = json.loads(rest[:length]) if length else {}
        request = ReceivedRequest(method, path, headers, body, self.number)
        self._current = request
        self.server.requests.append(request)
        self.task = self.server.loop.create_task(self._respond(request))
        self.task.add_done_callback(self._responded)

    def _responded(self, task: asyncio.Task[None]) -> None:
        if task.cancelled() or self.transport.is_closing():
            return
        if (error := task.exception()) is not None:
            # The programmed answer itself is wrong: say so where the test will see it.
            self._error(Status(500, f"tests.openai_server: {type(error).__name__}: {error}"))
        if self._buffer:
            self.data_received(b"")

    async def _respond(self, request: ReceivedRequest) -> None:
        server = self.server
        authorization = request.headers.get("authorization", "")
        if server.api_key and authorization != f"Bearer {server.api_key}":
            self._error(Status(401, f"Incorrect API key provided: {authorization[7:]}."))
        elif (request.method, request.path) == ("GET", "/v1/models"):
            self._json({"object": "list", "data": [{"id": name} for name in server.models]})
        elif (request.method, request.path) != ("POST", "/v1/chat/completions"):
            self._error(Status(404, f"no such path: {request.path}"))
        elif name := server.refused(request.body):
            self._refuse(name)
        else:
            if server.latency:
                await asyncio.sleep(server.latency)
            step = server.steps.popleft() if server.steps else None
            await self._take(request, step)

    def _refuse(self, name: str) -> None:
        message, param = f"Unsupported parameter: {name!r} is not supported with this model.", None
        if self.server.vague:
            message = "Invalid request."
        elif name == "json_schema":
            message = "This response_format type is unavailable now"
        elif name == "strict":
            message, param = "Invalid schema for response_format: no.", "response_format"
        elif name != "json_object":
            param = name
        error = {"message": message, "type": "invalid_request_error", "param": param, "code": None}
        self._error(Status(self.server.refusal_status, body=json.dumps({"error": error})))

    async def _take(self, request: ReceivedRequest, step: Step | None) -> None:
        step = step or Say(self.server.good_answer(request.body))
        match step:
            case Say():
                await self._complete(request, step)
            case Status():
                self._error(step)
            case Raw():
                self._send(200, step.content_type, step.body)
            case NoChoices():
                self._json({"id": "c", "object": "chat.completion", "choices": []})
            case Events():
                self._begin_stream()
                for data in (*step.data, "[DONE]"):
                    self._chunk(data)
                self.transport.write(b"0\r\n\r\n")
            case Hang():
                await asyncio.Event().wait()
            case Drop():
                self.transport.close()
            case BreakOff() | Stall():
                await self._begin_only(request, step)

    async def _begin_only(self, request: ReceivedRequest, step: BreakOff | Stall) -> None:
        text = self.server.good_answer(request.body)
        if request.body.get("stream"):
            self._begin_stream()
            await self._pieces(text, step.pieces)
        else:
            body = json.dumps(self._completion(request, Say(text))).encode()
            head = f"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
            self.transport.write(head.encode() + body[: len(body) // 2])
        if isinstance(step, Stall):
            await asyncio.Event().wait()
        elif step.cleanly:
            self.transport.write(b"0\r\n\r\n")
        else:
            self.transport.close()

    async def _complete(self, request: ReceivedRequest, said: Say) -> None:
        if not (request.body.get("stream") and self.server.streams):
            self._json(self._completion(request, said))
            return
        self._begin_stream()
        if said.refusal is not None:
            self._delta({"refusal": said.refusal})
        if said.message:
            self._delta(dict(said.message))
        await self._pieces(said.text)
        self._delta({}, said.finish)
        if (request.body.get("stream_options") or {}).get("include_usage"):
            self._chunk(json.dumps({"choices": [], "usage": self._usage(request, said.text)}))
        self._chunk("[DONE]")
        self.transport.write(b"0\r\n\r\n")

    async def _pieces(self, text: str, limit: int | None = None) -> None:
        length = self.server.piece_length
        for start in range(0, len(text), length)[:limit]:
            if self.server.piece_delay:
                await asyncio.sleep(self.server.piece_delay)
            self._delta({"content": text[start : start + length]})

    def _delta(self, delta: Body, finish: str | None = None) -> None:
        choice = {"index": 0, "delta": delta, "finish_reason": finish}
        self._chunk(json.dumps({"model": "loopback", "choices": [choice]}))

    def _completion(self, request: ReceivedRequest, said: Say) -> Body:
        message = {"role": "assistant", "content": said.text, "refusal": said.refusal} | dict(
            said.message
        )
        choice: Body = {"index": 0, "message": message, "finish_reason": said.finish}
        if request.body.get("logprobs") and self.server.confidence is not None:
            most = request.body.get("top_logprobs", 0)
            choice["logprobs"] = {"content": tokens_of(said.text, self.server.confidence, most)}
        return {
            "id": "c",
            "object": "chat.completion",
            "model": "loopback",
            "choices": [choice],
            "usage": self._usage(request, said.text),
        }

    def _usage(self, request: ReceivedRequest, text: str) -> Body:
        """Four characters to a token, as a rule of thumb."""
        prompt, completion = len(request.prompt) // 4, len(text) // 4
        return {
            "prompt_tokens": prompt,
            "completion_tokens": completion,
            "total_tokens": prompt + completion,
            "prompt_tokens_details": {"cached_tokens": self.server.cached_tokens},
        }

    def _begin_stream(self) -> None:
        self.transport.write(
            b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
        )

    def _chunk(self, data: str) -> None:
        event = f"data: {data}\n\n".encode()
        self.transport.write(b"%x\r\n%b\r\n" % (len(event), event))

    def _json(self, value: Body) -> None:
        self._send(200, "application/json", json.dumps(value).encode())

    def _error(self, status: Status) -> None:
        error = {"message": status.message, "type": "error", "param": None, "code": None}
        body = json.dumps({"error": error}) if status.body is None else status.body
        self._send(status.code, status.content_type, body.encode(), status.headers)

    def _send(
        self, code: int, content_type: str, body: bytes, headers: Mapping[str, str] | None = None
    ) -> None:
        lines = [
            f"HTTP/1.1 {code} Status",
            f"Content-Type: {content_type}",
            f"Content-Length: {len(body)}",
            *(f"{name}: {value}" for name, value in (headers or {}).items()),
        ]
        self.transport.write("\r\n".join(lines).encode() + b"\r\n\r\n" + body)


def tokens_of(text: str, confidence: float, most: int) -> list[Body]:
    """The text as a model's tokens, with `most` alternatives to each; its verdicts have this probability."""
    found = []
    for token in re.findall(r"\s?\w+|\W", text):
        other = {"true": "false", "false": "true"}.get(token.strip())
        odds = {token: 1.0} if other is None else {token: confidence, f" {other}": 1 - confidence}
        rows = [{"token": each, "logprob": math.log(max(p, 1e-9))} for each, p in odds.items()]
        found.append({**rows[0], "bytes": None, "top_logprobs": rows[:most]})
    return found


def closed_port() -> int:
    """A loopback port on which nobody listens."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
