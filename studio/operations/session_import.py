"""Taking in a recorded session of another studio, or of this one: all of it or nothing, and nothing of it runs.

What is taken in stays as it was recorded: it can be read, audited and branched, and branches go on with the tools of
this studio.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from django.db import transaction
from django.utils.translation import gettext as _

from engine import spec
from engine.canonical import JsonObject, canonical_json
from engine.events import Answer, ConfirmationAnsweredEvent, Source, event_adapter
from engine.events import Event as EngineEvent
from studio.bridge import event_row
from studio.bridge.trail import part_key
from studio.models import (
    Agent,
    AgentVersion,
    Customer,
    Event,
    ModelCall,
    PromptPart,
    Session,
    ToolCall,
    Turn,
)
from studio.models.agent import new_uid
from studio.operations.confirmations import pending_confirmations
from studio.operations.contents import (
    AgentContent,
    content_of_spec,
    rows_of_tools,
    tools_named,
)
from studio.operations.documents import DocumentError, import_document, to_text
from studio.operations.session_document import (
    TRAIL,
    Document,
    DocumentRefusedError,
    Problem,
    columns,
)
from studio.operations.session_reading import read_document
from studio.operations.turns import append_event

if TYPE_CHECKING:
    from django.contrib.auth.models import User

_AT_ONCE = 500
Authorise = Callable[[str, bool], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Imported:
    """`session` is the one that was exported, `sessions` all of its branches. `made_agent` says that there was none.

    `missing_tools` are tools of the made agent that this studio does not have.
    """

    session: Session
    sessions: tuple[Session, ...]
    made_agent: bool
    missing_tools: tuple[str, ...] = ()


def import_session(
    data: bytes | str, *, by: "User | None" = None, authorise: Authorise | None = None
) -> Imported:
    """Store the session of a document; twice the same document gives two. Raises DocumentRefusedError.

    `authorise(slug, exists)` may raise before anything is stored: it is told the agent's address, and whether there
    is such an agent or it is to be made.
    """
    document = read_document(data)
    slug = document.agent.slug
    agent = Agent.objects.filter(slug=slug).first()
    if authorise is not None:
        authorise(slug, agent is not None)
    with transaction.atomic():
        missing: tuple[str, ...] = ()
        if (joined := agent) is None:
            joined, missing = _make_agent(document)
        taking = _Taking(document, joined, by)
        sessions = taking.store()
    return Imported(
        session=taking.asked_for,
        sessions=tuple(sessions),
        made_agent=agent is None,
        missing_tools=missing,
    )


def _make_agent(document: Document) -> tuple[Agent, tuple[str, ...]]:
    """A draft of what the newest version says, with those of its tools that there are."""
    if not document.versions:
        raise _no_agent(document, _("and the document has no version to make it of."))
    content = content_of_spec(_spec(document.versions[-1].spec))
    named = tools_named(content)
    there = rows_of_tools(named).keys()
    content = _with_tools(content, there).model_copy(
        update={"slug": document.agent.slug, "name": document.agent.name}
    )
    try:
        import_document(to_text(content, "json"))
    except DocumentError as error:
        wrong = [problem for row in error.report.rows for problem in row.problems]
        said = "; ".join(f"{one.place}: {one.message}" for one in wrong[:5])
        raise _no_agent(document, _("and it cannot be made: %(why)s") % {"why": said}) from error
    return Agent.objects.get(slug=document.agent.slug), tuple(sorted(named - set(there)))


def _no_agent(document: Document, why: str) -> DocumentRefusedError:
    message = _("There is no agent “%(slug)s” here, %(why)s Make the agent first.")
    return DocumentRefusedError(
        Problem(place="agent.slug", message=message % {"slug": document.agent.slug, "why": why})
    )


def _with_tools(content: AgentContent, there: Iterable[str]) -> AgentContent:
    """Without what speaks of other tools."""
    known = set(there)

    def kept(names: Iterable[str]) -> list[str]:
        return [name for name in names if name in known]

    guidelines = [
        item.model_copy(
            update={"tools": kept(item.tools), "reevaluate_after": kept(item.reevaluate_after)}
        )
        for item in content.guidelines
    ]
    overlaps = [item.model_copy(update={"tools": kept(item.tools)}) for item in content.overlaps]
    return content.model_copy(
        update={
            "tools": kept(content.tools),
            "guidelines": [
                # A guideline that only owned a tool says nothing without it.
                item
                for item in guidelines
                if item.condition or item.action or item.tools
            ],
            "overlaps": [item for item in overlaps if len(item.tools) > 1],
        }
    )


def _spec(value: Any) -> spec.Agent:
    return spec.Agent.from_json(value)


class _Taking:
    """One document on its way into the database."""

    def __init__(self, document: Document, agent: Agent, by: "User | None") -> None:
        self._document = document
        self._agent = agent
        self._by = by
        self._versions: dict[str, AgentVersion] = {}
        self._sessions: dict[int, Session] = {}  # by the id within the document
        self._keys: dict[str, str] = {}

    @property
    def asked_for(self) -> Session:
        return self._sessions[self._document.session]

    def store(self) -> list[Session]:
        self._versions = {
            version.fingerprint: self._version(version.spec, version.number)
            for version in self._document.versions
        }
        self._store_parts()
        customer = self._customer()
        for part in self._document.sessions:
            session = self._sessions[part["id"]] = self._session(part, customer)
            turns = self._store_turns(session, part["turns"])
            self._store_events(session, part["events"], turns)
        stored = list(self._sessions.values())
        for session in stored:
            _end_waiting(session)
        for session, part in zip(stored, self._document.sessions, strict=True):
            Session.objects.filter(pk=session.pk).update(
                created_at=part["created_at"], last_event_at=part["last_event_at"]
            )
            session.refresh_from_db()
        return stored

    def _version(self, value: Any, number: int | None) -> AgentVersion:
        """The agent's own that says the same, the one of this number before a draft; else a new draft."""
        read = _spec(value)
        same = self._agent.versions.filter(fingerprint=read.fingerprint).without_spec()
        known = number is not None and same.filter(number=number).first()
        return (
            known
            or AgentVersion.objects.get_or_create(
                agent=self._agent,
                fingerprint=read.fingerprint,
                number=None,
                defaults={"spec": read.to_json()},
            )[0]
        )

    def _store_parts(self) -> None:
        """Under the keys that their texts have here, so that no document says what other prompts were."""
        self._keys = {key: part_key(text) for key, text in self._document.parts.items()}
        rows = {self._keys[key]: text for key, text in self._document.parts.items()}
        PromptPart.objects.bulk_create(
            [PromptPart(key=key, text=text) for key, text in rows.items()],
            ignore_conflicts=True,
            batch_size=_AT_ONCE,
        )

    def _customer(self) -> Customer | None:
        """The one there is by uid and name, else a new one."""
        told = self._document.customer
        if told is None:
            return None
        uid = told.get("uid") or new_uid()
        there = Customer.objects.filter(uid=uid).first()
        if there is not None and there.name == told["name"]:
            return there
        return Customer.objects.create(
            uid=new_uid() if there is not None else uid,
            name=told["name"],
            variables=told.get("variables", {}),
        )

    def _session(self, part: JsonObject, customer: Customer | None) -> Session:
        values = {name: part[name] for name in _names(Session) if name in part}
        version = self._versions[part["version"]] if part["version"] is not None else None
        fixed = values.pop("follows", "") == Session.Follows.VERSION
        numbered = fixed and version is not None and version.number is not None
        root = next(iter(self._sessions.values()), None)
        session = Session(
            **values,
            agent=self._agent,
            # A version that has no number here cannot be chosen here either.
            follows=Session.Follows.VERSION if numbered else Session.Follows.DRAFT,
            version=version if numbered else None,
            customer=customer,
            created_by=self._by,
            imported_from=self._origin(part["id"]),
            root=root,
            ancestry=[
                [self._sessions[number].pk, turn, offset]
                for number, turn, offset in part["ancestry"]
            ],
        )
        session.save()
        return session

    def _origin(self, number: int) -> str:
        document = self._document
        exported = document.exported_at.strftime("%Y-%m-%d %H:%M UTC")
        return f"#{number}, {document.studio}, {document.exported_by}, {exported}"[:200]

    def _store_turns(self, session: Session, parts: list[JsonObject]) -> dict[int, Turn]:
        rows = [
            Turn(
                session=session,
                version=self._versions[part["version"]] if part["version"] is not None else None,
                **_told(Turn, part),
            )
            for part in parts
        ]
        created = [row.created_at for row in rows]
        Turn.objects.bulk_create(rows, batch_size=_AT_ONCE)
        for row, at in zip(rows, created, strict=True):
            row.created_at = at  # set anew when it was stored
        Turn.objects.bulk_update(rows, ["created_at"], batch_size=_AT_ONCE)
        for name, model in TRAIL.items():
            stored: Any = model
            trail = [
                stored(turn=row, **self._trail_row(model, told))
                for row, part in zip(rows, parts, strict=True)
                for told in part.get(name, ())
            ]
            stored.objects.bulk_create(trail, batch_size=_AT_ONCE)
        return {row.number: row for row in rows}

    def _trail_row(self, model: Any, told: JsonObject) -> JsonObject:
        values = _told(model, told)
        if model is ToolCall:
            values["arguments_key"] = part_key(canonical_json(values["arguments"]))
        if values.get("served_from"):
            values["served_from"] = self._served_from(values["served_from"])
        if model is ModelCall:
            schema = values.pop("schema", None)
            values["schema_id"] = None if schema is None else self._keys[schema]
            values["messages"] = [
                [role, [self._keys[key] for key in keys]] for role, keys in values["messages"]
            ]
        return values

    def _served_from(self, place: str) -> str:
        """`session/turn/call` with the session's number here; empty where the document does not have it."""
        number, _slash, rest = place.partition("/")
        there = self._sessions.get(int(number)) if number.isdecimal() and len(number) < 10 else None
        return f"{there.pk}/{rest}" if there is not None else ""

    def _store_events(
        self, session: Session, parts: list[JsonObject], turns: dict[int, Turn]
    ) -> None:
        rows = []
        for part in parts:
            turn = turns[part["turn"]].pk if part["turn"] is not None else None
            row = event_row(session.pk, turn, part["offset"], _event(part))
            row.created_at = part["created_at"]
            rows.append(row)
        Event.objects.bulk_create(rows, batch_size=_AT_ONCE)


def _event(part: JsonObject) -> EngineEvent:
    return event_adapter().validate_python(
        {**part["data"], "kind": part["kind"], "source": part["source"]}
    )


def _names(model: Any) -> set[str]:
    return {field.name for field in columns(model)}


def _told(model: Any, part: JsonObject) -> dict[str, Any]:
    return {name: part[name] for name in _names(model) if name in part}


def _end_waiting(session: Session) -> None:
    """No call of another studio waits for a word here that would make it run."""
    for found in pending_confirmations(session):
        append_event(
            session,
            None,
            ConfirmationAnsweredEvent(
                source=Source.SYSTEM,
                call=found.call,
                tool=found.tool,
                answer=Answer.EXPIRED,
                because=_("The session was imported."),
            ),
        )
