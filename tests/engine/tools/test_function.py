"""Python functions as tools: what `@tool` makes of them, and that no call can harm the engine's loop."""

import asyncio
import functools
import sys
import threading
import time
import types
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from typing import Any

import pytest

from engine.errors import SpecError, ToolError, ToolErrorKind, ToolFailure
from engine.spec import Confirm, Latency, Tool, ToolParameter
from engine.tools import builtin
from engine.tools.base import ToolContext, ToolResult
from engine.tools.beside import Beside
from engine.tools.function import FunctionToolService, ToolFunction, tool
from engine.tools.results import MAX_RESULT_BYTES


def make_context(**overrides: Any) -> ToolContext:
    names = {"agent_id": "a", "session_id": "s", "turn_id": "t", "customer_id": "c"}
    return ToolContext(**{**names, **overrides})


async def call(
    function: ToolFunction[..., Any], context: ToolContext | None = None, **arguments: Any
) -> ToolResult:
    service = FunctionToolService([function])
    return await service.call(function.spec, arguments, context or make_context())


async def failure(function: ToolFunction[..., Any], **arguments: Any) -> ToolError:
    with pytest.raises(ToolFailure) as caught:
        await call(function, **arguments)
    return caught.value.error


@dataclass
class Account:
    opened: date
    balance: Decimal


@pytest.fixture
def release() -> Iterator[threading.Event]:
    """Set at the end, so that no tool of a test hangs into the next."""
    event = threading.Event()
    yield event
    event.set()


class TestDecorator:
    def test_bare_it_takes_everything_from_the_function(self) -> None:
        @tool
        def get_balance(context: ToolContext, account: str, on: date | None = None) -> str:
            """Looks up the balance.

            Private to the customer.

            Args:
                account: Its number.
            """
            return f"{context.customer_id} {account} {on}"

        spec = get_balance.spec
        assert spec == Tool(
            uid=spec.uid,
            name="get_balance",
            description="Looks up the balance.\n\nPrivate to the customer.",
            parameters=(
                ToolParameter(name="account", schema={"type": "string"}, description="Its number."),
                ToolParameter(
                    name="on",
                    schema={"anyOf": [{"type": "string", "format": "date"}, {"type": "null"}]},
                    required=False,
                ),
            ),
        )
        assert get_balance(make_context(), "7") == "c 7 None", "it stays the plain function"
        assert get_balance.__name__ == "get_balance"

    def test_with_arguments_it_says_how_the_tool_runs(self) -> None:
        @tool(name="pay-now", consequential=True, latency="slow", timeout=2.5, uid="u1")
        async def pay(context: ToolContext) -> None: ...

        assert pay.spec == Tool(
            uid="u1",
            name="pay-now",
            description="",
            consequential=True,
            latency=Latency.SLOW,
            timeout=2.5,
        )

    def test_a_tool_that_changes_something_is_confirmed_always_unless_it_says_otherwise(
        self,
    ) -> None:
        def pay(context: ToolContext) -> None: ...

        assert tool(consequential=True)(pay).spec.confirm is Confirm.ALWAYS
        assert tool(consequential=True, confirm="inferred")(pay).spec.confirm is Confirm.INFERRED

    def test_the_uid_stays_the_same_and_differs_between_functions(self) -> None:
        def one(context: ToolContext) -> None: ...
        def two(context: ToolContext) -> None: ...

        assert tool(one).spec.uid == tool(name="renamed")(one).spec.uid
        assert tool(one).spec.uid != tool(two).spec.uid

    def test_what_cannot_be_a_tool_is_refused_with_the_remedy(self) -> None:
        def lists(context: ToolContext) -> Iterator[int]:
            yield 1

        async def streams(context: ToolContext) -> AsyncIterator[int]:
            yield 1

        def fine(context: ToolContext) -> None: ...

        cases: list[tuple[Callable[[], Any], str]] = [
            (lambda: tool(lists), "return one value"),
            (lambda: tool(streams), "return one value"),
            (lambda: tool(Account), "for functions"),
            (lambda: tool(tool(fine)), "for functions"),
            (lambda: tool(name="has blanks")(fine), r"use @tool\(name="),
            (lambda: tool(name="x" * 65)(fine), "1 to 64"),
            (lambda: tool(lambda context: None), "context first"),
            (lambda: tool(latency="quick")(fine), "fast, medium, slow"),
            (lambda: tool(confirm="always")(fine), "add consequential=True, or leave it out"),
            (
                lambda: tool(consequential=True, confirm="never")(fine),  # type: ignore[call-overload]
                "always, inferred",
            ),
            (lambda: tool(timeout=0)(fine), "more than 0"),
            (lambda: tool(timeout=float("nan"))(fine), "more than 0"),
        ]
        for make, remedy in cases:
            with pytest.raises(SpecError, match=remedy):
                make()


