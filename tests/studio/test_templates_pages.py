"""Tool templates in pages: uploaded with a report, read with their source, compared, renamed, exported, deleted."""

import io
import re
import zipfile
from collections.abc import Mapping
from html import unescape
from typing import Any

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from engine.tools.package import LARGEST_ARCHIVE, read_archive, starter, write_archive
from studio.models import Tool, ToolEnvironment, ToolInstance, ToolTemplate, ToolTemplateVersion
from studio.operations.templates import upload
from tests.studio.factories import make_agent, make_tool, make_user

pytestmark = pytest.mark.django_db

HTMX = {"HX-Request": "true"}
SOURCE = '''"""Says what the weather is."""

import argparse
import json

from pydantic import BaseModel, Field


class UserParameters(BaseModel):
    api_key: str


class ToolParameters(BaseModel):
    city: str = Field(description="The city to ask about.")


def run_tool(config, args):
    return args.city


OUTPUT_KEY = "tool_output"

if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--user-params", required=True)
    parser.add_argument("--tool-params", required=True)
    given = parser.parse_args()
    config = UserParameters(**json.loads(given.user_params))
    print(OUTPUT_KEY, run_tool(config, ToolParameters(**json.loads(given.tool_params))))
'''


def zipped(source: str = SOURCE, files: Mapping[str, bytes] | None = None) -> bytes:
    more = files or {}
    return write_archive(
        {"tool.py": source.encode(), "requirements.txt": b"pydantic\n", **dict(more)}
    )


def make_template(name: str = "Weather", data: bytes = b"", **more: Any) -> ToolTemplate:
    uploaded = upload(data or zipped(), filename="w.zip", by="rita", name=name, **more)
    return uploaded.versions[0].template


def make_instance(template: ToolTemplate, name: str, state: str = "finished") -> ToolInstance:
    environment, _made = ToolEnvironment.objects.get_or_create(
        key=f"k-{state}", defaults={"requirements": "", "python": "3.11", "state": state}
    )
    tool = make_tool(name=name, kind=Tool.Kind.TEMPLATE)
    return ToolInstance.objects.create(
        template=template, version=template.versions.first(), environment=environment, tool=tool
    )


def signed_in(*roles: str) -> Client:
    client = Client()
    client.force_login(make_user(*roles))
    return client


@pytest.fixture
def client() -> Client:
    return signed_in("developer")


def words(html: str) -> str:
    return re.sub(r"\s+", " ", unescape(re.sub(r"<[^>]+>", " ", html)))


def page(client: Client, address: str, **headers: str) -> str:
    response = client.get(address, headers=headers)
    assert response.status_code == 200
    return response.content.decode()


def send(
    client: Client,
    data: bytes,
    *,
    filename: str = "weather.zip",
    query: str = "",
    headers: Mapping[str, str] | None = None,
    **fields: str,
) -> Any:
    file = SimpleUploadedFile(filename, data, content_type="application/zip")
    address = reverse("tool-upload") + query
    return client.post(address, {"package": file, **fields}, headers=dict(headers or {}))


def at(name: str, template: ToolTemplate, *more: int) -> str:
    return reverse(name, args=[template.pk, *more])


# --- Upload: works


def test_a_good_zip_becomes_a_template_whose_page_says_so(client: Client) -> None:
    response = send(client, zipped(), filename="Weather.zip")
    template = ToolTemplate.objects.get()
    assert response.headers["Location"] == at("tool-template", template)
    assert template.name == "Weather"
    text = words(page(client, at("tool-template", template)))
    assert "“Weather” is here. Make an instance of it" in text
    assert "Says what the weather is." in text


def test_the_starter_that_the_page_offers_is_taken_as_it_is(client: Client) -> None:
    response = client.get(reverse("tool-starter"))
    assert response.headers["Content-Type"] == "application/zip"
    assert response.headers["Content-Disposition"] == 'attachment; filename="starter.zip"'
    assert response.headers["X-Content-Type-Options"] == "nosniff"
    assert response.content == starter()
    assert send(client, response.content, filename="starter.zip").status_code == 302
    assert ToolTemplate.objects.count() == 1


