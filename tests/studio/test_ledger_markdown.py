"""The ledger as Markdown: readable in an issue, and nothing that anybody wrote is markup there."""

import re
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse
from hypothesis import example, given
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from studio.audit import audit
from studio.ledger_markdown import code, escaped, ledger_markdown
from studio.ledger_text import printable
from studio.models import Turn
from tests.studio.conversations import Recorded, make_bank, make_person

HOSTILE = [
    "<script>alert(1)</script>",
    "# not a heading",
    "1. no list",
    "- none *either*",
    "[a](javascript:alert(1)) ![x](y)",
    "`code` ``` and _so_ on | a | b |",
    "&lt;b&gt; &amp; \\* \\",
    "a\n\n# b\n> c",
    "=====",
]


def read(text: str) -> Any:
    return MarkdownIt("gfm-like", {"linkify": False}).parse(text)


def words_of(text: str) -> str:
    """What a reader of the Markdown sees, if it holds one paragraph of plain text."""
    tokens = read(text)
    assert [token.type for token in tokens] in (
        ["paragraph_open", "inline", "paragraph_close"],
        [],
    )
    inline = tokens[1].children if tokens else []
    assert {token.type for token in inline} <= {"text"}, inline
    return "".join(token.content for token in inline)


@given(st.text(alphabet=st.characters(exclude_categories=["C"])) | st.sampled_from(HOSTILE))
@example("1")
def test_whatever_was_written_stands_there_as_it_was(text: str) -> None:
    assert words_of(escaped(text)) == " ".join(printable(text).split())


@given(st.text(max_size=40))
def test_a_value_stays_inside_its_code_span(text: str) -> None:
    inline = read(f"x {code([text, '`'])} y")[1].children
    assert [token.type for token in inline] == ["text", "code_inline", "text"]


@pytest.mark.django_db
def test_it_reads_as_messages_then_guideline_by_guideline(client: Client) -> None:
    told = Recorded(make_bank("asks for the *balance*", "lost a card"))
    turn = told.turn("How much do I have?\n# Really")
    told.match(turn, 0, "matched", "It is asked for.", score=0.93)
    told.match(turn, 1, "not_matched", "No card is mentioned.")
    argument = {"name": "account", "value": "checking", "source": "inferred", "evidence": ""}
    told.decide(turn, "NEEDS_TO_RUN", call="c1", arguments=[argument], because="Needed.")
    told.decide(turn, "CANNOT_RUN", missing=["date"])
    told.call(turn, "c1", result={"data": {"balance": 412.6}})
    told.call(turn, "c2", "failed", error={"kind": "timeout", "public": "Too late.", "detail": ""})
    told.ask_model(turn, "m1", 0, 210, prompt_tokens=1_000, completion_tokens=5)
    told.answer(turn, "You have **€ 412.60**.")
    client.force_login(make_person("qa"))
    response = client.get(reverse("turn-markdown", args=[told.session.pk, 1]))
    assert response.headers["content-type"] == "text/markdown; charset=utf-8"
    text = response.content.decode()
    assert text == ledger_markdown(audit(Turn.objects.get()))
    assert text.startswith("# Turn 1 · finished · draft")
    for line in (
        "> How much do I have?\\\n> \\# Really",
        "> You have \\*\\*€ 412.60\\*\\*.",
        "- **Matched**: When asks for the \\*balance\\* → act on asks for the \\*balance\\* (0.21 s)",
        "  - It is asked for. (score 0.93)",
        "  - **Ran** `get_balance` (0.30 s): Needed.",
        '    - account = `"checking"` (inferred)',
        '    - → `{"balance": 412.6}`',
        "  - **Cannot run** `get_balance`",
        "    - missing: date",
        "- **Not matched**: When lost a card",
        "- **Failed** `get_balance`",
        "  - → It did not answer before its deadline. Too late.",
        "- Which guidelines apply · gpt-x · 0.21 s · 1000 + 5 tokens",
    ):
        assert line in text, line


@pytest.mark.django_db
@pytest.mark.parametrize("text", HOSTILE)
def test_nothing_that_anybody_wrote_is_markup(text: str) -> None:
    told = Recorded(make_bank(text))
    turn = told.turn(text)
    told.match(turn, 0, "matched", text)
    told.decide(turn, "CANNOT_RUN", because=text, missing=[text])
    told.call(turn, "c1", result={"data": {text: text}})
    told.ask_model(turn, "m1", 0, 10, error=text)
    told.answer(turn, text)
    html = MarkdownIt("gfm-like", {"linkify": False}).render(
        ledger_markdown(audit(Turn.objects.get()))
    )
    allowed = {"h1", "h2", "p", "strong", "ul", "li", "blockquote", "br", "code"}
    assert set(re.findall(r"<(\w+)", html)) <= allowed
    assert html.count("<h1>") == 1
