"""An answer to "shall I?", clause by clause: what each one does (English)."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property

from engine.wording import FUNCTION_WORDS, fold, words


class Does(StrEnum):
    AGREES = "agrees"
    AGREES_LIGHTLY = "agrees, or only begins to speak"  # "ok, what does it cost?" is no yes
    REFUSES = "refuses"
    DOUBTS = "doubts"  # neither: takes back what was said before it
    ELSE = "something else"


_BORDER = re.compile(
    r"(?P<end>\.(?!\d)|[!?;\n…]+)|(?P<mark>,(?!\d)|\s[-–—]+\s|:)|"
    r"\b(?P<word>and also|and then|and|but|however|although|though|except|also|plus|then)\b"
)
_OPENING = re.compile(
    r"^(?:(?:oh|well|um+|uh+|hmm+|so|hey|hi|hello|please|and|just|actually|then|now|thanks|thank you)\b[\s,]*)+"
)
_IDIOMS = re.compile(r"\b(?:don'?t|do not) worry\b|\bno (?:rush|hurry)\b")
_AGREES = re.compile(
    r"(?:yes+|y|i (?:already |just )?said yes|yeah+|yep|yup|ya|yea|aye|sure(?: thing)?|"
    r"absolutely|definitely|certainly|of course|by all means|affirmative|"
    r"please do|go (?:right |straight )?(?:ahead|for it)|go on|proceed|carry on|"
    r"(?:please )?do (?:it|that|so|this|both|all|them)|do(?=\W*$)|"
    r"(?:i )?(?:do |hereby |can )?(?:confirm|agree|accept|approve|consent)(?:ed)?|approved|agreed|correct|exactly|"
    r"right you are|(?:that|it|this|they)(?: is|'?s| are|'?re| looks?| sounds?| seems?) (?:all |both )?"
    r"(?:right|correct|fine|good|great|perfect|ok|okay|it|what i want)|"
    r"(?:sounds?|looks?) (?:right|correct|fine|good|great|perfect)|all (?:good|correct|right)|"
    r"let'?s (?:do (?:it|that|this)|go)|(?:you|we) (?:can|may|should) (?:go ahead|do (?:it|that|so)|proceed)|"
    r"(?:can|could|would|will) you (?:please )?(?:go ahead|do (?:it|that|so)|proceed)|"
    r"why not|no (?:problem|worries|objections?|doubt)|make it so|happy with (?:that|it)|"
    r"i (?:do )?(?:want|need) (?:that|it|this|you to)|i(?:'d| would) like (?:that|it|you to)|please)(?![\w'])"
)
_LIGHTLY = re.compile(
    r"(?:ok|okay|okey|k|fine|right|alright|all right|great|perfect|good|cool|nice|very well)(?![\w'])"
)
_REFUSES = re.compile(
    r"(?:no+(?! (?:problem|worries|objection|doubt))|n|i (?:already |just )?said no|later|(?:some )?other time|"
    r"another time|nope|nah|negative|never(?: ?mind)?|neither|none|not|"
    r"don'?t|do not|stop|cancel|abort|undo|forget|leave (?:it|that)|skip|drop (?:it|that)|hold off|"
    r"i (?:decline|refuse|reject|disagree|object)|"
    r"i (?:do not|don'?t|no longer|would not|wouldn'?t|cannot|can'?t) "
    r"(?:want|need|like|agree|confirm|wish|accept|approve|think so)|"
    r"(?:i(?:'ve| have)? )?changed my mind|(?:i(?:'d| would) )?rather not|"
    r"(?:that|it|this)(?: is|'?s) (?:wrong|incorrect|not (?:right|correct|what i))|wrong|incorrect)(?![\w'])"
)
_DOUBTS = re.compile(
    r"(?:wait|hold on|hang on|(?:one|just a|a) (?:moment|second|minute|sec)|let me (?:think|check|see|look|ask)|"
    r"maybe|perhaps|possibly|probably|it depends|depends|(?:i(?:'m| am) )?not (?:so |quite |really )?(?:sure|certain)|"
    r"i (?:do not|don'?t) know|no idea|i(?:'ll| will) (?:think|check|see)|i have to (?:think|check|ask)|"
    r"only if|if|unless|as long as|provided|once|when|before|after|until|first i)(?![\w'])"
)
_ENDS_IN_NO = re.compile(r"\b(?:no|nope|not)$")
_ENDS_IN_YES = re.compile(r"\b(?:yes|yeah|ok|okay)$")
_DO_IT = re.compile(r"\w+ (?:it|that|them|this)(?: now| over| off| through| please)*")
_ASKS = re.compile(
    r"(?:what|when|where|which|who|whose|whom|why|how|is|are|am|was|were|does|did|can|could|will|would|shall|should|"
    r"may|might|has|have|had|any chance)\b|do (?:you|i|we|they|these|those)\b"
)
_CORRECTS = re.compile(
    r"\b(?:instead|rather|make (?:it|that|them|both)|change|correct(?:ion)?|i meant?|should be|not \w+ but|raise|lower|"
    r"increase|reduce|switch|actually)\b"
)
_ADDS = frozenset({"and", "and also", "and then", "also", "plus", "then"})
_ALSO = frozenset({"and also", "also", "plus"})
_BUT = frozenset({"but", "however", "although", "though", "except"})
_POLITE = frozenset(
    "thanks thank thx cheers please kindly great perfect good fine ok okay cool nice wonderful lovely super sorry "
    "hello hi hey sir madam mate much ahead go yes yeah yep sure confirm proceed correct right agree asap soon "
    "let know appreciate appreciated awesome brilliant excellent lot bunch works work sounds looks".split()
)


@dataclass(frozen=True, kw_only=True)
class Clause:
    """A piece of a message, as written; `joined_by` is the word before it, `ends` the sign after it."""

    text: str
    joined_by: str = ""
    ends: str = ""

    @cached_property
    def folded(self) -> str:
        plain = _IDIOMS.sub(" ", fold(self.text).replace("’", "'"))
        return " ".join(plain.split())

    @cached_property
    def _opened(self) -> str:
        """Without the words that only open it; "please" alone says something itself."""
        return _OPENING.sub("", self.folded).strip() or self.folded

    @cached_property
    def does(self) -> Does:
        for does, pattern in (
            (Does.DOUBTS, _DOUBTS),
            (Does.AGREES, _AGREES),
            (Does.REFUSES, _REFUSES),
            (Does.AGREES_LIGHTLY, _LIGHTLY),
        ):
            if pattern.match(self._opened):
                return does
        if _ENDS_IN_NO.search(self._opened):  # "the second one, no"
            return Does.REFUSES
        return Does.AGREES if _ENDS_IN_YES.search(self._opened) else Does.ELSE

    @cached_property
    def asks(self) -> bool:
        """Does it ask something? "Can you go ahead?" does not."""
        if self.does in {Does.AGREES, Does.REFUSES} and not self.rest:
            return False
        return "?" in self.ends or bool(_ASKS.match(self._opened))

    @cached_property
    def commands(self) -> bool:
        """ "Send it": says nothing but to go on."""
        return bool(_DO_IT.fullmatch(self._opened))

    @cached_property
    def corrects(self) -> bool:
        return bool(_CORRECTS.search(self.folded))

    @property
    def adds(self) -> bool:
        return self.joined_by in _ADDS

    @property
    def wants_more(self) -> bool:
        return self.joined_by in _ALSO

    @property
    def excepts(self) -> bool:
        return self.joined_by == "except"

    @property
    def objects(self) -> bool:
        return self.joined_by in _BUT

    @cached_property
    def rest(self) -> tuple[str, ...]:
        """The words that say something, beyond agreeing, refusing and politeness."""
        text = self._opened
        for pattern in (_AGREES, _REFUSES, _DOUBTS, _LIGHTLY):
            if match := pattern.match(text):
                text = text[match.end() :]
                break
        return tuple(w for w in words(text) if w not in FUNCTION_WORDS and w not in _POLITE)


def clauses(text: str) -> Iterator[Clause]:
    """The clauses of a message in order."""
    start, joined = 0, ""
    for border in _BORDER.finditer(text.lower() if len(text.lower()) == len(text) else text):
        piece = text[start : border.start()].strip()
        word = border.group("word") or ""
        ends = border.group("end") or ""
        if word and _OPENING.fullmatch(piece.lower()):
            # "Please also send 30": the please belongs to what follows, and is no yes.
            start, joined = border.end(), word
            continue
        if piece:
            yield Clause(text=piece, joined_by=joined, ends=ends)
            joined = ""
        start = border.end()
        joined = word or ("" if ends else joined)
    if text[start:].strip():
        yield Clause(text=text[start:].strip(), joined_by=joined)
