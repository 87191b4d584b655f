"""MatchGuidelines: which conditions hold, each with a reason that its author can act on."""

import re
from collections.abc import Iterable
from datetime import date
from functools import cached_property

from engine.canonical import JsonObject
from engine.model.base import MatchGuidelines
from engine.model.offline.comparisons import (
    Comparison,
    Finding,
    check_results,
    check_text,
    comparison_in,
)
from engine.model.offline.conversation import Conversation
from engine.model.offline.readings import numbers
from engine.model.offline.references import points_at_record
from engine.model.offline.results import Leaf, leaves
from engine.model.offline.speech_acts import Act, acts_of, named_acts, names_choice
from engine.model.offline.states import check_states
from engine.model.offline.topics import DROPPED, Standing, Topics
from engine.relevance import RelevanceIndex, index_of
from engine.spec import Guideline
from engine.wording import begins_with_speaker, fold, is_content, stem, words

_SURE = 0.75
_NUMBERED = frozenset({"number", "id", "reference", "code", "date", "amount", "phone"})
_BRIEF = 12
_ALWAYS = re.compile(
    r"^\W*(?:always|at all times|in (?:every|each|all) (?:reply|replies|message|messages|response|"
    r"responses|turn|conversation)s?|"
    r"for (?:every|each) (?:reply|message|response)|every (?:time|reply|message)|whenever you (?:reply|answer|respond)|"
    r"throughout the conversation|in any case|no matter what)\W*$|"
    r"\b(?:says|writes|sends|asks) (?:anything|any message|a message|something)\W*$"
)
_FIRST = re.compile(
    r"\b(?:first (?:message|contact|turn)|(?:conversation|session|chat) (?:has )?(?:just )?(?:starts|"
    r"started|begins|began|opens)|"
    r"(?:start|beginning|opening) of (?:the|a|every|each) (?:conversation|session|chat))\b"
)
_ABSENT = re.compile(
    r"\b(?:(?:does|did|do|has|have) ?(?:not|n't)|without|but not)\s+(?:yet\s+|also\s+|explicitly\s+)?"
    r"(?P<what>(?:mention|specif|provid|giv|given|includ|stat|nam|say|said|ask|asking|tell|told)\w*\b.*)"
)
_OFF_TOPIC = re.compile(
    r"\b(?:unrelated|not related|off[- ]topic|out of scope|not about|nothing to do with|outside (?:of )?|"
    r"(?:anything|something) (?:else|other than)|irrelevant|no other guideline|none of the (?:other|above))\b"
)
_CLAUSES = re.compile(
    r",?\s+(?:and|while|when|but|if|where)\s+(?=(?:the|their|there|a|an|it|its|they|no|is|are|has)\b)"
)


