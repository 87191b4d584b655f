"""What makes two environments the same, and what the requirements of a package refer to."""

import pytest

from engine.tools.environments.needs import Needs
from engine.tools.package import Package


def key(requirements: str, **files: bytes) -> str:
    return Needs(requirements=requirements, files=files).key


def needs_of(requirements: str, **files: str) -> Needs:
    held = {"requirements.txt": requirements, "tool.py": "", **files}
    return Needs.of(Package("any", {path: text.encode() for path, text in held.items()}))


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("pydantic\nhttpx\n", "httpx\npydantic"),
        ("pydantic", "# for checks\n\n  Pydantic  # the newest\r\n"),
        ("typing-extensions", "Typing_Extensions"),
        ("httpx[http2,brotli]>=0.20,<1", "httpx[brotli, http2] <1, >=0.20"),
        ("httpx>=0.20", "httpx \\\n  >=0.20"),
        ("httpx", "\ufeffhttpx"),
    ],
)
def test_what_asks_for_the_same_has_one_environment(one: str, other: str) -> None:
    assert needs_of(one).key == needs_of(other).key


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("httpx", "httpx>=0.20"),
        ("httpx", "httpx[http2]"),
        ("httpx", "httpx; python_version < '3'"),
        ("httpx", "httpx @ https://h.example/httpx.whl"),
        ("httpx==1 --hash=sha256:aa", "httpx==1 --hash=sha256:bb"),
        ("-i https://a.example\nhttpx", "httpx"),
        ("--find-links a\n--find-links b", "--find-links b\n--find-links a"),
    ],
)
def test_what_asks_for_something_else_has_another(one: str, other: str) -> None:
    assert key(one) != key(other)


def test_another_python_needs_another(monkeypatch: pytest.MonkeyPatch) -> None:
    before = key("pydantic")
    monkeypatch.setattr("platform.python_version", lambda: "3.99.0")
    assert key("pydantic") != before


def test_files_that_are_referred_to_belong_to_it_and_no_others() -> None:
    files = {
        "more/base.txt": "-c limits.txt\n-r ../top.txt\n./wheels/one.whl\n",
        "more/limits.txt": "httpx<1\n",
        "top.txt": "-r more/base.txt\n",  # and round again
        "wheels/one.whl": "1",
        "wheels/two.whl": "2",
        "own/setup.py": "",
        "own/src/own.py": "",
        "other.txt": "",
    }
    needs = needs_of("-r more/base.txt\n-e ./own[fast]\n", **files)
    assert set(needs.files) == set(files) - {"wheels/two.whl", "other.txt"}
    assert needs.problem() == ""
    changed = needs_of("-r more/base.txt\n-e ./own[fast]\n", **{**files, "own/src/own.py": "new"})
    assert changed.key != needs.key


def test_names_are_those_asked_for_wherever_they_stand_but_not_in_constraints() -> None:
    files = {"more.txt": "Pydantic\n", "limits.txt": "httpx<1\n"}
    assert needs_of("-r more.txt\n-c limits.txt\nYAML_x\n", **files).names == {"pydantic", "yaml-x"}


@pytest.mark.parametrize(
    "line",
    [
        "-e .",
        "--editable=git+https://h.example/x.git",
        "git+https://h.example/x.git",
        "x @ git+https://h.example/x.git@main",
        "x @ https://h.example/x-1.0.tar.gz#sha256=00",
        "./own",
        "x.zip",
    ],
)
def test_what_runs_code_to_be_installed_is_known(line: str) -> None:
    assert needs_of(f"pydantic\n{line}\n").source == line


@pytest.mark.parametrize(
    "line", ["pydantic", "x @ https://h.example/x-1.0.whl#sha256=00", "./x.whl", "--find-links own"]
)
def test_what_only_unpacks_is_known_too(line: str) -> None:
    assert needs_of(line).source == ""


def test_what_is_shown_of_it_has_no_password() -> None:
    needs = needs_of("-i https://user:hunter2@h.example/simple\npydantic\n")
    assert "hunter2" in needs.requirements
    assert "hunter2" not in needs.public
    assert "h.example/simple" in needs.public


def test_a_line_that_cannot_be_read_is_named_with_its_file() -> None:
    needs = needs_of("-r more.txt\n", **{"more.txt": "pydantic\nimport httpx\n"})
    assert needs.problem().startswith("Line 2 of more.txt, 'import httpx': This is a command")