class TestArguments:
    async def test_values_arrive_as_their_types_and_defaults_are_the_functions_own(self) -> None:
        seen: list[Any] = []

        @tool
        def note(
            context: ToolContext, on: date, amount: Decimal = Decimal(3), to: str | None = None
        ) -> None:
            seen.append((on, amount, to))

        await call(note, on="2026-11-21")
        await call(note, on="2026-11-21", amount=19.99, to="Ann")
        await call(note, on="2026-11-21", amount=None, to=None)
        day = date(2026, 11, 21)
        assert seen == [(day, 3, None), (day, Decimal("19.99"), "Ann"), (day, 3, None)]

    async def test_an_optional_parameter_without_a_default_is_none_when_absent(self) -> None:
        @tool
        def find(context: ToolContext, limit: int | None) -> Any:
            return limit

        assert (await call(find)).data is None
        assert (await call(find, limit=4)).data == 4

    @pytest.mark.parametrize(
        ("arguments", "problem"),
        [
            ({}, "'day of month' is missing"),
            ({"day": None}, "'day of month' is missing"),
            ({"day": "5"}, "day of month"),
            ({"day": 5, "month": 1}, "no parameter 'month'"),
        ],
    )
    async def test_unvalidated_arguments_do_not_reach_the_function(
        self, arguments: dict[str, Any], problem: str
    ) -> None:
        @tool
        def remind(context: ToolContext, day: int) -> None:
            pytest.fail("it ran")

        error = await failure(remind, **arguments)
        assert error.kind is ToolErrorKind.EXCEPTION
        assert problem.replace("day of month", "day") in error.public


class TestResults:
    @pytest.mark.parametrize(
        ("value", "data"),
        [
            (None, None),
            ("text", "text"),
            ({"a": (1, 2)}, {"a": [1, 2]}),
            ({1: True}, {"1": True}),
            (
                Account(date(2026, 11, 21), Decimal("9.50")),
                {"opened": "2026-11-21", "balance": "9.50"},
            ),
            (ToolResult(data=[date(2026, 11, 21)]), ["2026-11-21"]),
        ],
    )
    async def test_plain_data_and_what_pydantic_writes_become_json(
        self, value: Any, data: Any
    ) -> None:
        @tool
        def give(context: ToolContext) -> Any:
            return value

        @tool
        async def give_async(context: ToolContext) -> Any:
            return value

        for function in (give, give_async):
            assert await call(function) == ToolResult(data=data)

    async def test_metadata_is_kept_and_the_result_is_a_copy(self) -> None:
        shared = {"sources": ["a"]}

        @tool
        def search(context: ToolContext) -> ToolResult:
            return ToolResult(data=shared, metadata=shared)

        result = await call(search)
        shared["sources"].append("b")
        assert result == ToolResult(data={"sources": ["a"]}, metadata={"sources": ["a"]})

    @pytest.mark.parametrize(
        "make",
        [
            lambda: float("nan"),
            lambda: [float("inf")],
            object,
            lambda: {"deep": [object()]},
            lambda: b"\xff",
            lambda: "\ud800",
            lambda: 10**5000,
            lambda: (n for n in [1, 2]),
            lambda: iter([1]),
            lambda: functools.reduce(lambda inner, _: [inner], range(100_000), []),
            lambda: (circle := [], circle.append(circle))[0],
            lambda: ToolResult(data=1, metadata=[1]),  # type: ignore[arg-type]
            lambda: ToolResult(data=1, metadata={"a": object()}),
        ],
    )
    async def test_what_json_cannot_hold_is_bad_output(self, make: Callable[[], Any]) -> None:
        @tool
        def give(context: ToolContext) -> Any:
            return make()

        error = await failure(give)
        assert error.kind is ToolErrorKind.BAD_OUTPUT
        assert "object" not in error.public
        assert "'give'" in error.detail

    async def test_five_megabytes_are_too_large(self) -> None:
        @tool
        def dump(context: ToolContext, size: int) -> str:
            return "x" * size

        error = await failure(dump, size=5_000_000)
        assert error.kind is ToolErrorKind.TOO_LARGE
        assert "5,000," in error.detail
        await call(dump, size=MAX_RESULT_BYTES - 100)
        error = await failure(dump, size=MAX_RESULT_BYTES)
        assert error.kind is ToolErrorKind.TOO_LARGE


