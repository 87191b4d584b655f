"""Watching the turns that run in this worker, and those that no worker has."""

import logging
import threading
import time
from contextlib import suppress
from functools import lru_cache

from django.db import close_old_connections
from django.utils import timezone

from studio.models import Turn
from studio.operations.environments import sweep_builds
from studio.operations.instance_versions import sweep_upgrades
from studio.operations.lanes import sweep_batches
from studio.operations.pumping import Pump
from studio.operations.turns import sweep

log = logging.getLogger(__name__)

HEARTBEAT = 1.0  # seconds
STOP_POLL = 0.25
SWEEP = 2.0


class Watch:
    """One thread per worker: heartbeats of its turns, requests to stop them, and the sweeper."""

    def __init__(self) -> None:
        self._running: dict[int, Pump] = {}
        self._lock = threading.Lock()

    def start(self) -> None:
        threading.Thread(target=self._run, name="watch", daemon=True).start()

    def add(self, turn: Turn, pump: Pump) -> None:
        with self._lock:
            self._running[turn.pk] = pump

    def remove(self, turn: Turn) -> None:
        with self._lock:
            self._running.pop(turn.pk, None)

    def _run(self) -> None:
        beaten = swept = 0.0
        while True:
            time.sleep(STOP_POLL)
            now = time.monotonic()
            try:
                self._stop_requested()
                if now - beaten >= HEARTBEAT:
                    self._beat()
                    beaten = now
                if now - swept >= SWEEP:
                    sweep()
                    sweep_builds()
                    sweep_upgrades()
                    sweep_batches()
                    swept = now
            except Exception:
                log.exception("Watching the running turns failed; it is tried again.")
                with suppress(Exception):  # without this thread no turn is heard of any more
                    close_old_connections()
                time.sleep(HEARTBEAT)

    def _pks(self) -> list[int]:
        with self._lock:
            return list(self._running)

    def _beat(self) -> None:
        if pks := self._pks():
            Turn.objects.running().filter(pk__in=pks).update(heartbeat_at=timezone.now())

    def _stop_requested(self) -> None:
        pks = self._pks()
        if not pks:
            return
        asked = Turn.objects.running().filter(pk__in=pks).exclude(stop_reason="")
        for pk in asked.values_list("pk", flat=True):
            with self._lock:
                pump = self._running.get(pk)
            if pump:
                pump.request_stop()


@lru_cache(maxsize=1)
def watch() -> Watch:
    """The watch of this process, running."""
    watch = Watch()
    watch.start()
    return watch