def test_the_same_name_makes_the_next_version_and_the_page_said_so_before(client: Client) -> None:
    template = make_template()
    address = f"{reverse('tool-upload')}?name=weather"
    assert "“Weather” is there already: this becomes its next version." in words(
        page(client, address, **HTMX)
    )
    assert "is there already" not in page(client, f"{reverse('tool-upload')}?name=other", **HTMX)
    changed = SOURCE.replace("the weather is", "the weather was")
    send(client, zipped(changed), name="weather")
    assert [version.number for version in template.versions.all()] == [2, 1]
    assert "It is version 2 of “Weather” now." in words(page(client, at("tool-template", template)))


def test_the_same_files_again_add_no_version(client: Client) -> None:
    template = make_template()
    send(client, zipped(), name="Weather")
    assert template.versions.count() == 1
    text = words(page(client, at("tool-template", template)))
    assert "as version 1 has it already: nothing was added" in text


def test_a_new_version_is_uploaded_from_the_page_of_its_template(client: Client) -> None:
    template = make_template("Weather", scope="Travel")
    query = f"?template={template.pk}"
    assert "A new version of “Weather”" in page(client, reverse("tool-upload") + query)
    data = zipped(SOURCE + "# more\n")
    send(client, data, filename="something-else.zip", query=query)
    assert ToolTemplate.objects.get() == template
    assert template.versions.count() == 2


def test_a_part_is_sent_on_to_the_page_of_the_template(client: Client) -> None:
    response = send(client, zipped(), headers=HTMX)
    template = ToolTemplate.objects.get()
    assert response.headers["HX-Redirect"] == at("tool-template", template)


def test_of_a_workflow_template_each_tool_is_taken_or_refused_by_itself(client: Client) -> None:
    whole = io.BytesIO()
    with zipfile.ZipFile(whole, "w") as archive:
        archive.writestr("workflow_template.json", '{"name": "Travel desk"}')
        for slug, source in (("weather_ab12cd", SOURCE), ("broken_ab12ce", "def run_tool(:\n")):
            archive.writestr(f"studio-data/tool_templates/{slug}/tool.py", source)
            archive.writestr(f"studio-data/tool_templates/{slug}/requirements.txt", "pydantic\n")
    html = send(client, whole.getvalue(), headers=HTMX).content.decode()
    assert html.lstrip().startswith('<div id="upload"')
    text = words(html)
    assert "1 template is here. 1 was refused." in text
    assert re.search(r"Refused broken .*T-004", text)
    assert re.search(r"Taken weather version 1", text)
    template = ToolTemplate.objects.get()
    assert f'href="{at("tool-template", template)}"' in html


# --- Upload: bad input


MANY_FAULTS = "class UserParameters:\n    x = 1\n\ndef run_tool(a, b): ...\n"


@pytest.mark.parametrize("headers", [{}, HTMX])
def test_a_refused_zip_is_reported_rule_by_rule_with_the_lines_and_nothing_is_lost(
    client: Client, headers: dict[str, str]
) -> None:
    broken = zipped("import json\n\ndef run_tool(config, args:\n    pass\n")
    response = send(client, broken, name="My weather", filename="w.zip", headers=headers)
    html = response.content.decode()
    assert response.status_code == 422
    text = words(html)
    assert "“w.zip” was not taken; nothing is stored." in text
    assert re.search(r"Error Rule T-004 : tool.py is valid Python 3", text)
    assert "tool.py , line 3" in text
    assert "<code>def run_tool(config, args:</code>" in html
    assert 'value="My weather"' in html
    assert html.lstrip().startswith('<div id="upload"' if headers else "<!doctype html>")
    assert not ToolTemplate.objects.exists()


def test_all_errors_and_warnings_are_listed_at_once(client: Client) -> None:
    data = write_archive({"tool.py": MANY_FAULTS.encode()})
    text = words(send(client, data).content.decode())
    for rule in ("T-003", "T-006", "T-W01", "T-W02", "T-W07"):
        assert rule in text, rule
    assert text.index("T-006") < text.index("T-W01")  # what keeps it from being taken first


