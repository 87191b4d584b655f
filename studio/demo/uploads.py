"""The demo's two uploaded tools: templates as ZIPs, and an instance of each."""

import secrets
from dataclasses import dataclass
from pathlib import Path

from engine.canonical import JsonObject
from studio.models import Tool
from studio.operations.instances import create_instance
from studio.operations.templates import upload

FOLDER = Path(__file__).with_name("tool_templates")


@dataclass(frozen=True, slots=True, kw_only=True)
class DemoTool:
    template: str
    archive: str
    tool: str


DEMO_TOOLS = (
    DemoTool(template="Savings Plan", archive="savings_plan.zip", tool="plan_savings"),
    DemoTool(template="Case Desk", archive="case_desk.zip", tool="open_case"),
)


def install() -> None:
    """Upload the templates and make their tools; what is there stays. Environments are built in the background."""
    there = set(Tool.objects.values_list("name", flat=True))
    for demo in DEMO_TOOLS:
        if demo.tool not in there:
            data = (FOLDER / demo.archive).read_bytes()
            (version,) = upload(data, filename=demo.archive, by="", name=demo.template).versions
            create_instance(version, name=demo.tool, config=_configuration(demo), by="")


def _configuration(demo: DemoTool) -> JsonObject:
    if demo.tool == "open_case":
        return {"signing_key": secrets.token_urlsafe(24)}
    return {}
