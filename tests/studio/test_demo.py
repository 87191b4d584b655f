"""The demo: loaded once, its tools over books that threads share, and its conversation with the offline model."""

import asyncio
import os
import re
import subprocess
import sys
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings
from django.core.management import call_command
from django.db import connection

from engine.canonical import JsonObject
from engine.errors import ToolErrorKind, ToolFailure
from engine.tools.base import ToolContext
from engine.tools.package import read_archive, read_directory
from engine.tools.rules import check_package
from studio import env
from studio.audit import audit
from studio.demo import bank, data, uploads
from studio.models import Agent, AgentVersion, Customer, Guideline, Session, Tool, ToolInstance
from studio.operations.pumping import engine_loop
from studio.operations.sessions import open_session
from studio.operations.turns import run_turn, send_message
from studio.toolbox import tool_service

INES, TOM, MIRA = "ines-duarte", "tom-lindqvist", "mira-okafor"


@pytest.fixture(autouse=True)
def _first_day(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every test has books of its own."""
    monkeypatch.setattr(settings, "STUDIO_VAR", tmp_path)


def load_demo(**options: Any) -> str:
    out = StringIO()
    call_command("load_demo", stdout=out, **options)
    return out.getvalue()


# --- Loading ---------------------------------------------------------------------------------------------------------


@pytest.mark.django_db
def test_the_demo_comes_published_with_its_customers_and_tools() -> None:
    load_demo()

    agent = Agent.objects.get(slug="harbor-bank")
    assert agent.published is not None
    assert agent.published.number == 1
    assert agent.published.note
    assert set(Customer.objects.values_list("uid", flat=True)) == {INES, TOM, MIRA}
    assert Customer.objects.get(uid=TOM).variables["timezone"] == "Europe/Berlin"
    own = {tool.spec.name for tool in vars(bank).values() if hasattr(tool, "spec")}
    own |= {demo.tool for demo in uploads.DEMO_TOOLS}
    assert set(agent.tools.values_list("name", flat=True)) == own
    used = set(Guideline.objects.filter(agent=agent).values_list("tools__name", flat=True))
    assert own <= used


@pytest.mark.parametrize("demo", uploads.DEMO_TOOLS, ids=lambda demo: demo.tool)
def test_the_packed_templates_are_their_folders(demo: uploads.DemoTool) -> None:
    archive = uploads.FOLDER / demo.archive

    package = read_directory(archive.with_suffix(""))

    (packed,) = read_archive(archive.read_bytes()).packages
    assert packed.files == package.files, "run `make templates`"
    report = check_package(package, name=demo.template)
    assert report.issues == ()


@pytest.mark.django_db
def test_the_signing_key_of_the_case_desk_is_each_studios_own() -> None:
    load_demo()

    instance = ToolInstance.objects.get(tool__name="open_case")

    assert len(instance.config["signing_key"]) >= 16
    with connection.cursor() as cursor:
        cursor.execute("SELECT encrypted_config FROM studio_toolinstance")
        stored = " ".join(row[0] for row in cursor.fetchall())
    assert instance.config["signing_key"] not in stored
    assert list(instance.secrets) == ["signing_key"]


@pytest.mark.django_db
def test_loading_again_changes_nothing_that_people_edited() -> None:
    load_demo()
    Agent.objects.filter(slug="harbor-bank").update(name="Our Bank")
    Customer.objects.filter(uid=INES).update(name="Inês D.")
    count = Guideline.objects.count()

    said = load_demo()

    assert "there already" in said
    assert Agent.objects.get(slug="harbor-bank").name == "Our Bank"
    assert Customer.objects.get(uid=INES).name == "Inês D."
    assert (Guideline.objects.count(), AgentVersion.objects.published().count()) == (count, 1)


@pytest.mark.django_db
def test_a_reset_brings_back_the_first_day_and_keeps_versions_and_sessions() -> None:
    load_demo()
    agent = Agent.objects.get(slug="harbor-bank")
    session = open_session(agent=agent, version=1)
    agent.guidelines.all()[0].delete()
    Agent.objects.filter(pk=agent.pk).update(name="Our Bank")
    call("transfer_money", amount=100, payee="Ana Costa")

    load_demo(reset=True)

    agent.refresh_from_db()
    assert agent.name == "Harbor Bank"
    assert agent.guidelines.filter(uid="tone").exists()
    assert Session.objects.get(pk=session.pk).version == agent.versions.get(number=1)
    assert call("get_balance")["balance"] == 2481.37


@pytest.mark.django_db
def test_without_its_tools_the_demo_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(settings, "STUDIO_TOOL_MODULES", ())

    assert "STUDIO_TOOL_MODULES" in load_demo()
    assert not Agent.objects.exists()
    assert not Tool.objects.exists()


@pytest.mark.parametrize(
    ("variables", "modules"),
    [
        ({}, ("studio.demo.bank",)),
        ({"STUDIO_TOOL_MODULES": ""}, ()),
        ({"STUDIO_TOOL_MODULES": "shop.tools, shop.more"}, ("shop.tools", "shop.more")),
    ],
)
def test_the_environment_names_the_tool_modules(
    tmp_path: Path, variables: dict[str, str], modules: tuple[str, ...]
) -> None:
    assert env.read({"STUDIO_VAR": str(tmp_path), **variables}).tool_modules == modules


def test_the_engine_knows_nothing_of_the_demo() -> None:
    tools = [tool.spec.name for tool in vars(bank).values() if hasattr(tool, "spec")]
    names = ["harbor", *(uid.partition("-")[2] for uid in data.seed()["customers"])]
    engine = Path(settings.BASE_DIR, "engine")
    assert _files_that_say(names, engine) == []
    assert _files_that_say([*names, *tools], engine / "model") == []


def _files_that_say(names: list[str], folder: Path) -> list[Path]:
    told = re.compile("|".join(names), re.IGNORECASE)
    return [path for path in folder.rglob("*.py") if told.search(path.read_text("utf-8"))]


# --- Tools -----------------------------------------------------------------------------------------------------------


def call(name: str, customer: str = INES, **arguments: Any) -> Any:
    """The data of a tool's result, through the service that validates and runs it."""
    service = tool_service()

    async def run() -> Any:
        tools = {tool.name: tool for tool in await service.describe()}
        context = ToolContext(agent_id="", session_id="", turn_id="", customer_id=customer)
        return (await service.call(tools[name], arguments, context)).data

    return asyncio.run_coroutine_threadsafe(run(), engine_loop()).result(20)


def refusal(name: str, customer: str = INES, **arguments: Any) -> str:
    with pytest.raises(ToolFailure) as caught:
        call(name, customer, **arguments)
    assert caught.value.error.kind == ToolErrorKind.NOT_ALLOWED
    return caught.value.error.public


def day(days_ago: int) -> str:
    return (datetime.now(UTC).date() - timedelta(days=days_ago)).isoformat()


def test_a_balance_is_a_plain_number_with_its_currency() -> None:
    assert call("get_balance") == {
        "account": "checking",
        "balance": 2481.37,
        "currency": "EUR",
        "account_number": "PT50 0902 7731",
    }
    assert call("get_balance", account="savings")["balance"] == 12400


def test_customers_see_their_own_and_nobody_sees_without_being_known() -> None:
    assert call("get_balance", TOM)["balance"] == 134.05
    assert call("get_balance", MIRA)["balance"] == 18240.90
    assert "Tom" not in str(call("list_payees", MIRA))
    for stranger in ("", "nobody"):
        assert "no customer is identified" in refusal("get_balance", stranger)
        assert "no customer is identified" in refusal("list_transactions", stranger)
        assert "no customer is identified" in refusal("list_payees", stranger)
        assert "no customer is identified" in refusal("block_card", stranger, card="debit card")
        assert "no customer is identified" in refusal(
            "transfer_money", stranger, amount=1, payee="Ana Costa"
        )


def test_what_a_customer_does_not_have_is_said() -> None:
    assert refusal("get_balance", TOM, account="savings") == (
        "there is no savings account, only checking"
    )
    assert refusal("block_card", TOM, card="credit card") == "there is no credit card"


def test_transactions_are_found_by_period_and_by_what_they_were_for() -> None:
    month = call("list_transactions")
    assert month["transactions"][0]["description"] == "Mercado da Ribeira"
    assert month["number_of_transactions"] == len(month["transactions"])
    food = call("list_transactions", about="groceries")
    assert (food["number_of_transactions"], food["total_spent"]) == (4, 265.24)
    week = call("list_transactions", since=day(7), until=day(5))
    assert [item["amount"] for item in week["transactions"]] == [-83.29]
    assert call("list_transactions", about="cafe")["total_spent"] == 7.80  # written Café
    assert call("list_transactions", about="yachts")["transactions"] == []
    assert "lies after" in refusal("list_transactions", since=day(1), until=day(2))


def test_money_is_converted_to_the_cent() -> None:
    converted = call("convert_money", amount=2481.37, to_currency="USD")
    assert (converted["converted_amount"], converted["currency"]) == (2690.30, "USD")
    assert call("convert_money", amount=50, from_currency="CHF", to_currency="EUR")[
        "converted_amount"
    ] == pytest.approx(53.37)
    assert call("get_exchange_rate", to_currency="GBP")["rate"] == 0.8415
    assert "both currencies are EUR" in refusal("get_exchange_rate", to_currency="EUR")


def test_a_branch_has_an_address_and_hours() -> None:
    branch = call("branch_hours", city="Hamburg")
    assert branch["address"] == "Am Sandtorkai 31, 20457 Hamburg"
    assert branch["opening_hours"]["Saturday"] == "10:00–13:00"


def test_a_card_is_blocked_once_and_stays_blocked() -> None:
    assert call("block_card", card="debit card")["status"] == "blocked"
    again = call("block_card", card="debit card")
    assert (again["status"], again["blocked_on"]) == ("was blocked already", day(0))
    assert call("block_card", MIRA, card="credit card")["blocked_on"] == day(3)


def test_a_transfer_leaves_the_account_and_is_booked() -> None:
    sent = call("transfer_money", amount=50.25, payee="ana", reference="dinner")
    assert (sent["payee"], sent["balance_left"]) == ("Ana Costa", 2431.12)
    assert call("list_transactions")["transactions"][0] == {
        "date": day(0),
        "description": "Transfer to Ana Costa (dinner)",
        "amount": -50.25,
    }


def test_money_moves_between_own_accounts() -> None:
    call("transfer_money", amount=400, payee="my checking account", from_account="savings")
    assert call("get_balance")["balance"] == 2881.37
    assert call("get_balance", account="savings")["balance"] == 12000


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        ({"amount": 5000, "payee": "Ana Costa"}, "the checking account holds only 2,481.37 EUR"),
        ({"amount": 5, "payee": "Bob"}, "'Bob' is no saved payee; saved are Ana Costa"),
        ({"amount": 0.001, "payee": "Ana Costa"}, "0.001 is no whole number of cents"),
        ({"amount": 5, "payee": "checking"}, "the money is on the checking account already"),
        ({"amount": 5, "payee": "''"}, "is no saved payee"),
    ],
)
def test_a_transfer_that_cannot_be_made_is_refused_and_changes_nothing(
    arguments: JsonObject, reason: str
) -> None:
    assert reason in refusal("transfer_money", **arguments)
    assert call("get_balance")["balance"] == 2481.37


