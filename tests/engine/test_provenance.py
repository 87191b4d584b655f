"""Where an argument's value really came from (ENGINE.md §3): no claim of the model counts unchecked."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.events import Event, Source, ToolFinishedEvent
from engine.provenance import Grounds
from engine.spec import ParameterSource, ToolParameter
from engine.testing import inferred, known, said
from engine.trail import Argument, ArgumentSource
from tests.engine.agents import guideline, history, parameter, said_by

AMOUNT = parameter("amount", "number")
NAME = parameter("name")
DATE = ToolParameter(name="day", schema={"type": "string", "format": "date"})
CURRENCY = ToolParameter(name="currency", schema={"type": "string", "enum": ["EUR", "USD", "GBP"]})


def trace(
    wanted: ToolParameter, claim: dict[str, Any], *events: Event | str, **grounds: Any
) -> Argument:
    values: dict[str, Any] = {"variables": {}, "guidelines": ()} | grounds
    found = Grounds(history=history(*events), **values)
    return found.trace(wanted, claim["value"], claim)


def found_in(tool: str, data: Any, **options: Any) -> ToolFinishedEvent:
    return ToolFinishedEvent(call="c", tool=tool, arguments={}, data=data, **options)


class TestWordsOfTheCustomer:
    def test_words_copied_from_a_message_verify_the_value_and_say_where_they_stand(self) -> None:
        argument = trace(NAME, said("Ann", "to Ann"), "Hello", "Send 50 to Ann please")
        assert (argument.source, argument.verified) == (ArgumentSource.CUSTOMER, True)
        assert (argument.evidence, argument.offset) == ("to Ann", 2)

    @pytest.mark.parametrize("evidence", ["TO  ann", "“to Ann”", "to\nAnn.", " 'to ANN' "])
    def test_case_white_space_and_quotes_make_no_difference(self, evidence: str) -> None:
        assert trace(NAME, said("Ann", evidence), "Send it to Ann").verified

    def test_the_newest_message_that_says_it_is_the_one_named(self) -> None:
        assert trace(NAME, said("Ann"), "To Ann", "No, to Bob", "I mean Ann").offset == 3

    def test_evidence_that_nobody_said_leaves_the_value_inferred_and_not_verified(self) -> None:
        argument = trace(NAME, said("Zoe", "send it to Zoe"), "Send it to Ann")
        assert (argument.source, argument.verified) == (ArgumentSource.INFERRED, False)
        assert argument.offset is None

    def test_words_of_the_agent_or_of_an_operator_are_not_words_of_the_customer(self) -> None:
        spoken = [said_by(Source.AGENT, "To Zoe?"), said_by(Source.OPERATOR, "Zoe it is")]
        assert not trace(NAME, said("Zoe"), "Hello", *spoken).verified

    def test_a_value_that_the_customer_said_is_verified_though_its_evidence_is_garbled(
        self,
    ) -> None:
        argument = trace(NAME, said("Ann", "the customer wants Ann"), "Send it to Ann")
        assert (argument.source, argument.evidence) == (ArgumentSource.CUSTOMER, "Ann")

    @pytest.mark.parametrize(
        ("words", "message"),
        [
            ("Ann", "Send it to Annabel"),
            ("1", "Send 2100"),
            ("1", "It weighs 1.5 kg"),
            ("cat", "concatenate them"),
            ("id_7", "take id_77"),
        ],
    )
    def test_only_whole_words_count(self, words: str, message: str) -> None:
        assert not trace(NAME, said(words), message).verified

    @pytest.mark.parametrize(
        ("words", "message"),
        [
            ("Ann", "What is in Ann's account?"),
            ("O'Brien", "Send it to O’Brien"),
            ("王芳", "我要转账给王芳，谢谢"),
            ("東京", "明日東京へ行きます"),
            ("กรุงเทพ", "ไปกรุงเทพพรุ่งนี้"),
            ("왕팡", "왕팡에게 보내 주세요"),
            ("Анне", "Переведи Анне сто"),
            ("أحمد", "حوّل إلى أحمد"),
            ("STRASSE 5", "in der Straße 5"),
        ],
    )
    def test_words_are_found_in_every_script(self, words: str, message: str) -> None:
        argument = trace(NAME, said(words), message)
        assert (argument.source, argument.verified) == (ArgumentSource.CUSTOMER, True)


class TestNumbers:
    @pytest.mark.parametrize(
        ("value", "message"),
        [
            (1500.5, "€ 1,500.50"),
            (1500.5, "1.500,50 Euro"),
            (1500, "1 500"),
            (1500, "1\u00a0500 kr"),
            (1500, "1'500.–"),
            (1500, "1,500"),
            (1.5, "1,500"),
            (150_000, "1,50,000 rupees"),
            (2000, "2k"),
            (1_500_000, "1.5 million"),
            (120, "2 hours"),
            (0.05, "5 %"),
            (36, "3 dozen"),
            (-5, "−5 degrees"),
            (12, "room 12 3 nights"),
            (20, "10-20"),
            (7, "A-7"),
            (0.1, "0.1"),
            (35, "٣٥"),
            (5, "$5."),
        ],
    )
    def test_a_number_is_recognised_however_it_is_written(self, value: float, message: str) -> None:
        assert trace(AMOUNT, said(value, message), f"Take {message}").verified
        assert trace(AMOUNT, inferred(value), f"Take {message}").source is ArgumentSource.CUSTOMER

    @pytest.mark.parametrize("message", ["two hundred", "zweihundert", "deux cents", "二百"])
    def test_a_number_in_words_rests_on_those_words(self, message: str) -> None:
        assert trace(AMOUNT, said(200, message), f"Send {message} to Ann").verified

    @pytest.mark.parametrize(
        ("value", "evidence"), [(5000, "50"), (51, "50 to Ann"), (500, "5 k"), (2, "2k")]
    )
    def test_evidence_with_another_number_is_refused(self, value: float, evidence: str) -> None:
        assert not trace(AMOUNT, said(value, evidence), f"Send {evidence}").verified

    def test_every_number_of_a_list_must_stand_in_the_evidence(self) -> None:
        rooms = ToolParameter(name="rooms", schema={"type": "array", "items": {"type": "integer"}})
        assert trace(rooms, said([1, 2, 3], "1,2,3"), "Rooms 1,2,3").verified
        assert not trace(rooms, said([1, 2, 9], "1,2,3"), "Rooms 1,2,3").verified

    def test_a_number_too_large_for_floating_point_harms_nothing(self) -> None:
        huge = 10**400
        assert not trace(
            AMOUNT, said(huge, "50"), "Send 50", found_in("t", {"n": 10**399})
        ).verified
        assert trace(AMOUNT, said(huge, str(huge)), f"Send {huge}").verified

    def test_true_is_not_the_number_one(self) -> None:
        flag = parameter("flag", "boolean")
        assert not trace(flag, inferred(True), "1", found_in("t", {"n": 1})).verified

    def test_a_yes_or_no_is_not_taken_from_any_result_that_happens_to_hold_one(self) -> None:
        flag = parameter("flag", "boolean")
        data = found_in("t", {"open": True})
        assert not trace(flag, inferred(True), "Hello", data).verified
        assert trace(flag, known(True, "t.open"), "Hello", data).verified


class TestDates:
    @pytest.mark.parametrize(
        "message",
        [
            "2026-11-21",
            "on 21.11.2026",
            "21/11/26",
            "11/21/2026",
            "21 November 2026",
            "Nov 21st, 2026",
            "the 21st of november",
        ],
    )
    def test_a_date_is_recognised_however_it_is_written(self, message: str) -> None:
        argument = trace(DATE, said("2026-11-21", "2026-11-21"), f"Book it {message}!")
        assert (argument.source, argument.verified) == (ArgumentSource.CUSTOMER, True)

    def test_another_day_is_not_the_same(self) -> None:
        assert not trace(DATE, said("2026-11-21"), "On 22 November 2026").verified
        assert not trace(DATE, said("2026-11-21"), "On 21 November 2025").verified

    def test_a_date_may_rest_on_words_for_it(self) -> None:
        argument = trace(DATE, said("2026-11-22", "tomorrow"), "Book it for tomorrow")
        assert (argument.verified, argument.evidence) == (True, "tomorrow")

    def test_a_result_may_write_the_day_in_another_way(self) -> None:
        data = found_in("t", {"next": "21 Nov 2026"})
        assert trace(DATE, known("2026-11-21", "t.next"), "Then", data).evidence == "t.next"


class TestContradictions:
    def test_words_may_stand_for_a_choice_that_is_named_otherwise(self) -> None:
        argument = trace(CURRENCY, said("USD", "dollars"), "How much is it in dollars?")
        assert (argument.source, argument.verified) == (ArgumentSource.CUSTOMER, True)

    def test_words_that_name_another_choice_do_not_stand_for_this_one(self) -> None:
        assert not trace(CURRENCY, said("USD", "EUR"), "In EUR").verified

    @pytest.mark.parametrize("evidence", ["my account", "please", "account 55-12"])
    def test_an_identifier_does_not_rest_on_words_without_it(self, evidence: str) -> None:
        claim = said("ACC-0099", evidence)
        assert not trace(NAME, claim, "Show my account 55-12 please").verified

    @pytest.mark.parametrize(
        "message", ["acc 0099", "ACC0099", "account number 00-99", "the one ending in 0099"]
    )
    def test_an_identifier_may_be_written_otherwise(self, message: str) -> None:
        assert trace(NAME, said("ACC-0099", message), f"Show {message}").verified

    @pytest.mark.parametrize(
        ("value", "words"),
        [
            ("2027", "next year"),
            ("17:00", "at five"),
            ("PT90M", "an hour and a half"),
            ("24.12.2026", "on Christmas Eve"),
            ("12 Elm Street", "at home"),
        ],
    )
    def test_years_times_and_durations_may_rest_on_words(self, value: str, words: str) -> None:
        assert trace(NAME, said(value, words), f"Book it {words}").verified


class TestOtherSources:
    def test_a_value_in_a_tool_result_is_named_by_its_path_and_event(self) -> None:
        data = found_in("find", {"items": [{"id": "b-1"}, {"id": "b-2"}]})
        argument = trace(NAME, known("b-2", "find.items[1].id"), "The second", data)
        assert (argument.source, argument.evidence) == (ArgumentSource.RESULT, "find.items[1].id")
        assert (argument.verified, argument.offset) == (True, 2)

    @pytest.mark.parametrize(
        "path", ["", "find.items[0].id", "other.items[9]", "find.items[99999999999999999999]", "[[]"]
    )  # fmt: skip
    def test_a_wrong_path_is_put_right(self, path: str) -> None:
        data = found_in("find", {"items": [{"id": "b-1"}, {"id": "b-2"}]})
        argument = trace(NAME, known("b-2", path), "The second", data)
        assert (argument.verified, argument.evidence) == (True, "find.items[1].id")

    def test_the_newest_result_that_holds_it_is_the_one_named(self) -> None:
        older, newer = found_in("find", {"id": "b-1"}), found_in("find", {"id": "b-1"})
        assert trace(NAME, known("b-1"), "That one", older, newer).offset == 3

    def test_what_a_failed_call_left_behind_verifies_nothing(self) -> None:
        from engine.errors import ToolError, ToolErrorKind

        error = ToolError(kind=ToolErrorKind.TIMEOUT, public="too slow")
        data = found_in("find", {"id": "b-1"}, error=error)
        assert not trace(NAME, known("b-1", "find.id"), "That one", data).verified

    def test_a_value_in_no_result_is_inferred_whatever_path_is_claimed(self) -> None:
        data = found_in("find", {"id": "b-1"})
        argument = trace(NAME, known("b-9", "find.id"), "That one", data)
        assert (argument.source, argument.verified) == (ArgumentSource.INFERRED, False)

    def test_a_result_nested_a_thousand_levels_is_searched_to_its_bottom(self) -> None:
        deep: Any = "b-1"
        for _ in range(1000):
            deep = [deep]
        assert trace(NAME, known("b-1"), "That one", found_in("find", deep)).verified

    def test_what_is_known_of_the_customer_is_named_by_its_path(self) -> None:
        claim = {"value": "Gold", "source": "variable", "evidence": "plan"}
        argument = trace(NAME, claim, "Hi", variables={"plan": {"tier": "Gold"}})
        assert (argument.source, argument.evidence) == (ArgumentSource.VARIABLE, "plan.tier")

    def test_a_default_is_a_source_only_where_it_is_the_value(self) -> None:
        limit = parameter("limit", "integer", required=False, default=10)
        claim = {"value": 10, "source": "default", "evidence": ""}
        assert trace(limit, claim, "Hi").source is ArgumentSource.DEFAULT
        assert not trace(limit, claim | {"value": 11}, "Hi").verified

    def test_words_of_a_guideline_in_force_are_a_source(self) -> None:
        rule = guideline("g", "asks for news", "search for branch openings")
        claim = {"value": "branch openings", "source": "guideline", "evidence": "the guideline"}
        assert trace(NAME, claim, "Hi", guidelines=(rule,)).source is ArgumentSource.GUIDELINE
        assert not trace(NAME, claim, "Hi").verified

    def test_a_value_that_stands_elsewhere_than_claimed_gets_the_source_where_it_stands(
        self,
    ) -> None:
        argument = trace(NAME, said("b-22", "b-22"), "That one", found_in("find", {"id": "b-22"}))
        assert (argument.source, argument.verified) == (ArgumentSource.RESULT, True)

    def test_for_what_only_the_customer_may_give_the_customer_is_asked_first(self) -> None:
        to = parameter("to", source=ParameterSource.CUSTOMER)
        data = found_in("find", {"name": "Ann"})
        argument = trace(to, known("Ann", "find.name"), "Send it to Ann", data)
        assert (argument.source, argument.verified) == (ArgumentSource.CUSTOMER, True)

    def test_evidence_of_ten_thousand_characters_is_kept_short(self) -> None:
        words = "word " * 2000
        assert len(trace(NAME, said("x", words), "x").evidence) <= 300


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)  # fmt: skip


@given(
    value=JSON,
    source=st.sampled_from(list(ArgumentSource)),
    evidence=st.text(max_size=30),
    message=st.text(max_size=60),
    data=JSON,
)
def test_whatever_is_claimed_it_is_verified_only_where_it_names_a_source(
    value: Any, source: ArgumentSource, evidence: str, message: str, data: Any
) -> None:
    claim = {"value": value, "source": source.value, "evidence": evidence}
    argument = trace(NAME, claim, message, found_in("t", data), variables={"v": data})
    assert argument.verified is (argument.source is not ArgumentSource.INFERRED)


@given(st.text(min_size=1, max_size=40), st.text(max_size=40), st.text(max_size=40))
def test_a_word_between_blanks_is_always_found(word: str, before: str, after: str) -> None:
    from engine.written import normal, stands_in

    if normal(word) and normal(word)[0].isalnum() and normal(word)[-1].isalnum():
        assert stands_in(word, f"{before} | {word} | {after}")


@given(st.decimals(min_value=-(10**9), max_value=10**9, places=2))
def test_a_number_written_in_any_of_the_usual_ways_is_read_as_itself(number: Any) -> None:
    from engine.written import numbers_in

    english = f"{number:,.2f}"
    swapped = english.translate(str.maketrans(",.", ".,"))
    spaced = english.replace(",", "\u202f")
    for written in (english, swapped, spaced, str(number)):
        assert number in numbers_in(f"it is {written} in all")
