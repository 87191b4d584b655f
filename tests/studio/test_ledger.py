"""The ledger of a turn: what matters first, each state with mark and words, foreign text never as markup."""

from datetime import UTC, datetime, timedelta
from typing import Any, get_args

import pytest
from django.template.loader import render_to_string
from django.urls import reverse

from engine.errors import ToolErrorKind
from engine.events import Answer
from engine.model.base import Question
from engine.spec import RelationKind
from engine.trail import ArgumentSource, CallState, DecisionState, MatchState
from studio.audit import audit
from studio.effects import effect_words
from studio.ledger_markdown import ledger_markdown
from studio.ledger_text import ledger_text
from studio.models import (
    Adherence,
    CannedResponse,
    ChoicesOffered,
    GuidelineMatch,
    Relationship,
    Turn,
)
from studio.operations.agents import mark_changed
from studio.readable_values import readable
from studio.templatetags.studio_audit import (
    answer_chip,
    answer_words,
    decision_chip,
    error_words,
    match_chip,
    provenance_chip,
    question_words,
    seconds,
    turn_chip,
)
from studio.templatetags.studio_markdown import markdown
from studio.views.ledger import Ledger, ledger, round_trips
from tests.studio.conversations import Recorded, make_bank

pytestmark = pytest.mark.django_db

SCRIPT = "<script>alert(1)</script>"
ESCAPED = "&lt;script&gt;alert(1)&lt;/script&gt;"


def drawn(turn: Turn) -> str:
    turn.refresh_from_db()
    record = audit(turn)
    context = {
        "session": turn.session,
        "turn": turn,
        "audit": record,
        "ledger": ledger(record),
        "alone": False,
    }
    return render_to_string("sandbox/_ledger.html", context)


def of(turn: Turn) -> Ledger:
    return ledger(audit(turn))


# --- words


@pytest.mark.parametrize("state", [*MatchState])
def test_every_state_of_a_match_has_its_mark_and_words(state: MatchState) -> None:
    chip = match_chip(state)
    assert 'data-mark="' in chip
    assert "Unknown" not in chip
    assert state.value not in chip.split(">")[1]


@pytest.mark.parametrize("state", [*DecisionState, *CallState, "NOT_RUN"])
def test_every_state_of_a_decision_or_call_has_its_mark_and_words(state: str) -> None:
    chip = decision_chip(state)
    assert 'data-mark="' in chip
    assert "Unknown state" not in chip


@pytest.mark.parametrize("state", Turn.State.values)
def test_every_state_of_a_turn_has_its_mark_and_words(state: str) -> None:
    assert "Unknown" not in turn_chip(state)


def test_states_that_mean_different_things_read_differently() -> None:
    words = [str(decision_chip(state)).split(">")[1] for state in [*DecisionState, *CallState]]
    assert len(set(words)) == len(words)


@pytest.mark.parametrize("kind", [*ToolErrorKind])
def test_every_kind_of_tool_error_is_a_sentence(kind: ToolErrorKind) -> None:
    assert error_words(kind).endswith(".")


@pytest.mark.parametrize("question", get_args(Question))
def test_every_question_to_the_model_is_named_in_words(question: Any) -> None:
    assert " " in question_words(question.name)


def test_questions_that_ask_different_things_read_differently() -> None:
    names = [question.name for question in get_args(Question)]
    assert len({question_words(name) for name in names}) == len(names)


@pytest.mark.parametrize("answer", ["", *Answer])
def test_every_answer_to_a_call_that_waits_has_its_mark_and_words(answer: str) -> None:
    chip = answer_chip(answer)
    assert 'data-mark="' in chip
    assert "Unknown" not in chip
    assert not answer or answer_words(answer) != answer


@pytest.mark.parametrize("source", [*ArgumentSource])
def test_every_source_of_an_argument_has_a_chip(source: ArgumentSource) -> None:
    chip = provenance_chip(
        {"source": source, "evidence": "€ 250", "verified": True, "offset": None}
    )
    assert chip.startswith("<span")
    inferred = "inferred" in chip.split('"')[1]
    assert inferred is (source == ArgumentSource.INFERRED)


