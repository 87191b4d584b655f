"""The demo bank's tools. Whose data they show is the session's customer, never whom the customer says to be."""

import re
import unicodedata
from collections.abc import Iterable
from datetime import date, datetime, timedelta
from decimal import ROUND_HALF_EVEN, Decimal
from typing import Annotated, Literal, TypeAlias

from pydantic import Field

from engine.canonical import JsonObject
from engine.errors import ToolError, ToolErrorKind, ToolFailure
from engine.events import Mode
from engine.tools.base import Control, ToolContext, ToolResult
from engine.tools.builtin.get_datetime import default_zone
from engine.tools.function import tool
from engine.tools.parameters import ToolParameterOptions
from studio.demo import data

AccountName: TypeAlias = Literal["checking", "savings"]
Currency: TypeAlias = Literal[
    "EUR", "USD", "GBP", "CHF", "JPY", "SEK", "NOK", "DKK", "PLN", "CZK", "CAD", "AUD"
]
City: TypeAlias = Literal["Antwerp", "Hamburg", "Lisbon", "Rotterdam"]

_DAYS_SHOWN = 30
_MOST_SHOWN = 25
_MOST_SENT = 10_000
_CENT = Decimal("0.01")


@tool
def get_balance(
    context: ToolContext,
    account: Annotated[
        AccountName,
        ToolParameterOptions(
            description="Which account is asked about; checking is the one for everyday payments"
        ),
    ] = "checking",
) -> JsonObject:
    """Tells how much money is on one of the customer's accounts right now."""
    found = _account(context, account)
    return {
        "account": found.name,
        "balance": data.amount_of(found.cents),
        "currency": data.CURRENCY,
        "account_number": found.number,
    }


@tool
def list_transactions(
    context: ToolContext,
    account: Annotated[
        AccountName, ToolParameterOptions(description="Whose transactions: of checking or savings")
    ] = "checking",
    since: Annotated[
        date | None,
        ToolParameterOptions(
            description="First day, if a period is asked about; otherwise the last 30 days are shown",
            display_name="first day",
            examples=("2026-03-01",),
        ),
    ] = None,
    until: Annotated[
        date | None,
        ToolParameterOptions(
            description="Last day, if a period is asked about",
            display_name="last day",
            examples=("2026-03-31",),
        ),
    ] = None,
    about: Annotated[
        str | None,
        ToolParameterOptions(
            description="Only transactions of this shop, person or kind of spending",
            display_name="shop or kind of spending",
            examples=("groceries", "rent", "restaurants"),
        ),
    ] = None,
) -> JsonObject:
    """Lists booked payments of an account, newest first, with the total that was spent and received.

    Without dates it covers the last 30 days.
    """
    found = _account(context, account)
    last = until or _today(context)
    first = since or last - timedelta(days=_DAYS_SHOWN)
    if first > last:
        raise _refused(f"the first day, {first}, lies after the last day, {last}")
    booked = data.movements(context.customer_id, found.name, first, last)
    chosen = _about(booked, about) if about else booked
    return {
        "account": found.name,
        "from": first,
        "until": last,
        **({"about": about} if about else {}),
        "number_of_transactions": len(chosen),
        "total_spent": data.amount_of(-sum(item.cents for item in chosen if item.cents < 0)),
        "total_received": data.amount_of(sum(item.cents for item in chosen if item.cents > 0)),
        "currency": data.CURRENCY,
        "transactions": [
            {
                "date": item.booked_on,
                "description": item.description,
                "amount": data.amount_of(item.cents),
            }
            for item in chosen[:_MOST_SHOWN]
        ],
    }


@tool
def get_exchange_rate(
    context: ToolContext,  # noqa: ARG001 - every tool takes it
    to_currency: Annotated[
        Currency,
        ToolParameterOptions(
            description="The currency whose rate is asked for", display_name="currency"
        ),
    ],
    from_currency: Annotated[
        Currency, ToolParameterOptions(description="The currency that it is compared with")
    ] = "EUR",
) -> JsonObject:
    """Tells today's exchange rate between two currencies."""
    return {
        "from_currency": from_currency,
        "to_currency": to_currency,
        "rate": _number(_rate(from_currency, to_currency).quantize(Decimal("0.0001"))),
    }


