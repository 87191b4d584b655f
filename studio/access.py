"""Who may do what: roles as Django groups, and one authorising loader per object.

A view's first line loads its object through one of these, so that nobody can forget to authorise. Absent and not
yours are both 404; an object that one may see but not change that way is 403.
"""

from enum import StrEnum
from typing import TYPE_CHECKING, Any, TypeVar

from django.core.exceptions import PermissionDenied
from django.db.models import Model, QuerySet
from django.http import Http404
from django.utils.translation import gettext as _

from studio.models import (
    Agent,
    CannedResponse,
    Event,
    Flag,
    Guideline,
    ModelCheck,
    ModelConnection,
    ModelPrice,
    Relationship,
    Rematch,
    Replay,
    ReplayedTurn,
    Scenario,
    Session,
    Suite,
    SuiteRun,
    Term,
    Tool,
    ToolInstance,
    ToolOverlap,
    ToolRun,
    ToolTemplate,
    ToolTemplateVersion,
    Turn,
    Variant,
)

if TYPE_CHECKING:
    from django.contrib.auth.models import AnonymousUser, User

    Person = User | AnonymousUser

Row = TypeVar("Row", bound=Model)


class Role(StrEnum):
    """The names of the groups."""

    AUTHOR = "author"
    DEVELOPER = "developer"
    QA = "qa"
    PUBLISHER = "publisher"
    ADMIN = "admin"


class May(StrEnum):
    """What can be done; `_ROLES` says by whom. An admin may do everything."""

    VIEW = "view"
    WRITE_GUIDELINES = "write guidelines"
    CHOOSE_TOOLS = "choose an agent's tools"
    MANAGE_TOOLS = "manage tools"
    CONVERSE = "converse"
    TEST = "replay and test"
    PUBLISH = "publish"
    MANAGE_CONNECTIONS = "manage model connections"
    MANAGE_PEOPLE = "manage people"


_ROLES: dict[May, frozenset[Role]] = {
    May.VIEW: frozenset(Role),
    May.WRITE_GUIDELINES: frozenset({Role.AUTHOR}),
    May.CHOOSE_TOOLS: frozenset({Role.AUTHOR, Role.DEVELOPER}),
    May.MANAGE_TOOLS: frozenset({Role.DEVELOPER}),
    May.CONVERSE: frozenset({Role.AUTHOR, Role.DEVELOPER, Role.QA, Role.PUBLISHER}),
    May.TEST: frozenset({Role.AUTHOR, Role.DEVELOPER, Role.QA, Role.PUBLISHER}),
    May.PUBLISH: frozenset({Role.PUBLISHER}),
    May.MANAGE_CONNECTIONS: frozenset({Role.DEVELOPER}),
    May.MANAGE_PEOPLE: frozenset(),
}


_CACHE = "_studio_roles"  # on the request's own object, so that it lives as long as the request


def roles_of(person: "Person") -> frozenset[Role]:
    """The person's roles, read once per request object."""
    if not person.is_authenticated:
        return frozenset()
    cached: frozenset[Role] | None = getattr(person, _CACHE, None)
    if cached is None:
        names = set(person.groups.values_list("name", flat=True))
        cached = frozenset(role for role in Role if role.value in names)
        if person.is_superuser:
            cached |= {Role.ADMIN}
        setattr(person, _CACHE, cached)
    return cached


def allowed(person: "Person", may: May) -> bool:
    roles = roles_of(person)
    return Role.ADMIN in roles or bool(roles & _ROLES[may])


def require(person: "Person", may: May) -> None:
    """Raises Http404 for a stranger, PermissionDenied for somebody of another role."""
    if not allowed(person, May.VIEW):
        raise Http404
    if not allowed(person, may):
        names = ", ".join(sorted(_ROLES[may] | {Role.ADMIN}))
        raise PermissionDenied(
            _("To %(act)s takes one of these roles: %(roles)s.") % {"act": may, "roles": names}
        )


def _load(rows: QuerySet[Row], person: "Person", may: May, **key: Any) -> Row:
    require(person, May.VIEW)
    row = rows.filter(**key).first()
    if row is None:
        raise Http404(
            _("No %(kind)s %(key)r.")
            % {
                "kind": rows.model._meta.verbose_name,
                "key": next(iter(key.values())),
            }
        )
    require(person, may)
    return row


def load_agent(person: "Person", slug: str, may: May = May.VIEW) -> Agent:
    return _load(
        Agent.objects.select_related("published").defer("published__spec"), person, may, slug=slug
    )


def load_guideline(person: "Person", agent_slug: str, uid: str, may: May = May.VIEW) -> Guideline:
    agent = load_agent(person, agent_slug)
    return _load(agent.guidelines.select_related("agent"), person, may, uid=uid)


def load_relationship(
    person: "Person", agent_slug: str, uid: str, may: May = May.VIEW
) -> Relationship:
    agent = load_agent(person, agent_slug)
    return _load(agent.relationships.select_related("agent", "source"), person, may, uid=uid)


def load_overlap(person: "Person", agent_slug: str, uid: str, may: May = May.VIEW) -> ToolOverlap:
    agent = load_agent(person, agent_slug)
    return _load(agent.overlaps.select_related("agent"), person, may, uid=uid)


def load_response(
    person: "Person", agent_slug: str, uid: str, may: May = May.VIEW
) -> CannedResponse:
    agent = load_agent(person, agent_slug)
    return _load(agent.canned_responses.select_related("agent"), person, may, uid=uid)


