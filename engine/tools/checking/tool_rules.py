"""The rules for what must stand in a tool.py."""

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from difflib import get_close_matches

from engine.tools.checking.rulebook import Issues, shown, storable
from engine.tools.checking.survey import OLD_BASE, Survey, assigned, survey, text_of
from engine.tools.checking.tool_source import Source
from engine.tools.extraction import Extracted, read_fields
from engine.tools.template import TemplateField

TOOL = "tool.py"
OUTPUT_KEY = "OUTPUT_KEY"
LONGEST_DESCRIPTION = 10_000
"""Characters of the docstring that are taken as the tool's description."""

_ABSENT = {"UserParameters": "T-005", "ToolParameters": "T-006", "run_tool": "T-007"}
_NOT_A_MODEL = {"UserParameters": "T-W04", "ToolParameters": "T-W05"}
_OTHERWISE = "T-W06"  # of a field's type
_PROBLEMS = {
    "no_description": "T-W08",
    "v1": "T-W10",
    "conditional": "T-W14",
    "refused": "T-W18",
    "unknown_base": "T-W19",
    "extra_allowed": "T-W19",
    "alias_generator": "T-W19",
}
_REMEDY = {
    "UserParameters": "write class UserParameters(BaseModel), with pass where there is nothing to configure",
    "ToolParameters": "write class ToolParameters(BaseModel) with a field for each argument",
    "run_tool": "write def run_tool(config: UserParameters, args: ToolParameters)",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """What a tool.py says of the tool, as far as it can be read."""

    description: str = ""
    user_parameters: tuple[TemplateField, ...] = ()
    tool_parameters: tuple[TemplateField, ...] = ()
    output_key: str | None = None


def check_source(source: Source, issues: Issues) -> Told:
    """Adds what the rules find, and returns what could be read in spite of it."""
    check = _Check(source=source, found=survey(source.tree), issues=issues)
    check.old_style()
    told = Told(
        description=check.description(),
        user_parameters=check.parameters("UserParameters"),
        tool_parameters=check.parameters("ToolParameters"),
        output_key=check.output_key(),
    )
    check.run_tool()
    check.program()
    return told


@dataclass(frozen=True, slots=True, kw_only=True)
class _Check:
    source: Source
    found: Survey
    issues: Issues

    def add(self, code: str, message: str, line: int = 0) -> None:
        self.issues.add(code, message, path=TOOL, line=line, source=self.source.line(line))

    def description(self) -> str:
        text = (ast.get_docstring(self.source.tree) or "").strip()
        if not text:
            self.add(
                "T-W07",
                f"{TOOL} has no docstring; begin it with one, which tells agents what the tool does.",
                1,
            )
        return text[:LONGEST_DESCRIPTION]

    def old_style(self) -> None:
        for node in self.found.old_style:
            self.add(
                "T-008",
                f"{shown(node.name)!r} is written in the old style, as a class from {OLD_BASE}. Move "
                "UserParameters and ToolParameters to the top level, make its method a function "
                f"run_tool(config, args) without self, set {OUTPUT_KEY}, and end with "
                'if __name__ == "__main__".',
                node.lineno,
            )

    def parameters(self, name: str) -> tuple[TemplateField, ...]:
        try:
            extracted = read_fields(self.source.tree, name)
        except (RecursionError, MemoryError):
            self.add("T-004", f"{name} is nested too deep to be read; write it plainly.")
            return ()
        if not extracted.found:
            self._absent(name, extracted)
        elif not any(each.code == "conditional" for each in extracted.problems):
            self._top_level(name)
        for each in extracted.problems:
            if each.code == "not_a_model":
                self.add(_NOT_A_MODEL[name], _sentence(each.message), each.line)
            elif each.code not in ("absent", "not_a_class", "old_style"):
                self.add(_PROBLEMS.get(each.code, _OTHERWISE), _sentence(each.message), each.line)
        return extracted.fields

    def output_key(self) -> str | None:
        place = self.found.last(OUTPUT_KEY)
        if place is None:
            self.add(
                "T-W01",
                f"There is no {OUTPUT_KEY}, so that all that the tool prints is its result. "
                f'Write {OUTPUT_KEY} = "tool_output", and print it before the result.',
            )
            return None
        self._top_level(OUTPUT_KEY)
        key = text_of(assigned(place.node), self.found.names)
        if key and key.strip() and storable(key) == key:
            return key
        self.add(
            "T-W11",
            f"{OUTPUT_KEY} is not a plain string with something in it, so that all that the tool prints is "
            f'its result; write {OUTPUT_KEY} = "tool_output".',
            place.line,
        )
        return None

    def run_tool(self) -> None:
        place = self.found.last("run_tool")
        if place is None:
            self._absent("run_tool")
            return
        node, line = place.node, place.line
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            self.add("T-007", f"run_tool is not defined here; {_REMEDY['run_tool']}.", line)
            return
        self._top_level("run_tool")
        if isinstance(node, ast.AsyncFunctionDef):
            self.add(
                "T-W13",
                "run_tool is async, so that its result is a coroutine unless asyncio.run runs it; "
                "write it without async.",
                line,
            )
        elif any(isinstance(each, ast.Yield | ast.YieldFrom) for each in _own_nodes(node)):
            self.add(
                "T-W13", "run_tool yields, so that its result is a generator; return it.", line
            )
        if not _takes_both(node.args):
            self.add(
                "T-W12",
                f"run_tool takes other parameters than (config, args); {_REMEDY['run_tool']}.",
                line,
            )

    def program(self) -> None:
        if not self.found.runs_as_program:
            self.add(
                "T-W02",
                f'{TOOL} has no if __name__ == "__main__": that reads --user-params and --tool-params; '
                "without it a call does nothing.",
            )

    def _absent(self, name: str, extracted: Extracted | None = None) -> None:
        """Says that a name is not there, and what may have been meant by it."""
        said = [each for each in extracted.problems if each.code != "absent"] if extracted else []
        said = [each for each in said if each.code in ("not_a_class", "old_style")]
        if said:
            self.add(_ABSENT[name], _sentence(said[0].message), said[0].line)
        elif name in self.found.nested:
            outer, line = self.found.nested[name]
            message = (
                f"{TOOL} has no {name} at its top level; move it there out of {shown(outer)!r}."
            )
            self.add(_ABSENT[name], message, line)
        elif close := _close(name, self.found):
            line = self.found.names[close][-1].line
            message = (
                f"{TOOL} has no {name}; is {close!r} meant? It must be named {name!r} exactly."
            )
            self.add(_ABSENT[name], message, line)
        else:
            self.add(_ABSENT[name], f"{TOOL} has no {name}; {_REMEDY[name]}.")

    def _top_level(self, name: str) -> None:
        place = self.found.last(name)
        if place is not None and place.inside:
            self.add(
                "T-W14",
                f"{name} stands inside of “{place.inside}”, so that it may be there or not; "
                "move it to the top level.",
                place.line,
            )


def _sentence(message: str) -> str:
    return message if message.endswith(".") else f"{message}."


def _takes_both(arguments: ast.arguments) -> bool:
    """Can it be called with the configuration and the arguments, in this order?"""
    plain = [*arguments.posonlyargs, *arguments.args]
    needed = len(plain) - len(arguments.defaults)
    enough = len(plain) >= 2 or arguments.vararg is not None
    keywords = zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True)
    swapped = [_class_of(each) for each in plain[:2]] == ["ToolParameters", "UserParameters"]
    return enough and needed <= 2 and all(default for _, default in keywords) and not swapped


def _class_of(argument: ast.arg) -> str:
    match argument.annotation:
        case ast.Name(id=name) | ast.Constant(value=str(name)):
            return name
    return ""


def _own_nodes(function: ast.FunctionDef) -> Iterator[ast.AST]:
    """What stands in a function, without what stands in functions and classes inside of it."""
    waiting: list[ast.AST] = list(function.body)
    while waiting:
        node = waiting.pop()
        yield node
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda | ast.ClassDef):
            waiting += ast.iter_child_nodes(node)


def _close(name: str, found: Survey) -> str:
    near = {each.lower(): each for each in found.names if each not in _ABSENT and len(each) <= 40}
    matches = get_close_matches(name.lower(), list(near)[:2_000], n=1, cutoff=0.8)
    return near[matches[0]] if matches else ""
