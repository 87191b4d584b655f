"""What came of a check: how often right, and how to ask this model about guidelines."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache

from pydantic import TypeAdapter

from engine.canonical import JsonObject
from engine.model.base import JudgingStyle
from engine.model.check.running import Answered, Ended, Finding, Kind, Setting, Told, plan

SLACK = 0.025
"""Share of the cases by which two ways of asking may differ and still count as equally right."""

_POOR = 0.8


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One way of asking, counted: `cases` of the whole setting, in `total` questions; seconds in all, not each."""

    setting: Setting
    cases: int
    total: int
    asked: int = 0
    right: int = 0
    missed: int = 0
    overmatched: int = 0
    questions: int = 0
    errors: int = 0
    seconds: float = 0.0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    scores: int = 0  # verdicts that came with a probability
    wrong: tuple[Finding, ...] = ()
    ended: str = ""  # why it was given up

    @property
    def complete(self) -> bool:
        return self.asked == self.cases

    @property
    def share(self) -> float:
        """Of the cases, how many were judged right (0 to 1)."""
        return self.right / self.cases if self.cases else 0.0

    @property
    def each(self) -> float:
        """Seconds for a question."""
        return self.seconds / self.questions if self.questions else 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Proposal:
    """How to ask this model about guidelines, and why; `warning` where even that is often wrong."""

    style: JudgingStyle
    batch_size: int
    because: str
    warning: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """A check, counted; `ended` says why it ended early."""

    rows: tuple[Row, ...]
    proposal: Proposal | None = None
    ended: str = ""
    schema_version: int = 1

    def to_json(self) -> JsonObject:
        value: JsonObject = _adapter().dump_python(self, mode="json")
        return value

    @staticmethod
    def from_json(value: JsonObject) -> "Report":
        """Raises pydantic.ValidationError for what `to_json` did not make."""
        return _adapter().validate_python(value)


@lru_cache(maxsize=1)
def _adapter() -> TypeAdapter[Report]:
    return TypeAdapter(Report)


def report(told: Iterable[Told]) -> Report:
    """Count what a check told, whole or in part, and propose from the ways of asking that were asked to their end."""
    entries = list(told)
    answers = [entry for entry in entries if isinstance(entry, Answered)]
    endings = [entry for entry in entries if isinstance(entry, Ended)]
    rows = tuple(_row(setting, answers, endings) for setting in plan())
    whole = [ending.because for ending in endings if ending.setting is None]
    return Report(rows=rows, proposal=propose(rows), ended=" ".join(whole))


def _row(setting: Setting, answers: Sequence[Answered], endings: Sequence[Ended]) -> Row:
    own = [answered for answered in answers if answered.setting == setting]
    findings = [finding for answered in own for finding in answered.findings]
    return Row(
        setting=setting,
        cases=sum(len(query.failed) for query in plan()[setting]),
        total=len(plan()[setting]),
        asked=len(findings),
        right=sum(finding.right for finding in findings),
        missed=sum(finding.missed for finding in findings),
        overmatched=sum(finding.overmatched for finding in findings),
        questions=len(own),
        errors=sum(bool(answered.error) for answered in own),
        seconds=sum(answered.seconds for answered in own),
        prompt_tokens=sum(answered.prompt_tokens for answered in own),
        completion_tokens=sum(answered.completion_tokens for answered in own),
        scores=sum(finding.score is not None for finding in findings),
        wrong=tuple(finding for finding in findings if not finding.right),
        ended=" ".join(ending.because for ending in endings if ending.setting == setting),
    )


def propose(rows: Iterable[Row]) -> Proposal | None:
    """The way of asking to use: of those as right as the best, the one with the fewest questions, then the fastest."""
    judged = [row for row in rows if row.setting.kind is Kind.GUIDELINES and row.complete]
    if not judged:
        return None
    best = max(judged, key=lambda row: row.right)
    if not best.right:
        return None
    good = [row for row in judged if best.right - row.right <= SLACK * row.cases]
    chosen = min(good, key=lambda row: (row.questions, row.seconds))
    warning = ""
    if chosen.share < _POOR:
        wrong = f"{1 - chosen.share:.0%}"
        warning = f"Even so it is wrong about {wrong} of the guidelines: a larger model would serve better."
    return Proposal(
        style=chosen.setting.style,
        batch_size=chosen.setting.batch_size,
        because=_because(chosen, best, judged),
        warning=warning,
    )


def _because(chosen: Row, best: Row, judged: Sequence[Row]) -> str:
    said = f"{way(chosen.setting)} it judges {chosen.right} of {chosen.cases} right"
    if chosen is not best and chosen.right < best.right:
        said += f", hardly fewer than the {best.right} of the best way ({way(best.setting)})"
    said += f", in {chosen.questions} questions of {chosen.each:.1f} s."
    others = [row for row in judged if row is not chosen]
    if others:
        told = "; ".join(f"{way(row.setting)} {row.right}" for row in others)
        said += f" The others: {told}."
    return said[0].upper() + said[1:]


def way(setting: Setting) -> str:
    """A way of asking about guidelines, in words that fit into a sentence."""
    if setting.style is JudgingStyle.SCORED:
        return "scored one by one"
    if setting.batch_size == 1:
        return "with reasons, one by one"
    return f"with reasons, {setting.batch_size} at once"
