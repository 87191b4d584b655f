"""Secrets never show, in whatever form they travel."""

import base64
import html
import json
import re
import time
from typing import Any
from urllib.parse import quote, quote_plus

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from engine.tools.masking import MASK, Mask

SECRET = "s3cr3t/+\"'käy\\ & more"


class TestText:
    def test_a_secret_is_replaced_wherever_it_stands(self) -> None:
        mask = Mask(["hunter22"])

        assert mask.text("a hunter22 b hunter22") == f"a {MASK} b {MASK}"
        assert mask.text("nothing to hide") == "nothing to hide"

    @pytest.mark.parametrize(
        "form",
        [
            lambda s: s,
            lambda s: json.dumps({"a": s}),
            lambda s: json.dumps({"a": s}, ensure_ascii=False),
            lambda s: repr({"a": s}),
            lambda s: repr([s + "'" + '"']),
            ascii,
            lambda s: str(s.encode()),
            quote,
            lambda s: quote(s, safe=""),
            lambda s: re.sub("%..", lambda found: found.group().lower(), quote(s)),
            quote_plus,
            lambda s: base64.b64encode(s.encode()).decode(),
            lambda s: base64.b64encode(f"user:{s}".encode()).decode(),
            lambda s: base64.b64encode(f"me:{s}".encode()).decode(),
            lambda s: base64.b64encode(f"x:{s}:y".encode()).decode(),
            lambda s: base64.urlsafe_b64encode(f"user:{s}".encode()).decode(),
            lambda s: s.encode().hex(),
            lambda s: s.encode().hex().upper(),
        ],
    )
    def test_no_usual_form_of_a_secret_shows(self, form: Any) -> None:
        written = form(SECRET)

        masked = Mask([SECRET]).text(f"before {written} after")

        assert MASK in masked
        assert masked.startswith("before ")
        assert masked.endswith(" after")
        assert "3cr3t" not in masked
        assert len(masked) <= len(f"before {form('')} after") + 8

    def test_the_longer_of_two_counts_and_overlapping_ones_are_hidden_whole(self) -> None:
        assert Mask(["abcd", "abcdefgh"]).text("x abcdefgh y") == f"x {MASK} y"
        assert Mask(["abcdef", "efghij"]).text("x abcdefghij y") == f"x {MASK} y"

    def test_a_short_secret_is_not_hidden(self) -> None:
        assert Mask(["abc", "", " "]).text("abc") == "abc"

    def test_the_lines_of_a_key_are_hidden_one_by_one(self) -> None:
        key = "-----BEGIN KEY-----\nMIIEvQIBADANBgkq\nhkiG9w0BAQEFAASC\n-----END KEY-----\n"
        mask = Mask([key])

        assert mask.text(key.strip()) == MASK
        assert "hkiG9w0BAQEFAASC" not in mask.text("> hkiG9w0BAQEFAASC")

    def test_a_secret_that_was_typed_with_a_space_behind_it_is_hidden(self) -> None:
        assert Mask(["hunter22 \n"]).text("[hunter22]") == f"[{MASK}]"


class TestValue:
    def test_texts_keys_and_numbers_are_masked_at_every_depth(self) -> None:
        value = {
            "hunter22": [1, {"a": "my hunter22"}],
            "n": 12345678,
            "f": 1.5,
            "t": True,
            "z": None,
        }

        assert Mask(["hunter22", "12345678"]).value(value) == {
            MASK: [1, {"a": f"my {MASK}"}],
            "n": MASK,
            "f": 1.5,
            "t": True,
            "z": None,
        }

    def test_without_secrets_a_value_is_the_same(self) -> None:
        value = {"a": [1, 2]}

        assert Mask([]).value(value) is value
        assert Mask([]).text("a") == "a"


class TestStream:
    @pytest.mark.parametrize("size", [1, 2, 3, 5, 8, 100])
    def test_a_secret_split_over_pieces_never_shows(self, size: int) -> None:
        text = "a hunter22, hunter2! hunter22hunter22 and hunte"
        stream = Mask(["hunter22"]).stream()

        told = [stream.feed(text[at : at + size]) for at in range(0, len(text), size)]
        told.append(stream.end())

        assert "".join(told) == f"a {MASK}, hunter2! {MASK}{MASK} and hunte"

    def test_what_cannot_be_the_beginning_of_one_is_told_at_once(self) -> None:
        stream = Mask(["hunter22"]).stream()

        assert stream.feed("working…\n") == "working…\n"
        assert stream.feed("hunt") == ""
        assert stream.feed("ing\n") == "hunting\n"
        assert stream.end() == ""

    def test_without_secrets_nothing_is_kept_back(self) -> None:
        stream = Mask([]).stream()

        assert (stream.feed("abc"), stream.end()) == ("abc", "")

    def test_a_flood_of_what_may_be_a_beginning_costs_little_and_is_not_kept(self) -> None:
        stream = Mask(["a" * 40, "b" * 3000]).stream()
        began = time.perf_counter()

        for _piece in range(200):
            stream.feed("a" * 5000)
        told = stream.feed("b" * 2999 + "c")

        assert "a" * 40 not in told
        assert told.endswith("bc")
        assert time.perf_counter() - began < 2


_ALPHABET = st.sampled_from("abA1 \"'\\%é")
_SECRETS = st.lists(st.text(_ALPHABET, min_size=4, max_size=8), min_size=1, max_size=3)


@given(_SECRETS, st.data())
def test_in_pieces_or_whole_no_secret_is_left(secrets: list[str], data: st.DataObject) -> None:
    parts = data.draw(
        st.lists(st.sampled_from(secrets) | st.text(_ALPHABET, max_size=5), max_size=8)
    )
    text = "".join(parts)
    cuts = sorted(data.draw(st.lists(st.integers(0, len(text)), max_size=6)))
    mask = Mask(secrets)
    stream = mask.stream()

    pieces = [text[a:b] for a, b in zip([0, *cuts], [*cuts, len(text)], strict=True)]
    told = "".join(stream.feed(piece) for piece in pieces) + stream.end()

    for secret in secrets:
        assert secret not in mask.text(text)
        assert secret not in told


@given(st.text(min_size=6, max_size=20), st.binary(max_size=5), st.binary(max_size=5))
def test_no_base64_that_holds_a_secret_shows_it(secret: str, before: bytes, after: bytes) -> None:
    try:
        data = secret.encode()
    except UnicodeEncodeError:
        assume(False)
        return
    encoded = base64.b64encode(before + data + after).decode()

    masked = Mask([secret]).text(encoded)

    assert masked != encoded
    longest = max(len(piece) for piece in masked.split(MASK))
    assert longest <= len(base64.b64encode(before + after)) + 4


def test_markup_that_a_tool_escaped_hides_it_too() -> None:
    assert html.escape("a&b<c>dd") not in Mask(["a&b<c>dd"]).text(
        f"<p>{html.escape('a&b<c>dd')}</p>"
    )
