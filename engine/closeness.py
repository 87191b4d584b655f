"""How close in words some short texts are to what is being talked about: stems weighed by how rare they are there."""

import math
from collections import Counter
from collections.abc import Sequence

from engine.weighing import subject_terms
from engine.wording import related_stems

_RELATED = 0.5


def closeness(texts: Sequence[str], said: str) -> list[float]:
    """For each text 0 (no word in common) to 1 (the same words), beside the others: what all share counts little."""
    documents = [subject_terms(text) for text in texts]
    frequency = Counter(term for document in documents for term in document)
    query = _with_related(subject_terms(said), frequency)
    rarity = {
        term: math.log(1 + (len(texts) + 1) / (count + 0.5)) for term, count in frequency.items()
    }
    wanted = {term: value * rarity.get(term, 1.0) for term, value in query.items()}
    found = []
    for document in documents:
        terms = {term: value * rarity[term] for term, value in document.items()}
        shared = sum(value * wanted.get(term, 0.0) for term, value in terms.items())
        length = _length(terms) * _length(wanted)
        found.append(min(shared / length, 1.0) if length else 0.0)
    return found


def _with_related(terms: dict[str, float], known: Counter[str]) -> dict[str, float]:
    """The terms, and related words as far as one of the texts has them."""
    expanded = dict(terms)
    for term, value in terms.items():
        for other, kinship in related_stems(term):
            if other in known:
                expanded[other] = max(expanded.get(other, 0.0), _RELATED * kinship * value)
    return expanded


def _length(terms: dict[str, float]) -> float:
    return math.sqrt(sum(value * value for value in terms.values()))
