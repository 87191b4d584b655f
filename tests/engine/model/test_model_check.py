"""The model check: what it asks, how it tells right from wrong, when it gives up, and what it proposes."""

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest

from engine.canonical import JsonObject
from engine.errors import ModelError, ModelErrorKind
from engine.model.base import (
    ChatModel,
    InferToolCalls,
    JudgingStyle,
    MatchGuidelines,
    ModelReply,
    ModelRequest,
    ReadConfirmation,
    ScoreGuideline,
)
from engine.model.check import Answered, Ended, Kind, Report, Setting, check, plan, report
from engine.model.check.reporting import Row, propose
from engine.model.check.running import CONFIRMATION_CASES, SCENES, TOOL_CASES
from engine.model.offline import OfflineModel
from engine.model.retrying import check_answer
from engine.state import customer_messages
from engine.trail import DecisionState

Answer = Callable[[ModelRequest], JsonObject | ModelError]


class Answering:
    """A ChatModel that answers by a function of the request."""

    name, batch_size, judging_style = "answering", 12, JudgingStyle.REASONED

    def __init__(self, answer: Answer, *, probability: float | None = None) -> None:
        self._answer = answer
        self._probability = probability
        self.asked = self.running = self.most = 0

    async def stream(self, request: ModelRequest) -> AsyncIterator[Any]:
        self.asked += 1
        self.running += 1
        self.most = max(self.most, self.running)
        try:
            await asyncio.sleep(0)
            answer = self._answer(request)
            if isinstance(answer, ModelError):
                raise answer
            reply = ModelReply(answer=answer, text="", model=self.name, prompt_tokens=10)
            check_answer(reply, request)
            scored = isinstance(request.question, ScoreGuideline)
            yield ModelReply(
                answer=answer,
                text="",
                model=self.name,
                prompt_tokens=10,
                completion_tokens=2,
                probability=self._probability if scored else None,
            )
        finally:
            self.running -= 1


def label_set(request: ModelRequest) -> JsonObject:
    """The answers that the labelled set expects."""
    question = request.question
    situation = question.situation
    match question:
        case MatchGuidelines():
            applies = next(s.applies for s in SCENES if s.agent is situation.agent)
            label_of = situation.agent.label_of
            return {
                "newest": "",
                "judgements": [
                    {"guideline": label_of[g.uid], "because": "So.", "applies": g.uid in applies}
                    for g in question.guidelines
                ],
            }
        case ScoreGuideline():
            applies = next(s.applies for s in SCENES if s.agent is situation.agent)
            return {"applies": question.guideline.uid in applies}
        case InferToolCalls():
            case = next(c for c in TOOL_CASES if c.talk == situation.history)
            empty = dict.fromkeys(p.name for p in question.tool.parameters)
            calls: list[JsonObject] = [
                empty | {name: claimed(value) for name, value in call.items()}
                for call in case.calls
            ]
            if case.decision is DecisionState.CANNOT_RUN:
                calls = [empty]
            return {"because": "So.", "decision": case.decision.value, "calls": calls}
        case ReadConfirmation():
            said = next(c for c in CONFIRMATION_CASES if c.talk == situation.history)
            quote = customer_messages(said.talk)[0][1]
            answers = [
                {"call": f"C{number}", "quote": quote, "other": "", "answer": answer}
                for number, answer in enumerate(said.answers, start=1)
            ]
            return {"answers": answers, "also": "and this?" if said.also else ""}
        case _:
            raise AssertionError(question.name)


def claimed(value: Any) -> JsonObject:
    return {"value": value, "source": "customer", "evidence": str(value)}


def down(kind: ModelErrorKind = ModelErrorKind.UNREACHABLE) -> ModelError:
    return ModelError("Cannot reach it.", kind=kind, retryable=True)


async def told_by(model: ChatModel, **options: Any) -> list[Answered | Ended]:
    return [each async for each in check(model, **options)]


async def report_of(model: ChatModel, **options: Any) -> Report:
    return report(await told_by(model, **options))


def row_of(found: Report, kind: Kind, batch_size: int = 1, style: str = "reasoned") -> Row:
    setting = Setting(kind=kind, batch_size=batch_size, style=JudgingStyle(style))
    return next(row for row in found.rows if row.setting == setting)


