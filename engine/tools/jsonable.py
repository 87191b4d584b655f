"""Python values that a developer wrote, as the JSON that a model would write for them."""

import json
from decimal import Decimal
from typing import Any

from pydantic import BaseModel
from pydantic_core import to_jsonable_python

from engine.errors import SpecError


def as_json(name: str, value: Any) -> Any:
    """A default, choice or example of parameter `name`; raises SpecError for what JSON cannot hold."""
    try:
        jsonable = to_jsonable_python(_with_plain_decimals(value))
        return json.loads(json.dumps(jsonable, allow_nan=False))
    except (TypeError, ValueError, RecursionError) as error:
        raise SpecError(
            f"parameter {name!r} has the value {value!r} as a default, choice or example, "
            "which JSON cannot hold",
            field=name,
        ) from error


def _with_plain_decimals(value: Any) -> Any:
    # pydantic writes a Decimal as text; as an argument it travels as a number.
    match value:
        case Decimal():
            return int(value) if value == value.to_integral_value() else float(value)
        case BaseModel():
            return _with_plain_decimals(value.model_dump(by_alias=True))
        case list() | tuple() | set() | frozenset():
            return [_with_plain_decimals(item) for item in value]
        case dict():
            return {key: _with_plain_decimals(item) for key, item in value.items()}
        case _:
            return value
