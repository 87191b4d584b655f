"""Tool templates as files: read from a ZIP or a directory, and written as one. Nothing of them is imported or run."""

import random
import re
import stat
import string
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.resources import files as resources
from pathlib import Path

from engine.tools.checking.rulebook import Issues, PackageError, shown
from engine.tools.packing import workflow_layout
from engine.tools.packing.package_paths import Listing, is_kept
from engine.tools.packing.zip_files import (
    LARGEST_ARCHIVE,
    LARGEST_FILE,
    LARGEST_PACKAGE,
    MEGABYTE,
    PACKAGE_TOO_LARGE,
    file_too_large,
    read_files,
    write_files,
)

__all__ = [
    "LARGEST_ARCHIVE",
    "Archive",
    "Package",
    "PackageError",
    "is_kept",
    "name_of_directory",
    "new_slug",
    "read_archive",
    "read_directory",
    "starter",
    "unpack",
    "write_archive",
    "write_workflow",
]

_MARKS = string.ascii_lowercase + string.digits
_SUFFIX = re.compile(r"_(?=[A-Za-z]*\d)[A-Za-z0-9]{6}\Z")
_COPY = re.compile(r"\s*\(\d+\)\Z")
_ANY = random.SystemRandom()
_NO_TEMPLATE = "There is no tool template: no directory has a tool.py."


@dataclass(frozen=True, slots=True)
class Package:
    """The files of one tool template by their relative POSIX paths, and the name that its directory or ZIP gives it."""

    name: str
    files: Mapping[str, bytes]


@dataclass(frozen=True, slots=True)
class Archive:
    """What a ZIP holds. `workflow` is the name of the workflow template that it is, else empty."""

    packages: tuple[Package, ...]
    workflow: str = ""


def read_archive(data: bytes, *, filename: str = "") -> Archive:
    """The tool templates of an uploaded ZIP; raises PackageError.

    A template's files stand at the root, or in a directory however deep; `filename` names it in the former case.
    Several directories with a tool.py are several templates. A workflow template holds those of its
    studio-data/tool_templates.
    """
    issues = Issues()
    if len(data) > LARGEST_ARCHIVE:
        issues.add(
            "Z-007",
            f"The ZIP has more than {LARGEST_ARCHIVE // MEGABYTE} MB; at most that is taken.",
        )
        issues.refuse()
    files = read_files(data)
    stem = _stem(filename)
    workflow = workflow_layout.read(files, issues)
    if workflow is not None:
        roots = workflow.roots
        if not roots:
            issues.add("T-001", "The workflow template has no tool template.")
    else:
        roots = dict.fromkeys(workflow_layout.template_roots(files), "")
        if not roots:
            issues.add("T-001", _NO_TEMPLATE)
    issues.refuse()
    packages = tuple(
        Package(name or name_of_directory(root.rpartition("/")[2] or stem), _below(files, root))
        for root, name in roots.items()
    )
    return Archive(packages, (workflow.name or name_of_directory(stem)) if workflow else "")


def read_directory(path: Path) -> Package:
    """The template whose files stand in a directory; raises PackageError. Links are refused, never followed."""
    listing = Listing()
    name = name_of_directory(path.resolve().name)
    if not path.is_dir():
        listing.issues.add("T-001", f"There is no directory {shown(str(path))!r}.")
        listing.issues.refuse()
    found = _walk(path, listing)
    listing.close()
    listing.issues.refuse()
    files: dict[str, bytes] = {}
    for kept in sorted(found):
        files[kept] = _read(path / found[kept], kept, listing.issues)
        if sum(map(len, files.values())) > LARGEST_PACKAGE:
            listing.issues.add("Z-007", PACKAGE_TOO_LARGE)
            break
    listing.issues.refuse()
    return Package(name, files)


