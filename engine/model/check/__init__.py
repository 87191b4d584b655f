"""The model check: how well a model judges guidelines, reads arguments and confirmations, by a labelled set of our own.

`check` asks the questions that turns ask, `report` counts what came of them and proposes how to ask this model.
"""

from engine.model.check.reporting import Proposal, Report, Row, report, way
from engine.model.check.running import Answered, Ended, Finding, Kind, Setting, check, plan

__all__ = [
    "Answered",
    "Ended",
    "Finding",
    "Kind",
    "Proposal",
    "Report",
    "Row",
    "Setting",
    "check",
    "plan",
    "report",
    "way",
]
