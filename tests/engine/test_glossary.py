"""An agent's terms: told in every prompt, and read in what the customer says by whatever name."""

from datetime import UTC, datetime
from typing import Any

import pytest

from engine import prompts
from engine.glossary import Glossary
from engine.guessing import likely_tools
from engine.model.base import ComposeReply, InferToolCalls, MatchGuidelines, Situation
from engine.model.offline import OfflineModel
from engine.prompts.about import about
from engine.relevance import RelevanceIndex
from engine.spec import Agent, Term
from engine.testing import entries, play, scripted_kit
from engine.trail import GuidelineMatch, MatchState
from tests.engine.agents import agent, guideline, history, parameter, tool, turn_of


def term(name: str, *synonyms: str, means: str = "so") -> Term:
    return Term(uid=name, name=name, description=means, synonyms=synonyms)


SAVINGS = term("savings account", "savings", "nest egg", "Tagesgeld")
CARD = term("card", "plastic", "visa")


class TestThePrompt:
    def test_an_agent_without_tone_and_terms_is_told_as_before(self) -> None:
        spec = Agent(slug="a", name="Library", description="lends books")
        assert about(spec) == '{"agent": "Library", "described as": "lends books"}\n'

    def test_tone_and_terms_follow_each_term_on_a_line_of_its_own(self) -> None:
        spec = agent(tone="warm and brief", terms=(SAVINGS, term("float", means="cash at hand")))
        assert about(spec).splitlines() == [
            '{"agent": "Library", "described as": "", "tone": "warm and brief"}',
            "Words that it uses, and what they mean:",
            '{"term": "savings account", "means": "so", "also called": ["savings", "nest egg", "Tagesgeld"]}',
            '{"term": "float", "means": "cash at hand"}',
        ]

    def test_matching_arguments_and_reply_are_all_told(self) -> None:
        spec = agent(
            guideline("a", "asks", "do", tools=("t",)),
            tools=[tool("t", parameter("p"))],
            tone="warm and brief",
            terms=(SAVINGS,),
        )
        situation = Situation(agent=spec, history=history("Hi"), turn=1)
        asked: list[Any] = [
            MatchGuidelines(situation=situation, guidelines=spec.guidelines),
            InferToolCalls(situation=situation, tool=spec.tools[0], guidelines=spec.guidelines),
            ComposeReply(situation=situation, guidelines=spec.guidelines),
        ]
        for question in asked:
            # Before the conversation, so that turns keep sharing the beginning of their prompts.
            assert about(spec) in prompts.build(question).messages[0].content


class TestReading:
    @pytest.mark.parametrize(
        ("text", "read"),
        [
            ("my nest egg, please", "my savings account, please"),
            ("My Nest  Egg", "My savings account"),
            ("two nest-eggs", "two savings account"),
            ("the savings account and my savings", "the savings account and my savings account"),
            ("TAGESGELD?", "savings account?"),
            ("a nesting egg", "a nesting egg"),
            ("lifesavings", "lifesavings"),
            ("savings accounts", "savings accounts"),
        ],
    )
    def test_other_words_are_read_as_the_name(self, text: str, read: str) -> None:
        assert Glossary((SAVINGS,)).read(text).text == read

    def test_it_remembers_what_stood_there(self) -> None:
        reading = Glossary((SAVINGS,)).read("an account or a nest egg")
        assert reading.said == {"savings": "nest egg"}

    def test_what_two_terms_are_called_is_left_as_it_is(self) -> None:
        both = Glossary((term("checking", "account"), term("login", "account")))
        assert both.read("my account").text == "my account"

    def test_a_term_is_not_read_as_another_that_is_also_called_so(self) -> None:
        assert Glossary((term("visa"), CARD)).read("my visa").text == "my visa"

    @pytest.mark.parametrize(
        "name", ["", "  ", "(", "a|b", "\\", "{x}", ".*", "口座", "x" * 10_000]
    )
    def test_no_name_or_synonym_breaks_it(self, name: str) -> None:
        assert Glossary((term(name, "other"),)).read("nothing at all").text == "nothing at all"
        assert Glossary((term("thing", name),)).read("some (text)").text == "some (text)"

    def test_scripts_without_spaces_are_read_too(self) -> None:
        assert Glossary((term("account", "口座"),)).read("口座を").text == "accountを"


class TestRelevance:
    def test_a_condition_with_the_name_is_found_by_the_synonym_and_the_other_way_round(
        self,
    ) -> None:
        guidelines = (
            guideline("a", "the customer asks about interest on the savings account"),
            guideline("b", "the customer lost their plastic"),
            guideline("c", "the customer wants a loan"),
        )
        index = RelevanceIndex(guidelines, terms=(SAVINGS, CARD))
        assert index.scores("What does my Tagesgeld earn?")[0][0] == "a"
        assert index.scores("My card is gone")[0][0] == "b"
        without = RelevanceIndex(guidelines)
        assert dict(without.scores("What does my Tagesgeld earn?"))["a"] < without.threshold

    def test_the_words_that_fit_are_those_the_customer_said(self) -> None:
        guidelines = (guideline("a", "the customer asks about the savings account"),)
        index = RelevanceIndex(guidelines, terms=(SAVINGS,))
        assert index.fitting_words("What about my nest egg?", ["a"]) == {"a": ["nest egg"]}

    def test_a_tool_is_likely_by_a_synonym_too(self) -> None:
        spec = agent(
            guideline("a", "asks for the savings account", "look", tools=("look",)),
            guideline("b", "asks for a loan", "lend"),
            tools=[tool("look", parameter("p"), description="Looks.")],
            terms=(SAVINGS,),
        )
        assert [t.name for t, _ in likely_tools(turn_of(spec, "Tagesgeld?"))] == ["look"]


class TestOfflineModel:
    async def matched(self, spec: Agent, text: str) -> dict[str, str]:
        """Uid of what matched → because."""
        model = OfflineModel(lambda: datetime(2026, 1, 5, tzinfo=UTC))
        emitted = await play(turn_of(spec, text), scripted_kit(model))
        return {
            match.guideline: match.because
            for match in entries(emitted, GuidelineMatch)
            if match.state is MatchState.MATCHED
        }

    async def test_a_message_with_a_synonym_matches_and_the_reason_quotes_the_message(self) -> None:
        conditions = {
            "a": "the customer asks for the balance of the savings account",
            "b": "the customer lost their card",
        }
        guidelines = [guideline(uid, text, "help") for uid, text in conditions.items()]
        spec = agent(*guidelines, terms=(SAVINGS, CARD))
        found = await self.matched(spec, "What is the balance of my nest egg?")
        assert list(found) == ["a"]
        assert "nest egg" in found["a"]
        assert list(await self.matched(spec, "I lost my plastic")) == ["b"]

    async def test_a_named_thing_counts_as_named_by_its_synonym(self) -> None:
        spec = agent(
            guideline("a", "the customer asks for a payment without naming the card", "ask which"),
            terms=(CARD,),
        )
        assert list(await self.matched(spec, "I want to make a payment")) == ["a"]
        assert await self.matched(spec, "I want to make a payment with my visa") == {}
