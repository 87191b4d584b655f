"""ComposeReply: a reply from this turn's results, the actions of the guidelines, and what is missing."""

import re
from collections import Counter
from collections.abc import Sequence
from typing import Any

from engine.canonical import JsonObject, canonical_json
from engine.events import ToolFinishedEvent
from engine.model.base import ComposeReply
from engine.model.offline.comparisons import comparison_in
from engine.model.offline.conversation import Conversation
from engine.model.offline.phrasing import Clause, Said, ability, clauses
from engine.model.offline.rendering import doing_of, noun_of, rendered, scalar, shortened
from engine.model.offline.speech_acts import Act, acts_of, named_acts
from engine.spec import Guideline
from engine.trail import InsightKind, ToolInsight

_MOST_ABILITIES = 3
_LONGEST_REPLY = 6_000


class ReplyWriter:
    """Writes the reply of one question."""

    def __init__(self, question: ComposeReply) -> None:
        self._question = question
        self._talk = Conversation(situation=question.situation)
        self._clauses = {g.uid: clauses(g.action) for g in question.guidelines}
        self._shown: list[ToolFinishedEvent] = []

    def answer(self) -> JsonObject:
        """The answer to ComposeReply."""
        label_of = self._question.situation.agent.label_of
        reply = self._reply()
        return {
            "reply": reply,
            "follows": [
                {
                    "guideline": label_of.get(guideline.uid, guideline.uid),
                    "follows": self._follows(guideline),
                }
                for guideline in self._question.guidelines
            ],
        }

    def _reply(self) -> str:
        opening, closing = self._statements()
        results = self._results()
        if not results and not self._talk.failures:
            opening, closing = [*opening, *closing], []
        parts = [
            " ".join(opening),
            *(_failure(event) for event in self._talk.failures),
            *results,
            " ".join(closing),
            self._requests(),
        ]
        said = [part for part in parts if part]
        if not said:
            said = [self._nothing_to_say()]
        return shortened("\n\n".join(said), _LONGEST_REPLY)

    def _statements(self) -> tuple[list[str], list[str]]:
        """What the actions say: openings such as greetings, and the rest; each sentence once."""
        opening: list[str] = []
        closing: list[str] = []
        asking = bool(self._question.insights)
        for guideline in self._question.guidelines:
            for clause in self._clauses[guideline.uid]:
                text = clause.text
                if clause.kind not in (Said.SPEECH, Said.QUESTION) or text in opening + closing:
                    continue
                if clause.kind is Said.QUESTION and asking and not clause.text.startswith("Would"):
                    continue  # the exact request follows
                opens = text.startswith(
                    ("Hello", "Welcome", "I am sorry", "Thank you", "Hi", "Good ")
                )
                (opening if opens and not closing else closing).append(text)
        return opening, closing

    def _results(self) -> list[str]:
        events = [event for _, event in self._talk.results] or self._from_before()
        self._shown = events
        counted = Counter(event.tool for event in events)
        return [
            rendered(
                event,
                _heading(event, events) if counted[event.tool] > 1 else "",
                consequential=self._changes_something(event.tool),
            )
            for event in events
        ]

    def _changes_something(self, name: str) -> bool:
        tool = self._question.situation.agent.tool_by_name.get(name)
        return tool is not None and tool.consequential

    def _from_before(self) -> list[ToolFinishedEvent]:
        """Results of earlier turns that the guidelines in force rest on: the newest of each of their tools."""
        if self._talk.failures or self._question.insights:
            return []
        wanted = {tool for guideline in self._question.guidelines for tool in guideline.tools}
        newest: dict[str, ToolFinishedEvent] = {}
        for _, event in self._talk.earlier_results:
            if event.tool in wanted:
                newest[event.tool] = event
        return list(newest.values())

    def _requests(self) -> str:
        told = [insight for insight in self._question.insights if not insight.hidden]
        invalid = [i for i in told if i.kind is InsightKind.INVALID]
        missing = [i for i in told if i.kind is InsightKind.MISSING]
        parts = [_correction(insight) for insight in invalid]
        if len(missing) == 1:
            parts.append(_request(missing[0]))
        elif missing:
            doing = doing_of(missing[0].tool)
            rows = [f"- {_capital(_described(insight))}" for insight in missing]
            parts.append("\n".join([f"To {doing}, could you give me the following?", *rows]))
        return "\n\n".join(parts)

    def _nothing_to_say(self) -> str:
        acts = acts_of(self._talk.new_text)
        if any(g.condition.strip() and g.action.strip() for g in self._question.guidelines):
            return "I understand, but I have nothing to add on this here."
        polite = {
            Act.THANKS: "You are welcome.",
            Act.FAREWELL: "Goodbye!",
            Act.GREETING: "Hello!",
        }
        said = [
            text
            for act, text in polite.items()
            if act in acts and _is_only(act, self._talk.new_text)
        ]
        if said:
            greets = Act.GREETING in acts and len(said) == 1
            return f"{said[0]} {self._abilities()}".strip() if greets else " ".join(said)
        return f"I have no guidance for that here, so I cannot help with it. {self._abilities()}".strip()

    def _abilities(self) -> str:
        """What the agent is for, from its own conditions."""
        agent = self._question.situation.agent
        enabled = [g for g in agent.guidelines if g.enabled and g.condition.strip()]
        ranked = sorted(enabled, key=lambda g: (not g.tools, -g.priority))
        found: list[str] = []
        for guideline in ranked:
            acts, beside = named_acts(guideline.condition)
            if (
                (acts and not beside)
                or comparison_in(guideline.condition)
                or guideline.reevaluate_after
            ):
                continue
            phrase = ability(guideline.condition)
            if phrase and phrase not in found:
                found.append(phrase)
            if len(found) == _MOST_ABILITIES:
                break
        return f"I can help when you {_joined(found, 'or')}." if found else ""

    def _follows(self, guideline: Guideline) -> bool:
        """Whether the reply does what the action says, as far as the offline model can tell."""
        found = self._clauses[guideline.uid]
        if not found:
            return True
        used = any(event.tool in guideline.tools for event in self._shown)
        return all(self._does(clause, used=used) for clause in found)

    def _does(self, clause: Clause, *, used: bool) -> bool:
        match clause.kind:
            case Said.SPEECH | Said.QUESTION | Said.MANNER:
                return True
            case Said.FACT | Said.DEED:
                return used
            case Said.UNCLEAR:
                return False