def test_many_transfers_at_once_never_overdraw_an_account() -> None:
    def send(_number: int) -> str:
        try:
            call("transfer_money", TOM, amount=10, payee="Mara")
        except ToolFailure as failure:
            return failure.error.public
        return "sent"

    with ThreadPoolExecutor(16) as threads:
        outcomes = Counter(threads.map(send, range(40)))

    assert outcomes == {"sent": 13, "the checking account holds only 4.05 EUR": 27}  # of 134.05
    assert call("get_balance", TOM)["balance"] == 4.05
    booked = call("list_transactions", TOM, about="transfer Mara")
    assert (booked["number_of_transactions"], booked["total_spent"]) == (13, 130)


_FIFTY_TRANSFERS = """
import django
django.setup()
from datetime import date
from studio.demo import data
for _ in range(50):
    data.transfer("ines-duarte", cents=100, account="checking", to="Ana Costa", note="", on=date.today())
"""


def test_processes_share_the_books_and_lose_no_transfer() -> None:
    environment = os.environ | {
        "PYTHONPATH": str(settings.BASE_DIR),
        "STUDIO_VAR": str(settings.STUDIO_VAR),
    }
    other = [
        subprocess.Popen([sys.executable, "-c", _FIFTY_TRANSFERS], env=environment)
        for _ in range(2)
    ]
    assert [process.wait(40) for process in other] == [0, 0]
    assert call("get_balance")["balance"] == 2381.37