def _walk(top: Path, listing: Listing) -> dict[str, str]:
    """Kept paths and where each lies below `top`."""
    found: dict[str, str] = {}
    waiting = [""]
    while waiting:
        here = waiting.pop()
        try:
            inside = [(each, each.lstat().st_mode) for each in sorted((top / here).iterdir())]
        except OSError as error:
            listing.issues.add("Z-013", f"{shown(here)!r} cannot be read: {error.strerror}.")
            continue
        for each, mode in inside:
            relative = f"{here}/{each.name}".lstrip("/")
            if not is_kept(relative):
                continue
            if stat.S_ISDIR(mode):
                listing.directory(relative)
                waiting.append(relative)
            elif not stat.S_ISREG(mode):
                listing.issues.add(
                    "Z-005", f"{shown(relative)!r} is a link or no plain file.", path=relative
                )
            elif (kept := listing.file(relative)) is not None:
                found[kept] = relative
    return found


def _read(place: Path, path: str, issues: Issues) -> bytes:
    try:
        with place.open("rb") as file:
            content = file.read(LARGEST_FILE + 1)
    except OSError as error:
        issues.add("Z-013", f"{shown(path)!r} cannot be read: {error.strerror}.", path=path)
        return b""
    if len(content) > LARGEST_FILE:
        issues.add("Z-007", file_too_large(path), path=path)
    return content


def _below(files: Mapping[str, bytes], root: str) -> dict[str, bytes]:
    start = f"{root}/" if root else ""
    return {
        path.removeprefix(start): content
        for path, content in sorted(files.items())
        if path.startswith(start)
    }


def write_archive(files: Mapping[str, bytes]) -> bytes:
    """The ZIP of a package with its files at the root. The same files make the same bytes."""
    return write_files(files)


def write_workflow(name: str, packages: Mapping[str, Package]) -> bytes:
    """A workflow template's ZIP with tool templates only: `packages` by the slug that names their directory."""
    written = {
        f"{workflow_layout.TEMPLATES}/{slug}/{path}": content
        for slug, package in packages.items()
        for path, content in package.files.items()
    }
    names = {slug: package.name for slug, package in packages.items()}
    return write_files({**written, workflow_layout.DOCUMENT: workflow_layout.document(name, names)})


def starter() -> bytes:
    """The ZIP of a small template that runs as it is, to begin one's own from."""
    top = resources("engine.tools").joinpath("starter")
    waiting = [("", top)]
    files: dict[str, bytes] = {}
    while waiting:
        here, place = waiting.pop()
        for each in place.iterdir():
            path = f"{here}{each.name}"
            if each.is_dir():
                waiting.append((f"{path}/", each))
            else:
                files[path] = each.read_bytes()
    return write_files(files)


def unpack(data: bytes, target: Path) -> None:
    """Writes what `write_archive` wrote into a directory that is empty or not there yet.

    Raises PackageError if the bytes are no package, FileExistsError if something is there.
    """
    files = read_files(data)
    target.mkdir(parents=True, exist_ok=True)
    for path, content in files.items():
        place = target / path
        place.parent.mkdir(parents=True, exist_ok=True)
        with place.open("xb") as file:
            file.write(content)


def name_of_directory(text: str) -> str:
    """The name that a directory's or file's name stands for: `json_reader_abc123` → "json reader"."""
    return " ".join(re.sub(r"[_-]", " ", _SUFFIX.sub("", text)).split())


def new_slug(name: str) -> str:
    """The directory of a template when it is written: `{lowercase, spaces → _}_{6 characters}`, another each time."""
    while True:
        suffix = "".join(_ANY.choices(_MARKS, k=6))
        # A suffix with a digit is told from a word of the name when the directory is read again.
        if not suffix.isalpha():
            return f"{'_'.join(name.lower().split())}_{suffix}"


def _stem(filename: str) -> str:
    """A file's name without directories, `.zip`, and the number that a browser appends to a second download."""
    name = re.split(r"[/\\]", filename)[-1]
    return _COPY.sub("", name[:-4] if name.lower().endswith(".zip") else name)
