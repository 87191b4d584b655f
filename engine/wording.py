"""Words of a text as the offline methods compare them: spelled out, stemmed, weighed, and related to one another.

Everything here is knowledge of the English language in general; words of other languages and scripts pass through
unchanged (Chinese, Japanese and Thai text, which has no spaces, as overlapping pairs of characters).
"""

import re
import unicodedata
from functools import lru_cache
from itertools import pairwise
from threading import Lock

import snowballstemmer

from engine.synonyms import RELATED_WORDS

_WORD = re.compile(r"[^\W_]+(?:['’][^\W_]+)*|[$€£¥₹%]", re.UNICODE)
UNSPACED = re.compile(r"[\u0e00-\u0e7f\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff]+")
_IRREGULAR_CONTRACTION = {
    "won't": "will not",
    "can't": "can not",
    "cannot": "can not",
    "shan't": "shall not",
    "ain't": "is not",
    "let's": "let us",
    "gonna": "going to",
    "wanna": "want to",
    "gotta": "got to",
    "gimme": "give me",
    "lemme": "let me",
    "dunno": "do not know",
    "whats": "what is",
    "wheres": "where is",
    "hows": "how is",
    "whos": "who is",
    "im": "i am",
    "ive": "i have",
    "dont": "do not",
    "doesnt": "does not",
    "didnt": "did not",
    "cant": "can not",
    "wont": "will not",
    "isnt": "is not",
    "wasnt": "was not",
    "havent": "have not",
    "hasnt": "has not",
    "couldnt": "could not",
    "wouldnt": "would not",
    "thats": "that is",
    "theres": "there is",
    "u": "you",
    "ur": "your",
    "pls": "please",
    "plz": "please",
    "thx": "thanks",
    "ok": "okay",
    "&": "and",
}
_CONTRACTION_END = {
    "n't": " not",
    "'re": " are",
    "'ve": " have",
    "'ll": " will",
    "'m": " am",
    "'d": " would",
}
_S_IS_A_VERB_AFTER = frozenset(
    "what where who when how why that there here it he she this everything something".split()
)
SYMBOL_WORD = {"$": "dollar", "€": "euro", "£": "pound", "¥": "yen", "₹": "rupee", "%": "percent"}

# Words that carry grammar rather than a subject: they never make a condition apply.
FUNCTION_WORDS = frozenset(
    """
    a an the this that these those some any each every either neither both all such same
    i me my mine myself you your yours yourself he him his himself she her hers it its itself we us our ours they
    them their theirs one ones someone somebody anyone anybody something anything everyone everything
    who whom whose which what where when why how
    and or but nor so yet if then than because as while though although until unless whether
    of in on at to for from by with about into onto upon over under between through during before after above below
    up down out off near via per within without toward towards against among around
    be am is are was were been being do does did doing done have has had having will would shall should can could may
    might must ought not no
    very too also just only even still again ever never always often there here now well really quite rather actually
    please okay yes yeah yep nope oh um uh like etc ie eg
    """.split()
)
# Words by which conditions and requests are framed ("the customer wants to know about …"): nearly no evidence.
FRAME_WORDS = frozenset(
    """
    customer customers user users client clients caller callers visitor visitors person people guest guests shopper
    ask asks asked asking want wants wanted wanting wish wishes need needs needed needing know knows known knowing
    say says said saying tell tells told telling talk talks talking mention mentions mentioned mentioning
    inquire inquires inquiring enquire enquires request requests requesting requested express expresses expressing
    indicate indicates indicating state states stating report reports reporting raise raises question questions inquiry
    seek seeks seeking try tries trying tried get gets getting got let lets give gives giving gave show shows showing
    make makes making made go goes going see sees look looks looking find finds finding help helps helping
    wonder wondering think thinks thinking hope hoping interested interest concern concerns concerning regarding
    relate relates related information info detail details something thing things kind sort way ways
    agent assistant conversation message bring brings use uses using take takes taking
    """.split()
)
# Words of time go with any subject.
TIME_WORDS = frozenset(
    """
    monday tuesday wednesday thursday friday saturday sunday mon tue wed thu fri
    sat sun today tomorrow yesterday tonight
    morning afternoon evening weekend week weeks month months year years next last ago january february march april may
    june july august september october november december
    """.split()
)
# Words that go with many subjects: what they are said of counts for more.
COMMON_WORDS = frozenset(
    """
    change changes changing changed modify update add remove choose select pick bring
    good best better new old long short
    big small recommend recommends suggest learn explain start starts started stop begin work works working
    buy purchase send receive read write call come comes keep set turn put run move leave nearest nearby close
    possible certain specific general current currently due
    """.split()
)
COMMON_WEIGHT = 0.6
FUNCTION_WEIGHT = 0.08
FRAME_WEIGHT = 0.15
TIME_WEIGHT = 0.4

