"""Packages made on the fly: wheels that hold a line of Python, and sources whose building runs what a test says."""

import base64
import io
import tarfile
import threading
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from http.server import BaseHTTPRequestHandler, SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

BACKEND = """
import os, zipfile

def get_requires_for_build_wheel(config_settings=None):
    return []

def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
{code}
    name = "{module}-1.0-py3-none-any.whl"
    with zipfile.ZipFile(os.path.join(wheel_directory, name), "w") as archive:
        archive.writestr("{module}.py", repr(found))
        for file, text in {information!r}.items():
            archive.writestr("{module}-1.0.dist-info/" + file, text)
    return name
"""


def information(
    name: str, version: str = "1.0", *more: str, tag: str = "py3-none-any"
) -> dict[str, str]:
    """The files that say what a wheel is; `more` are lines of its metadata."""
    metadata = [f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}", *more, ""]
    about = f"Wheel-Version: 1.0\nGenerator: tests\nRoot-Is-Purelib: true\nTag: {tag}\n"
    return {"METADATA": "\n".join(metadata), "WHEEL": about, "RECORD": ""}


def wheel(
    folder: Path,
    name: str,
    version: str = "1.0",
    *,
    code: str = "",
    requires: Sequence[str] = (),
    python: str = "",
    tag: str = "py3-none-any",
    files: Mapping[str, str] | None = None,
) -> Path:
    """A wheel of one module, which has `code` and a VERSION, and of further `files`."""
    more = [f"Requires-Dist: {each}" for each in requires]
    more += [f"Requires-Python: {python}"] if python else []
    about = information(name, version, *more, tag=tag)
    path = folder / f"{name}-{version}-{tag}.whl"
    folder.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr(f"{name}.py", f"VERSION = {version!r}\n{code}\n")
        for file, text in about.items():
            archive.writestr(f"{name}-{version}.dist-info/{file}", text)
        for file, text in (files or {}).items():
            archive.writestr(file, text)
    return path


def source(folder: Path, name: str, code: str) -> Path:
    """A source archive; `code` runs while it is installed, and makes `found`, which is all its module says."""
    indented = "\n".join(f"    {line}" for line in code.splitlines())
    files = {
        "pyproject.toml": (
            "[build-system]\nrequires = []\nbuild-backend = 'backend'\nbackend-path = ['.']\n"
            f"[project]\nname = '{name}'\nversion = '1.0'\n"
        ),
        "backend.py": BACKEND.format(code=indented, module=name, information=information(name)),
        "PKG-INFO": f"Metadata-Version: 2.2\nName: {name}\nVersion: 1.0\n",
    }
    path = folder / f"{name}-1.0.tar.gz"
    folder.mkdir(parents=True, exist_ok=True)
    with tarfile.open(path, "w:gz") as archive:
        for file, text in files.items():
            member = tarfile.TarInfo(f"{name}-1.0/{file}")
            member.size = len(text.encode())
            archive.addfile(member, io.BytesIO(text.encode()))
    return path


class _Hangs(BaseHTTPRequestHandler):
    """Takes each request, and never answers."""

    over: threading.Event

    def do_GET(self) -> None:
        self.over.wait(30)

    def log_message(self, *_arguments: object) -> None:
        pass


class _Index(SimpleHTTPRequestHandler):
    """A folder of wheels as a package index, for who knows the password."""

    password = ""

    def do_GET(self) -> None:
        expected = "Basic " + base64.b64encode(f"user:{self.password}".encode()).decode()
        if self.headers.get("Authorization") != expected:
            self.send_response(401)
            self.send_header("WWW-Authenticate", "Basic")
            self.end_headers()
            return
        if not self.path.startswith("/simple/"):
            super().do_GET()
            return
        name = self.path.split("/")[2].replace("-", "_")
        files = sorted(Path(self.directory).glob(f"{name}-*"))
        if not files:
            self.send_error(404)
            return
        page = "".join(f'<a href="/{file.name}">{file.name}</a>' for file in files).encode()
        self.send_response(200)
        self.send_header("Content-Type", "text/html")
        self.send_header("Content-Length", str(len(page)))
        self.end_headers()
        self.wfile.write(page)

    def log_message(self, *_arguments: object) -> None:
        pass


@contextmanager
def hanging_index() -> Iterator[str]:
    """The address of an index on this machine that never answers."""
    over = threading.Event()
    with _serving(type("Hangs", (_Hangs,), {"over": over})) as address:
        try:
            yield f"http://{address}/simple"
        finally:
            over.set()


@contextmanager
def index(folder: Path, password: str) -> Iterator[str]:
    """The address of an index of the folder's wheels, without the user ("user") and the password it asks for."""
    handler = type("Index", (_Index,), {"password": password})
    with _serving(partial(handler, directory=str(folder))) as address:
        yield f"{address}/simple"


@contextmanager
def _serving(handler: object) -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)  # type: ignore[arg-type]
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    try:
        yield f"127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
