"""`manage.py chat AGENT`: a conversation in the terminal, with the ledger of each turn.

The turns run in this process, through the same machinery as in a worker; neither a worker nor a queue is needed.
"""

import shutil
import sys
import threading
import time
from argparse import ArgumentParser
from collections.abc import Iterator
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser, OutputWrapper
from django.db import OperationalError, ProgrammingError, connections

from studio.audit import audit
from studio.ledger_text import ledger_text, printable
from studio.models import Agent, Customer, Event, Session, Turn
from studio.operations.sessions import SessionError, open_session, version_choice
from studio.operations.turns import (
    MessageRefusedError,
    TurnNotOverError,
    TurnNotRetriableError,
    retry_turn,
    run_turn,
    send_message,
    stop_turn,
)
from studio.views.conversation import busy_words

LOOK = 0.03  # seconds between two looks for new pieces of a reply
MOST_NAMED = 20
CLEAR_LINE = "\r\x1b[K"
RETRY = "/retry"
QUIT = "/quit"


class Command(BaseCommand):
    help = "Chat with an agent in the terminal; the ledger of each turn is printed after the reply."

    def create_parser(self, prog_name: str, subcommand: str, **kwargs: Any) -> CommandParser:
        # Here --version is the agent's, not Django's.
        return super().create_parser(prog_name, subcommand, conflict_handler="resolve", **kwargs)

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("agent", help="the agent's slug, such as harbor-bank")
        parser.add_argument(
            "--version",
            default="draft",
            metavar="VERSION",
            help="of the agent: draft (the default), published, or a number",
        )
        parser.add_argument("--customer", metavar="UID", help="whom the agent talks to")
        parser.add_argument(
            "--message",
            nargs="+",
            action="extend",
            metavar="TEXT",
            help="say this, one after another, and end; otherwise messages are read line by line",
        )
        parser.add_argument(
            "--all", action="store_true", help="show the guidelines that did not match as well"
        )

    def handle(self, *_args: Any, **options: Any) -> None:
        session = _open(options["agent"], options["version"], options["customer"])
        reads = options["message"] is None
        self._introduce(session, reads=reads)
        again = f"Say {RETRY}" if reads else f"Press “Try again” at /sessions/{session.pk}/"
        chat = _Chat(session, self.stdout, every=options["all"], again=again)
        try:
            for text in _said(options["message"], self.stdout):
                if text == QUIT:
                    break
                chat.say(text)
        except KeyboardInterrupt:
            self.stdout.write("")
        if not reads and chat.failed:
            raise CommandError(f"{chat.failed} of the turns failed.")

    def _introduce(self, session: Session, *, reads: bool) -> None:
        customer = session.customer.name if session.customer else "nobody known"
        parts = [session.agent.name, str(version_choice(session)), f"customer: {customer}"]
        self.stdout.write(
            f"{' · '.join(parts)} · session {session.pk}, also at /sessions/{session.pk}/"
        )
        if reads:
            self.stdout.write(f"Write a message and press Enter; {QUIT} or Ctrl-D ends.")


def _open(slug: str, version: str, customer: str | None) -> Session:
    try:
        agent = Agent.objects.select_related("published").filter(slug=slug).first()
    except (OperationalError, ProgrammingError) as error:
        raise CommandError(
            f"The database is not ready ({error}); run `manage.py bootstrap` first."
        ) from error
    if agent is None:
        raise CommandError(_unknown("agent", slug, Agent.objects.values_list("slug", flat=True)))
    known = Customer.objects.filter(uid=customer).first() if customer else None
    if customer and known is None:
        uids = Customer.objects.values_list("uid", flat=True)
        raise CommandError(_unknown("customer", customer, uids))
    try:
        return open_session(agent=agent, version=version, customer=known, title="Terminal chat")
    except SessionError as error:
        raise CommandError(str(error)) from error


def _unknown(what: str, given: str, known: Any) -> str:
    names = list(known[: MOST_NAMED + 1])
    if not names:
        hint = f"there is no {what} yet; `manage.py load_demo` brings some"
    else:
        more = " …" if len(names) > MOST_NAMED else ""
        hint = f"there are: {', '.join(names[:MOST_NAMED])}{more}"
    return f"There is no {what} {given!r}; {hint}."


def _said(messages: list[str] | None, out: OutputWrapper) -> Iterator[str]:
    """What the customer says: the given messages, or lines of the terminal or of a pipe."""
    if messages is None and sys.stdin.isatty():
        yield from _typed()
        return
    if messages is None and hasattr(sys.stdin, "reconfigure"):
        sys.stdin.reconfigure(errors="replace")
    for text in sys.stdin if messages is None else messages:
        if messages is not None or text.strip():
            out.write(printable(f"\nYou: {text.strip()}"))
            yield text.strip()


