"""An agent's terms in a text: other words for a term are read as its name, so that both fit the same guidelines."""

import re
from collections.abc import Iterable
from dataclasses import dataclass, field

from engine.spec import Term
from engine.wording import UNSPACED, words

_BETWEEN_WORDS = re.compile(r"[\s_-]+")
_PLURAL = r"(?:['’]?s|es)?"


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """A text in the terms' own names; `said` has, for each word that the text gained so, what stood there."""

    text: str
    said: dict[str, str] = field(default_factory=dict)


class Glossary:
    """Built once from the terms of an agent."""

    def __init__(self, terms: Iterable[Term] = ()) -> None:
        terms = [term for term in terms if term.name.strip()]
        # A name stands for itself, and so does what several terms are called.
        self._name_of = {_key(term.name): "" for term in terms}
        for term in terms:
            for synonym in dict.fromkeys(map(_key, term.synonyms)):
                if synonym:
                    ambiguous = synonym in self._name_of
                    self._name_of[synonym] = "" if ambiguous else term.name
        # The longest first: within "savings account", "savings" is no word of its own.
        spellings = sorted(self._name_of, key=lambda key: (-len(key), key))
        self._pattern = (
            re.compile("|".join(map(_spelling, spellings)), re.IGNORECASE) if spellings else None
        )

    def read(self, text: str) -> Reading:
        if self._pattern is None:
            return Reading(text=text)
        said: dict[str, str] = {}
        own = frozenset(words(text))

        def as_name(found: re.Match[str]) -> str:
            spoken = found.group()
            name = self._named_by(
                spoken
            ).lower()  # a capital inside a sentence would make it a name
            if not name:
                return spoken
            said.update((word, spoken) for word in words(name) if word not in own)
            return name

        return Reading(text=self._pattern.sub(as_name, text), said=said)

    def _named_by(self, spoken: str) -> str:
        """The name of the term that is meant; empty where it is said by its name."""
        key = _key(spoken)
        known = (key, *(key.removesuffix(end) for end in ("'s", "’s", "es", "s")))
        return next((self._name_of[one] for one in known if one in self._name_of), "")


def _key(text: str) -> str:
    return _BETWEEN_WORDS.sub(" ", text.strip()).lower()


def _spelling(key: str) -> str:
    """A pattern for a term's name or synonym, also in the plural."""
    between = r"[\s_-]+".join(re.escape(part) for part in key.split(" "))
    if UNSPACED.search(key):  # scripts without spaces have no ends of words
        return between
    return rf"(?<!\w){between}{_PLURAL}(?!\w)"
