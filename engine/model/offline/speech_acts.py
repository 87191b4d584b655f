"""What a message does rather than what it is about: greeting, thanking, agreeing, complaining, asking for a person."""

import re
from collections.abc import Collection
from enum import StrEnum

from engine.wording import FRAME_WORDS, FUNCTION_WORDS, fold, without_speaker, words


class Act(StrEnum):
    GREETING = "greeting"
    FAREWELL = "farewell"
    THANKS = "thanks"
    AGREEMENT = "agreement"
    REFUSAL = "refusal"
    COMPLAINT = "complaint"
    HUMAN = "wish for a person"
    CHOICE = "choice from what was listed"  # seen by what was listed, not by words alone


_GREETING = re.compile(
    r"\b(hi+|hello+|hey+|hiya|heya|howdy|greetings|yo|good (?:morning|afternoon|evening|day)|"
    r"hallo|hola|bonjour|bonsoir|salut|ciao|guten (?:tag|morgen|abend)|namaste|ola|hej|hoi)\b"
)
_FAREWELL = re.compile(
    r"\b(bye+|goodbye|good bye|bye bye|farewell|so long|see (?:you|ya)(?: later| soon| around)?|"
    r"talk to you (?:later|soon)|take care|good night|have a (?:good|nice|great|lovely) (?:day|night|"
    r"evening|one|weekend)|"
    r"that(?: is|'s|s) (?:all|it|everything)|ciao|adios|au revoir|tschuss|auf wiedersehen)\b"
)
_THANKS = re.compile(
    r"\b(thanks?|thank you|thankyou|thx|cheers|much appreciated|appreciate (?:it|that|your|the)|grateful|"
    r"merci|gracias|danke|grazie|obrigad[oa])\b"
)
_AGREEMENT = re.compile(
    r"^\W*(yes+|yeah|yep|yup|ya|sure|ok|okay|k|fine|correct|right|exactly|absolutely|definitely|certainly|agreed|"
    r"of course|please do|go ahead|do it|sounds? (?:good|great|fine|right)|that(?: is|'s|s) (?:right|correct|fine)|"
    r"i (?:agree|confirm|accept|do)|confirm(?:ed)?|perfect|great|si|oui|ja)\b"
)
_REFUSAL = re.compile(
    r"^\W*(no+|nope|nah|not really|not now|never ?mind|no thanks?|no thank you|forget (?:it|that|about it)|"
    r"don'?t|do not|stop|cancel (?:that|it)|leave it|i (?:decline|refuse|disagree|changed my mind)|nein|non)\b"
)
_COMPLAINT = re.compile(
    r"\b(angry|furious|terrible|awful|horrible|unacceptable|ridiculous|worst|useless|disappoint(?:ed|ing|ment)|"
    r"frustrat(?:ed|ing|ion)|annoy(?:ed|ing)|fed up|not happy|unhappy|sick of|tired of|rubbish|complain(?:t|ing)?|"
    r"disgust(?:ed|ing)|outrageous|waste of (?:time|money)|(?:is|what) a joke|scandal(?:ous)?|appalling|pathetic|"
    r"dissatisfied|unsatisfied|incompetent|rude|shame on|wtf|damn|hell|stupid|idiots?|crap|bullshit|shit|fuck\w*|"
    r"joke of a|never again|how dare|not good enough|hate)\b"
)
_HUMAN = re.compile(
    r"\b(?:(?:speak|talk|chat|connect|transfer|put|get|reach|contact|call|pass|hand|escalate|want|need|"
    r"prefer|like|is there)\b"
    r"[^.?!]{0,40}\b(?:human|person|representative|rep|operator|someone|somebody|manager|supervisor|advisor|adviser|"
    r"live agent|real agent|an agent|agent|staff|employee|colleague|people)|"
    r"(?:real|live|actual) (?:human|person|agent|people)|human being)\b"
)
_HUMAN_ALONE = re.compile(
    r"^\W*(?:an? |the )?(?:human|agent|operator|representative|person|manager|supervisor)(?: please)?\W*$"
)
_QUOTED_SPEECH = re.compile(r"\b(?:say|said|translate|spell|write|word for|means?)\b")
_SHORT = 7
_POLITE = {Act.GREETING: 5, Act.THANKS: 8, Act.FAREWELL: 8}
# What is said to them, where it is not the same again.
_REPLIES_TO = {
    Act.GREETING: re.compile(
        r"^\W*(?:welcome|(?:how|what) (?:can|may) (?:i|we)\b|nice to (?:meet|see|have)|good to (?:see|have))\b"
    ),
    Act.THANKS: re.compile(
        r"\b(?:(?:you are|you're|most|very) welcome|my pleasure|our pleasure|glad (?:i|we|to)|happy to help|"
        r"do not mention it|don't mention it|no problem|not at all|any ?time)\b"
    ),
}


