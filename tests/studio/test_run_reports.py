"""A run's report for others: JUnit XML that build servers read, a table that runs no formula, a page by itself."""

import csv
import re
from datetime import timedelta
from io import StringIO
from typing import Any
from xml.etree import ElementTree as ET

import pytest
from django.utils import timezone

from engine.expecting import GuidelineExpectation, ReplyContainsExpectation
from studio.models import ModelPrice, SuiteRun
from studio.operations import lanes
from studio.operations.agents import publish, save_guideline
from studio.operations.run_prices import USUAL_TURN, estimate
from studio.operations.suite_runs import CREW, start_run
from studio.run_costs import cost_of_run
from studio.run_files import COLUMNS, junit, table
from studio.run_reports import report
from studio.views.exported_run import exported_run
from tests.studio.conversations import Recorded
from tests.studio.factories import make_connection, make_price
from tests.studio.tested_bank import Bank, ran

pytestmark = pytest.mark.django_db


@pytest.fixture
def bank(monkeypatch: pytest.MonkeyPatch, db: None) -> Bank:
    return Bank(monkeypatch)


def cases(run: SuiteRun) -> dict[str, ET.Element]:
    found = ET.fromstring(junit(report(run)))
    return {case.get("name", ""): case for case in found.iter("testcase")}


# --- JUnit


def test_the_xml_is_as_build_servers_read_it(bank: Bank) -> None:
    bank.seed()
    run = ran(bank.suite, repeats=4)
    text = junit(report(run))
    root = ET.fromstring(text)

    assert text.startswith("<?xml")
    assert root.tag == "testsuites"
    (suite,) = root.findall("testsuite")
    counts = {name: suite.get(name) for name in ("tests", "failures", "errors", "skipped")}
    assert counts == {"tests": "3", "failures": "2", "errors": "0", "skipped": "0"}
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d", suite.get("timestamp", ""))
    properties = {one.get("name"): one.get("value") for one in suite.iter("property")}
    assert properties["agent"] == "bank"
    assert properties["verdict"] == "failed"
    assert properties["run"] == str(run.pk)
    for case in root.iter("testcase"):
        assert case.get("classname") == "bank.Regression"
        assert float(case.get("time", "")) > 0


def test_a_case_says_what_was_expected_and_what_was_found_instead(bank: Bank) -> None:
    bank.seed()
    found = cases(ran(bank.suite, repeats=4))

    assert list(found["Passes"]) == [found["Passes"].find("system-out")]
    failed = found["Fails"].find("failure")
    assert failed is not None
    assert failed.get("type") == "failed"
    assert "failed in decisions" in failed.get("message", "")
    assert "G1 “the customer asks for the balance” must match" in (failed.text or "")
    assert "G1 did not match" in (failed.text or "")
    flaky = found["Flaky"].find("failure")
    assert flaky is not None
    assert (flaky.get("type"), flaky.get("message", "")[:13]) == ("flaky", "flaky: 2 of 4")
    out = found["Flaky"].findtext("system-out") or ""
    assert "[passed] G1" in out
    assert "[flaky] Some reply must contain “10” (2/4)" in out


def test_quarantined_failures_are_skipped_with_their_reason(bank: Bank) -> None:
    until = timezone.localdate() + timedelta(days=5)
    bank.scenario(
        "Fails",
        GuidelineExpectation(guideline="thanks"),
        quarantined_until=until,
        quarantine_reason="Ticket 7.",
    )
    case = cases(ran(bank.suite))["Fails"]
    skipped = case.find("skipped")
    assert skipped is not None
    assert f"Quarantined until {until} (Ticket 7.)" in skipped.get("message", "")
    assert "G2 did not match" in skipped.get("message", "")
    assert case.find("failure") is None


def test_what_is_invalid_is_an_error_and_not_a_failure(bank: Bank) -> None:
    bank.scenario("Nothing")
    case = cases(ran(bank.suite))["Nothing"]
    error = case.find("error")
    assert error is not None
    assert (error.get("type"), case.find("failure")) == ("invalid", None)
    assert "expects nothing" in error.get("message", "")


def test_what_was_not_run_is_an_error_once_the_run_was_stopped(bank: Bank) -> None:
    bank.scenario("Thanks", GuidelineExpectation(guideline="thanks"))
    run = start_run(bank.suite, enqueue=False)
    assert cases(run)["Thanks"].find("skipped") is not None  # it may come yet
    lanes.cancel(CREW, run)
    run.refresh_from_db()
    error = cases(run)["Thanks"].find("error")
    assert error is not None
    assert error.get("type") == "not run"


def test_scenarios_of_one_title_stay_apart_and_no_character_breaks_the_xml(bank: Bank) -> None:
    for say in ("\x07 & <Thanks>", "Hello \x1b"):
        bank.scenario("Ring \x07 & <b>", GuidelineExpectation(guideline="thanks"), say=(say,))
    found = cases(ran(bank.suite))
    assert len(found) == 2
    assert all(name.startswith("Ring � & <b> (") for name in found)