def test_whoever_comes_first_sets_up_the_books_and_the_others_wait() -> None:
    with ThreadPoolExecutor(8) as threads:
        seen = list(threads.map(lambda _n: len(data.payees(INES)), range(16)))

    assert seen == [3] * 16


# --- Conversations, with the offline model ---------------------------------------------------------------------------


@pytest.fixture
def agent(transactional_db: None) -> Agent:
    load_demo(verbosity=0)
    return Agent.objects.get(slug="harbor-bank")


class Talk:
    """A session whose turns are run at once; each answers with its audit."""

    def __init__(self, agent: Agent, customer: str) -> None:
        known = Customer.objects.filter(uid=customer).first()
        self._session = open_session(agent=agent, version="published", customer=known)

    def say(self, text: str) -> JsonObject:
        turn = send_message(self._session, text=text, enqueue=False)
        assert turn is not None
        run_turn(turn.pk)
        turn.refresh_from_db()
        told = audit(turn)
        assert told["state"] == "FINISHED", told["error"]
        return told


def matched(told: JsonObject) -> set[str]:
    """Without the guideline that always applies."""
    last = {match["guideline"]: match["state"] for match in told["matches"]}
    return {uid for uid, state in last.items() if state == "matched"} - {"tone"}


def decided(told: JsonObject) -> list[tuple[str, str]]:
    return [(decision["tool"], decision["state"]) for decision in told["decisions"]]


