"""What a package of a tool template says, in words."""

from django import template
from django.utils.translation import gettext as _

from engine.tools.checking.rulebook import RULES
from engine.tools.template import TemplateField
from studio.templatetags.studio_text import value_words

register = template.Library()


@register.filter
def rule_title(code: str) -> str:
    """What the rule of this code asks for, in a few words; empty where no rule has the code."""
    rule = RULES.get(code)
    return rule.title if rule is not None else ""


@register.filter
def default_words(field: TemplateField) -> str:
    """The value of a field that is given none; empty where one has to be given, or where it is none."""
    if not field.has_default:
        return ""
    if field.default is None:
        return "" if _may_be_null(field) else _("what the code says when it runs")
    return value_words(field.default)


def _may_be_null(field: TemplateField) -> bool:
    branches = field.schema.get("anyOf", [])
    return field.type.startswith("Optional") or any(each.get("type") == "null" for each in branches)


@register.filter
def flags_words(field: TemplateField) -> str:
    """Where the specification and pydantic do not agree about a field: what that means for a call."""
    if field.required == field.required_by_pydantic:
        return ""
    if field.required_by_pydantic:
        return _(
            "Optional by the specification, as its type says; required by pydantic, as it has no default. "
            "Left out, it is passed as null. “= None” makes both agree."
        )
    return _(
        "Required by the specification, which sees no default; not required by pydantic. It is asked for here."
    )
