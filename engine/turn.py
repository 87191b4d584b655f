"""One turn, from the customer's messages to the end of the answer (ENGINE.md §1)."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import suppress

from engine.calling import infer_calls
from engine.composing import write_reply
from engine.confirming import confirm, keep_confirmed
from engine.errors import ModelError
from engine.executing import run_calls
from engine.guessing import Guesses
from engine.handing_over import hand_over
from engine.kit import Kit
from engine.matching import match_guidelines, to_reevaluate
from engine.outbox import Emission
from engine.resolving import resolve
from engine.scoring import explaining
from engine.state import Checkpoint, Step, TurnState
from engine.trail import LimitReached
from engine.transient import leave_unjudged


async def run_turn(state: TurnState, kit: Kit) -> AsyncIterator[Emission]:
    """Yields events, trail entries, and a Checkpoint after each step; the last one is FINISHED or STOPPED.

    The next item is worked on only after the reader has taken up the generator again, so what was yielded is on record
    before anything rests on it. A state whose `checkpoint` is not the first goes on from there. Raises ModelError.
    """
    work = asyncio.create_task(_run(state, kit))
    work.add_done_callback(lambda _task: kit.outbox.close())
    try:
        async for item in kit.outbox:
            yield item
        await work
    finally:
        kit.outbox.abandon()
        work.cancel()
        with suppress(asyncio.CancelledError, Exception):
            await work


async def _run(state: TurnState, kit: Kit) -> None:
    stopped = asyncio.create_task(kit.stop.wait())
    steps = asyncio.create_task(_steps(state, kit))
    try:
        await asyncio.wait({steps, stopped}, return_when=asyncio.FIRST_COMPLETED)
        if not steps.done():
            steps.cancel()
            with suppress(asyncio.CancelledError):
                await steps
            if state.checkpoint.step is not Step.FINISHED:  # too late to stop
                await hand_over(state, kit)
                await _reach(state, kit, Step.STOPPED)
        else:
            await steps
    finally:
        stopped.cancel()
        if not steps.done():
            steps.cancel()
            await asyncio.wait({steps})  # a call that changes something is seen to its end


async def _steps(state: TurnState, kit: Kit) -> None:
    guesses = Guesses()
    try:
        while state.checkpoint.step not in {Step.FINISHED, Step.STOPPED}:
            await _step(state, kit, guesses)
    except ModelError:
        await hand_over(state, kit)  # a reply that cannot be written keeps nobody from a person
        raise
    finally:
        await guesses.drop(kit)


async def _step(state: TurnState, kit: Kit, guesses: Guesses) -> None:
    match state.checkpoint.step:
        case Step.CONFIRMING:
            # Before the first iteration: what is decided and run here belongs to none of them.
            state.checkpoint = Checkpoint(step=Step.CONFIRMING, iteration=0)
            await confirm(state, kit)
            await _reach(state, kit, Step.MATCHING, iteration=1)
        case Step.MATCHING:
            if state.checkpoint.iteration == 1:
                guesses.start(state, kit)
            await match_guidelines(state, kit)
            await keep_confirmed(state, kit)
            await _reach(state, kit, Step.RESOLVING)
        case Step.RESOLVING:
            await resolve(state, kit)
            await _reach(state, kit, Step.CALLING)
        case Step.CALLING:
            await infer_calls(state, kit, guesses)
            await _reach(state, kit, Step.RUNNING if state.to_run() else Step.WRITING)
        case Step.RUNNING:
            await run_calls(state, kit)
            await _go_on_or_write(state, kit)
        case Step.WRITING:
            await explaining(state, kit, write_reply(state, kit))
            await hand_over(state, kit)
            await _reach(state, kit, Step.FINISHED)
        case Step.FINISHED | Step.STOPPED:
            pass


async def _go_on_or_write(state: TurnState, kit: Kit) -> None:
    """Results may make other guidelines apply: once more round the loop, as far as the agent's limit allows."""
    iteration = state.checkpoint.iteration
    waiting = to_reevaluate(state, after=iteration)
    if waiting and iteration < state.agent.max_iterations:
        await _reach(state, kit, Step.MATCHING, iteration=iteration + 1)
        return
    if waiting:
        names = ", ".join(state.agent.label_of[g.uid] for g in waiting)
        limit = LimitReached(
            limit="max_iterations",
            detail=f"{names} could not be judged again: the agent takes {iteration} iterations a turn.",
        )
        await kit.outbox.put(limit)
        await leave_unjudged(state, kit)
    await _reach(state, kit, Step.WRITING)


async def _reach(state: TurnState, kit: Kit, step: Step, *, iteration: int | None = None) -> None:
    same = state.checkpoint.iteration
    state.checkpoint = Checkpoint(step=step, iteration=same if iteration is None else iteration)
    await kit.outbox.put(state.checkpoint)
