"""Instances in pages: made with a form, built, configured, upgraded, deleted; their secrets are never shown."""

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

from engine.tools.isolation import detect
from studio.models import Tool, ToolEnvironment, ToolInstance
from studio.operations.agents import allow_tool
from studio.operations.instances import configure, upgrade
from studio.secrets import fingerprint
from tests.studio.factories import make_agent, make_guideline, make_tool, make_user
from tests.studio.tool_packages import built, make_instance, make_version

pytestmark = pytest.mark.django_db

HTMX = {"HX-Request": "true"}
STATE = ToolEnvironment.State
SECRET = "sk-very-secret-0815"
USER = """api_key: str = Field(description="The key <b>you</b> were given")
city: str = "Vienna"
limit: int = Field(default=3, ge=1, le=9)
unit: Literal["C", "F"] = "C"
tags: Optional[list[str]] = None
"""


@pytest.fixture
def developer(client: Client) -> User:
    person = make_user("developer", username="dana")
    client.force_login(person)
    return person


@pytest.fixture
def keyed() -> ToolInstance:
    version = make_version("Weather", user=USER)
    return make_instance(version, name="weather", config={"api_key": SECRET, "city": "Graz"})


def page(response: Any, status: int = 200) -> str:
    assert response.status_code == status
    assert SECRET not in response.content.decode()
    return unescape(" ".join(response.content.decode().split()))


def sent(**values: Any) -> dict[str, Any]:
    return {f"config.{name}": value for name, value in values.items()}


def again(instance: ToolInstance) -> ToolInstance:
    return ToolInstance.objects.select_related("tool", "environment", "version").get(pk=instance.pk)


def address(instance: ToolInstance, *rest: str) -> str:
    return "/".join([f"/tools/instances/{instance.pk}", *rest, ""])


def during(instance: ToolInstance, state: str, **values: Any) -> ToolInstance:
    """With its environment in this state."""
    rows = ToolEnvironment.objects.filter(pk=instance.environment_id)
    rows.update(state=state, **values)
    return again(instance)


# --- a new one


def test_the_form_of_a_new_instance_asks_for_what_its_template_is_configured_by(
    client: Client, developer: User
) -> None:
    version = make_version("Rain radar", user=USER)
    html = client.get(f"/tools/templates/{version.template_id}/instances/new/").content.decode()
    assert 'name="name" value="rain_radar"' in html
    assert re.search(r'<input type="password" id="id_config.api_key"[^>]*autocomplete="off"', html)
    assert "The key &lt;b&gt;you&lt;/b&gt; were given" in html
    assert 'placeholder="Vienna"' in html
    assert 'name="secret.city"' in html
    assert 'name="secret.api_key"' not in html
    assert "a whole number from 1 to 9; 3 if left out" in html
    assert html.count("(optional)") == 4  # all but the name and the key


def test_a_new_instance_is_made_with_its_configuration_and_its_build_is_asked_for(
    client: Client, developer: User, django_capture_on_commit_callbacks: Any
) -> None:
    version = make_version("Rain radar", user=USER)
    form = sent(api_key=SECRET, city="Linz", limit="5", unit='"F"', tags="wet\r\ncold")
    more = {"name": "radar", "consequential": "on", "secret.city": "on"}
    with django_capture_on_commit_callbacks() as queued:
        response = client.post(
            f"/tools/templates/{version.template_id}/instances/new/", form | more
        )
    instance = ToolInstance.objects.get()
    assert response.headers["Location"] == address(instance)
    assert len(queued) == 1
    assert (instance.tool.name, instance.tool.consequential) == ("radar", True)
    assert instance.config == {
        "api_key": SECRET,
        "city": "Linz",
        "limit": 5,
        "unit": "F",
        "tags": ["wet", "cold"],
    }
    assert set(instance.secrets) == {"api_key", "city"}
    html = page(client.get(address(instance)))
    assert "Linz" not in html
    assert fingerprint("Linz") in html
    assert "Waiting to be built" in html