def _typed() -> Iterator[str]:
    import readline  # noqa: F401 - lets `input` edit and recall lines

    while True:
        try:
            text = input("\nYou: ").strip()
        except EOFError:
            sys.stdout.write("\n")
            return
        if text:
            yield text


class _Chat:
    """Says messages in a session and prints what comes of each."""

    def __init__(self, session: Session, out: OutputWrapper, *, every: bool, again: str) -> None:
        """`every` shows silent guidelines too; `again` says how a turn is run again."""
        self._session = session
        self._out = out
        self._every = every
        self._again = again
        self._last: Turn | None = None
        self.failed = 0

    def say(self, text: str) -> None:
        try:
            turn = self._turn_for(text)
        except (MessageRefusedError, TurnNotOverError, TurnNotRetriableError) as error:
            self._out.write(printable(str(error)))
            self.failed += 1
            return
        if turn is None:
            self._out.write("The session is in manual mode: the agent does not answer by itself.")
            return
        self._last = turn
        self._play(turn)

    def _turn_for(self, text: str) -> Turn | None:
        if text != RETRY:
            return send_message(self._session, text=text, enqueue=False)
        if self._last is None:
            raise TurnNotRetriableError("There is no turn yet that could be run again.")
        self._last.refresh_from_db()
        return retry_turn(self._last, enqueue=False)

    def _play(self, turn: Turn) -> None:
        # An event and not the thread's join, which an interrupt leaves believing that the thread has ended.
        over = threading.Event()
        screen = _Screen(self._session, self._out)
        threading.Thread(target=_run, args=[turn.pk, over], name="turn", daemon=True).start()
        try:
            _show_until(over, screen)
        except KeyboardInterrupt:
            stop_turn(turn)
            _show_until(over, screen)
            raise
        finally:
            screen.end()
            self._show_ledger(turn)

    def _show_ledger(self, turn: Turn) -> None:
        turn = Turn.objects.select_related("version").get(pk=turn.pk)
        width = min(120, shutil.get_terminal_size((100, 24)).columns)
        self._out.write("\n" + ledger_text(audit(turn), every=self._every, width=max(width, 40)))
        if turn.state in {Turn.State.FAILED, Turn.State.STOPPED}:
            self._out.write(f"  {self._again} to go on with this turn from where it got to.")
        if turn.state == Turn.State.FAILED:
            self.failed += 1


def _run(turn_id: int, over: threading.Event) -> None:
    """Run the turn here, or wait until whoever took it has."""
    try:
        while Turn.objects.unfinished().filter(pk=turn_id).exists():
            run_turn(turn_id)
            time.sleep(LOOK)
    finally:
        connections.close_all()
        over.set()


def _show_until(over: threading.Event, screen: "_Screen") -> None:
    while not over.wait(LOOK):
        screen.show_news()
    screen.show_news()


class _Screen:
    """The reply as it is written, and meanwhile in words what the turn is busy with."""

    def __init__(self, session: Session, out: OutputWrapper) -> None:
        self._session_id = session.pk
        self._name = session.agent.name
        self._out = out
        self._cursor = Session.objects.values_list("next_offset", flat=True).get(pk=session.pk) - 1
        self._shown = ""
        self._speaking = False
        self._status = False

    def show_news(self) -> None:
        events = Event.objects.filter(session=self._session_id, offset__gt=self._cursor)
        for event in events.order_by("offset"):
            self._cursor = event.offset
            text = printable(str(event.data.get("text", "")))
            if event.kind == "message.part":
                self._show_piece(text, restart=bool(event.data.get("restart")))
            elif event.kind == "message" and event.source == "agent":
                self._show_whole(text, partial=bool(event.data.get("partial")))
            elif event.kind == "status" and event.data.get("phase") not in _OVER:
                self._show_status(busy_words(event.data))
        self._out.flush()

    def _show_piece(self, text: str, *, restart: bool) -> None:
        if restart and self._shown:
            self._write("\n(begun again)")
            self._speaking, self._shown = False, ""
        self._begin()
        self._write(text)
        self._shown += text

    def _show_whole(self, text: str, *, partial: bool) -> None:
        """The pieces that are still missing, or all of it where what was shown is not its beginning."""
        if not text.startswith(self._shown):
            self._speaking, self._shown = False, ""
        self._begin()
        self._write(text[len(self._shown) :] + (" …" if partial else ""))
        self._write("\n")
        self._speaking, self._shown = False, ""

    def _begin(self) -> None:
        if not self._speaking:
            self._write(f"\n{self._name}: ")
            self._speaking = True

    def _show_status(self, words: str) -> None:
        if self._out.isatty() and not self._speaking:
            self._write(printable(words))
            self._status = True

    def _write(self, text: str) -> None:
        if self._status:
            self._out.write(CLEAR_LINE, ending="")
            self._status = False
        self._out.write(text, ending="")

    def end(self) -> None:
        self._write("\n" if self._speaking else "")
        self._speaking = False


_OVER = frozenset({"finished", "failed", "stopped", "superseded"})