@pytest.mark.parametrize(
    ("data", "rule"),
    [(b"no zip at all", "Z-001"), (write_archive({"README.md": b"hi"}), "T-002")],
)
def test_what_holds_no_template_is_refused_with_its_rule(
    client: Client, data: bytes, rule: str
) -> None:
    response = send(client, data)
    assert response.status_code == 422
    assert rule in words(response.content.decode())


def test_a_file_that_is_too_large_is_refused_in_words(client: Client) -> None:
    response = send(client, b"P" * (LARGEST_ARCHIVE + 1))
    assert response.status_code == 422
    assert "which is the most. Leave out what the tool does not need" in words(
        response.content.decode()
    )


@pytest.mark.parametrize("name", ["We/ather", "weather\n", "   ", "a" * 81, "<b>x</b>"])
def test_a_name_that_cannot_be_is_refused_and_kept_as_text(client: Client, name: str) -> None:
    response = send(client, zipped(), name=name)
    assert response.status_code == 422
    assert "<b>x</b>" not in response.content.decode()


def test_no_file_or_an_empty_one_is_asked_for(client: Client) -> None:
    response = client.post(reverse("tool-upload"), {"name": "Weather"})
    assert response.status_code == 422
    html = response.content.decode()
    assert "Choose a ZIP file, or drop it here." in html
    assert 'value="Weather"' in html
    assert "The file is empty." in send(client, b"").content.decode()


def test_a_taken_name_is_refused_where_only_a_new_template_is_wanted(client: Client) -> None:
    make_template()
    response = send(client, zipped(SOURCE + "# 2\n"), name="WEATHER", new="on")
    assert response.status_code == 422
    assert "N-002" in words(response.content.decode())
    assert ToolTemplateVersion.objects.count() == 1


@pytest.mark.parametrize("wanted", ["x", "99999", "9" * 30])
def test_a_template_that_is_not_there_gets_no_new_version(client: Client, wanted: str) -> None:
    assert client.get(f"{reverse('tool-upload')}?template={wanted}").status_code == 404


def test_authors_may_not_upload(client: Client) -> None:
    assert send(signed_in("author"), zipped()).status_code == 403
    assert send(signed_in(), zipped()).status_code == 404
    assert not ToolTemplate.objects.exists()


# --- One template


def test_the_page_shows_both_schemas_and_where_the_two_readings_differ(client: Client) -> None:
    source = SOURCE.replace(
        '    city: str = Field(description="The city to ask about.")\n',
        '    city: str = Field(description="The city to ask about.")\n'
        '    unit: Optional[Literal["C", "F"]] = Field(description="Which degrees.")\n'
        '    days: int = Field(default=3, description="How many days.")\n',
    ).replace("import json\n", "import json\nfrom typing import Literal, Optional\n")
    html = page(client, at("tool-template", make_template(data=zipped(source))))
    tables = html.split('<table class="list fields-table">')
    arguments, configuration = words(tables[1]), words(tables[2])
    assert re.search(r"city The city to ask about\. str yes –", arguments)
    unit = arguments.split("unit Which degrees.")[1].split("days")[0]
    assert "Optional by the specification, as its type says; required by pydantic" in unit
    assert "one of C , F" in unit
    assert "specification: no pydantic: yes nothing" in unit
    assert re.search(r"days How many days\. int no 3", arguments)
    assert re.search(r"api_key secret", configuration)


def test_the_source_is_highlighted_by_line_and_other_files_are_named(client: Client) -> None:
    more = {"data/x.bin": b"\x00\x01" * 700, "notes.txt": b"hello\nthere\n", "empty.txt": b""}
    template = make_template(data=zipped(files=more))
    address = at("tool-template", template)
    html = page(client, address)
    assert '<li id="L1"><code><span class="doc">' in html
    assert '<span class="word">class</span> <span class="named">UserParameters</span>' in html
    assert "data/x.bin" in html
    part = page(client, f"{address}?file=notes.txt", **HTMX)
    assert part.lstrip().startswith('<section id="source"')
    assert '<li id="L2"><code>there</code></li>' in part
    assert "1.4 KB, not text" in words(page(client, f"{address}?file=data/x.bin"))
    assert "an empty file" in page(client, f"{address}?file=empty.txt")
    assert "UserParameters" in page(client, f"{address}?file=../../etc/passwd")


