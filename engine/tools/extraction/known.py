"""What names of the standard library and of pydantic stand for: types, and calls that do nothing but make a value.

Nothing else is ever looked up or called for a file that somebody uploaded.
"""

import abc
import collections
import collections.abc
import dataclasses
import datetime as dt
import decimal
import enum
import inspect
import ipaddress
import math
import pathlib
import re
import sys
import textwrap
import typing
import uuid
from collections.abc import Callable, Mapping
from types import MappingProxyType, ModuleType
from typing import Any

import annotated_types
import pydantic
import pydantic.alias_generators
import pydantic.dataclasses
import pydantic.json_schema
import pydantic.networks
import typing_extensions
from pydantic import GetCoreSchemaHandler, GetJsonSchemaHandler
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema, core_schema

ALL = frozenset({"*"})

MODULES: Mapping[str, tuple[ModuleType, frozenset[str]]] = MappingProxyType(
    {
        "abc": (abc, frozenset({"ABC"})),
        "typing": (typing, ALL),
        "typing_extensions": (typing_extensions, ALL),
        "collections": (
            collections,
            frozenset({"abc", "OrderedDict", "deque", "defaultdict", "Counter"}),
        ),
        "collections.abc": (collections.abc, ALL),
        "dataclasses": (dataclasses, frozenset({"dataclass", "field", "KW_ONLY"})),
        "datetime": (dt, ALL),
        "decimal": (decimal, frozenset({"Decimal"})),
        "enum": (enum, ALL),
        "inspect": (inspect, frozenset({"cleandoc"})),
        "ipaddress": (ipaddress, ALL),
        "math": (math, frozenset({"pi", "e", "tau", "inf", "nan"})),
        "pathlib": (pathlib, ALL),
        "re": (
            re,
            frozenset("compile Pattern I IGNORECASE M MULTILINE S DOTALL X VERBOSE".split()),
        ),
        "sys": (sys, frozenset({"version_info", "platform", "maxsize"})),
        "textwrap": (textwrap, frozenset({"dedent"})),
        "uuid": (uuid, ALL),
        "annotated_types": (annotated_types, ALL),
        "pydantic": (pydantic, ALL),
        "pydantic.alias_generators": (pydantic.alias_generators, ALL),
        "pydantic.config": (pydantic.config, frozenset({"ConfigDict"})),
        "pydantic.dataclasses": (pydantic.dataclasses, frozenset({"dataclass"})),
        "pydantic.fields": (pydantic.fields, frozenset({"Field", "PrivateAttr"})),
        "pydantic.functional_validators": (pydantic.functional_validators, ALL),
        "pydantic.json_schema": (pydantic.json_schema, frozenset({"SkipJsonSchema"})),
        "pydantic.main": (pydantic.main, frozenset({"BaseModel"})),
        "pydantic.networks": (pydantic.networks, ALL),
        "pydantic.types": (pydantic.types, ALL),
    }
)
"""Module → what may be taken from it."""

BUILTINS: Mapping[str, object] = MappingProxyType(
    {
        kind.__name__: kind
        for kind in (
            str,
            int,
            float,
            bool,
            bytes,
            complex,
            list,
            dict,
            set,
            frozenset,
            tuple,
            type,
            object,
        )
    }
)


@dataclasses.dataclass(frozen=True, slots=True)
class Module:
    """A name that stands for a module, by its full name."""

    name: str


class _Text:
    """Text of a format. Stands for pydantic's own type, which asks for a package that only the tool may have."""

    format: str

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        return core_schema.str_schema()

    @classmethod
    def __get_pydantic_json_schema__(
        cls, schema: CoreSchema, handler: GetJsonSchemaHandler
    ) -> JsonSchemaValue:
        return {**handler(schema), "type": "string", "format": cls.format}


class _Email(_Text):
    format = "email"


class _NameAndEmail(_Text):
    format = "name-email"


class _Settings(pydantic.BaseModel):
    """pydantic_settings.BaseSettings, as far as it matters for its fields."""

    model_config = pydantic.ConfigDict(
        extra="forbid", protected_namespaces=("model_validate", "model_dump")
    )


_STAND_INS: Mapping[tuple[str, str], object] = MappingProxyType(
    {
        ("pydantic", "EmailStr"): _Email,
        ("pydantic.networks", "EmailStr"): _Email,
        ("pydantic", "NameEmail"): _NameAndEmail,
        ("pydantic.networks", "NameEmail"): _NameAndEmail,
        ("pydantic_settings", "BaseSettings"): _Settings,
        ("pydantic_settings.main", "BaseSettings"): _Settings,
        ("pydantic_settings", "SettingsConfigDict"): pydantic.ConfigDict,
        ("typing", "TYPE_CHECKING"): False,
        ("typing_extensions", "TYPE_CHECKING"): False,
    }
)

