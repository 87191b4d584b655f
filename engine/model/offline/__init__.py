"""The offline model: no network, no key, the same answer every time; it reads the question, not the prompt."""

from engine.model.offline.model import OfflineModel

__all__ = ["OfflineModel"]
