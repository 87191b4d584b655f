"""Choices named anew in each turn: they narrow what may be chosen, for this turn and nobody else."""

import asyncio
import time
from datetime import date
from typing import Annotated, Any

import pytest

from engine.arguments import check_arguments, choices_of
from engine.choices import MOST_CHOICES, offered
from engine.events import BriefingEvent
from engine.kit import Kit, Models
from engine.spec import Agent, Tool
from engine.state import Limits, TurnState
from engine.testing import (
    Expected,
    ScriptedModel,
    ScriptedTools,
    entries,
    infers,
    matches,
    play,
    replies,
    said,
    scripted_kit,
)
from engine.tools.base import ToolContext
from engine.tools.function import FunctionToolService, ToolFunction, tool
from engine.tools.parameters import ToolParameterOptions
from engine.trail import DecisionState, ToolDecision, ToolInsight
from tests.engine.agents import agent, guideline, parameter, turn_of
from tests.engine.agents import tool as spec_tool


def choosing(*parameters: Any) -> Tool:
    given = parameters or (parameter("shelf", provides_choices=True),)
    return spec_tool("move", *given)


def the_turn(spec: Agent | None = None, **options: Any) -> TurnState:
    return turn_of(spec or agent(), "Move it", **options)


def kit_with(provided: Any, name: str = "move") -> Kit:
    return unread(scripted_kit(ScriptedModel(), ScriptedTools(provided={name: provided})))


def unread(kit: Kit) -> Kit:
    """Nobody waits for what is put on record here."""
    kit.outbox.abandon()
    return kit


async def narrowed(named: Any, *parameters: Any, **limits: Any) -> Tool | str:
    return await offered(the_turn(limits=Limits(**limits)), kit_with(named), choosing(*parameters))


async def the_tool(named: Any, *parameters: Any) -> Tool:
    found = await narrowed(named, *parameters)
    assert isinstance(found, Tool), found
    return found


class TestNarrowing:
    async def test_a_tool_whose_parameters_name_no_choices_is_offered_as_it_is_without_asking(
        self,
    ) -> None:
        def never(_context: ToolContext) -> Any:
            raise AssertionError

        plain = choosing(parameter("shelf"))
        assert await offered(the_turn(), kit_with(never), plain) is plain

    async def test_only_what_was_named_for_this_turn_is_accepted(self) -> None:
        found = await the_tool({"shelf": ["A", "B"]})
        assert choices_of(found.parameters[0].schema) == ("A", "B")
        assert check_arguments(found, {"shelf": "A"}).ready
        (wrong,) = check_arguments(found, {"shelf": "C"}).invalid
        assert wrong.reason == "must be one of A, B"

    async def test_of_a_list_each_item_is_a_choice(self) -> None:
        shelves = parameter("shelf", provides_choices=True)
        shelves = type(shelves)(
            name="shelf",
            schema={"type": "array", "items": {"type": "string"}},
            provides_choices=True,
        )
        found = await the_tool({"shelf": ["A", "B"]}, shelves)
        assert check_arguments(found, {"shelf": ["B", "A"]}).ready
        assert not check_arguments(found, {"shelf": ["B", "X"]}).ready

    @pytest.mark.parametrize(
        "schema",
        [
            {"anyOf": [{"type": "string"}, {"type": "null"}]},
            {"type": ["string", "null"]},
        ],
    )
    async def test_null_stays_possible_where_it_was(self, schema: Any) -> None:
        shelf = type(parameter("x"))(
            name="shelf", schema=schema, required=False, provides_choices=True
        )
        found = await the_tool({"shelf": ["A", None]}, shelf)
        assert check_arguments(found, {"shelf": None}).values == {"shelf": None}
        assert check_arguments(found, {"shelf": "A"}).ready
        assert not check_arguments(found, {"shelf": "B"}).ready

    async def test_the_tool_of_the_agent_itself_is_not_changed(self) -> None:
        original = choosing()
        await offered(the_turn(), kit_with({"shelf": ["A"]}), original)
        assert original.parameters[0].schema == {"type": "string"}

    async def test_what_is_named_twice_is_offered_once(self) -> None:
        found = await the_tool({"shelf": ["A", "B", "A"]})
        assert choices_of(found.parameters[0].schema) == ("A", "B")


