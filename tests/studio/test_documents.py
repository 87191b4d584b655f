"""Agents as documents: what is exported can be imported, and an import says what it does to each row."""

import io
from contextlib import suppress
from pathlib import Path

import pytest
from django.core.management import CommandError, call_command
from hypothesis import given
from hypothesis import strategies as st
from pytest_django import DjangoAssertNumQueries

from studio.bridge import compile_agent
from studio.models import Agent, Guideline, GuidelineExample, Tool
from studio.operations.agents import publish, restore, save_guideline
from studio.operations.contents import content_of
from studio.operations.documents import Change, DocumentError, import_document, to_text
from studio.yaml_text import DocumentSyntaxError, read_yaml, write_yaml

DOCUMENT = """\
schema_version: 1
name: Harbor Bank
slug: harbor-bank
description: |
  A friendly bank.
  It never guesses.
tools: [get_balance, transfer]
guidelines:
  - uid: balance
    condition: the customer asks for the balance
    action: tell it
    tools: [get_balance]
    examples:
      - text: no
        matches: false
      - text: how much do I have?
  - uid: transfer
    condition: the customer wants to send money
    criticality: high
    priority: 10
    enabled: false
    tags: [money, " risky "]
    tools: [transfer]
    reevaluate_after: [get_balance]
"""


@pytest.fixture(autouse=True)
def _tools(db: None) -> None:
    Tool.objects.create(name="get_balance")
    Tool.objects.create(name="transfer", consequential=True, enabled=False)


def _problems(text: str) -> list[tuple[str, str]]:
    with pytest.raises(DocumentError) as caught:
        import_document(text)
    return [(problem.place, problem.message) for problem in caught.value.report.problems]


def test_a_document_becomes_a_draft() -> None:
    report = import_document(DOCUMENT)
    assert [(row.place, row.uid, row.change) for row in report.rows] == [
        ("agent", "", Change.CREATE),
        ("guidelines[0]", "balance", Change.CREATE),
        ("guidelines[1]", "transfer", Change.CREATE),
    ]
    agent = Agent.objects.get(slug="harbor-bank")
    assert agent.description == "A friendly bank.\nIt never guesses."
    balance, transfer = agent.guidelines.all()
    assert [(e.text, e.matches) for e in balance.examples.all()] == [
        ("how much do I have?", True),
        ("no", False),
    ]
    assert (transfer.criticality, transfer.priority, transfer.enabled, transfer.tags) == (
        "high",
        10,
        False,
        ["money", "risky"],
    )
    assert [tool.name for tool in transfer.reevaluate_after.all()] == ["get_balance"]


@pytest.mark.parametrize("style", ["yaml", "json"])
def test_what_is_exported_is_imported_as_unchanged(style: str) -> None:
    import_document(DOCUMENT)
    agent = Agent.objects.get()
    text = to_text(content_of(agent), style)  # type: ignore[arg-type]
    report = import_document(text)
    assert {row.change for row in report.rows} == {Change.UNCHANGED}
    assert to_text(content_of(agent), style) == text  # type: ignore[arg-type]


def test_an_exported_document_makes_the_same_agent_elsewhere() -> None:
    import_document(DOCUMENT)
    agent = Agent.objects.get()
    fingerprint, text = compile_agent(agent).fingerprint, to_text(content_of(agent))
    agent.delete()
    import_document(text)
    assert compile_agent(Agent.objects.get()).fingerprint == fingerprint


def test_the_exported_text_reads_easily() -> None:
    import_document(DOCUMENT)
    text = to_text(content_of(Agent.objects.get()))
    assert "description: |-\n  A friendly bank.\n  It never guesses.\n" in text
    assert "- uid: balance\n  condition: the customer asks for the balance\n" in text
    assert "'no'" in text  # read as text by every reader of YAML
    assert "enabled: true" not in text


