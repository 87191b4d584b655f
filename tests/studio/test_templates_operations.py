"""Uploading tool templates: what is taken, as which version of what, and what is refused."""

from typing import Any

import pytest

from engine.tools.package import read_archive, starter, write_archive
from studio.models import ToolTemplate, ToolTemplateVersion
from studio.operations.templates import (
    NameRefusedError,
    TemplateInUseError,
    Uploaded,
    UploadRefusedError,
    delete_template,
    export_workflow,
    newest_version,
    package_of,
    rename_template,
    report_of,
    upload,
)
from tests.studio.tool_packages import (
    both,
    make_instance,
    make_version,
    package_files,
    package_zip,
    workflow_zip,
)

pytestmark = pytest.mark.django_db


def send(data: bytes, *, filename: str = "weather_report.zip", **more: Any) -> Uploaded:
    return upload(data, filename=filename, by="dana", **more)


def rules_of(error: pytest.ExceptionInfo[UploadRefusedError]) -> list[str]:
    return [issue.rule for issue in error.value.issues]


# --- What is taken


def test_an_upload_becomes_the_first_version_of_a_new_template() -> None:
    (version,) = send(package_zip(), name="Weather").versions
    template = version.template
    assert (template.name, template.scope, template.created_by) == ("Weather", "", "dana")
    assert template.slug.startswith("weather_")
    assert (version.number, version.uploaded_by) == (1, "dana")
    report = report_of(version)
    assert (report.name, report.description) == ("Weather", "Looks something up.")
    assert [field.name for field in report.tool_parameters] == ["query"]
    assert package_of(version).files == package_files()


def test_without_a_name_the_file_names_it() -> None:
    (version,) = send(package_zip()).versions
    assert version.template.name == "weather report"


def test_the_starter_is_taken_without_an_issue() -> None:
    (version,) = send(starter(), name="Mine").versions
    assert report_of(version).issues == ()


def test_warnings_are_kept_with_the_version() -> None:
    (version,) = send(package_zip(requirements=""), name="Weather").versions
    assert [issue.rule for issue in report_of(version).warnings] == ["T-W03"]


def test_another_upload_under_the_name_is_its_next_version_however_that_is_written() -> None:
    first = make_version("Weather")
    (second,) = send(package_zip(description="Better."), name="wEATHER").versions
    assert second.template == first.template
    assert second.number == 2
    assert ToolTemplate.objects.get().name == "Weather"
    assert newest_version(first.template) == second
    assert report_of(first).description == "Looks something up."


def test_the_same_files_again_add_no_version_however_they_are_packed() -> None:
    first = make_version("Weather")
    nested = write_archive({f"somewhere/{path}": text for path, text in package_files().items()})
    again = send(nested, name="Weather")
    assert again.versions == again.unchanged == (first,)
    assert ToolTemplateVersion.objects.count() == 1


def test_going_back_to_an_earlier_version_is_a_new_one() -> None:
    make_version("Weather")
    make_version("Weather", description="Better.")
    back = send(package_zip(), name="Weather")
    assert (back.versions[0].number, back.unchanged) == (3, ())


def test_a_package_keeps_files_that_look_like_something_else() -> None:
    files = package_files(**{"examples/tool.py": "print(1)", "workflow_template.json": "{}"})
    archive = write_archive({path: text for path, text in files.items() if "json" not in path})
    (version,) = send(archive, name="Weather").versions
    assert "examples/tool.py" in package_of(version).files
    version.archive = write_archive(files)
    assert package_of(version).files == files


# --- What is refused


def test_nothing_is_stored_of_what_has_an_error_and_all_issues_are_said() -> None:
    data = write_archive({"tool.py": b"print('hello')\n"})
    with pytest.raises(UploadRefusedError) as error:
        send(data, name="Weather")
    assert {"T-003", "T-005", "T-006", "T-007", "T-W07"} <= set(rules_of(error))
    assert [report.name for report in error.value.reports] == ["Weather"]
    assert not ToolTemplate.objects.exists()


def test_what_is_no_zip_is_refused_with_the_rule() -> None:
    with pytest.raises(UploadRefusedError) as error:
        send(b"hello")
    assert rules_of(error) == ["Z-001"]
    assert error.value.reports == ()


@pytest.mark.parametrize("name", ["we_ather", "Wetter\n", "   ", "Wéather", "a" * 81, "a\x00b"])
def test_a_name_outside_the_rule_is_refused(name: str) -> None:
    with pytest.raises(UploadRefusedError) as error:
        send(package_zip(), name=name)
    assert rules_of(error) == ["N-001"]
    assert not ToolTemplate.objects.exists()


def test_a_new_template_is_refused_under_a_name_that_is_taken() -> None:
    make_version("Weather")
    with pytest.raises(UploadRefusedError, match="'weather' already") as error:
        send(package_zip(description="Other."), name="weather", new=True)
    assert rules_of(error) == ["N-002"]
    assert ToolTemplateVersion.objects.count() == 1


def test_the_same_name_in_another_scope_is_another_template() -> None:
    make_version("Weather")
    (version,) = send(package_zip(), name="Weather", scope="Travel", new=True).versions
    assert (version.template.scope, version.number) == ("Travel", 1)


