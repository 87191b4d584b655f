"""What a report has beside pydantic's schema: flags, secrets, choices, and what an author is told."""

import ast
from textwrap import dedent

import pytest

from engine.tools.extraction import Extracted, read_fields
from engine.tools.template import TemplateField

IMPORTS = """
from enum import Enum
from typing import *
from pydantic import BaseModel, ConfigDict, Field, SecretStr
"""


def read(source: str, name: str = "ToolParameters") -> Extracted:
    return read_fields(ast.parse(IMPORTS + dedent(source)), name)


def fields_of(body: str, name: str = "ToolParameters") -> dict[str, TemplateField]:
    lines = "".join(f"    {line}\n" for line in dedent(body).strip().splitlines())
    extracted = read(f"class {name}(BaseModel):\n{lines}", name)
    return {field.name: field for field in extracted.fields}


def codes_of(body: str, name: str = "ToolParameters") -> set[str]:
    lines = "".join(f"    {line}\n" for line in dedent(body).strip().splitlines())
    return codes(read(f"class {name}(BaseModel):\n{lines}", name))


def codes(extracted: Extracted) -> set[str]:
    return {problem.code for problem in extracted.problems}


def test_optional_is_not_required_by_the_specification_and_may_be_by_pydantic() -> None:
    fields = fields_of("""
        a: str
        b: Optional[str]
        c: str | None = Field(description="x")
        d: Union[int, None] = None
        e: int = 3
        f: List[str] = Field(default_factory=list)
        g: Any
        h: "Optional[str]"
        i: Annotated[Optional[str], Field(description="x")]
        j: Optional[Unknown]
        """)
    assert {
        name: (field.required, field.required_by_pydantic) for name, field in fields.items()
    } == {
        "a": (True, True),
        "b": (False, True),
        "c": (False, True),
        "d": (False, False),
        "e": (False, False),
        "f": (False, False),
        "g": (True, True),
        "h": (False, True),
        "i": (False, True),
        "j": (False, True),
    }


def test_a_default_is_told_where_it_can_be() -> None:
    fields = fields_of("""
        a: int = 60 * 60
        b: List[str] = Field(default_factory=lambda: ["x"])
        c: int = compute()
        d: Optional[int] = None
        e: str = Field(default_factory=make)
        f: float = float("nan")
        g: int
        """)
    assert {name: (field.has_default, field.default) for name, field in fields.items()} == {
        "a": (True, 3600),
        "b": (True, ["x"]),
        "c": (True, None),
        "d": (True, None),
        "e": (True, None),
        "f": (True, None),
        "g": (False, None),
    }


def test_what_no_json_can_hold_is_left_out() -> None:
    source = """
    class Part(BaseModel):
        x: float = float("inf")
    class ToolParameters(BaseModel):
        a: float = float("inf")
        b: Part
        c: Literal[Field]
    """
    assert [field.schema for field in read(source).fields] == [
        {"type": "number"},
        {"type": "object", "properties": {"x": {"type": "number"}}},
        {},
    ]


def test_a_type_reads_as_it_is_written() -> None:
    fields = fields_of("""
        a: Optional[ List[ str ] ]
        b: "int | None"
        c: Annotated[Literal['x', "y"], Field(description="long")]
        """)
    assert {name: field.type for name, field in fields.items()} == {
        "a": "Optional[List[str]]",
        "b": "int | None",
        "c": "Literal['x', 'y']",
    }


def test_a_field_knows_its_line_and_an_inherited_one_that_of_its_base() -> None:
    source = """
    class Base(BaseModel):
        a: int
    class ToolParameters(Base):
        b: int
    """
    assert {field.name: field.line for field in read(source).fields} == {"a": 7, "b": 9}


