"""Whole files with a class ToolParameters, put together at random from what people write."""

from dataclasses import dataclass, field
from textwrap import indent

from hypothesis import strategies as st

Draw = st.DrawFn

TYPING = "Optional Union List Dict Set Tuple Literal Any Annotated ClassVar Sequence".split()
ENUMS = "Enum IntEnum StrEnum".split()
WORDS = "query limit mode names max_tokens api_key where kind ratio userName x1".split()
TEXTS = (
    *("'a'", '"two words"', "'one ' 'two'", "f'plain'", "'it\\'s'", "''"),
    *('"""  Long\n    text. """', "('x'\n     'y')"),
)
DOCSTRINGS = ('"""Text."""', '"""More.  """', '"""Two\n    lines."""')


@dataclass
class File:
    """A file being written. `taken` maps a name of a library to how this file spells it."""

    draw: Draw
    taken: dict[str, str] = field(default_factory=dict)
    imports: list[str] = field(default_factory=list)
    enums: list[str] = field(default_factory=list)
    models: list[str] = field(default_factory=list)
    aliases: list[str] = field(default_factory=list)
    constants: list[str] = field(default_factory=list)
    field_name: str = ""
    forward: bool = False  # not in bases: a circle through a base is cut off one round earlier

    def one_of(self, *choices: str) -> str:
        return self.draw(st.sampled_from(choices))

    def often(self) -> bool:
        return self.draw(st.integers(0, 3)) > 0

    def seldom(self) -> bool:
        return self.draw(st.integers(0, 5)) == 0

    def name(self, name: str) -> str:
        """`name` of a library, imported in one of the ways there are, once."""
        if name not in self.taken:
            module = "typing" if name in TYPING else "enum" if name in ENUMS else "pydantic"
            short = {"typing": "t", "enum": "e", "pydantic": "pd"}[module]
            line, spelled = self.draw(
                st.sampled_from(
                    [
                        (f"from {module} import {name}", name),
                        (f"from {module} import {name} as My{name}", f"My{name}"),
                        (f"import {module}", f"{module}.{name}"),
                        (f"import {module} as {short}", f"{short}.{name}"),
                    ]
                )
            )
            self.imports.append(line)
            self.taken[name] = spelled
        return self.taken[name]

    def number(self) -> str:
        plain = st.sampled_from(
            ["0", "1", "-3", "60 * 60", "2 ** 5", "10 // 3", "+7", "1.5", "-0.25", "1e3"]
        )
        return self.draw(plain) if not self.constants or self.often() else "NUMBER"

    def text(self) -> str:
        return self.draw(st.sampled_from(TEXTS)) if not self.constants or self.often() else "TEXT"

    def value(self) -> str:
        kind = self.draw(st.integers(0, 9))
        if kind < 3:
            return self.number()
        if kind < 6:
            return self.text()
        if self.enums and kind == 6:
            return f"{self.one_of(*self.enums)}.FIRST" + self.one_of("", ".value")
        return self.one_of(
            "None", "True", "[]", "['a', 'b']", "{}", "{'k': [1, None]}", "(1, 'x')", "[1, 2] + [3]"
        )

    def literal(self) -> str:
        values = self.draw(
            st.lists(
                st.sampled_from(["'a'", "'b'", "'c d'", "1", "2", "-1", "True", "None"]),
                min_size=1,
                max_size=4,
            )
        )
        return f"{self.name('Literal')}[{', '.join(values)}]"

    def plain(self) -> str:
        kind = self.draw(st.integers(0, 14))
        if kind < 6:
            return self.one_of("str", "int", "float", "bool")
        if kind == 6:
            return self.literal()
        if kind == 7 and self.enums:
            return self.one_of(*self.enums)
        if kind in (8, 9) and self.models:
            return self.one_of(*self.models)
        if kind == 10 and self.aliases:
            return self.one_of(*self.aliases)
        if kind == 11:
            return self.name(self.one_of("Any", "PositiveInt", "SecretStr", "HttpUrl", "EmailStr"))
        if kind == 12:
            return f"{self.name('constr')}(min_length=1)"
        if kind == 13:
            return f"{self.name('conint')}(ge=0, lt=10)"
        if kind == 14 and self.forward:
            return self.one_of(
                "'Later'", "'ToolParameters'", "'Outer.Inner'", f"'{self.name('Optional')}[Later]'"
            )
        return self.one_of("list", "dict", "None", "bytes", "'str'", "object")

    def annotation(self, depth: int = 0) -> str:
        kind = self.draw(st.integers(0, 11)) if depth < 3 else 0
        if kind < 4:
            return self.plain()
        inner = self.annotation(depth + 1)
        if kind == 4:
            return f"{self.name('Optional')}[{inner}]"
        if kind == 5:
            return f"{self.name('Union')}[{inner}, {self.annotation(depth + 1)}]"
        if kind == 6:
            return self.bar(inner)
        if kind in (7, 8):
            return f"{self.one_of('list', self.name('List'), self.name('Sequence'))}[{inner}]"
        if kind == 9:
            return f"{self.one_of('dict', self.name('Dict'))}[str, {inner}]"
        if kind == 10:
            return self.one_of(
                f"tuple[{inner}, ...]",
                f"{self.name('Tuple')}[int, {inner}]",
                f"{self.name('Set')}[int]",
            )
        return self.annotated(inner)

    def bar(self, inner: str) -> str:
        if "'" in inner.partition("[")[0] or inner == "None":  # 'str' | None is an error in Python
            return inner
        return self.one_of(f"{inner} | None", f"None | {inner}", f"{inner} | int")

    def annotated(self, inner: str) -> str:
        extra = self.one_of(f"{self.name('Field')}(description={self.text()})", "'a note'", "None")
        return f"{self.name('Annotated')}[{inner}, {extra}]"

    def field_call(self, kind: str) -> str:
        arguments: list[str] = []
        default = self.draw(st.integers(0, 7))
        if default in (0, 1):
            arguments.append(self.value())
        elif default == 2:
            arguments.append("...")
        elif default == 3:
            arguments.append(f"default={self.value()}")
        elif default == 4:
            arguments.append(
                "default_factory=" + self.one_of("list", "dict", "lambda: []", "lambda: 'x'", "int")
            )
        if self.often():
            arguments.append(f"description={self.text()}")
        if self.seldom():
            arguments.append(
                self.one_of(
                    f"alias='{self.field_name}A'",
                    f"validation_alias='{self.field_name}V'",
                    "title='T'",
                    "examples=['e']",
                )
            )
        arguments.extend(self.constraints(kind))
        return f"{self.name('Field')}({', '.join(arguments)})"

    def constraints(self, kind: str) -> list[str]:
        if not self.often():
            return []
        if kind in ("int", "float"):
            return [f"{self.one_of('gt', 'ge')}={self.number()}"] + [
                f"le={self.number()}"
            ] * self.often()
        if kind == "str":
            return [
                self.one_of("min_length=1", "max_length=2 * 4", "pattern='^a+$'", r"pattern=r'\d'")
            ]
        if kind in ("list", "list[int]"):
            return [self.one_of("min_length=1", "max_length=3")]
        return []

    def typed_field(self, name: str) -> str:
        kind = annotation = self.annotation()
        self.field_name = name
        form = self.draw(st.integers(0, 9))
        if form == 0 and "'" not in annotation and '"' not in annotation and "\n" not in annotation:
            annotation = f'"{annotation}"'
        if form == 1:
            # Of a class further down, pydantic takes it for a field where ClassVar has another name.
            annotation = f"{self.name('ClassVar')}[{self.one_of('int', 'str', 'list')}]"
        if form == 2 and kind in ("int", "str", "float", "list"):
            call = ", ".join(self.constraints(kind))
            annotation = f"{self.name('Annotated')}[{kind}, {self.name('Field')}({call})]"
            kind = "constrained"
        given = self.draw(st.integers(0, 5))
        if given == 0:
            return f"{name}: {annotation}"
        if given == 1:
            return f"{name}: {annotation} = {self.value()}"
        return f"{name}: {annotation} = {self.field_call(kind)}"

    def body(self, least: int = 0) -> str:
        names = self.draw(st.lists(st.sampled_from(WORDS), unique=True, min_size=least, max_size=5))
        lines = [self.draw(st.sampled_from(DOCSTRINGS))] if self.seldom() else []
        if self.seldom():
            setting = self.one_of(
                "extra='forbid'", "populate_by_name=True", "use_enum_values=True", "extra='allow'"
            )
            lines.append(f"model_config = {self.name('ConfigDict')}({setting})")
        lines += [self.typed_field(name) for name in names]
        if self.seldom():
            lines.append(
                self.one_of(
                    "_hidden: int = 3", "def method(self): return 1", "if True:\n    extra: int = 1"
                )
            )
        return indent("\n".join(lines) or "pass", "    ")

    def enum(self, name: str) -> str:
        kind = self.draw(st.integers(0, 3))
        base = (
            f"str, {self.name('Enum')}",
            self.name("Enum"),
            self.name("IntEnum"),
            self.name("StrEnum"),
        )[kind]
        values = (("'f'", "'s'"), ("1", "'s'"), ("1", "2"), ("'f'", "'s'"))[kind]
        documented = '    """Kinds."""\n' if self.seldom() else ""
        second = f"    SECOND = {values[1]}\n" if self.often() else ""
        return f"class {name}({base}):\n{documented}    FIRST = {values[0]}\n{second}"

    def model(self, name: str) -> str:
        bases = [self.name("BaseModel")]
        if self.models and self.seldom():
            bases = self.draw(
                st.lists(st.sampled_from(self.models), unique=True, min_size=1, max_size=2)
            )
        return f"class {name}({', '.join(bases)}):\n{self.body()}\n"

    def alias(self, name: str) -> str:
        return f"{name} = {self.annotation(1)}"


