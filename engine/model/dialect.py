"""How a request is put to an OpenAI-compatible server, and what was learned of what that server refuses.

Servers differ in how an answer's schema can be asked for and in the parameters they take. Nothing here talks to a
server: the model sends what `body_for` builds and reports what came back.
"""

import json
import re
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from engine.canonical import JsonObject, canonical_json
from engine.model.answers import well_formed
from engine.model.base import ModelRequest


class Feature(StrEnum):
    """What a request may hold and a server may refuse."""

    MAX_TOKENS = "max_tokens"
    MAX_COMPLETION_TOKENS = "max_completion_tokens"
    TEMPERATURE = "temperature"
    SEED = "seed"
    STREAM_OPTIONS = "stream_options"
    LOGPROBS = "logprobs"  # with "top_logprobs"
    STRICT = "strict"  # `strict: true`, for one schema
    THIS_SCHEMA = "this_schema"  # json_schema, for one schema
    JSON_SCHEMA = "json_schema"
    JSON_OBJECT = "json_object"
    SILENT_SCHEMA = (
        "silent_schema"  # a schema that stands in `response_format` only, not in the prompt
    )


_PARAMETERS = (
    Feature.MAX_TOKENS,
    Feature.MAX_COMPLETION_TOKENS,
    Feature.TEMPERATURE,
    Feature.SEED,
    Feature.STREAM_OPTIONS,
)
_ALTERNATIVES = 5  # to each token: what every server with `top_logprobs` allows
_OF_ONE_SCHEMA = frozenset({Feature.STRICT, Feature.THIS_SCHEMA})
_MAY_BE_ABOUT_THE_FORM = frozenset({400, 404, 405, 415, 422, 500, 501})
_MALFORMED_REQUEST = frozenset({400, 422, 501})
_NAMES_THE_FORM = re.compile(
    r"response[_ ]?format|json[_ ]?schema|json[_ ]?object|structured|grammar|schema"
)
_NAMES_ONE_SCHEMA = re.compile(r"invalid[_ ](json[_ ])?schema|grammar|\bstrict\b")
# Refusals that no other way of asking would cure.
_HOPELESS = re.compile(
    r"context[_ ](length|size|window)|model_not_found|invalid_api_key|insufficient_quota|content_(filter|policy)"
)
# A limit that is too high is to be lowered by a person; leaving it out would lift it for good.
_TOO_MANY_TOKENS = re.compile(
    r"tokens.{0,80}(too (large|big|high)|at most|less than|exceed)", re.DOTALL
)
_SCHEMAS_REMEMBERED = 512


@dataclass(frozen=True, slots=True, kw_only=True)
class Refusal:
    """A server's answer of status 400 and up; `param` is the parameter it blames, or empty."""

    status: int
    text: str
    param: str = ""


class Dialect:
    """What one server refuses, learned from its answers and kept as long as the connection."""

    def __init__(self) -> None:
        self._refused: frozenset[Feature] = frozenset()
        self._by_schema: dict[str, frozenset[Feature]] = {}
        self._schema_followed = False

    def refused_for(self, request: ModelRequest) -> frozenset[Feature]:
        """What to leave out of this request, by what is known so far."""
        key = canonical_json(request.schema)
        own = self._by_schema.get(key)
        if own is None:
            own = frozenset() if is_strict(request.schema) else frozenset({Feature.STRICT})
            if len(self._by_schema) >= _SCHEMAS_REMEMBERED:
                self._by_schema.clear()
            self._by_schema[key] = own
        return self._refused | own

    def form_of(self, request: ModelRequest) -> str:
        """`json_schema`, `json_object`, or `text` where neither is taken and the prompt alone says the form."""
        body = body_for(request, model="", refused=self.refused_for(request))
        form: str = body.get("response_format", {"type": "text"})["type"]
        return form

    def give_up(self, body: JsonObject, refusal: Refusal) -> Feature | None:
        """What to leave out next after `body` was refused; None when the refusal is about something else."""
        if refusal.status not in _MAY_BE_ABOUT_THE_FORM:
            return None
        said = refusal.text.lower()
        if _HOPELESS.search(said) or _TOO_MANY_TOKENS.search(said):
            return None
        blamed = refusal.param.lower() or said
        if Feature.LOGPROBS in body and Feature.LOGPROBS in blamed:
            return Feature.LOGPROBS
        for parameter in _PARAMETERS:
            if parameter in body and re.search(rf"\b{parameter}\b", blamed):
                return parameter
        named = _NAMES_THE_FORM.search(blamed) is not None
        unexplained = refusal.status in _MALFORMED_REQUEST and not refusal.param
        if unexplained and not named and Feature.LOGPROBS in body:
            return Feature.LOGPROBS  # a score is a smaller loss than the answer's form
        return self._less_form(body, said) if named or unexplained else None

    def _less_form(self, body: JsonObject, said: str) -> Feature | None:
        form = body.get("response_format")
        if form is None:
            return None
        if form["type"] == "json_object":
            return Feature.JSON_OBJECT
        about_this_one = self._schema_followed or _NAMES_ONE_SCHEMA.search(said) is not None
        if about_this_one and form["json_schema"]["strict"]:
            return Feature.STRICT
        return Feature.THIS_SCHEMA if about_this_one else Feature.JSON_SCHEMA

    def accepted(self, request: ModelRequest, refused: frozenset[Feature]) -> None:
        """Keep what was left out of a request that the server then took."""
        known = self.refused_for(request)
        if refused <= known:
            return
        self._refused |= refused - _OF_ONE_SCHEMA
        self._by_schema[canonical_json(request.schema)] = refused & _OF_ONE_SCHEMA

    def answered(
        self,
        request: ModelRequest,
        refused: frozenset[Feature],
        text: str,
        answer: JsonObject | None,
    ) -> None:
        """Notice a server that takes a schema and ignores it: from then on the prompt says the schema too.

        `answer` is the object read from `text`, None where there was none.
        """
        if self._schema_followed or not _asks_by_schema(refused):
            return
        bare = text.lstrip().startswith("{")
        if bare and answer is None:
            return  # broken JSON says nothing about the schema
        if bare and answer is not None and answer.keys() >= set(request.schema.get("required", ())):
            self._schema_followed = True
        else:
            self._refused |= {Feature.SILENT_SCHEMA}

    def heard_logprobs(self, request: ModelRequest, *, any_came: bool) -> None:
        """Notice a server that takes the wish for logprobs and ignores it: it is not asked again."""
        if request.verdict and not any_came:
            self._refused |= {Feature.LOGPROBS}


