"""The scenario's tool as a module that the product loads."""

from tests.bench.scenario import fetch_balance

__all__ = ["fetch_balance"]
