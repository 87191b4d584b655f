"""Which guidelines the customer's words are about: scores, and what they rest on."""

import re
from dataclasses import dataclass
from functools import cached_property

from engine.model.offline.conversation import Conversation
from engine.model.offline.speech_acts import Act
from engine.relevance import RelevanceIndex
from engine.weighing import names_in
from engine.wording import fold, is_content, words

# Beside a better match for the same words, a guideline needs this share of its score …
_RELATIVE = 0.82
_ALONE = 0.85  # … unless it is as good as this by itself
_WHOLE_SENTENCE = re.compile(
    r"^(?:(?:so|and|but|ok|okay|well|hey|hi)[ ,]+)*"
    r"(?:do|does|did|can|could|may|will|would|shall|should|is|are|am|was|were|have|has|had|what|when|where|who|whom|whose|why|which|how|i|we|you|there|please|let|tell|show|give)\b"
)
_CONTEXT_WEIGHT = 0.85  # what an earlier message adds to a follow-up
_IN_FORCE_BEFORE = 0.1
_CONTINUED = 0.8  # "and in dollars?" says little, but it is surely about something
_CLEAR = 0.7  # a message that is this clear by itself needs no context
_WHOLLY = 0.75
_SHORT_CLAUSE = 1.5  # a clause with one telling word must fit better than a whole message
_SHORT_MESSAGE = 6
_MOST_SEGMENTS = 16
_SENTENCE = re.compile(r"[.!?;\n]+|,?\s+(?:and also|and then|but also|but)\s+")
_CLAUSE = re.compile(r",\s*|\s+and\s+|\s+also\s+|\s+because\s+")
_FOLLOW_UP = re.compile(
    r"^\W*(?:and|what about|how about|also|or|but|then|so|same|another|again|which|only)\b|"
    r"\b(?:it|that|them|those|these|there|one|ones|instead|the same|again|him|her)\b"
)
_GOES_ON = re.compile(r"^\W*(?:and|what about|how about|also|or)\b|\bhow much is (?:that|it)\b")
DROPPED = re.compile(
    r"\b(?:never ?mind|forget (?:it|that|about)|cancel (?:it|that)|stop|changed my mind|no longer)\b"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """How a guideline stands: its score, what it needs, the customer's words for it, and whether context helped."""

    score: float
    needed: float
    fitting: tuple[str, ...] = ()
    in_context: bool = False

    @property
    def holds(self) -> bool:
        return self.score >= self.needed


class Topics:
    """Scores of the newest messages, piece by piece, and together with what they follow."""

    def __init__(
        self,
        index: RelevanceIndex,
        talk: Conversation,
        acts: dict[Act, str],
        apart: frozenset[str] = frozenset(),
    ) -> None:
        """`apart` are uids of guidelines that are no rivals of others: those judged by something else than words."""
        self._index = index
        self._apart = apart
        self._talk = talk
        self._acts = acts

    def standing(self, uid: str, bonus: float = 0.0, ease: float = 1.0) -> Standing:
        """`bonus` is added to the score, `ease` lowers what is needed by a factor."""
        enough = self._index.threshold * ease * (_CONTINUED if self._goes_on else 1.0)
        best = Standing(score=0.0, needed=enough)
        for piece in self._pieces:
            found = piece.standing(uid, enough, bonus)
            if (found.holds, found.score) > (best.holds, best.score):
                best = found
        return best

    def alone(self, uid: str) -> float:
        """The score without any context."""
        return max((p.scores.get(uid, 0.0) for p in self._own), default=0.0)

    @cached_property
    def best_alone(self) -> float:
        """The best score of any guideline without any context."""
        return max((p.best for p in self._own), default=0.0)

    @property
    def threshold(self) -> float:
        return self._index.threshold

    def best_but(self, uids: set[str]) -> float:
        """The best score, context included, of guidelines other than these."""
        found = [s for p in self._pieces for uid, s in p.scores.items() if uid not in uids]
        return max(found, default=0.0)

    @cached_property
    def _own(self) -> list["_Piece"]:
        return [
            _Piece(self._index, text, self._apart, strictness=1.0 if whole else _SHORT_CLAUSE)
            for text, whole in segments(self._talk)
        ]

    @cached_property
    def _pieces(self) -> list["_Piece"]:
        return [*self._own, *self._context]

    @cached_property
    def _context(self) -> list["_Piece"]:
        """The newest message read together with what it follows; nothing for one that stands alone."""
        if not self.is_follow_up:
            return []
        before = self._before()
        if not before:
            return []
        text = f"{before}\n{self._talk.new_text}"
        piece = _Piece(self._index, text, self._apart, factor=_CONTEXT_WEIGHT)
        for uid in self._talk.guidelines_before:
            if uid in piece.scores:
                piece.scores[uid] = min(1.0, piece.scores[uid] + _IN_FORCE_BEFORE)
        return [piece]

    def _before(self) -> str:
        """What a follow-up follows: the agent's question that it agrees to, or the last messages up to a full one."""
        if self._only_agrees and self._talk.last_question:
            return self._talk.last_question
        texts: list[str] = []
        for said in reversed(self._talk.earlier[-3:]):
            texts.insert(0, said.text)
            if not _FOLLOW_UP.search(fold(said.text)) or len(words(said.text)) > 2 * _SHORT_MESSAGE:
                break
        return "\n".join(texts)

    @cached_property
    def _goes_on(self) -> bool:
        """Whether the message begins as one that goes on with what was said."""
        return self.is_follow_up and bool(_GOES_ON.search(fold(self._talk.new_text)))

    @property
    def _only_agrees(self) -> bool:
        plain = not any(is_content(word) for word in words(self._talk.new_text))
        return Act.AGREEMENT in self._acts and plain

    @cached_property
    def is_follow_up(self) -> bool:
        """Whether the newest message only makes sense together with what came before."""
        text = fold(self._talk.new_text).strip()
        if not text or not self._talk.last_reply or DROPPED.search(text):
            return False
        if self._talk.is_only_an_answer:  # what it follows is settled with it
            return False
        if self._acts.keys() - {Act.AGREEMENT, Act.THANKS}:
            return False
        if self.best_alone >= _CLEAR:
            return False
        if self._only_agrees:
            return True
        spoken = words(text)
        content = [word for word in spoken if is_content(word)]
        if Act.THANKS in self._acts and len(content) <= 2:
            return False
        if _FOLLOW_UP.search(text):
            return len(content) <= 3
        # A short fragment ("in dollars?") goes on; a whole sentence on a subject of its own does not.
        fragment = len(spoken) <= _SHORT_MESSAGE and not _WHOLE_SENTENCE.search(text)
        return fragment and bool(content) and self.best_alone < 0.2


class _Piece:
    """One text with the scores of all guidelines for it."""

    def __init__(
        self,
        index: RelevanceIndex,
        text: str,
        apart: frozenset[str],
        *,
        factor: float = 1.0,
        strictness: float = 1.0,
    ) -> None:
        """`factor` weakens the scores of what is not only new; `strictness` raises what a guideline needs."""
        self._strictness = strictness
        self._index = index
        self._apart = apart
        self.text = text
        self._in_context = factor < 1.0
        self.scores = {uid: factor * score for uid, score in index.scores(text)}

    @cached_property
    def best(self) -> float:
        scores = (score for uid, score in self.scores.items() if uid not in self._apart)
        return max(scores, default=0.0)

    @cached_property
    def _fitting(self) -> dict[str, list[str]]:
        return self._index.fitting_words(self.text, self.scores)

    @cached_property
    def _rivals(self) -> dict[str, tuple[float, frozenset[str]]]:
        """Guidelines with a fair score, and the words that each rests on."""
        enough = 0.5 * self._index.threshold
        fair = [u for u, score in self.scores.items() if score >= enough and u not in self._apart]
        return {uid: (self.scores[uid], frozenset(self._fitting[uid])) for uid in fair}

    def standing(self, uid: str, enough: float, bonus: float) -> Standing:
        score = self.scores.get(uid, 0.0)
        if not score:
            return Standing(score=0.0, needed=enough)
        own = self._rivals.get(uid, (score, frozenset()))[1]
        needed = max(enough * self._strictness, min(_ALONE, _RELATIVE * self.best))
        if score == self.best and self._wholly(own):
            needed *= _WHOLLY
        # A guideline that explains the same words and more of them is the one that is meant.
        for rival, words_of_rival in self._rivals.values():
            if own and own < words_of_rival and rival > score:
                needed = max(needed, min(_ALONE, 0.95 * rival))
            elif own == words_of_rival and score < rival < _CLEAR:
                needed = max(needed, rival)  # a weak hit on the same words: the best one is meant
        return Standing(
            score=min(1.0, score + bonus),
            needed=needed,
            fitting=tuple(self._fitting[uid]),
            in_context=self._in_context,
        )

    def _wholly(self, own: frozenset[str]) -> bool:
        """Whether the text has no subject but what the guideline is about, and names ("I need a flight to Madrid")."""
        said = {word for word in words(self.text) if is_content(word) and not word.isdigit()}
        names = names_in(self.text)
        return bool(own or names) and said - own <= names


def segments(talk: Conversation) -> list[tuple[str, bool]]:
    """The newest messages as a whole, one by one, by sentences and by clauses that say something themselves.

    Each comes with whether it is a message or says more than one thing; a clause of one telling word does not.
    """
    found: dict[str, bool] = {}
    for text in (talk.new_text, *(said.text for said in talk.new)):
        if text.strip():
            found[text] = True
    for said in talk.new:
        for sentence in _SENTENCE.split(said.text):
            for clause in (sentence, *_CLAUSE.split(sentence)):
                telling = _telling_words(clause)
                if telling and clause.strip() not in found:
                    found[clause.strip()] = telling > 1
    return list(found.items())[:_MOST_SEGMENTS]


def _telling_words(text: str) -> int:
    said = words(text)
    return sum(is_content(word) for word in said) if len(said) >= 2 else 0
