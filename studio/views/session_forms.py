"""What a session runs on: the form of a new one, and of the changes for its next turns."""

from typing import Any

from django import forms
from django.db.models import QuerySet
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from studio.models import Agent, AgentVersion, Customer, ModelConnection, Session
from studio.operations.sessions import version_choice

_VERSIONS_OFFERED = 50


def versions_of(agent: Agent, *, also: AgentVersion | None = None) -> list[tuple[str, str]]:
    """What can be chosen: the draft, what is published, and the newest numbers; `also` is offered in any case."""
    choices = [("draft", _("Draft"))]
    if agent.published is not None:
        label = _("Published (version %(number)s)") % {"number": agent.published.number}
        choices.append(("published", label))
    published: QuerySet[AgentVersion] = agent.versions.filter(number__isnull=False)
    numbers = list(
        published.order_by("-number").values_list("number", flat=True)[:_VERSIONS_OFFERED]
    )
    if also is not None and also.number not in numbers:
        numbers.append(also.number)
    return choices + [(str(n), _("Version %(number)s") % {"number": n}) for n in numbers]


class SessionForm(forms.Form):
    """`chosen()` is the form as the arguments of `open_session` and `change_session`."""

    version = forms.ChoiceField(label=gettext_lazy("Version"))
    customer = forms.ModelChoiceField(
        label=gettext_lazy("Customer"),
        queryset=Customer.objects.all(),
        required=False,
        empty_label=gettext_lazy("Nobody in particular"),
    )
    tool_mode = forms.ChoiceField(
        label=gettext_lazy("Tools"),
        choices=[
            (Session.ToolMode.LIVE, gettext_lazy("Live")),
            (Session.ToolMode.RECORDED, gettext_lazy("Recorded")),
            (Session.ToolMode.MOCK, gettext_lazy("Mocked")),
        ],
        required=False,
    )
    connection = forms.ModelChoiceField(
        label=gettext_lazy("Model"),
        queryset=ModelConnection.objects.all(),
        required=False,
        empty_label=gettext_lazy("Default model"),
    )

    def __init__(
        self, *args: Any, agent: Agent, session: Session | None = None, **kwargs: Any
    ) -> None:
        if session is not None:
            kwargs["initial"] = {
                "version": str(version_choice(session)),
                "customer": session.customer_id,
                "tool_mode": session.tool_mode,
                "connection": session.connection_id,
            }
        super().__init__(*args, **kwargs)
        field = self.fields["version"]
        assert isinstance(field, forms.ChoiceField)  # noqa: S101 - declared above
        field.choices = versions_of(agent, also=session.version if session else None)

    def chosen(self) -> dict[str, Any]:
        version = self.cleaned_data["version"]
        chosen = {
            "version": int(version) if version.isdecimal() else version,
            "customer": self.cleaned_data["customer"],
            "connection": self.cleaned_data["connection"],
        }
        if self.cleaned_data["tool_mode"]:  # who leaves it out leaves it as it is
            chosen["tool_mode"] = self.cleaned_data["tool_mode"]
        return chosen
