"""InferToolCalls: should the tool run, how often, and with which arguments."""

import re
from collections.abc import Iterator, Sequence
from datetime import datetime
from functools import cached_property
from typing import Any

from engine.arguments import reason_against
from engine.canonical import JsonObject, canonical_json
from engine.events import Answer
from engine.model.base import InferToolCalls
from engine.model.offline.assignment import Arguments, Assignment, Filled
from engine.model.offline.candidates import candidates
from engine.model.offline.conversation import Conversation, Said
from engine.model.offline.parameters import Role, Sort, Wanted
from engine.model.offline.passage import Candidate, Passage
from engine.model.offline.references import Reference, in_results, in_variables
from engine.model.offline.results import key_stems
from engine.model.offline.rivals import another_tool_fits
from engine.pending import answered_in
from engine.relevance import index_of
from engine.spec import ParameterSource, Tool
from engine.trail import ArgumentSource, DecisionState
from engine.wording import fold, related_stems, stem, weight, words

_AND = re.compile(
    r"\s*(?:,\s*and\b|;|\n+|(?<!\d),|,(?!\d)|\band(?: then| also)?\b|\bthen\b|\bplus\b|\balso\b)\s*",
    re.IGNORECASE,
)
_MOST_CALLS = 8
_AGAIN = re.compile(
    r"\b(?:again|once more|another|refresh|recheck|re-check|update|now|latest|one more time|anew)\b"
)
_OLD_MESSAGES = 6
_POINTING_BACK = re.compile(
    r"^\W*(?:and|what about|how about|also)\b|\b(?:it|that|them|those|these|there|same)\b"
)


