"""Writing a draft and its versions: the next turn sees every change, and a version never changes."""

import threading
from collections.abc import Callable
from datetime import timedelta

import pytest
from django.db import close_old_connections
from pytest_django import DjangoAssertNumQueries

from studio.bridge import agent_spec, compile_agent
from studio.models import Agent, AgentVersion, Guideline, GuidelineExample, Tool
from studio.operations.agents import (
    GuidelineChangedError,
    NothingToPublishError,
    ToolInUseError,
    allow_tool,
    disallow_tool,
    mark_changed,
    move_guideline,
    place_guideline,
    publish,
    save_agent,
    save_guideline,
    set_enabled,
    snapshot,
)
from studio.operations.removal import delete_guideline, undelete_guideline
from tests.studio.factories import make_agent, make_guideline, make_tool, make_user

pytestmark = pytest.mark.django_db


def order_of(agent: Agent) -> list[str]:
    return list(agent.guidelines.values_list("uid", flat=True))


def lettered(agent: Agent, letters: str = "abcd") -> dict[str, Guideline]:
    return {letter: make_guideline(agent, uid=letter) for letter in letters}


# --- Compiling


def test_a_draft_compiles_to_what_was_authored() -> None:
    agent = make_agent(name="Shop", description="Brief.", max_iterations=5)
    tool = make_tool(agent, name="find_order", consequential=True, latency="slow", timeout=7.5)
    make_guideline(
        agent,
        uid="g1",
        condition="c",
        action="a",
        criticality="high",
        priority=3,
        tags=["x"],
        tools=[tool],
        reevaluate_after=[tool],
        matching=["yes"],
        not_matching=["no"],
        enabled=False,
    )
    spec = compile_agent(agent)
    assert (spec.name, spec.description, spec.max_iterations) == ("Shop", "Brief.", 5)
    compiled = spec.tool_by_name["find_order"]
    assert (compiled.consequential, compiled.deadline) == (True, 7.5)
    guideline = spec.guideline_by_uid["g1"]
    assert (guideline.condition, guideline.action, guideline.priority) == ("c", "a", 3)
    assert (guideline.tags, guideline.tools, guideline.enabled) == (("x",), ("find_order",), False)
    assert [(e.text, e.matches) for e in guideline.examples] == [("yes", True), ("no", False)]


def test_the_same_draft_has_the_same_fingerprint_however_it_came_about() -> None:
    def build(*, backwards: bool) -> str:
        Agent.objects.all().delete()
        Tool.objects.all().delete()
        agent = make_agent(slug="shop", name="Shop")
        names = ["one", "two", "three"]
        for name in reversed(names) if backwards else names:
            make_tool(agent, name=name, uid=name)
        tools = list(Tool.objects.order_by("-pk" if backwards else "pk"))
        make_guideline(agent, uid="g", condition="c", action="a", tools=tools)
        return compile_agent(agent).fingerprint

    assert build(backwards=False) == build(backwards=True)


@pytest.mark.parametrize("gone", ["switched off", "code is gone"])
def test_a_tool_that_cannot_be_called_is_left_out_of_agent_and_guidelines(gone: str) -> None:
    agent = make_agent()
    tool, kept = make_tool(agent), make_tool(agent)
    make_guideline(agent, uid="g", tools=[tool, kept], reevaluate_after=[tool])
    if gone == "switched off":
        tool.enabled = False
    else:
        tool.missing_since = tool.created_at
    tool.save()
    spec = compile_agent(agent)
    assert [each.name for each in spec.tools] == [kept.name]
    assert spec.guideline_by_uid["g"].tools == (kept.name,)
    assert spec.guideline_by_uid["g"].reevaluate_after == ()


def test_a_tool_that_the_agent_did_not_choose_is_not_compiled() -> None:
    agent = make_agent()
    make_guideline(agent, uid="g", tools=[make_tool()])
    spec = compile_agent(agent)
    assert (spec.tools, spec.guideline_by_uid["g"].tools) == ((), ())


def test_compiling_takes_as_many_queries_for_a_hundred_guidelines_as_for_two(
    django_assert_num_queries: DjangoAssertNumQueries,
) -> None:
    for count in (2, 100):
        agent = make_agent()
        tool = make_tool(agent)
        for _ in range(count):
            make_guideline(agent, tools=[tool], matching=["m"])
        with django_assert_num_queries(10):
            assert len(compile_agent(agent).guidelines) == count


# --- Snapshots


def test_an_unchanged_draft_keeps_its_snapshot(
    django_assert_num_queries: DjangoAssertNumQueries,
) -> None:
    agent = make_agent()
    make_guideline(agent)
    first = snapshot(agent)
    with django_assert_num_queries(2):
        assert snapshot(agent).pk == first.pk
    assert agent_spec(first).fingerprint == first.fingerprint


def change_description(agent: Agent, _guideline: Guideline, _tool: Tool) -> None:
    agent.description = "Changed."
    save_agent(agent)