def test_each_version_is_a_suite_of_its_own(bank: Bank) -> None:
    publish(bank.agent, note="", by=None)
    bank.thanks.action = "nod"
    save_guideline(bank.thanks)
    bank.scenario("Thanks", GuidelineExpectation(guideline="thanks"), say=("Thanks a lot",))
    root = ET.fromstring(junit(report(ran(bank.suite, against=["draft", 1]))))
    assert [one.get("name", "")[:18] for one in root.findall("testsuite")] == [
        "Regression: draft ",
        "Regression: versio",
    ]
    assert root.get("tests") == "2"


# --- CSV


def rows(run: SuiteRun) -> list[dict[str, str]]:
    return list(csv.DictReader(StringIO(table(report(run)))))


def test_the_table_has_a_row_for_each_conversation_and_expectation(bank: Bank) -> None:
    bank.seed()
    run = ran(bank.suite, repeats=2)
    found = rows(run)
    assert tuple(found[0]) == COLUMNS
    assert len(found) == 2 * (1 + 2 + 2)
    failed = [row for row in found if row["scenario"] == "Fails" and row["repeat"] == "1"]
    assert {row["outcome"] for row in failed} == {"failed"}
    assert failed[0]["because"].startswith("G1 did not match")
    assert (failed[0]["about"], failed[0]["turn"]) == ("decisions", "1")
    assert {row["session"] for row in found} == {str(c.session_id) for c in run.cells.all()}


def test_what_a_spreadsheet_takes_for_a_formula_is_quoted(bank: Bank) -> None:
    for title in ("=1+1", "+1", "-1", "@SUM(A1)", "\t=1", " =1", "Plain - title"):
        bank.scenario(title, ReplyContainsExpectation(text="x"), say=("Thanks a lot",))
    titles = [row["scenario"] for row in rows(ran(bank.suite))]
    assert titles == ["'=1+1", "'+1", "'-1", "'@SUM(A1)", "'\t=1", "' =1", "Plain - title"]


# --- The page that stands by itself


def test_the_page_loads_nothing_and_tells_everything(bank: Bank) -> None:
    bank.seed()
    script = "<script>alert(1)</script>"
    bank.scenario(script, GuidelineExpectation(guideline="thanks"), say=(script,))
    page = exported_run(ran(bank.suite, repeats=2))
    assert "default-src 'none'" in page
    assert "<script" not in page
    assert not re.search(r'(src|href)="(?!#)', page)
    for words in ("G1 did not match", "1 of 2", "failed in decisions", "Regression"):
        assert words in page


# --- What it costs


def test_the_cost_counts_turns_and_what_judged_or_played(bank: Bank) -> None:
    bank.scenario("Thanks", GuidelineExpectation(guideline="thanks"), say=("Thanks a lot",))
    run = ran(bank.suite)
    assert cost_of_run(run) == {"amounts": [], "unpriced": []}
    make_price(model="judge", input_price="1", output_price="10")
    calls = [
        {"question": "JudgeStatement", "model": "judge", "prompt_tokens": 1_000_000,
         "cached_tokens": 0, "completion_tokens": 100_000}
    ]  # fmt: skip
    run.cells.update(model_calls=calls)
    assert cost_of_run(run)["amounts"] == [{"currency": "USD", "amount": "2"}]


def test_the_offline_model_is_expected_to_cost_nothing(bank: Bank) -> None:
    bank.scenario("Thanks")
    expected = estimate(list(bank.suite.scenarios.all()), versions=2, repeats=3, connection=None)
    assert (expected.conversations, expected.tokens, expected.guessed) == (6, 0, False)


def test_what_a_run_will_use_is_taken_from_the_session_that_was_kept(bank: Bank) -> None:
    told = Recorded(bank.agent)
    turn = told.turn()
    told.ask_model(turn, "m1", 0, 100, prompt_tokens=2_000, completion_tokens=100)
    told.ask_model(
        turn, "m2", 0, 100, prompt_tokens=500, completion_tokens=50, question="ComposeReply"
    )
    bank.scenario("Kept", kept_from=told.session)
    connection = make_connection(model="big", writing_model="small")
    ModelPrice.objects.all().delete()
    make_price(model="big", input_price="10", output_price="100")
    make_price(model="small", input_price="1", output_price="10")

    expected = estimate(
        list(bank.suite.scenarios.all()), versions=1, repeats=2, connection=connection
    )

    assert (expected.tokens, expected.guessed) == (2 * 2_650, False)
    assert expected.cost["amounts"] == [{"currency": "USD", "amount": "0.062"}]
    run = start_run(bank.suite, connection=connection, enqueue=False)
    assert run.scenarios[0]["tokens"] == 2_650


def test_without_any_record_a_run_is_guessed_from_its_turns(bank: Bank) -> None:
    bank.scenario("New", say=("a", "b"))
    scenarios = list(bank.suite.scenarios.all())
    expected = estimate(scenarios, versions=1, repeats=1, connection=make_connection())
    usual: Any = USUAL_TURN.prompt_tokens + USUAL_TURN.completion_tokens
    assert (expected.tokens, expected.guessed) == (2 * usual, True)