def test_a_customers_verified_words_lead_to_their_message() -> None:
    argument = {"source": "customer", "evidence": "€ 250", "verified": True, "offset": 7}
    chip = provenance_chip(argument)
    assert 'href="#event-7"' in chip
    assert "customer: “€ 250”" in chip


def test_words_that_were_not_found_are_shown_in_warning_colour_and_say_so() -> None:
    argument = {"source": "customer", "evidence": "€ 250", "verified": False, "offset": None}
    chip = provenance_chip(argument)
    assert 'class="chip inferred"' in chip
    assert "not verified" in chip
    assert "href" not in chip


@pytest.mark.parametrize(
    ("milliseconds", "words"),
    [(930, "0.93 s"), (12_340, "12.3 s"), (125_000, "2 min 5 s"), (0, ""), (None, "")],
)
def test_durations_read_as_people_say_them(milliseconds: int | None, words: str) -> None:
    assert seconds(milliseconds) == words


# --- values


def test_fields_of_a_result_read_as_rows_without_json() -> None:
    html = readable({"account_name": "checking", "balance": 412.6, "open": True, "note": None})
    assert '<dt dir="auto">account name</dt><dd><bdi>checking</bdi></dd>' in html
    assert "<dd>yes</dd>" in html
    assert "nothing" in html
    assert not set("{}") & set(html)


def test_alike_objects_read_as_a_table_of_which_the_rest_is_folded() -> None:
    html = readable([{"id": n, "name": f"Person {n}"} for n in range(12)])
    assert html.count('<th scope="col">name</th>') == 2
    before, folded = html.split("<details")
    assert "Person 4" in before
    assert "Person 5" not in before
    assert "Person 11" in folded
    assert "7 more" in folded


def test_plain_values_read_as_one_line_and_many_of_them_are_folded() -> None:
    assert readable(["EUR", 2, None, True]) == "<bdi>EUR, 2, nothing, yes</bdi>"
    html = readable(list(range(2_000)))
    before, folded = html.split("<details")
    assert before == "<bdi>0, 1, 2, 3, 4</bdi>…"
    assert "all 2,000 items" in folded
    assert "1998, 1999" in folded


def test_a_long_text_is_folded_and_still_whole() -> None:
    html = readable("word " * 1_000)
    assert html.count("word") > 1_000
    assert "<details" in html


def test_fifty_kilobytes_of_json_show_as_text_in_a_fold() -> None:
    value = {"rows": [{"text": SCRIPT, "n": n} for n in range(1_500)]}
    html = readable(value)
    assert "<script" not in html
    assert "&lt;script&gt;" in html
    assert html.startswith('<span class="none">')
    assert len(html) < 200_000


def test_deep_values_end_in_text_and_not_in_an_error() -> None:
    value: Any = "deep"
    for _ in range(50):
        value = {"in": [value]}
    assert "deep" in readable(value)


@pytest.mark.parametrize(
    "value",
    [SCRIPT, [SCRIPT], {SCRIPT: SCRIPT}, [{SCRIPT: SCRIPT, "b": 1}, {SCRIPT: SCRIPT, "b": 2}]],
)
def test_markup_in_a_value_shows_as_text(value: Any) -> None:
    html = readable(value)
    assert "<script" not in html
    assert ESCAPED in html


# --- Markdown


def test_an_agents_markdown_becomes_html() -> None:
    assert "<strong>€ 412.60</strong>" in markdown("You have **€ 412.60**.")
    assert "<table>" in markdown("|a|b|\n|-|-|\n|1|2|")


@pytest.mark.parametrize(
    "text",
    [
        SCRIPT,
        "<img src=x onerror=alert(1)>",
        "[x](javascript:alert(1))",
        "![x](https://elsewhere.example/?secret)",
        "[x](data:text/html,<script>alert(1)</script>)",
        '<a href="#" onclick="alert(1)">x</a>',
    ],
)
def test_an_agents_markup_never_becomes_markup(text: str) -> None:
    html = markdown(text)
    for forbidden in ("<script", "<img", '<a href="#"', 'href="javascript', 'href="data'):
        assert forbidden not in html


# --- the order of the ledger