class TestFailures:
    @pytest.mark.parametrize(
        "exception",
        [
            RuntimeError("password=hunter2 in /srv/app.py"),
            SystemExit(3),
            KeyboardInterrupt(),
            TimeoutError("socket"),
            asyncio.CancelledError(),
            StopIteration(4),
            ExceptionGroup("many", [ValueError("one")]),
        ],
    )
    async def test_whatever_a_tool_raises_is_data_without_internals_for_the_customer(
        self, exception: BaseException
    ) -> None:
        @tool
        def sync_tool(context: ToolContext) -> None:
            raise exception

        @tool
        async def async_tool(context: ToolContext) -> None:
            raise exception

        @tool
        async def healthy(context: ToolContext) -> str:
            return "still here"

        for function in (sync_tool, async_tool):
            error = await failure(function)
            assert error.kind is ToolErrorKind.EXCEPTION
            assert error.public == "it failed with an internal error"
            assert type(exception).__name__ in error.detail
            assert "test_function.py" in error.detail, "the traceback is for the trail"
        assert (await call(healthy)).data == "still here"

    async def test_a_tool_failure_passes_through_in_its_own_words(self) -> None:
        own = ToolError(kind=ToolErrorKind.NOT_ALLOWED, public="the account is closed")

        @tool
        async def close(context: ToolContext) -> None:
            raise ToolFailure(own)

        assert await failure(close) == own

    async def test_endless_recursion_is_a_failure_with_a_detail_of_bounded_size(self) -> None:
        @tool
        def dig(context: ToolContext) -> None:
            def deeper(text: str) -> None:
                try:
                    deeper(text)
                except RecursionError as error:
                    raise RuntimeError(text * 100_000) from error

            deeper("x")

        assert len((await failure(dig)).detail) < 25_000

    async def test_a_tool_that_the_service_does_not_have_is_unavailable(self) -> None:
        service = FunctionToolService([])
        with pytest.raises(ToolFailure) as caught:
            await service.call(Tool(uid="?", name="gone", description=""), {}, make_context())
        assert caught.value.error.kind is ToolErrorKind.UNAVAILABLE


