"""The demo bank's books: a small SQLite file in STUDIO_VAR, seeded from `accounts.json` on first use.

A file and not a variable, because tools run in the threads of several processes, and what was transferred or blocked
stays so after a restart. Sums are kept in cents.
"""

import json
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from functools import lru_cache
from pathlib import Path
from threading import Lock
from typing import Any

from django.conf import settings

CURRENCY = "EUR"
_SEED = Path(__file__).with_name("accounts.json")
_WAIT = 4.0  # seconds for another process; below the deadline of a fast tool
# SQLite lets those who wait sleep and guess, and may pass one over for long; threads of this process queue instead.
_turnstile = Lock()
_SCHEMA_VERSION = 1
_TABLES = (
    "CREATE TABLE account (customer TEXT, name TEXT, number TEXT, cents INTEGER, PRIMARY KEY (customer, name))",
    "CREATE TABLE card (customer TEXT, name TEXT, number TEXT, blocked_on TEXT, PRIMARY KEY (customer, name))",
    "CREATE TABLE payee (customer TEXT, name TEXT, iban TEXT, PRIMARY KEY (customer, name))",
    """CREATE TABLE movement (id INTEGER PRIMARY KEY, customer TEXT, account TEXT, booked_on TEXT,
    description TEXT, category TEXT, cents INTEGER)""",
    "CREATE INDEX movement_of ON movement (customer, account, booked_on)",
)


class NotEnoughMoneyError(Exception):
    """The account holds less than is to be taken from it; `balance` in cents."""

    def __init__(self, balance: int) -> None:
        super().__init__(f"the account holds {balance} cents")
        self.balance = balance


@dataclass(frozen=True, slots=True, kw_only=True)
class Account:
    name: str
    number: str
    cents: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Card:
    name: str
    number: str
    blocked_on: str  # ISO date, or empty


@dataclass(frozen=True, slots=True, kw_only=True)
class Payee:
    name: str
    iban: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Movement:
    booked_on: str
    description: str
    category: str
    cents: int


@lru_cache(maxsize=1)
def seed() -> dict[str, Any]:
    """`accounts.json`: rates per euro, branches, customers."""
    value: dict[str, Any] = json.loads(_SEED.read_text(encoding="utf-8"))
    return value


def is_customer(customer: str) -> bool:
    return customer in seed()["customers"]


def accounts(customer: str) -> dict[str, Account]:
    with _books() as books:
        rows = books.execute(
            "SELECT name, number, cents FROM account WHERE customer = ? ORDER BY name", [customer]
        )
        return {
            name: Account(name=name, number=number, cents=cents) for name, number, cents in rows
        }


def cards(customer: str) -> dict[str, Card]:
    with _books() as books:
        rows = books.execute(
            "SELECT name, number, blocked_on FROM card WHERE customer = ? ORDER BY name DESC",
            [customer],
        )
        return {name: Card(name=name, number=number, blocked_on=day) for name, number, day in rows}


def payees(customer: str) -> list[Payee]:
    with _books() as books:
        rows = books.execute(
            "SELECT name, iban FROM payee WHERE customer = ? ORDER BY name", [customer]
        )
        return [Payee(name=name, iban=iban) for name, iban in rows]


def movements(customer: str, account: str, since: date, until: date) -> list[Movement]:
    """Newest first, both days included."""
    with _books() as books:
        rows = books.execute(
            "SELECT booked_on, description, category, cents FROM movement "
            "WHERE customer = ? AND account = ? AND booked_on BETWEEN ? AND ? "
            "ORDER BY booked_on DESC, id DESC",
            [customer, account, since.isoformat(), until.isoformat()],
        )
        return [
            Movement(booked_on=day, description=description, category=category, cents=cents)
            for day, description, category, cents in rows
        ]


def block_card(customer: str, name: str, on: date) -> bool:
    """False where the card was blocked before."""
    with _books(write=True) as books:
        blocked = books.execute(
            "UPDATE card SET blocked_on = ? WHERE customer = ? AND name = ? AND blocked_on = ''",
            [on.isoformat(), customer, name],
        )
        return blocked.rowcount == 1


