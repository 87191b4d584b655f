"""Running a tool by hand in pages: its form, the run as it goes, what came of it, the examples that are kept."""

import re
from datetime import timedelta
from html import unescape
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from engine.tools.base import ToolContext
from engine.tools.function import FunctionToolService, tool
from studio.models import Tool, ToolExample, ToolRun
from studio.operations import tool_trials
from studio.operations.tool_trials import run_by_hand
from tests.studio.factories import make_customer, make_tool, make_user

pytestmark = pytest.mark.django_db

HTMX = {"HX-Request": "true"}
PARAMETERS = [
    {"name": "city", "schema": {"type": "string"}, "description": "Where <b>it</b> is"},
    {
        "name": "days",
        "schema": {"type": "integer", "minimum": 1},
        "required": False,
        "default": 3,
    },
    {
        "name": "stops",
        "schema": {
            "type": "array",
            "items": {"type": "object", "properties": {"street": {"type": "string"}}},
        },
        "required": False,
    },
]


@pytest.fixture
def weather() -> Tool:
    return make_tool(name="weather", parameters=PARAMETERS, description="Tells the weather.")


@pytest.fixture
def developer(client: Client) -> User:
    person = make_user("developer", username="dana")
    client.force_login(person)
    return person


def page(response: Any, status: int = 200) -> str:
    assert response.status_code == status
    return unescape(" ".join(response.content.decode().split()))


def sent(**values: Any) -> dict[str, Any]:
    return {f"arguments.{name.replace('__', '.')}": value for name, value in values.items()}


def make_run(row: Tool, **values: Any) -> ToolRun:
    usual = {"state": "finished", "arguments": {"city": "Antwerp"}, "started_by": "dana"}
    return ToolRun.objects.create(tool=row, **(usual | values))


def address(run: ToolRun, *rest: str) -> str:
    return "/".join([f"/tools/{run.tool.name}/runs/{run.pk}", *rest, ""])


# --- the form


def test_the_form_asks_for_each_parameter_and_for_whom(
    client: Client, developer: User, weather: Tool
) -> None:
    make_customer(name="Ada <i>", uid="ada")
    html = client.get("/tools/weather/run/").content.decode()
    assert '<label for="id_arguments.city" dir="auto">city</label>' in html
    assert "Where &lt;b&gt;it&lt;/b&gt; is" in html
    assert 'inputmode="numeric"' in html
    assert "3 if left out" in html
    assert 'name="arguments.stops.1.street"' in html
    assert '<option value="ada">Ada &lt;i&gt;</option>' in html
    assert 'name="sure"' not in html


def test_sending_it_starts_a_run_and_goes_to_its_page(
    client: Client, developer: User, weather: Tool, django_capture_on_commit_callbacks: Any
) -> None:
    customer = make_customer(uid="ada")
    form = {**sent(city="Antwerp", days="", stops__0__street="Quay"), "customer": "ada"}
    with django_capture_on_commit_callbacks() as queued:
        response = client.post("/tools/weather/run/", form)
    run = ToolRun.objects.get()
    assert response.headers["Location"] == address(run)
    assert len(queued) == 1
    assert run.arguments == {"city": "Antwerp", "stops": [{"street": "Quay"}]}
    assert (run.state, run.customer, run.started_by) == ("queued", customer, "dana")
    html = page(client.get(address(run)))
    assert "It waits for a worker." in html
    assert f'hx-get="{address(run)}" hx-trigger="every 600ms"' in html
    with django_capture_on_commit_callbacks():
        response = client.post("/tools/weather/run/", form, headers=HTMX)
    assert response.headers["HX-Redirect"] == address(ToolRun.objects.first())


