"""The scenario of the budgets: the customer asks for the balance; one guideline matches and owns `fetch_balance`; the
tool runs; one guideline marked for re-evaluation then matches; the reply is written. And the model that plays its part.
"""

import json
import re
from typing import Any

from engine.spec import Agent, Guideline, Tool, ToolParameter
from engine.tools.base import ToolContext
from engine.tools.function import tool

BALANCE = "the customer asks for the balance of an account"
LOW = "the balance is below 200 euros"
MESSAGE = "What is the balance of my checking account?"

_SUBJECTS = (
    "a lost parcel", "the opening hours", "a refund", "an invoice", "the delivery date", "a discount",
    "a broken screen", "the size of a shoe", "a password", "a subscription", "the weather", "a recipe",
    "a train ticket", "a hotel room", "an insurance claim", "a school form", "a library card", "a dentist",
)  # fmt: skip


@tool(name="fetch_balance", uid="bench-fetch-balance")
def fetch_balance(_context: ToolContext, account: str) -> dict[str, Any]:
    """The balance of one of the customer's accounts."""
    return {"account": account, "balance": 162.6, "currency": "EUR"}


def filler(count: int) -> list[tuple[str, str]]:
    """(condition, action) of guidelines that have nothing to do with the scenario."""
    found = []
    for number in range(count):
        subject = _SUBJECTS[number % len(_SUBJECTS)]
        found.append(
            (
                f"the customer asks a question of kind {number} about {subject}",
                f"explain {subject} in one sentence and offer help with case {number}",
            )
        )
    return found


def agent(guidelines: int) -> Agent:
    """An agent of so many guidelines, the two of the scenario among them."""
    others = [
        Guideline(uid=f"g{number}", condition=condition, action=action)
        for number, (condition, action) in enumerate(filler(guidelines - 2))
    ]
    return Agent(
        slug="bench",
        name="Bench",
        description="A brief assistant.",
        guidelines=(
            Guideline(uid="balance", condition=BALANCE, action="tell it", tools=("fetch_balance",)),
            Guideline(
                uid="low", condition=LOW, action="warn them", reevaluate_after=("fetch_balance",)
            ),
            *others,
        ),
        tools=(
            Tool(
                uid="bench-fetch-balance",
                name="fetch_balance",
                description="The balance of one of the customer's accounts.",
                parameters=(ToolParameter(name="account", schema={"type": "string"}),),
            ),
        ),
    )


def document(slug: str, guidelines: int) -> dict[str, Any]:
    """The same agent as a document that the API imports."""
    rows: list[dict[str, Any]] = [
        {"uid": "balance", "condition": BALANCE, "action": "tell it", "tools": ["fetch_balance"]},
        {
            "uid": "low",
            "condition": LOW,
            "action": "warn them",
            "reevaluate_after": ["fetch_balance"],
        },
    ]
    rows += [
        {"uid": f"g{number}", "condition": condition, "action": action}
        for number, (condition, action) in enumerate(filler(guidelines - 2))
    ]
    return {
        "schema_version": 1,
        "slug": slug,
        "name": slug,
        "tools": ["fetch_balance"],
        "guidelines": rows,
    }


_LISTED = re.compile(r'^\{"id": "(G\d+)", "when": "([^"]*)"', re.MULTILINE)


def answer(body: dict[str, Any]) -> dict[str, Any]:
    """What a model that plays the scenario answers to a chat completion request."""
    system, conversation = (message["content"] for message in body["messages"])
    match body["response_format"]["json_schema"]["name"]:
        case "MatchGuidelines":
            newest = conversation.rsplit('{"customer": ', 1)[-1]
            asked = {BALANCE} if "balance" in newest else set()
            applying = {LOW} if '"tool": "fetch_balance"' in newest else asked
            return {
                "newest": "asks for the balance",
                "judgements": [
                    {"guideline": label, "because": "It says so.", "applies": when in applying}
                    for label, when in _LISTED.findall(system)
                ],
            }
        case "InferToolCalls":
            account = {"evidence": "checking", "source": "customer", "value": "checking"}
            return {
                "because": "The balance is asked for.",
                "decision": "NEEDS_TO_RUN",
                "calls": [{"account": account}],
            }
        case "ComposeReply":
            # Not simply the last line: a server that takes no schema finds it told behind the conversation.
            briefed = [line for line in conversation.splitlines() if line.startswith('{"briefing"')]
            briefing = json.loads(briefed[-1])["briefing"]
            told = briefing["guidelines"]  # a sentence where none applies
            labels = [guideline["id"] for guideline in told if isinstance(guideline, dict)]
            return {
                "reply": "Your checking account holds 162.60 euros, which is a little low.",
                "follows": [{"guideline": label, "follows": True} for label in labels],
            }
        case other:
            raise AssertionError(other)