def arguments(told: JsonObject, tool: str) -> dict[str, tuple[Any, str, bool]]:
    (decision,) = [one for one in told["decisions"] if one["tool"] == tool]
    return {a["name"]: (a["value"], a["source"], a["verified"]) for a in decision["arguments"]}


def test_balance_then_another_currency_then_something_uncovered(agent: Agent) -> None:
    talk = Talk(agent, INES)

    first = talk.say("What is my balance?")
    assert matched(first) == {"balance"}
    assert decided(first) == [("get_balance", "NEEDS_TO_RUN")]
    assert "2,481.37" in first["reply"]

    second = talk.say("and how much is that in US dollars?")
    assert matched(second) == {"conversion"}
    assert decided(second) == [("convert_money", "NEEDS_TO_RUN")]
    given = arguments(second, "convert_money")
    assert given["amount"] == (2481.37, "tool_result", True)
    assert given["to_currency"] == ("USD", "customer", True)
    assert "2,690.30" in second["reply"]

    third = talk.say("Do you offer life insurance?")
    assert matched(third) == set()
    assert (third["decisions"], third["calls"]) == ([], [])
    assert all(match["because"] for match in third["matches"])
    assert "cannot help" in third["reply"]
    assert "2,4" not in third["reply"]


def test_a_low_balance_is_noticed_after_the_tool_ran(agent: Agent) -> None:
    told = Talk(agent, TOM).say("What's my balance?")

    assert matched(told) == {"balance", "low-balance"}
    late = [m for m in told["matches"] if m["guideline"] == "low-balance"][-1]
    assert late["iteration"] == 2
    assert "134.05" in late["because"]
    assert "low" in told["reply"]


