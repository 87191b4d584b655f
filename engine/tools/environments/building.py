"""Filling the folder of an environment: create it, install what is asked for, compile it, try it."""

import shutil
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType

from engine.tools.checking.requirements import decode
from engine.tools.environments.build_faults import explain, needs_source, wants_source
from engine.tools.environments.build_step import BuildError, Ended, Limit, Stage, Told, run
from engine.tools.environments.installers import (
    Configuration,
    base_python,
    configuration,
    installer,
    secrets_in,
)
from engine.tools.environments.needs import REQUIREMENTS, Needs
from engine.tools.isolation import detect, scrubbed_environment, wrap

_NOTHING: Mapping[str, str] = MappingProxyType({})

FILES = "files"  # folder of requirements.txt and what it refers to; stays where editable requirements lead there
PRIVATE = ".build"  # folder of a build from source: its cache; removed at the end

_MARKS_OF_INSTALLING = ("Resolved ", "Prepared ", "Downloading ", "Building ", "Installing ")
_TRY = "import pydantic, sys; print('Python', sys.version.split()[0], 'with pydantic', pydantic.VERSION)"
_LOOK = """
import importlib.machinery, sys
if importlib.machinery.PathFinder.find_spec("pydantic", sys.argv[1:]) is None:
    sys.exit("there is none")
print("Python", sys.version.split()[0], "with pydantic")
"""
_NO_SANDBOX = "That is not done on this machine, which has no bubblewrap to keep it in."
_CREDENTIALS = (
    "That is not done here, because it could read the passwords that this machine's installer "
    "is configured with."
)


def fill(
    needs: Needs,
    place: Path,
    *,
    cache: Path,
    limit: Limit,
    told: Callable[[Told], None],
    held: int,
) -> None:
    """Make the empty folder `place` an environment that serves `needs`; raises BuildError, and may leave anything.

    Foreign code runs only in the sandbox, and never where it could change what others install (their cache) or read
    how this machine installs (passwords): ready-made wheels are installed with the shared cache, and only what has
    none is built, with a cache of its own.
    """
    _Build(needs, place, cache=cache, limit=limit, told=told, held=held).go()


