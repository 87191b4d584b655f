"""Conditions that compare something with a number: "the balance is below € 200", "more than 30 days old"."""

import operator
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import date

from engine.model.offline.readings import Kind, Reading, numbers
from engine.model.offline.results import Leaf, is_identifier, key_stems, spaced
from engine.wording import FUNCTION_WEIGHT, related_stems, stem, weight, words

_BELOW = (
    r"below|under|less than|lower than|smaller than|fewer than|cheaper than|younger than|earlier than|"
    r"short of|beneath|<"
)
_ABOVE = (
    r"above|over|more than|greater than|higher than|larger than|bigger than|longer than|older than|"
    r"later than|exceed(?:s|ing)?|"
    r"in excess of|upwards of|beyond|>"
)
_AT_MOST = r"at most|no more than|not more than|up to|maximum of|does not exceed|<=|≤|within"
_AT_LEAST = r"at least|no less than|not less than|minimum of|no fewer than|reach(?:es)?|>=|≥"
_EQUAL = r"exactly|equals?(?: to)?|="
_QUANTITY = r"(?P<amount>[$€£¥₹]?\s?[-−]?(?:\d|[a-z]+\b).*)"
_COMPARISON = re.compile(
    rf"\b(?P<not>(?:is|are|was) not |not |isn't |n't )?(?:(?P<most>{_AT_MOST})|(?P<least>{_AT_LEAST})|"
    rf"(?P<below>{_BELOW})|"
    rf"(?P<above>{_ABOVE})|(?P<equal>{_EQUAL}))(?=\s|\d|$)\s*{_QUANTITY}",
    re.IGNORECASE,
)
_AFTERWARDS = re.compile(
    r"^\W*(?:or|and)\s+(?:(?P<up>more|above|over|higher|older|longer|up)|(?P<down>less|below|under|fewer|lower|younger))\b",
    re.IGNORECASE,
)
_BETWEEN = re.compile(r"\bbetween\s+(?P<low>.+?)\s+and\s+(?P<high>.+)", re.IGNORECASE)
_SIGN = re.compile(
    r"\b(?:is|are|was|were|becomes?|went|goes|has|have|be|would be)\s+(?:a\s+|in\s+the\s+|at\s+)?"
    r"(?P<word>negative|overdrawn|in the red|red|zero|nil|positive)\b",
    re.IGNORECASE,
)
_LEAVES = re.compile(r"\b(?:leaves?|leaving|left|remains?|remaining|afterwards?)\b", re.IGNORECASE)
_HELD = re.compile(r"\b(?:balance|available|funds|left|remaining|credit|stock|quota|allowance)\b")
_TIME_UNITS = {"day": 1.0, "week": 7.0, "month": 30.44, "year": 365.25, "hour": 1 / 24}

Test = Callable[[float], bool]


@dataclass(frozen=True, kw_only=True)
class Comparison:
    """`subject` is compared by `test`; `words` say with what ("below 200"); `unit` is a currency or a noun."""

    subject: str
    test: Test
    words: str
    bound: float
    unit: str = ""

    @property
    def afterwards(self) -> bool:
        """Whether it speaks of what an amount would leave."""
        return bool(_LEAVES.search(self.subject))


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """The outcome of a check: `holds`, and the sentence that says why."""

    holds: bool
    because: str


def comparison_in(condition: str) -> Comparison | None:
    """The comparison that a condition states, if any."""
    if match := _BETWEEN.search(condition):
        low, high = _first_number(match["low"]), _first_number(match["high"])
        if low is not None and high is not None:
            return Comparison(
                subject=condition[: match.start()],
                test=lambda value: low.value <= value <= high.value,
                words=f"between {low.value} and {high.value}",
                bound=low.value,
                unit=high.unit or low.unit,
            )
    if match := _COMPARISON.search(condition):
        number = _first_number(match["amount"], near=12)
        if number is not None:
            return _compared(condition, match, number)
    if match := _SIGN.search(condition):
        word = match["word"].lower()
        test: Test = operator.not_ if word in ("zero", "nil") else (lambda value: value < 0)
        if word == "positive":
            test = _positive
        return Comparison(subject=condition[: match.start()], test=test, words=word, bound=0)
    return _or_more(condition)


def _positive(value: float) -> bool:
    return value > 0


def _compared(condition: str, match: re.Match[str], number: Reading) -> Comparison:
    bound = float(number.value)
    kind = next(name for name in ("most", "least", "below", "above", "equal") if match[name])
    relation = {
        "most": operator.le,
        "least": operator.ge,
        "below": operator.lt,
        "above": operator.gt,
        "equal": operator.eq,
    }[kind]
    negated = bool(match["not"])
    said = f"{match[kind].lower()} {number.value}"
    rest = condition[match.start("amount") :][number.end :]
    return Comparison(
        subject=f"{condition[: match.start()]} {rest}",
        test=lambda value: relation(value, bound) is not negated,
        words=f"not {said}" if negated else said,
        bound=bound,
        unit=number.unit,
    )