def acts_of(text: str) -> dict[Act, str]:
    """The speech acts of a message, each with the words that perform it (folded)."""
    folded = re.sub(r"\s+", " ", fold(text)).strip().replace("’", "'")
    if not folded:
        return {}
    count = len(words(folded))
    found: dict[Act, str] = {}
    quoted = bool(_QUOTED_SPEECH.search(folded))
    for act, pattern, furthest in _BORDER_ACTS:
        if match := pattern.search(folded):
            before = len(folded[: match.start()].split())
            after = len(folded[match.end() :].split())
            near = before <= furthest[0] or after <= furthest[1]
            if near and not (quoted and count > _SHORT // 2):
                found[act] = match.group()
    if (match := _AGREEMENT.match(folded)) and (count <= _SHORT or folded.startswith("yes")):
        found[Act.AGREEMENT] = match.group(1)
    if (match := _REFUSAL.match(folded)) and (
        count <= _SHORT or folded.startswith(("no,", "no thank", "never mind", "nevermind"))
    ):
        found[Act.REFUSAL] = match.group(1)
    if match := _COMPLAINT.search(folded):
        found[Act.COMPLAINT] = match.group()
    if match := _HUMAN.search(folded) or _HUMAN_ALONE.search(folded):
        found[Act.HUMAN] = match.group().strip()
    return found


def only_polite(text: str) -> frozenset[Act]:
    """The greeting, thanks or farewell of a message that does little besides."""
    count = len(text.split())
    return frozenset(act for act in acts_of(text) if count <= _POLITE.get(act, 0))


def answers_politely(text: str, acts: Collection[Act]) -> bool:
    """Whether a text is what one says to a greeting, to thanks or to a farewell."""
    if any(act in acts and said.search(fold(text)) for act, said in _REPLIES_TO.items()):
        return True
    return bool(acts_of(text).keys() & set(acts) - {Act.THANKS})


# How many words may stand before, or else after, the words that perform the act.
_BORDER_ACTS: tuple[tuple[Act, re.Pattern[str], tuple[int, int]], ...] = (
    (Act.GREETING, _GREETING, (1, -1)),
    (Act.FAREWELL, _FAREWELL, (1, 0)),
    (Act.THANKS, _THANKS, (3, 4)),
)

# How conditions name the acts: words of the condition → the act.
_NAMED = (
    (
        Act.GREETING,
        re.compile(r"\b(greet\w*|say\w* (?:hello|hi|good morning)|hello|hi|salut\w+)\b"),
    ),
    (
        Act.FAREWELL,
        re.compile(
            r"\b(say\w* (?:goodbye|good bye|bye|farewell)|goodbyes?|farewells?|bye|takes? (?:his|her|"
            r"their|its)? ?leave|"
            r"(?:ends?|finish\w*|clos\w+|leav\w+|wraps? up) (?:the |this )?(?:conversation|chat|session))\b"
        ),
    ),
    (
        Act.THANKS,
        re.compile(
            r"\b(thank\w*|(?:express\w*|shows?) (?:\w+ )?(?:gratitude|appreciation)|grateful)\b"
        ),
    ),
    (
        Act.AGREEMENT,
        re.compile(
            r"\b(agrees?|confirms?|says? yes|affirm\w*|accepts?|consents?|approves?|answers? yes)\b"
        ),
    ),
    (
        Act.REFUSAL,
        re.compile(
            r"\b(declines?|says? no|refuses?|rejects?|disagrees?|answers? no|changes? (?:their|his|her) mind)\b"
        ),
    ),
    (
        Act.COMPLAINT,
        re.compile(
            r"\b(angry|upset|frustrat\w+|complain\w*|complaints?|dissatisf\w+|unhappy|annoy\w+|rude|insult\w*|furious|"
            r"irritated|swears?|abusive|aggressive|impatient|mad|negative (?:feedback|sentiment))\b"
        ),
    ),
    (
        Act.HUMAN,
        re.compile(
            r"\b(?:(?:speak|talk|chat|connected|reach|handed|escalat\w+|put through)\b[^.]{0,30}"
            r"\b(?:humans?|person|people|representative|rep|operator|someone|somebody|manager|supervisor|agent|staff|employee|"
            r"advisor|adviser|colleague)|"
            r"(?:asks?|asking|wants?|requests?|insists?|needs?|prefers?)\b[^.]{0,12}"
            r"\b(?:humans?|operator|live agent|real agent|human agent|real person|representative)|"
            r"human agent|real person)\b"
        ),
    ),
)
_CHOOSING = re.compile(r"\b(?:picks?|choos\w+|chose|selects?|decides? (?:on|for)|opts? for)\b")


def names_choice(condition: str) -> bool:
    """Whether a condition is about choosing one of several things."""
    return _CHOOSING.search(fold(condition)) is not None


# What may stand beside an act's name without making the condition about something else.
_BESIDE = frozenset(
    """first time start starts starting beginning begin opening begins end ends conversation chat session
    back politely simply
    real live human person strongly clearly becomes become seems appears sounds feeling feels emotion tone language
    service experience simple short any other explicitly directly wants offer proposal suggestion reply answer us team
    positively negatively hello hi goodbye bye good morning yes no rude angry upset frustrated or and very much mind
    """.split()
)


def named_acts(condition: str) -> tuple[frozenset[Act], list[str]]:
    """The acts that a condition names, and the content words of the condition besides them.

    With no word besides, the condition is about the act alone ("the customer says hello").
    """
    folded = fold(without_speaker(condition))
    acts = set()
    rest = folded
    for act, pattern in _NAMED:
        if pattern.search(folded):
            acts.add(act)
            rest = pattern.sub(" ", rest)
    beside = [
        word
        for word in words(rest)
        if word not in FUNCTION_WORDS and word not in FRAME_WORDS and word not in _BESIDE
    ]
    return frozenset(acts), beside