@st.composite
def files(draw: Draw) -> str:
    """The source of a file. Most, not all, are accepted by Python and pydantic."""
    file = File(draw)
    parts: list[str] = []
    if draw(st.booleans()):
        parts.append("NUMBER = 10 - 3\nTEXT = 'of a ' + 'constant'\n")
        file.constants.append("NUMBER")
    for number in range(draw(st.integers(0, 2))):
        parts.append(file.enum(f"Kind{number}"))
        file.enums.append(f"Kind{number}")
    for number in range(draw(st.integers(0, 3))):
        parts.append(file.model(f"Part{number}"))
        file.models.append(f"Part{number}")
    for number in range(draw(st.integers(0, 2))):
        parts.append(file.alias(f"Alias{number}"))
        file.aliases.append(f"Alias{number}")
    file.forward = True
    parts.append(
        file.model("ToolParameters").replace("    pass", "    only: int")
        if draw(st.booleans())
        else _main(file)
    )
    parts.append(f"class Later({file.name('BaseModel')}):\n{file.body()}\n")
    inner = f"class Inner({file.name('BaseModel')}):\n{file.body()}\n"
    parts.append(f"class Outer:\n{indent(inner, '    ')}")
    future = ["from __future__ import annotations"] if draw(st.integers(0, 3)) == 0 else []
    return "\n".join([*future, *dict.fromkeys(file.imports), "", *parts])


def _main(file: File) -> str:
    return f"class ToolParameters({file.name('BaseModel')}):\n{file.body(1)}\n"