def _or_more(condition: str) -> Comparison | None:
    """ "ten or more guests", "200 or less"."""
    for number in numbers(condition):
        after = _AFTERWARDS.match(condition[number.end :])
        if after is None:
            continue
        bound = float(number.value)
        relation = operator.ge if after["up"] else operator.le
        return Comparison(
            subject=f"{condition[: number.start]} {condition[number.end + after.end() :]}",
            test=lambda value, bound=bound, relation=relation: relation(value, bound),  # type: ignore[misc]
            words=f"{number.value} {after.group().strip()}",
            bound=bound,
            unit=number.unit if number.unit not in ("or", "and") else "",
        )
    return None


def _first_number(text: str, near: int = 40) -> Reading | None:
    found = [reading for reading in numbers(text) if reading.start <= near]
    return min(found, key=lambda reading: reading.start, default=None)


def check_results(
    comparison: Comparison, leaves: Sequence[Leaf], amount: float | None, today: date
) -> Finding | None:
    """Compares the fields of this turn's results that the condition is about; None when there is none.

    `amount` is the sum that the customer named, for conditions on what it would leave.
    """
    about = _subject_stems(comparison.subject)
    scored = [
        (score, value, leaf)
        for leaf in leaves
        if (value := _measured(leaf, comparison, today)) is not None
        and (score := _about(leaf, about, comparison)) > 0
    ]
    if comparison.afterwards and not scored:
        scored = [
            (1.0, float(leaf.value), leaf)
            for leaf in leaves
            if _HELD.search(spaced(leaf.key)) and _measured(leaf, comparison, today) is not None
        ]
    if not scored:
        return None
    best = max(score for score, _, _ in scored)
    chosen = [(value, leaf) for score, value, leaf in scored if score >= 0.85 * best]
    if comparison.afterwards and not any(_LEAVES.search(spaced(leaf.key)) for _, leaf in chosen):
        if amount is None:
            return None
        chosen = [(value - amount, leaf) for value, leaf in chosen]
        intro = f" less the {amount:g} asked for"
    else:
        intro = ""
    for value, leaf in chosen:
        if comparison.test(value):
            return Finding(holds=True, because=_told(leaf, intro, value, "which is", comparison))
    value, leaf = chosen[0]
    return Finding(holds=False, because=_told(leaf, intro, value, "which is not", comparison))


def _told(leaf: Leaf, intro: str, value: float, link: str, comparison: Comparison) -> str:
    return f"{leaf.path}{intro} is {value:g}, {link} {comparison.words}."


def check_text(comparison: Comparison, text: str) -> Finding | None:
    """Compares the numbers that the customer wrote; None when there is none of the kind."""
    found = list(numbers(text))
    if comparison.unit:
        same = [reading for reading in found if _same_unit(reading.unit, comparison.unit)]
        found = same or [reading for reading in found if reading.kind is Kind.NUMBER]
    for reading in found:
        if comparison.test(float(reading.value)):
            said = text[reading.start : reading.end]
            return Finding(holds=True, because=f"The customer's “{said}” is {comparison.words}.")
    if found:
        said = text[found[0].start : found[0].end]
        return Finding(holds=False, because=f"The customer's “{said}” is not {comparison.words}.")
    return None


def _same_unit(one: str, other: str) -> bool:
    return one.removesuffix("s") == other.removesuffix("s")


def _measured(leaf: Leaf, comparison: Comparison, today: date) -> float | None:
    """The leaf as a number comparable with the condition's: itself, or the age of a date in the unit asked for."""
    value = leaf.value
    if isinstance(value, bool) or is_identifier(leaf.key):
        return None
    if isinstance(value, int | float):
        return float(value)
    if not isinstance(value, str) or len(value) > 40:
        return None
    unit = _TIME_UNITS.get(comparison.unit.removesuffix("s"))
    if unit is not None and re.match(r"\d{4}-\d{2}-\d{2}", value):
        try:
            return abs((today - date.fromisoformat(value[:10])).days) / unit
        except ValueError:
            return None
    found = list(numbers(value)) if re.match(r"\W*(?:[A-Z]{3}\s)?\d", value) else []
    return float(found[0].value) if len(found) == 1 else None


def _subject_stems(subject: str) -> dict[str, float]:
    stems: dict[str, float] = {}
    for word in words(subject):
        telling = weight(word) > FUNCTION_WEIGHT and not word.isdigit()
        if telling and not _LEAVES.fullmatch(word):
            one = stem(word)
            stems[one] = 1.0
            for other, strength in related_stems(one):
                stems[other] = max(stems.get(other, 0.0), strength)
    return stems


_PLAIN_AMOUNT = frozenset(stem(word) for word in ("amount", "value", "total", "count", "number"))


def _about(leaf: Leaf, about: dict[str, float], comparison: Comparison) -> float:
    """How surely the condition means this field: by its own name most, by the tool's name least."""
    own = key_stems(leaf.key)
    above = key_stems(*leaf.keys[:-1])
    tool = key_stems(leaf.tool)
    score = max((about.get(one, 0.0) for one in own), default=0.0)
    context = max((about.get(one, 0.0) for one in above | tool), default=0.0)
    if comparison.unit and stem(comparison.unit.removesuffix("s")) in own:
        score = max(score, 0.8)
    if score:
        # Of "available balance" and "balance" the one that says no more than the condition is meant.
        extra = sum(one not in about for one in own)
        return score + 0.3 * context - 0.1 * extra
    if context and (not own or own <= _PLAIN_AMOUNT):
        return 0.6 * context
    return 0.0
