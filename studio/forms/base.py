"""What forms of rows share: every constraint of the database is checked before it can refuse, and says its sentence."""

from typing import Any, TypeVar

from django import forms
from django.core.exceptions import NON_FIELD_ERRORS, ValidationError
from django.db.models import Model, UniqueConstraint

Row = TypeVar("Row", bound=Model)


class RowForm(forms.ModelForm[Row]):
    """A ModelForm that also checks constraints over fields that it leaves out.

    Django's own skips those, and the database then answers with an error that nobody can read. A constraint over one
    field of the form is reported at that field.
    """

    def _post_clean(self) -> None:
        super()._post_clean()  # type: ignore[misc]
        wrong = {name for name in self.errors if name != NON_FIELD_ERRORS}
        for model, constraints in self.instance.get_constraints():
            for constraint in constraints:
                try:
                    constraint.validate(model, self.instance, exclude=wrong)
                except ValidationError as violation:
                    self._report(self._place_of(constraint), violation)

    def _place_of(self, constraint: Any) -> str | None:
        if isinstance(constraint, UniqueConstraint) and len(constraint.fields) == 1:
            name = constraint.fields[0]
            return name if name in self.fields else None
        return None

    def _report(self, place: str | None, violation: ValidationError) -> None:
        """Say it once, at its place: Django may have said it of the whole form already."""
        said = self.errors.get(NON_FIELD_ERRORS)
        if said is not None:
            left: list[Any] = [
                error for error in said.as_data() if error.messages != violation.messages
            ]
            if left:
                said.data = left
            else:
                del self.errors[NON_FIELD_ERRORS]
        self.add_error(place, violation)