@tool
def convert_money(
    context: ToolContext,  # noqa: ARG001 - every tool takes it
    amount: Annotated[
        Decimal,
        Field(ge=0),
        ToolParameterOptions(
            description="How much money is to be converted",
            significance="to work out what it is in the other currency",
            examples=(250, 19.99),
        ),
    ],
    to_currency: Annotated[
        Currency,
        ToolParameterOptions(
            description="The currency to convert the amount to", display_name="currency"
        ),
    ],
    from_currency: Annotated[
        Currency, ToolParameterOptions(description="The currency that the amount is in")
    ] = "EUR",
) -> JsonObject:
    """Works out what an amount of money is in another currency at today's rate."""
    rate = _rate(from_currency, to_currency)
    return {
        "converted_amount": _number((amount * rate).quantize(_CENT, ROUND_HALF_EVEN)),
        "currency": to_currency,
        "converted_from": f"{amount:,.2f} {from_currency}",
        "rate": _number(rate.quantize(Decimal("0.0001"))),
    }


@tool
def branch_hours(
    context: ToolContext,  # noqa: ARG001 - every tool takes it
    city: Annotated[
        City,
        ToolParameterOptions(
            description="The city of the branch; the customer's own where no other is named",
            significance="because each branch has its own hours",
        ),
    ],
) -> JsonObject:
    """Tells the address and the opening hours of the bank's branch in a city."""
    branch = data.seed()["branches"][city]
    return {"city": city, "address": branch["address"], "opening_hours": branch["hours"]}


@tool(consequential=True)
def block_card(
    context: ToolContext,
    card: Annotated[
        Literal["debit card", "credit card"],
        ToolParameterOptions(
            description="Which of the cards is to be blocked",
            source="customer",
            significance="so that the right card is blocked and the other one goes on working",
            display_name="card",
        ),
    ],
) -> JsonObject:
    """Blocks a card for good, at once, and orders a new one to the customer's address."""
    held = data.cards(_customer(context))
    if card not in held:
        raise _refused(f"there is no {card}")
    number = held[card].number
    if not data.block_card(context.customer_id, card, _today(context)):
        blocked_on = data.cards(context.customer_id)[card].blocked_on
        return {
            "card": f"{card} {number}",
            "status": "was blocked already",
            "blocked_on": blocked_on,
        }
    return {
        "card": f"{card} {number}",
        "status": "blocked",
        "new_card": "ordered; it arrives by post within 5 working days",
    }


@tool
def list_payees(context: ToolContext) -> JsonObject:
    """Lists the people and companies that the customer has saved to send money to."""
    saved = data.payees(_customer(context))
    return {"payees": [{"name": payee.name, "account_number": payee.iban} for payee in saved]}


def payees_of(context: ToolContext) -> list[str]:
    """Whom the customer can send money to: saved payees, and their own accounts."""
    customer = _customer(context)
    return [*(payee.name for payee in data.payees(customer)), *data.accounts(customer)]


@tool(consequential=True)
def transfer_money(
    context: ToolContext,
    amount: Annotated[
        Decimal,
        Field(gt=0, le=_MOST_SENT),
        ToolParameterOptions(
            description="How many euros to send",
            source="customer",
            significance="to know how much to send",
            examples=(50, 120.5),
        ),
    ],
    payee: Annotated[
        str,
        ToolParameterOptions(
            description="Who receives the money: a saved payee, or the customer's other account",
            significance="to know who receives it",
            choice_provider=payees_of,
        ),
    ],
    from_account: Annotated[
        AccountName, ToolParameterOptions(description="The account that the money is taken from")
    ] = "checking",
    reference: Annotated[
        str,
        ToolParameterOptions(description="A few words for the receiver, if the customer gives any"),
    ] = "",
) -> JsonObject:
    """Sends euros from the customer's account to a saved payee, or to the customer's other account."""
    cents = _cents(amount)
    source = _account(context, from_account)
    receiver, own = _receiver(context, payee, source.name)
    note = f" ({reference.strip()})" if reference.strip() else ""
    try:
        left = data.transfer(
            context.customer_id,
            cents=cents,
            account=source.name,
            to=receiver,
            note=note,
            on=_today(context),
            own=own,
        )
    except data.NotEnoughMoneyError as error:
        held = f"{error.balance / 100:,.2f} {data.CURRENCY}"
        raise _refused(f"the {source.name} account holds only {held}") from error
    return {
        "status": "sent",
        "amount": data.amount_of(cents),
        "currency": data.CURRENCY,
        "payee": f"own {receiver} account" if own else receiver,
        "from_account": source.name,
        "balance_left": data.amount_of(left),
    }


