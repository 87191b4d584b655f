"""Canned responses as templates (ENGINE.md §5): what an author may write, and what becomes of it."""

import time

import pytest

from engine.canned import LONGEST_TEMPLATE, check_template, fields_of, render
from engine.errors import SpecError
from tests.engine.sessions import HOSTILE


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("We are open from 9 to 5.", "We are open from 9 to 5."),
        ("Hello {{ customer.name }}!", "Hello Zoë!"),
        ("{{ total|number(2) }} €", "1,204.50 €"),
        ("{{ count }} of {{ whole }}, paid: {{ paid }}", "3 of 5, paid: yes"),
        ("{{ tags|join(', ') }}", "new, red"),
        (
            "{% for o in orders %}{{ o.title }}{% if not loop.last %}; {% endif %}{% endfor %}",
            "Lamp; Desk",
        ),
        ("{{ orders|join(' and ', 'title') }}", "Lamp and Desk"),
        ("{{ nickname|default('friend') }}", "friend"),
        ("{% if nickname is defined %}{{ nickname }}{% else %}you{% endif %}", "you"),
        ("{{ order.items }} in {{ order['city'] }}", "two lamps in Berne"),
        ("{{ tags|first|upper }}, {{ tags|length }}", "NEW, 2"),
        ("{{ 'it is ' ~ (count * 2 + 1) ~ ' now' }}", "it is 7 now"),
        ("{% raw %}{{ like this }}{% endraw %}", "{{ like this }}"),
        ("Five < six & 'seven'", "Five < six & 'seven'"),
    ],
)
def test_a_response_says_its_fields(text: str, said: str) -> None:
    fields = {
        "customer": {"name": "Zoë"},
        "total": 1204.5,
        "count": 3,
        "whole": 5.0,
        "paid": True,
        "tags": ["new", "red"],
        "orders": [{"title": "Lamp"}, {"title": "Desk"}],
        "order": {"items": "two lamps", "city": "Berne"},
    }
    check_template(text)
    assert render(text, fields) == said


@pytest.mark.parametrize(
    "text",
    [
        "Hello {{ name }}",
        "Hello {{ customer.name }}",
        "Hello {{ nothing }}",  # null is not available either
        "{{ customer }}",  # an object is no text
        "{{ tags }}",
        "{{ tags[7] }}",
        "{{ tags.0.deeper }}",
        "{% for order in orders %}{{ order }}{% endfor %}",
        "{% for letter in word %}{{ letter }} {% endfor %}",
        "{{ word|number }}",
        "{{ word|round }}",
        "{{ tags|join(none) }}",
        "{{ word.upper }}",
        "{{ word.__class__ }}",
        "{{ word['__class__'] }}",
        "{{ word|sort|join(0) }}",
        "{{ 1 / 0 }}",
        "{% if name %}Hello{% endif %}",
        "  {{ ' ' }} ",
    ],
)
def test_a_response_that_cannot_be_filled_is_no_candidate(text: str) -> None:
    check_template(text)
    fields = {"customer": {}, "nothing": None, "tags": ["new"], "word": "lamp"}
    assert render(text, fields) is None


@pytest.mark.parametrize("text", HOSTILE)
def test_values_are_data_and_never_read_as_templates(text: str) -> None:
    assert render("<{{ said }}>", {"said": text}) == (f"<{text}>" if len(text) < 6_000 else None)
    assert render("{{ said }}!", {"said": "{{ 7 * 7 }} {% include 'x' %}"}) == (
        "{{ 7 * 7 }} {% include 'x' %}!"
    )


@pytest.mark.parametrize(
    ("text", "line", "about"),
    [
        ("{{ name", 1, "end of template"),
        ("Hello\n\n{{ name } and", 3, "unexpected '}'"),
        ("Hi\n{% if a %}yes", 2, "endif"),
        ("{% endif %}", 1, "unknown tag 'endif'"),
        ("one\n{{ name|shout }}", 2, "no filter 'shout'"),
        ("{{ name is shouted }}", 1, "no test 'shouted'"),
        ("{{ range(10) }}", 1, "'call'"),
        ("{{ ''.join(x) }}", 1, "'call'"),
        ("{% include 'other' %}", 1, "'include'"),
        ("{% import 'other' as o %}", 1, "'import'"),
        ("{% extends 'other' %}", 1, "'extends'"),
        ("{% macro m() %}{% endmacro %}", 1, "'macro'"),
        ("{% set a = 1 %}", 1, "'assign'"),
        ("{{ 9 ** 9 ** 9 }}", 1, "'pow'"),
        ("{{ _rounds }}", 1, "underscore"),
        ("{% for a in b recursive %}{% endfor %}", 1, "call themselves"),
        (
            "{% for a in x %}{% for b in x %}{% for c in x %}{% endfor %}{% endfor %}{% endfor %}",
            1,
            "at most 2 deep",
        ),
        ("{% if a %}" * 150 + "{% endif %}" * 150, 1, "nested too deeply"),
        ("{{ " + "(" * 1_900 + "1" + ")" * 1_900 + " }}", 1, "nested too deeply"),
        ("{{ " + "-" * 3_000 + "1 }}", 1, "nested too deeply"),
    ],
)
def test_what_is_no_usable_template_is_refused_with_its_line(
    text: str, line: int, about: str
) -> None:
    with pytest.raises(SpecError) as refused:
        check_template(text)
    assert refused.value.field == "text"
    assert str(refused.value).startswith(f"Line {line}: ")
    assert about.lower() in str(refused.value).lower()
    assert render(text, {"name": "Zoë", "x": [1], "b": [1]}) is None


@pytest.mark.parametrize("text", ["", "  \n", "x" * (LONGEST_TEMPLATE + 1)])
def test_an_empty_and_an_endless_text_are_refused(text: str) -> None:
    with pytest.raises(SpecError):
        check_template(text)


@pytest.mark.parametrize(
    "text",
    [
        "{{ 'x' * 1000000000 }}",
        "{{ '%1000000000d' % 1 }}",
        "{{ many|join('" + "x" * 3_000 + "') }}",
        "{{ 'x'" + "|replace('x', 'xxxxxxxxxx')" * 100 + " }}",
        "{% for a in many %}{% for b in many %}{% endfor %}{% endfor %}",
        "{% for a in many %}{{ long }}{% endfor %}",
        "{{ 5|round(-1000000000) * 1e300 * 1e300 }}",
        "{{ long }}{{ long }}",
    ],
)
def test_no_template_takes_long_or_grows_without_end(text: str) -> None:
    started = time.process_time()
    assert render(text, {"many": list(range(900)), "long": "x" * 4_000}) is None
    assert time.process_time() - started < 2


def test_a_template_cannot_change_what_fills_it() -> None:
    fields = {"tags": ["a"], "order": {"id": 1}}
    for text in ("{{ tags.append }}", "{{ order.update }}", "{{ order.pop }}", "{{ tags.clear }}"):
        assert render(text, fields) is None
    assert fields == {"tags": ["a"], "order": {"id": 1}}


@pytest.mark.parametrize(
    ("text", "fields"),
    [
        ("Good day.", ()),
        ("{{ customer.name }}, {{ total }} {{ total }}", ("customer.name", "total")),
        ("{% for o in orders %}{{ o.title }} {{ loop.index }} {{ fee }}{% endfor %}", ("fee", "orders")),
        ("{% if vip is defined %}{{ lounge|default('none') }}{% endif %}", ("lounge", "vip")),
    ],
)  # fmt: skip
def test_the_fields_of_a_template_are_named_as_written(text: str, fields: tuple[str, ...]) -> None:
    assert fields_of(text) == fields
