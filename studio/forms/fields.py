"""Fields that take what people write in a page and what a program sends as JSON alike."""

from collections.abc import Iterable
from difflib import get_close_matches
from typing import Any

from django import forms
from django.core.exceptions import ValidationError
from django.utils.translation import gettext as _

from studio.models import Agent, Tool

MAX_TAGS = 20
MAX_TAG_CHARACTERS = 40
MAX_EXAMPLES = 100
MAX_EXAMPLE_CHARACTERS = 2_000
_QUOTED_CHARACTERS = 60

# A message may have several lines, and a line of the page is one message: this stands for a line break inside it.
LINE_BREAK = "⏎"


def shortened(text: str) -> str:
    """A text as an error message quotes it."""
    line = " ".join(text.split())
    return line if len(line) <= _QUOTED_CHARACTERS else line[:_QUOTED_CHARACTERS] + "…"


def too_long(what: str, text: str, limit: int, remedy: str) -> ValidationError:
    return ValidationError(
        _("%(what)s has %(count)d characters; at most %(limit)d are kept. %(remedy)s"),
        code="max_length",
        params={"what": what, "count": len(text), "limit": limit, "remedy": remedy},
    )


def _refuse_unstorable(text: str) -> None:
    if "\x00" in text or any("\ud800" <= character <= "\udfff" for character in text):
        raise ValidationError(
            _("“%(text)s” contains a character that cannot be stored; remove it."),
            code="unstorable",
            params={
                "text": shortened(text.replace("\x00", "␀").encode("utf-8", "replace").decode())
            },
        )


class ProseField(forms.CharField):
    """Text of any number of lines; browsers send line breaks as CR LF, stored is LF."""

    widget = forms.Textarea

    def __init__(self, *, limit: int, remedy: Any, **kwargs: Any) -> None:
        kwargs.setdefault("required", False)
        super().__init__(**kwargs)
        self.limit = limit
        self.remedy = remedy

    def to_python(self, value: Any) -> str:
        text = str(value or "").replace("\r\n", "\n").replace("\r", "\n").strip()
        _refuse_unstorable(text)
        if len(text) > self.limit:
            raise too_long(str(self.label), text, self.limit, str(self.remedy))
        return text


class ListField(forms.Field):
    """A list of texts, each once, in the order given: as one text in a page, or as a list in JSON."""

    def __init__(self, **kwargs: Any) -> None:
        kwargs.setdefault("required", False)
        super().__init__(**kwargs)

    def split(self, text: str) -> Iterable[str]:
        raise NotImplementedError

    def join(self, items: Iterable[str]) -> str:
        raise NotImplementedError

    def check(self, items: list[str]) -> None:
        """Raises ValidationError."""

    def has_changed(self, initial: Any, data: Any) -> bool:
        try:
            return list(initial or []) != self.to_python(data)
        except ValidationError:
            return True

    def prepare_value(self, value: Any) -> Any:
        return self.join(value) if isinstance(value, list | tuple) else value

    def to_python(self, value: Any) -> list[str]:
        if value in (None, ""):
            return []
        if isinstance(value, str):
            parts = self.split(value)
        elif isinstance(value, list | tuple) and all(isinstance(part, str) for part in value):
            parts = (part.replace("\r\n", "\n") for part in value)
        else:
            raise ValidationError(_("This is a list of texts."), code="invalid_list")
        items = list(dict.fromkeys(part.strip() for part in parts if part.strip()))
        for item in items:
            _refuse_unstorable(item)
        self.check(items)
        return items


class TagsField(ListField):
    """Tags between commas; the same tag in other letters counts once."""

    widget = forms.TextInput

    def split(self, text: str) -> Iterable[str]:
        return text.replace("\n", ",").split(",")

    def join(self, items: Iterable[str]) -> str:
        return ", ".join(items)

    def to_python(self, value: Any) -> list[str]:
        kept: dict[str, str] = {}
        for tag in super().to_python(value):
            kept.setdefault(tag.casefold(), tag)
        return list(kept.values())

    def check(self, items: list[str]) -> None:
        if len(items) > MAX_TAGS:
            raise ValidationError(
                _("These are %(count)d tags; at most %(limit)d are kept. Remove some."),
                code="too_many",
                params={"count": len(items), "limit": MAX_TAGS},
            )
        for tag in items:
            if len(tag) > MAX_TAG_CHARACTERS:
                raise too_long(
                    _("The tag “%(tag)s”") % {"tag": shortened(tag)},
                    tag,
                    MAX_TAG_CHARACTERS,
                    _("Shorten it."),
                )
            if "," in tag:
                raise ValidationError(
                    _("The tag “%(tag)s” contains a comma; write it as two tags."),
                    code="comma",
                    params={"tag": shortened(tag)},
                )


class MessagesField(ListField):
    """Customer messages, one a line."""

    widget = forms.Textarea

    def split(self, text: str) -> Iterable[str]:
        return (
            "\n".join(part.strip() for part in line.split(LINE_BREAK)) for line in text.splitlines()
        )

    def join(self, items: Iterable[str]) -> str:
        return "\n".join(f" {LINE_BREAK} ".join(item.splitlines()) for item in items)

    def check(self, items: list[str]) -> None:
        if len(items) > MAX_EXAMPLES:
            raise ValidationError(
                _("These are %(count)d messages; at most %(limit)d are kept. Remove some."),
                code="too_many",
                params={"count": len(items), "limit": MAX_EXAMPLES},
            )
        for message in items:
            if len(message) > MAX_EXAMPLE_CHARACTERS:
                raise too_long(
                    _("The message “%(message)s”") % {"message": shortened(message)},
                    message,
                    MAX_EXAMPLE_CHARACTERS,
                    _("Shorten it to what matters."),
                )


class AgentToolsField(forms.Field):
    """Tools that the agent chose from the shed, by name. Its form sets `agent`."""

    widget = forms.SelectMultiple
    agent: Agent

    def __init__(self, **kwargs: Any) -> None:
        kwargs.setdefault("required", False)
        super().__init__(**kwargs)

    def has_changed(self, initial: Any, data: Any) -> bool:
        return set(initial or []) != set(data or [])

    def clean(self, value: Any) -> list[Tool]:
        if value in (None, ""):
            return []
        if not isinstance(value, list | tuple) or not all(isinstance(name, str) for name in value):
            raise ValidationError(_("This is a list of the names of tools."), code="invalid_list")
        chosen: dict[str, Tool] = {tool.name: tool for tool in self.agent.tools.all()}
        names = list(dict.fromkeys(value))
        if wrong := [name for name in names if name not in chosen]:
            raise ValidationError([self._refusal(name, chosen) for name in wrong])
        return [chosen[name] for name in names]

    def _refusal(self, name: str, chosen: Iterable[str]) -> ValidationError:
        quoted = shortened(name.replace("\x00", "␀"))
        if "\x00" not in name and Tool.objects.filter(name=name).exists():
            return ValidationError(
                _("“%(name)s” is not among the tools of %(agent)s; add it there first."),
                code="not_chosen",
                params={"name": quoted, "agent": self.agent.name},
            )
        near = get_close_matches(name, list(chosen), n=1)
        remedy = (
            _("Did you mean “%(name)s”?") % {"name": near[0]}
            if near
            else _("Look in the tool shed for those there are.")
        )
        return ValidationError(
            _("There is no tool “%(name)s”. %(remedy)s"),
            code="unknown_tool",
            params={"name": quoted, "remedy": remedy},
        )