def test_a_card_is_blocked_only_once_it_is_known_which(agent: Agent) -> None:
    talk = Talk(agent, INES)

    asked = talk.say("I lost my card!")
    assert decided(asked) == [("block_card", "CANNOT_RUN")]
    assert asked["decisions"][0]["missing"] == ["card"]
    assert asked["calls"] == []
    assert "debit card or credit card" in asked["reply"]

    ready = talk.say("the credit card")
    assert decided(ready) == [("block_card", "AWAITING_CONFIRMATION")]
    assert arguments(ready, "block_card")["card"] == ("credit card", "customer", True)
    assert "credit card" in ready["reply"]
    assert not data.cards(INES)["credit card"].blocked_on

    done = talk.say("yes, block it")
    assert decided(done) == [("block_card", "NEEDS_TO_RUN")]
    assert "9038" in done["reply"]
    assert data.cards(INES)["credit card"].blocked_on
    assert not data.cards(INES)["debit card"].blocked_on


def test_a_transfer_gathers_what_it_needs_and_moves_the_money_once(agent: Agent) -> None:
    talk = Talk(agent, INES)

    asked = talk.say("I want to transfer money")
    assert set(asked["decisions"][0]["missing"]) == {"amount", "payee"}
    assert asked["calls"] == []

    ready = talk.say("50 euros to Ana Costa")
    assert decided(ready) == [("transfer_money", "AWAITING_CONFIRMATION")]
    assert ready["calls"] == []
    assert re.search(r"50.*Ana Costa.*\?", ready["reply"])
    assert call("get_balance")["balance"] == 2481.37

    done = talk.say("Yes please")
    assert decided(done) == [("transfer_money", "NEEDS_TO_RUN")]
    assert done["decisions"][0]["because"] == "The customer confirmed it."
    assert "2,431.37" in done["reply"]

    thanked = talk.say("Thanks!")
    assert thanked["calls"] == []
    assert matched(thanked) == {"goodbye"}
    assert call("get_balance")["balance"] == 2431.37


def test_a_transfer_that_failed_is_not_told_as_done(agent: Agent) -> None:
    talk = Talk(agent, INES)
    talk.say("Send 5000 euros to Ana Costa")
    told = talk.say("yes")

    (made,) = told["calls"]
    assert (made["state"], made["error"]["kind"]) == ("failed", "not_allowed")
    assert "holds only 2,481.37 EUR" in told["reply"]
    assert "sent" not in told["reply"].lower()


def test_a_wrong_account_is_corrected_before_anything_is_sent(agent: Agent) -> None:
    talk = Talk(agent, INES)

    talk.say("Send 50 euros to Ana Costa")
    corrected = talk.say("No wait, take it from savings")
    assert corrected["calls"] == []
    assert arguments(corrected, "transfer_money")["from_account"] == ("savings", "customer", True)
    assert arguments(corrected, "transfer_money")["amount"][0] == 50
    assert "savings" in corrected["reply"]

    (made,) = talk.say("yes, go ahead")["calls"]
    assert made["arguments"]["from_account"] == "savings"
    assert call("get_balance", account="savings")["balance"] == 12350
    assert call("get_balance")["balance"] == 2481.37


def test_another_amount_is_asked_about_anew(agent: Agent) -> None:
    talk = Talk(agent, INES)

    talk.say("Send 50 euros to Ana Costa")
    changed = talk.say("make it 40")
    assert arguments(changed, "transfer_money")["amount"] == (40, "customer", True)
    assert arguments(changed, "transfer_money")["payee"][0] == "Ana Costa"

    (made,) = talk.say("ok")["calls"]
    assert made["arguments"]["amount"] == 40


