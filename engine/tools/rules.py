"""Checks a tool template by its files alone. The code is read as a tree and never imported or run."""

import re
from typing import Any

from engine.tools.checking.requirements import decode, read_requirements, without_credentials
from engine.tools.checking.rulebook import RULES, Issues, Rule, shown, storable
from engine.tools.checking.shadowing import hidden_modules
from engine.tools.checking.tool_rules import TOOL, Told, check_source
from engine.tools.checking.tool_source import SourceError, parse
from engine.tools.environments.needs import Needs
from engine.tools.package import Package
from engine.tools.template import Report

__all__ = ["RULES", "Rule", "check_package"]

REQUIREMENTS = "requirements.txt"
LONGEST_NAME = 80
"""Characters of a template's name."""

_NAME = re.compile(r"[a-zA-Z0-9 ]+")


def check_package(package: Package, *, name: str = "") -> Report:
    """What the rules find in a package, all at once; never raises for what it holds.

    `name` is the one it is to have, otherwise the package's own.
    """
    issues = Issues()
    named = name or package.name
    _check_name(named, issues)
    told = _check_tool(package, issues)
    requirements = _check_requirements(package, issues)
    for path, module in hidden_modules(package.files):
        issues.add("T-W17", f"{path!r} hides the module {module!r}; rename it.", path=path)
    report = Report(
        name=named,
        description=told.description,
        user_parameters=told.user_parameters,
        tool_parameters=told.tool_parameters,
        output_key=told.output_key,
        requirements=requirements,
        issues=issues.all(),
    )
    value = report.to_json()
    clean = _clean(value)
    return report if clean == value else Report.from_json(clean)


def _clean(value: Any) -> Any:
    """The same JSON, storable."""
    if isinstance(value, str):
        return storable(value)
    if isinstance(value, list):
        return [_clean(item) for item in value]
    if isinstance(value, dict):
        return {storable(key): _clean(item) for key, item in value.items()}
    return value


def _check_name(name: str, issues: Issues) -> None:
    if not name.strip():
        issues.add(
            "N-001", "The template has no name; give it one of letters a-z, digits and spaces."
        )
    elif not _NAME.fullmatch(name):
        issues.add(
            "N-001",
            f"The name {shown(name)!r} is not taken; use letters a-z, digits and spaces only.",
        )
    elif len(name) > LONGEST_NAME:
        issues.add("N-001", f"The name has more than {LONGEST_NAME} characters; shorten it.")


def _check_tool(package: Package, issues: Issues) -> Told:
    content = package.files.get(TOOL)
    if content is None:
        elsewhere = sorted(
            path for path in package.files if path.rpartition("/")[2].lower() == TOOL
        )
        hint = f" Move {shown(elsewhere[0])!r} there." if elsewhere else ""
        issues.add("T-002", f"There is no {TOOL} in the template's directory.{hint}", path=TOOL)
        return Told()
    try:
        source = parse(content)
    except SourceError as error:
        issues.add("T-004", str(error), path=TOOL, line=error.line, source=error.source)
        return Told()
    return check_source(source, issues)


def _check_requirements(package: Package, issues: Issues) -> tuple[str, ...]:
    """Reports what is amiss; returns the lines that ask for something."""
    content = package.files.get(REQUIREMENTS)
    if content is None:
        issues.add(
            "T-003",
            f"There is no {REQUIREMENTS}; add one with a line “pydantic”.",
            path=REQUIREMENTS,
        )
        return ()
    text, is_utf8 = decode(content)
    if not is_utf8:
        issues.add(
            "T-W16",
            f"{REQUIREMENTS} is not UTF-8, so that it may not be understood; save it as UTF-8.",
            path=REQUIREMENTS,
        )
    entries = read_requirements(text)
    for entry in entries:
        if entry.problem:
            issues.add(
                "T-W09", entry.problem, path=REQUIREMENTS, line=entry.line, source=entry.public
            )
    readable = "\n".join(entry.text for entry in entries if not entry.problem).encode()
    needs = Needs.of(Package(package.name, {**package.files, REQUIREMENTS: readable}))
    if problem := needs.problem():
        issues.add("T-W15", shown(without_credentials(problem)), path=REQUIREMENTS)
    if "pydantic" not in needs.names:
        issues.add(
            "T-W03",
            f"{REQUIREMENTS} does not ask for pydantic, which every tool needs; add a line “pydantic”.",
            path=REQUIREMENTS,
        )
    return tuple(entry.public for entry in entries if entry.asks and not entry.problem)
