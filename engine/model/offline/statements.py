"""JudgeStatement: whether a reply does what a statement says of it, by their words (English)."""

import re
from dataclasses import dataclass
from enum import StrEnum
from itertools import pairwise

from engine.canonical import JsonObject
from engine.model.base import JudgeStatement
from engine.model.offline.speech_acts import Act, acts_of
from engine.state import unanswered
from engine.wording import TIME_WORDS, fold, is_content, phrases, related_stems, stem, weight, words
from engine.written import numbers_in


class Does(StrEnum):
    """What a statement says that the reply does with its subject."""

    PROMISES = "promises"
    OFFERS = "offers"
    ASKS = "asks for"
    REFUSES = "refuses"
    APOLOGISES = "apologises"
    THANKS = "thanks"
    GREETS = "greets"
    SAYS = "says"


_ADVERBS = r"(?:(?:also|clearly|politely|only|just|again|then|ever|explicitly|plainly|kindly|directly)\s+)*"
_OPENING = re.compile(
    rf"^\W*(?:(?:the|this|its|that)\s+)?(?:reply|answer|agent|assistant|response|message|text|it)\b\s*{_ADVERBS}"
    r"(?P<not>(?:does|do|did|must|may|should|shall|will|can|has|have|is|are)(?:\s+not|n't)\b|cannot\b|never\b|"
    rf"(?:does|do|did|must|should|shall|will|may)\s+never\b|avoids\b|refrains from\b)?\s*{_ADVERBS}"
    r"(?:(?:must|should|shall|will|has to|does|tries to|attempts? to)\s+)?",
    re.IGNORECASE,
)
_VERBS = (
    (Does.PROMISES, r"promis|guarante|assur|commit|pledg"),
    (Does.OFFERS, r"offer|propos|suggest"),
    (Does.ASKS, r"ask|request|enquir|inquir|demand|quer"),
    (Does.REFUSES, r"refus|declin|reject|den(?:y|ies)"),
    (Does.APOLOGISES, r"apologi[sz]|regret|(?:is|says?(?: that it is)?|feels?) sorry"),
    (Does.THANKS, r"thank"),
    (Does.GREETS, r"greet|welcom|says? (?:hello|hi|good (?:morning|day|evening))"),
)
_VERB = tuple((does, re.compile(rf"(?:{pattern})\w*\b", re.IGNORECASE)) for does, pattern in _VERBS)
_SAYING = re.compile(
    r"(?:says?|saying|states?|stating|mentions?|mentioning|names?|naming|tells?|telling|gives?|giving|contains?|"
    r"containing|includes?|including|explains?|explaining|confirms?|confirming|informs?|notes?|shows?|speaks? of|"
    r"talks? (?:about|of)|refers? to|points? out|provides?|lists?|repeats?|claims?|quotes?|uses?|using|has|have)\b",
    re.IGNORECASE,
)
_QUOTED = re.compile(r"[\"“”„«»]([^\"“”„«»]+)[\"“”„«»]|(?<!\w)['‘]([^'’]+)['’](?!\w)")
_QUALITY = re.compile(
    r"(?:is|are|was|sounds?|feels?|seems?|stays?|remains?|reads?)\b", re.IGNORECASE
)
_CLAUSE = re.compile(r"(?<=[.!?]) |; |,? (?=(?:but|however|although)\b)", re.IGNORECASE)
_GOES_ON = re.compile(
    r"(?:it|this|that|these|those|they|he|she|you will then|there)\b", re.IGNORECASE
)

