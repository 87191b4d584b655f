"""The rules that an uploaded package is checked by, and what collects their issues (TOOLS.md §2)."""

import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from engine.tools.template import Issue, Severity

MOST_LISTED = 20
"""Issues of one rule in a report; how many more there are is said in one further issue."""

LONGEST_SHOWN = 200
"""Characters of a path or of a source line in an issue."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """`code` never changes its meaning; `title` is what the rule asks for or finds, in a few words."""

    code: str
    severity: Severity
    title: str


_ERRORS = {
    "Z-001": "The upload is a whole, undamaged ZIP with files in it",
    "Z-002": "The ZIP is not encrypted",
    "Z-003": "No path leaves the package",
    "Z-004": "Every path is relative and written with “/”",
    "Z-005": "The package holds plain files and directories only",
    "Z-006": "The package has not too many files",
    "Z-007": "The package is not too large",
    "Z-008": "The package does not inflate to many times its size",
    "Z-009": "Directories are not nested too deep",
    "Z-010": "No path is there twice",
    "Z-011": "Every path can be used as a file name",
    "Z-012": "The ZIP is stored or deflated, no other compression",
    "Z-013": "Every file of a directory can be read",
    "Z-014": "workflow_template.json is readable JSON",
    "T-001": "The template's directory exists in the package",
    "T-002": "tool.py is there",
    "T-003": "requirements.txt is there",
    "T-004": "tool.py is valid Python 3",
    "T-005": "The class UserParameters is there",
    "T-006": "The class ToolParameters is there",
    "T-007": "The function run_tool is there",
    "T-008": "The tool is not written in the old class style",
    "N-001": "The name has letters a-z, digits and spaces only",
    "N-002": "The name is not taken in its scope",
}
_WARNINGS = {
    "T-W01": "OUTPUT_KEY is there",
    "T-W02": 'tool.py can be run: if __name__ == "__main__"',
    "T-W03": "requirements.txt asks for pydantic",
    "T-W04": "UserParameters is a pydantic BaseModel",
    "T-W05": "ToolParameters is a pydantic BaseModel",
    "T-W06": "Parameters have types of the specification's list",
    "T-W07": "tool.py has a docstring, which describes the tool",
    "T-W08": "Every field of ToolParameters has a description",
    "T-W09": "Every line of requirements.txt can be read",
    "T-W10": "Parameter classes are written for pydantic 2",
    "T-W11": "OUTPUT_KEY is a plain, non-empty string",
    "T-W12": "run_tool takes the configuration and the arguments",
    "T-W13": "run_tool is an ordinary function",
    "T-W14": "What a tool must have stands at the top level of tool.py",
    "T-W15": "What requirements.txt refers to is in the package",
    "T-W16": "requirements.txt is UTF-8 text",
    "T-W17": "No file hides a module that Python or pydantic needs",
    "T-W18": "pydantic can make the parameter classes",
    "T-W19": "All fields of the parameter classes can be told from tool.py",
}

RULES: Mapping[str, Rule] = MappingProxyType(
    {
        code: Rule(code=code, severity=severity, title=title)
        for severity, titles in ((Severity.ERROR, _ERRORS), (Severity.WARNING, _WARNINGS))
        for code, title in titles.items()
    }
)

_UNSTORABLE = re.compile("[\0\ud800-\udfff]")


class PackageError(Exception):
    """A package cannot be taken; `issues` say all that was found, each of severity error."""

    def __init__(self, issues: tuple[Issue, ...]) -> None:
        super().__init__(" ".join(f"{issue.rule}: {issue.message}" for issue in issues))
        self.issues = issues


class Issues:
    """Issues as they are found. Of each rule the first MOST_LISTED are kept, the rest is counted."""

    def __init__(self) -> None:
        self._kept: list[Issue] = []
        self._count: Counter[str] = Counter()
        self._paths: dict[str, None] = {}

    def __bool__(self) -> bool:
        return bool(self._kept)

    def add(
        self, code: str, message: str, *, path: str = "", line: int = 0, source: str = ""
    ) -> None:
        self._count[code] += 1
        self._paths.setdefault(shown(path))
        if self._count[code] <= MOST_LISTED:
            self._kept.append(
                Issue(
                    rule=code,
                    severity=RULES[code].severity,
                    message=_harmless(message),
                    path=shown(path),
                    line=line,
                    source=shown(source),
                )
            )

    def all(self) -> tuple[Issue, ...]:
        """Errors first, each by file in the order of their first issue, and by line."""
        places = {path: place for place, path in enumerate(self._paths)}
        kept = sorted(
            self._kept,
            key=lambda issue: (issue.severity is Severity.WARNING, places[issue.path], issue.line),
        )
        more = (
            Issue(
                rule=code,
                severity=RULES[code].severity,
                message=f"{count - MOST_LISTED:,} more like this.",
            )
            for code, count in self._count.items()
            if count > MOST_LISTED
        )
        return (*kept, *more)

    def refuse(self) -> None:
        """Raises PackageError if there is an issue."""
        if self:
            raise PackageError(self.all())


def shown(text: str) -> str:
    """Foreign text as it can stand in a report: at most LONGEST_SHOWN characters, none that moves a cursor."""
    return _harmless(text if len(text) <= LONGEST_SHOWN else text[: LONGEST_SHOWN - 1] + "…")


def _harmless(text: str) -> str:
    if text.isprintable():
        return text
    return "".join(
        mark if mark.isprintable() else "    " if mark == "\t" else ascii(mark)[1:-1]
        for mark in text
    )


def storable(text: str) -> str:
    """Foreign text as every database takes it: without null characters and halves of surrogate pairs."""
    return _UNSTORABLE.sub("\ufffd", text)
