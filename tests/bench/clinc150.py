"""How well the offline methods find a guideline by its condition, measured on CLINC150 (DESIGN.md §6).

Conditions are the 150 intent names in words. "Bare" uses them alone; "with examples" gives each guideline five of its
twenty messages as examples and asks with the other fifteen. The handful of constants of `engine.weighing.Tuning` were
chosen by these very figures, over all messages; single messages and their errors were not looked at, and the words of
`engine.synonyms` were written for customer service at large, with the names of the intents known.
"""

import json
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

from engine.relevance import RelevanceIndex
from engine.spec import Example, Guideline

DATA = Path(__file__).resolve().parents[3] / "shared" / "data" / "clinc150.json"
WITHIN = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class Corpus:
    """`messages` are `(text, intent)`; `outside` are messages that belong to no condition."""

    conditions: dict[str, str]
    messages: tuple[tuple[str, str], ...]
    outside: tuple[str, ...]

    def guidelines(self, examples: int) -> tuple[Guideline, ...]:
        return tuple(
            Guideline(
                uid=intent,
                condition=condition,
                examples=tuple(Example(text=text) for text in self.messages_of(intent)[:examples]),
            )
            for intent, condition in self.conditions.items()
        )

    def messages_of(self, intent: str) -> list[str]:
        return [text for text, of in self.messages if of == intent]

    def asked(self, examples: int) -> Iterable[tuple[str, str]]:
        for intent in self.conditions:
            for text in self.messages_of(intent)[examples:]:
                yield text, intent


@dataclass(frozen=True, slots=True, kw_only=True)
class Figures:
    """Shares between 0 and 1; `outside_silent` and `inside_heard` are at the matching threshold."""

    setting: str
    first: float
    within: float
    inside_heard: float
    outside_silent: float
    right_matched: float
    matched_per_message: float


def load(path: Path = DATA) -> Corpus:
    data = json.loads(path.read_text(encoding="utf-8"))
    return Corpus(
        conditions=data["conditions"],
        messages=tuple((message["text"], message["intent"]) for message in data["messages"]),
        outside=tuple(data["out_of_scope"]),
    )


def measure(
    corpus: Corpus,
    setting: str,
    examples: int,
    matched: Callable[[list[tuple[str, float]]], list[str]],
    index: RelevanceIndex | None = None,
) -> Figures:
    """`matched` says which of the ranked guidelines count as applying."""
    index = index or RelevanceIndex(corpus.guidelines(examples))
    asked = first = within = heard = right = total = 0
    for text, intent in corpus.asked(examples):
        ranked = index.scores(text)
        uids = [uid for uid, _ in ranked[:WITHIN]]
        asked += 1
        first += uids[:1] == [intent]
        within += intent in uids
        applying = matched(ranked)
        heard += bool(applying)
        right += intent in applying
        total += len(applying)
    silent = sum(not matched(index.scores(text)) for text in corpus.outside)
    return Figures(
        setting=setting,
        first=first / asked,
        within=within / asked,
        inside_heard=heard / asked,
        outside_silent=silent / len(corpus.outside),
        right_matched=right / asked,
        matched_per_message=total / asked,
    )
