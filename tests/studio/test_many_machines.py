"""The whole product on PostgreSQL and Redis, as on many machines; where both answer on loopback."""

import secrets
import time
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest
import redis

from tests.api_client import client_of
from tests.serving import serving

POSTGRES = "postgres://postgres@127.0.0.1:5432"
REDIS = "redis://127.0.0.1:6379/9"

pytestmark = pytest.mark.timeout(120)


@pytest.fixture
def database() -> Iterator[str]:
    """The URL of a new database."""
    try:
        server = psycopg.connect(f"{POSTGRES}/postgres", autocommit=True, connect_timeout=2)
    except psycopg.OperationalError:
        pytest.skip("no PostgreSQL answers on 127.0.0.1:5432")
    name = f"guideline_studio_test_{secrets.token_hex(4)}"
    with server:
        server.execute(f'CREATE DATABASE "{name}"')
        yield f"{POSTGRES}/{name}"
        server.execute(f'DROP DATABASE "{name}" WITH (FORCE)')


@pytest.fixture
def broker() -> str:
    try:
        redis.Redis.from_url(REDIS, socket_connect_timeout=2).ping()
    except redis.RedisError:
        pytest.skip("no Redis answers on 127.0.0.1:6379")
    return REDIS


def test_turns_run_and_are_replayed_on_postgresql_with_redis(
    database: str, broker: str, tmp_path: Path
) -> None:
    settings = {"DATABASE_URL": database, "CELERY_BROKER_URL": broker}
    with (
        serving(
            "--bootstrap", "--port", "0", var=tmp_path, log=tmp_path / "log", settings=settings
        ) as served,
        client_of(served) as api,
    ):
        session = api.post("/sessions", json={"agent": "harbor-bank"}).json()["id"]

        answer = api.post(
            f"/sessions/{session}/messages?wait=30",
            json={"text": "When does the branch in Lisbon open?"},
        )

        assert answer.status_code == 200, answer.text
        turn = answer.json()
        assert turn["state"] == "FINISHED"
        assert turn["reply"]
        assert not (tmp_path / "studio.sqlite3").exists()
        audit = api.get(f"/sessions/{session}/turns/1").json()
        assert any(match["state"] == "matched" for match in audit["matches"])

        # The record is answered from as it was asked, whatever order the database keeps the keys of results in.
        more = {"text": "And in Hamburg?"}
        assert api.post(f"/sessions/{session}/messages?wait=30", json=more).status_code == 200
        replay = api.post(f"/sessions/{session}/replays", json={"against": "draft"}).json()["id"]
        until = time.monotonic() + 60
        while (found := api.get(f"/replays/{replay}").json())["state"] != "finished":
            assert time.monotonic() < until, found
            time.sleep(0.2)
        assert found["verdicts"] == {"same": 2}, found["turns"]
