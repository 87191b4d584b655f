"""Accepting a change: what a replay found is what is wanted, and is expected from now on."""

from engine.canonical import canonical_json, digest
from engine.replaying import Difference


def key_of(difference: Difference) -> str:
    """The same for the same change of the same turn in every replay: what it is about, before and after."""
    return digest(
        canonical_json(
            [
                difference.kind,
                difference.guideline,
                difference.tool,
                difference.parameter,
                difference.arguments,
                difference.before,
                difference.after,
            ]
        )
    )
