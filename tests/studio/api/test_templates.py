"""`/tool-templates`: uploaded, listed, compared, downloaded, renamed and deleted."""

import io
import zipfile
from collections.abc import Callable
from typing import Any

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile

from engine.tools.package import LARGEST_ARCHIVE, read_archive
from studio.models import ToolTemplate, ToolTemplateVersion
from tests.studio.api.calling import Caller, is_problem
from tests.studio.tool_packages import (
    make_instance,
    make_version,
    package_files,
    package_zip,
    workflow_zip,
)

pytestmark = pytest.mark.django_db

USER = 'api_key: str = Field(description="Of the service")\ncity: Optional[str] = None'


def send(caller: Caller, data: bytes, filename: str = "weather.zip", **fields: Any) -> Any:
    file = SimpleUploadedFile(filename, data, "application/zip")
    return caller.client.post(
        "/api/v1/tool-templates", {"file": file, **fields}, headers=caller.headers
    )


def test_a_zip_is_uploaded_and_answered_with_all_that_was_read(admin: Caller) -> None:
    response = send(
        admin,
        package_zip(
            user=USER,
            tool='query: str = Field(description="What")\nunit: Literal["C", "F"] = "C"',
            requirements="pydantic>=2\nrequests  # for the service\n",
        ),
        name="Weather",
    )
    assert response.status_code == 201, response.content
    answer = response.json()
    assert (answer["name"], answer["version"], answer["scope"]) == ("Weather", 1, "")
    assert (answer["description"], answer["output_key"]) == ("Looks something up.", "tool_output")
    assert answer["requirements"] == ["pydantic>=2", "requests"]
    key, city = answer["user_parameters"]
    assert key == {
        "name": "api_key",
        "type": "str",
        "required": True,
        "required_by_pydantic": True,
        "description": "Of the service",
        "choices": [],
        "default": None,
        "has_default": False,
        "secret": True,
        "schema": {"type": "string"},
    }
    assert (city["required"], city["has_default"]) == (False, True)
    query, unit = answer["tool_parameters"]
    assert (query["name"], query["required"]) == ("query", True)
    assert (unit["choices"], unit["default"], unit["required"]) == (["C", "F"], "C", False)
    assert [issue["rule"] for issue in answer["issues"]] == ["T-W08"]
    assert (answer["unchanged"], answer["others"], answer["refused"]) == (False, [], [])
    assert (answer["created_by"], answer["instances"]) == ("admin", 0)
    assert admin.get(f"/tool-templates/{answer['id']}").json() == {
        name: value
        for name, value in answer.items()
        if name not in {"unchanged", "others", "refused"}
    }


def test_the_same_name_adds_a_version_and_the_same_content_none(admin: Caller) -> None:
    first = send(admin, package_zip()).json()
    second = send(admin, package_zip(description="Better.")).json()
    again = send(admin, package_zip(description="Better.")).json()
    assert [answer["version"] for answer in (first, second, again)] == [1, 2, 2]
    assert [answer["unchanged"] for answer in (first, second, again)] == [False, False, True]
    problem = is_problem(send(admin, package_zip(), new="true"), 422)
    assert [issue["rule"] for issue in problem["issues"]] == ["N-002"]


def test_what_is_wrong_is_answered_rule_by_rule_with_path_and_line(admin: Caller) -> None:
    files = package_files() | {"tool.py": b'"""T"""\nclass UserParameters(:\n'}
    del files["requirements.txt"]
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w") as archive:
        for path, content in files.items():
            archive.writestr(path, content)
    problem = is_problem(send(admin, data.getvalue()), 422)
    issues = {issue["rule"]: issue for issue in problem["issues"]}
    assert set(issues) == {"T-003", "T-004"}
    assert issues["T-004"]["severity"] == "error"
    assert (issues["T-004"]["path"], issues["T-004"]["line"]) == ("tool.py", 2)
    assert issues["T-004"]["message"] in problem["detail"]
    assert not ToolTemplate.objects.exists()