SPEAKERS = (
    "customer|user|client|caller|visitor|guest|person|patient|passenger|member|employee|student|shopper|reader|traveller|"
    "traveler|buyer|seller|tenant|resident|citizen|applicant|candidate|subscriber|driver|parent|teacher|player|owner|guardian|"
    "participant|attendee|contact|lead|prospect|borrower|policyholder|cardholder|rider|host|diner|donor|volunteer|partner|"
    "supplier|developer|learner|viewer|listener|colleague|worker|someone|somebody|anyone|anybody|they|he|she"
)
"""Who an agent talks to, as authors call them: a regular expression's alternatives, singular."""

_SPEAKER = re.compile(
    rf"^\W*(?:(?:if|when|whenever|once|after|as soon as)\s+)?(?:(?:the|an?|any|"
    rf"some)\s+)?(?:[\w-]+\s+)?(?:{SPEAKERS})s?(?:['’]s?)?\b",
    re.IGNORECASE,
)


def without_speaker(condition: str) -> str:
    """A condition without the person it begins with: "the patient asks for …" → "asks for …"."""
    match = _SPEAKER.match(condition)
    return condition[match.end() :].strip() if match else condition


def begins_with_speaker(condition: str) -> bool:
    """Whether a condition speaks of the person the agent talks to."""
    return _SPEAKER.match(condition) is not None


def _groups() -> dict[str, tuple[tuple[str, float], ...]]:
    """Stem → the stems related to it, with how strongly (small groups relate more strongly than large ones)."""
    related: dict[str, dict[str, float]] = {}
    for line in RELATED_WORDS.strip().splitlines():
        stems = list(dict.fromkeys(stem(word) for word in line.split()))
        strength = max(0.5, min(0.85, 2.0 / len(stems) ** 0.6))
        for one in stems:
            others = related.setdefault(one, {})
            for other in stems:
                if other != one:
                    others[other] = max(others.get(other, 0.0), strength)
    return {one: tuple(others.items()) for one, others in related.items()}


# Questions whose first words name what is asked for ("how much" is a price or an amount).
_QUESTION_PHRASES = (
    (("how", "much"), "howmuch"),
    (("how", "far"), "howfar"),
    (("how", "long"), "howlong"),
    (("how", "many"), "many"),
    (("how", "old"), "age"),
    (("how", "come"), "reason"),
    (("money", "back"), "moneyback"),
    (("day", "off"), "dayoff"),
    (("days", "off"), "dayoff"),
    (("time", "off"), "dayoff"),
    (("sign", "up"), "signup"),
    (("log", "in"), "login"),
    (("sign", "in"), "signin"),
    (("pick", "up"), "pickup"),
    (("check", "in"), "checkin"),
    (("check", "out"), "checkout"),
    (("you", "have"), "available"),
    (("you", "sell"), "available"),
    (("is", "there"), "available"),
    (("are", "there"), "available"),
    (("you", "got"), "available"),
    (("give", "away"), "donate"),
    (("on", "time"), "punctual"),
    (("going", "on"), "event"),
    (("whats", "on"), "event"),
    (("go", "back"), "return"),
    (("give", "back"), "return"),
    (("bring", "back"), "return"),
)
_PHRASES_BY_FIRST: dict[str, dict[str, str]] = {}
for _pair, _meaning in _QUESTION_PHRASES:
    _PHRASES_BY_FIRST.setdefault(_pair[0], {})[_pair[1]] = _meaning

_SNOWBALL = snowballstemmer.stemmer("english")
_SNOWBALL_LOCK = Lock()  # a stemmer keeps the word it works on
_IRREGULAR_STEM = {
    "paid": "pay",
    "bought": "buy",
    "sent": "send",
    "spent": "spend",
    "stole": "stolen",
    "broke": "broken",
    "flew": "fli",
    "flown": "fli",
    "ate": "eat",
    "eaten": "eat",
    "children": "child",
    "women": "woman",
    "men": "man",
    "better": "good",
    "best": "good",
    "cheaper": "cheap",
    "cheapest": "cheap",
    "earlier": "earli",
    "later": "late",
    "latest": "late",
    "wrote": "write",
    "written": "write",
    "spoke": "speak",
    "spoken": "speak",
    "came": "come",
    "went": "go",
    "gone": "go",
    "took": "take",
    "taken": "take",
    "forgot": "forget",
    "forgotten": "forget",
    "sold": "sell",
    "told": "tell",
    "drove": "drive",
    "driven": "drive",
    "made": "make",
    "chose": "choos",
    "chosen": "choos",
}


