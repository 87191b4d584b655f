"""The rules: what they find in a package, where, and that nothing of it runs meanwhile."""

import json
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from engine.tools.package import Package, read_archive, starter, unpack
from engine.tools.rules import RULES, check_package
from engine.tools.template import Issue, Report, Severity

GOOD = '''"""Says a text again."""

import argparse
import json
from typing import Any, Optional

from pydantic import BaseModel, Field

OUTPUT_KEY = "tool_output"


class UserParameters(BaseModel):
    api_key: str
    endpoint: Optional[str] = None


class ToolParameters(BaseModel):
    text: str = Field(description="What to say")
    times: int = Field(default=1, description="How often")


def run_tool(config: UserParameters, args: ToolParameters) -> Any:
    return " ".join([args.text] * args.times)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--user-params", required=True)
    parser.add_argument("--tool-params", required=True)
    args = parser.parse_args()
    config = UserParameters(**json.loads(args.user_params))
    print(OUTPUT_KEY, run_tool(config, ToolParameters(**json.loads(args.tool_params))))
'''


def check(
    source: str | bytes | None = GOOD,
    requirements: str | bytes | None = "pydantic\n",
    **more: bytes,
) -> Report:
    files = dict(more)
    for path, content in (("tool.py", source), ("requirements.txt", requirements)):
        if content is not None:
            files[path] = content.encode() if isinstance(content, str) else content
    return check_package(Package("Echo", files))


def found(report: Report) -> set[str]:
    return {issue.rule for issue in report.issues}


def only(report: Report, code: str) -> Issue:
    (issue,) = (issue for issue in report.issues if issue.rule == code)
    return issue


def changed(old: str, new: str) -> str:
    assert GOOD.count(old) == 1
    return GOOD.replace(old, new)


# A good one


def test_a_good_package_has_no_issue_and_is_told_in_full() -> None:
    report = check(requirements="# needs\npydantic>=2  # always\nrequests\n--pre\n")
    assert report.issues == ()
    assert report.ok
    assert report.description == "Says a text again."
    assert report.output_key == "tool_output"
    assert report.requirements == ("pydantic>=2", "requests")
    assert [(each.name, each.required) for each in report.user_parameters] == [
        ("api_key", True),
        ("endpoint", False),
    ]
    assert [(each.name, each.description) for each in report.tool_parameters] == [
        ("text", "What to say"),
        ("times", "How often"),
    ]
    assert Report.from_json(json.loads(json.dumps(report.to_json()))) == report


def test_the_specifications_own_example_is_good() -> None:
    source = GOOD.replace("import Any, Optional", "import Any").replace(
        "    api_key: str\n    endpoint: Optional[str] = None\n", "    pass\n"
    )
    assert check(source).issues == ()


def test_the_starter_is_good_and_runs(tmp_path: Path) -> None:
    (package,) = read_archive(starter(), filename="opening hours.zip").packages
    assert check_package(package).issues == ()
    unpack(starter(), tmp_path / "it")
    ran = subprocess.run(
        [
            *(sys.executable, "-I", "tool.py", "--user-params", '{"greeting": "Olá!"}'),
            *("--tool-params", '{"city": " lisbon", "day": "thu", "cash_only": true}'),
        ],
        cwd=tmp_path / "it",
        capture_output=True,
        text=True,
        check=True,
    )
    log, _, output = ran.stdout.partition("tool_output")
    assert "Looking through" in log
    assert json.loads(output) == {
        "greeting": "Olá!", "city": "Lisbon", "open": True, "from": "10:00", "to": "16:30", "cash_desk": True,
    }  # fmt: skip


# Files


def test_without_files_everything_that_is_absent_is_said() -> None:
    report = check(None, None)
    assert found(report) == {"T-002", "T-003"}
    assert not report.ok
    assert all(issue.severity is Severity.ERROR for issue in report.issues)


def test_a_tool_that_lies_elsewhere_is_pointed_to() -> None:
    report = check_package(Package("A", {"src/Tool.py": b"", "requirements.txt": b"pydantic"}))
    assert "Move 'src/Tool.py' there." in only(report, "T-002").message


def test_an_empty_tool_lacks_everything() -> None:
    report = check("")
    assert found(report) == {"T-005", "T-006", "T-007", "T-W01", "T-W02", "T-W07"}
    assert [issue.severity for issue in report.issues] == sorted(
        issue.severity for issue in report.issues
    )


# Source that cannot be read


