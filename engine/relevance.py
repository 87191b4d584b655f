"""How relevant each guideline is to a text, by its words: an inverted index over conditions and examples.

No model and no training: Snowball stems weighed by how rare they are among the agent's own conditions and examples,
word pairs, character n-grams for misspelt and unknown words, and general English word relations (`engine.wording`).
"""

import math
from collections import Counter, OrderedDict
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from threading import Lock

from engine.glossary import Glossary
from engine.spec import Agent, Guideline, Term, Tool
from engine.weighing import (
    TUNING,
    Tuning,
    alternatives,
    is_word,
    names_in,
    subject_terms,
    wording_terms,
)
from engine.wording import (
    FRAME_WEIGHT,
    grams,
    is_content,
    related_stems,
    stem,
    weight,
    without_speaker,
    words,
)

_CACHED_AGENTS = 64
_CACHED_WORDS = 20_000
_SHORTEST_GUESSED = 4
_QUESTION_WORDS = frozenset({"how", "when", "where", "which", "who", "whom", "whose", "why"})


@dataclass(frozen=True, slots=True, kw_only=True)
class _Document:
    """One text that speaks for (or, as a counter-example, against) a guideline."""

    owner: int
    kind: (
        str  # "condition", "part" (an alternative in it), "tool", "example", "centroid", "counter"
    )
    terms: dict[str, float]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Query:
    """A message as weights over a space's terms; `length` is the norm of the message itself, unknown words too."""

    terms: dict[str, float]
    length: float


def _is_name(term: str, names: frozenset[str]) -> bool:
    """Numbers are like names."""
    return term in names or term.isdigit()


class _Space:
    """Documents of one way of weighing (`terms_of`), with an inverted index over them."""

    def __init__(
        self,
        texts: list[tuple[int, str, str]],
        terms_of: Callable[[str, Tuning], dict[str, float]],
        idf: dict[str, float],
        unknown_share: float,
        tuning: Tuning,
    ) -> None:
        self._unknown_share = unknown_share
        self._terms_of = terms_of
        self._tuning = tuning
        self._idf = idf
        self._unknown = max(idf.values(), default=1.0)
        self.documents = [
            _Document(owner=owner, kind=kind, terms=self._unit(terms_of(text, tuning)))
            for owner, kind, text in texts
        ]
        self.documents.extend(self._centroids())
        self._postings: dict[str, list[tuple[int, float]]] = {}
        for number, document in enumerate(self.documents):
            for term, value in document.terms.items():
                self._postings.setdefault(term, []).append((number, value))
        self._spelling = _Spelling(term for term in self._postings if is_word(term))
        self._expanded: dict[str, tuple[tuple[str, float], ...]] = {}

    def query(self, text: str) -> _Query:
        """The message in this space: its own terms, and those its words stand for."""
        terms: dict[str, float] = {}
        squares = 0.0
        names = frozenset(stem(name) for name in names_in(text))
        for term, prior in self._terms_of(text, self._tuning).items():
            closest = 0.0 if _is_name(term, names) else self._unknown_share
            for other, strength in self._expand(term):
                value = prior * strength * self._idf[other]
                terms[other] = max(terms.get(other, 0.0), value)
                closest = max(closest, strength**self._tuning.related_power)
            own = prior * closest * self._idf.get(term, self._unknown)
            squares += own * own
        for word in words(text):
            if word in _QUESTION_WORDS:  # "where" and "when" stand for a place and a time
                for other, _ in related_stems(stem(word)):
                    if other in self._postings:
                        value = self._tuning.question_word * self._idf[other]
                        terms[other] = max(terms.get(other, 0.0), value)
        return _Query(terms=terms, length=math.sqrt(squares))

    def telling_terms(self, text: str) -> frozenset[str]:
        """Terms of this space that the words with a subject in them stand for."""
        stems = {stem(word) for word in words(text) if is_content(word)}
        return frozenset(other for one in stems for other, _ in self._expand(one)) | stems

    def similarities(self, query: _Query) -> dict[int, float]:
        """Document number → cosine with the message."""
        if not query.length:
            return {}
        sums: dict[int, float] = {}
        for term, value in query.terms.items():
            for number, document_value in self._postings.get(term, ()):
                sums[number] = sums.get(number, 0.0) + value * document_value
        return {number: min(1.0, total / query.length) for number, total in sums.items()}

    def covered(self, number: int, query: _Query) -> float:
        """How much of a document's own weight the message accounts for, 0..1."""
        covered = 0.0
        for term, value in self.documents[number].terms.items():
            asked = query.terms.get(term, 0.0)
            if asked:
                covered += value * value * min(1.0, asked / self._idf[term])
        return min(1.0, covered)

    def spoken_for(self, text: str, owners: Collection[int]) -> dict[int, list[str]]:
        """Owner → the words of `text` (as `words` spells them) that fit one of its documents."""
        found: dict[int, list[str]] = {owner: [] for owner in owners}
        for word in dict.fromkeys(words(text)):
            if weight(word) <= FRAME_WEIGHT:
                continue
            reached = {
                self.documents[number].owner
                for other, _ in self._expand(stem(word))
                for number, _ in self._postings.get(other, ())
                if self.documents[number].kind != "counter"
            }
            for owner in reached.intersection(found):
                found[owner].append(word)
        return found

    def _unit(self, terms: dict[str, float]) -> dict[str, float]:
        return _unit({term: prior * self._idf[term] for term, prior in terms.items()})

    def _centroids(self) -> list[_Document]:
        totals: dict[int, Counter[str]] = {}
        for document in self.documents:
            if document.kind == "example":
                total = totals.setdefault(document.owner, Counter())
                for term, value in document.terms.items():
                    total[term] += value  # type: ignore[assignment]
        return [
            _Document(owner=owner, kind="centroid", terms=_unit(total))
            for owner, total in totals.items()
        ]

    def _expand(self, term: str) -> tuple[tuple[str, float], ...]:
        """Terms of the space that a term of a message stands for: itself, related words, near spellings."""
        cached = self._expanded.get(term)
        if cached is None:
            found = {term: 1.0} if term in self._postings else {}
            if is_word(term):
                if not found:
                    found = self._spelling.near(term, self._tuning)
                for other, strength in related_stems(term):
                    if other in self._postings:
                        found[other] = max(found.get(other, 0), strength * self._tuning.related)
            cached = tuple(found.items())
            if len(self._expanded) < _CACHED_WORDS:
                self._expanded[term] = cached
        return cached


