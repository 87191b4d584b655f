"""Words handed to parameters: each value with its provenance, and no words used twice."""

from dataclasses import dataclass, field
from typing import Any

from engine.canonical import JsonObject
from engine.model.offline.parameters import Sort, Wanted
from engine.model.offline.passage import Candidate, Passage
from engine.trail import ArgumentSource

_EVIDENCE_LIMIT = 300


@dataclass(frozen=True, slots=True, kw_only=True)
class Filled:
    """A parameter's value with its provenance; `fresh` says it comes from the newest messages."""

    value: Any
    source: ArgumentSource
    evidence: str
    fresh: bool = False

    def to_json(self) -> JsonObject:
        return {
            "value": self.value,
            "source": self.source.value,
            "evidence": self.evidence[:_EVIDENCE_LIMIT],
        }


Arguments = dict[str, Filled]


@dataclass(kw_only=True)
class Assignment:
    """Candidates handed to parameters so that no words are used twice."""

    filled: Arguments = field(default_factory=dict)
    used: list[tuple[int, int]] = field(default_factory=list)

    def take(self, wanted: Wanted, candidate: Candidate, passage: Passage, *, fresh: bool) -> None:
        evidence = passage.text[candidate.start : candidate.end]
        self.filled[wanted.name] = Filled(
            value=candidate.value,
            source=ArgumentSource.CUSTOMER,
            evidence=evidence,
            fresh=fresh,
        )
        if wanted.sort is not Sort.FREE_TEXT:
            self.used.append((candidate.start, candidate.end))

    def is_free(self, candidate: Candidate) -> bool:
        return all(candidate.end <= start or end <= candidate.start for start, end in self.used)
