"""What an import does to each row, and what is wrong with it."""

from dataclasses import dataclass, field
from enum import StrEnum


class Change(StrEnum):
    """What the import does to a row."""

    CREATE = "create"
    UPDATE = "update"
    UNCHANGED = "unchanged"
    DELETE = "delete"
    ERROR = "error"


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """What is wrong, and where: `guidelines[0].tools[2]` is the third tool of the first guideline."""

    place: str
    message: str


@dataclass(slots=True, kw_only=True)
class ReportRow:
    """What becomes of the agent, or of one item of a list; `place` is empty for one that the document no longer has."""

    place: str
    uid: str = ""
    title: str = ""
    change: Change = Change.UNCHANGED
    problems: list[Problem] = field(default_factory=list)

    def wrong(self, where: str, message: object) -> None:
        """`where` is the field of the row; empty for what concerns several."""
        place = where if self.place == "agent" else f"{self.place}.{where}".rstrip(".")
        self.problems.append(Problem(place=place or self.place, message=str(message)))

    def settle(self, *, new: bool, same: bool) -> None:
        if self.problems:
            self.change = Change.ERROR
        elif new:
            self.change = Change.CREATE
        else:
            self.change = Change.UNCHANGED if same else Change.UPDATE


@dataclass(slots=True, kw_only=True)
class Report:
    slug: str
    rows: list[ReportRow]

    @property
    def problems(self) -> list[Problem]:
        return [problem for row in self.rows for problem in row.problems]

    @property
    def changed(self) -> bool:
        return any(row.change is not Change.UNCHANGED for row in self.rows)


class DocumentError(Exception):
    """The document cannot be imported, and nothing was changed; `report` says why, row by row."""

    def __init__(self, report: Report) -> None:
        super().__init__("\n".join(f"{p.place}: {p.message}" for p in report.problems))
        self.report = report