# --- the labelled set


def test_the_set_holds_what_it_should() -> None:
    judgements = [(s, g) for s in SCENES for g in s.agent.guidelines]
    assert len(judgements) == 48
    assert 12 <= sum(len(scene.applies) for scene in SCENES) <= 24
    for scene in SCENES:
        assert scene.applies <= {g.uid for g in scene.agent.guidelines}
    assert len(TOOL_CASES) >= 12
    assert len(CONFIRMATION_CASES) >= 10
    decisions = {case.decision for case in TOOL_CASES}
    assert decisions >= {DecisionState.NEEDS_TO_RUN, DecisionState.CANNOT_RUN}
    assert {answer for case in CONFIRMATION_CASES for answer in case.answers} == {
        "confirmed",
        "declined",
        "changed",
        "unanswered",
    }


def test_guidelines_are_asked_about_in_batches_of_1_4_and_12_and_scored() -> None:
    sizes = {
        (setting.style, setting.batch_size): [len(query.failed) for query in queries]
        for setting, queries in plan().items()
        if setting.kind is Kind.GUIDELINES
    }
    assert sizes == {
        (JudgingStyle.REASONED, 1): [1] * 48,
        (JudgingStyle.REASONED, 4): [4] * 12,
        (JudgingStyle.REASONED, 12): [12] * 4,
        (JudgingStyle.SCORED, 1): [1] * 48,
    }


# --- right and wrong


async def test_who_answers_as_the_set_expects_is_right_everywhere_and_asked_in_the_largest_batches() -> (
    None
):
    model = Answering(label_set)
    found = await report_of(model)
    assert [(row.right, row.cases) for row in found.rows] == [
        (48, 48),
        (48, 48),
        (48, 48),
        (48, 48),
        (len(TOOL_CASES), len(TOOL_CASES)),
        (len(CONFIRMATION_CASES), len(CONFIRMATION_CASES)),
    ]
    assert all(not row.wrong for row in found.rows)
    assert found.proposal is not None
    assert (found.proposal.style, found.proposal.batch_size) == (JudgingStyle.REASONED, 12)
    assert "48 of 48 right" in found.proposal.because
    assert not found.proposal.warning
    assert model.asked == sum(row.questions for row in found.rows)
    assert row_of(found, Kind.GUIDELINES, 12).prompt_tokens == 40


async def test_saying_yes_to_everything_matches_too_many_and_misses_none() -> None:
    def yes(request: ModelRequest) -> JsonObject:
        answer = label_set(request)
        if isinstance(request.question, ScoreGuideline):
            return {"applies": False}
        for judgement in answer.get("judgements", ()):
            judgement["applies"] = True
        return answer

    found = await report_of(Answering(yes))
    should = sum(len(scene.applies) for scene in SCENES)
    always = row_of(found, Kind.GUIDELINES, 4)
    assert (always.right, always.missed, always.overmatched) == (should, 0, 48 - should)
    never = row_of(found, Kind.GUIDELINES, style="scored")
    assert (never.right, never.missed, never.overmatched) == (48 - should, should, 0)
    wrong = never.wrong[0]
    assert (wrong.expected, wrong.got) == ("applies", "does not apply")
    assert wrong.said
    assert found.proposal is not None
    assert found.proposal.style is JudgingStyle.SCORED
    assert "larger model" in found.proposal.warning


async def test_a_probability_decides_and_is_kept() -> None:
    found = await report_of(Answering(label_set, probability=0.7))
    scored = row_of(found, Kind.GUIDELINES, style="scored")
    assert scored.scores == 48
    assert scored.overmatched == 48 - sum(len(scene.applies) for scene in SCENES)
    assert {finding.score for finding in scored.wrong} == {0.7}


