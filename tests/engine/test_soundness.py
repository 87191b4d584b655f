"""What is wrong with an agent as it was written is said with its place, in words, and with the remedy."""

from dataclasses import replace
from typing import Any

import pytest

from engine.errors import SpecError
from engine.soundness import check, problems
from engine.spec import Agent, CannedResponse, RelationKind, Relationship, Term
from tests.engine.agents import agent, guideline, tool

REFUND = guideline("refund", "the customer wants a refund", "explain the policy")
EXCEPTION = guideline("exception", "the customer is a member", "refund at once")
LATE = guideline("late", "the parcel is late", "apologise")


def related(kind: RelationKind, source: str, *targets: str) -> Relationship:
    return Relationship(uid=f"{source}-{kind}", kind=kind, source=source, targets=targets)


def shop(*relationships: Relationship, **options: Any) -> Agent:
    return agent(REFUND, EXCEPTION, LATE, relationships=relationships, **options)


def only(spec: Agent) -> tuple[str, str]:
    """Place and message of the one problem that there is."""
    (problem,) = problems(spec)
    return problem.place, problem.message


def test_a_sound_agent_has_no_problem() -> None:
    spec = agent(
        replace(REFUND, tools=("look",), reevaluate_after=("look",), canned_responses=("r",)),
        EXCEPTION,
        LATE,
        tools=[tool("look"), tool("search")],
        overlaps=(("look", "search"),),
        canned_responses=(CannedResponse(uid="r", text="Hello"),),
        terms=(Term(uid="t", name="parcel", description="what we send"),),
        relationships=(
            related(RelationKind.HAS_PRIORITY_OVER, "exception", "refund"),
            related(RelationKind.DEPENDS_ON_ANY, "late", "refund", "exception"),
            related(RelationKind.ENTAILS, "exception", "late"),
        ),
    )
    assert problems(spec) == ()
    check(spec)


@pytest.mark.parametrize("field", ["tools", "reevaluate_after"])
def test_an_unknown_tool_is_named_with_those_there_are(field: str) -> None:
    spec = agent(replace(REFUND, **{field: ("lok",)}), tools=[tool("look"), tool("search")])
    place, message = only(spec)
    assert place == f"guidelines.refund.{field}"
    assert "‘the customer wants a refund’" in message
    assert "'lok'" in message
    assert "look, search" in message


def test_an_unknown_canned_response_is_a_problem_of_its_guideline() -> None:
    place, message = only(agent(replace(REFUND, canned_responses=("gone",))))
    assert place == "guidelines.refund.canned_responses"
    assert "canned response 'gone'" in message


def test_a_guideline_may_not_relate_to_itself() -> None:
    place, message = only(shop(related(RelationKind.ENTAILS, "refund", "late", "refund")))
    assert place == "relationships.refund-entails.targets"
    assert "cannot relate to itself" in message


def test_an_unknown_guideline_on_either_side_is_a_problem_of_that_side() -> None:
    place, message = only(shop(related(RelationKind.ENTAILS, "gone", "late")))
    assert place == "relationships.gone-entails.source"
    assert "'gone'" in message
    place, message = only(shop(related(RelationKind.ENTAILS, "late", "refund", "gone")))
    assert place == "relationships.late-entails.targets"
    assert "no guideline 'gone'" in message


def test_a_relationship_without_another_side_and_a_choice_of_one_are_incomplete() -> None:
    assert "Choose at least one" in only(shop(related(RelationKind.ENTAILS, "late")))[1]
    one = related(RelationKind.DISAMBIGUATES, "late", "refund")
    assert "what else the customer may mean" in only(shop(one))[1]


def test_priority_in_a_circle_is_told_as_one_problem_in_words() -> None:
    spec = shop(
        related(RelationKind.HAS_PRIORITY_OVER, "refund", "exception"),
        related(RelationKind.HAS_PRIORITY_OVER, "exception", "late"),
        related(RelationKind.HAS_PRIORITY_OVER, "late", "refund"),
    )
    place, message = only(spec)
    assert place == "relationships.refund-has_priority_over.targets"
    assert (
        "‘the customer wants a refund’ has priority over ‘the customer is a member’; "
        "‘the customer is a member’ has priority over ‘the parcel is late’; "
        "‘the parcel is late’ has priority over ‘the customer wants a refund’" in message
    )
    assert "Take one of them out" in message


@pytest.mark.parametrize("kind", [RelationKind.DEPENDS_ON_ALL, RelationKind.DEPENDS_ON_ANY])
def test_dependency_in_a_circle_is_refused(kind: RelationKind) -> None:
    spec = shop(related(kind, "refund", "exception"), related(kind, "exception", "refund"))
    assert "applies only together with" in only(spec)[1]


def test_guidelines_that_bring_one_another_along_are_no_problem() -> None:
    one = related(RelationKind.ENTAILS, "refund", "late")
    assert problems(shop(one, related(RelationKind.ENTAILS, "late", "refund"))) == ()