def test_what_matched_with_tools_comes_first_then_dropped_then_silent() -> None:
    told = Recorded(make_bank("asks a", "asks b", "asks c", "asks d"))
    turn = told.turn()
    told.match(turn, 3, "not_matched", "Nothing about d.")
    told.match(turn, 2, "dropped", "Another has priority.", dropped_by=told.uid(0))
    told.match(turn, 1, "matched", "It is b.")
    told.match(turn, 0, "matched", "It is a.")
    told.decide(turn, "NOT_NEEDED", because="Known.")
    rows = of(turn)
    assert [row.condition for row in rows.matched] == ["asks a", "asks b"]
    assert [row.condition for row in rows.stopped] == ["asks c"]
    assert [row.condition for row in rows.silent] == ["asks d"]
    html = drawn(turn)
    places = [html.index(words) for words in ("asks a", "asks b", "asks c", "asks d")]
    assert places == sorted(places)
    assert "2 of 4 guidelines matched" in html


def test_the_last_match_of_a_guideline_counts() -> None:
    told = Recorded()
    turn = told.turn()
    told.match(turn, 0, "not_matched", "Not yet.")
    told.match(turn, 0, "matched", "The tool says so.", iteration=2)
    rows = of(turn)
    assert [row.because for row in rows.matched] == ["The tool says so."]
    assert rows.silent == ()
    assert "after a tool" in drawn(turn)


@pytest.mark.parametrize(
    ("decision", "call", "words"),
    [
        ("NEEDS_TO_RUN", "done", "Ran"),
        ("NEEDS_TO_RUN", "failed", "Failed"),
        ("NEEDS_TO_RUN", "unknown", "Outcome unknown"),
        ("NEEDS_TO_RUN", "cancelled", "Stopped"),
        ("NEEDS_TO_RUN", None, "Did not run"),
        ("DATA_ALREADY_IN_CONTEXT", "done", "Already known"),
        ("CANNOT_RUN", None, "Cannot run"),
        ("NOT_NEEDED", None, "Not needed"),
        ("AWAITING_CONFIRMATION", None, "Awaiting confirmation"),
    ],
)
def test_a_decision_reads_as_what_became_of_it(decision: str, call: str | None, words: str) -> None:
    told = Recorded()
    turn = told.turn()
    told.match(turn, 0)
    if call is not None:
        told.call(turn, "c1", call)
    told.decide(turn, decision, because="Because of that.", call="c1" if call else "")
    html = drawn(turn)
    assert f">{words}</span>" in html
    assert "Because of that." in html


def test_a_decision_of_a_running_turn_still_needs_to_run() -> None:
    told = Recorded()
    turn = told.turn(state="RUNNING")
    told.match(turn, 0)
    told.decide(turn, "NEEDS_TO_RUN")
    assert [tool.state for tool in of(turn).matched[0].tools] == ["NEEDS_TO_RUN"]


def test_arguments_stand_with_their_provenance() -> None:
    told = Recorded()
    turn = told.turn("Send € 250 to Leo")
    told.match(turn, 0)
    arguments = [
        {
            "name": "amount",
            "value": 250,
            "source": "customer",
            "evidence": "€ 250",
            "verified": True,
            "offset": 1,
        },
        {
            "name": "payee",
            "value": "leo-41",
            "source": "tool_result",
            "evidence": "list_payees → items[2]",
            "verified": True,
        },
        {"name": "urgent", "value": False, "source": "default", "evidence": "", "verified": False},
        {"name": "account", "value": "x", "source": "inferred", "evidence": "", "verified": False},
    ]
    told.decide(turn, "AWAITING_CONFIRMATION", arguments=arguments)
    html = drawn(turn)
    assert 'href="#event-1"' in html
    assert "customer: “€ 250”" in html
    assert "list_payees → items[2]" in html
    assert ">default<" in html
    assert 'class="chip inferred"' in html
    assert "<bdi>250</bdi>" in html


def test_what_is_missing_or_invalid_is_named_with_its_choices() -> None:
    told = Recorded()
    turn = told.turn()
    told.match(turn, 0)
    told.insight(turn, "date", label="date of transfer", reason="only the customer can give it")
    told.insight(
        turn, "currency", "invalid", label="currency", value="Thaler", choices=["EUR", "USD"]
    )
    told.decide(turn, "CANNOT_RUN", missing=["date", "colour"], invalid=["currency"])
    html = drawn(turn)
    assert "<b>date of transfer</b> is missing — only the customer can give it" in html
    assert "<b>colour</b> is missing" in html
    assert "Thaler" in html
    assert "EUR, USD" in html


