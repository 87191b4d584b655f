"""A prompt in sections: each of the engine's prompts is cut where people look for its parts, and nothing is lost."""

from collections.abc import Iterable
from itertools import groupby
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine import prompts
from engine.model.base import ModelRequest
from studio.prompt_sections import Piece, Section, prompt_pieces
from studio.templatetags.studio_audit import section_words
from tests.engine.sessions import HOSTILE
from tests.engine.test_prompts import a_past, an_agent, questions


def recorded(request: ModelRequest, tokens: int = 1_000) -> dict[str, Any]:
    """The call as the audit holds it."""
    return {
        "prompt_tokens": tokens,
        "messages": [
            {"role": m.role, "content": m.content, "parts": [len(part) for part in m.parts]}
            for m in request.messages
        ],
    }


def pieces(text: str, *, known: bool = True) -> dict[str, tuple[Piece, ...]]:
    asked = questions(an_agent(text), a_past(text), variables={"v": text} if known else {})
    return {
        request.question.name: prompt_pieces(recorded(request))
        for request in map(prompts.build, asked)
    }


def order(found: Iterable[Piece]) -> list[str]:
    return [section.value for section, _ in groupby(piece.section for piece in found)]


TALK = ["customer", "conversation"]
WRITTEN = ["rules", "agent", "glossary"]


@pytest.mark.parametrize(
    ("question", "sections"),
    [
        ("MatchGuidelines", [*WRITTEN, "guidelines", *TALK]),
        ("ScoreGuideline", [*WRITTEN, "example", *TALK, "guidelines", "other"]),
        ("ExplainMatch", [*WRITTEN, "example", *TALK, "guidelines", "other"]),
        ("ReadConfirmation", [*WRITTEN, *TALK, "confirmations"]),
        ("ChooseTool", [*WRITTEN, "tool", "guidelines", *TALK]),
        ("InferToolCalls", [*WRITTEN, "tool", "guidelines", *TALK]),
        ("ComposeReply", [*WRITTEN, *TALK, "briefing", "conversation", "style", "revision"]),
        ("ChooseResponse", [*WRITTEN, *TALK, "briefing", "conversation", "responses"]),
        ("JudgeReply", [*WRITTEN, *TALK, "guidelines", "reply"]),
    ],
)
def test_each_prompt_has_its_sections_in_their_order(question: str, sections: list[str]) -> None:
    assert order(pieces("x")[question]) == sections


@given(st.text(max_size=60) | st.sampled_from(HOSTILE))
@settings(max_examples=40)
def test_whatever_people_wrote_the_sections_are_the_same_and_nothing_is_lost(text: str) -> None:
    plain, found = pieces("x"), pieces(text or "x")
    for name, cut in found.items():
        assert order(cut) == order(plain[name])
    for request in map(prompts.build, questions(an_agent(text), a_past(text))):
        cut = prompt_pieces(recorded(request))
        assert "".join(p.text for p in cut) == "".join(m.content for m in request.messages)


def test_of_several_briefings_only_the_newest_is_for_this_reply() -> None:
    past = (*a_past("first"), *a_past("second"))
    request = next(
        r
        for r in map(prompts.build, questions(an_agent("x"), past))
        if r.question.name == "ComposeReply"
    )
    briefings = [p for p in prompt_pieces(recorded(request)) if p.section is Section.BRIEFING]
    assert len(briefings) == 1
    assert "second" in briefings[0].text


def test_tokens_are_shared_by_length_and_add_up_to_the_calls() -> None:
    for found in pieces("some words").values():
        assert sum(piece.tokens for piece in found) == pytest.approx(1_000, abs=len(found))
        longest = max(found, key=lambda piece: len(piece.text))
        assert longest.tokens == max(piece.tokens for piece in found)


def test_a_call_whose_prompt_is_gone_has_no_sections() -> None:
    assert prompt_pieces({"prompt_tokens": 5, "messages": []}) == ()
    empty = {"role": "system", "content": "", "parts": [0, 0]}
    assert prompt_pieces({"prompt_tokens": 5, "messages": [empty]}) == ()


@pytest.mark.parametrize("section", Section)
def test_every_section_is_named_in_words(section: Section) -> None:
    assert section_words(section.value)[0].isupper()