@pytest.mark.parametrize(
    ("source", "line", "said"),
    [
        ("a = (1,\nb = 2\n", 1, "'(' was never closed"),
        ("if x:\npass\n", 2, "expected an indented block"),
        ('print "hello"\n', 1, "Python 2 (print statement)"),
        ('import os\nexec "x"\n', 2, "Python 2 (exec statement)"),
        ("try:\n  a\nexcept A, e:\n  pass\n", 3, "Python 2 (except with a comma)"),
        ("raise ValueError, 'x'\n", 1, "Python 2 (raise with a comma)"),
        ("a = 0777\n", 1, "Python 2 (octal"),
        ("if a <> b: pass\n", 1, "Python 2 (<>)"),
        ("a = 1L\n", 1, "Python 2 (long number)"),
        ("x = 1\n\ny = '\0'\n", 3, "null byte"),
        (b"\xff\xfea\0b\0", 0, "UTF-16"),
        (b"# coding: rot13\n", 1, "the encoding 'rot13'"),
        (b"# coding: no-such\n", 1, "cannot be told"),
        (b"a = 1\nb = '\xff'\n", 2, "UTF-8"),
        (b"\xef\xbb\xbf# coding: latin-1\n", 1, "UTF-8"),
    ],
)
def test_source_that_cannot_be_read_is_told_with_its_line(
    source: str | bytes, line: int, said: str
) -> None:
    report = check(source)
    issue = only(report, "T-004")
    assert said in issue.message
    assert (issue.line, issue.path) == (line, "tool.py")
    assert found(report) == {"T-004"}


def test_the_line_of_a_syntax_error_is_shown() -> None:
    assert only(check("a = 1\n   print 'x'\n"), "T-004").source == "print 'x'"


@pytest.mark.parametrize(
    "source",
    [
        b"\xef\xbb\xbf" + GOOD.encode(),
        ("# coding: latin-1\n" + GOOD.replace("again", "für")).encode("latin-1"),
        GOOD.replace("\n", "\r\n").encode(),
        GOOD.replace("\n", "\r").encode(),
        GOOD.replace('"""Says a text again."""', 'r"""Says \\d again."""\nx = "\\d"').encode(),
    ],
)
def test_source_of_other_programs_is_read(source: bytes) -> None:
    assert check(source).issues == ()


def test_a_source_of_five_megabytes_is_refused_at_once() -> None:
    begun = time.monotonic()
    issue = only(check("x = 1\n" * 850_000), "T-004")
    assert time.monotonic() - begun < 1
    assert "5.1 MB" in issue.message


DEEP = {
    "parentheses": "(" * 50_000,
    "brackets": "x = " + "[" * 150 + "]" * 150,
    "minuses": "x = " + "-" * 900_000 + "1",
    "additions": "x = 1" + "+1" * 400_000,
    "attributes": "x = a" + ".b" * 400_000,
    "calls": "x = a" + "()" * 300_000,
    "lambdas": "x = " + "lambda:" * 100_000 + "1",
    "conditions": "if a:\n pass\n" + "elif a:\n pass\n" * 50_000,
    "conditions that parse": "if a:\n pass\n" + "elif a:\n pass\n" * 900,
    "dotted import": "import a" + ".a" * 300_000,  # the parser alone would need gigabytes for it
    "dotted import on many lines": "import a" + ".\\\na" * 200_000,
    "statements": "a;" * 400_000,
    "blocks": "".join(" " * level + "if x:\n" for level in range(150)),
    "strings": 'x = f"' + "{a}" * 100_000 + '"',
    "big number": "x = " + "9" * 900_000,
}


@pytest.mark.parametrize("name", DEEP)
def test_deep_and_long_source_neither_crashes_nor_takes_long(name: str) -> None:
    reports = []
    begun = time.monotonic()
    # Requests are answered in threads, whose stacks are no larger than this one.
    thread = threading.Thread(target=lambda: reports.append(check(DEEP[name] + "\n")))
    thread.start()
    thread.join()
    assert time.monotonic() - begun < 30
    assert not reports[0].ok


@pytest.mark.parametrize(
    "annotation",
    [
        "list[" * 150 + "int" + "]" * 150,
        "int" + " | int" * 900,
        "a" + ".b" * 900,
        "'" + "(" * 150 + "'",
    ],
)
def test_a_deep_annotation_is_survived(annotation: str) -> None:
    report = check(changed("    text: str", f"    deep: {annotation}\n    text: str"))
    assert [each.name for each in report.user_parameters] == ["api_key", "endpoint"]


# Classes and functions


