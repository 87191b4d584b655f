"""Fields that name parts of an agent by uid: what a page chooses from a list, and a program sends as JSON."""

from collections.abc import Mapping
from typing import Any

from django import forms
from django.core.exceptions import ValidationError
from django.db.models import Model
from django.utils.translation import gettext as _

from studio.forms.fields import shortened
from studio.models import Agent


class AgentPartsField(forms.Field):
    """Rows of the agent by uid, each once, in the order given. Its form sets `agent`."""

    widget = forms.SelectMultiple
    agent: Agent

    def __init__(self, **kwargs: Any) -> None:
        kwargs.setdefault("required", False)
        super().__init__(**kwargs)

    def rows(self) -> Any:
        """Those of the agent, as a QuerySet."""
        raise NotImplementedError

    def refusal(self, uid: str) -> str:
        """What is said of a uid that the agent does not have."""
        raise NotImplementedError

    def has_changed(self, initial: Any, data: Any) -> bool:
        return set(initial or []) != set(data or [])

    def clean(self, value: Any) -> list[Any]:
        if value in (None, "", [], [""]):
            if self.required:
                raise ValidationError(self.error_messages["required"], code="required")
            return []
        if not isinstance(value, list | tuple) or not all(isinstance(uid, str) for uid in value):
            raise ValidationError(_("This is a list of uids."), code="invalid_list")
        uids = list(dict.fromkeys(value))
        known = self._known([uid for uid in uids if "\x00" not in uid])
        if wrong := [uid for uid in uids if uid not in known]:
            quoted = (shortened(uid.replace("\x00", "␀")) for uid in wrong)
            raise ValidationError(
                [ValidationError(self.refusal(uid), code="unknown") for uid in quoted]
            )
        return [known[uid] for uid in uids]

    def _known(self, uids: list[str]) -> Mapping[str, Model]:
        return {row.uid: row for row in self.rows().filter(uid__in=uids)}


class AgentResponsesField(AgentPartsField):
    def rows(self) -> Any:
        return self.agent.canned_responses.all()

    def refusal(self, uid: str) -> str:
        return _("%(agent)s has no canned response of the uid “%(uid)s”; write it first.") % {
            "agent": self.agent.name,
            "uid": uid,
        }


class AgentGuidelinesField(AgentPartsField):
    def rows(self) -> Any:
        return self.agent.guidelines.all()

    def refusal(self, uid: str) -> str:
        return _("%(agent)s has no guideline of the uid “%(uid)s”; choose one of its own.") % {
            "agent": self.agent.name,
            "uid": uid,
        }