async def test_a_guideline_that_the_answer_leaves_out_is_wrong_and_one_that_it_invents_is_ignored() -> (
    None
):
    def sloppy(request: ModelRequest) -> JsonObject:
        answer = label_set(request)
        if isinstance(request.question, MatchGuidelines) and len(request.question.guidelines) > 1:
            answer["judgements"][0]["guideline"] = "G99"
        return answer

    found = await report_of(Answering(sloppy))
    batches = row_of(found, Kind.GUIDELINES, 4)
    assert batches.right == 48 - batches.questions
    assert {finding.got for finding in batches.wrong} == {"no answer"}
    assert row_of(found, Kind.GUIDELINES, 1).right == 48


@pytest.mark.parametrize(
    ("change", "wrong"),
    [
        ({"decision": "NOT_NEEDED"}, "NOT_NEEDED"),
        ({"calls": []}, "CANNOT_RUN"),
    ],
)
async def test_arguments_are_right_only_where_the_engine_would_make_the_same_calls(
    change: JsonObject, wrong: str
) -> None:
    def answer(request: ModelRequest) -> JsonObject:
        return label_set(request) | (change if request.subject == "order_part" else {})

    row = row_of(await report_of(Answering(answer)), Kind.ARGUMENTS)
    assert row.right == row.cases - 1
    (finding,) = row.wrong
    assert finding.about == "order_part"
    assert finding.got.startswith(wrong)
    assert finding.expected == 'NEEDS_TO_RUN {"part":"inner tube","quantity":2}'


async def test_values_are_compared_as_people_compare_them() -> None:
    def answer(request: ModelRequest) -> JsonObject:
        found = label_set(request)
        for call in found.get("calls", ()):
            for argument in filter(None, call.values()):
                if isinstance(argument["value"], str) and "technician" in request.subject:
                    argument["value"] = argument["value"].upper()
        return found

    row = row_of(await report_of(Answering(answer)), Kind.ARGUMENTS)
    assert row.right == row.cases


async def test_a_question_beside_a_confirmation_must_not_get_lost() -> None:
    def answer(request: ModelRequest) -> JsonObject:
        found = label_set(request)
        return found | ({"also": ""} if "also" in found else {})

    row = row_of(await report_of(Answering(answer)), Kind.CONFIRMATIONS)
    asks = sum(case.also for case in CONFIRMATION_CASES)
    assert row.cases - row.right == asks > 0


async def test_a_yes_that_the_customer_did_not_say_is_none() -> None:
    def answer(request: ModelRequest) -> JsonObject:
        found = label_set(request)
        for entry in found.get("answers", ()):
            entry["quote"] = "of course"
        return found

    row = row_of(await report_of(Answering(answer)), Kind.CONFIRMATIONS)
    yes = [case for case in CONFIRMATION_CASES if "confirmed" in case.answers]
    assert row.cases - row.right == len(yes)
    assert all("confirmed" not in finding.got for finding in row.wrong)


async def test_the_built_in_offline_model_passes_the_check_without_an_error() -> None:
    found = await report_of(OfflineModel())
    assert all(row.complete and not row.errors for row in found.rows)
    assert found.proposal is not None


# --- errors and ends


async def test_an_error_makes_all_its_cases_wrong_and_says_why() -> None:
    count = 0

    def answer(request: ModelRequest) -> JsonObject | ModelError:
        nonlocal count
        count += 1
        return down() if count == 50 else label_set(request)

    found = await report_of(Answering(answer))
    row = row_of(found, Kind.GUIDELINES, 4)
    assert (row.errors, row.right, row.complete) == (1, 44, True)
    assert {finding.because for finding in row.wrong} == {"Cannot reach it."}
    assert not found.ended


async def test_a_server_that_is_down_ends_the_check_after_three_questions() -> None:
    model = Answering(lambda _request: down())
    found = await report_of(model)
    assert model.asked == 3
    assert found.ended == "3 questions in a row failed: Cannot reach it."
    assert found.proposal is None


async def test_a_server_that_goes_down_ends_the_check_too() -> None:
    model = Answering(lambda request: label_set(request) if model.asked <= 48 else down())
    found = await report_of(model)
    assert model.asked == 51
    assert "Cannot reach it." in found.ended
    assert found.proposal is not None  # from what was asked to its end
    assert found.proposal.batch_size == 1