class TestWhereItCannotBeOffered:
    async def test_a_service_that_raises_keeps_the_tool_from_running_without_its_own_words(
        self,
    ) -> None:
        def broken(_context: ToolContext) -> Any:
            raise RuntimeError("password=hunter2")

        reason = await narrowed(broken)
        assert reason == "The choices for shelf could not be looked up."

    async def test_a_service_that_hangs_is_given_up_in_time(self) -> None:
        async def hanging() -> Any:
            await asyncio.sleep(60)

        before = time.monotonic()
        reason = await narrowed(lambda _c: hanging(), choice_seconds=0.05)
        assert time.monotonic() - before < 5
        assert reason == "The choices for shelf did not come in time."

    async def test_a_service_that_cancels_itself_has_failed(self) -> None:
        def cancelling(_context: ToolContext) -> Any:
            raise asyncio.CancelledError

        assert await narrowed(cancelling) == "The choices for shelf could not be looked up."

    @pytest.mark.parametrize("named", [{"shelf": []}, {"shelf": [None]}, {}])
    async def test_nothing_to_choose_from_keeps_a_required_parameters_tool_from_running(
        self, named: Any
    ) -> None:
        assert await narrowed(named) == "There is nothing to choose from for shelf."

    async def test_without_anything_to_choose_an_optional_parameter_is_left_out(self) -> None:
        found = await the_tool(
            {"shelf": []},
            parameter("book"),
            parameter("shelf", provides_choices=True, required=False, default="A"),
        )
        assert [p.name for p in found.parameters] == ["book"]
        checked = check_arguments(found, {"book": "Emma", "shelf": "Z"})
        assert (checked.values, checked.unknown) == ({"book": "Emma"}, ("shelf",))

    @pytest.mark.parametrize("values", [[1, 2], ["A", 2], [{"a": 1}], [["A"]]])
    async def test_choices_that_the_type_refuses_are_not_offered(self, values: Any) -> None:
        reason = await narrowed({"shelf": values})
        assert reason == "The choices for shelf are not what it can be."

    async def test_too_many_to_be_a_choice_are_not_offered(self) -> None:
        reason = await narrowed({"shelf": [str(n) for n in range(MOST_CHOICES + 1)]})
        assert reason == (
            f"There are {MOST_CHOICES + 1} choices for shelf; {MOST_CHOICES} at most can be offered."
        )


class TestOncePerTurn:
    async def test_however_many_ask_at_once_the_service_is_asked_once(self) -> None:
        asked: list[str] = []

        async def name(context: ToolContext) -> Any:
            asked.append(context.session_id)
            await asyncio.sleep(0.01)
            return {"shelf": ["A"]}

        state, kit, move = the_turn(), kit_with(name), choosing()
        found = await asyncio.gather(*(offered(state, kit, move) for _ in range(5)))
        found.append(await offered(state, kit, move))
        assert asked == ["s"]
        assert len({id(each) for each in found}) == 1

    async def test_one_who_gives_up_waiting_takes_it_from_nobody(self) -> None:
        async def name(_context: ToolContext) -> Any:
            await asyncio.sleep(0.02)
            return {"shelf": ["A"]}

        state, kit = the_turn(), kit_with(name)
        leaving = asyncio.create_task(offered(state, kit, choosing()))
        staying = asyncio.create_task(offered(state, kit, choosing()))
        await asyncio.sleep(0)
        leaving.cancel()
        assert isinstance(await staying, Tool)

    async def test_choices_of_one_session_never_reach_another(self) -> None:
        """A trap of systems that came before: choice lists leaking between sessions."""

        @tool
        def open_account(
            context: ToolContext,
            account: Annotated[str, ToolParameterOptions(choice_provider=accounts_of)],
        ) -> str:
            return account

        service = FunctionToolService([open_account])

        async def choices_for(customer: str) -> Any:
            context = ToolContext(
                agent_id="a", session_id=customer, turn_id="t", customer_id=customer
            )
            kit = Kit(models=Models.same(ScriptedModel()), tools=service, context=context)
            found = await offered(the_turn(), unread(kit), open_account.spec)
            assert isinstance(found, Tool)
            return choices_of(found.parameters[0].schema)

        ann, ben = await asyncio.gather(choices_for("ann"), choices_for("ben"))
        assert (ann, ben) == (("ann-1", "ann-2"), ("ben-1", "ben-2"))
        assert open_account.spec.parameters[0].schema == {"type": "string"}


def accounts_of(context: ToolContext) -> list[str]:
    return [f"{context.customer_id}-1", f"{context.customer_id}-2"]


async def free_days(_context: ToolContext) -> set[date]:
    return {date(2026, 11, 21)}


def nobody(_context: ToolContext) -> list[str]:
    return []


def broken(_context: ToolContext) -> list[str]:
    raise RuntimeError("sqlite:///secret.db")


