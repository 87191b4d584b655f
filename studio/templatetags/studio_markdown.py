"""Markdown of agents as safe HTML: no markup of theirs, no images, no scripts."""

from functools import lru_cache

import nh3
from django import template
from django.utils.safestring import SafeString, mark_safe
from markdown_it import MarkdownIt

register = template.Library()

_TAGS = frozenset(
    "p br hr strong em s code pre blockquote ul ol li a h1 h2 h3 h4 h5 h6 "
    "table thead tbody tr th td".split()
)
_ATTRIBUTES = {"a": {"href", "title"}, "ol": {"start"}}


@lru_cache(maxsize=1)
def _reader() -> MarkdownIt:
    # Images are left out: a model that can show one can send what it knows to whoever serves it.
    return (
        MarkdownIt("commonmark", {"html": False, "breaks": True})
        .enable(["table", "strikethrough"])
        .disable("image")
    )


@lru_cache(maxsize=512)
def _rendered(text: str) -> str:
    return nh3.clean(
        _reader().render(text),
        tags=set(_TAGS),
        attributes=_ATTRIBUTES,
        url_schemes={"http", "https", "mailto", "tel"},
        link_rel="noopener noreferrer nofollow",
    )


@register.filter
def markdown(text: str) -> SafeString:
    """Markdown → HTML that nh3 has cleaned; what is not Markdown stands as text."""
    return mark_safe(_rendered(text))  # noqa: S308 - cleaned by nh3 just above