@tool
def hand_over_to_person(
    context: ToolContext,
    topic: Annotated[
        str | None,
        ToolParameterOptions(
            description="What the customer wants to talk about, in a few words, where they say it",
            hidden=True,
        ),
    ] = None,
) -> ToolResult:
    """Hands the conversation over to a colleague of the bank, who answers from then on."""
    return ToolResult(
        data="A colleague of customer care goes on with the conversation.",
        metadata={"team": "customer care", "customer": context.customer_id, "topic": topic or ""},
        control=Control(mode=Mode.MANUAL),
    )


# --- What the tools have in common -----------------------------------------------------------------------------------


def _refused(reason: str) -> ToolFailure:
    return ToolFailure(ToolError(kind=ToolErrorKind.NOT_ALLOWED, public=reason, detail=reason))


def _customer(context: ToolContext) -> str:
    if not data.is_customer(context.customer_id):
        raise _refused(
            "no customer is identified in this conversation; accounts and cards need somebody who has signed in"
        )
    return context.customer_id


def _account(context: ToolContext, name: str) -> data.Account:
    held = data.accounts(_customer(context))
    if name not in held:
        raise _refused(f"there is no {name} account, only {' and '.join(held)}")
    return held[name]


def _today(context: ToolContext) -> date:
    return datetime.now(default_zone(context)).date()


def _rate(from_currency: str, to_currency: str) -> Decimal:
    if from_currency == to_currency:
        raise _refused(f"both currencies are {to_currency}; name the other one")
    rates = {data.CURRENCY: "1", **data.seed()["rates"]}
    return Decimal(rates[to_currency]) / Decimal(rates[from_currency])


def _number(value: Decimal) -> int | float:
    return int(value) if value == value.to_integral_value() else float(value)


def _cents(amount: Decimal) -> int:
    try:
        return data.cents_of(amount)
    except ValueError as error:
        raise _refused(f"{amount} is no whole number of cents") from error


def _about(booked: Iterable[data.Movement], about: str) -> list[data.Movement]:
    """Those that speak of it; by any of its words where none has them all."""
    wanted = _words(about)
    texts = [(item, _words(f"{item.description} {item.category}")) for item in booked]
    return [item for item, words in texts if wanted <= words] or [
        item for item, words in texts if wanted & words
    ]


def _words(text: str) -> set[str]:
    """Its words without accents and plural endings."""
    return {word.rstrip("s") for word in re.findall(r"\w{3,}", _folded(text))}


def _folded(text: str) -> str:
    decomposed = unicodedata.normalize("NFKD", text.casefold())
    return "".join(char for char in decomposed if not unicodedata.combining(char)).strip()


def _receiver(context: ToolContext, payee: str, source: str) -> tuple[str, bool]:
    """The saved payee meant, or (True) an account of the customer's own. A part of a name will do if it is unique."""
    saved = [known.name for known in data.payees(context.customer_id)]
    exact = [name for name in saved if _folded(name) == _folded(payee)]
    found = exact or [name for name in saved if _words(payee) and _words(payee) <= _words(name)]
    if len(found) == 1:
        return found[0], False
    if found:
        raise _refused(f"several payees are called {payee!r}: {', '.join(found)}")
    own = {_folded(name): name for name in data.accounts(context.customer_id)}
    named = [name for folded, name in own.items() if re.search(rf"\b{folded}\b", _folded(payee))]
    if not named:
        raise _refused(f"{payee!r} is no saved payee; saved are {', '.join(saved)}")
    if named == [source]:
        raise _refused(f"the money is on the {source} account already")
    return named[0], True
