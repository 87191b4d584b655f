"""Classes as people write them. Each is read from its source, and run by the real pydantic, in test_agreement.py."""

HEAD = """
import datetime, decimal, enum, uuid
from enum import Enum, IntEnum, StrEnum
from pathlib import Path
from typing import *
import pydantic, pydantic.alias_generators
from pydantic import *
from pydantic import BaseModel, Field
"""

# Written under HEAD, as the body of ToolParameters.
BODIES = {
    "nothing": r"pass",
    "docstring only": r'''"""Nothing to fill in."""
''',
    "plain types": r"""
a: str
b: int
c: float
d: bool
""",
    "defaults": r"""
a: str = 'x'
b: int = -3
c: float = 1.5
d: bool = True
e: Any = None
""",
    "optional without default": r"a: Optional[str]",
    "optional with default": r"""
a: Optional[str] = None
b: Optional[int] = 3
""",
    "union with nothing": r"""
a: Union[str, None]
b: Union[None, int] = None
c: Union[int, str, None] = 1
""",
    "bar": r"""
a: str | None
b: int | str = 3
c: None | list[int] = None
""",
    "lists": r"""
a: List[str]
b: list[int] = []
c: List
d: list
e: List[List[float]]
""",
    "other collections": r"""
a: Set[int]
b: FrozenSet[str]
c: Tuple[int, str]
d: tuple[int, ...]
e: Sequence[str]
""",
    "empty and plain tuples": r"""
a: Tuple[()]
b: tuple
c: Iterable[int]
e: Deque[int]
""",
    "mappings": r"""
a: Dict[str, int]
b: dict
c: Mapping[str, List[int]]
d: Dict[str, Any] = {}
e: dict[int, str]
""",
    "literals": r"""
a: Literal['x', 'y']
b: Literal[1, 2]
c: Literal['only']
d: Literal[True, 'a', 1, None]
""",
    "optional literal": r"""
a: Optional[Literal['x', 'y']] = None
b: Literal['x'] | None = 'x'
c: List[Literal['p', 'q']]
""",
    "nested literal": r"a: Literal[Literal['x'], 'y', 'x']",
    "dates": r"""
a: datetime.date
b: datetime.datetime
c: datetime.time
d: datetime.timedelta
""",
    "date defaults": r"""
a: datetime.date = datetime.date(2024, 2, 29)
b: datetime.timedelta = datetime.timedelta(hours=1.5)
""",
    "decimal, uuid, path": r"""
a: decimal.Decimal
b: uuid.UUID
c: Path
d: decimal.Decimal = decimal.Decimal('1.50')
""",
    "path default": r"a: Path = Path('data') / 'x.json'",
    "bytes and secrets": r"""
a: bytes
b: SecretStr
c: SecretBytes
d: Optional[SecretStr] = None
""",
    "addresses": r"""
a: EmailStr
b: HttpUrl
c: AnyUrl
d: Optional[EmailStr] = None
e: NameEmail
f: IPvAnyAddress
""",
    "more pydantic types": r"""
a: PositiveInt
b: NegativeFloat
c: NonNegativeInt
d: StrictStr
e: StrictBool
f: UUID4
g: FilePath
h: Json
i: Base64Str
j: PastDate
k: ByteSize
l: FiniteFloat
""",
    "con… functions": r"""
a: conint(ge=1, lt=5)
b: constr(min_length=1, pattern='^a')
c: conlist(str, min_length=2)
d: confloat(multiple_of=0.5)
e: conset(int, max_length=3)
f: condecimal(max_digits=4)
""",
    "field without default": r"a: str = Field(description='What to look for')",
    "field with ellipsis": r"""
a: str = Field(..., description='q')
b: int = ...
""",
    "field with positional default": r"""
a: int = Field(10, description='n')
b: Optional[str] = Field(None)
""",
    "field with named default": r"""
a: int = Field(default=10, ge=1, le=100)
b: str = Field(default=..., min_length=1)
""",
    "default factories": r"""
a: List[str] = Field(default_factory=list)
b: dict = Field(default_factory=lambda: {'x': 1})
""",
    "optional field required": r"""
a: Optional[int] = Field(description='x')
b: Optional[int] = Field(...)
""",
    "constraints on numbers": r"""
a: int = Field(gt=0, lt=10)
b: float = Field(ge=-0.5, le=0.5, multiple_of=0.1)
""",
    "constraints on text": r"""
a: str = Field(min_length=2, max_length=5, pattern=r'^\w+$')
b: str = Field('', strict=True)
""",
    "constraints on optional": r"""
a: Optional[int] = Field(None, ge=3)
b: Optional[List[int]] = Field(None, min_length=1)
""",
    "constraints on lists": r"""
a: List[int] = Field(min_length=1, max_length=3)
b: List[Annotated[int, Field(ge=0)]]
""",
    "constraints computed": r"""
a: int = Field(le=60 * 60, ge=-(2 ** 4))
b: int = Field(1 << 3, gt=7 // 2)
""",
    "annotated": r"""
a: Annotated[str, Field(description='d')]
b: Annotated[int, Field(ge=1)] = 4
""",
    "annotated twice": r"""
a: Annotated[Annotated[int, Field(ge=1, description='in')], Field(le=9)] = Field(5, description='out')
""",
    "annotated optional": r"""
a: Annotated[Optional[str], Field(description='d')] = None
b: Optional[Annotated[str, Field(max_length=2)]]
""",
    "annotated with text": r"a: Annotated[int, 'just a note', Field(gt=0)]",
    "annotated default": r"""
a: Annotated[int, Field(default=3)]
b: Annotated[int, Field(default_factory=int)]
""",
    "annotated validators": r"""
a: Annotated[str, AfterValidator(str.strip), StringConstraints(min_length=2)]
b: Annotated[int, BeforeValidator(int)]
c: Annotated[int, PlainValidator(int)]
d: Annotated[int, BeforeValidator(int, json_schema_input_type=str)]
""",
    "string annotations": r"""
a: 'str'
b: 'Optional[int]' = None
c: List['int']
d: "Dict[str, 'float']"
e: Optional['str']
""",
    "aliases": r"""
a: str = Field(alias='A')
b: int = Field(validation_alias='B')
c: int = Field(1, serialization_alias='C')
""",
    "alias choices": r"""
a: str = Field(validation_alias=AliasChoices('x', 'y'))
b: int = Field(validation_alias=AliasPath('p', 0))
""",
    "alias and populate by name": r"""
model_config = ConfigDict(populate_by_name=True)
a: str = Field(alias='A')
""",
    "names by validation": r"""
model_config = ConfigDict(validate_by_name=True, validate_by_alias=False)
a: str = Field(alias='A')
""",
    "alias generator": r"""
model_config = ConfigDict(alias_generator=pydantic.alias_generators.to_camel)
max_results: int = 3
""",
    "titles and examples": r"""a: str = Field(title='The A', examples=['x'], description='d')
""",
    "deprecated": r"""
a: str = Field('x', deprecated=True)
b: int = Field(1, deprecated='use a')
""",
    "excluded and frozen": r"a: str = Field(exclude=True, repr=False, frozen=True)",
    "class variables": r"""
a: ClassVar[int] = 3
b: int = 4
c: 'ClassVar[str]' = 'x'
d: ClassVar = 1
""",
    "final": r"""
a: Final[int] = 3
b: Final[str]
""",
    "private names": r"""
_a: int = 3
_b = 4
c: str = PrivateAttr('x') if False else 'y'
__d: int = 1
""",
    "methods": r"""
a: int

def double(self) -> int:
    return self.a * 2

@property
def b(self) -> str: ...

@field_validator('a', mode='before')
@classmethod
def check(cls, value): return value

@model_validator(mode='after')
def whole(self): return self

@computed_field
@property
def c(self) -> int: return 1
""",
    "plain validator": r"""
a: int
b: int

@field_validator('a', mode='plain')
@classmethod
def check(cls, v): return v
""",
    "validator with input type": r"""
a: int

@field_validator('a', mode='before', json_schema_input_type=Union[int, str])
@classmethod
def check(cls, v): return v
""",
    "redefined field": r"""
a: int = 1
b: str
a: str = 'x'
""",
    "several targets": r"""
a: int
b: int
model_config = {'extra': 'ignore'}
""",
    "forbidden extras": r"""
model_config = ConfigDict(extra='forbid', str_strip_whitespace=True, title='T')
a: int
""",
    "enum values": r"""
model_config = ConfigDict(use_enum_values=True)
m: Color = Color.RED
""",
    "enums": r"""
a: Color
b: Color = Color.RED
c: Optional[Color] = None
d: List[Color] = [Color.RED]
e: Level = Level.LOW
""",
    "enum literal": r"""
a: Literal[Color.RED, Color.BLUE]
b: str = Color.RED.value
""",
    "documented enum": r"a: Shade",
    "nested model": r"""
a: Point
b: Optional[Point] = None
c: List[Point] = []
d: Dict[str, Point] = {}
""",
    "nested model described": r"""
a: Point = Field(description='where')
b: Line
""",
    "nested class": r"""
class Mode(str, Enum):
    X = 'x'
    Y = 'y'
class Part(BaseModel):
    n: int
mode: Mode = Mode.X
part: Part
parts: 'List[Part]' = []
""",
    "contains itself": r"""
near: Annotated['ToolParameters', Field(description='near')] | None = None
children: List['ToolParameters'] = []
parent: Optional['ToolParameters'] = None
tree: 'Node'
""",
    "mutual": r"""
a: 'Left'
b: 'Right'
""",
    "discriminated": r"""
a: Union[Cat, Dog] = Field(discriminator='kind')
b: Union[Cat, Dog]
""",
    "new type and aliases": r"""
a: UserId
b: Names
c: Mode = 'fast'
d: Maybe
e: Maybe = None
f: Told
g: Mapped[int]
""",
    "type variable": r"""
a: Box[int]
b: Box[str] = None
c: List[Box[Point]]
""",
    "root models": r"""
a: Tags
b: Tags = ['x']
""",
    "typed dict, tuple, dataclass": r"""
a: Options
b: Pair
c: Setting
d: Partly
""",
    "constants": r"""
a: int = DEFAULT
b: str = Field(PREFIX + 'y', description=TEXT)
c: Literal[CHOICES] = CHOICES[0]
d: List[int] = NUMBERS
e: int = LIMITS['n']
f: float = -DEFAULT / 4
g: int = Field(le=LIMITS['n'])
h: str = BOTH
""",
    "implicit concatenation": r"""
a: str = Field(description='one '
    'two')
b: str = Field(description=('x' 'y'))
""",
    "long text": r'''
a: str = Field(description="""First line.

        Second line, indented.
    """)
''',
    "texts made": r"""
a: str = Field(description=f'plain')
b: str = Field(description=f'up to {DEFAULT}')
c: str = Field(description=' x '.strip())
d: str = Field(description=', '.join(['a', 'b']))
""",
    "dedented text": r"""
from textwrap import dedent
a: str = Field(description=dedent('''
    One
      Two
    '''))
""",
    "shared field": r"""
a: int = COMMON
b: float = COMMON
c: ANNOTATED
""",
    "attribute docstrings": r'''
model_config = ConfigDict(use_attribute_docstrings=True)
a: int
"""The a.

    More."""
b: int = Field(1, description='kept')
'not taken'
c: str = 'x'
''',
    "attribute docstrings unused": r"""
a: int
'''Not a description.'''
b: int
""",
    "if and try": r"""
if TYPE_CHECKING:
    a: int
else:
    a: str
try:
    b: int = 1
finally:
    d: str = 'x'
if 1 < 2:
    c: int = 3
""",
    "any and object": r"""
a: Any
b: object
c: Optional[Any] = None
d: Optional[object]
""",
    "numbers as text": r"""
a: complex
b: 'int | str'
c: Union[bool, int, float]
""",
    "negative and large": r"""
a: int = -1
b: int = 10 ** 12
c: float = 1e-9
""",
    "containers as defaults": r"""
a: dict = {'x': [1, (2, 3)]}
b: set = {1}
c: tuple = (1, 'x')
d: list = [*NUMBERS, 4]
""",
    "json type": r"""
a: Json[List[int]]
b: SkipValidation[int]
c: InstanceOf[Point] = None
""",
    "shadowing names": r"""
copy: int
json: str = 'x'
model_name: str = 'm'
schema: dict = {}
""",
    "strict and coerced": r"""
a: int = Field(strict=True)
b: str = Field('x', coerce_numbers_to_str=True)
c: StrictInt = 3
""",
    "default of another type": r"""
a: str = 5
b: int = None
c: List[str] = None
""",
    "old name of text": r"b: Text",
    "wrong default for list": r"a: List[int] = Field(default=(1, 2))",
    "frozen set default": r"a: FrozenSet[str] = frozenset({'x'})",
    "unions of models": r"""
a: Optional[Union[Cat, Dog]] = None
b: List[Union[int, Point]] = []
""",
}

