"""The `get_datetime` tool: the current moment where the customer is.

Reference: "get_datetime" in the tools page of protovoice.
"""

import difflib
import os
from datetime import UTC, datetime
from functools import lru_cache
from typing import Annotated
from zoneinfo import ZoneInfo, available_timezones

from engine.canonical import JsonObject
from engine.errors import ToolError, ToolErrorKind, ToolFailure
from engine.tools.base import ToolContext
from engine.tools.function import tool
from engine.tools.parameters import ToolParameterOptions


@tool
def get_datetime(
    context: ToolContext,
    timezone: Annotated[
        str | None,
        ToolParameterOptions(
            description="An IANA time zone, if another place than the customer's is asked about",
            examples=("Europe/Berlin", "America/New_York"),
            display_name="time zone",
        ),
    ] = None,
) -> JsonObject:
    """Tells the current date, time and weekday where the customer is, or in a named time zone."""
    zone = named_zone(timezone) if timezone and timezone.strip() else default_zone(context)
    now = current_time().astimezone(zone)
    return {
        "iso": now.isoformat(timespec="seconds"),
        "date": now.date().isoformat(),
        "time": f"{now:%H:%M}",
        "weekday": f"{now:%A}",
        "timezone": zone.key,
        "text": f"It is {now:%H:%M} on {now:%A}, {now.day} {now:%B} {now.year} ({zone.key}).",
    }


def current_time() -> datetime:
    """Now, in UTC."""
    return datetime.now(UTC)


def named_zone(name: str) -> ZoneInfo:
    """The IANA zone of that name, in any case and with blanks for underscores; raises ToolFailure with a suggestion."""
    wanted = name.strip().replace(" ", "_").casefold()
    known = _zones()
    if wanted in known:
        return ZoneInfo(known[wanted])
    likely = _suggestions(wanted)
    hint = f"; did you mean {' or '.join(likely)}?" if likely else ", such as Europe/Berlin"
    reason = f"{name[:60]!r} is not the name of a time zone{hint}"
    raise ToolFailure(ToolError(kind=ToolErrorKind.EXCEPTION, public=reason, detail=reason))


def default_zone(context: ToolContext) -> ZoneInfo:
    """The customer's zone (variable `timezone`), else the agent's (plugin data), else the server's, else UTC.

    One that is not the name of a zone is passed over: a mistyped profile must not keep people from the time.
    """
    server = os.environ.get("TZ", "").removeprefix(":")
    for name in (context.variables.get("timezone"), context.plugin_data.get("timezone"), server):
        key = (
            _zones().get(name.strip().replace(" ", "_").casefold())
            if isinstance(name, str)
            else None
        )
        if key:
            return ZoneInfo(key)
    return ZoneInfo("UTC")


def _suggestions(wanted: str) -> list[str]:
    zones = _zones()
    city = wanted.rpartition("/")[2]
    same_city = sorted(key for folded, key in zones.items() if folded.rpartition("/")[2] == city)
    close = difflib.get_close_matches(wanted, zones, n=2, cutoff=0.75)
    return same_city[:2] or [zones[folded] for folded in close]


@lru_cache(maxsize=1)
def _zones() -> dict[str, str]:
    return {key.casefold(): key for key in available_timezones()}
