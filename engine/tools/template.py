"""What is known of a tool template from its files alone (spec/tool-template-specification.md, TOOLS.md §2)."""

from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from pydantic import TypeAdapter

from engine.canonical import JsonObject


class Severity(StrEnum):
    ERROR = "error"  # the template is not taken
    WARNING = "warning"  # it is taken, and may not do what was meant


@dataclass(frozen=True, slots=True, kw_only=True)
class Issue:
    """One thing that a rule found. `line` counts from 1, 0 where there is none; `source` is the text of that line."""

    rule: str
    severity: Severity
    message: str
    path: str = ""
    line: int = 0
    source: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class TemplateField:
    """One field of UserParameters or ToolParameters.

    `name` is the key under which its value is passed (pydantic's alias, where it has one). `type` is the annotation as
    people read it, `schema` the JSON Schema of a value as pydantic would write it. `required` is by the specification,
    by which Optional makes a field optional; `required_by_pydantic` is what the class itself will say. A field that
    is only the latter is passed as null when no value is given. `default` is null where `has_default` comes from
    an expression that only running the code would tell. `secret` says that its value is to be hidden (by its type, or
    by its name).
    """

    name: str
    type: str
    schema: JsonObject
    required: bool
    required_by_pydantic: bool
    description: str = ""
    has_default: bool = False
    default: Any = None
    choices: tuple[Any, ...] = ()
    secret: bool = False
    line: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """What checking a package found: all issues at once, and what could be read in spite of them.

    `output_key` is None where the tool has none. `requirements` are the lines of requirements.txt that ask for
    something, without comments.
    """

    name: str
    description: str = ""
    user_parameters: tuple[TemplateField, ...] = ()
    tool_parameters: tuple[TemplateField, ...] = ()
    output_key: str | None = None
    requirements: tuple[str, ...] = ()
    issues: tuple[Issue, ...] = field(default=())

    @property
    def ok(self) -> bool:
        return not self.errors

    @property
    def errors(self) -> tuple[Issue, ...]:
        return tuple(issue for issue in self.issues if issue.severity is Severity.ERROR)

    @property
    def warnings(self) -> tuple[Issue, ...]:
        return tuple(issue for issue in self.issues if issue.severity is Severity.WARNING)

    def to_json(self) -> JsonObject:
        value: JsonObject = _REPORT.dump_python(self, mode="json")
        return value

    @classmethod
    def from_json(cls, value: JsonObject) -> "Report":
        return _REPORT.validate_python(value)


_REPORT = TypeAdapter(Report)
