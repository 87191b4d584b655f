"""Suites as documents: out and in again, and what is wrong with one."""

from collections.abc import Callable
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command

from engine.expecting import GuidelineExpectation, ReplyContainsExpectation
from studio.forms.suite_files import read_suite
from studio.models import Agent, Expectation, Scenario, Suite
from studio.operations.document_report import Change, DocumentError
from studio.operations.scenarios import add_expectation
from studio.operations.suite_documents import suite_document, suite_text
from studio.yaml_text import write_yaml
from tests.studio.factories import make_agent, make_guideline

pytestmark = pytest.mark.django_db


def make_suite(agent: Agent | None = None) -> Suite:
    """Two scenarios, one of each kind; the first expects two things."""
    agent = agent or make_agent()
    refund = make_guideline(agent, uid="refund")
    suite = Suite.objects.create(agent=agent, name="Smoke", repeats=3, description="Every night.")
    said = Scenario.objects.create(
        suite=suite,
        title="A refund",
        messages=[{"text": "no"}, {"answer": "confirmed", "tool": "pay"}],
        results=[{"tool": "pay", "arguments": {}, "result": {"data": 1}, "said": []}],
        variables={"since": "2026-11-21", "tier": 1},
        position=1,
    )
    Scenario.objects.create(
        suite=suite,
        title="A pensioner",
        kind="simulated",
        brief={"persona": "slow", "goal": "a refund", "stop": "", "turns": 8, "tokens": 20_000},
        tools="live",
        position=2,
    )
    add_expectation(said, GuidelineExpectation(guideline=refund.uid, turn=1), because="It is one.")
    add_expectation(said, ReplyContainsExpectation(text="sorry"))
    return suite


def changes(text: str, agent: Agent, *, dry_run: bool = False) -> dict[str, Change]:
    report, _suite = read_suite(text, agent, dry_run=dry_run)
    return {row.title: row.change for row in report.rows}


@pytest.mark.parametrize("style", ["yaml", "json"])
def test_a_suite_comes_back_as_it_went(style: Any) -> None:
    suite = make_suite()
    text = suite_text(suite, style)
    assert set(changes(text, suite.agent).values()) == {Change.UNCHANGED}
    other = make_agent()
    make_guideline(other, uid="refund")
    report, copy = read_suite(text, other, by="bee")
    assert copy is not None
    assert {row.change for row in report.rows} == {Change.CREATE}
    assert suite_document(copy) == suite_document(suite) | {"agent": other.slug}
    assert suite_text(copy, style).replace(other.slug, suite.agent.slug) == text


def test_a_changed_document_changes_just_that_and_a_missing_scenario_goes() -> None:
    suite = make_suite()
    expectation = suite.scenarios.get(title="A refund").expectations.first()
    assert expectation is not None
    document = suite_document(suite)
    del document["scenarios"][1]
    document["scenarios"][0]["expectations"][0]["turn"] = 2
    text = write_yaml(document)
    wanted = {
        "Smoke": Change.UPDATE,
        "A refund": Change.UPDATE,
        "A pensioner": Change.DELETE,
    }
    assert changes(text, suite.agent, dry_run=True) == wanted
    assert suite.scenarios.count() == 2
    assert changes(text, suite.agent) == wanted
    assert [row.title for row in suite.scenarios.all()] == ["A refund"]
    expectation.refresh_from_db()  # it is still the same one
    assert expectation.data["turn"] == 2
    assert Expectation.objects.count() == 2


def in_first(**values: Any) -> Callable[[dict[str, Any]], None]:
    return lambda document: document["scenarios"][0].update(values)


def in_suite(**values: Any) -> Callable[[dict[str, Any]], None]:
    return lambda document: document.update(values)