def _unit(weighed: Mapping[str, float]) -> dict[str, float]:
    length = math.sqrt(sum(value * value for value in weighed.values()))
    return {term: value / length for term, value in weighed.items()} if length else {}


class _Spelling:
    """Known words by their character n-grams, to find what a misspelt or inflected word stands for."""

    def __init__(self, known: Iterable[str]) -> None:
        self._grams: dict[str, frozenset[str]] = {}
        self._by_gram: dict[str, list[str]] = {}
        for word in known:
            if len(word) >= _SHORTEST_GUESSED:
                self._grams[word] = grams(word)
                for gram in self._grams[word]:
                    self._by_gram.setdefault(gram, []).append(word)

    def near(self, word: str, tuning: Tuning) -> dict[str, float]:
        """Known words that share enough n-grams, with a strength (Dice coefficient) each."""
        if len(word) < _SHORTEST_GUESSED or word.isdigit():
            return {}
        own = grams(word)
        shared = Counter(other for gram in own for other in self._by_gram.get(gram, ()))
        found = {}
        for other, count in shared.items():
            dice = 2 * count / (len(own) + len(self._grams[other]))
            if dice >= tuning.fuzzy_floor:
                found[other] = dice * tuning.fuzzy
        return found


class RelevanceIndex:
    """Scores guidelines by the words of a text. Built once per set of guidelines; guidelines never change in it."""

    def __init__(
        self,
        guidelines: Iterable[Guideline],
        tools: Iterable[Tool] = (),
        tuning: Tuning = TUNING,
        *,
        terms: Iterable[Term] = (),
    ) -> None:
        """`tools` are those that the guidelines name: what they do and choose from speaks for their guidelines too.

        Every text is read in the names of `terms`.
        """
        self._tuning = tuning
        self.glossary = Glossary(terms)
        judged = [guideline for guideline in guidelines if not guideline.always]
        self._uids = [guideline.uid for guideline in judged]
        self._examples = [sum(e.matches for e in guideline.examples) for guideline in judged]
        self._place = {uid: owner for owner, uid in enumerate(self._uids)}
        subjects = [
            (owner, "condition" if place == 0 else "part", text)
            for owner, guideline in enumerate(judged)
            for place, text in enumerate(alternatives(without_speaker(guideline.condition)))
        ]
        said_by_tool = {tool.name: _tool_text(tool) for tool in tools}
        subjects.extend(
            (owner, "tool", said_by_tool[name])
            for owner, guideline in enumerate(judged)
            for name in guideline.tools
            if name in said_by_tool
        )
        wordings = [
            (owner, "example" if example.matches else "counter", example.text)
            for owner, guideline in enumerate(judged)
            for example in guideline.examples
        ]
        subjects, wordings = (
            [(owner, kind, self.glossary.read(text).text) for owner, kind, text in texts]
            for texts in (subjects, wordings)
        )
        idf = _inverse_frequencies([*subjects, *wordings], len(judged), tuning)
        # The more an agent knows, the more a word that it does not know says.
        unknown = tuning.unknown * len(judged) / (len(judged) + tuning.unknown_half)
        self._subjects = _Space(subjects, subject_terms, idf, unknown, tuning)
        self._wordings = _Space(wordings, wording_terms, idf, tuning.unknown, tuning)

    def scores(self, text: str) -> list[tuple[str, float]]:
        """`(guideline uid, score 0..1)` of every guideline that shares anything with the text, best first."""
        best: dict[int, dict[str, float]] = {}
        text = self.glossary.read(text).text
        query = self._subjects.query(text)
        share = self._tuning.coverage
        for number, cosine in self._subjects.similarities(query).items():
            value = (1 - share) * cosine + share * self._subjects.covered(number, query)
            document = self._subjects.documents[number]
            if document.kind == "part":  # one alternative of several, often a single word
                value *= self._tuning.part
            elif document.kind == "tool":
                value = self._tuning.tool * cosine
            _keep_best(best, document, value)
        if self._wordings.documents:
            wording = self._wordings.query(text)
            telling = self._wordings.telling_terms(text)
            for number, cosine in self._wordings.similarities(wording).items():
                document = self._wordings.documents[number]
                if telling and telling.isdisjoint(document.terms):
                    _keep_best(
                        best, document, cosine * self._tuning.no_subject
                    )  # "how do I …" alone
                else:
                    _keep_best(best, document, cosine)
        ranked = [
            (self._uids[owner], self._combined(kinds, self._examples[owner]))
            for owner, kinds in best.items()
        ]
        return sorted(ranked, key=lambda item: (-item[1], item[0]))

    @property
    def threshold(self) -> float:
        """Scores from here on count as "applies": more among many guidelines, where chance hits are likelier."""
        many = len(self._uids) / (len(self._uids) + self._tuning.unknown_half)
        return self._tuning.threshold + self._tuning.threshold_of_many * many

    def fitting_words(self, text: str, uids: Iterable[str]) -> dict[str, list[str]]:
        """Guideline uid → the words of `text`, in order, that fit its condition or examples."""
        reading = self.glossary.read(text)
        owners = {self._place[uid]: uid for uid in uids if uid in self._place}
        fitting: dict[str, list[str]] = {uid: [] for uid in owners.values()}
        for space in (self._subjects, self._wordings):
            for owner, found in space.spoken_for(reading.text, owners).items():
                known = fitting[owners[owner]]
                for word in (reading.said.get(word, word) for word in found):
                    if word not in known:
                        known.append(word)
        return fitting

    def _combined(self, kinds: dict[str, float], examples: int) -> float:
        tuning = self._tuning
        score = condition = kinds.get("condition", 0.0)
        if "example" in kinds:
            shares = (tuning.condition_share, 1.0, tuning.centroid_share)
            values = (condition, kinds["example"], kinds["centroid"])
            mean = sum(a * b for a, b in zip(shares, values, strict=True)) / sum(shares)
            # The more examples there are, the less the bare condition says beside them.
            alone = 1 - tuning.trust_in_examples * examples / (examples + 2)
            score = max(alone * condition, tuning.example_gain * mean)
        against = kinds.get("counter", 0.0)
        if against > 0.4 and against >= 0.75 * score:
            score *= 1 - tuning.counter * against
        return min(1.0, score)