def transfer(
    customer: str, *, cents: int, account: str, to: str, note: str, on: date, own: bool = False
) -> int:
    """Take money from an account and send it to a payee, or (`own`) to another account of the customer.

    Returns the cents that are left; raises NotEnoughMoneyError and changes nothing.
    """
    with _books(write=True) as books:
        paid = books.execute(
            "UPDATE account SET cents = cents - ? WHERE customer = ? AND name = ? AND cents >= ?",
            [cents, customer, account, cents],
        )
        (left,) = books.execute(
            "SELECT cents FROM account WHERE customer = ? AND name = ?", [customer, account]
        ).fetchone()
        if paid.rowcount != 1:
            raise NotEnoughMoneyError(left)
        _book(books, customer, account, on, f"Transfer to {to}{note}", "transfer", -cents)
        if own:
            books.execute(
                "UPDATE account SET cents = cents + ? WHERE customer = ? AND name = ?",
                [cents, customer, to],
            )
            _book(books, customer, to, on, f"Transfer from {account}{note}", "transfer", cents)
        return int(left)


def reset() -> None:
    """Make the books what they were on the first day."""
    with _books(write=True) as books:
        for table in ("account", "card", "payee", "movement"):
            books.execute(f"DELETE FROM {table}")  # noqa: S608 - names of our own
        _fill(books)


@contextmanager
def _books(*, write: bool = False) -> Iterator[sqlite3.Connection]:
    """One transaction on the books. A connection each, because every call may come from another thread."""
    path = Path(settings.STUDIO_VAR) / "harbor_bank.sqlite3"
    connection = sqlite3.connect(path, timeout=_WAIT, isolation_level=None)
    with _turnstile, closing(connection):
        connection.execute("PRAGMA synchronous = NORMAL")
        if _version(connection) != _SCHEMA_VERSION:
            _set_up(connection)
        connection.execute("BEGIN IMMEDIATE" if write else "BEGIN")
        try:
            yield connection
        except BaseException:
            connection.execute("ROLLBACK")
            raise
        connection.execute("COMMIT")


def _version(connection: sqlite3.Connection) -> int:
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    return int(version)


def _set_up(connection: sqlite3.Connection) -> None:
    """Done by whoever comes first; the others wait for the lock and find it done."""
    connection.execute("BEGIN IMMEDIATE")
    try:
        if _version(connection) != _SCHEMA_VERSION:
            for table in _TABLES:
                connection.execute(table)
            _fill(connection)
            connection.execute(f"PRAGMA user_version = {_SCHEMA_VERSION}")
        connection.execute("COMMIT")
    except BaseException:
        connection.execute("ROLLBACK")
        raise


def _fill(books: sqlite3.Connection) -> None:
    """Days in the seed are counted back from today, so that "last week" finds something."""
    today = datetime.now(UTC).date()

    def day(days_ago: int | None) -> str:
        return "" if days_ago is None else (today - timedelta(days=days_ago)).isoformat()

    for customer, known in seed()["customers"].items():
        for name, account in known["accounts"].items():
            books.execute(
                "INSERT INTO account VALUES (?, ?, ?, ?)",
                [customer, name, account["number"], cents_of(Decimal(account["balance"]))],
            )
        for name, card in known["cards"].items():
            blocked_on = day(card.get("blocked_days_ago"))
            books.execute(
                "INSERT INTO card VALUES (?, ?, ?, ?)", [customer, name, card["number"], blocked_on]
            )
        for name, iban in known["payees"].items():
            books.execute("INSERT INTO payee VALUES (?, ?, ?)", [customer, name, iban])
        for item in reversed(known["transactions"]):
            booked_on = today - timedelta(days=item["days_ago"])
            cents = cents_of(Decimal(item["amount"]))
            _book(
                books,
                customer,
                item["account"],
                booked_on,
                item["description"],
                item["category"],
                cents,
            )


def _book(
    books: sqlite3.Connection,
    customer: str,
    account: str,
    on: date,
    description: str,
    category: str,
    cents: int,
) -> None:
    books.execute(
        "INSERT INTO movement (customer, account, booked_on, description, category, cents) "
        "VALUES (?, ?, ?, ?, ?, ?)",
        [customer, account, on.isoformat(), description, category, cents],
    )


def cents_of(amount: Decimal) -> int:
    """Raises ValueError for fractions of a cent."""
    cents = amount * 100
    if cents != cents.to_integral_value():
        raise ValueError(f"{amount} is no whole number of cents")
    return int(cents)


def amount_of(cents: int) -> int | float:
    """Euros as a JSON number: 2481.37, and 2500 for a whole sum."""
    whole, rest = divmod(cents, 100)
    return cents / 100 if rest else whole
