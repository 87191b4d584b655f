"""The relevance index: what scores high, what does not, and that it stays fast and the same."""

import time

import pytest

from engine.relevance import RelevanceIndex, index_of
from engine.spec import Agent, Example, Guideline
from tests.engine.model.offline_talk import one_of, tool, wants


def guideline(uid: str, condition: str, *examples: str, tools: tuple[str, ...] = ()) -> Guideline:
    texts = tuple(Example(text=text) for text in examples)
    return Guideline(uid=uid, condition=condition, examples=texts, tools=tools)


GARDEN = RelevanceIndex(
    [
        guideline("water", "the customer asks how often to water a plant"),
        guideline(
            "pests",
            "the customer has insects or mould on a plant",
            "there are little bugs on my roses",
        ),
        guideline("return", "the customer wants to return a plant or get a refund"),
        guideline("delivery", "the customer asks about the delivery of an order"),
        guideline("hours", "the customer asks about opening hours"),
    ]
)


def first(text: str) -> str:
    return GARDEN.scores(text)[0][0]


@pytest.mark.parametrize(
    ("text", "uid"),
    [
        ("how often should I water my ficus?", "water"),
        ("watering my orchids, how often", "water"),
        ("tiny bugs everywhere on the tomatoes!!", "pests"),
        ("can I get my money back", "return"),
        ("I would like to bring this fern back", "return"),
        ("where's my parcel", "delivery"),
        ("when are you open", "hours"),
        ("what are your openning hourss", "hours"),  # misspelt
        ("OPENING HOURS?", "hours"),
    ],
)
def test_the_guideline_that_is_meant_comes_first(text: str, uid: str) -> None:
    assert first(text) == uid


def test_scores_lie_between_zero_and_one_best_first() -> None:
    scores = [
        score for _, score in GARDEN.scores("return the order and the plant, and a refund please")
    ]

    assert scores == sorted(scores, reverse=True)
    assert all(0 <= score <= 1 for score in scores)


@pytest.mark.parametrize("text", ["", "   ", "?!", "the of and", "\x00", "🙂"])
def test_a_text_that_says_nothing_scores_nothing(text: str) -> None:
    assert all(score < 0.1 for _, score in GARDEN.scores(text))


def test_unrelated_texts_stay_below_the_threshold() -> None:
    for text in ("who wrote Hamlet", "translate this into French", "my laptop is on fire"):
        assert all(score < GARDEN.threshold for _, score in GARDEN.scores(text)), text


def test_rare_words_weigh_more_than_common_ones() -> None:
    index = RelevanceIndex(
        [
            guideline(f"g{n}", f"the customer asks about the {word} order")
            for n, word in enumerate(("late", "broken", "cancelled", "wrapped"))
        ]
    )

    ranked = index.scores("my order is wrapped")

    assert ranked[0][0] == "g3"
    assert ranked[0][1] > 1.5 * ranked[1][1]


def test_an_alternative_of_a_condition_is_enough() -> None:
    index = RelevanceIndex(
        [guideline("g", "the customer asks about invoices, payment terms or tax certificates")]
    )

    assert dict(index.scores("I need a tax certificate"))["g"] >= index.threshold


def test_a_counter_example_lowers_its_guideline() -> None:
    condition = "the customer asks about the price of seeds"
    text = "what is the price of the book about seeds"
    counter = Example(text="the price of the book about seeds", matches=False)
    plain = RelevanceIndex([Guideline(uid="g", condition=condition)])
    taught = RelevanceIndex([Guideline(uid="g", condition=condition, examples=(counter,))])

    assert dict(taught.scores(text))["g"] < 0.5 * dict(plain.scores(text))["g"]


def test_what_a_tool_lets_choose_from_speaks_for_its_guideline() -> None:
    visit = guideline("visit", "the patient wants an appointment", tools=("slots",))
    slots = tool(
        "slots", "Find free appointments", wants("field", one_of("cardiology", "dermatology"))
    )

    assert dict(RelevanceIndex([visit]).scores("dermatology please"))["visit"] < 0.15
    assert dict(RelevanceIndex([visit], [slots]).scores("dermatology please"))["visit"] > 0.2


def test_fitting_words_are_those_of_the_message() -> None:
    found = GARDEN.fitting_words("Is there a refund when I return plants?", ["return", "hours"])

    assert found == {"return": ["refund", "return", "plants"], "hours": []}


def test_guidelines_without_a_condition_are_not_scored() -> None:
    index = RelevanceIndex(
        [guideline("always", ""), guideline("tea", "the customer asks about tea")]
    )

    assert [uid for uid, _ in index.scores("tea")] == ["tea"]


def test_other_languages_are_matched_by_their_own_words() -> None:
    index = RelevanceIndex(
        [
            guideline("opening", "der Kunde fragt nach den Öffnungszeiten"),
            guideline("order", "der Kunde möchte eine Bestellung stornieren"),
            guideline("menu", "顾客想看菜单"),
        ]
    )

    assert index.scores("Wie sind Ihre Öffnungszeiten?")[0][0] == "opening"
    assert index.scores("Ich will meine Bestellung stornieren")[0][0] == "order"
    assert index.scores("请给我看菜单")[0][0] == "menu"


def test_an_agents_index_is_built_once_and_anew_after_a_change() -> None:
    one = Agent(slug="a", name="A", guidelines=(guideline("tea", "the customer asks about tea"),))
    same = Agent.from_json(one.to_json())
    changed = Agent(
        slug="a", name="A", guidelines=(guideline("tea", "the customer asks about coffee"),)
    )

    assert index_of(same) is index_of(one)
    assert index_of(changed) is not index_of(one)


def test_disabled_guidelines_are_left_out_of_an_agents_index() -> None:
    off = Guideline(uid="off", condition="the customer asks about tea", enabled=False)

    assert index_of(Agent(slug="a", name="A", guidelines=(off,))).scores("tea?") == []


def test_two_hundred_guidelines_are_scored_without_a_noticeable_delay() -> None:
    index = RelevanceIndex(
        guideline(
            f"g{n}",
            f"the customer asks about product{n} or service{n % 40}",
            f"tell me of thing{n}",
        )
        for n in range(200)
    )
    text = "could you please tell me whether service7 and product11 are still available this week?"
    index.scores(text)

    started = time.perf_counter()
    for _ in range(50):
        index.scores(text)

    assert (time.perf_counter() - started) / 50 < 0.05  # 25 times what it takes on a quiet machine
