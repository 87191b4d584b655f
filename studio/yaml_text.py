"""YAML for documents that people keep in version control: nothing but what JSON can say, nothing guessed."""

import re
from typing import Any

import yaml
from django.utils.translation import gettext as _

_MAX_DEPTH = 20
_Loading: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_Dumping: Any = getattr(yaml, "CSafeDumper", yaml.SafeDumper)


class DocumentSyntaxError(Exception):
    """The text is not the YAML that is read here; the message says where and why."""


def read_yaml(text: str) -> Any:
    """A JSON value. Only true, false, null and numbers are not text: `no` and `2026-11-21` stay what was written.

    Raises DocumentSyntaxError, also for aliases and for deep nesting, which small texts use to become huge values.
    """
    try:
        _refuse_bombs(text)
        return yaml.load(text, Loader=_Loader)  # noqa: S506 - a safe loader with fewer types
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        where = _("line %(line)d, column %(column)d") % {
            "line": mark.line + 1 if mark else 1,
            "column": mark.column + 1 if mark else 1,
        }
        raise DocumentSyntaxError(
            _("This is not YAML: %(where)s: %(why)s")
            % {"where": where, "why": error.problem or error.context}
        ) from error
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        raise DocumentSyntaxError(_("This is not YAML: %(why)s") % {"why": error}) from error


def write_yaml(value: Any) -> str:
    """The text of a JSON value. Lines are never broken, so that one changed word is one changed line."""
    text: str = yaml.dump(
        value, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=1_000_000
    )
    return text


def _refuse_bombs(text: str) -> None:
    depth = 0
    for event in yaml.parse(text, Loader=_Loading):
        if isinstance(event, yaml.AliasEvent):
            raise DocumentSyntaxError(
                _("Line %(line)d refers to another place with *; write the text out.")
                % {"line": _line(event)}
            )
        if isinstance(event, yaml.CollectionStartEvent):
            depth += 1
        elif isinstance(event, yaml.CollectionEndEvent):
            depth -= 1
        if depth > _MAX_DEPTH:
            raise DocumentSyntaxError(
                _("Line %(line)d is nested more than %(depth)d levels deep.")
                % {"line": _line(event), "depth": _MAX_DEPTH}
            )


def _line(event: yaml.Event) -> int:
    return event.start_mark.line + 1 if event.start_mark else 1


class _Loader(_Loading):  # type: ignore[misc]
    yaml_implicit_resolvers: dict[str | None, Any] = {}


class _Dumper(_Dumping):  # type: ignore[misc]
    """Quotes every text that this reader, or any other reader of YAML, would take for something else."""

    def ignore_aliases(self, data: Any) -> bool:  # noqa: ARG002 - the signature is the library's
        return True


for _tag, _pattern, _first in (
    ("null", r"~|null|", ["~", "n", ""]),
    ("bool", r"true|false", ["t", "f"]),
    ("int", r"-?(0|[1-9][0-9]*)", list("-0123456789")),
    ("float", r"-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][-+]?[0-9]+)?", list("-0123456789")),
):
    for _class in (_Loader, _Dumper):
        _class.add_implicit_resolver(
            f"tag:yaml.org,2002:{_tag}", re.compile(f"^(?:{_pattern})$"), _first
        )


def _text_node(dumper: Any, text: str) -> Any:
    return dumper.represent_scalar(
        "tag:yaml.org,2002:str", text, style="|" if "\n" in text else None
    )


_Dumper.add_representer(str, _text_node)