def test_of_a_long_file_the_beginning_is_shown_and_says_so(client: Client) -> None:
    text = "".join(f"line {number}\n" for number in range(20_000))
    template = make_template(
        data=zipped(files={"long.txt": text.encode(), "huge.txt": b"a" * 1_000_001})
    )
    html = page(client, f"{at('tool-template', template)}?file=long.txt")
    assert "This is its beginning; all of it is in the download." in html
    assert "<code>line 500</code>" in html
    assert "line 19999" not in html
    assert "too long to show" in page(client, f"{at('tool-template', template)}?file=huge.txt")


def test_markup_and_hidden_characters_of_a_package_stand_as_text(client: Client) -> None:
    source = (
        SOURCE.replace("Says what the weather is.", "<script>alert(1)</script> שלום").replace(
            "# more", ""
        )
        + "# \u202e evil \u2066\nX = '<img src=x onerror=y>'\n"
    )
    more = {"<b>\"x'.txt": b"<i>in</i>"}
    template = make_template(data=zipped(source, more))
    html = page(client, at("tool-template", template))
    assert "<script>alert" not in html
    assert "<img src=x" not in html
    assert "<b>" + '"x' not in html
    assert '<span class="unseen">U+202E</span> evil <span class="unseen">U+2066</span>' in html
    assert '<p class="docstring" dir="auto">&lt;script&gt;alert(1)&lt;/script&gt; שלום</p>' in html


def test_warnings_stand_on_the_page_and_lead_to_their_lines(client: Client) -> None:
    source = SOURCE.replace(', Field(description="The city to ask about.")', "").replace(
        ' = Field(description="The city to ask about.")', ""
    )
    template = make_template(data=zipped(source))
    html = page(client, at("tool-template", template))
    line = source[: source.index("city: str")].count("\n") + 1
    assert "T-W08" in html
    assert f'href="{at("tool-template", template)}?file=tool.py#L{line}"' in html
    assert f'<li id="L{line}">' in html


def test_instances_are_listed_with_their_state_and_version(client: Client) -> None:
    template = make_template()
    make_instance(template, "weather_ready")
    make_instance(template, "weather_broken", "failed")
    make_instance(template, "weather_coming", "running")
    text = words(page(client, at("tool-template", template)))
    assert "weather_broken Build failed version 1" in text
    assert "weather_coming Being built version 1" in text
    assert "weather_ready Ready version 1" in text
    assert "in use by weather_broken , weather_coming , weather_ready" in text


def test_an_older_version_says_so_and_shows_its_own_source(client: Client) -> None:
    template = make_template()
    make_template(data=zipped(SOURCE.replace("the weather is", "the weather was")))
    html = page(client, at("tool-template-version", template, 1))
    assert "This is version 1; the newest is 2." in html
    assert "Says what the weather is." in html
    assert "the weather was" not in html
    assert client.get(at("tool-template-version", template, 3)).status_code == 404


def test_readers_see_a_template_without_what_changes_it() -> None:
    template = make_template()
    html = page(signed_in("qa"), at("tool-template", template))
    assert "Says what the weather is." in html
    for words_of_change in ("Rename", "Delete…", "New instance", "Upload a new version"):
        assert words_of_change not in html
    assert signed_in().get(at("tool-template", template)).status_code == 404


def test_versions_and_instances_take_no_queries_of_their_own(client: Client) -> None:
    template = make_template()
    counts = []
    for number in (2, 6):
        for each in range(number):
            make_template(data=zipped(SOURCE + f"# {number} {each}\n"))
            make_instance(template, f"weather_{number}_{each}")
        with CaptureQueriesContext(connection) as queries:
            page(client, at("tool-template", template))
        counts.append(len(queries))
    assert counts[0] == counts[1] <= 10
    selects = [each["sql"] for each in queries.captured_queries]
    assert sum('"archive"' in sql for sql in selects) == 1


# --- What changed


