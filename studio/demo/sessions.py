"""The demo's first sessions, so that there is something to read, to replay and to keep as a test.

They are really had: by the offline model, with the demo's own tools and customers, on the published version. What they
changed in the bank's books is put back.
"""

from dataclasses import dataclass
from typing import Final

from engine.events import Event, MessageEvent, RecordedEvent, Source
from engine.kit import Models
from engine.model.offline import OfflineModel
from studio import bridge
from studio.demo import data
from studio.models import Agent, AgentVersion, Customer, Session
from studio.operations.rehearsals import Stage, keep_turn, open_rehearsal, remembered, wait_for
from studio.operations.situations import ran_with
from studio.toolbox import tools_for


@dataclass(frozen=True, slots=True, kw_only=True)
class Conversation:
    title: str
    customer: str  # uid
    messages: tuple[str, ...]


CONVERSATIONS: Final = (
    Conversation(
        title="A balance, and where the money went",
        customer="ines-duarte",
        messages=(
            "Hello!",
            "How much money is on my checking account?",
            "And what was paid from it, newest first?",
            "Thanks, bye!",
        ),
    ),
    Conversation(
        title="A transfer, confirmed",
        customer="ines-duarte",
        messages=(
            "Which payees do I have?",
            "I want to send 40 EUR to Ana Costa from my checking account.",
            "Yes, send it.",
        ),
    ),
    Conversation(
        title="A transfer, declined",
        customer="tom-lindqvist",
        messages=(
            "I want to transfer 60 EUR to Mara Lindqvist from checking.",
            "No, do not send it.",
            "How much money is on my checking account?",
        ),
    ),
    Conversation(
        title="A stolen card",
        customer="mira-okafor",
        messages=(
            "My debit card was stolen, please block it.",
            "Yes, block it.",
            "Can I talk to a person, please?",
        ),
    ),
    Conversation(
        title="Rates, fees and a branch",
        customer="tom-lindqvist",
        messages=(
            "What is the exchange rate from EUR to USD?",
            "What does a second card cost?",
            "When is the branch in Lisbon open?",
        ),
    ),
)


def record_sessions(agent: Agent, version: AgentVersion) -> int:
    """Have each conversation once; how many there are. Not to be called inside a transaction: tools run meanwhile."""
    models = Models.same(OfflineModel())
    for conversation in CONVERSATIONS:
        _record(agent, version, conversation, models)
    data.reset()
    return len(CONVERSATIONS)


def _record(
    agent: Agent, version: AgentVersion, conversation: Conversation, models: Models
) -> None:
    customer = Customer.objects.get(uid=conversation.customer)
    session = open_rehearsal(
        agent,
        version,
        Session.Purpose.CHAT,
        title=conversation.title,
        customer=customer,
        tool_mode=Session.ToolMode.LIVE,
    )
    spec = bridge.agent_spec(version)
    stage = Stage(
        agent=spec,
        models=models,
        tools=tools_for(spec.tools),
        variables=customer.variables,
        customer=bridge.customer_view(customer),
        place=str(session.pk),
    )
    history: tuple[RecordedEvent, ...] = ()
    for number, text in enumerate(conversation.messages, start=1):
        said: tuple[Event, ...] = (MessageEvent(source=Source.CUSTOMER, text=text),)
        history += remembered(said, number, after=_last(history))
        played = wait_for(stage.play(number, history), lambda: True)
        history += remembered(played.events, number, after=_last(history))
        keep_turn(
            session,
            version,
            said,
            played,
            tool_mode=Session.ToolMode.LIVE,
            ran_with=ran_with(session, models, customer.variables),
        )


def _last(history: tuple[RecordedEvent, ...]) -> int:
    return history[-1].offset if history else 0
