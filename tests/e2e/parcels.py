"""A tool template of the tests: it asks for a parcel, with a key, and takes a while if it is told to."""

import io
import zipfile

TOOL = '''"""Finds out where a parcel is now and when it arrives."""

import argparse
import json
import sys
import time
from typing import Literal, Optional

from pydantic import BaseModel, Field

from depots import depot_of


class UserParameters(BaseModel):
    api_key: str = Field(description="Key of the parcel service")
    country: str = Field(default="NL", description="Country of the depots")


class ToolParameters(BaseModel):
    parcel: str = Field(description="Number of the parcel, such as PX-1234")
    seconds: Optional[float] = Field(default=None, description="How long to take over it")
    trouble: Optional[Literal["talk", "raise"]] = Field(
        default=None, description="What to do with the key that nobody may see"
    )


def run_tool(config: UserParameters, args: ToolParameters):
    time.sleep(args.seconds or 0)
    if args.trouble == "raise":
        raise ValueError(f"refused {config.api_key}")
    if args.trouble == "talk":
        print("with", config.api_key)
        print("and", config.api_key, file=sys.stderr)
        return {"parcel": args.parcel, config.api_key: [f"key={config.api_key}"]}
    return {"parcel": args.parcel, "depot": depot_of(args.parcel), "arrives": "tomorrow"}


OUTPUT_KEY = "tool_output"

if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--user-params", required=True)
    parser.add_argument("--tool-params", required=True)
    given = parser.parse_args()
    config = UserParameters(**json.loads(given.user_params))
    args = ToolParameters(**json.loads(given.tool_params))
    print("looking for", args.parcel, flush=True)
    print(OUTPUT_KEY, json.dumps(run_tool(config, args)))
'''

DEPOTS = '''"""Which depot a parcel lies in, by its number."""


def depot_of(parcel):
    return ["Utrecht", "Tilburg"][len(parcel) % 2]
'''


def archive(files: dict[str, str] | None = None) -> bytes:
    """The ZIP, with these files in place of its own."""
    whole = {"tool.py": TOOL, "depots.py": DEPOTS, "requirements.txt": "pydantic>=2\n"}
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as zipped:
        for path, text in (whole | (files or {})).items():
            zipped.writestr(path, text)
    return buffer.getvalue()
