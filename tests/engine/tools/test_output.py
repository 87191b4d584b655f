"""What a tool printed, read as its result."""

import json
import math
import threading
import warnings
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.canonical import DEEPEST, is_too_deep
from engine.tools.output import read_output


def read(printed: str) -> Any:
    return read_output(printed, None)[0]


class TestWhereItStands:
    def test_only_what_follows_the_key_is_the_result_and_the_rest_is_kept(self) -> None:
        printed = 'connecting…\nfound 2\ntool_output {"rows": [1, 2]}\n'

        assert read_output(printed, "tool_output") == ({"rows": [1, 2]}, "connecting…\nfound 2")

    def test_the_first_key_counts(self) -> None:
        data, log = read_output("a\nKEY one KEY two\n", "KEY")

        assert (data, log) == ("one KEY two", "a")

    @pytest.mark.parametrize("key", [None, ""])
    def test_without_a_key_all_of_it_is_the_result(self, key: str | None) -> None:
        assert read_output(" sunny \n", key) == ("sunny", "")

    def test_a_key_that_was_never_printed_is_said_in_the_log(self) -> None:
        data, log = read_output("[1]\n", "tool_output")

        assert data == [1]
        assert "tool_output" in log

    def test_nothing_after_the_key_is_an_empty_text(self) -> None:
        assert read_output("tool_output", "tool_output") == ("", "")


class TestJson:
    def test_values_keep_their_types(self) -> None:
        assert read('{"a": [1, 2.5, true, null, "é"]}') == {"a": [1, 2.5, True, None, "é"]}

    def test_what_json_cannot_hold_becomes_text(self) -> None:
        assert read("[NaN, Infinity, -Infinity, 1e999, 36893488147419103232]") == [
            "NaN",
            "Infinity",
            "-Infinity",
            "Infinity",
            "36893488147419103232",
        ]

    def test_half_a_surrogate_pair_is_replaced_and_a_whole_one_is_a_character(self) -> None:
        assert read(r'["\ud800", "\ud83d\ude00"]') == ["\ufffd", "😀"]


class TestLiteral:
    def test_what_print_writes_of_a_dict_is_read(self) -> None:
        value = {"name": "O'Neil", "tags": ("a", 'say "hi"'), "ok": True, "none": None, 7: -1.5}

        assert read(repr(value)) == {
            "name": "O'Neil",
            "tags": ["a", 'say "hi"'],
            "ok": True,
            "none": None,
            "7": -1.5,
        }

    def test_sets_bytes_and_odd_numbers_are_made_plain(self) -> None:
        value = [{3, 1, 2}, set(), b"caf\xc3\xa9\xff", math.nan, -math.inf, 2**70, {(1, None): 0}]

        assert read(repr(value)) == [
            [1, 2, 3],
            [],
            "café\ufffd",
            "NaN",
            "-Infinity",
            str(2**70),
            {"[1, null]": 0},
        ]

    @pytest.mark.parametrize(
        "text",
        [
            "1,234",
            "1_000",
            "007",
            "2024-01-02",
            "'yes' 'no'",
            "It's fine",
            "'''triple'''",
            "f(1)",
            "(1)(2)",
            "[1, 2][0]",
            "__import__('os').getcwd()",
            "{'a': open('/etc/passwd')}",
            "[x for x in (1, 2)]",
            "1 + 2",
            r"'C:\d'",
            "1if True else 2",
            "(1",
            "{1: 2",
            "[1: 2]",
            "--1",
            "...",
            "",
        ],
    )
    def test_what_is_no_plain_value_stays_text(self, text: str) -> None:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            assert read(text) == text


class TestNothingItPrintsDoesHarm:
    @pytest.mark.parametrize(
        "printed",
        [
            "[" * 200_000,
            "[" * 200_000 + "]" * 200_000,
            "(" * 150 + ")" * 150,
            "-" * 200_000 + "1",
            '{"a":' * 50_000,
            "{'a':" * 50_000,
            "9" * 10_000,
            "'" + "\\" * 100_001,
            "[" + "'a', " * 300_000,
            "\x00\x01[1",
        ],
    )
    def test_it_stays_text(self, printed: str) -> None:
        found: list[Any] = []
        # As it is read: in a thread, whose stack is smaller.
        thread = threading.Thread(target=lambda: found.append(read(printed)))
        thread.start()
        thread.join(20)

        assert found == [printed.strip()]

    @pytest.mark.parametrize("text", [json.dumps, repr])
    def test_what_is_nested_deeper_than_results_may_be_stays_text(self, text: Any) -> None:
        value: Any = 1
        for _level in range(DEEPEST + 1):
            value = [value]

        assert is_too_deep(value)
        assert read(text(value)) == text(value)


_LEAVES = st.none() | st.booleans() | st.integers(-(2**63) + 1, 2**63 - 1) | st.text()
_VALUES = st.recursive(
    _LEAVES | st.floats(allow_nan=False, allow_infinity=False),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=15,
).filter(lambda value: not isinstance(value, str))


@given(_VALUES)
def test_any_value_comes_back_as_it_was_printed(value: Any) -> None:
    assert read_output(f"log\nOUT {json.dumps(value)}\n", "OUT") == (value, "log")
    assert read_output(f"log\nOUT {value!r}\n", "OUT") == (value, "log")


@given(st.text() | st.binary().map(lambda data: data.decode("utf-8", "replace")))
def test_any_text_can_be_read_and_written_as_json(printed: str) -> None:
    data, log = read_output(printed, "OUT")

    json.dumps([data, log], allow_nan=False, ensure_ascii=False).encode()


def test_large_json_is_read_and_a_large_literal_stays_text() -> None:
    rows = [{"number": n, "name": f"row {n}", "price": n / 7} for n in range(9_000)]

    assert read(json.dumps(rows)) == rows
    assert read(repr(rows[:1000])) == rows[:1000]
    assert read(repr(rows)) == repr(rows)