class GuidelineMatcher:
    """Judges the guidelines of one question."""

    def __init__(self, question: MatchGuidelines, today: date) -> None:
        self._question = question
        self._today = today
        self._talk = Conversation(situation=question.situation)

    def answer(self) -> JsonObject:
        """The answer to MatchGuidelines, one judgement for every guideline asked about."""
        label_of = self._question.situation.agent.label_of
        judgements = []
        for guideline in self._question.guidelines:
            finding = self._judge(guideline)
            judgements.append(
                {
                    "guideline": label_of.get(guideline.uid, guideline.uid),
                    "because": finding.because[:300],
                    "applies": finding.holds,
                }
            )
        newest = " ".join(said.text for said in self._talk.new)
        return {"newest": newest[:300], "judgements": judgements}

    @cached_property
    def _acts(self) -> dict[Act, str]:
        found: dict[Act, str] = {}
        for said in self._talk.new:
            found.update(acts_of(said.text))
        return found

    @cached_property
    def _chooses(self) -> bool:
        """Whether a short message picks one of the records that an earlier result listed."""
        text = self._talk.new_text
        brief = len(words(text)) <= _BRIEF
        return brief and points_at_record(self._talk.earlier_results[-3:], text)

    @cached_property
    def _topics(self) -> Topics:
        guidelines = self._question.situation.agent.guidelines
        apart = frozenset(
            g.uid for g in guidelines if _judged_otherwise(g) or names_choice(g.condition)
        )
        return Topics(self._index, self._talk, self._acts, apart)

    @cached_property
    def _index(self) -> RelevanceIndex:
        return _index_for(self._question)

    def _in_own_terms(self, text: str) -> str:
        """With the names of the agent's terms for what they are also called."""
        return self._index.glossary.read(text).text

    @cached_property
    def _leaves(self) -> list[Leaf]:
        return [leaf for offset, event in self._talk.results for leaf in leaves(offset, event)]

    @cached_property
    def _amount(self) -> float | None:
        """The sum that the customer speaks of: with a currency, or else the largest number."""
        found = [(bool(r.unit.isupper()), float(r.value)) for r in numbers(self._talk.new_text)]
        return max(found)[1] if found else None

    def _judge(self, guideline: Guideline) -> Finding:
        condition = self._in_own_terms(guideline.condition.strip())
        folded = fold(condition)
        if not condition or _ALWAYS.search(folded):
            return Finding(holds=True, because="It holds in every turn.")
        if finding := self._structural(folded):
            return finding
        clauses = _CLAUSES.split(condition)
        if len(clauses) > 1 and any(self._checkable(clause) for clause in clauses):
            return self._all_of(guideline, clauses)
        return self._single(guideline, condition)

    def _structural(self, folded: str) -> Finding | None:
        """Conditions on the conversation itself."""
        if _FIRST.search(folded) and not _subject_words(_FIRST.sub(" ", folded)):
            first = not self._talk.last_reply
            because = "Nothing was answered yet." if first else "The conversation has begun before."
            return Finding(holds=first, because=because)
        if _OFF_TOPIC.search(folded):
            return self._off_topic()
        return None

    def _off_topic(self) -> Finding:
        agent = self._question.situation.agent
        off_topic = {g.uid for g in agent.guidelines if _OFF_TOPIC.search(fold(g.condition))}
        if self._topics.best_but(off_topic) >= self._topics.threshold:
            return Finding(holds=False, because="The message fits another guideline.")
        if self._topics.is_follow_up or self._talk.waiting_tools or self._chooses:
            return Finding(holds=False, because="The message goes on with what was said before.")
        subject = [word for word in words(self._talk.new_text) if is_content(word)]
        if not subject or (self._acts and len(subject) <= 2):
            return Finding(holds=False, because="The message raises no subject of its own.")
        return Finding(holds=True, because="The message fits no other guideline's condition.")

    def _checkable(self, clause: str) -> bool:
        return bool(
            comparison_in(clause)
            or _ABSENT.search(fold(clause))
            or (not _about_customer(clause) and self._talk.results)
        )

    def _all_of(self, guideline: Guideline, clauses: list[str]) -> Finding:
        reasons = []
        for clause in clauses:
            spoken = not self._checkable(clause) and _about_customer(clause)
            finding = self._by_words(guideline) if spoken else self._single(guideline, clause)
            if not finding.holds:
                return finding
            reasons.append(finding.because)
        return Finding(holds=True, because=" ".join(dict.fromkeys(reasons)))

    def _single(self, guideline: Guideline, clause: str) -> Finding:
        if comparison := comparison_in(clause):
            return self._compare(guideline, comparison)
        folded = fold(clause)
        if absent := _ABSENT.search(folded):
            return self._absence(guideline, folded, absent)
        if not _about_customer(clause):
            found = check_states(
                clause,
                self._leaves,
                [event for _, event in self._talk.results],
                self._talk.failures,
            )
            if found:
                return found
        return self._by_words(guideline)

    def _compare(self, guideline: Guideline, comparison: Comparison) -> Finding:
        found = check_results(comparison, self._leaves, self._amount, self._today)
        if found:
            return found
        spoken = _subject_words(comparison.subject)
        if _about_customer(comparison.subject) or not guideline.reevaluate_after:
            by_words = self._by_words(guideline, ease=0.7)
            if spoken and not by_words.holds:
                return by_words
            in_text = check_text(comparison, self._talk.new_text)
            if in_text:
                return in_text
        because = (
            f"No result and no message of this turn has anything to compare ({comparison.words})."
        )
        return Finding(holds=False, because=because)

    def _absence(self, guideline: Guideline, folded: str, absent: re.Match[str]) -> Finding:
        """ "… without naming an order": holds when the rest applies and the named thing is not in the messages."""
        before = folded[: absent.start()]
        known = set(_subject_words(before))
        what = [w for w in _subject_words(absent["what"]) if len(w) > 2 and w not in known]
        if known:
            rest = self._by_words(guideline, ease=0.7)
            if not rest.holds:
                return rest
        said = {stem(word) for word in words(self._in_own_terms(self._talk.new_text))}
        present = [word for word in what if stem(word) in said]
        if _NUMBERED.intersection(what) and re.search(r"\d", self._talk.new_text):
            present = present or ["a number"]
        if present:
            return Finding(holds=False, because=f"The customer does mention {_quoted(present)}.")
        return Finding(holds=True, because=f"The messages do not mention {_quoted(what) or 'it'}.")

    def _by_words(self, guideline: Guideline, ease: float = 1.0) -> Finding:
        acts, beside = named_acts(guideline.condition)
        if acts and not beside:
            return self._by_act(acts, guideline)
        if self._chooses and names_choice(guideline.condition):
            return Finding(
                holds=True, because="The customer picks one of the things that were listed."
            )
        bonus = 0.15 if acts & self._acts.keys() else 0.0
        standing = self._topics.standing(guideline.uid, bonus, ease)
        if names_choice(guideline.condition) and standing.score < 1.3 * self._topics.threshold:
            return Finding(holds=False, because="The customer picks nothing that was listed.")
        if _judged_otherwise(guideline) and standing.score < _SURE:
            # A few common words do not make a fact of what a result should say.
            return Finding(holds=False, because="Neither a result nor the customer says so.")
        if standing.holds and self._is_distracted(guideline, standing):
            return Finding(
                holds=False, because="The message answers what the agent asked for something else."
            )
        if standing.holds:
            how = "read together with what came before, " if standing.in_context else ""
            named = _quoted(standing.fitting) or "wording"
            because = f"{how}the customer's {named} fits the condition ({standing.score:.0%})."
            return Finding(holds=True, because=because[0].upper() + because[1:])
        if answered := self._answer_to_question(guideline):
            return answered
        return Finding(holds=False, because=_too_little(standing, self._topics.threshold * ease))

    def _is_distracted(self, guideline: Guideline, standing: Standing) -> bool:
        """Whether a weak fit is a mere echo in the answer to a question that another guideline's tool waits for."""
        waiting = self._talk.waiting_tools
        if not waiting or waiting.intersection(guideline.tools) or "?" in self._talk.new_text:
            return False
        return standing.score < 1.5 * self._topics.threshold

    def _by_act(self, acts: Iterable[Act], guideline: Guideline) -> Finding:
        for act in sorted(acts):
            if act in self._acts:
                return Finding(
                    holds=True, because=f"The customer's “{self._acts[act]}” is a {act.value}."
                )
        if guideline.examples and self._topics.alone(guideline.uid) >= _SURE:
            named = _quoted(self._topics.standing(guideline.uid).fitting)
            return Finding(holds=True, because=f"The customer's {named} fits the condition.")
        named = " or ".join(act.value for act in sorted(acts))
        return Finding(holds=False, because=f"The message is no {named}.")

    def _answer_to_question(self, guideline: Guideline) -> Finding | None:
        """A guideline whose tool waits for what the agent asked goes on applying while the customer answers."""
        talk = self._talk
        if guideline.uid not in talk.guidelines_before or not guideline.tools or not talk.new:
            return None
        if not talk.waiting_tools.intersection(guideline.tools):
            return None
        folded = fold(talk.new_text)
        if DROPPED.search(folded) or Act.REFUSAL in self._acts or Act.FAREWELL in self._acts:
            return None
        best = self._topics.best_alone
        if best >= _SURE or (best >= self._topics.threshold and "?" in talk.new_text):
            return None
        return Finding(
            holds=True, because="The message answers what the agent asked for under this guideline."
        )


