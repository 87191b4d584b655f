"""What reading a parameter class gives: its fields, and what is the matter with them."""

from dataclasses import dataclass

from engine.tools.template import TemplateField


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """One thing that whoever wrote the class should know. `line` counts from 1, 0 where there is none.

    Of the class (there is none, or it is not what it should be):
    - absent: no class of this name at the top level of the file
    - old_style: there is one, inside another class (StudioBaseTool)
    - not_a_class: the name is there, and stands for something that is imported or made by a call
    - not_a_model: it is a class, and not a pydantic model; fields are read as if it were
    - unknown_base: it inherits from a class that is not in this file; what that one adds is not known
    - v1: it is written for pydantic 1
    - conditional: it, or a field of it, is there under a condition that only running the file would tell
    - refused: pydantic will not make this class or this field, so that the tool cannot start
    - extra_allowed: it takes values that no field names
    - alias_generator: the names under which values are passed come from a function

    Of a field:
    - unknown_type: only running the file would tell its type; its schema allows anything (wholly, or in that place)
    - unusual_type: its type is not of the specification's list
    - recursive_type: its type contains itself; the schema stops there
    - too_large: its schema is too large to be shown to a model; it allows anything
    - same_name: another field takes the value of the same name (alias); this one is what the schema has
    - no_description: a field of ToolParameters without one
    """

    code: str
    message: str
    line: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Extracted:
    """`fields` are in pydantic's order. `found` is False where there is no class of the name at the top level;
    fields are read nevertheless where something else can be taken for it."""

    found: bool
    fields: tuple[TemplateField, ...] = ()
    problems: tuple[Problem, ...] = ()