def test_choices_are_those_of_literals_and_enums_also_within_optional_and_lists() -> None:
    source = """
    class Mode(Enum):
        A = "a"
        B = "b"
    class ToolParameters(BaseModel):
        a: Literal["x", "y"]
        b: Optional[Literal["x", 1]] = None
        c: List[Mode]
        d: Mode = Mode.A
        e: Literal["only"]
        f: Union[Mode, str]
        g: str
    """
    assert {field.name: field.choices for field in read(source).fields} == {
        "a": ("x", "y"),
        "b": ("x", 1),
        "c": ("a", "b"),
        "d": ("a", "b"),
        "e": ("only",),
        "f": (),
        "g": (),
    }


@pytest.mark.parametrize(
    "name",
    """api_key apiKey APIKey api_key_2 OPENAI_API_KEY token access_token authToken secret client_secret password
    db_password passwd pwd credentials private_key aws_secret_access_key connection_string dsn bearer_token auth
    authorization passphrase apikey token_value webhook_secret database_url jwt github_pat api_tokens""".split(),
)
def test_a_name_that_says_secret_hides_its_text(name: str) -> None:
    field = fields_of(f"{name}: Optional[str] = 'given in the code'", "UserParameters")[name]
    assert field.secret
    assert field.has_default
    assert field.default is None


@pytest.mark.parametrize(
    "name",
    """max_tokens token_limit key_name author keyword keywords monkey primary_key_column key sort_key partition_key
    token_count password_policy secret_name next_page_token stop_token url endpoint base_url credentials_path
    auth_type tokenizer bypass passenger description""".split(),
)
def test_a_name_that_only_resembles_one_hides_nothing(name: str) -> None:
    assert not fields_of(f"{name}: str = 'x'", "UserParameters")[name].secret


def test_a_secret_is_told_by_its_type_and_not_by_its_name_where_it_is_no_text() -> None:
    fields = fields_of(
        "a: SecretStr\nb: Optional[SecretStr] = None\napi_key: int\npassword: bool\ntoken: List[str]\n"
        "secret: Literal['x', 'y']\nclient_secret: Helper"
    )
    assert {name for name, field in fields.items() if field.secret} == {
        "a",
        "b",
        "token",
        "client_secret",
    }


def test_a_field_is_named_by_its_alias_and_the_secret_by_either_name() -> None:
    fields = fields_of(
        "api_key: str = Field(alias='k')\nvalue: str = Field(validation_alias='api_token')"
    )
    assert {name: field.secret for name, field in fields.items()} == {"k": True, "api_token": True}


@pytest.mark.parametrize(
    "annotation",
    [
        *(
            "Unknown",
            "List[Unknown]",
            "helpers.Mode",
            "np.ndarray",
            "load_types()",
            "Literal[tuple(load())]",
        ),
        *(
            "'not a type!'",
            "Annotated[str, Custom()]",
            "[int, str]",
            "3",
            "lambda: int",
            "Enum('E', 'a b')",
            "Base.Inner",
        ),
        *(
            "Callable[[int], str]",
            "type('X', (), {})",
            "int if flag else str",
            "Later",
            "Dict[str, Other['x']]",
        ),
    ],
)
def test_a_type_that_only_running_would_tell_allows_anything_and_is_named(annotation: str) -> None:
    extracted = read(
        f"import helpers\nfrom helpers import Other, Base\nclass ToolParameters(BaseModel):\n    a: {annotation}\n"
        "    b: int\nclass Later: pass\n"
    )
    first, second = extracted.fields
    assert (first.schema, first.required, second.schema) == ({}, True, {"type": "integer"})
    (problem,) = [problem for problem in extracted.problems if problem.code == "unknown_type"]
    assert problem.line == first.line
    assert "'a'" in problem.message


def test_a_constraint_that_only_running_would_tell_makes_the_type_unknown() -> None:
    fields = fields_of("a: int = Field(3, le=os.cpu_count(), description='text')")
    assert (fields["a"].schema, fields["a"].description, fields["a"].default) == ({}, "text", 3)


