"""The shed follows the code, keeps what people changed, and tells the drafts that use its tools."""

import io
import sys
from types import ModuleType
from typing import Annotated, Any

import pytest
from django.core.management import CommandError, call_command

from engine.errors import SpecError
from engine.tools.base import ToolContext
from engine.tools.function import FunctionToolService, tool
from engine.tools.parameters import ToolParameterOptions
from studio.bridge import compile_tool
from studio.forms.tools import ToolForm
from studio.models import Agent, Tool
from studio.operations.agents import snapshot
from studio.operations.tools import (
    follow_code,
    overridden,
    save_tool,
    sync_function_tools,
)
from tests.studio.factories import make_agent, make_guideline, make_tool

pytestmark = pytest.mark.django_db


@tool(name="find_order", latency="medium")
def find_order(
    context: ToolContext,
    number: Annotated[str, ToolParameterOptions(description="Its number", examples=["A-1"])],
) -> str:
    """Finds an order."""
    return number


@tool(name="find_order", latency="slow", timeout=30, consequential=True)
def find_order_later(
    context: ToolContext,
    number: Annotated[int, ToolParameterOptions(description="The number on the invoice")],
    year: int = 2026,
) -> str:
    """Finds an order or an invoice."""
    return f"{number}/{year}"


@tool
def count_stock(context: ToolContext) -> int:
    """Counts."""
    return 3


def service(*functions: Any) -> FunctionToolService:
    return FunctionToolService(functions)


def changed_by_people(name: str) -> Tool:
    """The tool, with words of people about it and its first parameter."""
    row = Tool.objects.get(name=name)
    row.description = "Finds orders of our shop."
    row.parameters[0] |= {"display_name": "order number", "examples": ["B-2"], "source": "customer"}
    return save_tool(row)


# --- Following the code


def test_tools_of_the_code_come_into_the_shed_as_they_are_declared() -> None:
    report = sync_function_tools(service(find_order, count_stock))
    assert report.created == ["find_order", "count_stock"]
    row = Tool.objects.get(name="find_order")
    assert compile_tool(row) == find_order.spec
    assert (row.origin, row.missing_since, row.enabled) == (__name__, None, True)


def test_a_second_time_changes_nothing() -> None:
    sync_function_tools(service(find_order))
    before = Tool.objects.values().get()
    report = sync_function_tools(service(find_order))
    assert (report.created, report.changed, report.missing, report.returned) == ([], [], [], [])
    assert Tool.objects.values().get() == before


def test_a_changed_signature_is_followed() -> None:
    sync_function_tools(service(find_order))
    uid = Tool.objects.get().uid
    report = sync_function_tools(service(find_order_later))
    assert report.changed == ["find_order"]
    row = Tool.objects.get()
    assert row.uid == uid
    assert (row.description, row.consequential) == ("Finds an order or an invoice.", True)
    assert (row.latency, row.timeout) == ("slow", 30)
    assert [p["name"] for p in row.parameters] == ["number", "year"]
    assert row.parameters[0]["schema"] == {"type": "integer"}


def test_what_people_changed_outlives_a_changed_signature() -> None:
    sync_function_tools(service(find_order))
    row = changed_by_people("find_order")
    row.timeout = 99.0
    save_tool(row)
    sync_function_tools(service(find_order_later))
    row = Tool.objects.get()
    assert (row.description, row.timeout) == ("Finds orders of our shop.", 99.0)
    number = row.parameters[0]
    assert (number["display_name"], number["source"]) == ("order number", "customer")
    assert number["description"] == "The number on the invoice"  # nobody had changed that
    assert number["examples"] == []  # "B-2" is no number
    assert (row.latency, row.consequential) == ("slow", True)
    assert overridden(row) == {"description", "timeout", "number.display_name", "number.source"}


def test_what_people_changed_can_be_given_up() -> None:
    sync_function_tools(service(find_order))
    follow_code(changed_by_people("find_order"))
    row = Tool.objects.get()
    assert compile_tool(row) == find_order.spec
    assert overridden(row) == set()