class TestIsolation:
    async def test_a_blocking_tool_never_stops_the_engines_loop(self) -> None:
        @tool
        def block(context: ToolContext) -> int:
            time.sleep(0.3)
            return threading.get_ident()

        @tool
        async def block_async(context: ToolContext) -> int:
            time.sleep(0.3)  # noqa: ASYNC251
            return threading.get_ident()

        for function in (block, block_async):
            calling = asyncio.create_task(call(function))
            longest = 0.0
            while not calling.done():
                started = time.perf_counter()
                await asyncio.sleep(0.01)
                longest = max(longest, time.perf_counter() - started)
            assert longest < 0.2
            assert (await calling).data != threading.get_ident()

    async def test_a_cancelled_async_tool_is_cancelled_and_may_clean_up(self) -> None:
        cleaned = threading.Event()

        @tool
        async def wait(context: ToolContext) -> None:
            try:
                await asyncio.sleep(60)
            finally:
                cleaned.set()

        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.1):
                await call(wait)
        assert await asyncio.to_thread(cleaned.wait, 2)

    async def test_a_deadline_holds_against_tools_that_swallow_or_ignore_cancellation(
        self, release: threading.Event
    ) -> None:
        @tool
        async def stubborn(context: ToolContext) -> None:
            while not release.is_set():
                try:
                    await asyncio.sleep(0.05)
                except asyncio.CancelledError:
                    continue

        @tool
        async def frozen(context: ToolContext) -> None:
            release.wait(20)

        @tool
        def hung(context: ToolContext) -> None:
            release.wait(20)

        beside = Beside()
        for function in (stubborn, frozen, hung):
            service = FunctionToolService([function], beside=beside)
            started = time.perf_counter()
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(0.1):
                    await service.call(function.spec, {}, make_context())
            assert time.perf_counter() - started < 0.4

    async def test_calls_after_a_frozen_loop_run_on_a_new_one(
        self, release: threading.Event
    ) -> None:
        @tool
        async def frozen(context: ToolContext) -> str:
            release.wait(20)
            return "thawed"

        @tool
        async def healthy(context: ToolContext) -> str:
            await asyncio.sleep(0)
            return "fine"

        service = FunctionToolService([frozen, healthy], beside=Beside(patience=0.05))
        freezing = asyncio.create_task(service.call(frozen.spec, {}, make_context()))
        await asyncio.sleep(0.02)
        answers = await asyncio.gather(
            *(service.call(healthy.spec, {}, make_context()) for _ in range(5))
        )
        assert [answer.data for answer in answers] == ["fine"] * 5
        assert not freezing.done()
        release.set()
        assert (await freezing).data == "thawed", "the old loop finishes what it began"

    async def test_many_hung_tools_do_not_keep_others_from_running(
        self, release: threading.Event
    ) -> None:
        @tool
        def hung(context: ToolContext) -> None:
            release.wait(20)

        @tool
        def healthy(context: ToolContext) -> str:
            return "fine"

        service = FunctionToolService([hung, healthy], beside=Beside(limit=40))

        async def hang() -> None:
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(0.2):
                    await service.call(hung.spec, {}, make_context())

        await asyncio.gather(*(hang() for _ in range(39)))
        assert (await service.call(healthy.spec, {}, make_context())).data == "fine"
        await hang()
        with pytest.raises(ToolFailure, match="not available") as caught:
            await service.call(healthy.spec, {}, make_context())
        assert caught.value.error.kind is ToolErrorKind.UNAVAILABLE
        release.set()
        await asyncio.sleep(0.1)
        assert (await service.call(healthy.spec, {}, make_context())).data == "fine"

    async def test_a_background_task_that_exits_ends_neither_its_tool_nor_later_calls(
        self, caplog: pytest.LogCaptureFixture
    ) -> None:
        @tool
        async def poison(context: ToolContext) -> str:
            async def leave() -> None:
                sys.exit(1)

            task = asyncio.create_task(leave())
            await asyncio.wait({task})
            return type(task.exception()).__name__

        @tool
        async def healthy(context: ToolContext) -> str:
            return "fine"

        service = FunctionToolService([poison, healthy])
        assert (await service.call(poison.spec, {}, make_context())).data == "SystemExit"
        assert "tried to end the process" in caplog.text
        assert (await service.call(healthy.spec, {}, make_context())).data == "fine"

    async def test_async_tools_share_one_loop_so_that_their_clients_stay_usable(self) -> None:
        @tool
        async def loop_id(context: ToolContext) -> int:
            return id(asyncio.get_running_loop())

        seen = {(await call(loop_id)).data for _ in range(3)}
        assert len(seen) == 1
        assert seen != {id(asyncio.get_running_loop())}

    async def test_a_sync_decorator_around_an_async_function_still_awaits_it(self) -> None:
        def logged(function: Callable[..., Any]) -> Callable[..., Any]:
            @functools.wraps(function)
            def wrapper(*args: Any, **kwargs: Any) -> Any:
                return function(*args, **kwargs)

            return wrapper

        @tool
        @logged
        async def fetch(context: ToolContext, key: str) -> str:
            return key

        assert (await call(fetch, key="k")).data == "k"


class TestEmitting:
    @staticmethod
    def listening(said: list[str]) -> ToolContext:
        loop = asyncio.get_running_loop()

        async def hear(text: str) -> None:
            assert asyncio.get_running_loop() is loop
            await asyncio.sleep(0.01)
            said.append(text)

        return make_context(send_message=hear, send_status=hear)

    async def test_an_async_tool_awaits_what_it_says(self) -> None:
        said: list[str] = []

        @tool
        async def work(context: ToolContext) -> list[str]:
            await context.emit_status("one")
            heard = list(said)
            context.emit_message("two")
            return heard

        result = await call(work, self.listening(said))
        assert result.data == ["one"]
        assert said == ["one", "two"], "and what it did not await is said before it ends"

    async def test_a_sync_tool_just_calls(self) -> None:
        said: list[str] = []

        @tool
        def work(context: ToolContext) -> list[str]:
            context.emit_status("one")
            context.emit_message("two")
            return list(said)

        assert (await call(work, self.listening(said))).data == ["one", "two"]

    async def test_what_cannot_be_delivered_does_not_break_the_work(
        self, caplog: pytest.LogCaptureFixture
    ) -> None:
        async def broken(text: str) -> None:
            raise OSError("gone")

        @tool
        def work(context: ToolContext) -> str:
            context.emit_status("one")
            return "done"

        @tool
        async def work_async(context: ToolContext) -> str:
            await context.emit_status("one")
            return "done"

        for function in (work, work_async):
            assert (await call(function, make_context(send_status=broken))).data == "done"
        assert "was not delivered" in caplog.text

    async def test_an_abandoned_tool_cannot_speak_any_more(self, release: threading.Event) -> None:
        said: list[str] = []
        tried = threading.Event()

        @tool
        def late(context: ToolContext) -> None:
            release.wait(20)
            context.emit_message("too late")
            tried.set()

        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.05):
                await call(late, self.listening(said))
        release.set()
        assert await asyncio.to_thread(tried.wait, 2)
        await asyncio.sleep(0.05)
        assert said == []