@pytest.mark.parametrize(
    ("name", "code"),
    [("UserParameters", "T-005"), ("ToolParameters", "T-006"), ("run_tool", "T-007")],
)
def test_what_is_absent_or_misspelt_is_named(name: str, code: str) -> None:
    misspelt = name.lower().replace("_", "")
    report = check(
        GOOD.replace(f"class {name}", f"class {misspelt}").replace(f"def {name}", f"def {misspelt}")
    )
    issue = only(report, code)
    assert f"is {misspelt!r} meant?" in issue.message
    assert misspelt in issue.source
    assert issue.severity is Severity.ERROR


def test_old_class_style_is_told_as_such_with_what_to_change() -> None:
    source = '''"""Old."""
from pydantic import BaseModel
from studio.tools import StudioBaseTool as Base


class Echo(Base):
    class UserParameters(BaseModel):
        pass

    class ToolParameters(BaseModel):
        text: str

    def run_tool(self, args):
        return args.text
'''
    report = check(source)
    assert {issue.rule for issue in report.errors} == {"T-005", "T-006", "T-007", "T-008"}
    old = only(report, "T-008")
    assert old.line == 6
    assert "top level" in old.message
    assert "run_tool(config, args)" in old.message
    assert only(report, "T-005").line == 7
    assert only(report, "T-007").line == 13


@pytest.mark.parametrize(
    ("name", "code"), [("UserParameters", "T-W04"), ("ToolParameters", "T-W05")]
)
@pytest.mark.parametrize("base", ["", "(object)", "(dict)"])
def test_a_class_that_is_no_model_is_a_warning(name: str, code: str, base: str) -> None:
    report = check(changed(f"class {name}(BaseModel)", f"class {name}{base}"))
    assert report.ok
    issue = only(report, code)
    assert issue.source.startswith(f"class {name}")


@pytest.mark.parametrize(
    ("line", "base"),
    [
        ("from pydantic import BaseModel as B, Field", "B"),
        ("import pydantic as p\nfrom pydantic import BaseModel, Field", "p.BaseModel"),
        ("import pydantic\nfrom pydantic import BaseModel, Field", "pydantic.BaseModel"),
        ("from pydantic import BaseModel, Field\nclass A(BaseModel): pass\nclass C(A): pass", "C"),
    ],
)
def test_a_base_model_is_known_by_any_name(line: str, base: str) -> None:
    source = changed("from pydantic import BaseModel, Field", line).replace(
        "Parameters(BaseModel)", f"Parameters({base})"
    )
    assert check(source).issues == ()


def test_a_class_for_pydantic_1_is_a_warning() -> None:
    report = check(changed("from pydantic import", "from pydantic.v1 import"))
    assert report.ok
    assert "T-W10" in found(report)


def test_fields_are_warned_of_with_their_line() -> None:
    fields = "    text: str\n    odd: Unheard\n    when: complex = Field(description='c')"
    report = check(changed('    text: str = Field(description="What to say")', fields))
    assert report.ok
    odd = [issue for issue in report.issues if issue.rule == "T-W06"]
    assert {issue.source.split(":")[0] for issue in odd} == {"odd", "when"}
    undescribed = [issue.source for issue in report.issues if issue.rule == "T-W08"]
    assert undescribed == ["text: str", "odd: Unheard"]


@pytest.mark.parametrize(
    "opening",
    [
        "try:\n    import fast\nexcept ImportError:\n    ",
        "if True:\n    ",
        "with open('x') as f:\n    ",
    ],
)
def test_run_tool_is_found_in_a_block_and_that_is_told(opening: str) -> None:
    signature = "def run_tool(config: UserParameters, args: ToolParameters) -> Any:\n    return"
    report = check(changed(signature, opening + signature.replace("\n", "\n    ")))
    assert found(report) == {"T-W14"}
    assert "move it to the top level" in only(report, "T-W14").message


def test_what_is_never_there_when_the_file_runs_is_absent() -> None:
    signature = "def run_tool(config: UserParameters, args: ToolParameters) -> Any:\n    return"
    for opening in ("if TYPE_CHECKING:\n    ", "if typing.TYPE_CHECKING:\n    ", "if False:\n    "):
        report = check(changed(signature, opening + signature.replace("\n", "\n    ")))
        assert found(report) == {"T-007"}


@pytest.mark.parametrize(
    ("signature", "code"),
    [
        ("def run_tool(config: UserParameters, args: ToolParameters)", ""),
        ("def run_tool(a, b, c=1, *rest, d=2, **more)", ""),
        ("def run_tool(*args)", ""),
        ("def run_tool(args)", "T-W12"),
        ("def run_tool(self, config, args)", "T-W12"),
        ("def run_tool(config, *, args)", "T-W12"),
        ("def run_tool(config, args, *, key)", "T-W12"),
        ("def run_tool(args: ToolParameters, config: UserParameters)", "T-W12"),
        ("async def run_tool(config, args)", "T-W13"),
    ],
)
def test_the_parameters_of_run_tool(signature: str, code: str) -> None:
    report = check(
        changed("def run_tool(config: UserParameters, args: ToolParameters) -> Any", signature)
    )
    assert found(report) == ({code} if code else set())
    assert report.ok