@pytest.mark.parametrize(
    ("data", "rule"), [(b"", "Z-001"), (b"no zip", "Z-001"), (b"PK\x03\x04" + b"x" * 99, "Z-001")]
)
def test_what_is_no_zip_is_refused(admin: Caller, data: bytes, rule: str) -> None:
    problem = is_problem(send(admin, data), 422)
    assert [issue["rule"] for issue in problem["issues"]] == [rule]


def test_a_file_that_is_too_large_is_refused_in_words(admin: Caller) -> None:
    problem = is_problem(send(admin, b"x" * (LARGEST_ARCHIVE + 5_000_000)), 422)
    assert [issue["rule"] for issue in problem["issues"]] == ["Z-007"]
    assert "MB" in problem["detail"]


def test_a_request_without_a_file_says_what_is_missing(admin: Caller) -> None:
    response = admin.client.post(
        "/api/v1/tool-templates", {"name": "Weather"}, headers=admin.headers
    )
    problem = is_problem(response, 422)
    assert [error["field"] for error in problem["errors"]] == ["file"]
    is_problem(admin.post("/tool-templates", {"file": "x"}), 422)


def test_each_tool_of_a_workflow_is_answered_for(admin: Caller) -> None:
    bad = {"tool.py": b"x = (", "requirements.txt": b""}
    data = workflow_zip("Travel", {"Weather": package_files(), "Maps": package_files(), "Bad": bad})
    response = send(admin, data)
    assert response.status_code == 201
    answer = response.json()
    names = [answer["name"], *(other["name"] for other in answer["others"])]
    assert sorted(names) == ["Maps", "Weather"]
    assert answer["scope"] == "Travel"
    (refused,) = answer["refused"]
    assert refused["name"] == "Bad"
    assert "T-004" in {issue["rule"] for issue in refused["issues"]}
    problem = is_problem(send(admin, workflow_zip("Travel", {"Bad": bad, "Worse": bad})), 422)
    assert [each["name"] for each in problem["refused"]] == ["Bad", "Worse"]


def test_templates_are_listed_with_a_constant_number_of_queries(
    admin: Caller, django_assert_num_queries: Any
) -> None:
    for name in ("Weather", "Maps", "Stars"):
        make_version(name)
    make_instance(make_version("Maps", description="Better."))
    with django_assert_num_queries(7):  # token, its use, roles; rows, count; versions, instances
        listed = admin.get("/tool-templates").json()
    shown = [(item["name"], item["version"], item["instances"]) for item in listed["items"]]
    assert shown == [("Maps", 2, 1), ("Stars", 1, 0), ("Weather", 1, 0)]
    assert listed["count"] == 3
    assert [i["name"] for i in admin.get("/tool-templates?q=STAR").json()["items"]] == ["Stars"]
    assert admin.get("/tool-templates?scope=Travel").json()["count"] == 0
    assert len(admin.get("/tool-templates?limit=2&offset=2").json()["items"]) == 1


def test_versions_are_read_one_by_one(admin: Caller) -> None:
    template = make_version("Weather").template
    make_version("Weather", description="Better.")
    path = f"/tool-templates/{template.pk}/versions"
    listed = admin.get(path).json()["items"]
    assert [(v["version"], v["description"]) for v in listed] == [
        (2, "Better."),
        (1, "Looks something up."),
    ]
    assert admin.get(f"{path}/1").json() == listed[1]
    is_problem(admin.get(f"{path}/3"), 404)
    is_problem(admin.get(f"{path}/99999999999999999999"), 404)
    is_problem(admin.get("/tool-templates/99999999999999999999"), 404)