def test_a_refused_instance_says_why_at_each_place_and_asks_for_secrets_again(
    client: Client, developer: User
) -> None:
    make_tool(name="taken")
    version = make_version(user=USER)
    place = f"/tools/templates/{version.template_id}/instances/new/"
    kept = "keep-me-secret"
    form = sent(api_key=SECRET, city=kept, limit="99") | {"name": "radar", "secret.city": "on"}
    html = page(client.post(place, form), 422)
    assert '<a href="#id_config.limit" dir="auto">limit</a>: It must be at most 9.' in html
    assert 'value="99"' in html
    assert kept not in html
    assert "Secrets have to be typed again." in html
    assert html.count("Type it again") == 2
    html = page(client.post(place, sent(limit="2") | {"name": "taken"}), 422)
    assert '<a href="#id_config.api_key" dir="auto">api_key</a>: It is required.' in html
    html = page(client.post(place, sent(api_key=SECRET) | {"name": "taken"}), 422)
    assert "Another tool is named 'taken' already" in html
    assert not ToolInstance.objects.exists()


def test_what_is_wrong_with_a_secret_is_said_without_citing_it(
    client: Client, developer: User
) -> None:
    version = make_version(user="token: str = Field(max_length=5)")
    place = f"/tools/templates/{version.template_id}/instances/new/"
    form = sent(token=SECRET) | {"name": "radar"}
    html = page(client.post(place, form), 422)
    assert "It must have at most 5 characters." in html


def test_a_version_that_the_address_names_is_taken(client: Client, developer: User) -> None:
    make_version("Rain", user="old: str")
    newest = make_version("Rain", user="new: str")
    place = f"/tools/templates/{newest.template_id}/instances/new/"
    assert 'name="config.new"' in page(client.get(place))
    html = page(client.get(f"{place}?version=1"))
    assert 'name="config.old"' in html
    assert f'action="{place}?version=1"' in html
    for wrong in ("3", "x", "9" * 50):
        assert client.get(f"{place}?version={wrong}").status_code == 404


# --- its page: the build


def test_a_build_is_seen_with_its_stages_and_its_log_and_can_be_stopped(
    client: Client, developer: User, keyed: ToolInstance
) -> None:
    now = timezone.now()
    during(
        keyed,
        STATE.RUNNING,
        stage="Resolving",
        log="Resolved <3> packages",
        started_at=now - timedelta(seconds=12),
        heartbeat_at=now,
    )
    html = client.get(address(keyed)).content.decode()
    assert f'hx-get="{address(keyed)}" hx-trigger="every 1s"' in html
    assert "Being built" in html
    assert re.search(r"1[2-9]\.\d s", html)
    assert re.search(r'class="done"><span[^>]*>✓</span>Creating the environment', html)
    assert re.search(r'class="now" aria-current="step"><span[^>]*>…</span>Resolving', html)
    assert re.search(r'class="later"><span[^>]*></span>Installing', html)
    assert "Resolved &lt;3&gt; packages" in html
    fragment = page(client.get(address(keyed), headers=HTMX))
    assert fragment.startswith('<section id="state"')
    assert "Configuration" not in fragment
    assert "Stopping…" in page(client.post(address(keyed, "build", "stop"), follow=True))
    assert again(keyed).environment.stop_requested


def test_a_build_that_failed_says_why_first_and_can_be_tried_again(
    client: Client, developer: User, keyed: ToolInstance
) -> None:
    error = "There is no package 'nope'."
    during(keyed, STATE.FAILED, stage="Resolving", error=error, log="raw text")
    html = page(client.get(address(keyed)))
    assert html.index("Build failed") < html.index(error) < html.index("raw text")
    assert "hx-trigger" not in html.partition('id="state"')[2].partition(">")[0]
    html = page(client.post(address(keyed, "build"), follow=True))
    assert "Waiting to be built" in html
    assert again(keyed).environment.state == STATE.QUEUED


def test_a_build_that_is_over_is_not_stopped(
    client: Client, developer: User, keyed: ToolInstance
) -> None:
    html = page(client.post(address(keyed, "build", "stop"), follow=True))
    assert "The build is over already." in html


def test_an_environment_that_others_need_too_says_so(
    client: Client, developer: User, keyed: ToolInstance
) -> None:
    make_instance(keyed.version, config={"api_key": "k"}, ready=False)
    during(keyed, STATE.QUEUED)
    assert "1 other instance needs the same environment" in page(client.get(address(keyed)))


