"""
Opens a case about a complaint or a problem, and gives the customer its reference number.
"""

import argparse
import hashlib
import hmac
import json
import os
from datetime import datetime, timezone
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, Field


class UserParameters(BaseModel):
    """Set once, when the tool is configured."""

    signing_key: str = Field(
        min_length=16, description="Signs reference numbers, so that nobody can make one up"
    )
    prefix: str = Field(default="HB", max_length=8, description="What reference numbers begin with")


class ToolParameters(BaseModel):
    """Given by the agent with every call."""

    topic: Literal["card", "account", "transfer", "branch", "app"] = Field(
        description="What the case is about"
    )


def run_tool(config: UserParameters, args: ToolParameters) -> Any:
    cases = Path(os.environ.get("SESSION_DIRECTORY", ".")) / "cases.jsonl"
    known = cases.read_text(encoding="utf-8").splitlines() if cases.exists() else []
    opened = datetime.now(timezone.utc).replace(microsecond=0).isoformat()
    number = len(known) + 1
    signed = hmac.new(
        config.signing_key.encode(), f"{args.topic} {number} {opened}".encode(), hashlib.sha256
    )
    case = {
        "reference": f"{config.prefix}-{signed.hexdigest()[:8].upper()}",
        "topic": args.topic,
        "opened": opened,
    }
    with cases.open("a", encoding="utf-8") as file:
        file.write(json.dumps(case) + "\n")
    print(f"case {number} of this conversation")
    return case


OUTPUT_KEY = "tool_output"

if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--user-params", required=True)
    parser.add_argument("--tool-params", required=True)
    given = parser.parse_args()

    output = run_tool(
        UserParameters(**json.loads(given.user_params)),
        ToolParameters(**json.loads(given.tool_params)),
    )
    print(OUTPUT_KEY, json.dumps(output))