def test_changes_show_what_breaks_first_and_files_line_by_line(client: Client) -> None:
    template = make_template(data=zipped(files={"old.txt": b"x"}))
    later = SOURCE.replace(
        '    city: str = Field(description="The city to ask about.")\n',
        '    place: str = Field(description="The place.")\n'
        '    days: int = Field(default=3, description="How many days.")\n',
    ).replace("args.city", "args.place")
    make_template(data=zipped(later, {"table.bin": b"\x00"}))
    html = page(client, at("tool-template-changes", template, 1, 2))
    text = words(html)
    assert text.index("New place argument breaking") < text.index("New days argument")
    assert "Gone city argument breaking" in text
    assert "Gone old.txt" in text
    assert "New table.bin" in text
    assert "Not compared line by line: it is not text" in text
    assert '<li class="removed"><del><code>    return args.city</code></del></li>' in html
    assert '<li class="added"><ins><code>    return args.place</code></ins></li>' in html
    listed = words(page(client, at("tool-template", template)))
    assert re.search(r"3 parameters changed \d breaking", listed)


def test_changes_of_a_version_that_is_not_there_are_not_found(client: Client) -> None:
    template = make_template()
    assert client.get(at("tool-template-changes", template, 1, 2)).status_code == 404


# --- Renamed, deleted


def test_a_template_is_renamed(client: Client) -> None:
    template = make_template()
    response = client.post(at("tool-template-name", template), {"name": "Forecast"})
    assert response.headers["Location"] == at("tool-template", template)
    assert "It is called “Forecast” now." in page(client, at("tool-template", template))


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("Fore-cast", "letters a-z, digits and spaces only"),
        ("Forecast\n", "letters a-z, digits and spaces only"),
        ("OTHER", "is named"),
        ("", "required"),
    ],
)
def test_a_name_that_cannot_be_leaves_the_old_one(client: Client, name: str, said: str) -> None:
    template = make_template()
    make_template("Other")
    response = client.post(at("tool-template-name", template), {"name": name})
    html = response.content.decode()
    assert response.status_code == 422
    assert said in words(html)
    assert '<h1 dir="auto">Weather</h1>' in html
    template.refresh_from_db()
    assert template.name == "Weather"


def test_a_template_is_deleted_with_its_versions(client: Client) -> None:
    template = make_template()
    address = at("tool-template-delete", template)
    assert "1 version with its source is deleted for good." in words(page(client, address))
    assert client.post(address).headers["Location"] == reverse("tool-templates")
    assert not ToolTemplateVersion.objects.exists()


def test_a_template_in_use_says_by_whom_and_stays(client: Client) -> None:
    template = make_template()
    make_instance(template, "weather_now")
    address = at("tool-template-delete", template)
    html = page(client, address)
    assert "It is in use: 1 instance is made of it." in words(html)
    assert "weather_now" in html
    assert '<form class="card form"' not in html
    response = client.post(address)
    assert response.status_code == 422
    assert "weather_now" in response.content.decode()
    assert ToolTemplate.objects.exists()


@pytest.mark.parametrize("name", ["tool-template-delete", "tool-template-name"])
def test_only_developers_rename_and_delete(name: str) -> None:
    template = make_template()
    assert signed_in("author").post(at(name, template)).status_code == 403
    assert signed_in().post(at(name, template)).status_code == 404


# --- The list, and files


def test_the_list_shows_each_template_with_its_newest_version(client: Client) -> None:
    template = make_template()
    make_template(data=zipped(SOURCE.replace("OUTPUT_KEY = ", "OTHER = ")))
    make_template("Route", scope="Travel")
    make_instance(template, "weather_now")
    text = words(page(client, reverse("tool-templates")))
    assert re.search(
        r"Weather Says what the weather is\. Version 2 .* 2 versions 1 warning 1 by itself", text
    )
    assert re.search(r"Route .* Version 1 .* 0 Travel", text)


def test_an_empty_list_says_how_to_begin(client: Client) -> None:
    html = page(client, reverse("tool-templates"))
    assert "No tool templates yet" in html
    assert f'href="{reverse("tool-starter")}"' in html
    assert f'href="{reverse("tool-upload")}"' in html
    assert f'href="{reverse("tool-upload")}"' not in page(
        signed_in("qa"), reverse("tool-templates")
    )