def test_importing_again_updates_creates_and_deletes_by_uid() -> None:
    import_document(DOCUMENT)
    agent = Agent.objects.get()
    before = dict(agent.guidelines.values_list("uid", "pk"))
    revision = agent.revision
    report = import_document(
        "{name: Harbor Bank, slug: harbor-bank, tools: [get_balance], guidelines: ["
        "{uid: fresh, action: greet}, {uid: balance, action: tell it exactly}]}"
    )
    assert [(row.uid, row.change) for row in report.rows] == [
        ("", Change.UPDATE),
        ("fresh", Change.CREATE),
        ("balance", Change.UPDATE),
        ("transfer", Change.DELETE),
    ]
    rows = list(agent.guidelines.all())
    assert [row.uid for row in rows] == ["fresh", "balance"]
    assert rows[1].pk == before["balance"]
    assert not rows[1].examples.exists()
    agent.refresh_from_db()
    assert agent.revision > revision


def test_another_order_is_a_change_of_the_agent_and_of_no_guideline() -> None:
    text = "name: A\nguidelines:\n- {uid: a, action: x}\n- {uid: b, action: y}\n"
    import_document(text)
    turned = "name: A\nguidelines:\n- {uid: b, action: y}\n- {uid: a, action: x}\n"
    report = import_document(turned)
    assert [row.change for row in report.rows] == [
        Change.UPDATE,
        Change.UNCHANGED,
        Change.UNCHANGED,
    ]
    assert list(Guideline.objects.values_list("uid", flat=True)) == ["b", "a"]


def test_guidelines_without_uid_keep_theirs_when_imported_again() -> None:
    text = "name: A\nguidelines:\n- action: greet\n- action: greet\n- condition: bye\n"
    import_document(text)
    uids = list(Guideline.objects.values_list("uid", flat=True))
    report = import_document(text)
    assert not report.changed
    assert list(Guideline.objects.values_list("uid", flat=True)) == uids


def test_a_dry_run_changes_nothing_and_reports_the_same() -> None:
    dry = import_document(DOCUMENT, dry_run=True)
    assert not Agent.objects.exists()
    assert dry == import_document(DOCUMENT)


def test_every_wrong_row_is_named_and_nothing_is_changed() -> None:
    problems = _problems(
        """\
name: ""
max_iterations: 40
tools: [get_balance, teleport]
guidelines:
- action: fine
- condition: "  "
- action: pay
  tools: [teleport, transfer]
  priority: 900
  criticality: extreme
- uid: a b
  action: x
  examples: [{text: ""}, {text: hi}, {text: "hi "}]
- uid: twice
  action: one
- uid: twice
  action: two
- colour: red
  enabled: "yes"
- just text
"""
    )
    assert sorted({place for place, _message in problems}) == [
        "guidelines[1]",
        "guidelines[2].criticality",
        "guidelines[2].priority",
        "guidelines[2].tools[0]",
        "guidelines[2].tools[1]",
        "guidelines[3].examples[0].text",
        "guidelines[3].examples[2].text",
        "guidelines[3].uid",
        "guidelines[5].uid",
        "guidelines[6].colour",
        "guidelines[6].enabled",
        "guidelines[7]",
        "max_iterations",
        "name",
        "slug",
        "tools[1]",
    ]
    assert ("tools[1]", "There is no tool “teleport” in the shed.") in problems
    assert not Agent.objects.exists()


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "one object"),
        ("- a\n- b", "one object"),
        ("name: A\nslug: [", "line 3"),
        ("{", "not JSON"),
        ('{"name": "a\\u0000"}', "cannot be stored"),
        ('{"name": "\\ud800"}', "cannot be stored"),
        ("a: &a [x]\nb: *a", "refers to another place"),
        ("a: " + "[" * 50, "nested"),
        ("{" + '"a":[' * 5000, "not JSON"),
        ("name: !!python/object:os.system {}", "not YAML"),
        ("name: a\x07", "not YAML"),
        ("name: A\nschema_version: 7", "version 1"),
        ("name: A\nguidelines: {a: 1}", "a list"),
        ("name: A\ntools: get_balance", "list"),
        ("name: A\nslug: ' !'", "slug"),
        ("name: 12", "string"),
    ],
)
def test_a_text_that_is_no_document_is_refused_with_the_reason(text: str, said: str) -> None:
    assert any(said in message for _place, message in _problems(text))
    assert not Agent.objects.exists()


