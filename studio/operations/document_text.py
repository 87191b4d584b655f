"""The text of a document as its outermost object: JSON, or the YAML that people write."""

import json
from collections.abc import Iterator
from typing import Any

from django.utils.translation import gettext as _

from engine.canonical import JsonObject
from studio.yaml_text import DocumentSyntaxError, read_yaml


def parse(text: str) -> JsonObject:
    """The document's outermost object; raises DocumentSyntaxError."""
    value = _value(text.removeprefix("\ufeff"))
    if not isinstance(value, dict):
        raise DocumentSyntaxError(
            _("The document is one object with the fields name, tools, guidelines …")
        )
    for found in _texts(value):
        if "\x00" in found or (not found.isascii() and _half_characters(found)):
            raise DocumentSyntaxError(
                _("%(text)r contains a character that cannot be stored.") % {"text": found[:80]}
            )
    return {str(key): item for key, item in value.items()}


def _value(text: str) -> Any:
    if not text.lstrip().startswith("{"):
        return read_yaml(text)
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        problem = DocumentSyntaxError(_("This is not JSON: %(why)s") % {"why": error})
    try:  # YAML may begin with a brace too
        return read_yaml(text)
    except DocumentSyntaxError:
        raise problem from None


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, list):
        for item in value:
            yield from _texts(item)
    elif isinstance(value, dict):
        for key, item in value.items():
            yield str(key)
            yield from _texts(item)


def _half_characters(text: str) -> bool:
    return any("\ud800" <= character <= "\udfff" for character in text)
