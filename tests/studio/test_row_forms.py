"""What forms of rows promise: a constraint of the database is a sentence, and never an error of the server."""

import pytest

from studio.forms.base import RowForm
from studio.models import Agent, Guideline
from tests.studio.factories import make_agent, make_guideline

pytestmark = pytest.mark.django_db


class NameForm(RowForm[Agent]):
    class Meta:
        model = Agent
        fields = ["name"]


class SlugForm(RowForm[Agent]):
    class Meta:
        model = Agent
        fields = ["slug", "name"]


class ActionForm(RowForm[Guideline]):
    class Meta:
        model = Guideline
        fields = ["condition", "action"]


def test_a_unique_value_that_the_form_leaves_out_is_checked_too() -> None:
    make_agent(slug="depot")
    form = NameForm({"name": "Depot"}, instance=Agent(slug="depot"))
    assert not form.is_valid()
    assert form.errors == {"__all__": ["Another agent has this address already."]}


def test_two_values_that_are_unique_together_are_checked_although_left_out() -> None:
    guideline = make_guideline(uid="twice")
    form = ActionForm({"action": "be kind"}, instance=Guideline(agent=guideline.agent, uid="twice"))
    assert form.errors == {"__all__": ["This agent has a guideline of this uid already."]}


def test_a_unique_value_of_the_form_is_refused_at_its_field_and_said_once() -> None:
    make_agent(slug="depot")
    form = SlugForm({"slug": "depot", "name": "Depot"})
    assert form.errors == {"slug": ["Another agent has this address already."]}


def test_what_concerns_several_fields_is_said_once_of_the_whole() -> None:
    form = ActionForm({"condition": "", "action": ""}, instance=Guideline(agent=make_agent()))
    assert form.errors == {"__all__": ["Write when it applies, what to do, or both."]}


def test_a_field_that_is_wrong_in_itself_is_not_accused_twice() -> None:
    make_agent(slug="depot")
    form = SlugForm({"slug": "not a slug", "name": "x" * 200})
    assert {name: len(errors) for name, errors in form.errors.items()} == {"slug": 1, "name": 1}


def test_a_row_does_not_stand_in_its_own_way() -> None:
    agent = make_agent(slug="depot")
    assert SlugForm({"slug": "depot", "name": "Renamed"}, instance=agent).is_valid()