def _judged_otherwise(guideline: Guideline) -> bool:
    """Guidelines that other things than the customer's words decide about."""
    if _OFF_TOPIC.search(fold(guideline.condition)):
        return True
    return bool(guideline.reevaluate_after) and not _about_customer(guideline.condition)


def _index_for(question: MatchGuidelines) -> RelevanceIndex:
    agent = question.situation.agent
    known = agent.guideline_by_uid
    if all(known.get(g.uid) == g and g.enabled for g in question.guidelines):
        return index_of(agent)
    return RelevanceIndex(question.guidelines, agent.tools, terms=agent.terms)


_SPEECH_VERB = re.compile(
    r"\W*(?:(?:if|when)\s+)?(?:the\s+|an?\s+)?(?:\w+\s+)?(?:asks?|asking|wants?|says?|requests?|needs?|mentions?|wonder\w*|inquir\w*)\b|"
    r"\W*(?:the\s+|an?\s+)?(?:messages?|questions?|requests?)\b",
    re.IGNORECASE,
)


def _about_customer(clause: str) -> bool:
    """Whether a clause speaks of what the customer says, wants or does, rather than of a fact."""
    return begins_with_speaker(clause) or _SPEECH_VERB.match(clause) is not None


def _subject_words(text: str) -> list[str]:
    return [word for word in words(text) if is_content(word) and not word.isdigit()]


def _quoted(found: Iterable[str]) -> str:
    return ", ".join(f"“{word}”" for word in list(found)[:6])


def _too_little(standing: Standing, enough: float) -> str:
    named = _quoted(standing.fitting)
    if not named or standing.score < 0.02:
        return "None of the customer's words fits the condition."
    score, needed = f"{standing.score:.0%}", f"{standing.needed:.0%}"
    if standing.score >= enough:
        return f"{named} fits another guideline better ({score}, {needed} needed)."
    return f"Only {named} fits the condition, which is too little ({score}, {needed} needed)."