def test_a_tool_whose_code_is_gone_stays_and_is_ready_again_when_it_is_back() -> None:
    sync_function_tools(service(find_order, count_stock))
    changed_by_people("find_order")
    report = sync_function_tools(service(count_stock))
    assert report.missing == ["find_order"]
    since = Tool.objects.get(name="find_order").missing_since
    assert since is not None
    assert sync_function_tools(service(count_stock)).missing == []
    assert Tool.objects.get(name="find_order").missing_since == since
    assert [row.name for row in Tool.objects.available()] == ["count_stock"]
    report = sync_function_tools(service(find_order, count_stock))
    assert report.returned == ["find_order"]
    row = Tool.objects.get(name="find_order")
    assert (row.missing_since, row.description) == (None, "Finds orders of our shop.")


def test_a_tool_that_is_switched_off_stays_off() -> None:
    sync_function_tools(service(find_order))
    Tool.objects.update(enabled=False)
    sync_function_tools(service(find_order_later))
    assert not Tool.objects.get().enabled


def test_a_renamed_function_of_the_same_uid_keeps_its_row_and_its_users() -> None:
    @tool(uid="fixed", name="old_name")
    def old(context: ToolContext) -> int:
        """Old."""
        return 1

    @tool(uid="fixed", name="new_name")
    def new(context: ToolContext) -> int:
        """New."""
        return 1

    sync_function_tools(service(old))
    agent = make_agent()
    agent.tools.add(Tool.objects.get())
    sync_function_tools(service(new))
    assert [row.name for row in agent.tools.all()] == ["new_name"]


def test_rows_from_before_declarations_were_kept_take_the_codes() -> None:
    make_tool(name="find_order", description="Old words.")
    sync_function_tools(service(find_order))
    assert compile_tool(Tool.objects.get()).description == "Finds an order."


# --- Telling the drafts


def test_drafts_that_use_a_changed_tool_run_on_another_snapshot_and_others_on_the_same() -> None:
    sync_function_tools(service(find_order, count_stock))
    users = [make_agent(), make_agent(), make_agent()]
    users[0].tools.add(Tool.objects.get(name="find_order"))
    users[1].tools.add(Tool.objects.get(name="count_stock"))
    before = [snapshot(agent).pk for agent in users]
    sync_function_tools(service(find_order_later, count_stock))
    after = [snapshot(agent).pk for agent in users]
    assert [a == b for a, b in zip(before, after, strict=True)] == [False, True, True]


@pytest.mark.parametrize("what", ["saved", "gone", "back"])
def test_what_happens_to_a_tool_reaches_the_next_turn_of_its_agents(what: str) -> None:
    sync_function_tools(service(find_order))
    agent = make_agent()
    row = Tool.objects.get()
    agent.tools.add(row)
    make_guideline(agent, tools=[row])
    if what == "back":
        sync_function_tools(service(count_stock))
    before = snapshot(agent)
    if what == "saved":
        row.description = "Other words."
        save_tool(row)
    else:
        sync_function_tools(service(find_order if what == "back" else count_stock))
    after = snapshot(Agent.objects.get())
    assert after.fingerprint != before.fingerprint


# --- The command


def test_the_command_says_what_changed_and_is_silent_when_nothing_did() -> None:
    out = io.StringIO()
    call_command("sync_tools", stdout=out)
    assert "Tool calculator: new." in out.getvalue()
    assert "Tool get_datetime: new." in out.getvalue()
    again = io.StringIO()
    call_command("sync_tools", stdout=again)
    assert again.getvalue() == ""
    make_tool(name="nobody_knows")
    call_command("sync_tools", stdout=again)
    assert again.getvalue() == "Tool nobody_knows: its code is gone.\n"