def test_a_generator_is_warned_of_and_one_inside_of_run_tool_is_not() -> None:
    returned = '    return " ".join([args.text] * args.times)\n'
    assert found(check(changed(returned, "    for each in range(2):\n        yield each\n"))) == {
        "T-W13"
    }
    inner = "    def each():\n        yield 1\n    return list(each())\n"
    assert check(changed(returned, inner)).issues == ()


@pytest.mark.parametrize(
    "line", ["from main import run_tool", "run_tool = print", "class run_tool: pass"]
)
def test_run_tool_must_be_a_function_of_the_file(line: str) -> None:
    source = changed("def run_tool(config: UserParameters, args: ToolParameters)", "def other()")
    report = check(source.replace("OUTPUT_KEY = ", f"{line}\nOUTPUT_KEY = "))
    assert only(report, "T-007").source == line


@pytest.mark.parametrize(
    ("line", "key", "codes"),
    [
        ('OUTPUT_KEY: str = "x"', "x", set()),
        ('KEY = "x"\nOUTPUT_KEY = KEY + "y" "z"', "xyz", set()),
        ('OUTPUT_KEY = "a"\nOUTPUT_KEY = "b"', "b", set()),
        ('OUTPUT_KEY = ""', None, {"T-W11"}),
        ('OUTPUT_KEY = " "', None, {"T-W11"}),
        ("OUTPUT_KEY = 5", None, {"T-W11"}),
        ("OUTPUT_KEY = OUTPUT_KEY", None, {"T-W11"}),
        ("OUTPUT_KEY = make()", None, {"T-W11"}),
        ("OUTPUT_KEY: str", None, {"T-W01"}),
        ('output_key = "x"', None, {"T-W01"}),
        ('if fast:\n    OUTPUT_KEY = "x"', "x", {"T-W14"}),
    ],
)
def test_the_output_key(line: str, key: str | None, codes: set[str]) -> None:
    report = check(changed('OUTPUT_KEY = "tool_output"', line))
    assert (report.output_key, found(report)) == (key, codes)


@pytest.mark.parametrize(
    ("test", "codes"),
    [
        ("'__main__' == __name__", set()),
        ("__name__ == '__main__' and True", set()),
        ("__name__ != '__main__'", {"T-W02"}),
        ("__name__ == 'main'", {"T-W02"}),
    ],
)
def test_the_entry_point(test: str, codes: set[str]) -> None:
    assert found(check(changed('__name__ == "__main__"', test))) == codes


def test_a_docstring_describes_the_tool() -> None:
    assert found(check(changed('"""Says a text again."""', "# Says a text again."))) == {"T-W07"}
    report = check(changed('"""Says a text again."""', '"""\n    One\n      two\n    """'))
    assert report.description == "One\n  two"


# Names, requirements, files


@pytest.mark.parametrize("name", ["Json Reader 2", "a", "7", " a "])
def test_names_that_are_taken(name: str) -> None:
    assert check_package(Package("any_thing", {}), name=name).name == name
    assert "N-001" not in found(check_package(Package("x", {}), name=name))


@pytest.mark.parametrize(
    "name",
    ["Reader\n", "my_tool", "my-tool", "é", "²", "a.b", "", " ", "a\0", "x" * 81, "a\n" * 500],
)
def test_names_that_are_not_taken(name: str) -> None:
    issue = only(check_package(Package(name, {})), "N-001")
    assert issue.severity is Severity.ERROR
    assert issue.message.isprintable()


@pytest.mark.parametrize(
    ("requirements", "codes"),
    [
        ("Pydantic[email]>=2", set()),
        ("pydantic; python_version > '3'", set()),
        ("# pydantic", {"T-W03"}),
        ("", {"T-W03"}),
        ("pydantic-settings", {"T-W03"}),
        ("pydantic\nrequests==\n", {"T-W09"}),
        ("pydantic\n-r gone.txt", {"T-W15"}),
        ("pydantic\n-r ../outside.txt", {"T-W15"}),
        ("-r more.txt", set()),
        ("pydantic\n" + "two words\n" * 5_000, {"T-W09"}),
        ("pydantic; " + "(" * 990 + "os_name == 'a'" + ")" * 990, {"T-W09", "T-W03"}),
        ("pydantic\n".encode("utf-16"), {"T-W16"}),
        (b"pydantic # \xff\n", {"T-W16"}),
    ],
)
def test_requirements(requirements: str | bytes, codes: set[str]) -> None:
    report = check_package(
        Package(
            "A",
            {
                "tool.py": GOOD.encode(),
                "requirements.txt": requirements.encode()
                if isinstance(requirements, str)
                else requirements,
                "more.txt": b"pydantic",
            },
        )
    )
    assert found(report) == codes
    assert report.ok
    assert len(report.issues) <= 22