def load_term(person: "Person", agent_slug: str, uid: str, may: May = May.VIEW) -> Term:
    agent = load_agent(person, agent_slug)
    return _load(agent.terms.select_related("agent"), person, may, uid=uid)


def load_tool(person: "Person", name: str, may: May = May.VIEW) -> Tool:
    return _load(Tool.objects.all(), person, may, name=name)


def load_tool_run(person: "Person", name: str, pk: int, may: May = May.MANAGE_TOOLS) -> ToolRun:
    tool = load_tool(person, name, may)
    row: ToolRun = _load(tool.runs.select_related("tool", "customer"), person, may, pk=pk)
    return row


def load_template(person: "Person", pk: int, may: May = May.VIEW) -> ToolTemplate:
    return _load(ToolTemplate.objects.all(), person, may, pk=pk)


def load_template_version(
    person: "Person", pk: int, number: int, may: May = May.VIEW
) -> ToolTemplateVersion:
    """Its archive is read where it is asked for."""
    template = load_template(person, pk)
    rows = template.versions.without_archive().select_related("template")
    return _load(rows, person, may, number=number)


def load_instance(person: "Person", pk: int, may: May = May.VIEW) -> ToolInstance:
    rows = ToolInstance.objects.select_related(
        "tool", "template", "version", "environment", "next_version", "next_environment"
    ).defer("version__archive", "next_version__archive")
    return _load(rows, person, may, pk=pk)


def load_connection(
    person: "Person", pk: int, may: May = May.MANAGE_CONNECTIONS
) -> ModelConnection:
    return _load(ModelConnection.objects.all(), person, may, pk=pk)


def load_model_check(
    person: "Person", connection_pk: int, pk: int, may: May = May.MANAGE_CONNECTIONS
) -> ModelCheck:
    connection = load_connection(person, connection_pk, may)
    row: ModelCheck = _load(connection.checks.select_related("connection"), person, may, pk=pk)
    return row


def load_price(person: "Person", pk: int, may: May = May.MANAGE_CONNECTIONS) -> ModelPrice:
    return _load(ModelPrice.objects.all(), person, may, pk=pk)


def load_replay(person: "Person", pk: int, may: May = May.VIEW) -> Replay:
    rows = Replay.objects.select_related("agent", "version", "connection", "variant")
    row: Replay = _load(rows.defer("version__spec"), person, may, pk=pk)
    return row


def load_replayed_turn(
    person: "Person", pk: int, session: int, number: int, may: May = May.VIEW
) -> ReplayedTurn:
    """With the recorded turn and the session that holds the played one."""
    replay = load_replay(person, pk, may)
    rows = replay.turns.select_related(
        "replay__agent",
        "replay__version",
        "replay__variant",
        "session__agent",
        "session__customer",
        "turn__session",
        "turn__version",
        "played",
    ).defer("replay__version__spec", "turn__version__spec", "turn__checkpoint")
    row: ReplayedTurn = _load(rows.filter(session=session), person, may, number=number)
    return row


def load_variant(person: "Person", session_pk: int, pk: int, may: May = May.VIEW) -> Variant:
    session = load_session(person, session_pk)
    return _load(session.variants.select_related("session"), person, may, pk=pk)


def load_suite(person: "Person", pk: int, may: May = May.VIEW) -> Suite:
    return _load(Suite.objects.select_related("agent"), person, may, pk=pk)


def load_scenario(person: "Person", suite_pk: int, uid: str, may: May = May.VIEW) -> Scenario:
    suite = load_suite(person, suite_pk)
    rows = suite.scenarios.select_related("suite__agent", "kept_from")
    return _load(rows, person, may, uid=uid)


def load_run(person: "Person", pk: int, may: May = May.VIEW) -> SuiteRun:
    rows = SuiteRun.objects.select_related("suite__agent", "connection")
    row: SuiteRun = _load(rows, person, may, pk=pk)
    return row


def load_session(person: "Person", pk: int, may: May = May.VIEW) -> Session:
    rows = Session.objects.select_related("agent", "version", "customer", "connection").defer(
        "version__spec"
    )
    return _load(rows, person, may, pk=pk)


def load_turn(person: "Person", session_pk: int, number: int, may: May = May.VIEW) -> Turn:
    session = load_session(person, session_pk)
    return _load(
        session.line.turns.select_related("session", "version").defer("version__spec"),
        person,
        may,
        number=number,
    )


def load_rematch(
    person: "Person", session_pk: int, number: int, pk: int, may: May = May.VIEW, **key: str
) -> Rematch:
    turn = load_turn(person, session_pk, number, may)
    row: Rematch = _load(turn.rematches.filter(**key), person, may, pk=pk)
    return row


def load_message(person: "Person", session_pk: int, offset: int, may: May = May.VIEW) -> Event:
    """A message by its offset along the session's line."""
    session = load_session(person, session_pk)
    said = session.line.events.filter(kind="message").select_related("turn")
    return _load(said.defer("turn__checkpoint"), person, may, offset=offset)


def load_flag(person: "Person", session_pk: int, pk: int, may: May = May.VIEW) -> Flag:
    """A flag on a message of the session's line."""
    session = load_session(person, session_pk)
    rows = Flag.objects.filter(event__in=session.line.events)
    return _load(
        rows.select_related("event__turn").defer("event__turn__checkpoint"), person, may, pk=pk
    )
