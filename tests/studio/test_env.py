"""The configuration that `studio/env.py` reads: what is accepted, what is refused, and in which words."""

import stat
from pathlib import Path
from typing import Any

import pytest
from django.core.exceptions import ImproperlyConfigured

from studio import env


def read(var: Path, **variables: str) -> env.Environment:
    return env.read({"STUDIO_VAR": str(var), **variables})


def test_without_any_variable_everything_is_kept_in_one_folder(tmp_path: Path) -> None:
    environment = read(tmp_path / "new" / "var")
    assert environment.var.is_dir()
    assert environment.database["NAME"] == str(tmp_path / "new" / "var" / "studio.sqlite3")
    assert environment.broker_url.startswith("filesystem://")
    assert environment.worker_threads == 32
    assert not environment.debug
    assert not environment.secure_cookies


def test_the_secret_key_is_made_once_and_for_nobody_else_to_read(tmp_path: Path) -> None:
    first, second = read(tmp_path), read(tmp_path)
    assert len(first.secret_key) >= 50
    assert first.secret_key == second.secret_key
    assert [path.name for path in tmp_path.iterdir()] == ["secret_key"]
    assert stat.S_IMODE((tmp_path / "secret_key").stat().st_mode) == 0o600


def test_a_given_secret_key_is_not_stored(tmp_path: Path) -> None:
    assert read(tmp_path, STUDIO_SECRET_KEY="$x" * 20).secret_key == "$x" * 20
    assert list(tmp_path.iterdir()) == []


def test_a_database_elsewhere_is_named_by_one_address(tmp_path: Path) -> None:
    database = read(tmp_path, DATABASE_URL="postgres://anna:p%40ss@db:5433/studio").database
    assert database["ENGINE"] == "django.db.backends.postgresql"
    assert (database["USER"], database["PASSWORD"]) == ("anna", "p@ss")
    assert (database["HOST"], database["PORT"], database["NAME"]) == ("db", 5433, "studio")


def test_the_public_address_admits_its_host_and_origin_and_secures_the_cookies(
    tmp_path: Path,
) -> None:
    environment = read(tmp_path, STUDIO_PUBLIC_URL="https://studio.example.com:8443/")
    assert environment.public_url == "https://studio.example.com:8443"
    assert "studio.example.com" in environment.allowed_hosts
    assert environment.trusted_origins == ("https://studio.example.com:8443",)
    assert environment.secure_cookies


def test_hosts_and_origins_are_added_to_the_loopback_ones(tmp_path: Path) -> None:
    environment = read(
        tmp_path,
        STUDIO_ALLOWED_HOSTS="a.example, b.example",
        STUDIO_TRUSTED_ORIGINS="https://a.example",
    )
    assert environment.allowed_hosts == (
        "localhost",
        "127.0.0.1",
        "[::1]",
        "a.example",
        "b.example",
    )
    assert environment.trusted_origins == ("https://a.example",)


def test_cookies_can_be_left_insecure_by_word(tmp_path: Path) -> None:
    environment = read(tmp_path, STUDIO_PUBLIC_URL="https://x.example", STUDIO_SECURE_COOKIES="off")
    assert not environment.secure_cookies


@pytest.mark.parametrize(
    ("variables", "complaint"),
    [
        ({"DATABASE_URL": "mysql://root@db/studio"}, "DATABASE_URL begins with 'mysql'"),
        ({"DATABASE_URL": "studio.sqlite3"}, "DATABASE_URL begins with 'studio.sqlite3'"),
        ({"DATABASE_URL": "sqlite://:memory:"}, "web and worker cannot share"),
        ({"DATABASE_URL": "sqlite://"}, "web and worker cannot share"),
        ({"DATABASE_URL": "postgres://db:port/studio"}, "cannot be read as a URL"),
        ({"DATABASE_URL": "postgres://db"}, "names no database"),
        ({"CELERY_BROKER_URL": "kafka://k"}, "CELERY_BROKER_URL begins with 'kafka'"),
        ({"STUDIO_WORKER_THREADS": "many"}, "STUDIO_WORKER_THREADS is 'many'"),
        ({"STUDIO_WORKER_THREADS": "0"}, "a number from 1 to 256"),
        ({"STUDIO_DEBUG": "perhaps"}, "STUDIO_DEBUG is 'perhaps'; write on or off"),
        ({"STUDIO_PUBLIC_URL": "studio.example.com"}, "STUDIO_PUBLIC_URL is 'studio.example.com'"),
        ({"OPENAI_BASE_URL": "localhost:11434"}, "OPENAI_BASE_URL is 'localhost:11434'"),
    ],
)
def test_what_cannot_be_used_is_refused_by_name_with_the_remedy(
    tmp_path: Path, variables: dict[str, str], complaint: str
) -> None:
    with pytest.raises(ImproperlyConfigured) as refusal:
        read(tmp_path, **variables)
    assert complaint in str(refusal.value)


def test_a_password_in_a_refused_address_is_not_repeated(tmp_path: Path) -> None:
    with pytest.raises(ImproperlyConfigured) as refusal:
        read(tmp_path, DATABASE_URL="postgres://anna:hunter2@db:port/studio")
    assert "hunter2" not in str(refusal.value)


def test_a_folder_that_cannot_be_made_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(ImproperlyConfigured, match="cannot be created"):
        read(tmp_path / "file" / "var")


def test_an_emptied_secret_key_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "secret_key").touch()
    with pytest.raises(ImproperlyConfigured, match="is empty; delete it"):
        read(tmp_path)


def test_no_secret_shows_where_the_configuration_is_printed(tmp_path: Path) -> None:
    environment = read(
        tmp_path,
        STUDIO_SECRET_KEY="first-secret",
        OPENAI_API_KEY="second-secret",
        DATABASE_URL="postgres://u:third-secret@db/studio",
        CELERY_BROKER_URL="redis://:fourth-secret@queue:6379/0",
    )
    assert not any(secret in repr(environment) for secret in environment.secrets())
    assert set(environment.secrets()) == {
        "first-secret",
        "second-secret",
        "third-secret",
        "fourth-secret",
    }


def test_every_variable_that_is_read_is_documented_and_the_other_way_round(tmp_path: Path) -> None:
    asked = set()

    class Recording(dict[str, str]):
        def get(self, key: str, default: Any = None) -> Any:
            asked.add(key)
            return super().get(key, default)

        def __contains__(self, key: object) -> bool:
            asked.add(key)
            return super().__contains__(key)

    env.read(Recording(STUDIO_VAR=str(tmp_path)))
    assert asked == {variable.name for variable in env.VARIABLES}
