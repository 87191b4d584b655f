"""Authors' instructions as direct speech: "tell them that their card is blocked" → "Your card is blocked."."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from engine.model.offline.turning import finished, to_customer
from engine.wording import SPEAKERS


class Said(StrEnum):
    """What became of one clause of an action."""

    SPEECH = "speech"  # it is said
    QUESTION = "question"
    FACT = "fact"  # it wants facts told, which only a result can give
    DEED = "deed"  # it wants something done or looked up
    MANNER = "manner"  # how to speak, or what not to do: nothing to say
    UNCLEAR = "unclear"


@dataclass(frozen=True, slots=True, kw_only=True)
class Clause:
    """A clause of an action: what it is, and the text to say for it (empty where nothing is said).

    `quotes` are the words that it gives in quotation marks.
    """

    kind: Said
    text: str
    source: str
    quotes: tuple[str, ...] = ()


_QUOTE = re.compile(r"[\"“”„«]([^\"“”„«»]{2,600})[\"”“»]|(?<!\w)['‘]([^'‘’]{2,600})['’](?!\w)")
_TELLERS = (
    r"(?:say|tell|inform|explain|mention|remind|note|state|clarify|emphasi[sz]e|assure|reassure|warn|notify|announce|add|answer|reply|"
    r"respond|point out|let|advise|make clear|stress|acknowledge|admit|confirm)"
)
_WHOM = rf"(?:\s+(?:to\s+)?(?:the\s+)?(?:{SPEAKERS}|them|him|her)\b)?"
_START = (
    r"^(?:please\s+|always\s+|then\s+|also\s+|first\s+|finally\s+|next\s+|briefly\s+|politely\s+|kindly\s+|"
    r"gently\s+|clearly\s+|and\s+|to\s+)*"
)
_THAT = re.compile(
    rf"{_START}{_TELLERS}{_WHOM}(?:\s+know)?(?:\s+clearly)?\s+that\s+(?P<rest>.+)",
    re.IGNORECASE | re.DOTALL,
)
_COLON = re.compile(
    rf"{_START}{_TELLERS}{_WHOM}(?:\s+with)?\s*:\s*(?P<rest>.+)", re.IGNORECASE | re.DOTALL
)
_BARE_SAY = re.compile(
    rf"{_START}(?:say|answer|reply|respond)(?:\s+with)?\s+(?P<rest>.+)", re.IGNORECASE | re.DOTALL
)
_TELL = re.compile(
    rf"{_START}(?P<verb>tell|inform|explain|mention|describe|give|provide|share|present|show|list|summari[sz]e|outline|"
    rf"report|read|display|state|walk|answer|clarify|remind|notify|name|quote|communicate|convey|return){_WHOM}\s*"
    r"(?:know\s+)?(?:about\s+|of\s+|with\s+|through\s+)?(?P<rest>.*)",
    re.IGNORECASE | re.DOTALL,
)
_ASK = re.compile(
    rf"{_START}(?:(?:ask|inquire|enquire){_WHOM}|find out|check with{_WHOM}|"
    rf"request(?:\s+from{_WHOM})?(?=\s+their\b))\s*(?P<rest>.+)",
    re.IGNORECASE | re.DOTALL,
)
_OFFER = re.compile(rf"{_START}(?:offer|propose){_WHOM}\s+(?P<rest>.+)", re.IGNORECASE | re.DOTALL)
_APOLOGISE = re.compile(
    rf"{_START}(?:apologi[sz]e|say sorry|express regret|empathi[sz]e|show empathy|be empathetic|"
    rf"sympathi[sz]e){_WHOM}\s*(?P<rest>.*)",
    re.IGNORECASE | re.DOTALL,
)
_GREET = re.compile(
    rf"{_START}(?:greet|welcome|say hello|say hi){_WHOM}\b(?P<rest>.*)", re.IGNORECASE | re.DOTALL
)
_THANK = re.compile(rf"{_START}thank{_WHOM}\s*(?P<rest>.*)", re.IGNORECASE | re.DOTALL)
_BYE = re.compile(
    rf"{_START}(?:say (?:goodbye|bye|farewell)|bid{_WHOM} farewell|wish{_WHOM})\s*(?P<rest>.*)",
    re.IGNORECASE | re.DOTALL,
)
_SUGGEST = re.compile(
    rf"{_START}(?P<verb>recommend|suggest|advise|encourage|invite|urge|direct|refer|point){_WHOM}\s+(?P<rest>.+)",
    re.IGNORECASE | re.DOTALL,
)
_REFUSE = re.compile(
    rf"{_START}(?:refuse|decline|politely decline|do not agree)\s*(?:to\s+)?(?P<rest>.*)",
    re.IGNORECASE | re.DOTALL,
)
_HAND_OVER = re.compile(
    rf"{_START}(?:hand (?:over|off)|transfer|escalate|connect|forward|pass|redirect|route|"
    rf"put){_WHOM}\b.*\b(?:human|person|agent|operator|"
    r"colleague|team|staff|support|manager|specialist|supervisor|representative|department)",
    re.IGNORECASE | re.DOTALL,
)
_MANNER = re.compile(
    rf"{_START}(?:do not|don'?t|never|avoid|be|keep|stay|remain|use|speak|write|sound|maintain|remember|"
    rf"make sure|ensure|try|"
    r"focus|limit|refrain|treat|respect|act|behave|only|respond in|reply in|answer in|prioriti[sz]e|"
    r"follow|consider|listen|wait)\b",
    re.IGNORECASE,
)
_CONDITIONAL = re.compile(
    r"^(?:if|when|unless|in case|where|should|once|as soon as|after|before)\b", re.IGNORECASE
)
_SPLIT = re.compile(r"(?<=[.!;])\s+|\n+|,?\s+(?:and then|then)\s+|;\s*")
_CLAUSE_VERBS = (
    "say|tell|inform|explain|mention|remind|clarify|assure|reassure|warn|notify|ask|offer|apologi[sz]e|greet|welcome|thank|recommend|"
    "suggest|advise|give|provide|show|list|share|check|look|find|get|verify|confirm|use|call|run|"
    "do not|don'?t|never|avoid|be|keep|hand|"
    "transfer|escalate|connect|let|wish|refuse|decline|point|read|describe|summari[sz]e|invite|encourage|propose|state|answer|"
    "block|book|send|cancel|create|open|submit|register|update|refer|direct|report|present|add|make|convert|calculate|quote|note"
)
_JOINED = re.compile(
    rf",?\s+and\s+(?=(?:also\s+|politely\s+|briefly\s+|always\s+)?(?:{_CLAUSE_VERBS})\b)|,\s+(?=(?:{_CLAUSE_VERBS})\b)",
    re.IGNORECASE,
)


def clauses(action: str) -> list[Clause]:
    """The clauses of an action in order, each turned into what the agent would say."""
    quoted: list[str] = []

    def put_aside(match: re.Match[str]) -> str:
        quoted.append(match[1] or match[2])
        return f"\u0001{len(quoted) - 1}\u0001"

    text = _QUOTE.sub(put_aside, action.strip())
    pieces = [
        piece
        for part in _SPLIT.split(text)
        # What follows "if …" holds under that condition only.
        for piece in ([part] if _CONDITIONAL.match(part.strip()) else _JOINED.split(part))
    ]
    return [
        _clause(piece.strip(" ,;"), quoted) for piece in pieces if piece and piece.strip(" ,;.")
    ]


_MARK = re.compile("\u0001(\\d+)\u0001")


def _clause(piece: str, quoted: Sequence[str]) -> Clause:
    source = _MARK.sub(lambda match: quoted[int(match[1])], piece)
    quotes = tuple(quoted[int(mark)] for mark in _MARK.findall(piece))
    kind, text = _said(piece, source, quotes)
    return Clause(kind=kind, text=text, source=source, quotes=quotes)


def _said(piece: str, source: str, quotes: tuple[str, ...]) -> tuple[Said, str]:
    if _CONDITIONAL.match(piece):
        return Said.UNCLEAR, ""
    if quotes and not _MANNER.match(piece):
        return Said.SPEECH, " ".join(map(finished, quotes))
    piece = source.rstrip(".! ")
    for build in _BUILDERS:
        if (made := build(piece)) is not None:
            return made
    return Said.DEED, ""


Made = tuple[Said, str] | None


def _greeting(piece: str) -> Made:
    if not (match := _GREET.match(piece)):
        return None
    rest = match["rest"]
    to = re.search(r"\bto\s+([A-Z][\w' &-]+)", rest)
    return Said.SPEECH, f"Hello, and welcome to {to[1].strip()}!" if to else "Hello!"


def _thanking(piece: str) -> Made:
    if not (match := _THANK.match(piece)):
        return None
    rest = re.sub(r"^(?:for\s+)?", "", match["rest"]).strip()
    return Said.SPEECH, f"Thank you for {to_customer(rest)}." if rest else "Thank you!"


def _farewell(piece: str) -> Made:
    if not (match := _BYE.match(piece)):
        return None
    rest = match["rest"].strip()
    return Said.SPEECH, f"I wish you {to_customer(rest)}." if rest.startswith(
        ("a ", "an ", "all ")
    ) else "Goodbye!"


def _apology(piece: str) -> Made:
    if not (match := _APOLOGISE.match(piece)):
        return None
    rest = match["rest"].strip()
    about = re.match(r"(?:for|about|that)\s+(.+)", rest, re.DOTALL)
    if not about:
        return Said.SPEECH, "I am sorry about that."
    if rest.startswith("that"):
        return Said.SPEECH, f"I am sorry that {to_customer(about[1])}."
    return Said.SPEECH, f"I am sorry about {to_customer(about[1])}."


def _offering(piece: str) -> Made:
    if not (match := _OFFER.match(piece)):
        return None
    rest = match["rest"].strip()
    if rest.lower() in ("them", "it", "those", "these", "that"):
        return Said.FACT, ""
    deed = re.match(r"to\s+(.+)", rest, re.DOTALL)
    if deed:
        return Said.QUESTION, f"Would you like me to {to_customer(deed[1])}?"
    return Said.SPEECH, f"I can offer you {to_customer(rest)}."


def _asking(piece: str) -> Made:
    match = _ASK.match(piece)
    if not match:
        return None
    rest = to_customer(match["rest"].strip())
    thing = re.match(r"for\s+(.+)", rest, re.DOTALL)
    if thing:
        return Said.QUESTION, f"Could you tell me {_the(thing[1])}?"
    if deed := re.match(r"to\s+(.+)", rest, re.DOTALL):
        return Said.SPEECH, f"Please {deed[1]}."
    if question := re.match(r"(?:about)\s+(.+)", rest, re.DOTALL):
        return Said.QUESTION, f"Could you tell me about {question[1]}?"
    turned = _INVERTIBLE.match(rest)
    if turned:
        parts = (turned["what"], turned["verb"], turned["who"], turned["rest"])
        asked = " ".join(part for part in parts if part)
        return Said.QUESTION, f"{asked[:1].upper()}{asked[1:]}?"
    if re.match(r"(?:whether|if|what|which|who|when|where|how|why)\b", rest):
        return Said.QUESTION, f"Could you tell me {rest}?"
    return Said.QUESTION, f"Could you tell me {_the(rest)}?"


_INVERTIBLE = re.compile(
    r"(?P<what>(?:what|which|who|when|where|how|why)(?:\s+(?:many|much|kind of \w+|\w+))?)\s+(?P<who>I|"
    r"you|we|your \w+)\s+"
    r"(?P<verb>can|could|would|will|should|may|are|is|am|have|was|were)\b\s*(?P<rest>.*)",
    re.DOTALL,
)


def _the(thing: str) -> str:
    if re.match(r"(?:your|the|a|an|any|some|more|which|what|whether|how|one)\b", thing):
        return thing
    return f"the {thing}" if not re.match(r"[A-Z0-9\"“]", thing) else thing


def _handing_over(piece: str) -> Made:
    if not _HAND_OVER.match(piece):
        return None
    return Said.SPEECH, "A human colleague should take this over from here."


def _refusing(piece: str) -> Made:
    if not (match := _REFUSE.match(piece)):
        return None
    rest = match["rest"].strip()
    if not rest:
        return Said.SPEECH, "I am sorry, I cannot do that."
    return Said.SPEECH, f"I am sorry, I cannot {to_customer(rest)}."


def _telling_that(piece: str) -> Made:
    if match := _THAT.match(piece):
        rest = re.sub(r"\b(and|or|but) that\b", r"\1", match["rest"].strip())
        return Said.SPEECH, finished(to_customer(rest))
    if match := _COLON.match(piece):
        return Said.SPEECH, finished(match["rest"].strip())
    return None


_STATEMENT = re.compile(
    r"^(?:we|our|you|your|they|their|it|there|the|this|these|no|i|all|every|refunds?|orders?|he|she|its|[A-Z]\w+)\b.*?\b"
    r"(?:is|are|was|were|will|can|cannot|can't|has|have|do|does|may|must|should|takes?|costs?|opens?|closes?|needs?|includes?|"
    r"offers?|works?|starts?|ends?|requires?|applies|apply|runs?|lasts?|charges?|accepts?|delivers?|ships?|don't|won't)\b",
    re.DOTALL,
)


def _telling(piece: str) -> Made:
    if match := _BARE_SAY.match(piece):
        rest = match["rest"].strip()
        if re.match(
            r"(?:hello|hi|thank you|thanks|sorry|welcome|yes|no|goodbye)\b", rest, re.IGNORECASE
        ):
            return Said.SPEECH, finished(to_customer(rest))
    if not (match := _TELL.match(piece)):
        return None
    rest = match["rest"].strip()
    if _STATEMENT.match(rest) and not re.match(r"(?:how|what|when|where|why|which)\b", rest):
        return Said.SPEECH, finished(to_customer(rest))
    if deed := re.match(r"to\s+(?!the\b|a\b|our\b)(.+)", rest, re.DOTALL):
        remember = "remember to " if match["verb"].lower() == "remind" else ""
        return Said.SPEECH, f"Please {remember}{to_customer(deed[1])}."
    return Said.FACT, to_customer(rest)


def _suggesting(piece: str) -> Made:
    if not (match := _SUGGEST.match(piece)):
        return None
    rest = to_customer(match["rest"].strip())
    if deed := re.match(r"to\s+(?!the\b|a\b|our\b)(.+)", rest, re.DOTALL):
        verb = match["verb"].lower()
        if verb in ("invite", "encourage", "advise", "urge", "recommend", "suggest"):
            return Said.SPEECH, f"I suggest that you {deed[1]}."
        return Said.SPEECH, f"Please {deed[1]}."
    if where := re.match(r"(?:to|at)\s+(.+)", rest, re.DOTALL):
        return Said.SPEECH, f"Please turn to {where[1]}."
    if rest.startswith(("that ", "against ")):
        return Said.SPEECH, f"I advise {rest}." if rest.startswith(
            "against"
        ) else f"I suggest {rest}."
    return Said.SPEECH, f"I suggest {rest}."


def _manner(piece: str) -> Made:
    return (Said.MANNER, "") if _MANNER.match(piece) else None


def _statement(piece: str) -> Made:
    """An action that is written as what is to be said."""
    if re.match(
        r"^(?:we|our|there|you can|this|these)\b", piece, re.IGNORECASE
    ) and _STATEMENT.match(piece):
        return Said.SPEECH, finished(piece)
    return None


_BUILDERS = (
    _telling_that, _manner, _greeting, _thanking, _farewell, _apology, _offering, _handing_over, _asking, _refusing,
    _telling, _suggesting, _statement,
)  # fmt: skip