def test_a_ready_instance_leads_to_its_tool_its_form_and_the_agents_that_may_choose_it(
    client: Client, developer: User, keyed: ToolInstance
) -> None:
    agent = make_agent(name="Harbor <Bank>")
    html = page(client.get(address(keyed)))
    assert 'href="/tools/weather/run/"' in html
    assert 'href="/tools/weather/"' in html
    assert f'href="/agents/{agent.slug}/tools/">Tools of <bdi>Harbor <Bank></bdi>' in html
    assert detect().sentence in html
    shed = page(client.get("/tools/weather/"))
    assert f'href="{address(keyed)}"' in shed
    assert f'href="/tools/templates/{keyed.template_id}/"' in shed
    allow_tool(agent, keyed.tool)
    make_guideline(agent, tools=[keyed.tool])
    html = page(client.get(address(keyed)))
    assert f'href="/agents/{agent.slug}/tools/" dir="auto">Harbor <Bank></a>' in html
    assert "1 guideline names it." in html


# --- its page: the configuration


def test_a_secret_is_shown_by_who_set_it_and_its_fingerprint_and_stays_when_nothing_is_typed(
    client: Client, developer: User, keyed: ToolInstance
) -> None:
    html = page(client.get(address(keyed)))
    assert "set by <bdi>dana</bdi>" in html
    assert f"<code>{fingerprint(SECRET)}</code>" in html
    assert "Graz</textarea>" in html
    client.post(address(keyed), sent(api_key="", city="Linz", limit="4"))
    assert again(keyed).config == {"api_key": SECRET, "city": "Linz", "limit": 4}


def test_a_secret_is_replaced_by_what_is_typed(
    client: Client, developer: User, keyed: ToolInstance
) -> None:
    html = page(client.post(address(keyed), sent(api_key="brand-new", city="Graz"), follow=True))
    assert "Saved. The next call runs on it." in html
    assert again(keyed).config == {"api_key": "brand-new", "city": "Graz"}
    assert "brand-new" not in html
    assert fingerprint("brand-new") in html


def test_a_secret_that_is_not_required_can_be_removed(client: Client, developer: User) -> None:
    version = make_version(user='api_key: str = ""')
    instance = make_instance(version, config={"api_key": SECRET})
    assert 'name="remove.api_key"' in page(client.get(address(instance)))
    client.post(address(instance), {"remove.api_key": "on"})
    assert again(instance).config == {}


def test_a_value_that_is_emptied_is_removed_and_one_that_is_wrong_changes_nothing(
    client: Client, developer: User, keyed: ToolInstance
) -> None:
    html = page(client.post(address(keyed), sent(city="Linz", limit="none")), 422)
    assert "It must be a whole number." in html
    assert "Linz</textarea>" in html
    assert again(keyed).config == {"api_key": SECRET, "city": "Graz"}
    client.post(address(keyed), sent(city=""))
    assert again(keyed).config == {"api_key": SECRET}


def test_a_text_is_kept_secret_from_when_it_is_ticked(
    client: Client, developer: User, keyed: ToolInstance
) -> None:
    client.post(address(keyed), sent(city="Hallstatt") | {"secret.city": "on"})
    html = page(client.get(address(keyed)))
    assert "Hallstatt" not in html
    assert fingerprint("Hallstatt") in html
    # From then on it is replaced, not edited, and the tick is gone.
    assert 'name="secret.city"' not in html
    assert again(keyed).config["city"] == "Hallstatt"


def test_readers_see_the_configuration_and_cannot_change_it(
    client: Client, keyed: ToolInstance
) -> None:
    client.force_login(make_user("qa"))
    html = page(client.get(address(keyed)))
    assert '<fieldset class="form" disabled>' in html
    for way_to_change in ('<button class="primary">', "/delete/", "/run/"):
        assert way_to_change not in html
    assert client.post(address(keyed), sent(city="Linz")).status_code == 403


# --- another version


def test_a_newer_version_is_announced_with_what_it_breaks(
    client: Client, developer: User, keyed: ToolInstance
) -> None:
    assert "is there" not in page(client.get(address(keyed)))
    make_version("Weather", user=USER + "region: str")
    html = page(client.get(address(keyed)))
    assert "Version 2 is there" in html
    assert "1 breaking change" in html
    assert f'href="{address(keyed, "upgrade")}"' in html


