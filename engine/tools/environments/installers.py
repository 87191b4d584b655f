"""What installs packages: uv, else pip; as this machine has it configured, with nothing of the studio's in sight."""

import functools
import os
import re
import shutil
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import unquote

MASK = "***"

# What tells an installer and what it is made of where to look, and whom to trust.
_CERTIFICATES = ("SSL_CERT_FILE", "SSL_CERT_DIR", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE")
_PLACES = ("HOME", "XDG_CONFIG_HOME", "XDG_CONFIG_DIRS", "NETRC")
# What would have it install somewhere else, or is for other work than installing.
_NOT_PASSED = re.compile(
    r"UV_(PUBLISH|PYTHON|PROJECT|SYSTEM|WORKING|ENV_FILE|TARGET|CACHE_DIR|NO_CACHE|NO_COLOR).*"
    r"|PIP_(TARGET|PREFIX|ROOT|USER|PYTHON|LOG|REQUIREMENT|EDITABLE|SRC|CACHE_DIR|NO_CACHE).*"
)
_USERINFO = re.compile(r"(?<=://)[^/\s@'\"]+(?=@)")
_SECRET_NAME = re.compile(r".*(PASSWORD|TOKEN|SECRET|_KEY)")
_PATH = re.compile(r"(?:file://)?(/[^\s,;'\"=\[\]]+)")
_NETRC_PASSWORD = re.compile(r"\bpassword\s+(\S+)")


@dataclass(frozen=True, slots=True, kw_only=True)
class Installer:
    """A program that installs: its name ("uv" or "pip"), and for uv where it is."""

    name: str
    program: Path

    def create(self, place: Path) -> list[str]:
        """The command that makes an empty environment of the folder `place`."""
        if self.name == "uv":
            return [
                *(str(self.program), "venv", "--no-project", "--allow-existing"),
                *("--no-python-downloads", "--python", str(base_python()), str(place)),
            ]
        return [str(base_python()), "-I", "-m", "venv", str(place)]

    def install(self, place: Path, wanted: Sequence[str], *, only_wheels: bool) -> list[str]:
        """The command that installs `wanted` (its last arguments) into `place`."""
        wheels = ["--only-binary", ":all:"] if only_wheels else []
        python = place / "bin" / "python"
        if self.name == "uv":
            start = [str(self.program), "pip", "install", "--python", str(python)]
            # Copies share nothing with the cache: what changes one environment changes no other.
            return [*start, "--link-mode", "copy", "--no-python-downloads", *wheels, *wanted]
        # Not as the program itself, which a sandbox would show read-only in the folder that is to be written.
        start = ["/usr/bin/env", str(python), "-I", "-m", "pip", "install"]
        return [*start, "--no-input", "--no-compile", *wheels, *wanted]


@dataclass(frozen=True, slots=True, kw_only=True)
class Configuration:
    """How an installer is configured on this machine.

    `variables` of its environment; `files` and folders it reads for that; `private` files, which are for nobody but
    it; the `secrets` in `variables` and `files`, and those in `private`; its `cache`, where that is set.
    """

    variables: Mapping[str, str]
    files: tuple[Path, ...]
    private: tuple[Path, ...]
    secrets: tuple[str, ...]
    private_secrets: tuple[str, ...]
    cache: Path | None

    def mask(self, text: str) -> str:
        """The text without passwords, those of addresses among them that are not of this configuration."""
        text = _USERINFO.sub(MASK, text)
        for secret in (*self.secrets, *self.private_secrets):
            text = text.replace(secret, MASK)
        return text


def installer() -> Installer:
    """The uv beside this interpreter, else the one on PATH, else the pip that comes with Python."""
    beside = Path(sys.executable).with_name("uv")
    if os.access(beside, os.X_OK):
        return Installer(name="uv", program=beside)
    found = shutil.which("uv")
    if found and _is_program(Path(found)):
        return Installer(name="uv", program=Path(found).resolve())
    return Installer(name="pip", program=base_python())


@functools.cache
def base_python() -> Path:
    """The interpreter that runs this, without the virtual environment around it."""
    return Path(getattr(sys, "_base_executable", sys.executable)).resolve()


def configuration(name: str, environ: Mapping[str, str] = os.environ) -> Configuration:
    """How the installer `name` is configured."""
    variables = {
        key: value for key, value in environ.items() if _is_passed(key, f"{name.upper()}_")
    }
    files = [path for path in _configuration_files(environ) if path.is_file()]
    texts = [_read(path) for path in files]
    netrc = Path(environ.get("NETRC") or Path(environ.get("HOME") or "/") / ".netrc")
    sources = [*texts, *(value for key, value in variables.items() if key not in _PLACES)]
    named = [Path(found) for text in sources for found in _PATH.findall(text)]
    cache = environ.get(f"{name.upper()}_CACHE_DIR")
    return Configuration(
        variables=variables,
        files=tuple(dict.fromkeys(path for path in (*files, *named) if path.exists())),
        private=(netrc,) if netrc.is_file() else (),
        secrets=_secrets(variables, texts),
        private_secrets=_longest_first(_NETRC_PASSWORD.findall(_read(netrc))),
        cache=Path(cache).absolute() if cache else None,
    )


def _is_passed(key: str, prefix: str) -> bool:
    if key.startswith(prefix):
        return not _NOT_PASSED.fullmatch(key)
    return key in _CERTIFICATES or key in _PLACES or key.upper().endswith("_PROXY")


def secrets_in(text: str) -> tuple[str, ...]:
    """Passwords in the addresses that a text names, as written and as meant."""
    found: set[str] = set()
    for userinfo in _USERINFO.findall(text):
        user, colon, password = userinfo.partition(":")
        secret = password if colon else user  # an address with one part has a token there
        found |= {secret, unquote(secret), userinfo}
    return _longest_first(found)


def _secrets(variables: Mapping[str, str], texts: Iterable[str]) -> tuple[str, ...]:
    found = {value for key, value in variables.items() if _SECRET_NAME.fullmatch(key)}
    for text in (*texts, *variables.values()):
        found |= set(secrets_in(text))
    return _longest_first(found)


def _longest_first(found: Iterable[str]) -> tuple[str, ...]:
    return tuple(sorted({each for each in found if len(each) > 2}, key=len, reverse=True))


def _configuration_files(environ: Mapping[str, str]) -> list[Path]:
    home = Path(environ.get("HOME") or "/")
    config = Path(environ.get("XDG_CONFIG_HOME") or home / ".config")
    system = [
        Path(each) for each in (environ.get("XDG_CONFIG_DIRS") or "/etc/xdg").split(":") if each
    ]
    named = [environ[name] for name in ("UV_CONFIG_FILE", "PIP_CONFIG_FILE") if environ.get(name)]
    return [
        *(Path(each) for each in named),
        *(folder / "uv" / "uv.toml" for folder in [config, *system, Path("/etc")]),
        *(folder / "pip" / "pip.conf" for folder in [config, *system]),
        *(Path("/etc/pip.conf"), home / ".pip" / "pip.conf"),
    ]


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""


def _is_program(path: Path) -> bool:
    """Not a script that looks for the real one elsewhere, which a sandbox does not show."""
    with path.open("rb") as file:
        return file.read(2) != b"#!"
