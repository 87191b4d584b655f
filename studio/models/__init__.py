"""The rows: what was authored, what was said and done, what was decided."""

from studio.models.access import ApiToken
from studio.models.agent import Agent, AgentVersion
from studio.models.batch import Batch, Cell
from studio.models.connection import ModelCheck, ModelConnection, ModelPrice
from studio.models.guideline import Guideline, GuidelineExample
from studio.models.job import Job, JobState
from studio.models.relationship import Relationship, ToolOverlap
from studio.models.replay import AcceptedChange, Replay, ReplayedTurn, Variant
from studio.models.session import Customer, Event, Flag, Line, Rematch, Session, ToolMock, Turn
from studio.models.suite import Expectation, RunCell, Scenario, Suite, SuiteRun
from studio.models.template import (
    ToolEnvironment,
    ToolInstance,
    ToolTemplate,
    ToolTemplateVersion,
)
from studio.models.tool import Tool, ToolExample, ToolRun
from studio.models.trail import (
    Adherence,
    ChoicesOffered,
    GuidelineMatch,
    ModelCall,
    PromptPart,
    ToolCall,
    ToolDecision,
    ToolInsight,
)
from studio.models.wording import CannedResponse, Term

__all__ = [
    "AcceptedChange",
    "Adherence",
    "Agent",
    "AgentVersion",
    "ApiToken",
    "Batch",
    "CannedResponse",
    "Cell",
    "ChoicesOffered",
    "Customer",
    "Event",
    "Expectation",
    "Flag",
    "Guideline",
    "GuidelineExample",
    "GuidelineMatch",
    "Job",
    "JobState",
    "Line",
    "ModelCall",
    "ModelCheck",
    "ModelConnection",
    "ModelPrice",
    "PromptPart",
    "Relationship",
    "Rematch",
    "Replay",
    "ReplayedTurn",
    "RunCell",
    "Scenario",
    "Session",
    "Suite",
    "SuiteRun",
    "Term",
    "Tool",
    "ToolCall",
    "ToolDecision",
    "ToolEnvironment",
    "ToolExample",
    "ToolInsight",
    "ToolInstance",
    "ToolMock",
    "ToolOverlap",
    "ToolRun",
    "ToolTemplate",
    "ToolTemplateVersion",
    "Turn",
    "Variant",
]
