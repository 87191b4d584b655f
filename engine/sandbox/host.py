"""The warm process of one tool: it has imported what most tools import, and forks a process for each call.

It runs none of the tool's code, and of the tool's environment only pydantic, so that what it forks is as new. It ends,
with everything it forked, when the studio's end of the control socket is closed, whatever closed it.
"""

import gc
import importlib
import json
import os
import resource
import select
import signal
import socket
import sys
import tempfile
import traceback
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path

from engine.sandbox import leftovers, processes, supervisor, system, wire
from engine.sandbox.values import Ground, Setup, Verdict

_WARM = (
    "argparse",
    "datetime",
    "enum",
    "json",
    "pathlib",
    "re",
    "typing",
    "traceback",
    "linecache",
)
_LONGEST = 1 << 16  # bytes of a message on the control socket
_LOOK = 1000  # milliseconds between two looks at which calls ended
_LAST_PATIENCE = 5.0  # seconds for what still runs to end


def serve(control_number: int) -> None:
    """Never returns."""
    control = socket.socket(fileno=control_number)
    setup = Setup.from_json(json.loads(control.recv(_LONGEST)))
    _become_nobody(setup)
    temporary = Path(tempfile.mkdtemp(prefix=f"{setup.mark}-"))
    _warm_up(setup)
    processes.end_all(_LAST_PATIENCE)  # what an import may have started
    ground = Ground(
        setup=setup,
        temporary=temporary,
        kept=frozenset(leftovers.files()),
        own_namespace=_can_have_own_namespace(),
    )
    control.send(json.dumps({"ready": True}).encode())
    try:
        _answer(control, ground)
    except Exception:  # noqa: BLE001 - the studio reads it
        traceback.print_exc()
        sys.stderr.flush()
    finally:
        processes.end_all(_LAST_PATIENCE)
        leftovers.remove(temporary)
        os._exit(0)


def _answer(control: socket.socket, ground: Ground) -> None:
    """Until the control socket is closed."""
    running: set[int] = set()
    poll = select.poll()
    poll.register(control, select.POLLIN)
    while True:
        asked = poll.poll(_LOOK if running else None)
        _reap(running)
        if not asked:
            continue
        message, numbers, _flags, _address = socket.recv_fds(control, 16, 3)
        if not message:
            return
        channel = socket.socket(fileno=numbers[0])
        try:
            child = os.fork()
        except OSError as error:
            note = f"the machine has no process left for it ({error.strerror})"
            channel.send(wire.framed(asdict(Verdict(end="not_started", note=note))))
        else:
            if child == 0:
                control.close()
                supervisor.run(ground, channel, numbers[1:])
            running.add(child)
        channel.close()
        for number in numbers[1:]:
            os.close(number)


def _reap(running: set[int]) -> None:
    with suppress(ChildProcessError):
        while child := os.waitpid(-1, os.WNOHANG)[0]:
            running.discard(child)


def _become_nobody(setup: Setup) -> None:
    """With the limits that hold for each call anyway: what it imports comes from the tool's environment."""
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    memory = setup.bounds.memory + setup.bounds.memory // 2
    for kind, limit in ((resource.RLIMIT_DATA, memory), (resource.RLIMIT_FSIZE, setup.bounds.disk)):
        hard = resource.getrlimit(kind)[1]
        most = limit if hard == resource.RLIM_INFINITY else min(limit, hard)
        resource.setrlimit(kind, (most, most))
    if setup.user:
        os.setgroups([])
        os.setgid(setup.user)
        os.setuid(setup.user)
    elif os.geteuid() == 0:
        system.drop_capabilities()
    system.gain_no_privileges()
    system.set_dumpable(False)
    system.adopt_orphans()
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    os.umask(0o022)


def _warm_up(setup: Setup) -> None:
    for name in _WARM:
        importlib.import_module(name)
    # By the path alone: what *.pth files of the environment run, they run in the process of a call.
    packages = site_packages(setup.environment)
    sys.path += packages
    try:
        pydantic = importlib.import_module("pydantic")
        # A first model loads what pydantic loads late.
        model = pydantic.create_model(
            "Warm", text=(str, pydantic.Field(description="")), numbers=(list[int] | None, None)
        )
        model(**json.loads('{"text": "a", "numbers": [1]}'))
    except Exception:  # noqa: BLE001, S110 - a tool may do without it, or with one that differs
        pass
    sys.path[:] = [entry for entry in sys.path if entry not in packages]
    gc.collect()
    gc.freeze()  # shared with what is forked, and not copied by its garbage collection


def site_packages(environment: str) -> list[str]:
    version = f"python{sys.version_info.major}.{sys.version_info.minor}"
    found = [Path(environment) / lib / version / "site-packages" for lib in ("lib", "lib64")]
    return [str(path) for path in found if path.is_dir()]


def _can_have_own_namespace() -> bool:
    """Tried in a process of its own, which a half success would spoil."""
    child = os.fork()
    if child == 0:
        code = 1
        with suppress(OSError):
            user = os.geteuid()
            system.set_dumpable(True)
            system.own_user_namespace()
            code = int(os.geteuid() != user)
        os._exit(code)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
