"""The offline methods on CLINC150, beside a plain stemmed tf-idf with character n-grams (DESIGN.md §6)."""

import time
from collections.abc import Callable
from dataclasses import replace

import pytest

from engine.model.base import MatchGuidelines, Situation
from engine.model.offline import OfflineModel
from engine.relevance import RelevanceIndex
from engine.spec import Agent
from engine.weighing import TUNING
from tests.bench.clinc150 import DATA, WITHIN, Corpus, load, measure
from tests.engine.agents import history

EVERY = 10  # of the messages, for the whole matcher

Figure = Callable[..., None]


@pytest.fixture(scope="module")
def corpus() -> Corpus:
    if not DATA.exists():
        pytest.skip(f"the CLINC150 file is not at {DATA}")
    return load()


@pytest.mark.parametrize(
    ("setting", "examples", "plain"), [("bare conditions", 0, 0.50), ("five examples", 5, 0.64)]
)
def test_the_right_condition_is_found(
    corpus: Corpus, figure: Figure, setting: str, examples: int, plain: float
) -> None:
    index = RelevanceIndex(corpus.guidelines(examples))

    def matched(ranked: list[tuple[str, float]]) -> list[str]:
        return [uid for uid, score in ranked if score >= index.threshold]

    found = measure(corpus, setting, examples, matched, index)

    where = f"CLINC150, {setting}"
    figure(
        f"{where}: right condition first",
        f"{found.first:.1%}",
        budget=f"> {plain:.0%}",
        peer=f"{plain:.0%}",
    )
    without = RelevanceIndex(corpus.guidelines(examples), tuning=replace(TUNING, related=0))
    alone = measure(corpus, setting, examples, matched, without)
    figure(f"{where}: the same without the table of related words", f"{alone.first:.1%}")
    figure(f"{where}: right condition within {WITHIN}", f"{found.within:.1%}")
    figure(f"{where}: messages in scope that match something", f"{found.inside_heard:.1%}")
    figure(f"{where}: messages out of scope that match nothing", f"{found.outside_silent:.0%}")
    assert found.first > plain


@pytest.mark.parametrize(("setting", "examples"), [("bare conditions", 0), ("five examples", 5)])
def test_the_matcher_finds_the_right_guideline(
    corpus: Corpus, figure: Figure, setting: str, examples: int
) -> None:
    agent = Agent(slug="clinc", name="Clinc", guidelines=corpus.guidelines(examples))
    asked = list(corpus.asked(examples))[::EVERY]
    started = time.perf_counter()
    found = [(intent, _applying(agent, text)) for text, intent in asked]
    took = (time.perf_counter() - started) / len(asked)
    silent = [not _applying(agent, text) for text in corpus.outside]

    where = f"offline matcher, {setting}"
    right = sum(intent in got for intent, got in found) / len(found)
    figure(f"{where}: right guideline matched", f"{right:.1%}")
    figure(
        f"{where}: guidelines matched a message",
        f"{sum(len(got) for _, got in found) / len(found):.2f}",
    )
    figure(f"{where}: messages out of scope that match nothing", f"{sum(silent) / len(silent):.0%}")
    figure(f"{where}: time to judge {len(agent.guidelines)} guidelines", f"{took * 1000:.1f} ms")
    assert right > 0.4


def test_the_index_is_fast(corpus: Corpus, figure: Figure) -> None:
    guidelines = corpus.guidelines(5)
    started = time.perf_counter()
    index = RelevanceIndex(guidelines)
    built = time.perf_counter() - started
    texts = [text for text, _ in corpus.messages[::10]]
    for text in texts:
        index.scores(text)
    started = time.perf_counter()
    for text in texts:
        index.scores(text)
    took = (time.perf_counter() - started) / len(texts)

    figure("relevance index: built over 150 conditions with 5 examples", f"{built * 1000:.0f} ms")
    figure("relevance index: one message scored", f"{took * 1000:.2f} ms", budget="≤ 2 ms")


def _applying(agent: Agent, text: str) -> set[str]:
    situation = Situation(agent=agent, history=history(text), turn=1)
    question = MatchGuidelines(situation=situation, guidelines=agent.guidelines)
    uid_of = {label: uid for uid, label in agent.label_of.items()}
    judgements = OfflineModel().answer(question)["judgements"]
    return {uid_of[entry["guideline"]] for entry in judgements if entry["applies"]}