def _is_only(act: Act, text: str) -> bool:
    """Whether a message does little besides the act."""
    return len(text.split()) <= {Act.THANKS: 8, Act.FAREWELL: 8, Act.GREETING: 5}.get(act, 0)


def _failure(event: ToolFinishedEvent) -> str:
    public = event.error.public.strip() if event.error else ""
    because = f" ({public.rstrip('.')})" if public else ""
    return f"I am sorry, I could not {_attempt(event.tool)}{because}."


def _attempt(tool: str) -> str:
    doing = doing_of(tool)
    first, _, rest = doing.partition(" ")
    return f"{first} the {rest}" if rest and not rest.startswith(("the ", "my ")) else doing


def _heading(event: ToolFinishedEvent, events: Sequence[ToolFinishedEvent]) -> str:
    """The arguments in which a call differs from the others of its tool."""
    others = [other for other in events if other.tool == event.tool and other is not event]
    telling = [
        scalar(value)
        for name, value in event.arguments.items()
        if isinstance(value, str | int | float)
        and any(
            canonical_json(other.arguments.get(name)) != canonical_json(value) for other in others
        )
    ]
    return ", ".join(telling) or _capital(noun_of(event.tool))


def _request(insight: ToolInsight) -> str:
    reason = f" {_sentence(insight.significance)}" if insight.significance else ""
    asking = re.match(
        r"(?:which|what|how|when|where|who)\b[^.?]*", insight.description, re.IGNORECASE
    )
    if asking:
        wording = asking.group().strip()
        helps = re.search(r" \(.*\)$", _described(insight))
        wording = f"{wording[:1].lower()}{wording[1:]}{helps.group() if helps else ''}"
        return f"Could you tell me {wording}?{reason}"
    return f"Could you tell me the {_described(insight)}?{reason}"


def _described(insight: ToolInsight) -> str:
    """The label with what helps to answer: description, choices or examples."""
    helps = []
    description = insight.description.strip().rstrip(".")
    if re.match(r"(?:which|what|how|when|where|who)\b", description, re.IGNORECASE):
        description = ""
    if description.lower().startswith(f"{insight.label.lower()} "):
        description = description[len(insight.label) :].strip()
    if description and description.lower() != insight.label.lower():
        helps.append(
            description[:1].lower() + description[1:] if description[:2].istitle() else description
        )
    if insight.choices:
        helps.append(_joined([scalar(choice) for choice in insight.choices[:12]], "or"))
    elif insight.examples:
        helps.append(f"for example {_joined([_example(e) for e in insight.examples[:3]], 'or')}")
    return f"{insight.label} ({'; '.join(helps)})" if helps else insight.label


def _example(value: Any) -> str:
    return value if isinstance(value, str) else scalar(value)


def _correction(insight: ToolInsight) -> str:
    value = insight.value if isinstance(insight.value, str) else canonical_json(insight.value)
    reason = insight.reason.strip().rstrip(".") or "it does not fit"
    choices = (
        f" Possible are {_joined([scalar(choice) for choice in insight.choices[:12]], 'and')}."
        if insight.choices and "one of" not in reason
        else ""
    )
    return f"I cannot use “{shortened(value, 80)}” as the {insight.label}: it {reason}.{choices} Could you correct it?"


def _sentence(text: str) -> str:
    text = text.strip()
    text = text[:1].upper() + text[1:]
    return text if text.endswith((".", "!", "?")) else f"{text}."


def _joined(parts: Sequence[str], word: str) -> str:
    if len(parts) <= 1:
        return "".join(parts)
    return f"{', '.join(parts[:-1])} {word} {parts[-1]}"


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]