def offer(told: Recorded, turn: Turn, because: str = "", **choices: list[Any]) -> None:
    ChoicesOffered.objects.create(
        turn=turn, tool="get_balance", choices=choices, because=because, started_at=told.now
    )


def test_what_a_tool_offered_stands_once_with_its_first_decision() -> None:
    told = Recorded(make_bank("asks a", "asks b"))
    turn = told.turn()
    for place in range(2):
        told.match(turn, place)
        told.decide(turn, "NEEDS_TO_RUN", place=place)
    offer(told, turn, account=["giro", SCRIPT], month=[])
    html = drawn(turn)
    assert html.count("Offered for <b>account</b>: <bdi>giro, " + ESCAPED) == 1
    assert "Offered for <b>month</b>: nothing" in html
    text = ledger_text(audit(turn))
    assert text.count("offered for account: giro; <script>") == 1
    assert audit(turn)["choices"] == [
        {
            "tool": "get_balance",
            "tool_description": "Balance.",
            "choices": {"account": ["giro", SCRIPT], "month": []},
            "because": "",
        }
    ]


@pytest.mark.parametrize(
    ("decided", "times"), [("No choices in time.", 1), ("The service is down.", 2)]
)
def test_why_nothing_was_offered_is_said_once(decided: str, times: int) -> None:
    told = Recorded()
    turn = told.turn()
    told.match(turn, 0)
    told.decide(turn, "CANNOT_RUN", because=decided)
    offer(told, turn, because="No choices in time.")
    assert drawn(turn).count("No choices in time.") == 1
    said = ledger_markdown(audit(turn))
    assert said.count("No choices in time.") + said.count("The service is down.") == times


def test_a_failed_call_shows_its_error_with_the_details_folded() -> None:
    told = Recorded()
    turn = told.turn()
    told.match(turn, 0)
    error = {
        "kind": "timeout",
        "public": "The balance is not there in time.",
        "detail": f"{SCRIPT} at core",
    }
    told.call(turn, "c1", "failed", error=error)
    told.decide(turn, "NEEDS_TO_RUN", call="c1")
    html = drawn(turn)
    assert "It did not answer before its deadline." in html
    assert "The balance is not there in time." in html
    assert html.index("<details") < html.index(f"{ESCAPED} at core")


def test_a_call_that_no_decision_names_is_shown_all_the_same() -> None:
    told = Recorded()
    turn = told.turn()
    told.call(turn, "c9", result={"data": {"balance": 77}, "metadata": {}})
    assert [call["uid"] for call in of(turn).other_calls] == ["c9"]
    assert "<bdi>77</bdi>" in drawn(turn)


def test_more_than_five_silent_guidelines_are_folded() -> None:
    told = Recorded(make_bank(*[f"asks {n}" for n in range(9)]))
    turn = told.turn()
    for place in range(9):
        told.match(turn, place, "not_matched", "No.")
    html = drawn(turn)
    before, folded = html.split('<details class="more"')
    assert before.count('class="silent"') == 5
    assert folded.count('class="silent"') == 4
    assert "4 more" in folded


def test_each_guideline_has_an_address_of_its_own() -> None:
    told = Recorded(make_bank("asks a", "asks b"))
    turn = told.turn()
    told.match(turn, 0)
    told.match(turn, 1, "not_matched")
    html = drawn(turn)
    assert html.count(f'id="guideline-{told.uid(0)}"') == 1
    assert html.count(f'id="guideline-{told.uid(1)}"') == 1


def test_the_models_report_on_its_reply_is_labelled_as_its_own() -> None:
    told = Recorded()
    turn = told.turn()
    told.match(turn, 0)
    Adherence.objects.create(
        turn=turn, guideline=told.uid(), follows=False, note="no balance", started_at=told.now
    )
    html = drawn(turn)
    assert "The reply does not follow it" in html
    assert "no balance" in html
    assert "the model’s own report" in html


def test_the_guideline_text_is_that_of_the_turns_version() -> None:
    told = Recorded(make_bank("asks in old words"))
    turn = told.turn()
    told.match(turn, 0)
    told.agent.guidelines.update(condition="asks in new words")
    html = drawn(turn)
    assert "asks in old words" in html
    assert "asks in new words" not in html


