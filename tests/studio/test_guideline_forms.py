"""The form of a guideline: what people write in the editor and what programs send mean the same."""

from typing import Any

import pytest
from django.http import QueryDict

from studio.forms.guidelines import GuidelineForm, guideline_json
from studio.models import Agent, Guideline, Tool
from studio.operations.agents import GuidelineChangedError
from tests.studio.factories import make_agent, make_guideline, make_response, make_tool

pytestmark = pytest.mark.django_db

EDITED = {
    "condition": "the customer asks for a refund",
    "action": "check the order, then explain the policy",
    "criticality": "high",
    "priority": "10",
    "enabled": "on",
    "tags": "orders, Money, orders , money",
    "tools": ["find_order"],
    "reevaluate_after": ["find_order"],
    "composition": "strict",
    "canned_responses": ["notice"],
    "matching": "I want my money back\r\n\r\nrefund please\nrefund please",
    "not_matching": "where is my order?",
}


@pytest.fixture
def agent() -> Agent:
    agent = make_agent(name="Shop")
    make_tool(agent, name="find_order")
    make_response(agent, uid="notice")
    make_tool(name="pay_out")
    return agent


def edited(**changes: Any) -> QueryDict:
    """What a browser sends."""
    data = QueryDict(mutable=True)
    for name, value in (EDITED | changes).items():
        data.setlist(name, value if isinstance(value, list) else [value])
    return data


def errors_of(agent: Agent, **changes: Any) -> dict[str, list[str]]:
    form = GuidelineForm(edited(**changes), agent=agent)
    assert not form.is_valid()
    return {name: [str(message) for message in said] for name, said in form.errors.items()}


def test_what_the_editor_sends_becomes_a_guideline_with_its_parts(agent: Agent) -> None:
    form = GuidelineForm(edited(), agent=agent)
    assert form.is_valid(), form.errors
    stored = agent.guidelines.get(pk=form.save().pk)
    assert guideline_json(stored) == {
        "condition": "the customer asks for a refund",
        "action": "check the order, then explain the policy",
        "criticality": "high",
        "priority": 10,
        "enabled": True,
        "composition": "strict",
        "canned_responses": ["notice"],
        "tags": ["orders", "Money"],
        "tools": ["find_order"],
        "reevaluate_after": ["find_order"],
        "examples": [
            {"text": "I want my money back", "matches": True},
            {"text": "refund please", "matches": True},
            {"text": "where is my order?", "matches": False},
        ],
    }


def test_what_the_editor_shows_and_sends_back_changes_nothing(agent: Agent) -> None:
    tool = Tool.objects.get(name="find_order")
    guideline = make_guideline(
        agent, tools=[tool], matching=["one", "two\nlines"], tags=["a", "b"], condition="x\n\ny"
    )
    before = guideline_json(guideline)
    shown = GuidelineForm(agent=agent, instance=guideline)
    assert shown["matching"].value() == "one\ntwo ⏎ lines"
    data = QueryDict(mutable=True)
    for field in shown:
        value = field.value()
        match value:
            case list():
                data.setlist(field.name, value)
            case True:
                data[field.name] = "on"
            case _:
                data[field.name] = str(value).replace("\n", "\r\n")
    form = GuidelineForm(data, agent=agent, instance=guideline)
    assert form.is_valid(), form.errors
    assert form.changed_data == []
    assert guideline_json(agent.guidelines.get(pk=form.save().pk)) == before


def test_a_program_changes_only_what_it_names(agent: Agent) -> None:
    guideline = make_guideline(agent, condition="a", matching=["m"], not_matching=["n"])
    form = GuidelineForm.from_json(agent, {"action": "wave"}, instance=guideline)
    assert form.is_valid(), form.errors
    form.save()
    stored = agent.guidelines.get()
    assert (stored.condition, stored.action) == ("a", "wave")
    assert [(e.text, e.matches) for e in stored.examples.all()] == [("m", True), ("n", False)]
    assert [tool.name for tool in stored.tools.all()] == []


def test_a_program_may_write_everything_and_read_it_back(agent: Agent) -> None:
    response = make_response(agent)
    payload = {
        "condition": "c",
        "action": "",
        "criticality": "low",
        "priority": -3,
        "enabled": False,
        "tags": ["x"],
        "tools": ["find_order"],
        "reevaluate_after": [],
        "composition": "strict",
        "canned_responses": [response.uid],
        "examples": [{"text": "two\nlines", "matches": True}, {"text": "n", "matches": False}],
    }
    form = GuidelineForm.from_json(agent, payload)
    assert form.is_valid(), form.errors
    assert guideline_json(agent.guidelines.get(pk=form.save().pk)) == payload


def test_a_new_guideline_comes_last_and_is_switched_on_unless_said_otherwise(agent: Agent) -> None:
    first = make_guideline(agent)
    form = GuidelineForm.from_json(agent, {"action": "greet"})
    assert form.is_valid()
    new = form.save()
    assert new.position > first.position
    assert new.enabled


