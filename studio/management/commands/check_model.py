"""`manage.py check_model [CONNECTION]`: how well a model judges guidelines, reads arguments and confirmations."""

import json
from argparse import ArgumentParser
from typing import Any

from asgiref.sync import async_to_sync
from django.core.management.base import BaseCommand, CommandError

from engine.errors import SpecError
from engine.model.base import ChatModel
from engine.model.check import Answered, Ended, Finding, Kind, Report, Row, check, report, way
from engine.model.retrying import RetryingModel
from studio.connecting import Endpoint, new_client
from studio.models import ModelConnection

MOST_SHOWN = 200  # characters of a text


class Command(BaseCommand):
    help = (
        "Ask a model a labelled set of questions and say how often it was right, and how to ask it. "
        "The exit code is 1 where nothing can be proposed."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument(
            "connection",
            nargs="?",
            help="its name or number; otherwise the default connection, the environment's model, or the offline model",
        )
        parser.add_argument("--json", action="store_true", help="print the whole report as JSON")
        parser.add_argument(
            "--at-once",
            type=int,
            default=1,
            metavar="N",
            help="questions on their way at a time (1; more for large servers)",
        )

    def handle(self, *_args: Any, **options: Any) -> None:
        if options["at_once"] < 1:
            raise CommandError("--at-once takes a number from 1 on.")
        endpoint = _endpoint(options["connection"])
        quiet = options["json"] or options["verbosity"] < 1
        try:
            found = async_to_sync(self._check)(endpoint, options["at_once"], quiet=quiet)
        except SpecError as error:
            raise CommandError(str(error)) from error
        if options["json"]:
            self.stdout.write(json.dumps(found.to_json(), ensure_ascii=False, indent=2))
        else:
            self.stdout.write("\n".join(_lines(found)))
        if found.proposal is None:
            raise CommandError(found.ended or "Nothing can be proposed.")

    async def _check(self, endpoint: Endpoint | None, at_once: int, *, quiet: bool) -> Report:
        if endpoint is None:
            from engine.model.offline import OfflineModel

            return await self._asked(OfflineModel(), at_once, quiet=quiet)
        client = new_client(endpoint)
        try:
            model = RetryingModel(client, attempts=2, deadline=endpoint.timeout)
            return await self._asked(model, at_once, quiet=quiet)
        finally:
            await client.aclose()

    async def _asked(self, model: ChatModel, at_once: int, *, quiet: bool) -> Report:
        told: list[Answered | Ended] = []
        if not quiet:
            self.stderr.write(f"Checking {model.name}. This may take some minutes.")
        async for each in check(model, at_once=at_once):
            told.append(each)
            if not quiet and self.stderr.isatty():
                self.stderr.write(f"\r{len(told)} questions", ending="")
                self.stderr.flush()
        if not quiet and self.stderr.isatty():
            self.stderr.write("")
        return report(told)


def _endpoint(named: str | None) -> Endpoint | None:
    """None for the offline model."""
    rows = ModelConnection.objects.all()
    if named is None:
        row = rows.filter(is_default=True).first()
        return Endpoint.of(row, row.model) if row else Endpoint.of_environment()
    row = rows.filter(name=named).first()
    if row is None and named.isdecimal():
        row = rows.filter(pk=int(named)).first()
    if row is None:
        known = ", ".join(repr(name) for name in rows.values_list("name", flat=True)) or "none"
        raise CommandError(f"There is no connection {named!r}. There are: {known}.")
    return Endpoint.of(row, row.model)


def title(row: Row) -> str:
    """What a row counts, in words."""
    if row.setting.kind is not Kind.GUIDELINES:
        return row.setting.kind.value
    return f"guidelines {way(row.setting)}"


def _lines(found: Report) -> list[str]:
    head = ("", "right", "missed", "too many", "errors", "questions", "s each", "tokens in", "out")
    table = [head, *(_cells(row) for row in found.rows)]
    widths = [max(len(line[place]) for line in table) for place in range(len(head))]
    lines = [
        "  ".join(
            cell.ljust(width) if place == 0 else cell.rjust(width)
            for place, (cell, width) in enumerate(zip(line, widths, strict=True))
        ).rstrip()
        for line in table
    ]
    for row in found.rows:
        if row.wrong:
            lines += ["", f"Wrong, {title(row)}:", *map(_wrong, row.wrong)]
        if row.ended:
            lines += ["", f"Ended early, {title(row)}: {row.ended}"]
    if found.ended:
        lines += ["", f"Ended early: {found.ended}"]
    if found.proposal is not None:
        proposal = found.proposal
        lines += [
            "",
            f"Proposal: batch size {proposal.batch_size}, {proposal.style.value}. {proposal.because}",
        ]
        if proposal.warning:
            lines.append(proposal.warning)
    return lines


def _cells(row: Row) -> tuple[str, ...]:
    judged = row.setting.kind is Kind.GUIDELINES
    return (
        title(row),
        f"{row.right} of {row.cases}",
        str(row.missed) if judged else "",
        str(row.overmatched) if judged else "",
        str(row.errors),
        str(row.questions),
        f"{row.each:.1f}",
        str(row.prompt_tokens),
        str(row.completion_tokens),
    )


def _wrong(finding: Finding) -> str:
    score = "" if finding.score is None else f" (scored {finding.score:.2f})"
    because = f": {finding.because}" if finding.because else ""
    text = f"{finding.about}: expected {finding.expected}, got {finding.got}{score}{because}"
    line = " ".join(text.split())
    shown = line if len(line) <= 2 * MOST_SHOWN else line[: 2 * MOST_SHOWN - 1] + "…"
    return f"  - {shown}"
