"""Which canned responses the reply of this turn may rest on, and in which mode it is written (ENGINE.md §5)."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from engine import canned
from engine.briefing import action
from engine.canonical import JsonObject, canonical_json
from engine.closeness import closeness
from engine.outcomes import given_fields, given_responses
from engine.pending import pending_calls
from engine.spec import Agent, Composition, Guideline
from engine.state import TurnState, customer_messages
from engine.trail import InsightKind, ToolInsight

MOST_SHOWN = 40
"""Responses that one question offers to choose from."""
MOST_STYLE = 8
"""Responses that show a writer the manner."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """A canned response with its fields filled in. `uid` is "call:number" where a tool gave it."""

    uid: str
    text: str


def composition_of(agent: Agent, matched: tuple[Guideline, ...]) -> Composition:
    """The most restrictive mode among the agent's and those of the guidelines in force."""
    modes = [agent.composition, *(g.composition for g in matched if g.composition)]
    return max(modes, key=lambda mode: mode.strictness)


def candidates(
    state: TurnState, matched: tuple[Guideline, ...], told: tuple[ToolInsight, ...], *, most: int
) -> tuple[Candidate, ...]:
    """What can be said now: responses of the guidelines in force, of this turn's results, then the agent's others.

    One whose fields are not all available is none. Of more than `most` those closest to the conversation stay.
    """
    fields = available_fields(state, told)
    found: dict[str, Candidate] = {}
    general_from = 0
    for uid, template, is_general in _templates(state, matched):
        text = canned.render(template, fields)
        if text is None or text in found:
            continue
        found[text] = Candidate(uid=uid, text=text)
        general_from += not is_general
    return _closest(state, matched, list(found.values()), general_from, most)


def available_fields(state: TurnState, told: tuple[ToolInsight, ...]) -> JsonObject:
    """What templates can name: fields of this turn's results, and our own, which stand above theirs.

    `customer` (variables), `agent.name`; and where there are any: `missing` and `invalid` (labels to ask for and to
    correct), `choices` (of these), `confirmations` (what awaits the customer's word, one text each).
    """
    lists: JsonObject = {
        "missing": [i.label for i in told if i.kind is InsightKind.MISSING],
        "invalid": [i.label for i in told if i.kind is InsightKind.INVALID],
        "choices": list(dict.fromkeys(_text(choice) for i in told for choice in i.choices)),
        "confirmations": [
            _sentence(action(state, waiting.asked))
            for waiting in pending_calls(state.history, state.turn)
        ],
    }
    own: JsonObject = {"customer": state.variables, "agent": {"name": state.agent.name}}
    given = given_fields(state.calls_done())
    return given | own | {key: items for key, items in lists.items() if items}


def _sentence(told: JsonObject) -> str:
    """ "transfer money (amount: 50, to: Ann)"."""
    arguments = ", ".join(f"{label}: {_text(v)}" for label, v in told.get("with", {}).items())
    return f"{told['what']} ({arguments})" if arguments else str(told["what"])


def _text(value: Any) -> str:
    return value if isinstance(value, str) else canonical_json(value)


def _templates(state: TurnState, matched: tuple[Guideline, ...]) -> Iterator[tuple[str, str, bool]]:
    """(uid, template, whether it is one of the agent's at large)."""
    known = state.agent.canned_response_by_uid
    in_force = dict.fromkeys(uid for g in matched for uid in g.canned_responses if uid in known)
    for uid in in_force:
        yield uid, known[uid].text, False
    for uid, template in given_responses(state.calls_done()):
        yield uid, template, False
    attached = {uid for guideline in state.agent.guidelines for uid in guideline.canned_responses}
    for response in state.agent.canned_responses:
        if response.uid not in attached:
            yield response.uid, response.text, True


def _closest(
    state: TurnState,
    matched: tuple[Guideline, ...],
    found: list[Candidate],
    general_from: int,
    most: int,
) -> tuple[Candidate, ...]:
    """Those for this very moment first; of the rest the closest, in the author's order."""
    room = max(0, most - general_from)
    general = found[general_from:]
    if len(general) > room:
        scores = closeness([c.text for c in general], _subject(state, matched))
        best = sorted(range(len(general)), key=lambda n: -scores[n])[:room]
        general = [general[n] for n in sorted(best)]
    return (*found[: min(general_from, most)], *general)


def _subject(state: TurnState, matched: tuple[Guideline, ...]) -> str:
    """What the reply is about: the customer's last words, and what is in force."""
    said = [text for _offset, text in customer_messages(state.history)[:3]]
    rules = [f"{g.condition} {state.agent.action_of(g)}" for g in matched]
    return "\n".join([*said, *rules])
