"""Branches: going on from an earlier turn another way, with everything that was said and decided kept."""

from collections.abc import Callable

import pytest

from engine.canonical import JsonObject
from engine.events import Answer
from engine.kit import Models
from engine.testing import Expected, ScriptedModel, ScriptedTools, infers, matches, replies
from studio.audit import audit
from studio.models import Event, Session, Turn
from studio.operations import running
from studio.operations.branches import (
    BranchRefusedError,
    branch_from,
    branches_of,
    changing_tools,
    regenerate,
    resend,
)
from studio.operations.confirmations import answer_confirmation
from studio.operations.sessions import change_mode
from studio.operations.turns import (
    MessageRefusedError,
    TurnNotRetriableError,
    retry_turn,
    run_turn,
    send_message,
)
from studio.views.conversation import page_of, spend_of
from tests.studio.factories import make_agent, make_guideline, make_session, make_tool

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("unwatched")]

Script = Callable[..., ScriptedModel]


@pytest.fixture
def script(monkeypatch: pytest.MonkeyPatch) -> Script:
    """`script(answers...)`: what the model says in the turns to come."""

    def write(*expected: Expected) -> ScriptedModel:
        model = ScriptedModel(*expected)
        monkeypatch.setattr(running, "models_for", lambda _session: Models.same(model))
        return model

    return write


@pytest.fixture
def session() -> Session:
    agent = make_agent()
    make_guideline(agent, condition="the customer greets", action="greet back")
    return make_session(agent=agent)


def say(session: Session, text: str) -> Turn:
    turn = send_message(session, text=text, enqueue=False)
    assert turn is not None
    return run(turn)


def run(turn: Turn | None) -> Turn:
    assert turn is not None
    run_turn(turn.pk)
    turn.refresh_from_db()
    assert turn.state == "FINISHED", turn.error
    return turn


def talk(session: Session, script: Script, *texts: str) -> None:
    """Each text is answered by "re <text>"."""
    for text in texts:
        script(matches(), replies(f"re {text}"))
        say(session, text)


def told(session: Session) -> list[str]:
    """The messages along the line of the session, in order."""
    session.refresh_from_db()
    events = session.line.events.filter(kind="message").order_by("offset")
    return [str(data["text"]) for data in events.values_list("data", flat=True)]


def test_a_branch_shares_what_came_before_and_goes_on_by_itself(
    session: Session, script: Script
) -> None:
    talk(session, script, "one", "two", "three")

    branch = branch_from(session, 2)
    talk(branch, script, "other")

    assert told(branch) == ["one", "re one", "two", "re two", "other", "re other"]
    assert told(session) == ["one", "re one", "two", "re two", "three", "re three"]
    numbers = branch.line.turns.order_by("number").values_list("number", flat=True)
    assert list(numbers) == [1, 2, 3]
    offsets = list(branch.line.events.order_by("offset").values_list("offset", flat=True))
    assert len(offsets) == len(set(offsets))
    assert branches_of(branch) == branches_of(session) == [session, branch]


def test_the_model_is_told_the_line_of_the_branch_and_nothing_beside_it(
    session: Session, script: Script
) -> None:
    talk(session, script, "one", "two", "three")
    branch = branch_from(session, 1)

    model = script(matches(), replies("fine"))
    say(branch, "other")

    prompts = "".join(message.content for request in model.requests for message in request.messages)
    assert "re one" in prompts
    assert "other" in prompts
    assert "re two" not in prompts
    assert "three" not in prompts


def test_regenerating_answers_the_same_words_in_a_sibling(session: Session, script: Script) -> None:
    talk(session, script, "one", "two")
    script(matches(), replies("better"))

    made = regenerate(session, 2, enqueue=False)
    run(made.turn)

    assert told(made.session) == ["one", "re one", "two", "better"]
    assert told(session) == ["one", "re one", "two", "re two"]


def test_the_first_turn_can_be_regenerated_again_and_again_and_lines_stay_short(
    session: Session, script: Script
) -> None:
    talk(session, script, "one")
    current = session
    for number in range(4):
        script(matches(), replies(f"try {number}"))
        made = regenerate(current, 1, enqueue=False)
        run(made.turn)
        current = made.session

    assert told(current) == ["one", "try 3"]
    assert len(current.ancestry) <= 1
    assert len(branches_of(session)) == 5


def test_a_message_is_edited_and_sent_again(session: Session, script: Script) -> None:
    talk(session, script, "one", "two", "three")
    script(matches(), replies("re deux"))

    made = resend(session, 2, "deux", enqueue=False)
    run(made.turn)

    assert told(made.session) == ["one", "re one", "deux", "re deux"]
    assert told(session)[2:4] == ["two", "re two"]


