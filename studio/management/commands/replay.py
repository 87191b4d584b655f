"""`manage.py replay SESSION --against draft`: a recorded session played again, here and now, without a worker."""

from argparse import ArgumentParser
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError

from engine.replaying import Difference
from studio.bridge import agent_spec
from studio.difference_words import Names, sentence
from studio.ledger_text import printable
from studio.models import Replay, ReplayedTurn, Session, Variant
from studio.operations import lanes
from studio.operations.replays import CREW, ReplayRefusedError, start_replay

USAGE = 2  # exit code; 1 is for turns that changed, failed or could not be replayed
_FINE = (ReplayedTurn.Verdict.SAME, ReplayedTurn.Verdict.ACCEPTED)


class Command(BaseCommand):
    help = (
        "Replay a recorded session and print what differs, turn by turn. Exit code 0: nothing that is not accepted; "
        "1: a turn changed, failed or could not be replayed; 2: it could not be begun."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("session", type=int, help="the session's number")
        parser.add_argument(
            "--against",
            default="draft",
            metavar="VERSION",
            help="draft (the default), published, or a number",
        )
        parser.add_argument(
            "--live-model", action="store_true", help="ask the model anew; else the record answers"
        )
        parser.add_argument(
            "--live-tools",
            action="store_true",
            help="run tools, but none that changes something; else the record answers",
        )
        parser.add_argument(
            "--until-it-differs",
            action="store_true",
            help="ask the model where the record has no answer",
        )
        parser.add_argument(
            "--free",
            action="store_true",
            help="each turn on what the replay itself has said, not on the record",
        )
        parser.add_argument("--variant", type=int, metavar="NUMBER", help="an edited recording")
        parser.add_argument(
            "--cap", type=int, default=0, metavar="TOKENS", help="stop there; 0 for no cap"
        )

    def handle(self, *_args: Any, **options: Any) -> None:
        replay = _started(options)
        threads = min(settings.STUDIO_WORKER_THREADS, replay.total)
        lanes.play_here(CREW, replay, threads=threads, watch=lambda: None)
        replay.refresh_from_db()
        if replay.error:
            raise CommandError(replay.error, returncode=1)
        cells = list(
            replay.turns.select_related("turn__version")
            .defer("turn__version__spec", "turn__checkpoint")
            .order_by("number")
        )
        for cell in cells:
            self._tell(replay, cell)
        if replay.capped:
            raise CommandError("Stopped at its cap; not all turns were played.", returncode=1)
        other = sum(cell.verdict not in _FINE for cell in cells)
        if other:
            raise CommandError(f"{other} of {len(cells)} turns are not the same.", returncode=1)
        self.stdout.write(f"{len(cells)} turns: no difference that is not accepted.")

    def _tell(self, replay: Replay, cell: ReplayedTurn) -> None:
        verdict = str(cell.get_verdict_display() or "Not played").lower()
        self.stdout.write(f"turn {cell.number}: {verdict}")
        if cell.reason:
            self.stdout.write(printable(f"  {cell.reason}"))
        assert cell.turn.version is not None  # noqa: S101 - turns without one are not replayed
        names = Names(before=agent_spec(cell.turn.version), after=agent_spec(replay.version))
        for each in cell.differences:
            self.stdout.write(printable(f"  - {sentence(Difference.read(each), names)}"))


def _started(options: dict[str, Any]) -> Replay:
    session = Session.objects.select_related("agent", "connection").filter(pk=options["session"])
    row = session.first()
    if row is None:
        raise CommandError(f"There is no session {options['session']}.", returncode=USAGE)
    if options["live_model"] and options["until_it_differs"]:
        raise CommandError("Choose one of --live-model and --until-it-differs.", returncode=USAGE)
    if options["cap"] < 0:
        raise CommandError("--cap is a number of tokens, or 0.", returncode=USAGE)
    live = Replay.Model.LIVE if options["live_model"] else Replay.Model.RECORDED
    tools = Replay.Tools.LIVE if options["live_tools"] else Replay.Tools.RECORDED
    try:
        return start_replay(
            [row],
            against=options["against"],
            model=live,
            tools=tools,
            until_it_differs=options["until_it_differs"],
            free_running=options["free"],
            variant=_variant(row, options["variant"]),
            cap=options["cap"],
            by="replay",
            enqueue=False,
        )
    except ReplayRefusedError as refusal:
        raise CommandError(str(refusal), returncode=USAGE) from refusal


def _variant(session: Session, number: int | None) -> Variant | None:
    if number is None:
        return None
    row = session.variants.filter(pk=number).first()
    if row is None:
        raise CommandError(f"The session has no variant {number}.", returncode=USAGE)
    return row
