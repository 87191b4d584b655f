"""Paths inside a package: which are kept, which are refused, and which are in each other's way."""

import re
import unicodedata

from engine.tools.checking.rulebook import Issues, shown

MOST_FILES = 1_000
DEEPEST = 12
"""Names in a path, the file's own among them."""
LONGEST_NAME = 255
LONGEST_PATH = 500
"""Bytes as UTF-8, of one name and of a whole path."""

_NOT_KEPT = frozenset(
    {
        *(".venv", "__pycache__", ".requirements_hash.txt"),
        *(".git", ".hg", ".svn", ".mypy_cache", ".pytest_cache", ".ruff_cache"),
        *("__MACOSX", ".DS_Store", "Thumbs.db", "desktop.ini"),
    }
)
_DRIVE = re.compile(r"[A-Za-z]:")


def is_kept(path: str) -> bool:
    """Does a relative POSIX path belong to a package? Environments, caches and what systems leave behind do not."""
    names = path.split("/")
    return not (
        any(name in _NOT_KEPT or name.startswith("._") for name in names)
        or names[-1].endswith((".pyc", ".pyo"))
    )


class Listing:
    """The paths of a package as they are read. Whatever is wrong with them is in `issues`."""

    def __init__(self) -> None:
        self.issues = Issues()
        self._files: dict[str, str] = {}
        self._directories: dict[str, str] = {}
        self._count = 0

    def directory(self, path: str) -> None:
        names = self._names(path)
        if names:
            self._enter(names)

    def file(self, path: str) -> str | None:
        """The path under which the file is kept; None if it is left out or refused."""
        names = self._names(path)
        if not names:
            return None
        self._count += 1
        *parents, _ = names
        kept = "/".join(names)
        key = _key(kept)
        if key in self._files:
            also = "" if self._files[key] == kept else f", also written {shown(self._files[key])!r}"
            self.issues.add("Z-010", f"{shown(kept)!r} is in the package twice{also}.", path=kept)
            return None
        self._files[key] = kept
        self._enter(parents)
        return kept

    def close(self) -> None:
        """What only all paths together tell: too many, or a file where a directory is."""
        if self._count > MOST_FILES:
            self.issues.add("Z-006", too_many(f"{self._count:,} files"))
        for key in self._files.keys() & self._directories.keys():
            self.issues.add(
                "Z-010",
                f"{shown(self._files[key])!r} is a file and a directory.",
                path=self._files[key],
            )

    def _enter(self, names: list[str]) -> None:
        """Takes note of a directory and of those that it lies in."""
        while names:
            path = "/".join(names)
            key = _key(path)
            if key in self._directories:
                return
            self._directories[key] = path
            names = names[:-1]

    def _names(self, path: str) -> list[str]:
        """The names a path consists of; nothing if it is left out or refused."""
        refused = _refused(path)
        names = [name for name in path.split("/") if name not in ("", ".")]
        if refused is None and is_kept("/".join(names)):
            refused = _unusable(names)
        elif refused is None:
            return []
        if refused is None:
            return names
        code, message = refused
        self.issues.add(code, message, path=path)
        return []


def _refused(path: str) -> tuple[str, str] | None:
    """What is never passed over, not even in a path that would be left out."""
    if path.startswith("/") or _DRIVE.match(path):
        return "Z-004", f"{shown(path)!r} is absolute; pack the files relative to their directory."
    if "\\" in path:
        return "Z-004", f"{shown(path)!r} has a backslash; write directories with “/”."
    if ".." in path.split("/"):
        return "Z-003", f"{shown(path)!r} leaves the package by “..”; remove it."
    return None


def _unusable(names: list[str]) -> tuple[str, str] | None:
    path = "/".join(names)
    if not path.isprintable():
        return (
            "Z-011",
            f"{shown(path)!r} has a character that a file name must not have; rename it.",
        )
    sizes = [len(name.encode()) for name in names]
    if max(sizes, default=0) > LONGEST_NAME or sum(sizes) + len(sizes) > LONGEST_PATH:
        return "Z-011", f"The path {shown(path)!r} is too long; shorten it."
    if len(names) > DEEPEST:
        return (
            "Z-009",
            f"{shown(path)!r} is nested {len(names)} levels deep; at most {DEEPEST} are taken.",
        )
    return None


def too_many(count: str) -> str:
    return (
        f"There are {count}; a package has at most {MOST_FILES:,} "
        "(.venv and __pycache__ need not be packed)."
    )


def _key(path: str) -> str:
    """Equal for paths that some file system takes for the same."""
    return unicodedata.normalize("NFC", path).casefold()