def test_a_password_in_a_requirement_is_not_in_the_report() -> None:
    line = "a @ https://me:pass-word@host.example/a.whl"
    report = check(
        requirements=f"pydantic\n{line}\n{line} <<\n--index-url https://u:pass-word@x.example/\n"
    )
    assert "pass-word" not in json.dumps(report.to_json())


def test_files_that_hide_modules_are_named() -> None:
    names = [
        "json.py",
        "pydantic/__init__.py",
        "data/json.py",
        "test/__init__.py",
        "helper.py",
        "code/x.txt",
    ]
    files = {"tool.py": GOOD.encode(), "requirements.txt": b"pydantic", **dict.fromkeys(names, b"")}
    report = check_package(Package("A", files))
    assert [(issue.rule, issue.path) for issue in report.issues] == [
        ("T-W17", "json.py"),
        ("T-W17", "pydantic/__init__.py"),
    ]


# The rest


def test_every_rule_has_a_code_a_severity_and_a_title() -> None:
    for code, rule in RULES.items():
        assert rule.code == code
        assert rule.title
        assert rule.severity is (Severity.WARNING if "-W" in code else Severity.ERROR)


def test_checking_never_runs_the_code(tmp_path: Path) -> None:
    mark = tmp_path / "ran"
    run = f"__import__('pathlib').Path({str(mark)!r}).touch()"
    source = GOOD.replace("OUTPUT_KEY = ", f"{run}\nOUTPUT_KEY = ").replace(
        "    text: str",
        f'    side: ({run}, int)[1] = {run}\n    other: "({run}, int)[1]"\n    text: str',
    )
    files = {
        "tool.py": f"@{run}\nclass Meta(type): {run}\n{source}".encode(),
        "requirements.txt": b"pydantic",
        **dict.fromkeys(
            [
                "pydantic.py",
                "typing.py",
                "sitecustomize.py",
                "ast.py",
                "conftest.py",
                "__init__.py",
            ],
            run.encode(),
        ),
        "setup.py": run.encode(),
    }
    check_package(Package("A", files))
    large = files | {
        "tool.py": files["tool.py"] + b"\n# " + b"x" * 40_000
    }  # goes through another process
    assert "T-004" not in found(check_package(Package("A", large)))
    assert not mark.exists()


def test_what_no_database_takes_is_not_in_a_report() -> None:
    source = (
        changed('"""Says a text again."""', '"""Says \\0 and \\ud800."""')
        .replace('"What to say"', '"What \\0"')
        .replace("default=1", "default='\\udc00'")
    )
    report = check_package(
        Package("A\ud800", {"tool.py": source.encode(), "requirements.txt": b"pydantic"})
    )
    assert report.description == "Says \ufffd and \ufffd."
    assert [each.description for each in report.tool_parameters] == ["What \ufffd", "How often"]
    assert report.tool_parameters[1].default == "\ufffd"
    json.dumps(report.to_json(), ensure_ascii=False).encode()
    assert found(check(changed('"tool_output"', '"x\\0"'))) == {"T-W11"}


_PIECES = st.lists(
    st.sampled_from(
        [
            *GOOD.splitlines(keepends=True),
            *'class def ( ) [ ] : = " \' """ \n , . * @ lambda async yield'.split(" "),
        ]
    )
)


@settings(max_examples=200, deadline=None)
@given(
    st.one_of(st.binary(), st.text().map(str.encode), _PIECES.map("".join).map(str.encode)),
    st.binary(),
    st.text(),
)
@example(source=b"\\\n", requirements=b"\\", name="\ud800")
def test_no_package_is_too_odd_to_be_checked(source: bytes, requirements: bytes, name: str) -> None:
    files = {"tool.py": source, "requirements.txt": requirements}
    report = check_package(Package(name, files))
    json.dumps(report.to_json(), allow_nan=False, ensure_ascii=False).encode()
    for issue in report.issues:
        assert issue.severity is RULES[issue.rule].severity
        assert (issue.message + issue.source + issue.path).isprintable()
