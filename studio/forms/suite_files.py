"""A suite's document, checked as the forms of suites and scenarios check what people write."""

from collections.abc import Mapping

from django import forms
from django.utils.translation import gettext_lazy

from engine.canonical import JsonObject
from studio.forms.scenarios import ScenarioForm
from studio.forms.suites import SuiteForm
from studio.models import Agent, Scenario, Suite
from studio.operations.document_report import Report
from studio.operations.suite_documents import import_suite

MAX_BYTES = 20 * 1024 * 1024


def read_suite(
    text: str, agent: Agent, *, dry_run: bool = False, by: str = ""
) -> tuple[Report, Suite | None]:
    """As `import_suite`; raises DocumentError."""
    return import_suite(
        text,
        agent,
        check_suite=_suite_errors,
        check_scenario=_scenario_errors,
        dry_run=dry_run,
        by=by,
    )


def _suite_errors(agent: Agent, values: JsonObject, suite: Suite | None) -> Mapping[str, list[str]]:
    own = Suite.objects.get(pk=suite.pk) if suite is not None else None
    return _named(SuiteForm.from_json(agent, values, instance=own))


def _scenario_errors(suite: Suite, values: JsonObject) -> Mapping[str, list[str]]:
    told = {name: value for name, value in values.items() if name != "results"}
    # The customer may be unknown in this studio.
    blank = Scenario(suite=suite, customer_uid=values.get("customer_uid", ""))
    return _named(ScenarioForm.from_json(suite, told, instance=blank))


def _named(form: forms.BaseForm) -> dict[str, list[str]]:
    return {
        "" if name == "__all__" else name: [str(message) for message in messages]
        for name, messages in form.errors.items()
    }


class SuiteFileForm(forms.Form):
    file = forms.FileField(
        label=gettext_lazy("Document"),
        help_text=gettext_lazy("YAML or JSON, as an export writes it."),
        error_messages={"required": gettext_lazy("Choose the file of an exported suite.")},
    )

    def clean_file(self) -> str:
        file = self.cleaned_data["file"]
        if file.size > MAX_BYTES:
            raise forms.ValidationError(
                gettext_lazy("The file is larger than 20 MB; split the suite.")
            )
        try:
            text: str = file.read().decode()
        except UnicodeDecodeError as error:
            raise forms.ValidationError(
                gettext_lazy("The file is not UTF-8 text: choose the document of a suite.")
            ) from error
        return text