# What BODIES use beside HEAD.
AROUND = """
DEFAULT = 10
PREFIX = "x"
TEXT = "one" " two"
CHOICES = ("a", "b")
NUMBERS = [1, 2, 3]
LIMITS = {"n": 99}
BOTH = PREFIX * 2
BOTH += "z"
UserId = NewType("UserId", int)
Names = List[str]
Mode = Literal["fast", "slow"]
Maybe = Optional[Names]
Told: TypeAlias = "Dict[str, int]"
T = TypeVar("T")
Mapped = Dict[str, T]
COMMON = Field(3, ge=1, description="shared")
ANNOTATED = Annotated[int, Field(gt=2, description="in a name")]

class Color(str, Enum):
    RED = "red"
    BLUE = "blue"

class Level(IntEnum):
    LOW = 1
    HIGH = enum.auto()

class Shade(StrEnum):
    \"\"\"How dark

    it is.\"\"\"
    LIGHT = enum.auto()
    DARK = enum.auto()

    @property
    def nice(self) -> str:
        return self.value.title()

class Point(BaseModel):
    x: float = Field(0.0, description="to the right")
    y: float

class Line(BaseModel):
    \"\"\"From one to another.\"\"\"
    model_config = ConfigDict(extra="forbid")
    start: Point
    end: Optional[Point] = None

class Node(BaseModel):
    value: int
    below: List["Node"] = []

class Left(BaseModel):
    right: Optional["Right"] = None

class Right(BaseModel):
    left: Optional[Left] = None

class Cat(BaseModel):
    kind: Literal["cat"]
    lives: int = 9

class Dog(BaseModel):
    kind: Literal["dog"] = "dog"

class Box(BaseModel, Generic[T]):
    inside: T
    count: int = 1

class Tags(RootModel[List[str]]):
    \"\"\"Some words.\"\"\"

from typing_extensions import TypedDict as _TypedDict, NotRequired
class Options(_TypedDict):
    a: int
    b: NotRequired[str]

class Partly(_TypedDict, total=False):
    a: int

class Pair(NamedTuple):
    first: int
    second: str = "x"

import dataclasses
@dataclasses.dataclass
class Setting:
    name: str
    values: List[int] = dataclasses.field(default_factory=list)
    level: int = 3
"""