def test_what_differs_between_two_versions_is_told_and_what_of_it_breaks(admin: Caller) -> None:
    template = make_version("Weather", user="city: Optional[str] = None").template
    make_version("Weather", user=USER, tool="query: int")
    path = f"/tool-templates/{template.pk}/changes"
    answer = admin.get(f"{path}?from=1&to=2").json()
    assert (answer["from_version"], answer["to_version"], answer["breaking"]) == (1, 2, True)
    changes = {change["name"]: change for change in answer["changes"]}
    assert changes["api_key"]["kind"] == "added"
    assert changes["query"]["group"] == "tool"
    assert "no longer accepts text" in changes["query"]["because"]
    assert admin.get(f"{path}?from=1&to=1").json()["changes"] == []
    is_problem(admin.get(f"{path}?from=1&to=9"), 404)
    is_problem(admin.get(f"{path}?from=1"), 422)


def test_versions_are_downloaded_as_zips_that_can_be_uploaded_again(admin: Caller) -> None:
    first = make_version("Weather")
    make_version("Weather", description="Better.")
    path = f"/tool-templates/{first.template_id}/download"
    response = admin.get(path)
    assert response.headers["content-type"] == "application/zip"
    name = f"{first.template.slug}.zip"
    assert response.headers["content-disposition"] == f'attachment; filename="{name}"'
    again = send(admin, response.content, name).json()
    assert (again["version"], again["unchanged"]) == (2, True)
    older = admin.get(f"{path}?version=1").content
    assert read_archive(older).packages[0].files == package_files()
    is_problem(admin.get(f"{path}?version=7"), 404)
    is_problem(admin.get(f"{path}?version=0"), 404)


def test_several_are_exported_as_a_workflow(admin: Caller) -> None:
    pks = [make_version(name).template_id for name in ("Weather", "Maps")]
    response = admin.get(f"/tool-templates/export?name=Travel&template={pks[0]}&template={pks[1]}")
    archive = read_archive(response.content)
    assert archive.workflow == "Travel"
    assert sorted(package.name for package in archive.packages) == ["Maps", "Weather"]
    is_problem(admin.get("/tool-templates/export"), 422)
    is_problem(admin.get("/tool-templates/export?template=12345"), 404)


def test_the_starter_can_be_uploaded(admin: Caller) -> None:
    response = send(admin, admin.get("/tool-templates/starter").content, "starter.zip")
    assert response.status_code == 201
    assert response.json()["issues"] == []


def test_a_template_is_renamed(admin: Caller) -> None:
    template = make_version("Weather").template
    path = f"/tool-templates/{template.pk}"
    assert admin.patch(path, {"name": "Forecast"}).json()["name"] == "Forecast"
    make_version("Maps")
    for name in ("maps", "a_b", "a\n", ""):
        problem = is_problem(admin.patch(path, {"name": name}), 422)
        assert [error["field"] for error in problem["errors"]] == ["name"]


def test_a_template_is_deleted_unless_it_is_in_use(admin: Caller) -> None:
    version = make_version("Weather")
    make_instance(version, name="weather_vienna")
    path = f"/tool-templates/{version.template_id}"
    problem = is_problem(admin.delete(path), 409)
    assert problem["instances"] == ["weather_vienna"]
    assert "weather_vienna" in problem["detail"]
    free = make_version("Maps").template_id
    assert admin.delete(f"/tool-templates/{free}").status_code == 204
    is_problem(admin.delete(f"/tool-templates/{free}"), 404)
    assert ToolTemplateVersion.objects.count() == 1


def test_an_author_reads_and_changes_nothing(caller_as: Callable[..., Caller]) -> None:
    template = make_version("Weather").template
    author = caller_as("author")
    assert author.get(f"/tool-templates/{template.pk}").status_code == 200
    is_problem(send(author, package_zip(), name="Other"), 403)
    is_problem(author.delete(f"/tool-templates/{template.pk}"), 403)
    is_problem(send(caller_as(), package_zip()), 404)
    assert ToolTemplate.objects.count() == 1
