"""The studio's configuration by environment variables: all that there are, read and checked in one place."""

import os
import secrets
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlsplit

import environ
from django.core.exceptions import ImproperlyConfigured

CHECKOUT = Path(__file__).resolve().parent.parent

DATABASE_SCHEMES = frozenset({"sqlite", "postgres", "postgresql", "psql", "pgsql"})
BROKER_SCHEMES = frozenset(
    {"filesystem", "memory", "redis", "rediss", "unix+redis", "amqp", "amqps", "pyamqp"}
)
DEMO_TOOL_MODULES = ("studio.demo.bank",)


class Variable(NamedTuple):
    name: str
    default: str
    meaning: str


VARIABLES = (
    Variable(
        "STUDIO_VAR", "`var/` in the checkout", "Folder of everything the studio stores itself"
    ),
    Variable(
        "DATABASE_URL",
        "SQLite in `STUDIO_VAR`",
        "Database: `postgres://user:password@host:5432/name`, or `sqlite:////folder/file.sqlite3`",
    ),
    Variable(
        "CELERY_BROKER_URL",
        "files in `STUDIO_VAR`",
        "Queue between web and workers: `redis://host:6379/0` or `amqp://user:password@host:5672//`",
    ),
    Variable("STUDIO_WORKER_THREADS", "32", "Turns that one worker process runs at once"),
    Variable("OPENAI_API_KEY", "", "Key of the model endpoint"),
    Variable(
        "OPENAI_BASE_URL", "", "Address of an OpenAI-compatible endpoint, if not OpenAI itself"
    ),
    Variable(
        "STUDIO_MODEL", "", "Name of the model to ask there; without one the offline model answers"
    ),
    Variable(
        "STUDIO_PUBLIC_URL",
        "",
        "Address at which people reach the studio, as `https://studio.example.com`",
    ),
    Variable(
        "STUDIO_ALLOWED_HOSTS",
        "`localhost,127.0.0.1,[::1]`",
        "Further host names the studio answers to, separated by commas",
    ),
    Variable(
        "STUDIO_TRUSTED_ORIGINS",
        "",
        "Further origins (scheme and host) that may send forms, separated by commas",
    ),
    Variable(
        "STUDIO_TRUSTED_PROXIES",
        "`127.0.0.1`",
        "Addresses of proxies that are believed who the client is and whether it came by https, separated by commas",
    ),
    Variable(
        "STUDIO_SECURE_COOKIES",
        "on if the public URL is https",
        "`on`: browsers send cookies over https only",
    ),
    Variable(
        "STUDIO_SECRET_KEY",
        "generated into `STUDIO_VAR`",
        "Signs sessions and encrypts stored secrets; the same on every machine",
    ),
    Variable(
        "STUDIO_TOOL_MODULES",
        "`studio.demo.bank`",
        "Python modules with `@tool` functions, separated by commas; empty for none",
    ),
    Variable(
        "STUDIO_TOOL_BUILD_TIMEOUT",
        "600",
        "Seconds that the packages of an uploaded tool may take to be installed",
    ),
    Variable("STUDIO_DEBUG", "off", "`on`: error pages with details, templates reloaded"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Environment:
    """What the environment says, checked. `database` is a Django database setting without the OPTIONS we add."""

    var: Path
    debug: bool
    secret_key: str = field(repr=False)
    database: Mapping[str, Any] = field(repr=False)
    broker_url: str = field(repr=False)
    worker_threads: int
    public_url: str
    allowed_hosts: tuple[str, ...]
    trusted_origins: tuple[str, ...]
    trusted_proxies: tuple[str, ...]
    secure_cookies: bool
    openai_api_key: str = field(repr=False)
    openai_base_url: str
    model: str
    tool_modules: tuple[str, ...]
    tool_build_timeout: int

    def secrets(self) -> tuple[str, ...]:
        """Values that no log line may show."""
        passwords = (str(self.database.get("PASSWORD", "")), urlsplit(self.broker_url).password)
        values = (self.secret_key, self.openai_api_key, *passwords)
        return tuple(value for value in values if value)


def read(source: Mapping[str, str] = os.environ) -> Environment:
    """Read the environment; `ImproperlyConfigured` names the variable and the remedy."""
    var = _folder(source)
    public_url = _url(source, "STUDIO_PUBLIC_URL")
    public = urlsplit(public_url)
    hosts = ("localhost", "127.0.0.1", "[::1]", *_list(source, "STUDIO_ALLOWED_HOSTS"))
    origins = _list(source, "STUDIO_TRUSTED_ORIGINS")
    if public_url:
        hosts = (*hosts, public.hostname or "")
        origins = (*origins, f"{public.scheme}://{public.netloc}")
    return Environment(
        var=var,
        debug=_switch(source, "STUDIO_DEBUG", default=False),
        secret_key=source.get("STUDIO_SECRET_KEY", "") or _stored_secret(var / "secret_key"),
        database=_database(source.get("DATABASE_URL", ""), var),
        broker_url=_broker_url(source.get("CELERY_BROKER_URL", "") or "filesystem://"),
        worker_threads=_whole_number(source, "STUDIO_WORKER_THREADS", default=32, low=1, high=256),
        public_url=public_url,
        allowed_hosts=hosts,
        trusted_origins=origins,
        trusted_proxies=_list(source, "STUDIO_TRUSTED_PROXIES") or ("127.0.0.1",),
        secure_cookies=_switch(source, "STUDIO_SECURE_COOKIES", default=public.scheme == "https"),
        openai_api_key=source.get("OPENAI_API_KEY", "").strip(),
        openai_base_url=_url(source, "OPENAI_BASE_URL"),
        model=source.get("STUDIO_MODEL", "").strip(),
        tool_modules=_tool_modules(source),
        tool_build_timeout=_whole_number(
            source, "STUDIO_TOOL_BUILD_TIMEOUT", default=600, low=10, high=86_400
        ),
    )


def _folder(source: Mapping[str, str]) -> Path:
    var = Path(source.get("STUDIO_VAR", "") or CHECKOUT / "var").absolute()
    try:
        var.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ImproperlyConfigured(
            f"STUDIO_VAR is {str(var)!r}, which cannot be created ({error.strerror}); "
            "name a folder that the studio may write to."
        ) from error
    return var


def _stored_secret(path: Path) -> str:
    """The key in the file, made by whichever process comes first; the others read what that one wrote."""
    with suppress(FileNotFoundError):
        return _read_secret(path)
    draft = path.with_name(f"{path.name}.{os.getpid()}.{secrets.token_hex(4)}")
    try:
        descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "w", encoding="ascii") as file:
            file.write(secrets.token_urlsafe(50))
        try:
            with suppress(FileExistsError):
                os.link(draft, path)
        finally:
            draft.unlink()
    except OSError as error:
        raise ImproperlyConfigured(
            f"The secret key cannot be stored in {str(path)!r} ({error.strerror}); "
            "make STUDIO_VAR a folder that the studio may write to, or set STUDIO_SECRET_KEY."
        ) from error
    return _read_secret(path)


def _read_secret(path: Path) -> str:
    key = path.read_text(encoding="ascii").strip()
    if not key:
        raise ImproperlyConfigured(
            f"{str(path)!r} is empty; delete it to get a new secret key, or set STUDIO_SECRET_KEY."
        )
    return key


def _database(url: str, var: Path) -> dict[str, Any]:
    if not url:
        return {"ENGINE": "django.db.backends.sqlite3", "NAME": str(var / "studio.sqlite3")}
    scheme = url.partition(":")[0]
    if scheme not in DATABASE_SCHEMES:
        raise ImproperlyConfigured(
            f"DATABASE_URL begins with {scheme!r}; use postgres://user:password@host:5432/name "
            "or sqlite:////folder/file.sqlite3."
        )
    try:
        config: dict[str, Any] = environ.Env.db_url_config(url)
    except ValueError as error:  # a port that is no number, an unclosed bracket
        raise ImproperlyConfigured(
            "DATABASE_URL cannot be read as a URL; write postgres://user:password@host:5432/name, "
            "with special characters of the password percent-encoded."
        ) from error
    name = str(config.get("NAME", ""))
    if scheme == "sqlite" and name in {"", ":memory:"}:
        raise ImproperlyConfigured(
            "DATABASE_URL names a database in memory, which web and worker cannot share; "
            "use sqlite:////folder/file.sqlite3."
        )
    if not name:
        raise ImproperlyConfigured(
            "DATABASE_URL names no database; write postgres://user:password@host:5432/name."
        )
    return config


def _broker_url(url: str) -> str:
    scheme = url.partition(":")[0]
    if scheme not in BROKER_SCHEMES:
        raise ImproperlyConfigured(
            f"CELERY_BROKER_URL begins with {scheme!r}; use redis://host:6379/0, "
            "amqp://user:password@host:5672// or filesystem://."
        )
    return url


def _url(source: Mapping[str, str], name: str) -> str:
    text = source.get(name, "").strip().rstrip("/")
    parts = urlsplit(text)
    if text and (parts.scheme not in {"http", "https"} or not parts.hostname):
        raise ImproperlyConfigured(
            f"{name} is {text!r}; write a whole address, as https://studio.example.com."
        )
    return text


def _list(source: Mapping[str, str], name: str) -> tuple[str, ...]:
    return tuple(part.strip() for part in source.get(name, "").split(",") if part.strip())


def _tool_modules(source: Mapping[str, str]) -> tuple[str, ...]:
    """Set but empty means none, so that a studio can do without the demo's tools."""
    if "STUDIO_TOOL_MODULES" in source:
        return _list(source, "STUDIO_TOOL_MODULES")
    return DEMO_TOOL_MODULES


def _switch(source: Mapping[str, str], name: str, *, default: bool) -> bool:
    text = source.get(name, "").strip().lower()
    if not text:
        return default
    if text in {"1", "on", "true", "yes"}:
        return True
    if text in {"0", "off", "false", "no"}:
        return False
    raise ImproperlyConfigured(f"{name} is {text!r}; write on or off.")


def _whole_number(
    source: Mapping[str, str], name: str, *, default: int, low: int, high: int
) -> int:
    text = source.get(name, "").strip() or str(default)
    if not text.isdecimal() or not low <= int(text) <= high:
        raise ImproperlyConfigured(f"{name} is {text!r}; write a number from {low} to {high}.")
    return int(text)