class CallInferrer:
    """Infers the calls of one tool."""

    def __init__(self, question: InferToolCalls, now: datetime) -> None:
        self._question = question
        self._tool: Tool = question.tool
        self._now = now
        self._talk = Conversation(situation=question.situation)
        self._wanted = [Wanted(parameter=parameter) for parameter in question.tool.parameters]

    def answer(self) -> JsonObject:
        """The answer to InferToolCalls."""
        if reason := another_tool_fits(self._question, self._talk.new_text):
            return _decided(DecisionState.NOT_NEEDED, reason, [])
        calls = self._calls()
        missing = [
            w for w in self._wanted if w.parameter.required and any(w.name not in c for c in calls)
        ]
        written = [
            {w.name: call[w.name].to_json() if w.name in call else None for w in self._wanted}
            for call in calls
        ]
        if missing:
            names = ", ".join(wanted.parameter.label for wanted in missing)
            return _decided(DecisionState.CANNOT_RUN, f"Not known yet: {names}.", written)
        fresh = []
        reasons = []
        for call, arguments in zip(calls, written, strict=True):
            reason = self._known_already(call)
            if reason:
                reasons.append(reason)
            else:
                fresh.append(arguments)
        if not fresh:
            return _decided(DecisionState.DATA_ALREADY_IN_CONTEXT, reasons[0], [])
        return _decided(DecisionState.NEEDS_TO_RUN, self._why(calls), fresh)

    def _why(self, calls: Sequence[Arguments]) -> str:
        if not self._wanted:
            return "The guideline calls for it, and it needs no arguments."
        said = [
            f"{name} from “{filled.evidence[:60]}”"
            for name, filled in calls[0].items()
            if filled.evidence
        ]
        if not said:
            return "The guideline calls for it, and nothing it needs is missing."
        return f"The guideline calls for it, and all it needs is known: {'; '.join(said)}."[:300]

    @property
    def description(self) -> str:
        """What its tool does, in the words of whoever wrote the tool."""
        return self._tool.description

    def values_in(self, text: str, *, announced: bool = True) -> dict[str, Any]:
        """Parameter → value, as far as this text of the customer gives one; `announced` as in `_assign`."""
        found = self._assign(self._passage(text), fresh=True, announced=announced)
        for wanted in self._wanted:
            if wanted.sort is Sort.FREE_TEXT:
                found.pop(wanted.name, None)
            elif wanted.sort is Sort.IDENTIFIER:
                self._replace_name_by_id(wanted, found)
        return {name: filled.value for name, filled in found.items()}

    # --- is it needed? ---------------------------------------------------------------------------

    def _known_already(self, call: Arguments) -> str:
        """Why the call need not run, or the empty string."""
        text = canonical_json({name: filled.value for name, filled in call.items()})
        for _, event in self._talk.results:
            if event.tool == self._tool.name and _same_call(text, event.arguments, self._tool):
                return "The same call has run in this turn."
        before = [
            event
            for _, event in self._talk.earlier_results
            if event.tool == self._tool.name and _same_call(text, event.arguments, self._tool)
        ]
        if not before or self._asked_anew(call):
            return ""
        return "The same call ran earlier, and the newest message does not ask for it again."

    def _asked_anew(self, call: Arguments) -> bool:
        folded = fold(self._talk.new_text)
        if _AGAIN.search(folded):
            return True
        asked = self._asks_by_itself
        if not self._tool.consequential:
            return asked
        return asked and any(filled.fresh for filled in call.values())

    @cached_property
    def _asks_by_itself(self) -> bool:
        """Whether the newest message alone, without what came before, calls for one of the guidelines."""
        index = index_of(self._question.situation.agent)
        scores = dict(index.scores(self._talk.new_text))
        enough = 0.8 * index.threshold
        return any(scores.get(g.uid, 0.0) >= enough for g in self._question.guidelines)

    # --- arguments -------------------------------------------------------------------------------

    def _calls(self) -> list[Arguments]:
        newest = self._talk.new_text
        if not self._wanted:
            return [{}]
        passage = self._passage(newest, asked=self._talk.asked)
        whole = self._assign(passage, fresh=True)
        several = self._several(newest, whole)
        if not several and (changed := self._changed()):
            # The agent's question named every argument, so that it tells nothing of what this answer is about.
            given = self._assign(self._passage(newest), fresh=True, announced=True)
            return [self._completed(newest, before | given) for before in changed]
        several = several or [(newest, whole)]
        return [self._completed(part, one) for part, one in several]

    def _changed(self) -> list[Arguments]:
        """The arguments of calls that awaited the customer's word until the newest message changed them."""
        situation = self._question.situation
        return [
            {
                name: Filled(value=value, source=ArgumentSource.CUSTOMER, evidence=str(value))
                for name, value in answered.asked.arguments.items()
            }
            for answered in answered_in(situation.history, situation.turn)
            if answered.asked.tool == self._tool.name and answered.answer is Answer.CHANGED
        ]

    def _passage(self, text: str, asked: str = "") -> Passage:
        return Passage(
            text=text,
            now=self._now,
            known=self._known_stems,
            asked=asked,
            asked_for=max(1, len(self._talk.labels_asked_for)) if asked else 0,
        )

    @cached_property
    def _known_stems(self) -> frozenset[str]:
        parts = [self._tool.description, *(p.description for p in self._tool.parameters)]
        for guideline in self._question.guidelines:
            parts.extend((guideline.condition, guideline.action))
        stems = {stem(word) for part in parts for word in words(part) if weight(word) > 0.05}
        named = key_stems(self._tool.name, *(p.name for p in self._tool.parameters))
        related = {
            o for one in stems | named for o, strength in related_stems(one) if strength > 0.5
        }
        return frozenset(stems | named | related)

    def _assign(
        self,
        passage: Passage,
        *,
        fresh: bool,
        only: set[str] | None = None,
        announced: bool = False,
    ) -> Arguments:
        """The best use of the passage's words: the surest pair of parameter and words first.

        `only` names the parameters to fill; `announced` leaves out names that no word announces.
        """
        pairs = [
            (candidate.score + 0.05 * wanted.parameter.required, -order, wanted, candidate)
            for order, wanted in enumerate(self._wanted)
            if wanted.parameter.source is not ParameterSource.CONTEXT
            and (only is None or wanted.name in only)
            for candidate in candidates(wanted, passage)
            if _is_sure_enough(wanted, candidate, announced=announced)
        ]
        pairs.sort(key=lambda pair: (-pair[0], -pair[1], pair[3].start))
        assignment = Assignment()
        for _, _, wanted, candidate in pairs:
            own_words = assignment.is_free(candidate) or (
                wanted.sort is Sort.FREE_TEXT and wanted.parameter.required
            )
            if wanted.name not in assignment.filled and own_words:
                assignment.take(wanted, candidate, passage, fresh=fresh)
        return assignment.filled

    def _several(self, text: str, whole: Arguments) -> list[tuple[str, Arguments]]:
        """The words and the arguments for each thing that the message asks for; empty when it is one thing."""
        parts = [part for part in _AND.split(text) if part and part.strip()]
        quoted = any(part.count('"') % 2 or part.count("“") != part.count("”") for part in parts)
        if not 2 <= len(parts) <= 3 * _MOST_CALLS or quoted or not self._repeatable:
            return []
        telling = {
            w.name for w in self._wanted if w.parameter.required and w.sort not in _NOT_DISTINCT
        } & whole.keys()
        if not telling:
            return []
        found = [self._assign(self._passage(part), fresh=True, announced=True) for part in parts]
        complete = [(part, f) for part, f in zip(parts, found, strict=True) if telling <= f.keys()]
        if len(complete) < 2 or len(complete) > _MOST_CALLS:
            return []
        if any(f.keys() & telling for f in found if not telling <= f.keys()):
            return []
        values = {canonical_json({n: f[n].value for n in sorted(telling)}) for _, f in complete}
        if len(values) != len(complete):
            return []
        shared = {name: filled for name, filled in whole.items() if name not in telling}
        return [(part, {**shared, **filled}) for part, filled in complete]

    @property
    def _repeatable(self) -> bool:
        return not any(w.sort is Sort.LIST and w.parameter.required for w in self._wanted)

    def _completed(self, said_for_it: str, call: Arguments) -> Arguments:
        """Adds what older messages, results, variables and guidelines give."""
        filled = dict(call)
        for said in self._older():
            open_names = {
                w.name for w in self._wanted if w.name not in filled and self._may_look_back(w)
            }
            if not open_names:
                break
            filled |= self._assign(self._passage(said.text), fresh=False, only=open_names)
        for wanted in self._wanted:
            if wanted.name not in filled and (
                found := self._elsewhere(wanted, filled, said_for_it)
            ):
                filled[wanted.name] = found
        for wanted in self._wanted:
            if wanted.sort is Sort.IDENTIFIER or wanted.sort is Sort.NAME:
                self._replace_name_by_id(wanted, filled)
        return filled

    def _may_look_back(self, wanted: Wanted) -> bool:
        if wanted.sort in (Sort.FREE_TEXT, Sort.BOOLEAN):
            return False
        return wanted.parameter.required or not self._asks_by_itself

    @cached_property
    def _continuing(self) -> bool:
        """Whether the newest message goes on with what a guideline was already about."""
        before = set(self._talk.guidelines_before)
        return any(g.uid in before and not g.always for g in self._question.guidelines) or bool(
            _POINTING_BACK.search(fold(self._talk.new_text))
        )

    def _older(self) -> Iterator[Said]:
        """Earlier messages, newest first, as far as their words have not been used up by a call."""
        if not self._continuing:
            return
        last = self._talk.offset_of_last_run(self._tool.name)
        continuing = not self._asks_by_itself
        for said in list(reversed(self._talk.earlier))[:_OLD_MESSAGES]:
            used_up = said.offset < last
            if used_up and (self._tool.consequential or not continuing):
                return
            yield said

    def _elsewhere(self, wanted: Wanted, filled: Arguments, said: str) -> Filled | None:
        parameter = wanted.parameter
        if parameter.source is ParameterSource.CUSTOMER:
            return None
        variable = in_variables(wanted, self._question.situation.variables)
        calls = [*self._talk.earlier_results, *self._talk.results]
        others = [(offset, event) for offset, event in calls if event.tool != self._tool.name]
        result = None
        if parameter.required or parameter.source is ParameterSource.CONTEXT:
            result = self._fitting_result(wanted, others, filled, said)
        found: Reference | None = result
        if variable and (found is None or variable.score > found.score):
            found = variable
        if found:
            return Filled(value=found.value, source=found.source, evidence=found.evidence)
        return self._from_guideline(wanted) or _fixed(wanted)

    def _fitting_result(
        self, wanted: Wanted, calls: list[Any], filled: Arguments, said: str
    ) -> Reference | None:
        found = in_results(wanted, calls, said, lenient=not self._tool.consequential)
        if found is None:
            return None
        # A transfer or conversion from something to itself is never meant.
        twins = {
            filled[w.name].value
            for w in self._wanted
            if w.name in filled
            and w.sort is wanted.sort
            and w.role is not Role.NEITHER
            and w.role is not wanted.role
            and isinstance(filled[w.name].value, str | int | float)
        }
        return (
            None if isinstance(found.value, str | int | float) and found.value in twins else found
        )

    def _replace_name_by_id(self, wanted: Wanted, filled: Arguments) -> None:
        """Words of the customer that name a listed record stand for its id."""
        current = filled.get(wanted.name)
        if wanted.parameter.source is ParameterSource.CUSTOMER:
            return
        if current is None or current.source is not ArgumentSource.CUSTOMER:
            return
        if wanted.sort is Sort.NAME:
            return
        calls = [*self._talk.earlier_results, *self._talk.results]
        others = [(offset, event) for offset, event in calls if event.tool != self._tool.name]
        if any(str(current.value) in canonical_json(event.data) for _, event in others):
            return
        found = in_results(wanted, others, current.evidence)
        if found:
            filled[wanted.name] = Filled(
                value=found.value, source=found.source, evidence=found.evidence
            )

    def _from_guideline(self, wanted: Wanted) -> Filled | None:
        """A choice that the guideline's own text names."""
        if not wanted.parameter.required or wanted.sort is not Sort.CHOICE:
            return None
        for guideline in self._question.guidelines:
            passage = self._passage(guideline.action)
            found = [c for c in candidates(wanted, passage) if c.score >= 0.8]
            if len({str(c.value) for c in found}) == 1:
                evidence = guideline.action[found[0].start : found[0].end]
                return Filled(
                    value=found[0].value, source=ArgumentSource.GUIDELINE, evidence=evidence
                )
        return None


