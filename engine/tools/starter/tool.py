"""
Tells when a branch of the bank opens and closes, and whether it has a cash desk.
"""

import argparse
import json
from pathlib import Path
from typing import Any, Literal, Optional

from pydantic import BaseModel, Field

BRANCHES = Path(__file__).parent / "data" / "branches.json"

OUTPUT_KEY = "tool_output"


class UserParameters(BaseModel):
    """Set once, when an instance of the tool is made."""

    greeting: Optional[str] = Field(
        default=None, description="A sentence to open every answer with"
    )


class ToolParameters(BaseModel):
    """Given by the agent at each call."""

    city: str = Field(description="The city of the branch, for example Lisbon")
    day: Literal["mon", "tue", "wed", "thu", "fri", "sat", "sun"] = Field(
        description="The day of the week"
    )
    cash_only: bool = Field(default=False, description="Whether the branch must have a cash desk")


def run_tool(config: UserParameters, args: ToolParameters) -> Any:
    branches = json.loads(BRANCHES.read_text(encoding="utf-8"))
    print(f"Looking through {len(branches)} branches")  # before OUTPUT_KEY: this goes to the log
    for branch in branches:
        if branch["city"].casefold() != args.city.strip().casefold():
            continue
        if args.cash_only and not branch["cash_desk"]:
            continue
        opens = branch["opens"].get(args.day)
        return {
            "greeting": config.greeting,
            "city": branch["city"],
            "open": opens is not None,
            "from": opens,
            "to": branch["closes"] if opens else None,
            "cash_desk": branch["cash_desk"],
        }
    return {"open": False, "problem": f"There is no such branch in {args.city}."}


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--user-params", required=True, help="UserParameters as JSON")
    parser.add_argument("--tool-params", required=True, help="ToolParameters as JSON")
    given = parser.parse_args()
    output = run_tool(
        UserParameters(**json.loads(given.user_params)),
        ToolParameters(**json.loads(given.tool_params)),
    )
    print(OUTPUT_KEY, json.dumps(output))
