"""Starts the host: `python -I -S -B <this directory> <number of the control socket>`."""

import sys
from pathlib import Path
from types import ModuleType

# The modules beside this one go by the names they have in the engine, without the engine.
_here = Path(__file__).resolve().parent
_engine = ModuleType("engine")
_engine.__path__ = [str(_here.parent)]
sys.modules["engine"] = _engine
sys.path[:] = [entry for entry in sys.path if Path(entry).resolve() != _here]

from engine.sandbox import host  # noqa: E402 - found only from here on

host.serve(int(sys.argv[1]))
