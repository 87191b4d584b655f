"""What a model said, read: from the pieces of a chat completion to the JSON object in its text."""

import json
import re
from collections.abc import Iterator, Sequence
from math import exp
from typing import Any, NoReturn

from engine.canonical import JsonObject
from engine.errors import ModelError, ModelErrorKind

_OBJECTS_TRIED = 200  # places where an object may begin in a text; more is not an answer
_THOUGHTS = re.compile(r"^.*</think(?:ing)?>", re.DOTALL)


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")


# Models write raw line breaks inside strings; that is readable, so it is read.
_decoder = json.JSONDecoder(strict=False, parse_constant=_no_constant)


def read_answer(text: str, schema: JsonObject) -> JsonObject:
    """The JSON object that `text` is, or that stands in it between prose or code fences.

    Raises ModelError: MALFORMED without such an object, WRONG_SCHEMA for JSON that is no object. Whether the object
    fits the whole schema is not judged here; of several objects in prose the one with the required keys is meant.
    """
    try:
        whole = _decoder.decode(text.strip())
    except (ValueError, RecursionError):
        found = _object_within(_THOUGHTS.sub("", text), schema)
        if found is None:
            raise ModelError(
                f"The model's answer holds no JSON object: {shortened(text)!r}. Choose a model that follows a schema.",
                kind=ModelErrorKind.MALFORMED,
                retryable=True,
                answer_text=text,
            ) from None
        whole = found
    if not isinstance(whole, dict):
        raise ModelError(
            f"The model's answer is JSON, but no object: {shortened(text)!r}.",
            kind=ModelErrorKind.WRONG_SCHEMA,
            retryable=True,
            answer_text=text,
        )
    return _of_whole_characters(whole, text)


def _of_whole_characters(answer: JsonObject, text: str) -> JsonObject:
    # Half a surrogate pair is a Python string that no database and no socket takes.
    if "\\u" in text:
        try:
            json.dumps(answer, ensure_ascii=False).encode()
        except UnicodeEncodeError:
            raise ModelError(
                "The model's answer escapes half a character.",
                kind=ModelErrorKind.MALFORMED,
                retryable=True,
                answer_text=text,
            ) from None
    return answer


def _object_within(text: str, schema: JsonObject) -> JsonObject | None:
    required = frozenset(schema.get("required", ()))
    outermost: JsonObject | None = None
    for found, inside_broken in _objects(text):
        if required <= found.keys() and (required or not inside_broken):
            return found
        if outermost is None and not inside_broken:
            outermost = found
    return outermost


def _objects(text: str) -> Iterator[tuple[JsonObject, bool]]:
    """Each object in the text, and whether it may be a part of one that does not parse."""
    position = text.find("{")
    inside_broken = False
    for _ in range(_OBJECTS_TRIED):
        if position < 0:
            return
        try:
            found, end = _decoder.raw_decode(text, position)
        except (ValueError, RecursionError):
            inside_broken = True
            end = position + 1
        else:
            yield found, inside_broken
        position = text.find("{", end)