def _tool_text(tool: Tool) -> str:
    """What a tool does, and what it lets choose from."""
    choices = [
        str(choice).replace("_", " ")
        for parameter in tool.parameters
        for choice in parameter.schema.get("enum", ())
        if isinstance(choice, str) and not choice.isupper()
    ]
    return ". ".join([tool.name.replace("_", " "), tool.description, *choices[:40]])


def _keep_best(best: dict[int, dict[str, float]], document: _Document, value: float) -> None:
    kinds = best.setdefault(document.owner, {})
    kind = "condition" if document.kind in ("part", "tool") else document.kind
    kinds[kind] = max(kinds.get(kind, 0.0), value)


def _inverse_frequencies(
    texts: list[tuple[int, str, str]], guidelines: int, tuning: Tuning
) -> dict[str, float]:
    """Term → how rare it is among the guidelines, whatever their number: about 0.7 for one that all share."""
    owners: dict[str, set[int]] = {}
    for owner, kind, text in texts:
        terms_of = subject_terms if kind in ("condition", "part", "tool") else wording_terms
        for term in terms_of(text, tuning):
            owners.setdefault(term, set()).add(owner)
    return {
        term: math.log(1 + (guidelines + 1) / (len(found) + 0.5)) for term, found in owners.items()
    }


_indexes: OrderedDict[str, RelevanceIndex] = OrderedDict()
_indexes_lock = Lock()


def index_of(agent: Agent) -> RelevanceIndex:
    """The index over an agent's enabled guidelines, kept for the agents used last."""
    with _indexes_lock:
        found = _indexes.get(agent.fingerprint)
        if found is not None:
            _indexes.move_to_end(agent.fingerprint)
            return found
    built = RelevanceIndex(
        (g for g in agent.guidelines if g.enabled), agent.tools, terms=agent.terms
    )
    with _indexes_lock:
        _indexes[agent.fingerprint] = built
        while len(_indexes) > _CACHED_AGENTS:
            _indexes.popitem(last=False)
    return built