@pytest.mark.parametrize(
    ("spoil", "place", "said"),
    [
        (in_suite(format="recipe"), "suite.format", "no document of a suite"),
        (in_suite(schema_version=9), "suite.schema_version", "not 9"),
        (in_suite(repeats=0), "suite.repeats", "from 1 to 20"),
        (in_suite(gates_publishing="perhaps"), "suite.gates_publishing", "true or false"),
        (in_suite(color="red"), "suite.color", "no such field"),
        (in_suite(scenarios={}), "suite.scenarios", "list"),
        (in_first(uid="no spaces"), "scenarios[0].uid", "letters and digits"),
        (in_first(title=""), "scenarios[0].title", "few words"),
        (in_first(messages=[{"say": 1}]), "scenarios[0].messages", "has a text"),
        (in_first(messages=[]), "scenarios[0].messages", "at least one message"),
        (in_first(messages=["Hi"]), "scenarios[0].messages", "has a text"),
        (in_first(brief=[]), "scenarios[0].brief", "object"),
        (in_first(variables="a: b"), "scenarios[0].variables", "object"),
        (in_first(results=[{"tool": "pay"}]), "scenarios[0].results", "A result has"),
        (in_first(results=["x"]), "scenarios[0].results", "A result has"),
        (in_first(quarantined_until="soon"), "scenarios[0].quarantined_until", "2026-12-31"),
        (in_first(quarantined_until="2026-02-30"), "scenarios[0].quarantined_until", "2026-12-31"),
        (in_first(mood="good"), "scenarios[0].mood", "no such field"),
        (in_first(expectations=[1]), "scenarios[0].expectations[0]", "object"),
        (
            in_first(expectations=[{"uid": "a", "kind": "guideline", "guideline": "gone"}]),
            "scenarios[0].expectations[0].guideline",
            "no guideline 'gone'",
        ),
        (
            in_first(expectations=[{"uid": "a", "kind": "reply_matches", "pattern": "("}]),
            "scenarios[0].expectations[0].pattern",
            "no regular expression",
        ),
        (
            in_first(expectations=[{"kind": "handed_over"}]),
            "scenarios[0].expectations[0].uid",
            "Give a uid",
        ),
    ],
)
def test_what_is_wrong_is_told_with_its_place_and_nothing_is_changed(
    spoil: Callable[[dict[str, Any]], None], place: str, said: str
) -> None:
    suite = make_suite()
    before = suite_text(suite)
    document = suite_document(suite)
    spoil(document)
    with pytest.raises(DocumentError) as refusal:
        read_suite(write_yaml(document), suite.agent)
    told = {problem.place: problem.message for problem in refusal.value.report.problems}
    assert said in told[place]
    assert suite_text(suite) == before


def test_text_that_is_no_document_is_refused() -> None:
    with pytest.raises(DocumentError, match="not YAML: line 2"):
        read_suite("a: [", make_agent())


def test_two_scenarios_of_one_uid_are_refused() -> None:
    suite = make_suite()
    document = suite_document(suite)
    document["scenarios"][1]["uid"] = document["scenarios"][0]["uid"]
    with pytest.raises(DocumentError, match="Another scenario has this uid"):
        read_suite(write_yaml(document), suite.agent)


def test_the_commands_write_and_read_it(tmp_path: Path) -> None:
    suite = make_suite()
    file = tmp_path / "smoke.yaml"
    call_command("export_suite", suite.pk, output=file)
    suite.scenarios.all().delete()
    out = StringIO()
    call_command("import_suite", file, agent=suite.agent.slug, dry_run=True, stdout=out)
    assert "dry run" in out.getvalue()
    assert not suite.scenarios.exists()
    call_command("import_suite", file, agent=suite.agent.slug, stdout=out)
    assert suite.scenarios.count() == 2
    with pytest.raises(CommandError, match="No suite 0"):
        call_command("export_suite", 0)
    with pytest.raises(CommandError, match="No agent 'nobody'"):
        call_command("import_suite", file, agent="nobody")
    file.write_text("name: 1")
    with pytest.raises(CommandError, match="Nothing was imported"):
        call_command("import_suite", file, agent=suite.agent.slug, stderr=StringIO(), stdout=out)