@pytest.mark.parametrize("kind", [ModelErrorKind.TRUNCATED, ModelErrorKind.TIMEOUT])
async def test_answers_that_only_one_way_of_asking_spoils_end_that_way_only(
    kind: ModelErrorKind,
) -> None:
    def answer(request: ModelRequest) -> JsonObject | ModelError:
        question = request.question
        if isinstance(question, MatchGuidelines) and len(question.guidelines) == 12:
            return down(kind)
        return label_set(request)

    found = await report_of(Answering(answer))
    given_up = row_of(found, Kind.GUIDELINES, 12)
    assert (given_up.questions, given_up.complete) == (3, False)
    assert "3 questions in a row failed" in given_up.ended
    assert not found.ended
    assert found.proposal is not None
    assert found.proposal.batch_size == 4
    assert row_of(found, Kind.CONFIRMATIONS).complete


async def test_a_check_takes_no_longer_than_it_may() -> None:
    class Hanging(Answering):
        async def stream(self, request: ModelRequest) -> AsyncIterator[Any]:
            if self.asked >= 5:
                await asyncio.Event().wait()
            async for item in super().stream(request):
                yield item

    model = Hanging(label_set)
    told = await told_by(model, longest=0.2)
    assert len(told) == 6
    assert told[-1] == Ended(setting=None, because="It took longer than 0.2 seconds.")


async def test_questions_are_asked_one_after_another_unless_more_are_allowed() -> None:
    one, many = Answering(label_set), Answering(label_set)
    await told_by(one)
    found = await report_of(many, at_once=4)
    assert (one.most, many.most) == (1, 4)
    assert all(row.complete for row in found.rows)


async def test_who_stops_listening_leaves_nothing_running() -> None:
    model = Answering(label_set)
    stream = check(model, at_once=4)
    async for _told in stream:
        break
    await stream.aclose()  # type: ignore[attr-defined]
    assert model.running == 0


# --- the report


async def test_a_report_survives_being_stored() -> None:
    found = await report_of(OfflineModel())
    assert Report.from_json(found.to_json()) == found


def test_a_report_of_nothing_proposes_nothing() -> None:
    empty = report([])
    assert empty.proposal is None
    assert all(row.questions == 0 and row.cases > 0 for row in empty.rows)


def judged(style: str, batch_size: int, right: int, *, seconds: float = 10, **options: Any) -> Row:
    questions = {1: 48, 4: 12, 12: 4}[batch_size]
    setting = Setting(kind=Kind.GUIDELINES, style=JudgingStyle(style), batch_size=batch_size)
    values = {"cases": 48, "total": questions, "asked": 48, "questions": questions}
    return Row(setting=setting, right=right, seconds=seconds, **(values | options))


@pytest.mark.parametrize(
    ("rows", "proposed"),
    [
        # The largest batch that is as right as the best …
        (
            [("reasoned", 1, 46, 9), ("reasoned", 4, 46, 9), ("reasoned", 12, 40, 9)],
            ("reasoned", 4),
        ),
        # … or hardly less …
        (
            [("reasoned", 1, 48, 9), ("reasoned", 4, 48, 9), ("reasoned", 12, 47, 9)],
            ("reasoned", 12),
        ),
        # … but rightness comes first.
        ([("reasoned", 1, 48, 99), ("reasoned", 12, 46, 9)], ("reasoned", 1)),
        ([("reasoned", 1, 40, 9), ("scored", 1, 44, 9)], ("scored", 1)),
        # Of two that ask as often, the faster one.
        ([("reasoned", 1, 44, 90), ("scored", 1, 44, 30)], ("scored", 1)),
        ([("reasoned", 1, 44, 30), ("scored", 1, 44, 90)], ("reasoned", 1)),
    ],
)
def test_rightness_first_then_fewer_questions_then_time(
    rows: list[tuple[str, int, int, float]], proposed: tuple[str, int]
) -> None:
    found = propose(judged(s, b, right, seconds=seconds) for s, b, right, seconds in rows)
    assert found is not None
    assert (found.style.value, found.batch_size) == proposed


def test_what_was_not_asked_to_its_end_is_not_proposed() -> None:
    found = propose([judged("reasoned", 12, 20, asked=24), judged("reasoned", 1, 30)])
    assert found is not None
    assert found.batch_size == 1
