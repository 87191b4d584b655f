"""Who a simulated customer is, and what they want."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class CustomerBrief:
    """In the words of who tests: `persona` ("a hurried pensioner who never gives numbers at once"), `goal` ("find out
    whether the refund has arrived") and `stop`, when to end ("the agent has named a date, or has said no twice").
    """

    persona: str
    goal: str
    stop: str = ""