_COMMITS = re.compile(
    r"\b(?:will|shall|going to|promise|promises|promised|guarantee|guarantees|guaranteed|assure|commit|"
    r"(?:is|are|am) being|(?:has|have) (?:\w+ )?(?:been|just|already)|(?:i|we) have|on (?:its|their|the) way|"
    r"(?:you|i|we|they|he|she|it) (?:get|gets|receive|receives|are getting|are receiving)|"
    r"\w+ (?:am|are|is) (?:now )?\w+ing|"
    r"rest assured|count on|can expect|certainly|of course|definitely|done)\b"
)
_OPEN = re.compile(
    r"\b(?:if|unless|whether|may|might|could|would|should|can|perhaps|maybe|possibl[ey]|eligible|entitled|depends|"
    r"depending|provided|as long as|in case|try|check|checking|find out|look into|looking into|ask|asking|investigate|"
    r"review|reviewing|consider|considering|hope|hopefully|usually|normally|typically|most|"
    r"not|never|no|nothing|none|unable|without|neither|nor|refuse|decline|unfortunately)\b"
)
_SETTLED = re.compile(r"\b(?:can (?=expect\b|count on\b|rely on\b)|no (?:problem|worries|doubt)\b)")
_OFFERS = re.compile(
    r"\b(?:can|could|would (?:you|it)|shall|may|happy to|glad to|like|offer|offers|suggest|how about|want me to|"
    r"let me know)\b"
)
_REQUESTS = re.compile(
    r"\b(?:please (?:\w+ ){0,2}(?:tell|give|send|confirm|provide|enter|share|name|choose|select|specify|describe|let)|"
    r"let me know|i (?:will )?need|we (?:will )?need|may i (?:have|know|ask)|what is|which)\b"
)
_CANNOT = re.compile(
    r"\b(?:can not|could not|unable|not able|not possible|impossible|not allowed|not permitted|will not|do not|"
    r"does not|refuse|decline|unfortunately|no longer)\b"
)
_SORRY = re.compile(r"\b(?:sorry|apologi[sz]\w*|apolog(?:y|ies)|regret|pardon|forgive)\b")
_DENIES = frozenset("not no never unable neither nor none nothing without cannot".split())
_INTERJECTION = re.compile(
    r"^(?:no|yes|okay|oh|well|no problem|no worries)\b(?! \w+ (?:is|are|was|were|can|will)\b)"
)
_RELATED = 0.5  # from here on related words stand for one another
_ENOUGH = 0.75  # of the subject's words has a sentence to have
_ENOUGH_AS_ASKED = 0.5  # where the customer has named them all


@dataclass(frozen=True, slots=True, kw_only=True)
class Statement:
    """What a reply is said to do, or not to do (`negated`), with which `subject`; `quotes` have to stand in it.

    It may be said to be something instead ("is polite"): of such a quality words show nothing.
    """

    does: Does
    subject: str
    negated: bool
    quotes: tuple[str, ...]
    is_quality: bool = False


def told_of(question: JudgeStatement) -> JsonObject:
    """The answer to JudgeStatement. What words cannot show is taken not to hold, and the reason says so."""
    statement = read(question.statement)
    situation = question.situation
    asked = " ".join(unanswered(situation.history, situation.turn))
    found, because = _found(statement, question.reply, asked)
    if found is None:
        return {"because": because, "holds": False}
    return {"because": because, "holds": found is not statement.negated}


def read(text: str) -> Statement:
    """A statement taken apart. What it says besides "the reply does" is its subject."""
    opening = _OPENING.match(text)
    rest = text[opening.end() :] if opening else text
    does = Does.SAYS
    is_quality = bool(opening and (_QUALITY.match(rest) or _QUALITY.match(opening["not"] or "")))
    for candidate, pattern in _VERB:
        if match := pattern.match(rest):
            does, rest, is_quality = candidate, rest[match.end() :], False
            break
    else:
        if opening and (match := _SAYING.match(rest)):
            rest = rest[match.end() :]
    quotes = tuple(one or other for one, other in _QUOTED.findall(rest))
    return Statement(
        does=does,
        subject=_QUOTED.sub(" ", rest).strip(" .!?:"),
        negated=bool(opening and opening["not"]),
        quotes=quotes,
        is_quality=is_quality,
    )