json_texts = st.text(st.characters(codec="utf-8", exclude_categories=["Cc", "Cs"]))


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | json_texts,
        lambda inner: st.lists(inner) | st.dictionaries(json_texts, inner),
        max_leaves=8,
    )
)
def test_yaml_that_is_written_reads_back_the_same(value: object) -> None:
    assert read_yaml(write_yaml(value)) == value


@given(st.text(max_size=60))
def test_no_text_breaks_the_reader(text: str) -> None:
    with suppress(DocumentSyntaxError):
        read_yaml(text)


def test_the_number_of_queries_does_not_grow_with_the_guidelines(
    django_assert_max_num_queries: DjangoAssertNumQueries,
) -> None:
    for count in (2, 60):
        items = "".join(
            f"- {{uid: g{n}, condition: c{n}, tools: [get_balance], canned_responses: [r{n}], "
            "examples: [{text: e}]}\n"
            for n in range(count)
        )
        items += "canned_responses:\n"
        items += "".join(f"- {{uid: r{n}, text: Response {n}}}\n" for n in range(count))
        items += "terms:\n"
        items += "".join(f"- {{uid: t{n}, name: T{n}, description: d}}\n" for n in range(count))
        items += "relationships:\n"
        items += "".join(
            f"- {{kind: entails, source: g{n}, targets: [g{n + 1}]}}\n" for n in range(count - 1)
        )
        head = "tools: [get_balance, transfer]\noverlaps: [{tools: [get_balance, transfer]}]\n"
        with django_assert_max_num_queries(60):
            import_document(f"name: A{count}\n{head}guidelines:\n{items}")
        assert GuidelineExample.objects.filter(guideline__agent__name=f"A{count}").count() == count


SECOND = """\
schema_version: 2
name: Harbor Bank
tone: warm and brief
composition: composited
no_match: Let me ask a colleague.
verified_replies: true
tools: [get_balance, transfer]
terms:
  - uid: iban
    name: IBAN
    description: the number of an account
    synonyms: [account number, " Account Number ", iban]
canned_responses:
  - uid: greeting
    text: Good day, {{ customer.name }}.
  - uid: notice
    text: Nothing here is advice.
guidelines:
  - uid: refund
    condition: the customer asks for a refund
    composition: strict
    canned_responses: [notice, greeting]
  - uid: exception
    action: be generous
relationships:
  - uid: first
    kind: has_priority_over
    source: refund
    targets: [exception]
overlaps:
  - uid: money
    tools: [transfer, get_balance]
"""


def test_words_relationships_and_overlaps_become_part_of_the_draft() -> None:
    report = import_document(SECOND)
    assert [row.place for row in report.rows] == [
        "agent",
        "terms[0]",
        "canned_responses[0]",
        "canned_responses[1]",
        "guidelines[0]",
        "guidelines[1]",
        "relationships[0]",
        "overlaps[0]",
    ]
    assert {row.change for row in report.rows} == {Change.CREATE}
    agent = Agent.objects.get()
    assert (agent.tone, agent.no_match) == ("warm and brief", "Let me ask a colleague.")
    assert agent.verified_replies
    value = compile_agent(agent)
    assert value.terms[0].synonyms == ("account number",)
    assert [response.uid for response in value.canned_responses] == ["greeting", "notice"]
    refund = value.guideline_by_uid["refund"]
    assert refund.composition is not None
    assert refund.composition.value == "strict"
    assert refund.canned_responses == ("greeting", "notice")
    (relationship,) = value.relationships
    assert (relationship.kind.value, relationship.source, relationship.targets) == (
        "has_priority_over",
        "refund",
        ("exception",),
    )
    assert [[tool.name for tool in overlap.tools.all()] for overlap in agent.overlaps.all()] == [
        ["get_balance", "transfer"]
    ]