@pytest.mark.parametrize(
    ("changes", "field", "said"),
    [
        ({"condition": " ", "action": "\r\n"}, "__all__", "when it applies, what to do, or both"),
        ({"tools": ["pay_out"]}, "tools", "not among the tools of Shop; add it there first"),
        ({"tools": ["find_ordre"]}, "tools", "Did you mean “find_order”?"),
        ({"tools": ["zzz"]}, "tools", "There is no tool “zzz”. Look in the tool shed"),
        ({"reevaluate_after": ["pay_out"]}, "reevaluate_after", "“pay_out” is not among"),
        ({"condition": "x" * 10_001}, "condition", "10001 characters; at most 10000 are kept"),
        ({"action": "a\x00b"}, "action", "cannot be stored"),
        ({"tags": ",".join(f"t{n}" for n in range(21))}, "tags", "21 tags; at most 20"),
        ({"tags": "y" * 41}, "tags", "41 characters; at most 40"),
        ({"matching": "m" * 2_001}, "matching", "2001 characters; at most 2000"),
        ({"matching": "\n".join(map(str, range(101)))}, "matching", "101 messages; at most 100"),
        ({"matching": "Hi", "not_matching": "hi"}, "not_matching", "“hi” stands in both lists"),
        ({"priority": "101"}, "priority", "from −100 to 100"),
        ({"priority": "soon"}, "priority", "from −100 to 100"),
        ({"criticality": "extreme"}, "criticality", "choose low, medium or high"),
        ({"updated_at": "yesterday"}, "updated_at", "moment at which it was saved"),
        ({"updated_at": "2026-13-01T00:00:00+00:00"}, "updated_at", "moment at which"),
    ],
)
def test_a_refusal_names_the_thing_and_the_remedy(
    agent: Agent, changes: dict[str, Any], field: str, said: str
) -> None:
    errors = errors_of(agent, **changes)
    assert list(errors) == [field]
    assert said in errors[field][0]
    assert not agent.guidelines.exists()


@pytest.mark.parametrize(
    ("payload", "field", "said"),
    [
        ({"tools": "find_order"}, "tools", "a list of the names of tools"),
        ({"tools": [["find_order"]]}, "tools", "a list of the names of tools"),
        ({"tags": ["a,b"]}, "tags", "contains a comma"),
        ({"composition": "loud"}, "composition", "fluid, composited, strict"),
        ({"canned_responses": ["nowhere"]}, "canned_responses", "write it first"),
        ({"canned_responses": "notice"}, "canned_responses", "a list of uids"),
        ({"tags": {"a": 1}}, "tags", "a list of texts"),
        ({"examples": ["hi"]}, "examples", "list of texts"),
        ({"examples": [{"text": "\ud800", "matches": True}]}, "examples", "cannot be stored"),
        ({"examples": [{"text": "a"}, {"text": "a", "matches": False}]}, "examples", "both lists"),
        ({"condition": None, "action": None}, "", "when it applies"),
        ({"priority": 10**30}, "priority", "from −100 to 100"),
    ],
)
def test_a_program_reads_the_errors_by_its_own_names(
    agent: Agent, payload: dict[str, Any], field: str, said: str
) -> None:
    form = GuidelineForm.from_json(agent, {"condition": "c", **payload})
    assert not form.is_valid()
    assert [(name, said in message) for name, message in form.json_errors()] == [(field, True)]


def test_every_wrong_tool_is_named(agent: Agent) -> None:
    said = errors_of(agent, tools=["pay_out", "find_order", "nothing"])["tools"]
    assert len(said) == 2


def test_text_of_any_script_and_markup_is_kept_as_it_is(agent: Agent) -> None:
    words = "العميل يسأل <b>{{ x }}</b> %s {0} 🏦\n\nzweite Zeile"
    form = GuidelineForm(edited(condition=words), agent=agent)
    assert form.is_valid(), form.errors
    form.save()
    assert agent.guidelines.get().condition == words


def test_who_read_an_older_text_does_not_overwrite_a_newer_one(agent: Agent) -> None:
    guideline = make_guideline(agent, action="first")
    opened = guideline.updated_at.isoformat()
    theirs = GuidelineForm.from_json(agent, {"action": "theirs"}, instance=guideline)
    assert theirs.is_valid()
    theirs.save()
    stored = agent.guidelines.get()
    mine = GuidelineForm(edited(action="mine", updated_at=opened), agent=agent, instance=stored)
    assert mine.is_valid(), mine.errors
    with pytest.raises(GuidelineChangedError) as caught:
        mine.save()
    assert caught.value.stored is not None
    assert caught.value.stored.action == "theirs"
    assert agent.guidelines.get().action == "theirs"
    assert not agent.guidelines.get().examples.exists()


def test_switching_it_beside_an_open_editor_is_neither_a_conflict_nor_undone(agent: Agent) -> None:
    from studio.operations.agents import set_enabled

    guideline = make_guideline(agent)
    opened = guideline.updated_at.isoformat()
    set_enabled(agent, [guideline.uid], enabled=False)
    sent = edited(updated_at=opened)
    sent["initial-enabled"] = "True"
    form = GuidelineForm(sent, agent=agent, instance=agent.guidelines.get())
    assert form.is_valid(), form.errors
    form.save()
    assert agent.guidelines.get().enabled is False
    sent = edited(updated_at=agent.guidelines.get().updated_at.isoformat())
    sent["initial-enabled"] = "False"
    form = GuidelineForm(sent, agent=agent, instance=agent.guidelines.get())
    assert form.is_valid(), form.errors
    form.save()
    assert agent.guidelines.get().enabled is True


def test_a_form_with_errors_cannot_be_saved(agent: Agent) -> None:
    form = GuidelineForm(edited(priority="x"), agent=agent)
    with pytest.raises(ValueError, match="see `errors`"):
        form.save()
    assert not Guideline.objects.exists()