def test_a_limit_a_failure_and_its_reference_are_told() -> None:
    told = Recorded()
    turn = told.turn(
        state="FAILED", reference="a3f9c2", error=f"{SCRIPT} refused", limit_reached="3 iterations"
    )
    html = drawn(turn)
    assert "a3f9c2" in html
    assert "3 iterations" in html
    assert f"{ESCAPED} refused" in html


def test_model_calls_are_listed_with_attempts_and_errors() -> None:
    told = Recorded()
    turn = told.turn()
    told.ask_model(turn, "m1", 0, 100, error="rate_limited: HTTP 429", prompt_tokens=1_200)
    told.ask_model(turn, "m2", 120, 300, attempt=2)
    told.ask_model(turn, "m3", 0, 200, question="InferToolCalls", subject="get_balance", used=False)
    html = drawn(turn)
    assert "3 model calls" in html
    assert "1 failed attempt" in html
    assert "attempt 2" in html
    assert "rate_limited: HTTP 429" in html
    assert "not used" in html
    assert "1,200 + 0 tokens" in html
    assert "Judge " not in html  # the prompt comes when it is asked for


def test_round_trips_count_what_ran_one_after_another() -> None:
    start = datetime(2026, 11, 21, tzinfo=UTC)

    def call(begin: int, end: int | None) -> dict[str, Any]:
        ended = None if end is None else start + timedelta(milliseconds=end)
        return {"started_at": start + timedelta(milliseconds=begin), "ended_at": ended}

    assert round_trips([]) == 0
    assert round_trips([call(0, 200), call(0, 190), call(10, 250)]) == 1
    assert round_trips([call(0, 200), call(0, 300), call(200, 400), call(400, 600)]) == 3
    assert round_trips([call(0, 200), call(210, None)]) == 1


def test_markup_scripts_and_right_to_left_text_show_as_text_everywhere() -> None:
    told = Recorded(make_bank(f"asks {SCRIPT}"))
    turn = told.turn()
    told.match(turn, 0, "matched", f"שלום {SCRIPT}")
    arguments = [
        {
            "name": SCRIPT,
            "value": SCRIPT,
            "source": "customer",
            "evidence": SCRIPT,
            "verified": True,
            "offset": 1,
        }
    ]
    told.call(turn, "c1", result={"data": {SCRIPT: SCRIPT}, "metadata": {"x": SCRIPT}})
    told.decide(turn, "NEEDS_TO_RUN", because=SCRIPT, arguments=arguments, call="c1")
    told.decide(turn, "CANNOT_RUN", because=SCRIPT, missing=[SCRIPT])
    told.ask_model(turn, "m1", 0, 10, subject=SCRIPT, error=SCRIPT, model=SCRIPT)
    html = drawn(turn)
    assert "<script" not in html
    assert html.count("&lt;script&gt;") > 10
    assert '<p class="why" dir="auto">שלום' in html


def test_a_turn_that_waits_says_that_rows_will_come() -> None:
    told = Recorded()
    turn = told.turn(state="QUEUED")
    html = drawn(turn)
    assert "Rows appear as they are decided." in html
    assert ">Waiting</span>" in html


def test_an_unknown_state_shows_instead_of_breaking_the_page() -> None:
    told = Recorded()
    turn = told.turn()
    told.match(turn, 0, "entailed")
    told.decide(turn, "POSTPONED")
    assert "Unknown state" in drawn(turn)


# --- what relationships do


@pytest.fixture
def related() -> Recorded:
    """Guidelines 0 to 3; 3 says that 1 or 2 may be meant."""
    told = Recorded(make_bank("a refund is asked for", "the refund exception", "a loan", "which?"))
    relate(told, "disambiguates", 3, 1, 2)
    return told


def relate(told: Recorded, kind: str, source: int, *targets: int) -> None:
    guidelines = list(told.agent.guidelines.order_by("position"))
    row = Relationship.objects.create(agent=told.agent, kind=kind, source=guidelines[source])
    row.targets.set([guidelines[target] for target in targets])
    mark_changed(told.agent.pk)