@pytest.mark.parametrize("style", ["yaml", "json"])
def test_the_second_version_is_exported_and_imported_as_unchanged(style: str) -> None:
    import_document(SECOND)
    text = to_text(content_of(Agent.objects.get()), style)  # type: ignore[arg-type]
    assert {row.change for row in import_document(text).rows} == {Change.UNCHANGED}
    fingerprint = compile_agent(Agent.objects.get()).fingerprint
    Agent.objects.all().delete()
    import_document(text)
    assert compile_agent(Agent.objects.get()).fingerprint == fingerprint


def test_a_document_that_uses_nothing_new_keeps_its_shape() -> None:
    import_document(DOCUMENT)
    text = to_text(content_of(Agent.objects.get()))
    assert text.startswith("schema_version: 1\n")
    for word in ("tone", "terms", "canned_responses", "relationships", "overlaps", "no_match"):
        assert word not in text


def test_importing_again_changes_words_and_relationships_by_uid() -> None:
    import_document(SECOND)
    turned = (
        SECOND.replace("kind: has_priority_over", "kind: entails")
        .replace("Good day, {{ customer.name }}.", "§")
        .replace("Nothing here is advice.", "Good day, {{ customer.name }}.")
        .replace("§", "Nothing here is advice.")
        .replace("uid: iban\n    name: IBAN", "uid: swift\n    name: IBAN")
    )
    report = import_document(turned)
    changes = {(row.place, row.uid): row.change for row in report.rows}
    assert changes["", "iban"] is Change.DELETE
    assert changes["terms[0]", "swift"] is Change.CREATE
    assert changes["canned_responses[0]", "greeting"] is Change.UPDATE
    assert changes["relationships[0]", "first"] is Change.UPDATE
    agent = Agent.objects.get()
    assert dict(agent.canned_responses.values_list("uid", "text")) == {
        "greeting": "Nothing here is advice.",
        "notice": "Good day, {{ customer.name }}.",
    }
    assert agent.relationships.get().kind == "entails"
    assert agent.terms.get().uid == "swift"


def test_items_without_uid_are_recognised_by_what_they_say() -> None:
    text = SECOND.replace("uid: iban\n    ", "").replace("uid: first\n    ", "")
    text = text.replace("uid: money\n    ", "")
    import_document(text)
    assert not import_document(text).changed


def test_every_wrong_word_and_relationship_is_named_and_nothing_is_changed() -> None:
    problems = _problems(
        """\
name: A
tools: [get_balance]
terms:
- name: IBAN
- {name: SWIFT, description: a code}
- {name: SWIFT, description: the same again}
- {name: x, description: y, synonyms: ["a,b"]}
canned_responses:
- text: "Hello {{ name"
- text: ""
- text: same
- text: same
guidelines:
- {uid: a, action: x, canned_responses: [nowhere], composition: loud}
- {uid: b, action: y}
relationships:
- {kind: likes, source: a, targets: [b]}
- {kind: entails, source: a, targets: [a]}
- {kind: entails, source: b, targets: [nobody]}
- {kind: entails, source: nobody, targets: []}
- {kind: depends_on_any, source: a, targets: [b]}
- {kind: depends_on_any, source: a, targets: [b]}
overlaps:
- tools: [get_balance]
- tools: [get_balance, transfer]
- tools: [get_balance, teleport]
"""
    )
    assert sorted({place for place, _message in problems}) == [
        "canned_responses[0].text",
        "canned_responses[1].text",
        "canned_responses[3].text",
        "guidelines[0].canned_responses[0]",
        "guidelines[0].composition",
        "overlaps[0].tools",
        "overlaps[1].tools[1]",
        "overlaps[2].tools[1]",
        "relationships[0].kind",
        "relationships[1].targets",
        "relationships[2].targets[0]",
        "relationships[3].source",
        "relationships[3].targets",
        "relationships[5].kind",
        "terms[0].description",
        "terms[2].name",
        "terms[3].synonyms",
    ]
    assert any("Line 1" in message for _place, message in problems)
    assert not Agent.objects.exists()