def test_arguments_that_do_not_fit_are_named_at_their_inputs_and_stay(
    client: Client, developer: User, weather: Tool
) -> None:
    form = sent(city="", days="x<y", stops__0__street="Quay")
    html = page(client.post("/tools/weather/run/", form), 422)
    assert '<a href="#id_arguments.city" dir="auto">city</a>: It is required.' in html
    assert (
        'id="id_arguments.days_error"><li dir="auto">It must be a whole number.</li></ul>' in html
    )
    assert 'value="x<y"' in html
    assert "Quay</textarea>" in html
    fragment = page(client.post("/tools/weather/run/", form, headers=HTMX), 422)
    assert fragment.startswith('<form id="run-form"')
    assert not ToolRun.objects.exists()


def test_more_rows_and_the_other_form_keep_what_was_typed_and_run_nothing(
    client: Client, developer: User, weather: Tool
) -> None:
    form = sent(city="Antwerp", stops__0__street="Quay", days="soon")
    more = page(client.post("/tools/weather/run/", {**form, "more": "arguments.stops"}))
    assert 'name="arguments.stops.4.street"' in more
    assert "Quay</textarea>" in more
    other = page(client.post("/tools/weather/run/", {**form, "switch": "1"}))
    assert '"days": "soon"' in other
    assert '<input type="hidden" name="as" value="json">' in other
    written = '{"city": "Antwerp", "days": 5}'
    form = {"as": "json", "arguments:json": written}
    back = page(client.post("/tools/weather/run/", {**form, "switch": "1"}))
    assert 'name="arguments.days" value="5"' in back
    assert not ToolRun.objects.exists()
    client.post("/tools/weather/run/", form)
    assert ToolRun.objects.get().arguments == {"city": "Antwerp", "days": 5}


def test_a_tool_that_changes_something_runs_only_with_a_tick(
    client: Client, developer: User
) -> None:
    make_tool(name="pay", parameters=[], consequential=True)
    assert "Run it for real" in page(client.get("/tools/pay/run/"))
    html = page(client.post("/tools/pay/run/"), 422)
    assert "Tick this to run it" in html
    assert not ToolRun.objects.exists()
    assert client.post("/tools/pay/run/", {"sure": "on"}).status_code == 302
    assert ToolRun.objects.count() == 1


def test_an_unknown_customer_is_refused(client: Client, developer: User, weather: Tool) -> None:
    form = {**sent(city="Antwerp"), "customer": "nobody\x00"}
    assert page(client.post("/tools/weather/run/", form), 422)
    assert "There is no such customer." in page(
        client.post("/tools/weather/run/", {**form, "customer": "x"}), 422
    )


def test_a_run_can_be_made_again_with_its_arguments(
    client: Client, developer: User, weather: Tool
) -> None:
    customer = make_customer(uid="ada")
    run = make_run(weather, arguments={"city": "Ghent", "days": 9}, customer=customer)
    assert f'href="/tools/weather/run/?again={run.pk}"' in page(client.get(address(run)))
    html = page(client.get(f"/tools/weather/run/?again={run.pk}"))
    assert "Ghent</textarea>" in html
    assert 'value="9"' in html
    assert '<option value="ada" selected>' in html
    as_json = page(client.get(f"/tools/weather/run/?again={run.pk}&as=json"))
    assert '"city": "Ghent"' in as_json


def test_earlier_runs_are_listed_newest_first_in_as_many_queries_for_many(
    client: Client, developer: User, weather: Tool
) -> None:
    make_run(weather)
    client.get("/tools/weather/run/")
    with CaptureQueriesContext(connection) as few:
        client.get("/tools/weather/run/")
    for number in range(25):
        make_run(weather, arguments={"city": f"City {number}"})
    with CaptureQueriesContext(connection) as many:
        html = page(client.get("/tools/weather/run/"))
    assert len(many) == len(few)
    assert html.index("city: City 24") < html.index("city: City 5")
    assert "city: City 4<" not in html  # 20 are shown


# --- a run