# Whole files.
FILES = {
    "aliased imports": """
import typing as t, pydantic as p
from typing import Optional as Opt
from pydantic import Field as F, BaseModel as Base
class ToolParameters(Base):
    a: t.Optional[t.List[int]] = F(None, ge=1) if False else None
    b: Opt[str] = F("x", description="d")
    c: t.Literal["x"] = p.Field("x")
    d: p.PositiveInt
    e: "t.Union[p.StrictInt, None]"
""",
    "module imports": """
import pydantic, typing, typing_extensions, collections.abc, datetime as dt
import pydantic.types
class ToolParameters(pydantic.BaseModel):
    a: typing.Annotated[int, pydantic.Field(ge=1)]
    b: typing_extensions.Literal["x", "y"]
    c: collections.abc.Sequence[dt.date]
    d: pydantic.types.PositiveInt = 1
    e: pydantic.fields.Field if False else int
""",
    "deferred annotations": """
from __future__ import annotations
from typing import Optional, List
from pydantic import BaseModel, Field
class ToolParameters(BaseModel):
    a: Optional[Later] = None
    b: List[Later]
    c: ToolParameters | None = None
    d: list['int'] = Field(default_factory=list)
class Later(BaseModel):
    x: int
""",
    "inheritance": """
from pydantic import BaseModel, Field
from typing import Optional
class Common(BaseModel):
    limit: int = Field(10, description="at most")
    verbose: bool = False
class Paged(Common):
    page: Optional[int] = None
    limit: int = 20
class ToolParameters(Paged):
    query: str
    verbose: bool = True
""",
    "two bases": """
from pydantic import BaseModel
class A(BaseModel):
    a: int
    both: int = 1
class B(BaseModel):
    b: str
    both: str = "b"
class ToolParameters(A, B):
    c: float
""",
    "diamond": """
from pydantic import BaseModel, ConfigDict
class Root(BaseModel):
    r: int = 0
    s: str = "root"
class A(Root):
    a: int
    s: str = "a"
class B(Root):
    b: int
    s: str = "b"
class ToolParameters(B, A):
    model_config = ConfigDict(extra="forbid")
    r: float = 1.5
""",
    "a plain class beside": """
from pydantic import BaseModel, Field
from abc import ABC
class Mixin:
    m: int = 3
    def help(self): return 1
class ToolParameters(Mixin, BaseModel):
    a: str
""",
    "abstract base": """
from abc import ABC, abstractmethod
from pydantic import BaseModel
class Base(BaseModel, ABC):
    a: int
class ToolParameters(Base):
    b: int = 1
""",
    "generic base": """
from typing import Generic, TypeVar, List
from pydantic import BaseModel
T = TypeVar("T", bound=BaseModel)
U = TypeVar("U")
class Page(BaseModel, Generic[U]):
    items: List[U]
    next: int = 0
class ToolParameters(Page[str]):
    q: str
""",
    "inherited configuration": """
from pydantic import BaseModel, ConfigDict
from pydantic.alias_generators import to_camel
class Base(BaseModel):
    model_config = ConfigDict(alias_generator=to_camel, populate_by_name=True, use_attribute_docstrings=True)
    max_results: int = 1
    '''How many.'''
class ToolParameters(Base):
    page_size: int
    '''How large.'''
""",
    "class keywords": """
from pydantic import BaseModel
class ToolParameters(BaseModel, extra="forbid", frozen=True):
    a: int
""",
    "class Config": """
from pydantic import BaseModel, Field
class ToolParameters(BaseModel):
    a: int = Field(alias="A")
    class Config:
        populate_by_name = True
        extra = "forbid"
""",
    "old validators": """
from pydantic import BaseModel, validator
class ToolParameters(BaseModel):
    a: int
    @validator("a")
    def check(cls, value):
        return value
""",
    "old list constraints": """
from typing import List
from pydantic import BaseModel, Field
class ToolParameters(BaseModel):
    a: List[int] = Field(min_items=1, max_items=3)
""",
    "defined twice": """
from pydantic import BaseModel
class ToolParameters(BaseModel):
    a: int
class ToolParameters(BaseModel):
    b: str
""",
    "names that change": """
from pydantic import BaseModel
Kind = int
DEFAULT = 1
class First(BaseModel):
    a: Kind = DEFAULT
Kind = str
DEFAULT = "x"
class ToolParameters(BaseModel):
    first: First
    b: Kind = DEFAULT
DEFAULT = "y"
""",
    "imports in try": """
try:
    from typing import Literal
except ImportError:
    from typing_extensions import Literal
try:
    from typing import NoSuchThing
except ImportError:
    NoSuchThing = int
import sys
if sys.version_info >= (3, 9):
    List = list
else:
    from typing import List
from pydantic import BaseModel
class ToolParameters(BaseModel):
    a: Literal["x"]
    b: NoSuchThing
    c: List[int]
""",
    "class in if": """
from typing import TYPE_CHECKING
import typing
if TYPE_CHECKING:
    from somewhere import BaseModel
elif not typing.TYPE_CHECKING:
    from pydantic import BaseModel
if True:
    class ToolParameters(BaseModel):
        a: int
else:
    class ToolParameters(BaseModel):
        b: int
""",
    "star imports": """
from pydantic import *
from typing import *
class ToolParameters(BaseModel):
    a: Optional[PositiveInt] = Field(None, description="d")
    b: EmailStr
""",
    "pydantic dataclass": """
from pydantic import BaseModel, Field
from pydantic.dataclasses import dataclass
import dataclasses
@dataclass
class Part:
    \"\"\"A part.\"\"\"
    a: int
    b: str = Field("x", description="the b")
@dataclasses.dataclass(kw_only=True)
class Other:
    c: Part
    d: int = 3
class ToolParameters(BaseModel):
    part: Part
    other: Other
""",
    "settings of enums": """
from enum import Enum, auto, unique, Flag
from pydantic import BaseModel
@unique
class Kind(Enum):
    ONE = 1
    TWO = "two"
    THREE = 1.5
    _three = 3
    def describe(self): return ""
class Auto(Enum):
    A = auto()
    B = auto()
class Same(str, Enum):
    a = "x"
    b = "x"
    c = a + "y"
class Single(str, Enum):
    only = "only"
class ToolParameters(BaseModel):
    kind: Kind
    auto: Auto = Auto.B
    same: Same = Same.b
    single: Single
""",
    "deep models": """
from typing import Optional, List
from pydantic import BaseModel, Field
class A(BaseModel):
    x: int = 1
class B(BaseModel):
    a: A = Field(description="an a")
    more: List[A] = Field(default_factory=list, max_length=3)
class C(BaseModel):
    \"\"\"A c.\"\"\"
    b: Optional[B] = Field(None, description="a b")
    pair: tuple[A, B]
class ToolParameters(BaseModel):
    c: C
    by_name: dict[str, C] = {}
    either: A | B | None = None
""",
    "names of classes as attributes": """
from enum import Enum
from pydantic import BaseModel
class Holder:
    LIMIT = 7
    class Mode(str, Enum):
        A = "a"
    class Inner(BaseModel):
        x: int
class ToolParameters(BaseModel):
    mode: Holder.Mode = Holder.Mode.A
    inner: Holder.Inner
    n: int = Holder.LIMIT
""",
    "settings": """
from pydantic import BaseModel, ConfigDict, Field
import re
class ToolParameters(BaseModel):
    model_config = ConfigDict(regex_engine="python-re", ser_json_timedelta="float", extra="allow")
    a: str = Field(pattern=r"^(?!x).*$")
    b: str = Field(pattern=re.compile("^a+$"))
""",
    "a string alias": """
from typing import Optional
from pydantic import BaseModel
Name = "Optional[Other]"
class ToolParameters(BaseModel):
    a: Name = None
class Other(BaseModel):
    x: int
""",
    "type alias type": """
from typing import List, Union
from typing_extensions import TypeAliasType
from pydantic import BaseModel
Many = TypeAliasType("Many", List[int])
class ToolParameters(BaseModel):
    a: Many
    b: Union[Many, None] = None
""",
    "the specification's own example": '''
"""
A simple JSON reader tool that reads JSON files from a given path
relative to the tool's directory.
"""

from pydantic import BaseModel, Field
from typing import Any
import json
import argparse
from pathlib import Path
import sys
import os

ROOT_DIR = Path(__file__).parent
sys.path.append(str(ROOT_DIR))


class UserParameters(BaseModel):
    pass


class ToolParameters(BaseModel):
    filepath: str = Field(
        description="The local path to the JSON file to read, relative to the tool's directory."
    )


def run_tool(config: UserParameters, args: ToolParameters) -> Any:
    filepath = args.filepath
    data = json.load(open(filepath))
    return json.dumps(data, indent=2)


OUTPUT_KEY = "tool_output"
''',
}


def cases() -> dict[str, str]:
    """Name → source of a file that has the class ToolParameters."""
    inside = {
        name: HEAD
        + AROUND
        + "class ToolParameters(BaseModel):\n"
        + "".join(f"    {line}\n" for line in body.split("\n"))
        for name, body in BODIES.items()
    }
    return inside | FILES
