"""Pydantic's JSON Schema of a field without references, titles and examples (compare engine/tools/schemas.py)."""

import json
from typing import Any

from engine.canonical import JsonObject
from engine.tools.extraction.classes import CONTAINS_ITSELF

_NAMED_PARTS = ("properties", "patternProperties", "dependentSchemas")
_LISTED_PARTS = ("anyOf", "oneOf", "allOf", "prefixItems")
_SINGLE_PARTS = ("items", "additionalProperties", "not", "contains", "propertyNames")
_DROPPED = ("$defs", "$ref", "title", "discriminator", "examples", CONTAINS_ITSELF)
_MOST_PARTS = 5_000


def is_json(value: Any) -> bool:
    """Whether it is JSON that everybody reads: nothing infinite, no other objects."""
    try:
        json.dumps(value, allow_nan=False)
    except (TypeError, ValueError, RecursionError):
        return False
    return True


class TooLargeError(Exception):
    """Written out, the schema would have more parts than anyone can use."""


class SelfContained:
    """Writes out schemas that share `definitions`. `recursive` are the names of types that contain themselves."""

    def __init__(self, definitions: JsonObject) -> None:
        self._definitions = definitions
        self._parts = 0
        self.recursive: list[str] = []

    def schema(self, schema: Any) -> Any:
        """One schema; TooLargeError where it has too many parts."""
        self._parts = 0
        self.recursive = []
        return self._inline(schema, ())

    def _inline(self, schema: Any, inside: tuple[str, ...]) -> Any:
        if not isinstance(schema, dict):
            return schema
        self._parts += 1
        if self._parts > _MOST_PARTS:
            raise TooLargeError
        if CONTAINS_ITSELF in schema:
            self.recursive.append(schema[CONTAINS_ITSELF])
        if "$ref" in schema:
            target = schema["$ref"].removeprefix("#/$defs/")
            definition = self._definitions[target]
            if target in inside:
                self.recursive.append(target)
                definition = {"type": "object"} if definition.get("type") == "object" else {}
            schema = {**definition, **schema}
            inside = (*inside, target)
        return {
            key: self._under(key, part, inside)
            for key, part in schema.items()
            if key not in _DROPPED and (key != "default" or is_json(part))
        }

    def _under(self, key: str, value: Any, inside: tuple[str, ...]) -> Any:
        if key in _SINGLE_PARTS:
            return self._inline(value, inside)
        if key in _LISTED_PARTS:
            return [self._inline(part, inside) for part in value]
        if key in _NAMED_PARTS:
            return {field: self._inline(part, inside) for field, part in value.items()}
        return value