@lru_cache(maxsize=16_384)
def stem(word: str) -> str:
    """The stem of a lower-case word (Snowball's English stemmer, plus irregular forms)."""
    if word in _IRREGULAR_STEM:
        return _IRREGULAR_STEM[word]
    with _SNOWBALL_LOCK:
        stemmed: str = _SNOWBALL.stemWord(word)
    return stemmed


_RELATED_STEMS = _groups()


_CURRENCIES = frozenset(
    stem(word)
    for word in """
    dollar euro pound sterling franc yen yuan renminbi rupee krona krone kronor zloty
    koruna forint lira ruble peso real rand
    won baht rupiah ringgit dong shekel dirham riyal naira usd eur gbp chf jpy cny inr
    sek nok dkk pln czk huf try cad aud nzd
    """.split()
)
_KIND_STRENGTH = 0.75


def related_stems(one: str) -> tuple[tuple[str, float], ...]:
    """The stems related to a stem in English generally, each with a strength between 0 and 1."""
    if one in _CURRENCIES:
        return (("currenc", _KIND_STRENGTH), *_RELATED_STEMS.get(one, ()))
    if one.isdigit():
        return _NUMBER_KINDS
    return _RELATED_STEMS.get(one, ())


_NUMBER_KINDS = ((stem("amount"), 0.5), (stem("number"), 0.5))


@lru_cache(maxsize=16_384)
def _spelled_out(token: str) -> tuple[str, ...]:
    token = token.replace("’", "'")
    if token in SYMBOL_WORD:
        return (SYMBOL_WORD[token],)
    if token in _IRREGULAR_CONTRACTION:
        return tuple(_IRREGULAR_CONTRACTION[token].split())
    for end, spelled in _CONTRACTION_END.items():
        if token.endswith(end) and len(token) > len(end):
            return (token[: -len(end)], *spelled.split())
    if token.endswith("'s"):
        base = token[:-2]
        return (base, "is") if base in _S_IS_A_VERB_AFTER else (base,)
    return (token.replace("'", ""),)


def fold(text: str) -> str:
    """Lower case without accents and compatibility forms, for comparison only (lengths may change)."""
    decomposed = unicodedata.normalize("NFKD", text.casefold())
    return "".join(char for char in decomposed if not unicodedata.combining(char))


def words(text: str) -> list[str]:
    """The words of a text in order: folded, contractions spelled out, currency signs as words."""
    return list(_words(text))


@lru_cache(maxsize=256)
def _words(text: str) -> tuple[str, ...]:
    found: list[str] = []
    for match in _WORD.finditer(fold(text)):
        token = match.group()
        if UNSPACED.search(token):
            found.extend(token[i : i + 2] for i in range(max(1, len(token) - 1)))
        else:
            found.extend(_spelled_out(token))
    return tuple(found)


def phrases(spelled: list[str]) -> list[str]:
    """Meanings of fixed word pairs in `words(text)`: "how much" → "howmuch"."""
    found = [
        _PHRASES_BY_FIRST[first][second]
        for first, second in pairwise(spelled)
        if first in _PHRASES_BY_FIRST and second in _PHRASES_BY_FIRST[first]
    ]
    for place, word in enumerate(spelled):
        if word in ("in", "into") and any(
            stem(near) in _CURRENCIES for near in spelled[place + 1 : place + 3]
        ):
            found.append("convert")  # "how much is that in Swiss francs"
    return found


@lru_cache(maxsize=16_384)
def weight(word: str) -> float:
    """How much a word says about the subject, before any corpus is known: 0 for grammar, 1 for content."""
    if word in FUNCTION_WORDS:
        return FUNCTION_WEIGHT
    if word in FRAME_WORDS:
        return FRAME_WEIGHT
    if word in COMMON_WORDS:
        return COMMON_WEIGHT
    if word in TIME_WORDS:
        return TIME_WEIGHT
    if len(word) == 1 and not word.isdigit() and word.isascii():
        return 0.1
    return 1.0


def is_content(word: str) -> bool:
    """Whether a word says something of the subject."""
    return weight(word) >= COMMON_WEIGHT


def grams(word: str) -> frozenset[str]:
    """Character n-grams (3 to 5) of a word with its borders marked."""
    marked = f"<{word}>"
    return frozenset(
        marked[i : i + n] for n in (3, 4, 5) for i in range(max(0, len(marked) - n + 1))
    )
