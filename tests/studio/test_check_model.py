"""`manage.py check_model`: a table, the wrong answers, a proposal, and an exit code."""

import json
from collections.abc import Iterator
from io import StringIO
from typing import Any

import pytest
from django.core.management import CommandError, call_command

from engine.model.check import Report
from tests.openai_server import OpenAIServer, closed_port
from tests.studio.factories import make_connection
from tests.studio.test_model_checks import says_no

pytestmark = pytest.mark.django_db


@pytest.fixture
def server() -> Iterator[OpenAIServer]:
    with OpenAIServer(answer=says_no, confidence=0.9) as server:
        yield server


def run(*args: str, **options: Any) -> str:
    out = StringIO()
    call_command("check_model", *args, stdout=out, stderr=StringIO(), **options)
    return out.getvalue()


def test_without_a_connection_the_offline_model_is_checked() -> None:
    said = run()
    assert "guidelines with reasons, 12 at once" in said
    assert "Proposal: batch size 12, reasoned." in said
    assert "Wrong, arguments:" in said


def test_a_connection_is_named_or_numbered_and_the_default_needs_no_name(
    server: OpenAIServer,
) -> None:
    row = make_connection(name="Local", base_url=server.base_url, model="m7")
    for name in ("Local", str(row.pk)):
        assert "32 of 48" in run(name)
    row.is_default = True
    row.save()
    assert "Proposal:" in run()
    assert {request.body["model"] for request in server.completions} == {"m7"}


def test_the_environments_model_is_checked_where_no_connection_is_the_default(
    server: OpenAIServer, settings: Any
) -> None:
    settings.STUDIO_MODEL, settings.OPENAI_BASE_URL = "small-7b", server.base_url
    settings.OPENAI_API_KEY = "none"
    run()
    assert {request.body["model"] for request in server.completions} == {"small-7b"}


def test_json_is_the_whole_report(server: OpenAIServer) -> None:
    make_connection(name="Local", base_url=server.base_url)
    found = Report.from_json(json.loads(run("Local", "--json", "--at-once", "4")))
    assert [row.complete for row in found.rows] == [True] * 6


def test_a_server_that_is_down_is_an_error_that_says_so() -> None:
    make_connection(name="Gone", base_url=f"http://127.0.0.1:{closed_port()}/v1")
    with pytest.raises(CommandError, match="3 questions in a row failed: Cannot reach"):
        run("Gone")


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (("Nobody",), "There is no connection 'Nobody'. There are: 'Local'."),
        (("Local", "--at-once", "0"), "from 1 on"),
        (("Nameless",), "The model has no name"),
    ],
)
def test_wrong_arguments_are_refused_in_words(args: tuple[str, ...], said: str) -> None:
    make_connection(name="Local")
    if args == ("Nameless",):
        make_connection(name="Nameless", model=" ")
    with pytest.raises(CommandError) as caught:
        run(*args)
    assert said in str(caught.value).replace(", 'Nameless'", "")
