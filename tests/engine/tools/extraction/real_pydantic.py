"""What the real thing says, written the way a report has it, for comparison."""

import json
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from engine.tools.template import TemplateField

WORKER = Path(__file__).with_name("pydantic_worker.py")
SCHEMAS = ("items", "additionalProperties", "contains", "propertyNames", "not")
LISTS = ("anyOf", "oneOf", "allOf", "prefixItems")


class RefusedError(Exception):
    """The class fails in Python or pydantic."""


class RealPydantic:
    """One long-lived process that runs modules and answers with the JSON Schema of a class."""

    def __init__(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, str(WORKER)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def fields(self, source: str, class_name: str) -> list[dict[str, Any]]:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps({"source": source, "class": class_name}) + "\n")
        self._process.stdin.flush()
        answer = json.loads(self._process.stdout.readline())
        if "error" in answer:
            raise RefusedError(answer["error"])
        return comparable(answer["schema"])

    def close(self) -> None:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        self._process.stdout.close()
        self._process.wait(10)


@dataclass(frozen=True)
class Definitions:
    schemas: dict[str, Any]

    def plain(self, schema: Any, inside: tuple[str, ...] = ()) -> Any:
        """`schema` with definitions written out, without titles, discriminators and examples."""
        if not isinstance(schema, dict):
            return schema
        reference = schema.get("$ref", "").removeprefix("#/$defs/")
        beside = {key: schema[key] for key in schema if key not in ("$ref", "title", "examples")}
        if reference in inside:
            cut = {"type": "object"} if self.schemas[reference].get("type") == "object" else {}
            return cut | beside
        if reference:
            return self.plain(self.schemas[reference] | beside, (*inside, reference))
        plain = {
            key: schema[key]
            for key in schema
            if key not in ("title", "discriminator", "examples", "$defs")
        }
        for key, part in plain.items():
            if key in SCHEMAS:
                plain[key] = self.plain(part, inside)
            elif key in LISTS:
                plain[key] = [self.plain(branch, inside) for branch in part]
            elif key in ("properties", "patternProperties"):
                plain[key] = {name: self.plain(inner, inside) for name, inner in part.items()}
        return plain


def comparable(schema: dict[str, Any]) -> list[dict[str, Any]]:
    """The properties in order, each with what a report says of a field."""
    definitions = Definitions(schema.get("$defs", {}))
    start = schema.get("$ref", "").removeprefix("#/$defs/")
    whole = definitions.schemas[start] if start else schema
    fields = []
    for name, part in whole.get("properties", {}).items():
        plain = definitions.plain(part, (start,) if start else ())
        fields.append(
            {
                "name": name,
                "required": name in whole.get("required", []),
                "description": plain.pop("description", ""),
                "default": plain.pop("default", None),
                "schema": plain,
            }
        )
    return fields


def as_extracted(field: TemplateField) -> dict[str, Any]:
    return {
        "name": field.name,
        "required": field.required_by_pydantic,
        "description": field.description,
        "default": field.default,
        "schema": field.schema,
    }
