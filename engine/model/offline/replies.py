"""ComposeReply: a reply from this turn's results, the actions of the guidelines, and what the briefing asks for."""

from collections import Counter
from collections.abc import Sequence

from engine.canonical import JsonObject, canonical_json
from engine.events import ToolFinishedEvent
from engine.model.base import ComposeReply
from engine.model.offline.comparisons import comparison_in
from engine.model.offline.conversation import Conversation
from engine.model.offline.demands import put_right
from engine.model.offline.phrasing import Clause, Said, clauses
from engine.model.offline.rendering import doing_of, noun_of, rendered, scalar, shortened
from engine.model.offline.requests import asked_for, confirmed_by, deed, which
from engine.model.offline.speech_acts import Act, named_acts, only_polite
from engine.model.offline.styling import in_style, said_of
from engine.model.offline.turning import ability, capital, joined
from engine.pending import Pending, answered_in, pending_calls
from engine.spec import Guideline

_MOST_ABILITIES = 3
_LONGEST_REPLY = 6_000
_POLITE = {
    Act.THANKS: "You are welcome.",
    Act.FAREWELL: "Goodbye!",
    Act.GREETING: "Hello!",
}


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
        revision = self._question.revision
        if revision is not None:
            wrong = {label for label, _problem in revision.problems}
            label_of = self._question.situation.agent.label_of
            broken = [g.action for g in self._question.guidelines if label_of[g.uid] in wrong]
            return shortened(put_right(revision.reply, broken), _LONGEST_REPLY)
        return shortened(self._first_try(), _LONGEST_REPLY)

    def _first_try(self) -> str:
        opening, closing = self._statements()
        results = self._results()
        if not results and not self._talk.failures:
            opening, closing = [*opening, *closing], []
        parts = [
            " ".join(opening),
            *self._came_of_it(),
            *self._failures(),
            *results,
            " ".join(closing),
            which(self._told("ask which")),
            asked_for(self._question.insights),
            confirmed_by(self._told("confirm")),
        ]
        said = [part for part in parts if part]
        return "\n\n".join(said or [self._nothing_to_say()])

    def _told(self, key: str) -> list[JsonObject]:
        """What stands under this key of the briefing."""
        items = self._talk.briefing.get(key, [])
        return [item for item in items if isinstance(item, dict)] if isinstance(items, list) else []

    def _came_of_it(self) -> list[str]:
        """What became of calls that had awaited the customer's word."""
        said = [f"Done: {deed(item)}." for item in self._told("done as confirmed")]
        said += [f"All right, I have not done this: {deed(i)}." for i in self._told("declined")]
        said += [
            f"Too much time has passed, so I have not done this: {deed(item)}."
            for item in self._told("expired")
        ]
        return said

    def _failures(self) -> list[str]:
        """Calls that failed, and tools that the briefing says were not run."""
        said = [_failure(event) for event in self._talk.failures]
        seen = {event.tool for event in self._talk.failures}
        tools = [str(item.get("tool", "")) for item in self._told("failed")]
        return said + [
            f"I am sorry, I could not {_attempt(tool)}."
            for tool in dict.fromkeys(tools)
            if tool and tool not in seen
        ]

    def _unsettled_tools(self) -> set[str]:
        """Tools of which nothing may be claimed: they await the customer's word, were refused, or could not run."""
        situation = self._question.situation
        answered = answered_in(situation.history, situation.turn)
        blocked = {insight.tool for insight in self._question.insights}
        blocked |= {str(item.get("tool", "")) for item in self._told("failed")}
        blocked = {name for name in blocked if self._changes_something(name)}
        run = {event.tool for _offset, event in self._talk.results}
        return (
            {w.asked.tool for w in self._waiting} | {a.asked.tool for a in answered} | blocked
        ) - run

    @property
    def _waiting(self) -> tuple[Pending, ...]:
        """The calls that await the customer's word."""
        situation = self._question.situation
        return pending_calls(situation.history, situation.turn)

    def _statements(self) -> tuple[list[str], list[str]]:
        """What the actions say: openings such as greetings, and the rest; each sentence once."""
        opening: list[str] = []
        closing: list[str] = []
        asking = bool(self._question.insights or self._told("ask which") or self._told("confirm"))
        unsettled = self._unsettled_tools()
        for guideline in self._question.guidelines:
            if unsettled & set(guideline.tools):
                continue
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
        style = self._question.style
        return in_style(opening, style), in_style(closing, style)

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
        if self._talk.failures or self._question.insights or self._unsettled_tools():
            return []
        wanted = {tool for guideline in self._question.guidelines for tool in guideline.tools}
        newest: dict[str, ToolFinishedEvent] = {}
        for _, event in self._talk.earlier_results:
            if event.tool in wanted:
                newest[event.tool] = event
        return list(newest.values())

    def _nothing_to_say(self) -> str:
        if said := said_of(self._talk.new_text, self._question.style):
            return said
        if any(g.condition.strip() and g.action.strip() for g in self._question.guidelines):
            return "I understand, but I have nothing to add on this here."
        acts = only_polite(self._talk.new_text)
        said = " ".join(text for act, text in _POLITE.items() if act in acts)
        if said:
            return f"{said} {self._abilities()}".strip() if acts == {Act.GREETING} else said
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
        return f"I can help when you {joined(found, 'or')}." if found else ""

    def _follows(self, guideline: Guideline) -> bool:
        """Whether the reply does what the action says, as far as the offline model can tell."""
        found = self._clauses[guideline.uid]
        if not found:
            return True
        # Asking for what its tool still needs, or for a yes to it, is what can be done now.
        asked = {insight.tool for insight in self._question.insights}
        asked |= {waiting.asked.tool for waiting in self._waiting}
        used = any(event.tool in guideline.tools for event in self._shown) or bool(
            asked.intersection(guideline.tools)
        )
        return all(self._does(clause, used=used) for clause in found)

    def _does(self, clause: Clause, *, used: bool) -> bool:
        match clause.kind:
            case Said.SPEECH | Said.QUESTION | Said.MANNER:
                return True
            case Said.FACT | Said.DEED:
                return used
            case Said.UNCLEAR:
                return False


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
    return ", ".join(telling) or capital(noun_of(event.tool))
