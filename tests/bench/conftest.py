"""For the benchmarks: what they measure is told as one table, beside the budgets, on the terminal and in Markdown."""

from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.django_setup import adapt_settings, choose_settings

TABLE = Path(__file__).resolve().parents[2] / "test-results" / "bench.md"

choose_settings()


class Figure(NamedTuple):
    what: str
    measured: str
    budget: str
    peer: str


FIGURES = pytest.StashKey[list[Figure]]()


def pytest_configure(config: pytest.Config) -> None:
    adapt_settings()
    config.stash[FIGURES] = []


@pytest.fixture
def figure(pytestconfig: pytest.Config) -> Callable[..., None]:
    """`figure(what, measured, budget="", peer="")`, each as people read it, units included."""
    figures = pytestconfig.stash[FIGURES]

    def add(what: str, measured: str, *, budget: str = "", peer: str = "") -> None:
        figures.append(Figure(what, measured, budget, peer))

    return add


def pytest_terminal_summary(
    terminalreporter: pytest.TerminalReporter, config: pytest.Config
) -> None:
    figures = config.stash[FIGURES]
    if not figures:
        return
    rows = [Figure("what", "measured", "budget", "peer"), *figures]
    widths = [max(len(row[column]) for row in rows) for column in range(4)]
    lines = [
        "| " + " | ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) + " |"
        for row in rows
    ]
    lines.insert(1, "|" + "|".join("-" * (width + 2) for width in widths) + "|")
    TABLE.parent.mkdir(exist_ok=True)
    TABLE.write_text("\n".join(lines) + "\n", encoding="utf-8")
    terminalreporter.section("figures beside budgets")
    for line in lines:
        terminalreporter.write_line(line)