def test_only_the_chosen_one_of_several_messages_is_edited(
    session: Session, script: Script
) -> None:
    first = send_message(session, text="one", enqueue=False)
    send_message(session, text="two", enqueue=False)
    script(matches(), replies("both"))
    run(first)
    offset = Event.objects.filter(kind="message").order_by("offset").first()
    assert offset is not None
    script(matches(), replies("again"))

    made = resend(session, 1, "uno", offset=offset.offset, enqueue=False)
    run(made.turn)

    assert told(made.session) == ["uno", "two", "again"]


def test_a_branch_of_a_branch_takes_the_turn_from_wherever_it_was_said(
    session: Session, script: Script
) -> None:
    talk(session, script, "one", "two")
    branch = branch_from(session, 1)
    talk(branch, script, "b two", "b three")

    inherited = branch_from(branch, 1)
    own = branch_from(branch, 2)
    talk(inherited, script, "c two")
    talk(own, script, "d three")

    assert told(inherited) == ["one", "re one", "c two", "re c two"]
    assert told(own) == ["one", "re one", "b two", "re b two", "d three", "re d three"]


def test_a_branch_from_before_the_first_turn_is_empty(session: Session, script: Script) -> None:
    talk(session, script, "one")

    branch = branch_from(session, 0)

    assert told(branch) == []
    assert branch.next_turn == 1


def test_what_was_said_outside_of_turns_belongs_to_the_line(
    session: Session, script: Script
) -> None:
    talk(session, script, "one")
    change_mode(session, "manual")
    send_message(session, text="from a person", source="operator")
    change_mode(session, "auto")
    talk(session, script, "two")

    branch = branch_from(session, 1)

    assert told(branch) == ["one", "re one", "from a person"]
    assert branch.mode == "auto"


def test_a_branch_from_manual_mode_is_in_manual_mode(session: Session, script: Script) -> None:
    talk(session, script, "one")
    change_mode(session, "manual")

    assert branch_from(session, 1).mode == "manual"


def test_the_trail_of_an_inherited_turn_is_the_same_row(session: Session, script: Script) -> None:
    talk(session, script, "one", "two")
    branch = branch_from(session, 1)

    (turn,) = branch.line.turns

    assert turn.session == session
    assert audit(turn)["matches"]
    assert [line.turn for line in page_of(branch).lines] == [turn]
    assert spend_of(branch).turns == 1


def test_an_inherited_turn_stays_as_it_is(session: Session, script: Script) -> None:
    talk(session, script, "one")
    Turn.objects.update(state="STOPPED")
    branch_from(session, 1)

    with pytest.raises(TurnNotRetriableError, match="regenerate"):
        retry_turn(Turn.objects.get(), enqueue=False)


def test_a_button_that_was_pressed_is_pressed_again_when_its_turn_is_regenerated(
    script: Script, monkeypatch: pytest.MonkeyPatch
) -> None:
    agent = make_agent()
    tool = make_tool(agent, name="send_money", consequential=True, parameters=[])
    make_guideline(agent, condition="the customer sends money", action="send it", tools=[tool])
    session = make_session(agent=agent)
    ran: list[JsonObject] = []
    tools = ScriptedTools({"send_money": lambda arguments, _context: ran.append(arguments)})
    monkeypatch.setattr(running, "tool_service", lambda: tools, raising=False)
    monkeypatch.setattr(running, "tools_for", lambda _tools: tools, raising=False)
    script(matches("G1"), infers("send_money", {}), replies("Sure?", "G1"))
    say(session, "send it")
    (asked,) = session.events.filter(kind="confirmation.asked")
    script(matches("G1"), replies("Done.", "G1"))
    run(answer_confirmation(session, asked.data["call"], Answer.CONFIRMED, enqueue=False))
    assert len(ran) == 1
    assert changing_tools(session.turns.get(number=2)) == ["send_money"]
    script(matches("G1"), replies("Done again.", "G1"))

    made = regenerate(session, 2, enqueue=False)
    run(made.turn)

    assert len(ran) == 2
    assert told(made.session)[-1] == "Done again."


def test_what_cannot_be_gone_on_from_is_refused_in_words(session: Session, script: Script) -> None:
    talk(session, script, "one")
    waiting = send_message(session, text="two", enqueue=False)

    with pytest.raises(BranchRefusedError, match="no turn 7"):
        branch_from(session, 7)
    with pytest.raises(BranchRefusedError, match="still running"):
        branch_from(session, waiting.number if waiting else 0)
    with pytest.raises(MessageRefusedError, match="empty"):
        resend(session, 1, "  ")
    with pytest.raises(BranchRefusedError, match="no turn 9"):
        regenerate(session, 9)
    assert Session.objects.count() == 1


def test_a_waiting_turn_is_no_reason_to_not_regenerate_an_earlier_one(
    session: Session, script: Script
) -> None:
    talk(session, script, "one")
    send_message(session, text="two", enqueue=False)
    script(matches(), replies("again"))

    run(regenerate(session, 1, enqueue=False).turn)
