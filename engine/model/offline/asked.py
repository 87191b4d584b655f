"""What an agent's message asks of its customer: data by name, a yes, one of several things, or what it is about."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum

from engine.wording import FUNCTION_WORDS, fold, words

MAX_QUESTIONS = 12


class Asks(StrEnum):
    DATA = "data"  # named by `labels`
    YES = "a yes"
    WHICH = "one of `options`, or of what was offered"
    WISH = "what the customer wants"
    MORE = "whether there is anything else"
    DETAIL = "something else"


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """One question, as written in `text`."""

    kind: Asks
    text: str
    labels: tuple[str, ...] = ()
    options: tuple[str, ...] = ()


_SENTENCE = re.compile(r"(?<=[.!?])\s+|\n+")
_BULLET = re.compile(r"^\s*(?:[-*•]|\d{1,2}[.)])\s+")
_MORE = re.compile(
    r"\b(?:any|some)(?:thing)? (?:else|more|further)\b|\b(?:other|further|more) questions?\b|\bhelp you further\b"
)
_WISH = re.compile(
    r"\b(?:how|what) (?:can|may|could) (?:i|we) (?:help|assist|do|be of)\b|\bwhat (?:is|'s) (?:it|this) about\b|"
    r"\bwhat (?:would you like to|do you (?:want|need|wish)|brings you)\b|"
    r"\bwhat (?:is|'s) the (?:problem|matter|issue)\b"
)
_YES = re.compile(
    r"\b(?:shall|should|may|can) (?:i|we)(?! (?:have|ask|know|get|see|please have|help|assist)\b)|"
    r"\bdo you want (?:me|us) to\b|\bwould you like (?:me|us) to\b|^\W*(?:so\W+)?would you like (?:to|an?|the)\b|"
    r"\b(?:is|are) (?:that|this|these|it|everything|they) (?:right|correct|ok|okay|fine|all right|good)\b|"
    r"\bdo you (?:confirm|agree|accept)\b|\bgo ahead\b|\bplease confirm(?! (?:your|the)\b)|\bare you sure\b"
)
_WHICH = re.compile(r"\bwhich (?:one|of (?:these|those|them|the))\b|\bwhich (?:do|did|would) you\b")
_REQUEST = re.compile(
    r"^(?:(?:then|and|now|first|also|so|thank you|thanks)\W+)*(?:please|kindly)\b.*\b(?:give|tell|provide|enter|send|"
    r"name|share|state|confirm|know|write|specify|choose|type)\b|"
    r"^(?:give|tell|provide|enter|send|name|specify)\b|"
    r"\b(?:i|we)(?:'ll| will| would|'d| still| also| only| just)* (?:need|require)\b(?! to\b)|\blet me know\b"
)
_ASIDE = re.compile(r"\([^()]*\)|\bfor example\b.*|\be\.?g\.?\b.*")
_HOW_MANY = re.compile(r"\bhow many (?P<what>[a-z]+)")
_BY_QUESTION = (
    (re.compile(r"\b(?:since when|how long|for how long)\b"), "duration"),
    (re.compile(r"\bhow much\b"), "amount"),
    (re.compile(r"\bwhen\b|\bby when\b"), "date"),
    (re.compile(r"\bwhere\b"), "place"),
    (re.compile(r"\bwhom?\b|\bwhose\b"), "name"),
)
_NAMED = (
    re.compile(r"\b(?:what|which)(?:'s| is| are| was| were| would be)\s+(?P<rest>.+)"),
    re.compile(r"\b(?:what|which)\s+(?P<rest>.+)"),
    re.compile(
        r"\b(?:tell|give|provide|enter|send|name|share|state|confirm|know|specify|need|have|choose|write|type|require|"
        r"ask for)\b(?:\s+(?:me|us|to me|with))*\s+"
        r"(?P<rest>(?:(?:of|about|with)\s+)?(?:your|the|an?|his|her|their|in which)\b.+)"
    ),
    re.compile(
        r"^(?:(?:thank you|thanks|great|then|and|or|so|for|under|ok|okay|good)\W+)*(?:your|the)\s+(?P<rest>.+)"
    ),
)
_LABEL_ENDS = re.compile(
    r"\s+(?:would|do|does|did|should|shall|can|could|may|might|is|are|was|were|will|has|had|that|who|so|in order|"
    r"please|when|if|because|as|you|we|i|it|they|of yours|on (?:the|your)|for (?:the|your|this|that|it))\b.*|[?.!:;].*"
)
_LISTED = re.compile(r"\s*,\s*(?:and|or)?\s*|\s+(?:and|or|as well as)\s+|\s*/\s*")
_DETERMINER = re.compile(
    r"^(?:(?:your|the|an?|my|our|this|that|these|also|both|exact|full|valid|current|about|of|with|either|me|us)\s+)+"
)
_LONGEST_LABEL = 4


def asked_in(message: str) -> list[Asked]:
    """The questions of a message in order; a list below a question belongs to it."""
    found: list[Asked] = []
    pieces = [piece.strip() for piece in _SENTENCE.split(message) if piece.strip()]
    place = 0
    while place < len(pieces) and len(found) < MAX_QUESTIONS:
        sentence, listed = pieces[place], []
        place += 1
        if _BULLET.match(sentence):
            continue
        while place < len(pieces) and _BULLET.match(pieces[place]):
            listed.append(_BULLET.sub("", pieces[place]))
            place += 1
        if asked := _asked(sentence, listed):
            found.append(asked)
    return found


def _asked(sentence: str, listed: list[str]) -> Asked | None:
    folded = fold(sentence).replace("’", "'")
    if "?" not in sentence and not _REQUEST.search(folded) and not _YES_ORDERED.search(folded):
        return None
    for kind, pattern in _KINDS:
        if pattern.search(folded):
            return Asked(kind=kind, text=sentence, options=tuple(listed))
    labels = [fold(re.split(r"[(:]", item)[0]).strip(" .*") for item in listed]
    if not labels and not _WHETHER.search(folded):
        labels = list(dict.fromkeys(_labels_of(folded)))
    kind = Asks.DATA if labels else Asks.DETAIL
    return Asked(kind=kind, text=sentence, labels=tuple(labels))


_WHETHER = re.compile(
    r"^(?:(?:and|so|ok|okay|thank you|thanks|great)\W+)*(?:do|does|did|is|are|was|were|have|has)\b"
)
_YES_ORDERED = re.compile(r"\bplease confirm(?! (?:your|the)\b)")
_KINDS = (
    (Asks.MORE, _MORE),
    (Asks.WISH, _WISH),
    (Asks.YES, _YES),
    (Asks.WHICH, _WHICH),
)


def _labels_of(folded: str) -> Iterator[str]:
    """Names of the data that a sentence asks for; "when", "where" and the like have names of their own."""
    text = _ASIDE.sub(" ", folded)
    if counted := _HOW_MANY.search(text):
        yield f"number of {counted['what']}"
        return
    for pattern, label in _BY_QUESTION:
        if pattern.search(text):
            yield label
            return
    for pattern in _NAMED:
        if match := pattern.search(text):
            yield from _labels(match["rest"])
            return


def _labels(rest: str) -> Iterator[str]:
    for part in _LISTED.split(_LABEL_ENDS.sub("", f" {rest}")):
        label = _DETERMINER.sub("", part.strip(" \"'“”*-"))
        said = words(label)
        if said and len(said) <= _LONGEST_LABEL and any(w not in FUNCTION_WORDS for w in said):
            yield label