def test_a_list_that_changes_while_the_file_runs_is_not_taken_for_what_it_was() -> None:
    source = """
    CHOICES = ["a"]
    CHOICES.append("b")
    LIMIT = 3
    if os.environ.get("X"):
        LIMIT = 4
    for LAST in range(3):
        pass
    class ToolParameters(BaseModel):
        a: List[str] = CHOICES
        b: int = LIMIT
        c: Literal[tuple(CHOICES)]
        d: int = LAST
    """
    fields = {field.name: field for field in read(source).fields}
    assert [field.default for field in fields.values()] == [None, None, None, None]
    assert fields["c"].schema == {}


def test_types_outside_the_specification_are_noted_though_they_are_known() -> None:
    body = "a: Dict[str, int]\nb: datetime.date\nc: Any\nd: Union[int, str]\ne: SecretStr"
    extracted = read(
        "import datetime\nclass UserParameters(BaseModel):\n"
        + "".join(f"    {line}\n" for line in body.splitlines()),
        "UserParameters",
    )
    assert [problem.code for problem in extracted.problems] == ["unusual_type"] * 5
    usual = "a: str\nb: Optional[int]\nc: List[Literal['x']]\nd: bool | None = None\ne: list[list[float]]"
    assert codes_of(usual, "UserParameters") == set()


def test_only_fields_for_agents_need_a_description() -> None:
    assert codes_of("a: int\nb: int = Field(description=' ')\nc: int = Field(description='c')") == {
        "no_description"
    }
    assert codes_of("a: int", "UserParameters") == set()


def test_there_is_no_class() -> None:
    extracted = read("def ToolParameter(): pass")
    assert (extracted.found, extracted.fields, codes(extracted)) == (False, (), {"absent"})


def test_the_classes_of_the_old_style_are_read_where_they_are() -> None:
    extracted = read("""
    class MyTool(StudioBaseTool):
        class ToolParameters(BaseModel):
            a: int = Field(description="x")
    """)
    assert (extracted.found, codes(extracted)) == (False, {"old_style"})
    assert [field.name for field in extracted.fields] == ["a"]


@pytest.mark.parametrize(
    ("source", "fields"),
    [
        ("ToolParameters = create_model('ToolParameters', a=(int, 3))", 0),
        ("from helpers import ToolParameters", 0),
        ("def ToolParameters(): pass", 0),
        ("class P(BaseModel):\n    a: int = Field(description='x')\nToolParameters = P", 1),
    ],
)
def test_something_else_has_the_name(source: str, fields: int) -> None:
    extracted = read(source)
    assert (extracted.found, codes(extracted), len(extracted.fields)) == (
        False,
        {"not_a_class"},
        fields,
    )


@pytest.mark.parametrize(
    "head",
    [
        *(
            "class ToolParameters:",
            "class ToolParameters(object):",
            "class ToolParameters(TypedDict):",
        ),
        *(
            "import dataclasses\n@dataclasses.dataclass\nclass ToolParameters:",
            "class ToolParameters(NamedTuple):",
        ),
        *(
            "class Plain:\n    pass\nclass ToolParameters(Plain):",
            "class ToolParameters(Enum):\n    X = 1",
        ),
    ],
)
def test_a_class_that_is_no_model_is_read_as_if_it_were(head: str) -> None:
    extracted = read(f"{head}\n    a: int\n    b: str = 'x'\n", "ToolParameters")
    assert extracted.found
    assert "not_a_model" in codes(extracted)
    if "Enum" not in head:
        assert [(field.name, field.required, field.default) for field in extracted.fields] == [
            ("a", True, None),
            ("b", False, "x"),
        ]


def test_a_base_that_is_not_in_the_file_is_named() -> None:
    extracted = read(
        "from helpers import Params\nclass ToolParameters(Params):\n    a: int = Field(description='x')"
    )
    assert (extracted.found, codes(extracted), [field.name for field in extracted.fields]) == (
        True,
        {"unknown_base"},
        ["a"],
    )