class Transcript:
    """The pieces of one chat completion, put together; a whole completion is one piece."""

    def __init__(self) -> None:
        self._pieces: list[str] = []
        self._half = ""  # the first half of a character that a server split between two pieces
        self.refusal = ""
        self.finish = ""
        self.model = ""
        self.usage: JsonObject = {}
        self.choices = 0
        self.logprobs: list[JsonObject] = []  # one entry a token, where the server gives them

    @property
    def text(self) -> str:
        return "".join(self._pieces)

    def add(self, chunk: Any) -> str:
        """The text that this piece adds. Raises ModelError(MALFORMED) for what is no piece of a completion."""
        if not isinstance(chunk, dict):
            raise foreign_answer(chunk, self.text)
        if isinstance(chunk.get("usage"), dict):
            self.usage = chunk["usage"]
        if isinstance(chunk.get("model"), str):
            self.model = chunk["model"]
        choices = chunk.get("choices")
        if not isinstance(choices, list) or not choices or not isinstance(choices[0], dict):
            return ""
        self.choices += 1
        return self._add_choice(choices[0])

    def _add_choice(self, choice: JsonObject) -> str:
        if isinstance(choice.get("finish_reason"), str):
            self.finish = choice["finish_reason"]
        given = choice.get("logprobs")
        tokens = given.get("content") if isinstance(given, dict) else None
        if isinstance(tokens, list):
            self.logprobs += [token for token in tokens if isinstance(token, dict)]
        message = choice.get("message") or choice.get("delta")
        if not isinstance(message, dict):
            return ""
        if isinstance(message.get("refusal"), str):
            self.refusal += message["refusal"]
        piece = self._whole_characters(_text_of(message.get("content")))
        if piece:
            self._pieces.append(piece)
        return piece

    def _whole_characters(self, piece: str) -> str:
        piece, self._half = self._half + piece, ""
        if piece and "\ud800" <= piece[-1] <= "\udbff":
            piece, self._half = piece[:-1], piece[-1]
        return well_formed(piece)

    @property
    def prompt_tokens(self) -> int:
        return _count(self.usage.get("prompt_tokens"))

    @property
    def completion_tokens(self) -> int:
        return _count(self.usage.get("completion_tokens"))

    @property
    def cached_tokens(self) -> int:
        details = self.usage.get("prompt_tokens_details")
        return _count(details.get("cached_tokens")) if isinstance(details, dict) else 0


def probability_of(verdict: str, tokens: Sequence[JsonObject]) -> float | None:
    """How probable it was that the boolean property `verdict` would be true, by the token that it begins with.

    `tokens` are the entries of a chat completion's `logprobs.content`. Only "true" and "false" are weighed against
    each other: a server that forces the form of an answer still tells of what it forbade. None where no token of the
    verdict can be found, or neither way of saying it among its alternatives.
    """
    texts = [token["token"] if isinstance(token.get("token"), str) else "" for token in tokens]
    named = list(re.finditer(rf'"{re.escape(verdict)}"\s*:\s*(?=[tf])', "".join(texts)))
    if not named:
        return None
    place, before = named[-1].end(), 0
    for token, text in zip(tokens, texts, strict=True):
        if before + len(text) > place:
            return _weighed(token, before=text[: place - before])
        before += len(text)
    return None


_IN_FRONT = ' \t\r\n":{'  # of a verdict, within its token


def _weighed(token: JsonObject, *, before: str) -> float | None:
    """P(true) / (P(true) + P(false)) of the alternatives to this token; `before` is what stands in it first."""
    alternatives = token.get("top_logprobs")
    rows = [token, *(alternatives if isinstance(alternatives, list) else ())]
    found: dict[str, float] = {}  # the chosen token stands among its alternatives as well
    for row in rows:
        if not isinstance(row, dict):
            continue
        text, logprob = row.get("token"), row.get("logprob")
        if isinstance(text, str) and isinstance(logprob, int | float) and logprob <= _CERTAIN:
            found[text] = exp(logprob)
    weight = {"true": 0.0, "false": 0.0}
    for text, probability in found.items():
        said = text.removeprefix(before).strip(_IN_FRONT)
        for word in weight:
            if said and (word.startswith(said) or said.startswith(word)):
                weight[word] += probability
    total = sum(weight.values())
    return weight["true"] / total if total else None


_CERTAIN = 0.001  # servers round 0 upwards


def foreign_answer(answer: object, text: str = "") -> ModelError:
    """The error for an answer that no OpenAI-compatible API gives."""
    return ModelError(
        f"The model endpoint answered in another shape than an OpenAI-compatible API: {shortened(str(answer))!r}. "
        "Check the base URL (it often ends in /v1).",
        kind=ModelErrorKind.MALFORMED,
        retryable=True,
        answer_text=text,
    )


def _text_of(content: Any) -> str:
    if isinstance(content, str):
        return content
    if not isinstance(content, list):
        return ""
    parts = (part.get("text") for part in content if isinstance(part, dict))
    return "".join(text for text in parts if isinstance(text, str))


def _count(value: Any) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else 0


def well_formed(text: str) -> str:
    """The text with surrogate pairs joined and halves of pairs replaced, so that it can be encoded."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text


def shortened(text: str, limit: int = 200) -> str:
    """One line of at most `limit` characters, for messages to people."""
    line = " ".join(text.split())
    return line if len(line) <= limit else line[: limit - 1] + "…"