def test_a_run_is_seen_from_its_log_to_its_answer(
    client: Client, developer: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    @tool
    def forecast(context: ToolContext) -> dict[str, Any]:
        """Looks ahead."""
        context.show_log("<b>looking</b>\n")
        return {"days": [{"day": "Mon", "rain": 3}, {"day": "Tue", "rain": 0}], "note": "<i>"}

    service = FunctionToolService([forecast])
    monkeypatch.setattr(tool_trials, "tools_for", lambda _tools: service)
    row = make_tool(name="forecast", parameters=[])
    client.post("/tools/forecast/run/")
    run = ToolRun.objects.get(tool=row)
    run_by_hand(run.pk)
    response = client.get(address(run))
    html = response.content.decode()
    assert "Finished" in html
    assert "&lt;b&gt;looking&lt;/b&gt;" in html
    assert "<b>looking" not in html
    assert "<td>" in html  # the days as a table
    assert "&quot;rain&quot;: 3" in html  # and as JSON
    assert "<bdi>&lt;i&gt;</bdi>" in html
    assert "hx-trigger" not in html.partition('id="run"')[2].partition(">")[0]


def test_htmx_gets_the_run_alone_and_while_it_runs_there_is_a_way_to_stop_it(
    client: Client, developer: User, weather: Tool
) -> None:
    now = timezone.now()
    run = make_run(
        weather,
        state="running",
        log="half way",
        started_at=now - timedelta(seconds=90),
        heartbeat_at=now,
    )
    html = page(client.get(address(run), headers=HTMX))
    assert html.startswith('<section id="run"')
    assert "half way" in html
    assert re.search(r"9\d\.\d s", html)
    response = client.post(address(run, "stop"), follow=True)
    assert "Stopping…" in page(response)
    run.refresh_from_db()
    assert run.stop_requested
    assert "The run is over already." in page(
        client.post(address(make_run(weather), "stop"), follow=True)
    )


@pytest.mark.parametrize(
    ("result", "shown"),
    [
        ({"data": "Two\nlines <b>"}, 'class="said" dir="auto">Two\nlines &lt;b&gt;</p>'),
        ({"data": ""}, "An empty text."),
        ({"data": None}, '<span class="none">nothing</span>'),
        ({"data": [1, 2]}, "<bdi>1, 2</bdi>"),
        ({"data": 1, "metadata": {"url": "x.example"}}, "<bdi>x.example</bdi>"),
        ({"data": 1, "canned_responses": ["Good day"]}, "<bdi>Good day</bdi>"),
    ],
)
def test_an_answer_is_shown_as_what_it_is(
    client: Client, developer: User, weather: Tool, result: Any, shown: str
) -> None:
    run = make_run(weather, result={"metadata": {}, **result}, duration_ms=12)
    html = client.get(address(run)).content.decode()
    assert shown in html
    assert "12 ms" in html


def test_a_failure_says_what_happened_and_its_details(
    client: Client, developer: User, weather: Tool
) -> None:
    failure = {"kind": "timeout", "public": "it took too long", "detail": "Stopped at 5 s."}
    html = page(client.get(address(make_run(weather, state="failed", failure=failure))))
    assert "<b>It did not answer before its deadline.</b>" in html
    assert "A customer would be told that <bdi>it took too long</bdi>." in html
    assert "Stopped at 5 s." in html


def test_a_run_whose_worker_is_gone_says_so(client: Client, developer: User, weather: Tool) -> None:
    long_ago = timezone.now() - timedelta(minutes=5)
    run = make_run(weather, state="running", started_at=long_ago, heartbeat_at=long_ago)
    assert "The worker that ran it was stopped in the middle." in page(client.get(address(run)))


# --- examples


def test_arguments_are_kept_under_a_name_run_again_and_deleted(
    client: Client, developer: User, weather: Tool
) -> None:
    run = make_run(weather, arguments={"city": "Ghent"})
    html = page(client.post(address(run, "example"), {"name": "by the <sea>"}, follow=True))
    example = ToolExample.objects.get()
    assert (example.tool, example.arguments, example.created_by) == (
        weather,
        {"city": "Ghent"},
        "dana",
    )
    assert "Kept as “by the <sea>”." in html
    assert f'href="/tools/weather/run/?example={example.pk}"' in html
    assert "Ghent</textarea>" in page(client.get(f"/tools/weather/run/?example={example.pk}"))
    assert "by the <sea>" in page(client.get("/tools/weather/"))
    client.post(f"/tools/weather/examples/{example.pk}/run/")
    again = ToolRun.objects.first()
    assert (again.pk != run.pk, again.arguments) == (True, {"city": "Ghent"})
    client.post(f"/tools/weather/examples/{example.pk}/delete/")
    assert not ToolExample.objects.exists()


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("", "Name the example."),
        ("usual", "is named “usual” already."),
        ("x" * 81, "at most 80 characters"),
        ("a\x00", "Null characters are not allowed."),
    ],
)
def test_an_example_without_a_name_of_its_own_is_refused(
    client: Client, developer: User, weather: Tool, name: str, message: str
) -> None:
    ToolExample.objects.create(tool=weather, name="usual")
    html = page(client.post(address(make_run(weather), "example"), {"name": name}), 422)
    assert message in html
    assert ToolExample.objects.count() == 1