VERSION_1 = "pydantic.v1"


def is_known(module: str) -> bool:
    """Whether what the module holds is known here, so that an import from it can be followed."""
    return module in MODULES or module == VERSION_1 or module.startswith(VERSION_1 + ".")


def attribute(module: str, name: str) -> object:
    """What `name` of `module` stands for, a Module if that is one; KeyError where it is not known."""
    if (module, name) in _STAND_INS:
        return _STAND_INS[module, name]
    if f"{module}.{name}" in MODULES or f"{module}.{name}" == VERSION_1:
        return Module(f"{module}.{name}")
    if module == VERSION_1 or module.startswith(VERSION_1 + "."):
        return attribute("pydantic", name)
    found, allowed = MODULES[module]
    if name.startswith("_") or (allowed is not ALL and name not in allowed):
        raise KeyError(name)
    try:
        value = getattr(found, name)
    except Exception as error:  # pydantic answers old names with errors of several kinds
        raise KeyError(name) from error
    if isinstance(value, ModuleType):
        raise KeyError(name)
    return value


def names_of(module: str) -> tuple[str, ...]:
    """What `from module import *` would bind, as far as it is known here; KeyError for an unknown module."""
    found, allowed = MODULES[module]
    names = getattr(found, "__all__", None) or [
        name for name in vars(found) if not name.startswith("_")
    ]
    return tuple(name for name in names if allowed is ALL or name in allowed)


def lacks(module: str, name: str) -> bool:
    """Whether an import of `name` from `module` is sure to fail."""
    if not is_known(module) or module.startswith(VERSION_1):
        return False
    return not hasattr(MODULES[module][0], name) and f"{module}.{name}" not in MODULES


def _whole(*arguments: Any) -> int:
    """int() of short things only: the digits of a large Decimal would take for ever."""
    if not all(isinstance(argument, (str, int, float)) for argument in arguments):
        raise TypeError("int() of something else than a number or text")
    return int(*arguments)


CONSTRUCTORS: Mapping[object, Callable[..., object]] = MappingProxyType(
    {
        **{
            made: made
            for made in (
                *(
                    str,
                    float,
                    bool,
                    list,
                    dict,
                    set,
                    frozenset,
                    tuple,
                    len,
                    abs,
                    sorted,
                    min,
                    max,
                    enum.auto,
                ),
                *(
                    dt.date,
                    dt.datetime,
                    dt.time,
                    dt.timedelta,
                    dt.timezone,
                ),
                *(decimal.Decimal, uuid.UUID, textwrap.dedent, inspect.cleandoc, re.compile),
                *(pathlib.Path, pathlib.PurePath, pathlib.PurePosixPath, pathlib.PosixPath),
                *(
                    ipaddress.IPv4Address,
                    ipaddress.IPv6Address,
                    ipaddress.IPv4Network,
                    ipaddress.IPv6Network,
                ),
                *(annotated_types.Gt, annotated_types.Ge, annotated_types.Lt, annotated_types.Le),
                *(
                    annotated_types.MultipleOf,
                    annotated_types.MinLen,
                    annotated_types.MaxLen,
                    annotated_types.Len,
                ),
                *(annotated_types.Interval,),
                *(
                    pydantic.ConfigDict,
                    pydantic.StringConstraints,
                    pydantic.AliasChoices,
                    pydantic.AliasPath,
                ),
                *(pydantic.Strict, pydantic.SecretStr, pydantic.SecretBytes, pydantic.AllowInfNan),
                *(
                    pydantic.AliasGenerator,
                    pydantic.Tag,
                    pydantic.FailFast,
                    pydantic.UrlConstraints,
                    pydantic.Discriminator,
                ),
                *(pydantic.conint, pydantic.confloat, pydantic.constr, pydantic.conbytes),
                *(pydantic.condecimal, pydantic.condate),
            )
        },
        int: _whole,
    }
)
"""Calls that make a value of their arguments, and nothing else."""

OF_TYPES = frozenset({pydantic.conlist, pydantic.conset, pydantic.confrozenset})
"""Calls whose first argument is a type."""

VALIDATORS = frozenset(
    {
        *(pydantic.AfterValidator, pydantic.BeforeValidator),
        *(pydantic.WrapValidator, pydantic.PlainValidator),
    }
)
"""Calls whose first argument is a function, which does not matter for the schema."""

WITHOUT_EFFECT = frozenset(
    {
        pydantic.PlainSerializer,
        pydantic.WrapSerializer,
        typing_extensions.Doc,
        typing_extensions.deprecated,
    }
)
"""Metadata that does not change what is accepted."""