@pytest.mark.parametrize(
    ("relation", "words"),
    [
        ("has_priority_over", "‘the refund exception’ has priority."),
        ("depends_on_all", "It needs ‘the refund exception’, which is not in force."),
        (
            "depends_on_any",
            "It needs ‘the refund exception’ or another of its kind, and none is in force.",
        ),
        ("alternative_to", "‘the refund exception’ has the higher priority number."),
        ("entails", "It came only with ‘the refund exception’, which was dropped."),
        ("disambiguates", "‘the refund exception’ asks first which is meant."),
        ("", "Dropped by ‘the refund exception’."),
    ],
)
def test_a_dropped_guideline_names_what_dropped_it(
    related: Recorded, relation: str, words: str
) -> None:
    turn = related.turn()
    related.match(turn, 0, "matched", "A refund was asked for.")
    by = {"relation": relation, "dropped_by": related.uid(1)}
    related.match(turn, 0, "dropped", "In other words.", **by)
    (row,) = of(turn).stopped
    assert (row.effect, row.because) == (words, "A refund was asked for.")
    html = drawn(turn)
    assert words in html
    assert f'href="#guideline-{related.uid(1)}"' in html
    assert "A refund was asked for." in html
    assert "In other words." not in html
    printed = ledger_text(audit(turn), width=200)
    assert words in printed
    assert audit(turn)["matches"][1]["effect"] == words


def test_every_kind_of_relationship_has_its_own_words() -> None:
    told = {"guideline": "g", "dropped_by": "x", "added_by": ""}
    words = [effect_words({**told, "relation": kind}, {}, frozenset()) for kind in RelationKind]
    assert len(set(words)) == len(RelationKind)
    assert not [sentence for sentence in words if sentence.startswith("Dropped by")]


def test_a_guideline_that_comes_along_says_with_which(related: Recorded) -> None:
    turn = related.turn()
    related.match(turn, 0, "matched", "So.")
    related.match(turn, 1, "not_matched", "No exception was mentioned.")
    related.match(turn, 1, "matched", "Along.", relation="entails", added_by=related.uid(0))
    assert "Brought along by ‘a refund is asked for’." in drawn(turn)
    assert "No exception was mentioned." in drawn(turn)


def test_a_guideline_that_asks_which_is_meant_names_them(related: Recorded) -> None:
    turn = related.turn()
    related.match(turn, 3, "matched", "It may be either.")
    for place in (1, 2):
        related.match(turn, place, "matched", "Perhaps.")
        by = {"relation": "disambiguates", "dropped_by": related.uid(3)}
        related.match(turn, place, "dropped", "", **by)
    assert "Asks which is meant: ‘the refund exception’ or ‘a loan’." in drawn(turn)
    assert "‘which?’ asks first which is meant." in drawn(turn)


def test_a_guideline_asks_between_all_where_none_of_them_matched(related: Recorded) -> None:
    turn = related.turn()
    related.match(turn, 1, "not_matched", "")
    related.match(turn, 2, "not_matched", "")
    related.match(turn, 3, "matched", "It may be either.")
    assert "Asks which is meant: ‘the refund exception’ or ‘a loan’." in drawn(turn)


def test_a_guideline_that_need_not_ask_says_so(related: Recorded) -> None:
    turn = related.turn()
    related.match(turn, 1, "matched", "Clearly.")
    by = {"relation": "disambiguates", "dropped_by": related.uid(1)}
    related.match(turn, 3, "dropped", "", **by)
    assert "There is nothing to ask: ‘the refund exception’ is meant." in drawn(turn)
    assert "Asks" not in drawn(turn)


# --- scores, checks, and how the reply came about


def test_a_score_stands_beside_a_reason_that_was_asked_for_afterwards() -> None:
    told = Recorded()
    turn = told.turn()
    told.match(turn, 0, "matched", "It is named.", score=0.873, explained_afterwards=True)
    assert "score 0.87" in drawn(turn)
    assert "explained afterwards" in drawn(turn)
    assert "(score 0.87, explained afterwards)" in ledger_text(audit(turn), width=200)