def test_the_list_takes_as_many_queries_for_many_as_for_two_and_loads_no_archive(
    client: Client,
) -> None:
    counts = []
    for number in (2, 12):
        for each in range(number):
            make_template(f"Weather {number} {each}")
        with CaptureQueriesContext(connection) as queries:
            page(client, reverse("tool-templates"))
        counts.append(len(queries))
        assert not any('"archive"' in each["sql"] for each in queries.captured_queries)
    assert counts[0] == counts[1] <= 8


def test_a_version_is_downloaded_and_its_file_name_leads_back_to_its_template(
    client: Client,
) -> None:
    template = make_template("Weather desk")
    make_template("Weather desk", zipped(SOURCE + "# 2\n"))
    first = client.get(f"{at('tool-template-download', template)}?version=1")
    newest = client.get(at("tool-template-download", template))
    assert read_archive(first.content).packages[0].files["tool.py"] == SOURCE.encode()
    assert read_archive(newest.content).packages[0].files["tool.py"] == (SOURCE + "# 2\n").encode()
    named = re.search(r'filename="([^"]+)"', newest.headers["Content-Disposition"])
    assert named is not None
    send(client, first.content, filename=named[1])
    assert ToolTemplate.objects.get() == template
    assert template.versions.count() == 3
    assert client.get(f"{at('tool-template-download', template)}?version=9").status_code == 404


def test_chosen_templates_are_exported_as_one_workflow_that_can_be_uploaded(
    client: Client,
) -> None:
    chosen = [make_template("Weather"), make_template("Route")]
    make_template("Other")
    query = "&".join(f"template={template.pk}" for template in chosen)
    response = client.get(f"{reverse('tool-template-export')}?{query}&name=Travel desk")
    archive = read_archive(response.content, filename="x.zip")
    assert archive.workflow == "Travel desk"
    assert sorted(package.name for package in archive.packages) == ["Route", "Weather"]
    assert 'filename="travel-desk.zip"' in response.headers["Content-Disposition"]
    send(client, response.content, filename="travel-desk.zip")
    assert ToolTemplate.objects.filter(scope="Travel desk").count() == 2


@pytest.mark.parametrize("query", ["", "template=x", "template=999999999999999999999"])
def test_without_a_choice_nothing_is_exported(client: Client, query: str) -> None:
    response = client.get(f"{reverse('tool-template-export')}?{query}")
    assert response.headers["Location"] == reverse("tool-templates")


# --- The shed knows uploaded tools


def test_the_shed_tells_the_kind_and_whether_an_uploaded_tool_is_built(client: Client) -> None:
    template = make_template()
    make_tool(name="plain")
    for name, state in (("ready", "finished"), ("coming", "queued"), ("broken", "failed")):
        make_instance(template, name, state)
    html = page(client, reverse("tools"))
    assert f'href="{at("tool-template", template)}"' in html
    rows = {
        name: words(html.split(f'/tools/{name}/"')[1].split("</tr>")[0])
        for name in ("ready", "coming", "broken", "plain")
    }
    assert "Weather uploaded, version 1" in rows["ready"]
    assert rows["ready"].strip().endswith("Ready")
    assert "Waiting to be built" in rows["coming"]
    assert "Build failed" in rows["broken"]
    assert "Python function" in rows["plain"]


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("kind=template", ["broken", "coming", "ready"]),
        ("kind=function", ["plain"]),
        ("kind=nonsense", ["broken", "coming", "plain", "ready"]),
        ("health=ok", ["plain", "ready"]),
        ("health=building", ["coming"]),
        ("health=failed", ["broken"]),
    ],
)
def test_the_shed_filters_by_kind_and_build(client: Client, query: str, found: list[str]) -> None:
    template = make_template()
    make_tool(name="plain")
    for name, state in (("ready", "finished"), ("coming", "queued"), ("broken", "failed")):
        make_instance(template, name, state)
    html = page(client, f"{reverse('tools')}?{query}")
    assert re.findall(r'href="/tools/([^/"]+)/" data-row-link', html) == found


def test_an_agent_sees_that_its_tool_is_not_built(client: Client) -> None:
    agent = make_agent()
    instance = make_instance(make_template(), "weather_now", "failed")
    agent.tools.add(instance.tool)
    assert "Build failed" in page(client, reverse("agent-tools", args=[agent.slug]))