def _is_sure_enough(wanted: Wanted, candidate: Candidate, *, announced: bool) -> bool:
    """A name that no word announces is a guess that only a required parameter is worth, and no second call."""
    guessing = wanted.parameter.required and not announced
    return guessing or wanted.sort is not Sort.NAME or candidate.score >= 0.5


_NOT_DISTINCT = (Sort.FREE_TEXT, Sort.BOOLEAN, Sort.LIST, Sort.OBJECT)


def _fixed(wanted: Wanted) -> Filled | None:
    """A required parameter with a default, or with a single possible value."""
    parameter = wanted.parameter
    if not parameter.required:
        return None
    if parameter.default is not None and not reason_against(parameter.schema, parameter.default):
        return Filled(value=parameter.default, source=ArgumentSource.DEFAULT, evidence="")
    if len(wanted.choices) == 1:
        return Filled(value=wanted.choices[0], source=ArgumentSource.INFERRED, evidence="")
    return None


def _decided(state: DecisionState, because: str, calls: list[JsonObject]) -> JsonObject:
    return {"because": because[:300], "decision": state.value, "calls": calls}


def _same_call(text: str, arguments: JsonObject, tool: Tool) -> bool:
    """Whether the arguments are the same once defaults and nulls are left out."""
    defaults = {p.name: p.default for p in tool.parameters}
    given = {n: v for n, v in arguments.items() if v is not None and v != defaults.get(n)}
    return canonical_json(given) == text or canonical_json(arguments) == text
