"""How sessions are replayed: the form, in words, and which sessions an address means."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django import forms
from django.http import QueryDict
from django.utils.functional import Promise
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from studio.models import Agent, ModelConnection, Replay, Session, Variant
from studio.session_filters import Filters
from studio.views.session_forms import versions_of

MOST_SESSIONS = 1_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Way:
    """A way to replay as people choose it; `model`, `tools` and `until_it_differs` are those of Replay."""

    name: str
    words: str | Promise
    about: str | Promise
    model: str
    tools: str = Replay.Tools.RECORDED
    until_it_differs: bool = False


WAYS = {
    way.name: way
    for way in (
        Way(
            name="frozen",
            words=gettext_lazy("Frozen"),
            about=gettext_lazy(
                "Model and tools answer from the record. It costs nothing, and shows whether the studio itself decides "
                "as it did."
            ),
            model=Replay.Model.RECORDED,
        ),
        Way(
            name="until",
            words=gettext_lazy("Until it differs"),
            about=gettext_lazy(
                "The record answers what was asked then; the model is asked only what the version asks otherwise."
            ),
            model=Replay.Model.RECORDED,
            until_it_differs=True,
        ),
        Way(
            name="model",
            words=gettext_lazy("Recorded tools, live model"),
            about=gettext_lazy(
                "The model judges and writes anew; tools answer from the record, and none runs."
            ),
            model=Replay.Model.LIVE,
        ),
        Way(
            name="live",
            words=gettext_lazy("Live"),
            about=gettext_lazy(
                "The model is asked and tools run. Those that change something never do: they end as they ended then."
            ),
            model=Replay.Model.LIVE,
            tools=Replay.Tools.LIVE,
        ),
    )
}
NEXT_WAY = {"frozen": "until", "until": "model", "model": "live", "live": "live"}


def way_of(replay: Replay) -> Way:
    """The way that was chosen, whatever stood in for the tools."""
    if replay.model == Replay.Model.RECORDED:
        return WAYS["until" if replay.until_it_differs else "frozen"]
    return WAYS["live" if replay.tools == Replay.Tools.LIVE else "model"]


class ReplayForm(forms.Form):
    """`chosen()` is the form as the arguments of `start_replay`. Names are unlike those of the session filters."""

    against = forms.ChoiceField(label=gettext_lazy("Against"))
    way = forms.ChoiceField(
        label=gettext_lazy("How"), choices=[(way.name, way.words) for way in WAYS.values()]
    )
    mocked = forms.BooleanField(
        label=gettext_lazy("Tools answer with the mocks of the session"),
        help_text=gettext_lazy("In place of recorded or live results."),
        required=False,
    )
    runs = forms.ChoiceField(
        label=gettext_lazy("History"),
        choices=[
            ("turn", gettext_lazy("Turn by turn: each with the recorded history before it")),
            ("free", gettext_lazy("Free-running: each on what the replay itself has said")),
        ],
    )
    connection = forms.ModelChoiceField(
        label=gettext_lazy("Model that is asked"),
        queryset=ModelConnection.objects.all(),
        required=False,
        empty_label=gettext_lazy("The one of each session"),
    )
    variant = forms.ModelChoiceField(
        label=gettext_lazy("Variant"),
        queryset=Variant.objects.none(),
        required=False,
        empty_label=gettext_lazy("As recorded"),
    )
    cap = forms.IntegerField(
        label=gettext_lazy("Stop at"),
        help_text=gettext_lazy("Tokens; empty for no cap."),
        required=False,
        min_value=1,
        max_value=10**12,
    )

    def __init__(
        self, *args: Any, agent: Agent, sessions: Sequence[Session], **kwargs: Any
    ) -> None:
        super().__init__(*args, **({"label_suffix": ""} | kwargs))
        against = self.fields["against"]
        assert isinstance(against, forms.ChoiceField)  # noqa: S101 - declared above
        against.choices = versions_of(agent)
        variants = sessions[0].variants.all() if len(sessions) == 1 else Variant.objects.none()
        field = self.fields["variant"]
        assert isinstance(field, forms.ModelChoiceField)  # noqa: S101 - declared above
        field.queryset = variants
        if not variants:
            del self.fields["variant"]

    def clean(self) -> dict[str, Any]:
        cleaned = super().clean() or {}
        if cleaned.get("mocked") and cleaned.get("variant"):
            self.add_error(
                "variant", _("A variant changes recorded results; the mocks would hide it.")
            )
        return cleaned

    def chosen(self) -> dict[str, Any]:
        cleaned = self.cleaned_data
        way = WAYS[cleaned["way"]]
        return {
            "against": cleaned["against"],
            "model": way.model,
            "tools": Replay.Tools.MOCK if cleaned["mocked"] else way.tools,
            "until_it_differs": way.until_it_differs,
            "free_running": cleaned["runs"] == "free",
            "connection": cleaned["connection"],
            "variant": cleaned.get("variant"),
            "cap": cleaned["cap"] or 0,
        }


class SelectionError(Exception):
    """The address means no sessions that can be replayed together; the text says what to do."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Selection:
    """The sessions to replay, the newest first, and the address's part that means them again."""

    sessions: tuple[Session, ...]
    query: str
    left_out: int = 0  # beyond MOST_SESSIONS

    @property
    def agent(self) -> Agent:
        return self.sessions[0].agent


def selection_of(query: QueryDict) -> Selection:
    """`session=…&session=…`, or the filters of the list of sessions. Raises SelectionError."""
    keys = _keys(query.getlist("session"))
    filters = Filters.read(query)
    if not keys and not filters.given:
        raise SelectionError(_("No session is chosen: tick those to replay in the list."))
    rows = Session.objects.select_related("agent__published", "connection", "customer").defer(
        "agent__published__spec"
    )
    found = rows.filter(pk__in=keys) if keys else rows.filter(pk__in=_filtered(filters))
    found = found.order_by("-last_event_at", "-pk")
    agents = set(found.order_by().values_list("agent", flat=True).distinct()[:2])
    if not agents:
        raise SelectionError(_("These sessions are not there: choose others in the list."))
    if len(agents) > 1:
        raise SelectionError(
            _("These are sessions of several agents: choose one agent, and sessions of it.")
        )
    total = found.count()
    return Selection(
        sessions=tuple(found[:MOST_SESSIONS]),
        query=_again(keys, filters),
        left_out=max(0, total - MOST_SESSIONS),
    )


def _keys(given: Sequence[str]) -> list[int]:
    return [int(text) for text in given if text.isdecimal() and len(text) < 19][:MOST_SESSIONS]


def _filtered(filters: Filters) -> Any:
    return filters.sessions().values("pk")


def _again(keys: Sequence[int], filters: Filters) -> str:
    if not keys:
        return filters.query
    chosen = QueryDict(mutable=True)
    chosen.setlist("session", [str(key) for key in keys])
    return chosen.urlencode()


def initial_of(query: Mapping[str, str], agent: Agent) -> dict[str, Any]:
    """What stands in the form at first, and what an address puts into it."""
    variant = query.get("variant", "")
    return {
        "against": query.get("against") or "draft",
        "way": query.get("way") if query.get("way") in WAYS else ("model" if variant else "frozen"),
        "runs": query.get("runs") or "turn",
        "variant": variant if variant.isdecimal() else None,
    } | {name: query[name] for name in ("connection", "cap", "mocked") if query.get(name)}