def test_relationships_that_contradict_one_another_are_named_in_words() -> None:
    ((place, message),) = _problems(
        """\
name: A
guidelines:
- {uid: a, condition: a refund is asked for}
- {uid: b, condition: the customer is angry}
relationships:
- {kind: has_priority_over, source: a, targets: [b]}
- {kind: has_priority_over, source: b, targets: [a]}
"""
    )
    assert place.startswith("relationships[")
    assert "a refund is asked for" in message
    assert "the customer is angry" in message
    assert not Agent.objects.exists()


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("tone: {long}", "tone"),
        ("canned_responses: [{{text: {long}}}]", "canned_responses[0].text"),
        ("terms: [{{name: {long}, description: d}}]", "terms[0].name"),
        ("terms: [{{name: n, description: {long}}}]", "terms[0].description"),
        ("guidelines: [{{action: {long}{long}{long}}}]", "guidelines[0].action"),
    ],
)
def test_what_is_too_long_is_refused(text: str, place: str) -> None:
    ((found, message),) = _problems("name: A\n" + text.format(long="x" * 4_001))
    assert found == place
    assert "at most" in message


def test_restoring_a_version_restores_words_and_relationships() -> None:
    Tool.objects.update(enabled=True)
    import_document(SECOND)
    agent = Agent.objects.get()
    version = publish(agent, note="first", by=None)
    overlap = agent.overlaps.get().uid
    agent.terms.all().delete()
    agent.canned_responses.filter(uid="notice").delete()
    agent.relationships.all().delete()
    agent.tone = ""
    agent.save()
    restore(agent, version)
    assert compile_agent(Agent.objects.get()).fingerprint == version.fingerprint
    assert agent.overlaps.get().uid == overlap


def test_restoring_a_version_makes_the_draft_what_it_was() -> None:
    import_document(DOCUMENT)
    agent = Agent.objects.get()
    version = publish(agent, note="first", by=None)
    first, second = agent.guidelines.all()
    save_guideline(first, examples=[], tools=[])
    second.delete()
    agent.name = "Renamed"
    agent.save()
    assert restore(agent, version) == []
    assert compile_agent(Agent.objects.get()).fingerprint == version.fingerprint


def test_restoring_names_the_tools_that_are_gone() -> None:
    import_document(DOCUMENT)
    agent = Agent.objects.get()
    version = publish(agent, note="", by=None)
    agent.guidelines.all().delete()
    Tool.objects.filter(name="get_balance").delete()
    assert restore(agent, version) == ["get_balance"]
    assert [row.uid for row in agent.guidelines.all()] == ["balance", "transfer"]


def test_the_commands_write_and_read_a_file(tmp_path: Path) -> None:
    import_document(DOCUMENT)
    file = tmp_path / "agent.yaml"
    call_command("export_agent", "harbor-bank", "--output", str(file))
    Agent.objects.all().delete()
    out = io.StringIO()
    call_command("import_agent", str(file), "--dry-run", stdout=out)
    assert "dry run" in out.getvalue()
    assert not Agent.objects.exists()
    call_command("import_agent", str(file), stdout=out)
    assert Agent.objects.get().guidelines.count() == 2


def test_the_commands_say_what_is_wrong(tmp_path: Path) -> None:
    with pytest.raises(CommandError, match="No agent 'nobody'"):
        call_command("export_agent", "nobody")
    with pytest.raises(CommandError, match="cannot be read"):
        call_command("import_agent", str(tmp_path / "absent.yaml"))
    file = tmp_path / "bad.yaml"
    file.write_text("name: A\ntools: [teleport]")
    err = io.StringIO()
    with pytest.raises(CommandError, match="Nothing was imported"):
        call_command("import_agent", str(file), stdout=io.StringIO(), stderr=err)
    assert "tools[0]: There is no tool “teleport”" in err.getvalue()