class TestService:
    @staticmethod
    def make_module(monkeypatch: pytest.MonkeyPatch, name: str, **content: Any) -> None:
        module = types.ModuleType(name)
        vars(module).update(content)
        monkeypatch.setitem(sys.modules, name, module)

    @staticmethod
    def make_tool(module: str, name: str = "ping") -> ToolFunction[..., Any]:
        def ping(context: ToolContext) -> str:
            return module

        ping.__module__ = module
        return tool(name=name)(ping)

    async def test_tools_are_found_at_the_top_level_of_modules(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        ping = self.make_tool("shop_tools")
        self.make_module(monkeypatch, "shop_tools", ping=ping, other=3)
        self.make_module(
            monkeypatch, "more_tools", borrowed=ping, pong=self.make_tool("more_tools", "pong")
        )
        service = FunctionToolService.from_modules(["shop_tools", "more_tools"])
        assert [spec.name for spec in await service.describe()] == ["ping", "pong"]
        assert (await service.call(ping.spec, {}, make_context())).data == "shop_tools"

    async def test_the_tools_that_come_with_the_studio_load(self) -> None:
        service = FunctionToolService.from_modules(builtin.MODULES)
        calculator, get_datetime = await service.describe()
        assert (calculator.name, get_datetime.name) == ("calculator", "get_datetime")
        assert all(spec.description for spec in (calculator, get_datetime))
        result = await service.call(calculator, {"expression": "6 * 7"}, make_context())
        assert result.data["result"] == 42

    async def test_a_tool_renamed_for_an_agent_is_found_by_its_uid(self) -> None:
        ping = self.make_tool("m")
        service = FunctionToolService([ping])
        renamed = Tool(uid=ping.spec.uid, name="say_hello", description="other words")
        assert (await service.call(renamed, {}, make_context())).data == "m"

    def test_two_tools_of_one_name_are_refused_naming_both_modules(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        for name in ("shop_tools", "more_tools"):
            self.make_module(monkeypatch, name, ping=self.make_tool(name))
        with pytest.raises(SpecError, match="'ping': in shop_tools and in more_tools"):
            FunctionToolService.from_modules(["shop_tools", "more_tools"])

    def test_modules_that_cannot_be_used_are_named(
        self, monkeypatch: pytest.MonkeyPatch, tmp_path: Any
    ) -> None:
        (tmp_path / "broken_tools.py").write_text("1 / 0\n")
        (tmp_path / "wrong_tools.py").write_text(
            "from engine.tools.function import tool\n"
            "from engine.tools.base import ToolContext\n"
            "@tool\n"
            "def pay(context: ToolContext, amount): ...\n"
        )
        monkeypatch.syspath_prepend(tmp_path)
        self.make_module(monkeypatch, "empty_tools")
        for name, problem in (
            ("no_such_tools", "cannot be imported"),
            ("broken_tools", "ZeroDivisionError"),
            ("wrong_tools", "parameter 'amount'.*no annotation"),
            ("empty_tools", "no @tool function"),
        ):
            with pytest.raises(SpecError, match=problem) as caught:
                FunctionToolService.from_modules([name])
            assert name in str(caught.value)

    async def test_entry_points_name_a_module_or_one_tool(
        self, monkeypatch: pytest.MonkeyPatch, tmp_path: Any
    ) -> None:
        self.make_module(monkeypatch, "shop_tools", ping=self.make_tool("shop_tools"))
        both = {
            "pong": self.make_tool("more_tools", "pong"),
            "pung": self.make_tool("more_tools", "pung"),
        }
        self.make_module(monkeypatch, "more_tools", **both, number=3)
        package = tmp_path / "shop-1.0.dist-info"
        package.mkdir()
        (package / "METADATA").write_text("Metadata-Version: 2.1\nName: shop\nVersion: 1.0\n")
        monkeypatch.syspath_prepend(tmp_path)
        listing = package / "entry_points.txt"
        listing.write_text("[guideline_studio.tools]\nall = shop_tools\none = more_tools:pong\n")
        service = FunctionToolService.from_modules([])
        assert {spec.name for spec in await service.describe()} == {"ping", "pong"}
        listing.write_text("[guideline_studio.tools]\none = more_tools:number\n")
        with pytest.raises(SpecError, match="which is no tool"):
            FunctionToolService.from_modules([])
