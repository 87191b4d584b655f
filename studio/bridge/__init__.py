"""Rows ↔ engine values: the only package that knows both shapes."""

from studio.bridge.authored import (
    agent_spec,
    compile_agent,
    compile_tool,
    parameters_from_json,
    parameters_to_json,
)
from studio.bridge.events import event_row, read_event, recorded_events
from studio.bridge.people import customer_view
from studio.bridge.trail import TrailRows, part_key, read_call, read_trail, read_trails

__all__ = [
    "TrailRows",
    "agent_spec",
    "compile_agent",
    "compile_tool",
    "customer_view",
    "event_row",
    "parameters_from_json",
    "parameters_to_json",
    "part_key",
    "read_call",
    "read_event",
    "read_trail",
    "read_trails",
    "recorded_events",
]