@pytest.mark.parametrize(
    "other",
    [
        related(RelationKind.DEPENDS_ON_ALL, "refund", "exception"),  # needs what drops it
        related(RelationKind.DEPENDS_ON_ANY, "exception", "refund"),  # drops what it needs
        related(RelationKind.ENTAILS, "exception", "refund"),  # drops what it brings
        related(RelationKind.ENTAILS, "refund", "exception"),  # is dropped by what it brings
    ],
)
def test_what_drops_a_guideline_may_not_stand_or_fall_with_it(other: Relationship) -> None:
    over = related(RelationKind.HAS_PRIORITY_OVER, "exception", "refund")
    message = only(shop(over, other))[1]
    assert "‘the customer is a member’ has priority over ‘the customer wants a refund’" in message


def test_a_contradiction_over_several_steps_is_found() -> None:
    spec = shop(
        related(RelationKind.HAS_PRIORITY_OVER, "exception", "refund"),
        related(RelationKind.ENTAILS, "refund", "late"),
        related(RelationKind.DEPENDS_ON_ALL, "exception", "late"),
    )
    message = only(spec)[1]
    assert "‘the customer wants a refund’ brings along ‘the parcel is late’" in message
    assert "‘the customer is a member’ applies only together with ‘the parcel is late’" in message


def test_alternatives_whose_numbers_contradict_a_priority_are_refused() -> None:
    both = (
        related(RelationKind.HAS_PRIORITY_OVER, "exception", "refund"),
        related(RelationKind.ALTERNATIVE_TO, "exception", "refund"),
    )
    higher = replace(REFUND, priority=5)
    message = only(agent(higher, EXCEPTION, relationships=both))[1]
    assert "is the alternative to ‘the customer is a member’ with the higher priority" in message
    assert problems(agent(REFUND, EXCEPTION, relationships=both)) == ()


@pytest.mark.parametrize(
    "tie",
    [
        related(RelationKind.HAS_PRIORITY_OVER, "late", "refund"),
        related(RelationKind.HAS_PRIORITY_OVER, "refund", "late"),
        related(RelationKind.DEPENDS_ON_ALL, "late", "refund"),
        related(RelationKind.DEPENDS_ON_ALL, "refund", "late"),
        related(RelationKind.ENTAILS, "late", "refund"),
    ],
)
def test_what_asks_between_guidelines_may_not_decide_about_them_otherwise(
    tie: Relationship,
) -> None:
    asks = related(RelationKind.DISAMBIGUATES, "late", "refund", "exception")
    place, message = only(shop(asks, tie))
    assert place == f"relationships.{tie.uid}.targets"
    assert "‘the parcel is late’ asks whether the customer means" in message


def test_a_guideline_may_bring_along_the_question_about_itself() -> None:
    asks = related(RelationKind.DISAMBIGUATES, "late", "refund", "exception")
    assert problems(shop(asks, related(RelationKind.ENTAILS, "refund", "late"))) == ()


def test_a_group_of_overlapping_tools_needs_two_known_ones() -> None:
    spec = agent(tools=[tool("look"), tool("search")], overlaps=(("look", "search"), ("look",)))
    assert only(spec)[0] == "overlaps.1.tools"
    spec = agent(tools=[tool("look"), tool("search")], overlaps=(("look", "look"),))
    assert "needs two tools" in only(spec)[1]
    spec = agent(tools=[tool("look")], overlaps=(("look", "gone"),))
    place, message = only(spec)
    assert place == "overlaps.0.tools"
    assert "'gone'" in message


def test_uids_and_names_are_unique() -> None:
    assert only(agent(REFUND, replace(LATE, uid="refund")))[0] == "guidelines.refund.uid"
    terms = (
        Term(uid="1", name="Parcel", description="a box"),
        Term(uid="2", name="parcel ", description="a bag"),
    )
    assert only(agent(terms=terms))[0] == "terms.parcel.name"
    assert only(agent(tools=[tool("t"), replace(tool("t"), uid="u")]))[0] == "tools.t.name"


def test_the_order_of_relationships_changes_no_problem() -> None:
    given = (
        related(RelationKind.HAS_PRIORITY_OVER, "refund", "exception", "late"),
        related(RelationKind.HAS_PRIORITY_OVER, "exception", "refund"),
        related(RelationKind.DEPENDS_ON_ALL, "refund", "late"),
    )
    assert set(problems(shop(*given))) == set(problems(shop(*reversed(given))))


def test_a_circle_among_a_thousand_guidelines_is_found_at_once() -> None:
    guidelines = [guideline(f"g{n}", f"c{n}") for n in range(1000)]
    chain = [
        related(RelationKind.HAS_PRIORITY_OVER, f"g{n}", f"g{(n + 1) % 1000}") for n in range(1000)
    ]
    assert problems(agent(*guidelines, relationships=tuple(chain[:-1]))) == ()
    assert len(problems(agent(*guidelines, relationships=tuple(chain)))) == 1


def test_check_raises_the_first_problem_with_its_place() -> None:
    with pytest.raises(SpecError, match="'gone'") as raised:
        check(agent(replace(REFUND, tools=("gone",))))
    assert raised.value.field == "guidelines.refund.tools"