def test_a_scope_is_one_line_that_can_be_stored() -> None:
    (version,) = send(
        package_zip(), name="Weather", scope=" Tra\x00vel\n desk " + "x" * 99
    ).versions
    assert version.template.scope == f"Tra vel desk {'x' * 67}"


# --- Workflow templates


def test_the_tools_of_a_workflow_are_taken_each_for_itself_in_its_scope() -> None:
    good, bad = package_files(), {"tool.py": b"x = (", "requirements.txt": b""}
    data = workflow_zip("Travel Desk", {"Weather": good, "Broken": bad, "Maps": package_files()})
    uploaded = send(data, filename="travel.zip")
    taken = [(v.template.name, v.template.scope, v.number) for v in uploaded.versions]
    assert sorted(taken) == [("Maps", "Travel Desk", 1), ("Weather", "Travel Desk", 1)]
    (refused,) = uploaded.refused
    assert refused.name == "Broken"
    assert [issue.rule for issue in refused.errors] == ["T-004"]


def test_a_workflow_whose_tools_are_all_wrong_is_refused_with_a_report_for_each() -> None:
    bad = {"tool.py": b"x = (", "requirements.txt": b""}
    with pytest.raises(UploadRefusedError) as error:
        send(workflow_zip("Travel", {"One": bad, "Two": bad}))
    assert [report.name for report in error.value.reports] == ["One", "Two"]


def test_of_two_tools_of_one_name_in_a_workflow_one_is_taken() -> None:
    files = {
        f"studio-data/tool_templates/{slug}/{path}": text
        for slug in ("weather_abc123", "weather_xyz789")
        for path, text in package_files(description=slug).items()
    }
    uploaded = send(write_archive({**files, "workflow_template.json": b'{"name": "Travel"}'}))
    assert [version.number for version in uploaded.versions] == [1]
    assert [issue.rule for issue in uploaded.refused[0].errors] == ["N-002"]


def test_what_is_exported_can_be_taken_again() -> None:
    templates = [make_version(name).template for name in ("Weather", "Maps")]
    make_version("Weather", description="Better.")
    data = export_workflow(templates, "Travel")
    archive = read_archive(data)
    assert archive.workflow == "Travel"
    uploaded = send(data)
    assert {v.template.scope for v in uploaded.versions} == {"Travel"}
    described = {v.template.name: report_of(v).description for v in uploaded.versions}
    assert described == {"Weather": "Better.", "Maps": "Looks something up."}


# --- Two at the same moment


@pytest.mark.django_db(transaction=True)
def test_one_new_name_from_several_requests_at_once_is_one_template_with_as_many_versions() -> None:
    calls = [
        lambda n=n: send(package_zip(description=f"Upload {n}."), name="Weather") for n in range(4)
    ]
    answers = both(*calls)
    assert [type(answer) for answer in answers] == [Uploaded] * 4, answers
    assert sorted(answer.versions[0].number for answer in answers) == [1, 2, 3, 4]
    assert ToolTemplate.objects.count() == 1


@pytest.mark.django_db(transaction=True)
def test_of_several_requests_for_one_new_template_all_but_one_are_refused() -> None:
    calls = [
        lambda n=n: send(package_zip(description=f"Upload {n}."), name="Weather", new=True)
        for n in range(4)
    ]
    answers = both(*calls)
    refused = [answer for answer in answers if isinstance(answer, UploadRefusedError)]
    assert [issue.rule for each in refused for issue in each.issues] == ["N-002"] * 3
    assert ToolTemplateVersion.objects.count() == 1


# --- Renaming and deleting


def test_a_template_is_renamed_with_its_versions() -> None:
    template = make_version("Weather").template
    rename_template(template, "Forecast")
    again = make_version("Forecast", description="Better.")
    assert (again.template, again.number) == (template, 2)
    assert package_of(again).name == "Forecast"


@pytest.mark.parametrize(
    ("name", "rule"),
    [("", "N-001"), ("a_b", "N-001"), ("a\n", "N-001"), ("b" * 81, "N-001"), ("MAPS", "N-002")],
)
def test_a_template_keeps_its_name_where_the_new_one_cannot_be(name: str, rule: str) -> None:
    template = make_version("Weather").template
    make_version("Maps")
    with pytest.raises(NameRefusedError) as error:
        rename_template(template, name)
    assert error.value.issue.rule == rule
    template.refresh_from_db()
    assert template.name == "Weather"


def test_a_template_may_change_the_case_of_its_own_name() -> None:
    template = make_version("Weather").template
    assert rename_template(template, "WEATHER").name == "WEATHER"


def test_a_template_is_deleted_with_its_versions() -> None:
    template = make_version("Weather").template
    delete_template(template)
    assert not ToolTemplateVersion.objects.exists()


def test_a_template_of_which_instances_are_made_is_not_deleted() -> None:
    version = make_version("Weather")
    instances = [make_instance(version), make_instance(version)]
    with pytest.raises(TemplateInUseError) as error:
        delete_template(version.template)
    assert set(error.value.instances) == set(instances)
    assert ToolTemplateVersion.objects.filter(pk=version.pk).exists()
