"""The configuration of an instance: values of its UserParameters, checked, and of secrets only that they are set."""

import json
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.utils import timezone
from django.utils.translation import gettext as _

from engine.arguments import canonical_numbers, reason_against
from engine.canonical import JsonObject
from engine.tools.template import TemplateField
from studio.models import ToolInstance, ToolTemplateVersion
from studio.operations.templates import report_of
from studio.secrets import fingerprint


class ConfigRefusedError(Exception):
    """`errors` says what is wrong: parameter → message; under the empty name, what is about none of them."""

    def __init__(self, errors: Mapping[str, str]) -> None:
        super().__init__(
            " ".join(f"{name}: {said}" if name else said for name, said in errors.items())
        )
        self.errors = dict(errors)


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownValue:
    """A parameter as people may see it: of a secret only whether it is set, by whom and when, and its fingerprint."""

    field: TemplateField
    value: Any
    is_secret: bool
    is_set: bool
    set_by: str = ""
    set_at: datetime | None = None
    fingerprint: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Given:
    """What somebody gave: name → value, where null removes; `secret` are names to be kept secret besides."""

    config: Mapping[str, Any]
    secret: Collection[str] = ()
    by: str
    at: str

    @classmethod
    def now(cls, config: Mapping[str, Any], *, by: str, secret: Collection[str] = ()) -> "Given":
        numbers = {name: canonical_numbers(value) for name, value in config.items()}
        return cls(config=numbers, secret=tuple(secret), by=by, at=timezone.now().isoformat())

    def to_json(self) -> JsonObject:
        return {
            "given": dict(self.config),
            "secret": sorted(self.secret),
            "by": self.by,
            "at": self.at,
        }

    @classmethod
    def from_json(cls, value: JsonObject) -> "Given":
        return cls(config=value["given"], secret=value["secret"], by=value["by"], at=value["at"])


@dataclass(frozen=True, slots=True, kw_only=True)
class Configuration:
    """Values by name, and of those that are secrets who set them and when: {"by": username, "at": ISO time}."""

    values: Mapping[str, Any]
    secrets: Mapping[str, Mapping[str, str]]
    waiting: tuple[ToolTemplateVersion, Given] | None = None

    @classmethod
    def of(cls, instance: ToolInstance) -> "Configuration":
        waiting = None
        if instance.next_version is not None and instance.next_config:
            waiting = (instance.next_version, Given.from_json(instance.next_config))
        return cls(values=instance.config, secrets=instance.secrets, waiting=waiting)

    def write(self, instance: ToolInstance) -> None:
        instance.config = dict(self.values)
        instance.secrets = dict(self.secrets)

    def for_next(self) -> "Configuration":
        """As it is for the version that waits, with what was given for that."""
        if self.waiting is None:
            return self
        version, given = self.waiting
        return self.with_given(fields_of(version), given)

    def with_given(self, fields: Sequence[TemplateField], given: Given) -> "Configuration":
        """What it is for `fields` once `given` is in force; values of what is no field are left out."""
        values: dict[str, Any] = {}
        secrets: dict[str, Mapping[str, str]] = {}
        for field in fields:
            is_given = field.name in given.config
            value = (given.config if is_given else self.values).get(field.name)
            if value is None:
                continue
            values[field.name] = value
            was_secret = field.name in self.secrets
            if was_secret and not is_given:
                secrets[field.name] = self.secrets[field.name]
            elif was_secret or field.secret or field.name in given.secret:
                secrets[field.name] = {"by": given.by, "at": given.at}
        return Configuration(values=values, secrets=secrets, waiting=self.waiting)

    def refuse_wrong(self, fields: Sequence[TemplateField], given: Given) -> None:
        """Raises ConfigRefusedError for what `fields` do not accept, and for names given that are none of them."""
        errors = {
            name: _("There is no such parameter.")
            for name in (*given.config, *given.secret)
            if name not in {field.name for field in fields}
        }
        for field in fields:
            if field.name not in self.values:
                if field.required:
                    errors[field.name] = _("This is required.")
            elif reason := self._reason_against(field):
                errors[field.name] = _("It %(reason)s.") % {"reason": reason}
        if errors:
            raise ConfigRefusedError(errors)

    def _reason_against(self, field: TemplateField) -> str:
        value = self.values[field.name]
        try:
            reason = reason_against(field.schema, value)
        except (re.error, TypeError, ValueError):
            return ""  # a constraint that only pydantic understands: the tool itself says so when it is called
        # What a validator says of a value may cite it, or a part of it.
        cited = _written(value) in reason or "does not fit: " in reason
        if field.name in self.secrets and cited:
            return _("does not fit what the template asks for")
        return reason

    def shown(self, fields: Sequence[TemplateField]) -> tuple[ShownValue, ...]:
        return tuple(self._shown(field) for field in fields)

    def _shown(self, field: TemplateField) -> ShownValue:
        value = self.values.get(field.name)
        about = self.secrets.get(field.name)
        is_secret = field.secret or about is not None
        is_set = value is not None
        if not is_secret or not is_set or about is None:
            shown = None if is_secret else value
            return ShownValue(field=field, value=shown, is_secret=is_secret, is_set=is_set)
        return ShownValue(
            field=field,
            value=None,
            is_secret=True,
            is_set=True,
            set_by=about["by"],
            set_at=datetime.fromisoformat(about["at"]),
            fingerprint=fingerprint(_written(value)),
        )


def fields_of(version: ToolTemplateVersion) -> tuple[TemplateField, ...]:
    return report_of(version).user_parameters


def _written(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