def test_an_upgrade_shows_the_changes_asks_for_what_is_new_and_waits_for_its_build(
    client: Client, developer: User, keyed: ToolInstance
) -> None:
    make_version("Weather", user=USER + "region: str", requirements="pydantic\nother\n")
    html = page(client.get(address(keyed, "upgrade")))
    assert "<code>region</code>" in html
    assert "breaking" in html
    assert "Graz</textarea>" in html
    assert fingerprint(SECRET) in html
    html = page(client.post(address(keyed, "upgrade") + "?version=2", sent(city="Graz")), 422)
    assert '<a href="#id_config.region" dir="auto">region</a>: It is required.' in html
    form = sent(city="Graz", region="north")
    html = page(client.post(address(keyed, "upgrade") + "?version=2", form, follow=True))
    assert "Becoming version 2" in html
    assert "It runs as version 1 until that is built." in html
    assert "Version 2 is there" not in html
    html = page(client.post(address(keyed, "upgrade", "cancel"), follow=True))
    assert "It stays on version 1." in html
    assert "Becoming" not in html


def test_an_upgrade_whose_environment_is_there_happens_at_once(
    client: Client, developer: User, keyed: ToolInstance
) -> None:
    make_version("Weather", user=USER + "retries: int = 2")
    html = page(client.post(address(keyed, "upgrade") + "?version=2", sent(), follow=True))
    assert "It is version 2 now." in html
    assert again(keyed).version.number == 2
    assert again(keyed).config == {"api_key": SECRET}
    html = page(client.get(address(keyed, "upgrade"), follow=True))
    assert "It runs on this version already." in html


def test_a_failed_build_of_an_upgrade_leaves_it_running_and_says_so(
    client: Client, developer: User, keyed: ToolInstance
) -> None:
    newer = make_version("Weather", user=USER, requirements="pydantic\nother\n")
    instance = upgrade(keyed, newer, config={}, by="dana")
    rows = ToolEnvironment.objects.filter(pk=instance.next_environment_id)
    rows.update(state=STATE.FAILED, error="No version fits.")
    html = page(client.get(address(keyed)))
    assert "Ready" in html
    assert "No version fits." in html
    assert "Build again" in html


# --- its end


def test_an_instance_is_deleted_with_its_tool(
    client: Client, developer: User, keyed: ToolInstance
) -> None:
    assert "Deleted for good" in page(client.get(address(keyed, "delete")))
    response = client.post(address(keyed, "delete"))
    assert response.headers["Location"] == f"/tools/templates/{keyed.template_id}/"
    assert not ToolInstance.objects.exists()
    assert not Tool.objects.filter(name="weather").exists()


def test_one_that_is_in_use_is_not_deleted_and_its_users_are_named(
    client: Client, developer: User, keyed: ToolInstance
) -> None:
    agent = make_agent(name="Harbor")
    allow_tool(agent, keyed.tool)
    make_guideline(agent, tools=[keyed.tool], condition="the customer asks for rain")
    for response in (
        page(client.get(address(keyed, "delete"))),
        page(client.post(address(keyed, "delete")), 422),
    ):
        assert "Harbor" in response
        assert "the customer asks for rain" in response
    assert ToolInstance.objects.exists()


# --- what else must hold


def test_an_unknown_instance_is_not_found(client: Client, developer: User) -> None:
    assert client.get("/tools/instances/999/").status_code == 404
    assert client.get("/tools/templates/999/instances/new/").status_code == 404


def test_the_page_takes_as_many_queries_for_many_users_as_for_one(
    client: Client, developer: User, keyed: ToolInstance
) -> None:
    def queries() -> int:
        with CaptureQueriesContext(connection) as captured:
            client.get(address(keyed))
        return len(captured)

    allow_tool(make_agent(), keyed.tool)
    queries()
    few = queries()
    for _number in range(5):
        agent = make_agent()
        allow_tool(agent, keyed.tool)
        make_guideline(agent, tools=[keyed.tool])
        make_instance(keyed.version, config={"api_key": "k"})
    assert queries() == few


def test_a_configuration_changed_by_others_is_shown_as_it_is(
    client: Client, developer: User, keyed: ToolInstance
) -> None:
    configure(keyed, config={"city": None, "tags": ["a,b", "c"]}, by="eve")
    html = page(client.get(address(keyed)))
    assert "a,b c</textarea>" in html
    built(keyed.environment)