def forgetful(_context: ToolContext) -> Any:
    return None


def hanging(_context: ToolContext) -> Any:
    time.sleep(1)
    return ["A"]


def a_function(kind: Any, provider: Any) -> ToolFunction[..., Any]:
    @tool
    def visit(
        context: ToolContext,
        when: Annotated[kind, ToolParameterOptions(choice_provider=provider)],  # type: ignore[valid-type]
    ) -> str:
        """Visits."""
        return str(when)

    return visit


async def offer(function: ToolFunction[..., Any], **limits: Any) -> Tool | str:
    context = ToolContext(agent_id="a", session_id="s", turn_id="t", customer_id="ann")
    kit = Kit(
        models=Models.same(ScriptedModel()),
        tools=FunctionToolService([function]),
        context=context,
    )
    return await offered(the_turn(limits=Limits(**limits)), unread(kit), function.spec)


class TestProvidersOfFunctions:
    @pytest.mark.parametrize(
        ("kind", "provider", "choices"),
        [
            (str, accounts_of, ("ann-1", "ann-2")),
            (date, free_days, ("2026-11-21",)),
            (list[str], accounts_of, ("ann-1", "ann-2")),
            (str | None, accounts_of, ("ann-1", "ann-2")),
        ],
    )
    async def test_sync_and_async_providers_name_values_as_json(
        self, kind: Any, provider: Any, choices: Any
    ) -> None:
        found = await offer(a_function(kind, provider))
        assert isinstance(found, Tool)
        assert choices_of(found.parameters[0].schema) == choices

    @pytest.mark.parametrize(
        ("provider", "reason"),
        [
            (nobody, "There is nothing to choose from for when."),
            (
                broken,
                "The choices for when could not be looked up: it failed with an internal error.",
            ),
            (
                forgetful,
                "The choices for when could not be looked up: the answer could not be read.",
            ),
            (free_days, "The choices for when are not what it can be."),
        ],
    )
    async def test_what_goes_wrong_is_a_reason_without_internals(
        self, provider: Any, reason: str
    ) -> None:
        assert await offer(a_function(int if provider is free_days else str, provider)) == reason

    async def test_a_blocking_provider_stops_neither_the_loop_nor_the_turn(self) -> None:
        ticks = 0

        async def tick() -> None:
            nonlocal ticks
            while True:
                await asyncio.sleep(0.005)
                ticks += 1

        ticking = asyncio.create_task(tick())
        reason = await offer(a_function(str, hanging), choice_seconds=0.1)
        ticking.cancel()
        assert reason == "The choices for when did not come in time."
        assert ticks > 3


class TestInATurn:
    spec = agent(guideline("a", "wants it moved", "move it", tools=("move",)), tools=[choosing()])

    async def move(self, named: Any, *expected: Expected) -> tuple[list[Any], ScriptedTools]:
        model = ScriptedModel(matches("G1"), *expected, replies("Well."))
        tools = ScriptedTools({"move": lambda a, _c: a["shelf"]}, provided={"move": named})
        emitted = await play(turn_of(self.spec, "Move it to X"), scripted_kit(model, tools))
        model.assert_used_up()
        return emitted, tools

    async def test_a_value_outside_the_choices_of_the_turn_does_not_run_and_they_are_offered(
        self,
    ) -> None:
        """A trap of systems that came before: choice values outside the list approved to run."""
        emitted, tools = await self.move(
            {"shelf": ["A", "B"]}, infers("move", {"shelf": said("X")})
        )
        assert tools.called == []
        (insight,) = entries(emitted, ToolInsight)
        assert (insight.value, insight.choices) == ("X", ("A", "B"))
        assert insight.reason == "must be one of A, B"

    async def test_a_choice_runs(self) -> None:
        _emitted, tools = await self.move(
            {"shelf": ["A", "X"]}, infers("move", {"shelf": said("X")})
        )
        assert tools.called == [("move", {"shelf": "X"})]

    async def test_without_choices_nobody_is_asked_and_the_reason_is_on_the_trail(self) -> None:
        emitted, tools = await self.move({"shelf": []})
        assert tools.called == []
        (decision,) = entries(emitted, ToolDecision)
        assert (decision.state, decision.because) == (
            DecisionState.CANNOT_RUN,
            "There is nothing to choose from for shelf.",
        )
        (briefing,) = entries(emitted, BriefingEvent)
        told = {"tool": "move", "because": "There is nothing to choose from for shelf."}
        assert briefing.content["failed"] == [told]