def _found(statement: Statement, reply: str, asked: str) -> tuple[bool | None, str]:
    """Does the reply do it, negation aside, and the sentence that says why; None where words cannot tell."""
    for quote in statement.quotes:
        if _spaced(quote) not in _spaced(reply):
            return False, f"The reply does not say “{quote}”."
    sentences = _sentences(reply)
    if statement.does in _BY_ITSELF:
        does = statement.does.value
        sentence = next((one for one in sentences if _performs(statement.does, one)), None)
        if sentence is None:
            return False, f"No sentence of the reply {does}."
        return True, f"It {does}: “{_cut(sentence)}”"
    subject = _Subject(statement.subject, asked)
    if statement.is_quality or not subject.says_something:
        if statement.quotes:
            return True, f"The reply says “{statement.quotes[0]}”."
        return None, "Its words show nothing of it; more than that this model cannot tell."
    about_it = [sentence for sentence in sentences if subject.is_that_of(sentence)]
    for sentence in about_it:
        if _performs(statement.does, sentence, denied=subject.is_denied):
            return True, f"It {statement.does.value} so: “{_cut(sentence)}”"
    if about_it:
        return False, f"It speaks of it otherwise: “{_cut(about_it[0])}”"
    return False, f"No sentence of the reply speaks of “{_cut(statement.subject)}”."


_BY_ITSELF = frozenset({Does.APOLOGISES, Does.THANKS, Does.GREETS})


def _sentences(reply: str) -> list[str]:
    """Each clause that can stand alone, then each with one that goes on from it: "It left today. It comes by van."."""
    lines = (" ".join(line.split()) for line in reply.splitlines())
    single = [one for line in lines for one in _CLAUSE.split(line) if one]
    pairs = [f"{one} {other}" for one, other in pairwise(single) if _GOES_ON.match(other)]
    return [*single, *pairs]


class _Subject:
    """What a statement says that the reply speaks of."""

    def __init__(self, text: str, asked: str) -> None:
        """`asked` is what the customer said: what stands there, a reply need not say again."""
        self.is_denied = bool(_DENIES & set(words(text)))
        self._numbers = numbers_in(text)
        self._wanted = {
            stem(word): weight(word)
            for word in words(text)
            if is_content(word) and not word.isdigit()
        }
        known = _meant_by(asked)
        self._new = {one: value for one, value in self._wanted.items() if one not in known}
        # When something is to happen is no detail that may be missing.
        self._times = {stem(word) for word in words(text) if word in TIME_WORDS} - known

    @property
    def says_something(self) -> bool:
        return bool(self._wanted or self._numbers or self._times)

    def is_that_of(self, sentence: str) -> bool:
        """Has the sentence its numbers, and most of its words or words related to them?"""
        if not self._numbers <= numbers_in(sentence):
            return False
        said = _meant_by(sentence)
        if not self._times <= said:
            return False
        if _share(self._wanted, said) >= _ENOUGH:
            return True
        if self._new or self._numbers or self._times:
            return _share(self._new, said) >= _ENOUGH
        return _share(self._wanted, said) >= _ENOUGH_AS_ASKED


def _share(wanted: dict[str, float], said: frozenset[str]) -> float:
    total = sum(wanted.values())
    return sum(value for one, value in wanted.items() if one in said) / total if total else 1.0


def _meant_by(text: str) -> frozenset[str]:
    """The stems of a text's words and fixed phrases, and those closely related to them."""
    spelled = words(text)
    said = {stem(word) for word in (*spelled, *phrases(spelled))}
    related = {
        other for one in said for other, kinship in related_stems(one) if kinship >= _RELATED
    }
    return frozenset(said | related)


def _performs(does: Does, sentence: str, *, denied: bool = False) -> bool:
    """Does the sentence do this with what it speaks of?"""
    said = " ".join(words(sentence))
    asked = sentence.rstrip().endswith("?")
    match does:
        case Does.PROMISES:
            settled = _SETTLED.sub("", said)
            return bool(_COMMITS.search(said)) and "?" not in sentence and not _OPEN.search(settled)
        case Does.OFFERS:
            return bool(_OFFERS.search(said)) and not _CANNOT.search(said)
        case Does.ASKS:
            return asked or bool(_REQUESTS.search(said))
        case Does.REFUSES:
            return bool(_CANNOT.search(said)) and not asked
        case Does.APOLOGISES:
            return bool(_SORRY.search(fold(sentence)))
        case Does.THANKS:
            return Act.THANKS in acts_of(sentence)
        case Does.GREETS:
            return Act.GREETING in acts_of(sentence)
        case Does.SAYS:
            return not asked and bool(_DENIES & set(_INTERJECTION.sub("", said).split())) is denied


def _spaced(text: str) -> str:
    return " ".join(re.split(r"[\W_]+", fold(text))).strip()


def _cut(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= 120 else line[:119] + "…"
