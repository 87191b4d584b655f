"""Reading a file runs nothing of it, ends soon, and never fails, whatever it holds."""

import ast
import sysconfig
import time
from pathlib import Path

import pytest
from hypothesis import given, reject, settings
from hypothesis import strategies as st

from engine.tools.extraction import read_fields
from tests.engine.tools.extraction.generated import files

HEAD = """
import enum, typing, typing_extensions
from typing import *
from pydantic import *
from pydantic import BaseModel, Field, ConfigDict
"""


@pytest.mark.parametrize(
    "body",
    [
        "a: {run}",
        "a: '{run}'",
        "a: List['{run}']",
        "a: \"List['{run}']\"",
        "a: Annotated['{run}', Field()]",
        "a: Annotated[int, {run}]",
        "a: Union['{run}', None]",
        "a: ForwardRef('{run}')",
        "a: List[ForwardRef('{run}')]",
        "a: TypeVar('T', bound='{run}')",
        "a: NewType('N', '{run}')",
        "a: typing_extensions.TypeAliasType('N', '{run}')",
        "a: conlist('{run}', min_length=1)",
        "a: conlist(item_type='{run}')",
        "a: Json['{run}']",
        "a: ImportString = {run}",
        "a: ClassVar['{run}'] = 1",
        "a: Final['{run}'] = 1",
        "a: int = {run}",
        "a: int = Field({run})",
        "a: int = Field(default_factory=lambda: {run})",
        "a: int = Field(description={run})",
        "a: int = Field(json_schema_extra=lambda s: {run})",
        "a: str = f'{{{run}}}'",
        "a: int\n    model_config = ConfigDict(alias_generator=lambda n: {run})",
        "a: int\n    @field_validator('a', mode='plain')\n    def check(cls, v): {run}",
        "a: int\n    @({run})\n    def check(self): pass",
        "a: int\n    {run}",
        "a: int\n    __get_pydantic_core_schema__ = lambda *a: {run}",
        "a: int\n    def __init_subclass__(cls): {run}\nclass ToolParameters(ToolParameters): pass",
        "a: 'E'\nclass E(enum.Enum):\n    X = {run}",
        "a: 'E'\nclass E(str, enum.Enum):\n    X = 'x'\n    def __init__(self, v): {run}\n    def __str__(self): {run}",
        "a: 'B[int]'\nT = TypeVar('T', bound='{run}')\nclass B(BaseModel, Generic[T]):\n    x: '{run}'",
        "a: 'R'\nclass R(RootModel['{run}']): pass",
        "a: 'D'\nclass D(typing_extensions.TypedDict):\n    x: '{run}'",
        "a: 'D'\nclass D(NamedTuple):\n    x: '{run}' = {run}",
        "a: 'D'\nfrom dataclasses import *\n@dataclass\nclass D:\n    x: '{run}' = field(default_factory=lambda: 1)",
        "a: 'D'\n@{run}\nclass D(BaseModel, metaclass={run}):\n    x: int",
        "a: 'Optional[List[Text]]'\nText = '{run}'",
        "a: int\nif {run}:\n    pass",
        "a: get_type_hints({run})",
    ],
)
def test_nothing_of_the_file_is_run(body: str, tmp_path: Path) -> None:
    mark = tmp_path / "mark"
    run = f"__import__(chr(112)+chr(97)+chr(116)+chr(104)+chr(108)+chr(105)+chr(98)).Path({str(mark)!r}).touch()"
    for quoted in (run, run.replace("'", '"')):
        source = (
            HEAD
            + "class ToolParameters(BaseModel):\n    "
            + body.replace("{run}", quoted).replace("{{", "{").replace("}}", "}")
        )
        try:
            tree = ast.parse(source)
        except SyntaxError:
            continue
        read_fields(tree, "ToolParameters")
        assert not mark.exists()


def nested(depth: int, before: str, inner: str, after: str) -> str:
    return before * depth + inner + after * depth


