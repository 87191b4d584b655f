"""The queue that needs no server: messages are files in a folder that web and worker share.

Celery's own filesystem transport creates a message under its final name and fills it afterwards; a consumer that looks
in between takes it empty, loses it, and stops the worker. Here a message is in the queue whole or not at all, exactly
one consumer takes it, and the oldest comes first. What a killed worker held is gone; the database knows it.
"""

import os
import time
from pathlib import Path
from queue import Empty
from typing import Any
from uuid import uuid4

from kombu.transport import filesystem, virtual
from kombu.utils.json import dumps, loads

LONGEST_WAIT = 0.2  # seconds
COARSEST_CLOCK = 100_000_000  # nanoseconds


class Channel(filesystem.Channel):
    # Each process declares the one queue itself; a table of queues in a file would be one more file to race for.
    supports_fanout = False
    get_table: Any = virtual.Channel.get_table

    def _put(self, queue: str, message: Any, **kwargs: Any) -> None:  # type: ignore[override]  # noqa: ARG002
        file = Path(self.data_folder_out, f"{time.time_ns():020}_{uuid4().hex}.{queue}.msg")
        draft = file.with_suffix(".part")
        draft.write_text(dumps(message), encoding="utf-8")
        draft.rename(file)

    # When the folder last changed before it was found without messages; a worker looks fifty times a second.
    _empty_since = 0

    def _get(self, queue: str, timeout: float | None = None) -> Any:  # noqa: ARG002 (kombu's)
        changed = os.stat(self.data_folder_in).st_mtime_ns  # noqa: PTH116 (as below)
        if changed == self._empty_since:
            raise Empty
        names = os.listdir(self.data_folder_in)  # noqa: PTH208 (no Path for each of many looks)
        ending = f".{queue}.msg"
        waiting = sorted(name for name in names if name.endswith(ending))
        # A file system's clock is coarse: a message may have come after the look and within the same tick.
        if not waiting and time.time_ns() - changed > COARSEST_CLOCK:
            self._empty_since = changed
        folder = Path(self.data_folder_in)
        for name in waiting:
            taken = folder / f"{name}.taken"
            try:
                (folder / name).rename(taken)
            except FileNotFoundError:
                continue  # another consumer was faster
            payload = taken.read_text(encoding="utf-8")
            taken.unlink()
            return loads(payload)
        raise Empty


class Transport(filesystem.Transport):
    Channel = Channel

    def establish_connection(self) -> Any:
        options: Any = self.client and self.client.transport_options
        Path(options["data_folder_in"]).mkdir(parents=True, exist_ok=True)
        return super().establish_connection()

    def drain_events(self, connection: Any, timeout: float | None = None) -> None:  # type: ignore[override]
        # A worker looks whether it should stop only between two of these.
        super().drain_events(connection, timeout=min(timeout or LONGEST_WAIT, LONGEST_WAIT))