def test_a_transfer_that_was_declined_moves_nothing(agent: Agent) -> None:
    talk = Talk(agent, INES)

    talk.say("Send 50 euros to Ana Costa")
    told = talk.say("No, leave it")

    assert told["calls"] == []
    assert "not" in told["reply"]
    assert call("get_balance")["balance"] == 2481.37
    assert talk.say("yes")["calls"] == []


def test_a_part_of_a_payees_name_will_do(agent: Agent) -> None:
    told = Talk(agent, INES).say("Send 20 euros to Ana")

    assert arguments(told, "transfer_money")["payee"][0] == "Ana Costa"


def test_a_person_takes_over_and_no_turn_runs_after(agent: Agent) -> None:
    talk = Talk(agent, INES)

    told = talk.say("Can I talk to a human?")

    assert told["calls"][0]["state"] == "done"
    session = Session.objects.latest("pk")
    assert session.mode == Session.Mode.MANUAL
    assert send_message(session, text="Is anybody there?") is None


def test_the_legal_notice_is_given_word_for_word(agent: Agent) -> None:
    told = Talk(agent, INES).say("Is my money safe with you?")

    assert told["reply"] == agent.canned_responses.get(uid="deposit-notice").text
    assert [call["question"] for call in told["model_calls"]][-1] == "ChooseResponse"


def test_an_unclear_rate_is_asked_about(agent: Agent) -> None:
    told = Talk(agent, INES).say("What is your rate?")

    assert "which-rate" in matched(told)
    assert "exchange" in told["reply"]
    assert "savings" in told["reply"]
    assert told["calls"] == []


def test_the_branch_is_the_customers_own_unless_another_is_named(agent: Agent) -> None:
    talk = Talk(agent, MIRA)

    own = talk.say("Are you open on Saturday?")
    assert arguments(own, "branch_hours")["city"] == ("Rotterdam", "variable", True)
    assert "10:00–14:00" in own["reply"]

    other = talk.say("And in Hamburg?")
    assert arguments(other, "branch_hours")["city"] == ("Hamburg", "customer", True)
    assert "10:00–13:00" in other["reply"]


def test_somebody_unknown_gets_no_data(agent: Agent) -> None:
    told = Talk(agent, "").say("What is my balance?")

    (made,) = told["calls"]
    assert made["error"]["kind"] == "not_allowed"
    assert "no customer is identified" in told["reply"]
    assert not re.search(r"\d", told["reply"])


@pytest.mark.parametrize(
    ("message", "guideline", "says"),
    [
        ("Hello", "greeting", "Hello"),
        ("How much did I spend on groceries?", "transactions", "265.24"),
        ("What's the exchange rate for the dollar?", "exchange-rate", "1.0842"),
        ("Whom can I send money to?", "payees", "Tagus Homes"),
        ("Can I talk to a human?", "human", "0800 555 0142"),
        ("This is outrageous! I have been waiting for weeks", "complaint", "sorry"),
        ("Is there a fee for withdrawing cash abroad?", "fees", "1.75"),
        ("bye", "goodbye", "good day"),
    ],
)
def test_every_other_guideline_has_its_conversation(
    agent: Agent, message: str, guideline: str, says: str
) -> None:
    told = Talk(agent, INES).say(message)

    assert matched(told) == {guideline}
    assert says in told["reply"]


@pytest.mark.parametrize(
    "message", ["Can I get a mortgage for a house?", "Tell me a joke", "asdf qwer"]
)
def test_what_no_guideline_covers_runs_nothing(agent: Agent, message: str) -> None:
    told = Talk(agent, INES).say(message)

    assert matched(told) == set()
    assert told["calls"] == []
    assert "cannot help" in told["reply"]
