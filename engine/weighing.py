"""A text as weighed terms: what it is about, how it is worded, and which names stand in it."""

import re
from dataclasses import dataclass
from itertools import pairwise

from engine.wording import FRAME_WEIGHT, fold, is_content, phrases, stem, weight, words

_NAME = re.compile(r"(?<=[\w,;] )[A-Z][a-z]\w+")
_ALTERNATIVES = (" or ", ";", " and/or ")


@dataclass(frozen=True, slots=True, kw_only=True)
class Tuning:
    """The constants of the scoring, in one place so that the bench can vary them."""

    pair_weight: float = 0.4
    related: float = 0.7
    related_power: float = 0.5
    question_word: float = 0.3
    fuzzy_floor: float = 0.5
    fuzzy: float = 0.85
    unknown: float = 0.55
    unknown_half: float = 30.0
    threshold: float = 0.27
    threshold_of_many: float = 0.3
    coverage: float = 0.3
    phrase: float = 0.7
    intent: float = 0.15
    seeking: float = 0.4
    sequence: float = 0.6
    grammar: float = 0.6
    condition_share: float = 0.35
    centroid_share: float = 1.0
    trust_in_examples: float = 0.49
    example_gain: float = 1.5
    no_subject: float = 0.6
    counter: float = 0.8
    part: float = 0.9
    tool: float = 0.9


TUNING = Tuning()


def subject_terms(text: str, tuning: Tuning = TUNING) -> dict[str, float]:
    """What a text is about: its stems with prior weights, and pairs of neighbouring content stems in any order."""
    spelled = words(text)
    stems = [(stem(word), weight(word)) for word in spelled]
    terms: dict[str, float] = {}
    for one, prior in stems:
        terms[one] = max(terms.get(one, 0.0), prior)
    strong = [one for one, prior in stems if prior > FRAME_WEIGHT]
    for first, second in pairwise(strong):
        if first != second:
            terms[" ".join(sorted((first, second)))] = tuning.pair_weight
    for phrase in phrases(spelled):
        terms.setdefault(stem(phrase), tuning.phrase)
    for intent in _intents(text, spelled):
        terms[intent] = tuning.seeking if intent == "~seek" else tuning.intent
    return terms


_WISH = frozenset("want wants wanted need needs like wish wishes please book order buy".split())
_ASK = frozenset("ask asks asking inquire inquires wonder know".split())
_SEEKS = re.compile(
    r"\b(?:(?:do|have) you (?:have|got|sell|carry|stock)|(?:is|are) there|anything by|search(?:es|ing)?|"
    r"look(?:s|ing)? for|seek(?:s|ing)?|(?:find|finds|finding) an?)\b"
)
_QUESTION_START = frozenset(
    "what when where who which how why is are was were do does did has have will would can could should may".split()
)


def _intents(text: str, spelled: list[str]) -> list[str]:
    """Whether a text wishes for something or asks about something: the one thing that conditions say in few ways."""
    said = set(spelled)
    wishes = bool(said & _WISH)
    asks = bool(said & _ASK) or "?" in text or (bool(spelled) and spelled[0] in _QUESTION_START)
    seeks = bool(_SEEKS.search(" ".join(spelled)))
    return ["~wish"] * wishes + ["~ask"] * asks + ["~seek"] * seeks


def wording_terms(text: str, tuning: Tuning = TUNING) -> dict[str, float]:
    """How a text is worded: its subject, with grammatical words and their neighbourhood counting more."""
    terms = subject_terms(text, tuning)
    spelled = [stem(word) for word in words(text)]
    for one in spelled:
        terms[one] = max(terms.get(one, 0.0), tuning.grammar)
    for first, second in zip(["^", *spelled], [*spelled, "$"], strict=True):
        terms[f"{first}>{second}"] = tuning.sequence
    return terms


def alternatives(condition: str) -> list[str]:
    """A condition and, where it lists alternatives ("… or …"), each of them on its own."""
    parts = [condition]
    for separator in _ALTERNATIVES:
        parts = [piece for part in parts for piece in part.split(separator)]
    pieces = [piece for piece in (part.strip(" ,.") for part in parts) if _has_subject(piece)]
    return [condition, *pieces] if len(pieces) > 1 else [condition]


def _has_subject(text: str) -> bool:
    return any(is_content(word) for word in words(text))


def is_word(term: str) -> bool:
    """Whether a term is a single word's stem, not a pair, a sequence or an intent."""
    return " " not in term and ">" not in term and "~" not in term


def names_in(text: str) -> frozenset[str]:
    """Capitalised words inside sentences, folded: unknown ones are names, and say nothing of the subject."""
    return frozenset(fold(match.group()) for match in _NAME.finditer(text))