@pytest.mark.parametrize(
    "source",
    [
        "from pydantic.v1 import BaseModel, Field\nclass ToolParameters(BaseModel):\n    a: Optional[int]",
        "import pydantic.v1 as p\nclass ToolParameters(p.BaseModel):\n    a: Optional[int]",
        "import pydantic\nclass ToolParameters(pydantic.v1.BaseModel):\n    a: Optional[int]",
        "class ToolParameters(BaseModel):\n    a: Optional[int]\n    class Config:\n        extra = 'forbid'",
        """
        from pydantic import validator
        class ToolParameters(BaseModel):
            a: Optional[int]
            @validator('a')
            def check(cls, v): return v
        """,
        "class ToolParameters(BaseModel):\n    a: Optional[int] = Field(None, min_items=1)",
    ],
)
def test_pydantic_1_is_recognised(source: str) -> None:
    extracted = read(source)
    assert "v1" in codes(extracted)
    assert [(field.name, field.required) for field in extracted.fields] == [("a", False)]


def test_what_depends_on_the_machine_is_said() -> None:
    assert "conditional" in codes(
        read("""
    if os.name == "nt":
        class ToolParameters(BaseModel):
            a: int
    else:
        class ToolParameters(BaseModel):
            b: int
    """)
    )
    assert "conditional" in codes_of("if os.name == 'nt':\n    a: int\nb: int")
    assert "conditional" in codes_of("try:\n    a: Later\nexcept NameError:\n    a: str")


def test_a_class_that_pydantic_refuses_is_read_field_by_field() -> None:
    extracted = read(
        "class ToolParameters(BaseModel):\n    a: int\n    b: int = Field(ge='x')\n    c: float"
    )
    assert "refused" in codes(extracted)
    assert [(field.name, field.schema) for field in extracted.fields] == [
        ("a", {"type": "integer"}),
        ("b", {}),
        ("c", {"type": "number"}),
    ]
    assert "refused" in codes_of("a: int\nb = 3")


def test_a_type_without_json_form_is_unknown_and_the_others_are_not() -> None:
    fields = fields_of("a: int\nb: Callable\nc: str")
    assert [field.schema for field in fields.values()] == [
        {"type": "integer"},
        {},
        {"type": "string"},
    ]


def test_settings_that_change_names_or_let_in_more_are_said() -> None:
    assert "extra_allowed" in codes_of("model_config = ConfigDict(extra='allow')\na: int")
    assert "alias_generator" in codes_of(
        "model_config = ConfigDict(alias_generator=lambda name: name.upper())\na: int"
    )
    assert "same_name" in codes_of("a: int = Field(alias='x')\nb: int = Field(alias='x')")


def test_a_type_within_itself_ends_there() -> None:
    extracted = read(
        "class Node(BaseModel):\n    below: List['Node'] = []\nclass ToolParameters(BaseModel):\n    tree: Node"
    )
    assert "recursive_type" in codes(extracted)
    assert extracted.fields[0].schema == {
        "type": "object",
        "properties": {"below": {"type": "array", "items": {"type": "object"}, "default": []}},
    }


def test_a_schema_that_doubles_with_every_class_is_cut_off() -> None:
    source = "class C0(BaseModel):\n    x: int\n" + "".join(
        f"class C{n}(BaseModel):\n    a: C{n - 1}\n    b: C{n - 1}\n" for n in range(1, 18)
    )
    extracted = read(source + "class ToolParameters(BaseModel):\n    a: C17\n    b: int")
    assert "too_large" in codes(extracted)
    assert [field.schema for field in extracted.fields] == [{}, {"type": "integer"}]


def test_where_the_default_of_a_parameter_is_text_of_the_file_it_is_cleaned_as_pydantic_does() -> (
    None
):
    fields = fields_of(
        'model_config = ConfigDict(use_attribute_docstrings=True)\na: int\n"""One.\n\n    Two."""'
    )
    assert fields["a"].description == "One.\n\nTwo."