def test_the_command_names_a_module_that_cannot_be_read(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    module = ModuleType("tests_without_tools")
    monkeypatch.setitem(sys.modules, "tests_without_tools", module)

    def broken() -> FunctionToolService:
        return FunctionToolService.from_modules(["tests_without_tools"])

    monkeypatch.setattr("studio.operations.tools.tool_service", broken)
    with pytest.raises(SpecError):
        broken()
    with pytest.raises(CommandError, match="'tests_without_tools' has no @tool function"):
        call_command("sync_tools")


# --- The form


def fields(row: Tool, **changes: str) -> dict[str, str]:
    values = {
        "description": row.description,
        "latency": row.latency,
        "enabled": "on",
        "parameter-number-source": "any",
    }
    return values | changes


def test_the_form_changes_a_tool_and_its_parameters() -> None:
    sync_function_tools(service(find_order))
    row = Tool.objects.get()
    form = ToolForm(
        fields(
            row,
            **{
                "description": "Finds orders.",
                "consequential": "on",
                "latency": "slow",
                "timeout": "12.5",
                "parameter-number-display_name": "order number",
                "parameter-number-description": "",
                "parameter-number-significance": "to find it",
                "parameter-number-examples": "A-1\r\nB-2\n\n",
                "parameter-number-source": "customer",
                "parameter-number-precedence": "2",
                "parameter-number-hidden": "on",
            },
        ),
        instance=row,
    )
    assert form.is_valid(), list(form.all_errors())
    form.save()
    spec = compile_tool(Tool.objects.get())
    assert (spec.description, spec.consequential, spec.deadline) == ("Finds orders.", True, 12.5)
    (number,) = spec.parameters
    assert (number.display_name, number.significance) == ("order number", "to find it")
    assert number.description == "Its number"  # empty takes what the code says
    assert (number.examples, number.source.value) == (("A-1", "B-2"), "customer")
    assert (number.precedence, number.hidden) == (2, True)
    assert number.schema == {"type": "string"}


def test_examples_are_values_of_the_parameters_type() -> None:
    sync_function_tools(service(find_order_later))
    row = Tool.objects.get()
    sent = fields(row) | {"parameter-year-source": "any", "parameter-number-examples": "1\n20"}
    form = ToolForm(sent, instance=row)
    assert form.is_valid(), list(form.all_errors())
    assert form.save().parameters[0]["examples"] == [1, 20]


@pytest.mark.parametrize(
    ("changes", "field", "said"),
    [
        ({"timeout": "0"}, "timeout", "0.1 to 3600 seconds"),
        ({"timeout": "nan"}, "timeout", "0.1 to 3600 seconds"),
        ({"latency": "instant"}, "latency", "instant"),
        ({"description": "x" * 10_001}, "description", "at most 10000"),
        ({"parameter-number-source": "heaven"}, "number.source", "heaven"),
        ({"parameter-number-examples": "many"}, "number.examples", "must be a whole number"),
        ({"parameter-number-examples": "[" * 9999}, "number.examples", "longer than 500"),
        ({"parameter-number-examples": "1\n" * 3 + "x"}, "number.examples", "“x” is no example"),
        ({"parameter-number-precedence": "-1"}, "number.precedence", "from 0 to 1000"),
        ({"parameter-number-description": "y" * 2_001}, "number.description", "at most 2000"),
    ],
)
def test_what_cannot_be_is_refused_with_the_reason(
    changes: dict[str, str], field: str, said: str
) -> None:
    sync_function_tools(service(find_order_later))
    row = Tool.objects.get()
    form = ToolForm(fields(row) | {"parameter-year-source": "any"} | changes, instance=row)
    assert not form.is_valid()
    ((place, message),) = form.all_errors()
    assert (place, said in message) == (field, True), message
    with pytest.raises(ValueError, match="all_errors"):
        form.save()
    assert compile_tool(Tool.objects.get()) == find_order_later.spec


@tool(name="send_money", consequential=True, confirm="inferred")
def send_money(context: ToolContext, amount: int) -> int:
    """Sends."""
    return amount


def test_when_the_customer_is_asked_follows_the_code_until_people_say_otherwise() -> None:
    sync_function_tools(service(send_money))
    row = Tool.objects.get(name="send_money")
    assert row.confirm == "inferred"
    assert overridden(row) == set()
    row.confirm = "always"
    save_tool(row)
    sync_function_tools(service(send_money))
    row.refresh_from_db()
    assert row.confirm == "always"
    assert overridden(row) == {"confirm"}
    follow_code(row)
    assert row.confirm == "inferred"


def test_what_the_code_could_not_say_when_it_was_last_read_is_nobodys_change() -> None:
    sync_function_tools(service(send_money))
    row = Tool.objects.get(name="send_money")
    del row.declared["confirm"]  # as a shed from before this option holds it
    row.confirm = "always"
    row.save()
    assert overridden(row) == set()
    sync_function_tools(service(send_money))
    row.refresh_from_db()
    assert row.confirm == "inferred"