def test_an_example_that_no_longer_fits_or_changes_something_leads_to_the_form(
    client: Client, developer: User, weather: Tool
) -> None:
    old = ToolExample.objects.create(tool=weather, name="old", arguments={"town": "Ghent"})
    html = page(client.post(f"/tools/weather/examples/{old.pk}/run/", follow=True))
    assert "these arguments no longer fit" in html
    pay = make_tool(name="pay", parameters=[], consequential=True)
    usual = ToolExample.objects.create(tool=pay, name="usual")
    html = page(client.post(f"/tools/pay/examples/{usual.pk}/run/", follow=True))
    assert "It changes something" in html
    assert not ToolRun.objects.exists()


# --- wrong method, wrong role, stranger: all of them in test_access.py; here what belongs to another tool


@pytest.mark.parametrize(
    "place",
    ["run/?again={run}", "run/?example={example}", "runs/{run}/", "run/?again=99999999999999999"],
)
def test_what_belongs_to_another_tool_is_not_found_at_this_one(
    client: Client, developer: User, weather: Tool, place: str
) -> None:
    other = make_tool(name="other", parameters=[])
    run = make_run(other)
    example = ToolExample.objects.create(tool=other, name="usual")
    found = place.format(run=run.pk, example=example.pk)
    assert client.get(f"/tools/weather/{found}").status_code == 404
    assert client.post(f"/tools/weather/examples/{example.pk}/delete/").status_code == 404


@pytest.mark.parametrize("wrong", ["x", "-1", "", "9" * 5000, "٣"])
def test_a_number_that_is_none_begins_an_empty_form(
    client: Client, developer: User, weather: Tool, wrong: str
) -> None:
    response = client.get("/tools/weather/run/", {"again": wrong})
    assert response.status_code in (200, 404)


def test_who_may_not_run_tools_sees_no_way_to(client: Client, weather: Tool) -> None:
    client.force_login(make_user("author"))
    assert "/tools/weather/run/" not in page(client.get("/tools/weather/"))
    assert client.get("/tools/weather/run/").status_code == 403
    assert client.post("/tools/weather/run/", sent(city="x")).status_code == 403
    assert client.get(address(make_run(weather))).status_code == 403


def test_the_page_of_a_tool_leads_to_its_form(
    client: Client, developer: User, weather: Tool
) -> None:
    run = make_run(weather)
    html = page(client.get("/tools/weather/"))
    assert 'href="/tools/weather/run/"' in html
    assert f'href="{address(run)}">Finished</a>' in html
