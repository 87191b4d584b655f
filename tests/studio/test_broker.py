"""The queue of files: whole messages, each taken once, in order, however many processes look."""

import multiprocessing
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from multiprocessing.queues import SimpleQueue
from pathlib import Path
from typing import Any

from kombu import Connection, Consumer, Producer, Queue

from studio.broker import Transport

LAST = 10**6
STUDIO = Queue("studio", routing_key="studio")


@contextmanager
def connected(folder: Path) -> Iterator[Connection]:
    options = {
        "data_folder_in": str(folder),
        "data_folder_out": str(folder),
        "polling_interval": 0.005,
    }
    with Connection(hostname="localhost", transport=Transport, transport_options=options) as it:
        yield it


def publish(folder: Path, numbers: range) -> None:
    with connected(folder) as connection:
        producer = Producer(connection, serializer="json")
        for number in numbers:
            producer.publish({"number": number}, exchange="", routing_key="studio")


def consume(folder: Path, count: int, seconds: float = 10.0) -> list[int]:
    """The numbers in the order in which they came, until there are so many, the time is over, or it is LAST."""
    found: list[int] = []

    def on_message(body: dict[str, int], message: Any) -> None:
        found.append(body["number"])
        message.ack()

    with connected(folder) as connection:
        consumer = Consumer(connection, [STUDIO], callbacks=[on_message], accept=["json"])
        deadline = time.monotonic() + seconds
        with consumer:
            while len(found) < count and found[-1:] != [LAST] and time.monotonic() < deadline:
                with suppress(TimeoutError):
                    connection.drain_events(timeout=0.1)
    return found


def consume_into(folder: Path, results: "SimpleQueue[list[int]]") -> None:
    results.put(consume(folder, count=10**9, seconds=40.0))


def test_messages_come_in_the_order_in_which_they_were_sent(tmp_path: Path) -> None:
    publish(tmp_path, range(30))
    assert consume(tmp_path, 30) == list(range(30))
    assert list(tmp_path.iterdir()) == []


def test_of_two_consumers_and_two_producers_at_once_no_message_is_lost_or_taken_twice(
    tmp_path: Path,
) -> None:
    spawn = multiprocessing.get_context("spawn")
    results: SimpleQueue[list[int]] = spawn.SimpleQueue()
    consumers = [spawn.Process(target=consume_into, args=(tmp_path, results)) for _ in range(2)]
    producers = [
        spawn.Process(target=publish, args=(tmp_path, numbers))
        for numbers in (range(1000), range(1000, 2000))
    ]
    for process in consumers + producers:
        process.start()
    for process in producers:
        process.join()
    for _ in consumers:
        publish(tmp_path, range(LAST, LAST + 1))
    taken = results.get() + results.get()
    for process in consumers + producers:
        process.join()
        assert process.exitcode == 0
    assert sorted(taken) == [*range(2000), LAST, LAST]


def test_a_message_that_is_still_being_written_is_left_alone(tmp_path: Path) -> None:
    publish(tmp_path, range(1))
    (message,) = tmp_path.iterdir()
    message.rename(message.with_suffix(".part"))
    assert consume(tmp_path, 1, seconds=0.3) == []
    message.with_suffix(".part").rename(message)
    assert consume(tmp_path, 1) == [0]


def test_what_a_consumer_took_and_did_not_finish_comes_back_when_it_stops(tmp_path: Path) -> None:
    publish(tmp_path, range(1))
    with connected(tmp_path) as connection:
        kept: list[Any] = []
        consumer = Consumer(
            connection, [STUDIO], callbacks=[lambda _body, message: kept.append(message)]
        )
        consumer.accept = {"application/json"}
        with consumer:
            connection.drain_events(timeout=1)
        assert list(tmp_path.iterdir()) == []
    assert consume(tmp_path, 1) == [0]


def test_messages_of_another_queue_are_left_to_its_consumers(tmp_path: Path) -> None:
    with connected(tmp_path) as connection:
        producer = Producer(connection, serializer="json")
        producer.publish({"number": 7}, exchange="", routing_key="another")
    assert consume(tmp_path, 1, seconds=0.2) == []
    assert len(list(tmp_path.iterdir())) == 1
