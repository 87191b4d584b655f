"""README.md beside this file maps the documents to tests: every section has some, and every one named is there."""

import ast
import re
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

HERE = Path(__file__).parent
README = (HERE / "README.md").read_text(encoding="utf-8")
TRAPS = "ENGINE.md §6: known traps"
# The documents are no part of this repository; so many sections and traps they have.
SECTIONS = {"parlant-tools.md": 25, "parlant-tool-calling.md": 23, "ENGINE.md": 22}
KNOWN_TRAPS = 13

_TEST = re.compile(r"`([\w./]+\.py)::(test_\w+)`")


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    section: str
    behaviour: str
    tests: tuple[tuple[str, str], ...]  # (path of the file from here, name)


@lru_cache
def chapters() -> dict[str, list[str]]:
    """Title → lines, of what stands under a heading of the second level."""
    found: dict[str, list[str]] = {}
    for chapter in re.split(r"^## ", README, flags=re.MULTILINE)[1:]:
        title, *lines = chapter.splitlines()
        found[title.strip()] = lines
    return found


def sections(document: str) -> list[str]:
    return [line.removeprefix("- ") for line in chapters()[document] if line.startswith("- ")]


def rows(chapter: str) -> list[Row]:
    """The rows of its table, without those that head it."""
    found = []
    for line in [line for line in chapters()[chapter] if line.startswith("|")][2:]:
        first, *middle, last = [cell.strip() for cell in line.strip("|").split(" | ")]
        found.append(
            Row(section=first, behaviour=" ".join(middle), tests=tuple(_TEST.findall(last)))
        )
    return found


@lru_cache
def functions_of(path: str) -> frozenset[str]:
    """The names of the test functions of a file, of its classes too; empty where there is no such file."""
    file = HERE / path
    if not file.is_file():
        return frozenset()
    return frozenset(
        node.name
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8")))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    )


def test_every_document_and_its_sections_are_listed() -> None:
    assert list(chapters()) == [*SECTIONS, TRAPS]
    for document, number in SECTIONS.items():
        titles = sections(document)
        assert len(set(titles)) == len(titles) == number, document


def test_every_section_says_what_shows_it() -> None:
    for document in SECTIONS:
        shown = [row.section for row in rows(document)]
        assert list(dict.fromkeys(shown)) == sections(document), document


def test_every_row_says_a_behaviour_and_names_tests_that_are_there() -> None:
    for chapter in chapters():
        for row in rows(chapter):
            assert row.tests, row
            assert row.behaviour or chapter == TRAPS, row
            missing = [
                f"{path}::{name}" for path, name in row.tests if name not in functions_of(path)
            ]
            assert missing == [], row.section


def test_no_test_is_named_in_another_way() -> None:
    """What looks like the name of a test is one that the others here have looked for."""
    named = [test for chapter in chapters() for row in rows(chapter) for test in row.tests]
    assert README.count("::") == len(named)


def test_each_known_trap_has_one_test_and_each_test_of_them_a_trap() -> None:
    found = rows(TRAPS)
    named = [test for row in found for test in row.tests]
    assert [len(row.tests) for row in found] == [1] * KNOWN_TRAPS
    assert {path for path, _name in named} == {"test_known_traps.py"}
    tests = {name for name in functions_of("test_known_traps.py") if name.startswith("test_")}
    assert sorted(name for _path, name in named) == sorted(tests)