@pytest.mark.parametrize(
    "body",
    [
        "a: " + nested(90, "List[", "int", "]"),
        "a: '" + nested(40, "List[", "int", "]") + "'",
        "a: " + " | ".join(["int"] * 2000),
        "a: " + " | ".join(f"Literal[{n}]" for n in range(2000)),
        "a: int = " + "+".join(["1"] * 2000),
        "a: int = " + "-" * 900 + "1",
        "a: int = " + nested(90, "(1,", "", ")"),
        "a: int = 9 ** 9 ** 9 ** 9",
        "a: int = 1 << 10 ** 9",
        "a: str = 'x' * 10 ** 12",
        "a: list = [[[['x'] * 9999] * 9999] * 9999] * 9999",
        "a: str = ''.join(['x' * 99999] * 99999)",
        "a: str = '%999999999d' % 1",
        "a: str = f'{1:999999999}'",
        "a: int = int('9' * 99999)",
        "a: Literal[tuple('x' * 99999)]",
        "a: str = Field(pattern='(((a{1000}){1000}){1000}){1000}')",
        "a: str = Field(pattern='(')",
        "a: 'T9'\n"
        "T0 = int\n" + "".join(f"T{n + 1} = Tuple[{', '.join([f'T{n}'] * 9)}]\n" for n in range(9)),
        "a: 'C40'\nclass C0(BaseModel): x: int\n"
        + "".join(
            f"class C{n + 1}(BaseModel):\n    x: C{n}\n    y: List[C{n}]\n" for n in range(40)
        ),
        "a: 'C8'\n"
        + "".join(
            f"class C{n}(BaseModel):\n" + "".join(f"    f{m}: 'C{m}'\n" for m in range(9))
            for n in range(9)
        ),
        "a: A\nA = 'B'\nB = 'A'",
        "a: A = A\nA = A",
        "a: 'ToolParameters'\nclass ToolParameters(ToolParameters): pass",
        "a: int\nclass X(Y): pass\nclass Y(X): pass",
        "a: int\n" + "if x:\n    pass\n" + "elif y:\n    pass\n" * 900,
        "\n    ".join(
            f"f{n}: Optional[List[str]] = Field(None, description='x')" for n in range(1000)
        ),
    ],
)
def test_a_file_made_to_take_long_does_not(body: str) -> None:
    source = HEAD + "class ToolParameters(BaseModel):\n    " + body
    try:
        tree = ast.parse(source)
    except (RecursionError, MemoryError):
        return
    started = time.process_time()
    assert read_fields(tree, "ToolParameters").fields
    assert time.process_time() - started < 5


def test_an_ordinary_file_takes_a_few_milliseconds() -> None:
    body = "".join(
        f"    f{n}: Optional[List[str]] = Field(None, description='x', max_length=3)\n"
        for n in range(15)
    )
    tree = ast.parse(HEAD + "class ToolParameters(BaseModel):\n" + body)
    best = float("inf")
    for _ in range(5):
        started = time.process_time()
        read_fields(tree, "ToolParameters")
        best = min(best, time.process_time() - started)
    assert best < 0.05


def test_classes_of_the_standard_library_are_read_without_failing() -> None:
    library = sorted(Path(sysconfig.get_path("stdlib")).glob("*.py"))[::4]
    names = 0
    for path in library:
        tree = ast.parse(path.read_bytes())
        for node in [node for node in tree.body if isinstance(node, ast.ClassDef)][:3]:
            assert read_fields(tree, node.name).found
            names += 1
    assert names > 50


EXPRESSIONS = "None (1, 2) 'x' [x] {} ... -x x.y x[y] x() x|None Field() int List[x]".replace(
    "(1, 2)", "(1,2)"
).split(" ")


@settings(max_examples=80, deadline=None)
@given(source=files(), data=st.data())
def test_a_file_with_expressions_in_wrong_places_is_read_without_failing(
    source: str, data: st.DataObject
) -> None:
    tree = ast.parse(source)
    places = [
        (node, name, index)
        for node in ast.walk(tree)
        for name, value in ast.iter_fields(node)
        for index, part in enumerate(value if isinstance(value, list) else [value])
        if isinstance(part, ast.expr)
        and not isinstance(node, ast.AnnAssign | ast.Assign | ast.AugAssign)
    ] + [(node, "annotation", 0) for node in ast.walk(tree) if isinstance(node, ast.AnnAssign)]
    expressions = [
        getattr(node, name) for node, name, _ in places if isinstance(getattr(node, name), ast.expr)
    ]
    for _ in range(data.draw(st.integers(1, 6))):
        node, name, index = data.draw(st.sampled_from(places))
        if data.draw(st.booleans()):
            other = ast.parse(data.draw(st.sampled_from(EXPRESSIONS)), mode="eval").body
        else:
            other = data.draw(st.sampled_from(expressions))
        if isinstance(getattr(node, name), list):
            getattr(node, name)[index] = other
        else:
            setattr(node, name, other)
    try:
        tree = ast.parse(ast.unparse(tree))  # a node within itself, or what is no Python
    except (SyntaxError, ValueError, RecursionError):
        reject()
    for problem in read_fields(tree, "ToolParameters").problems:
        assert problem.message
