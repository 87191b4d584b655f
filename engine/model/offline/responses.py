"""ChooseResponse: the canned response closest in words to what the reply has to say, or none."""

import re

from engine.canonical import JsonObject
from engine.closeness import closeness
from engine.model.base import ChooseResponse
from engine.model.offline.conversation import Conversation
from engine.model.offline.demands import problem_with
from engine.model.offline.rendering import scalar
from engine.model.offline.requests import deed
from engine.model.offline.results import leaves
from engine.model.offline.speech_acts import answers_politely, only_polite
from engine.prompts.choose_response import label
from engine.wording import fold, is_content, stem, words

_ENOUGH = 0.25
_OWN = 0.5  # a response of a guideline in force is there for this moment
_FACT = 0.2  # it tells something that a result of this turn says
_TAG = re.compile(r"\{\{.*?\}\}|\{%.*?%\}|\{#.*?#\}", re.DOTALL)


class ResponseChooser:
    """Chooses for one question."""

    def __init__(self, question: ChooseResponse) -> None:
        self._question = question
        self._talk = Conversation(situation=question.situation)

    def answer(self) -> JsonObject:
        """The answer to ChooseResponse."""
        scores = self._scores()
        best = max(range(len(scores)), key=scores.__getitem__, default=None)
        if best is None or scores[best] < _ENOUGH:
            because = "No response is close in words to what is to be said."
            return {"because": because, "response": "", "follows": []}
        agent = self._question.situation.agent
        text = self._question.responses[best]
        return {
            "because": f"{label(best)} is the closest in words to what is to be said.",
            "response": label(best),
            "follows": [
                {
                    "guideline": agent.label_of[guideline.uid],
                    "follows": not problem_with(text, agent.action_of(guideline)),
                }
                for guideline in self._question.guidelines
            ],
        }

    def _scores(self) -> list[float]:
        texts = self._question.responses
        best = [0.0] * len(texts)
        for said in self._to_say():
            scores = closeness(texts, said)
            best = [max(pair) for pair in zip(best, scores, strict=True)]
        return [
            0.0 if self._leaves_out(text) else score + self._bonus(text, score)
            for text, score in zip(texts, best, strict=True)
        ]

    def _to_say(self) -> list[str]:
        """What the reply is about, one text each: what is to be asked, or the message and the guidelines."""
        briefing = self._talk.briefing
        asked = [
            f"{item.get('what', '')} {item.get('means', '')}"
            for key in ("ask for", "ask to correct")
            for item in _items(briefing, key)
        ]
        acts = [
            deed(i) for key in ("confirm", "declined", "expired") for i in _items(briefing, key)
        ]
        if asked or acts:
            return asked + acts
        agent = self._question.situation.agent
        rules = [
            text
            for guideline in self._question.guidelines
            for text in (guideline.condition, agent.action_of(guideline))
            if text
        ]
        return [self._talk.new_text, *rules]

    def _leaves_out(self, text: str) -> bool:
        """Whether it fails to state a value that the customer is asked to confirm, or to ask for what is missing."""
        said = fold(text)
        values = [
            fold(scalar(value))
            for item in _items(self._talk.briefing, "confirm")
            for value in item.get("with", {}).values()
        ]
        if any(value not in said for value in values) or (values and "?" not in text):
            return True
        missing = [str(item.get("what", "")) for item in _items(self._talk.briefing, "ask for")]
        return any(not _stems(what) <= _stems(text) for what in missing)

    def _bonus(self, text: str, score: float) -> float:
        bonus = _OWN if self._is_own(text) else 0.0
        if score and self._tells_a_fact(text):
            bonus += _FACT
        if answers_politely(text, only_polite(self._talk.new_text)):
            bonus += _ENOUGH  # a greeting for a greeting
        return bonus

    def _is_own(self, text: str) -> bool:
        """Whether it was rendered from a response of a guideline in force: its fixed words stand in it, in order."""
        known = self._question.situation.agent.canned_response_by_uid
        templates = [
            known[uid].text
            for guideline in self._question.guidelines
            for uid in guideline.canned_responses
            if uid in known
        ]
        return any(_made_from(text, template) for template in templates)

    def _tells_a_fact(self, text: str) -> bool:
        said = fold(text)
        return any(
            len(shown) > 1 and shown in said
            for offset, event in self._talk.results
            for leaf in leaves(offset, event)
            if (shown := fold(scalar(leaf.value)))
        )


def _items(briefing: JsonObject, key: str) -> list[JsonObject]:
    items = briefing.get(key, [])
    return [item for item in items if isinstance(item, dict)] if isinstance(items, list) else []


def _stems(text: str) -> set[str]:
    return {stem(word) for word in words(text) if is_content(word)}


def _made_from(text: str, template: str) -> bool:
    place = 0
    pieces = [piece.strip() for piece in _TAG.split(template)]
    if not any(pieces):
        return False
    for piece in pieces:
        place = text.find(piece, place)
        if place < 0:
            return False
        place += len(piece)
    return True
