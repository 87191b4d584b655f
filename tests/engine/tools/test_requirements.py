"""Lines of a requirements.txt as pip reads them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.tools.checking.requirements import MOST_LINES, Entry, decode, read_requirements


def one(text: str) -> Entry:
    (entry,) = read_requirements(text)
    return entry


@pytest.mark.parametrize(
    ("line", "name", "specifier"),
    [
        ("pydantic", "pydantic", ""),
        ("Pydantic_Settings>=2.0, <3", "pydantic-settings", "<3,>=2.0"),
        ("zope.interface==5.*", "zope-interface", "==5.*"),
        ("numpy==1.24.0  # why", "numpy", "==1.24.0"),
        ("requests ~= 2.28", "requests", "~=2.28"),
        ("requests (>=2)", "requests", ">=2"),
    ],
)
def test_a_requirement_has_a_normalised_name_and_its_versions(
    line: str, name: str, specifier: str
) -> None:
    entry = one(line)
    assert (entry.name, entry.specifier, entry.problem) == (name, specifier, "")
    assert entry.asks
    assert "#" not in entry.text


def test_extras_markers_and_options_of_a_line_are_read() -> None:
    entry = one(
        'httpx[socks,http2]>=0.28; python_version < "3.13" --hash=sha256:abc --hash=sha256:def'
    )
    assert entry.extras == ("http2", "socks")
    assert entry.marker == 'python_version < "3.13"'
    assert entry.options == ("--hash=sha256:abc", "--hash=sha256:def")
    assert entry.problem == ""


@pytest.mark.parametrize(
    ("line", "name", "address"),
    [
        ("pkg @ https://host.example/pkg-1.0-py3-none-any.whl", "pkg", "https://host.example/pkg-1.0-py3-none-any.whl"),
        ("https://host.example/pkg.tar.gz", "", "https://host.example/pkg.tar.gz"),
        ("git+https://host.example/pkg@v1#egg=pkg", "", "git+https://host.example/pkg@v1#egg=pkg"),
        ("./wheels/pkg-1.0-py3-none-any.whl", "", "./wheels/pkg-1.0-py3-none-any.whl"),
        ("pkg-1.0-py3-none-any.whl", "", "pkg-1.0-py3-none-any.whl"),
    ],
)  # fmt: skip
def test_an_address_or_a_path_is_a_requirement(line: str, name: str, address: str) -> None:
    entry = one(line)
    assert (entry.name, entry.address, entry.problem) == (name, address, "")


def test_a_password_in_an_address_is_not_shown() -> None:
    entry = one("pkg @ https://me:pass-word@host.example/pkg.whl")
    assert entry.public == "pkg @ https://…@host.example/pkg.whl"


@pytest.mark.parametrize(
    ("line", "option", "value", "asks"),
    [
        ("-r more.txt", "-r", "more.txt", True),
        ("-rmore.txt", "-r", "more.txt", True),
        ("--requirement=more.txt", "--requirement", "more.txt", True),
        ("--requirement more.txt", "--requirement", "more.txt", True),
        ("-e .", "-e", ".", True),
        ("-c limits.txt", "-c", "limits.txt", False),
        ("--index-url https://host.example/s?a=b", "--index-url", "https://host.example/s?a=b", False),
        ("--pre", "--pre", "", False),
    ],
)  # fmt: skip
def test_options_are_read_and_only_some_ask_for_something(
    line: str, option: str, value: str, asks: bool
) -> None:
    entry = one(line)
    assert (entry.option, entry.address, entry.asks, entry.problem) == (option, value, asks, "")


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("pip install requests", "This is a command"),
        ("import requests", "This is a command"),
        ("requests=2.28", "two equals signs"),
        ("requests>=", "not a requirement"),
        ("requests 2.28", "not a requirement"),
        ("two words", "not a requirement"),
        ("pkg; nonsense == 1", "not a requirement"),
        ("<<<<<<< HEAD", "not a requirement"),
        ("pkg==1.0==", "not a requirement"),
        ("--frobnicate", "no option '--frobnicate'"),
        ("-r", "needs a value"),
        ("--pre now", "takes no value"),
        ("x" * 3_000, "2,000 characters"),
        ("pkg; " + "(" * 990 + "os_name=='a'" + ")" * 900, "not a requirement"),
    ],
)
def test_a_line_that_cannot_be_read_says_what_to_write(line: str, said: str) -> None:
    assert said in one(line).problem


def test_lines_are_counted_as_written_joined_at_a_backslash_and_free_of_comments() -> None:
    text = (
        "\ufeff# all of it \\\n\npydantic\r\n"
        "requests \\\n  >=2 \\\n  # not this\n"
        "url @ https://host.example/a#sha256=1\n   \n  --pre\nlast \\"
    )
    decoded, is_utf8 = decode(text.encode())
    assert is_utf8
    assert [
        (each.line, each.name or each.option, each.problem) for each in read_requirements(decoded)
    ] == [
        (3, "pydantic", ""),
        (4, "requests", ""),
        (7, "url", ""),
        (9, "--pre", ""),
        (10, "last", ""),
    ]


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-be", "latin-1"])
def test_other_encodings_are_read_and_told(encoding: str) -> None:
    mark = b"\xfe\xff" if encoding == "utf-16-be" else b""
    text, is_utf8 = decode(mark + "# é\npydantic\n".encode(encoding))
    assert not is_utf8
    assert one(text).name == "pydantic"


def test_a_flood_of_lines_is_cut_with_a_word() -> None:
    entries = read_requirements("a\n" * 100_000)
    assert len(entries) == MOST_LINES + 1
    assert "more than 2,000 lines" in entries[-1].problem


_MARK = st.text(st.sampled_from("ab1 -=<>~!@#;()[],.\\\n\"'/:${}"), max_size=60)


@given(st.one_of(st.text(), _MARK))
def test_no_text_is_too_odd_to_be_read(text: str) -> None:
    for entry in read_requirements(text):
        assert entry.text
        assert entry.line <= text.count("\n") + text.count("\r") + 1


@given(st.binary())
def test_no_bytes_are_too_odd_to_be_decoded(content: bytes) -> None:
    assert isinstance(decode(content)[0], str)