def test_a_checked_reply_says_so_after_how_many_revisions() -> None:
    told = Recorded()
    turn = told.turn()
    told.match(turn, 0)
    reports = [
        (True, False, 1, ""),
        (False, True, 1, "No currency."),
        (True, True, 2, "Put right."),
    ]
    for follows, checked, attempt, note in reports:
        Adherence.objects.create(
            turn=turn,
            guideline=told.uid(),
            follows=follows,
            checked=checked,
            attempt=attempt,
            note=note,
            started_at=told.now,
        )
    html = drawn(turn)
    assert "The reply follows it" in html
    assert "Put right." in html
    assert "checked, after 1 revision" in html
    assert "the model’s own report" not in html
    assert "Checked: the reply follows it. (after 1 revision)" in ledger_text(audit(turn))
    assert [(a["checked"], a["attempt"]) for a in audit(turn)["adherence"]] == [
        (False, 1),
        (True, 1),
        (True, 2),
    ]


@pytest.mark.parametrize(
    ("source", "words"),
    [
        ({"composition": "strict", "responses": ["legal"]}, "A canned response, word for word."),
        ({"composition": "strict", "fits": False}, "No canned response fitted"),
        (
            {"composition": "composited", "responses": ["legal", "c1:1"]},
            "Written in the style of 2 canned responses.",
        ),
    ],
)
def test_the_ledger_says_how_the_reply_came_about(source: dict[str, Any], words: str) -> None:
    told = Recorded()
    CannedResponse.objects.create(agent=told.agent, uid="legal", text="The law says {{ x }}.")
    mark_changed(told.agent.pk)
    turn = told.turn(reply_source=source)
    told.call(turn, "c1", result={"data": 1, "metadata": {}, "canned_responses": [SCRIPT]})
    told.match(turn, 0)
    html = drawn(turn)
    assert words in html
    assert words in ledger_text(audit(turn), width=200)
    for uid in source.get("responses", []):
        assert ("The law says {{ x }}." if uid == "legal" else ESCAPED) in html
    assert SCRIPT not in html


def test_a_reply_that_was_just_written_needs_no_words() -> None:
    told = Recorded()
    turn = told.turn(reply_source={"composition": "fluid"})
    told.match(turn, 0)
    assert "reply-source" not in drawn(turn)


# --- what a result asks for


def test_a_result_says_what_it_asks_for_and_brings_along() -> None:
    told = Recorded()
    turn = told.turn()
    result = {
        "data": {"queue": 3},
        "metadata": {},
        "control": {"mode": "manual", "lifespan": "response"},
        "guidelines": [
            {"condition": "the queue is long", "action": "apologise", "criticality": "high"}
        ],
        "canned_responses": ["Please wait {{ minutes }} minutes."],
        "canned_response_fields": {"minutes": 4},
    }
    told.call(turn, "c1", result=result)
    told.decide(turn, "NEEDS_TO_RUN", call="c1")
    told.match(turn, 0)
    GuidelineMatch.objects.create(
        turn=turn, guideline="c1-1", state="matched", because="3 wait.", started_at=told.now
    )
    html = drawn(turn)
    assert "Used for this reply only, not kept." in html
    assert "It hands the customer over to a person." in html
    assert "Brought 1 guideline for this turn" in html
    assert "Please wait {{ minutes }} minutes." in html
    row = next(row for row in of(turn).matched if row.uid == "c1-1")
    assert (row.condition, row.action, row.given_by) == (
        "the queue is long",
        "apologise",
        "get_balance",
    )
    # It stands in no list of guidelines, so nothing leads there.
    assert reverse("guideline", args=[told.agent.slug, "c1-1"]) not in html
    printed = ledger_text(audit(turn), width=200)
    assert "Used for this reply only, not kept." in printed
    assert "Brought by get_balance, for this turn only." in printed


def test_what_is_asked_of_the_customer_says_why_and_gives_examples() -> None:
    told = Recorded()
    turn = told.turn()
    told.match(turn, 0)
    told.decide(turn, "CANNOT_RUN", missing=["account"], invalid=["day"])
    told.insight(
        turn, "account", label="account", significance="to know which", examples=["A-1", "A-2"]
    )
    told.insight(turn, "day", "invalid", label="day", value="soon", choices=["Monday", "Friday"])
    html = drawn(turn)
    for words in ("to know which", "For example:", "A-1, A-2", "Choices:", "Monday, Friday"):
        assert words in html
    printed = ledger_text(audit(turn), width=200)
    assert "missing: account – to know which (A-1; A-2)" in printed
    assert "invalid: day (Monday; Friday)" in printed