def _asks_by_schema(refused: frozenset[Feature]) -> bool:
    return not refused & {Feature.JSON_SCHEMA, Feature.THIS_SCHEMA}


def body_for(request: ModelRequest, *, model: str, refused: frozenset[Feature]) -> JsonObject:
    """The JSON body of a chat completion request without the features in `refused`."""
    messages = [
        {"role": each.role, "content": well_formed(each.content)} for each in request.messages
    ]
    body: JsonObject = {"model": model, "messages": messages}
    if _asks_by_schema(refused):
        body["response_format"] = {
            "type": "json_schema",
            "json_schema": {
                "name": request.schema_name,
                "schema": request.schema,
                "strict": Feature.STRICT not in refused,
            },
        }
    elif Feature.JSON_OBJECT not in refused:
        body["response_format"] = {"type": "json_object"}
    if not _asks_by_schema(refused) or Feature.SILENT_SCHEMA in refused:
        messages[-1]["content"] += schema_in_words(request.schema)
    return body | _settings(request, refused)


def _settings(request: ModelRequest, refused: frozenset[Feature]) -> JsonObject:
    body: JsonObject = {}
    # Older servers ignore `max_completion_tokens` in silence, newer models refuse `max_tokens` aloud: begin with that.
    for limit in (Feature.MAX_TOKENS, Feature.MAX_COMPLETION_TOKENS):
        if limit not in refused:
            body[limit] = request.max_tokens
            break
    if request.temperature is not None and Feature.TEMPERATURE not in refused:
        body["temperature"] = request.temperature
    if Feature.SEED not in refused:
        body["seed"] = request.repeat
    if request.verdict and Feature.LOGPROBS not in refused:
        body["logprobs"] = True
        body["top_logprobs"] = _ALTERNATIVES
    if request.stream:
        body["stream"] = True
        if Feature.STREAM_OPTIONS not in refused:
            body["stream_options"] = {"include_usage": True}
    return body


def schema_in_words(schema: JsonObject) -> str:
    """The end of a prompt that asks for an answer of this schema, whose texts cannot close its delimiter."""
    # Key order is kept: it is the order in which the answer is to be written.
    text = json.dumps(schema, ensure_ascii=False, separators=(",", ":"))
    shown = text.replace("<", "\\u003c").replace(">", "\\u003e").replace("`", "\\u0060")
    return (
        "\n\nAnswer with exactly one JSON object that fits this JSON Schema, and nothing else: no code fence, "
        f"no words before or after it.\n<answer_schema>\n{shown}\n</answer_schema>"
    )


_STRICT_KEYWORDS = frozenset(
    "type properties required additionalProperties items enum const anyOf $ref $defs title description pattern "
    "format minimum maximum exclusiveMinimum exclusiveMaximum multipleOf minItems maxItems minLength maxLength".split()
)
_STRICT_FORMATS = frozenset("date-time time date duration email hostname ipv4 ipv6 uuid".split())
_SAYS_WHAT_IT_IS = frozenset({"type", "enum", "const", "anyOf", "$ref"})


def is_strict(schema: JsonObject) -> bool:
    """Does the schema lie in the subset that `strict: true` allows?

    Every object closed with all its properties required, no other keywords than those enforced there.
    """
    return schema.get("type") == "object" and "anyOf" not in schema and _is_strict_node(schema)


def _is_strict_node(node: Any) -> bool:
    if not isinstance(node, dict) or not node.keys() <= _STRICT_KEYWORDS:
        return False
    if not node.keys() & _SAYS_WHAT_IT_IS:
        return False
    if "format" in node and node["format"] not in _STRICT_FORMATS:
        return False
    kinds = node.get("type", ())
    kinds = (kinds,) if isinstance(kinds, str) else kinds
    properties = node.get("properties", {})
    if "object" in kinds and not (
        node.get("additionalProperties") is False
        and set(node.get("required", ())) == set(properties)
    ):
        return False
    if "array" in kinds and "items" not in node:
        return False
    children = [*properties.values(), *node.get("$defs", {}).values(), *node.get("anyOf", ())]
    if "items" in node:
        children.append(node["items"])
    return all(_is_strict_node(child) for child in children)
