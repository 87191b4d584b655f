"""
Works out how many months it takes to save up for something on the bank's savings account, with interest.
"""

import argparse
import json
import sys
from pathlib import Path
from typing import Any, Optional

from pydantic import BaseModel, Field

ROOT = Path(__file__).parent
sys.path.append(str(ROOT))

from months import months_until, spoken  # noqa: E402 - the helper module stands beside this file


class UserParameters(BaseModel):
    """Set once, when the tool is configured."""

    currency: str = Field(default="EUR", description="Currency of all amounts")
    longest_years: int = Field(
        default=60, ge=1, le=100, description="Plans that take longer than this are refused"
    )


class ToolParameters(BaseModel):
    """Given by the agent with every call."""

    goal: float = Field(
        gt=0, description="How much the customer wants to have in the end, or what the thing costs"
    )
    monthly: float = Field(gt=0, description="How much money is put aside every month")
    already_saved: Optional[float] = Field(
        default=None, ge=0, description="What lies on the account already at the start"
    )


def run_tool(config: UserParameters, args: ToolParameters) -> Any:
    tiers = json.loads((ROOT / "data" / "interest_tiers.json").read_text(encoding="utf-8"))
    plan = months_until(
        args.goal, args.monthly, args.already_saved or 0, tiers, config.longest_years * 12
    )
    if plan is None:
        return {"possible": False, "reason": f"it would take over {config.longest_years} years"}
    months, interest = plan
    print(f"{months} months with {len(tiers)} interest tiers")
    return {
        "possible": True,
        "months": months,
        "time": spoken(months),
        "interest": round(interest, 2),
        "currency": config.currency,
    }


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