def change_action(_agent: Agent, guideline: Guideline, _tool: Tool) -> None:
    guideline.action = "changed"
    save_guideline(guideline)


def change_examples(_agent: Agent, guideline: Guideline, _tool: Tool) -> None:
    save_guideline(guideline, examples=[GuidelineExample(text="new")])


def attach(_agent: Agent, guideline: Guideline, tool: Tool) -> None:
    save_guideline(guideline, tools=[tool])


def delete(_agent: Agent, guideline: Guideline, _tool: Tool) -> None:
    delete_guideline(guideline)


def switch_off(agent: Agent, guideline: Guideline, _tool: Tool) -> None:
    set_enabled(agent, [guideline.uid], enabled=False)


def move(agent: Agent, guideline: Guideline, _tool: Tool) -> None:
    move_guideline(guideline, steps=1)


def disallow(agent: Agent, _guideline: Guideline, tool: Tool) -> None:
    disallow_tool(agent, tool)


@pytest.mark.parametrize(
    "change",
    [
        change_description,
        change_action,
        change_examples,
        attach,
        delete,
        switch_off,
        move,
        disallow,
    ],
)
def test_the_turn_after_any_change_runs_on_another_snapshot(
    change: Callable[[Agent, Guideline, Tool], None],
) -> None:
    agent = make_agent()
    tool = make_tool(agent)
    guideline = make_guideline(agent)
    make_guideline(agent)
    before = snapshot(agent)
    frozen = before.spec
    change(agent, guideline, tool)
    after = snapshot(agent)
    assert after.fingerprint != before.fingerprint
    assert AgentVersion.objects.get(pk=before.pk).spec == frozen


def test_a_draft_that_goes_back_to_what_it_was_takes_its_old_snapshot_again() -> None:
    agent = make_agent()
    guideline = make_guideline(agent, action="one")
    first = snapshot(agent)
    guideline.action = "two"
    save_guideline(guideline)
    assert snapshot(agent).pk != first.pk
    guideline.action = "one"
    save_guideline(guideline)
    assert snapshot(agent).pk == first.pk