class _Build:
    def __init__(
        self,
        needs: Needs,
        place: Path,
        *,
        cache: Path,
        limit: Limit,
        told: Callable[[Told], None],
        held: int,
    ) -> None:
        self._needs = needs
        self._place = place
        self._installer = installer()
        self._configuration: Configuration = configuration(self._installer.name)
        self._cache = self._configuration.cache or cache
        self._limit = limit
        self._told = told
        self._held = held
        self._stage = Stage.CREATING
        texts = [decode(needs.files[path])[0] for path in needs.included if path in needs.files]
        self._own_secrets = secrets_in("\n".join([needs.requirements, *texts]))

    def go(self) -> None:
        self._enter(Stage.CREATING)
        ended = self._run(self._installer.create(self._place), writable=[self._place])
        if ended.code:
            raise BuildError(explain(ended.output), self._stage)
        self._write()
        made_of = self._made_of()
        self._enter(Stage.RESOLVING)
        self._install()
        if self._made_of() != made_of:
            raise BuildError(
                "A package replaces files that the environment itself is made of; do not ask for it.",
                self._stage,
            )
        self._tidy()
        self._enter(Stage.INSTALLING)
        self._compile()
        self._enter(Stage.CHECKING)
        self._try()

    def _enter(self, stage: Stage) -> None:
        self._stage = stage
        self._told(Told(stage=stage))

    def _write(self) -> None:
        for path, data in {
            **self._needs.files,
            REQUIREMENTS: self._needs.requirements.encode(),
            # Otherwise uv takes its settings from the package's own, or from a project around this folder.
            "uv.toml": b"",
        }.items():
            target = self._place / FILES / path
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(data)

    def _install(self) -> None:
        why = self._why_no_source()
        if not self._needs.source:
            ended = self._run_installer(only_wheels=True)
            if not ended.code:
                return
            if why or not wants_source(ended.output):
                raise BuildError(explain(ended.output, no_source=why), self._stage)
        elif why:
            raise BuildError(needs_source(self._needs.source, why), self._stage)
        self._hear("Not all of it is ready-made: it is built from source, kept apart.")
        ended = self._run_installer(only_wheels=False)
        if ended.code:
            raise BuildError(explain(ended.output), self._stage)

    def _made_of(self) -> list[str | bytes]:
        """What says where the interpreter and the packages are; by this a sandbox is laid out later."""
        return [_content(self._place / name) for name in ("bin", "bin/python", "lib", "pyvenv.cfg")]

    def _tidy(self) -> None:
        """Only what is installed as editable needs its files; addresses with passwords may stand in the others."""
        files = self._place / FILES
        if not self._needs.editable:
            shutil.rmtree(files)
            return
        for path in (REQUIREMENTS, "uv.toml", *self._needs.included):
            # What was built from source could have laid links here that lead elsewhere.
            if (files / path).parent.resolve().is_relative_to(self._place.resolve()):
                (files / path).unlink(missing_ok=True)

    def _why_no_source(self) -> str:
        if not detect().bubblewrap:
            return _NO_SANDBOX
        return _CREDENTIALS if self._configuration.secrets else ""

    def _run_installer(self, *, only_wheels: bool) -> Ended:
        files = self._place / FILES
        wanted = ["-r", str(files / REQUIREMENTS)]
        if "pydantic" not in self._needs.names:
            wanted.append("pydantic")  # no tool runs without it
        private = self._place / PRIVATE
        cache = self._cache if only_wheels else private / "cache"
        temporary = private / "tmp"
        for folder in (cache, temporary):
            folder.mkdir(parents=True, exist_ok=True)
        ended = self._run(
            self._installer.install(self._place, wanted, only_wheels=only_wheels),
            cwd=files,
            readable=[
                *self._configuration.files,
                *(self._configuration.private if only_wheels else ()),
            ],
            writable=[self._place, cache],
            environment={
                **self._configuration.variables,
                "UV_CACHE_DIR": str(cache),
                "PIP_CACHE_DIR": str(cache),
                "TMPDIR": str(temporary),
            },
        )
        shutil.rmtree(private, ignore_errors=True)
        return ended

    def _compile(self) -> None:
        """By the bare interpreter, which runs nothing of what was installed; what does not compile is not ours."""
        command = [str(base_python()), "-I", "-S", "-m", "compileall", "-q", "-j", "0"]
        self._run(
            [*command, str(self._place / "lib")], writable=[self._place], network=False, heard=False
        )

    def _try(self) -> None:
        """In the sandbox by using it; else by looking, since what was installed runs as soon as it is imported."""
        if detect().bubblewrap:
            command = [str(self._place / "bin" / "python"), "-I", "-c", _TRY]
        else:
            found = map(str, self._place.glob("lib/python*/site-packages"))
            command = [str(base_python()), "-I", "-S", "-c", _LOOK, *found]
        ended = self._run(command, readable=[self._place], network=False)
        if ended.code:
            last = ended.output.strip().rpartition("\n")[2]
            raise BuildError(
                f"What was installed cannot be used: importing pydantic failed with {last!r}",
                self._stage,
            )

    def _run(
        self,
        command: Sequence[str],
        *,
        cwd: Path | None = None,
        readable: Sequence[Path] = (),
        writable: Sequence[Path] = (),
        environment: Mapping[str, str] = _NOTHING,
        network: bool = True,
        heard: bool = True,
    ) -> Ended:
        seen = [self._installer.program, base_python(), *readable]
        return run(
            wrap(command, readable=seen, writable=writable, network=network),
            stage=self._stage,
            cwd=cwd or self._place,
            environment=scrubbed_environment(
                **{**environment, "NO_COLOR": "1", "COLUMNS": "10000"}
            ),
            limit=self._limit,
            heard=self._hear if heard else _ignore,
            mask=self._mask,
            held=self._held,
        )

    def _hear(self, line: str) -> None:
        if self._stage is Stage.RESOLVING and line.strip().startswith(_MARKS_OF_INSTALLING):
            self._stage = Stage.INSTALLING
        self._told(Told(stage=self._stage, line=line))

    def _mask(self, text: str) -> str:
        for secret in self._own_secrets:
            text = text.replace(secret, "***")
        return self._configuration.mask(text)


def _content(path: Path) -> str | bytes:
    if path.is_symlink():
        return str(path.readlink())
    return path.read_bytes() if path.is_file() else ""


def _ignore(_line: str) -> None:
    pass