def test_a_snapshot_that_was_overtaken_by_a_save_is_not_kept_as_the_newest(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from studio.operations import agents

    agent = make_agent()
    guideline = make_guideline(agent, action="one")

    def compile_while_somebody_saves(row: Agent) -> object:
        value = compile_agent(row)
        Guideline.objects.filter(pk=guideline.pk).update(action="two")
        mark_changed(agent.pk)
        return value

    monkeypatch.setattr(agents, "compile_agent", compile_while_somebody_saves)
    assert agent_spec(snapshot(agent)).guidelines[0].action == "one"
    monkeypatch.undo()
    assert agent_spec(snapshot(agent)).guidelines[0].action == "two"


# --- Publishing


def test_published_versions_are_numbered_and_say_by_whom_and_why() -> None:
    agent, author = make_agent(), make_user("publisher")
    make_guideline(agent)
    first = publish(agent, note="Start.", by=author)
    make_guideline(agent)
    second = publish(agent, note="More.", by=None)
    assert (first.number, first.note, first.published_by) == (1, "Start.", author)
    assert (second.number, Agent.objects.get().published) == (2, second)
    assert [len(v.spec["guidelines"]) for v in agent.versions.published()] == [2, 1]


def test_publishing_what_is_published_is_refused() -> None:
    agent = make_agent()
    make_guideline(agent)
    publish(agent, note="", by=None)
    with pytest.raises(NothingToPublishError):
        publish(agent, note="again", by=None)
    assert agent.versions.published().count() == 1


def test_a_draft_that_was_run_can_be_published() -> None:
    agent = make_agent()
    make_guideline(agent)
    run = snapshot(agent)
    published = publish(agent, note="", by=None)
    assert run.pk != published.pk
    assert run.fingerprint == published.fingerprint
    assert snapshot(agent).pk == run.pk


@pytest.mark.django_db(transaction=True)
def test_two_who_publish_at_once_get_two_numbers_or_one_is_told_there_is_nothing_new() -> None:
    agent = make_agent()
    make_guideline(agent)
    together = threading.Barrier(2)
    outcomes: list[object] = []

    def run(note: str) -> None:
        try:
            mine = Agent.objects.get(pk=agent.pk)
            together.wait(10)
            outcomes.append(publish(mine, note=note, by=None).number)
        except NothingToPublishError as error:
            outcomes.append(type(error))
        finally:
            close_old_connections()

    threads = [threading.Thread(target=run, args=(note,)) for note in ("one", "two")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(20)
    assert sorted(map(str, outcomes)) in (["1", "2"], ["1", str(NothingToPublishError)])
    numbers = list(agent.versions.published().values_list("number", flat=True))
    assert numbers == sorted(set(numbers), reverse=True)


# --- Guidelines


def test_saving_says_when_somebody_else_saved_or_deleted_meanwhile() -> None:
    agent = make_agent()
    guideline = make_guideline(agent, action="stored")
    with pytest.raises(GuidelineChangedError) as caught:
        save_guideline(guideline, unchanged_since=guideline.updated_at - timedelta(seconds=1))
    assert caught.value.stored == guideline
    delete_guideline(Guideline.objects.get(pk=guideline.pk))
    with pytest.raises(GuidelineChangedError) as caught:
        save_guideline(guideline, unchanged_since=guideline.updated_at)
    assert caught.value.stored is None
    assert not agent.guidelines.exists()


def test_saving_does_not_put_a_guideline_back_where_it_was_when_it_was_read() -> None:
    agent = make_agent()
    rows = lettered(agent)
    stale = agent.guidelines.get(uid="a")
    move_guideline(rows["a"], steps=3)
    stale.action = "changed"
    save_guideline(stale)
    assert order_of(agent) == ["b", "c", "d", "a"]


@pytest.mark.parametrize(
    ("uid", "steps", "order"),
    [("a", 1, "bacd"), ("d", -1, "abdc"), ("a", -1, "abcd"), ("c", 99, "abdc"), ("c", -99, "cabd")],
)
def test_moving_goes_step_by_step_and_stops_at_the_ends(uid: str, steps: int, order: str) -> None:
    agent = make_agent()
    move_guideline(lettered(agent)[uid], steps=steps)
    assert order_of(agent) == list(order)


@pytest.mark.parametrize(
    ("uid", "beside", "after", "order"),
    [("d", "a", False, "dabc"), ("a", "c", True, "bcad"), ("b", "c", False, "abcd")],
)
def test_placing_beside_another_can_be_said_twice(
    uid: str, beside: str, after: bool, order: str
) -> None:
    agent = make_agent()
    rows = lettered(agent)
    for _ in range(2):
        place_guideline(rows[uid], beside=rows[beside], after=after)
        assert order_of(agent) == list(order)


def test_placing_beside_itself_or_where_it_is_changes_nothing() -> None:
    agent = make_agent()
    rows = lettered(agent)
    move_guideline(rows["a"], steps=0)
    before = Agent.objects.get().revision
    place_guideline(rows["b"], beside=rows["b"], after=True)
    place_guideline(rows["b"], beside=rows["a"], after=True)
    assert (order_of(agent), Agent.objects.get().revision) == (list("abcd"), before)


def test_switching_counts_what_changed_and_leaves_other_agents_alone() -> None:
    agent, other = make_agent(), make_agent()
    lettered(agent)
    make_guideline(other, uid="a")
    edited = agent.guidelines.get(uid="a").updated_at
    assert set_enabled(agent, ["a", "b", "nobody"], enabled=False) == 2
    assert set_enabled(agent, ["a", "b"], enabled=False) == 0
    assert list(agent.guidelines.enabled().values_list("uid", flat=True)) == ["c", "d"]
    assert other.guidelines.get().enabled
    assert agent.guidelines.get(uid="a").updated_at == edited


def test_what_was_deleted_comes_back_as_it_was_and_where_it_was() -> None:
    agent = make_agent()
    tool, gone = make_tool(agent), make_tool(agent)
    for uid in "ac":
        make_guideline(agent, uid=uid)
    guideline = make_guideline(
        agent, uid="b", tools=[tool, gone], matching=["m"], not_matching=["n"], tags=["t"]
    )
    move_guideline(guideline, steps=-1)
    before = compile_agent(agent)
    deleted = delete_guideline(agent.guidelines.get(uid="b"))
    assert order_of(agent) == ["a", "c"]
    for _ in range(2):  # a second click finds it back already
        undelete_guideline(agent, deleted)
        assert compile_agent(agent) == before
    delete_guideline(agent.guidelines.get(uid="b"))
    disallow_tool(agent, gone)
    back = undelete_guideline(agent, deleted)
    assert [each.name for each in back.tools.all()] == [tool.name]


# --- Tools of an agent


def test_a_tool_that_is_still_attached_is_not_taken_away() -> None:
    agent = make_agent()
    tool = make_tool(agent)
    guideline = make_guideline(agent, tools=[tool])
    with pytest.raises(ToolInUseError) as caught:
        disallow_tool(agent, tool)
    assert caught.value.guidelines == [guideline]
    assert agent.tools.get() == tool


def test_taking_a_tool_away_also_ends_judging_again_after_it() -> None:
    agent = make_agent()
    tool = make_tool(agent)
    guideline = make_guideline(agent, reevaluate_after=[tool])
    disallow_tool(agent, tool)
    disallow_tool(agent, tool)
    assert not agent.tools.exists()
    assert not guideline.reevaluate_after.exists()
    allow_tool(agent, tool)
    allow_tool(agent, tool)
    assert agent.tools.get() == tool
