"""What a version of a tool template holds, as pages show it: its files, and how those of two versions differ."""

from collections.abc import Mapping
from dataclasses import dataclass

from studio.models import ToolTemplateVersion
from studio.operations.templates import package_of

MAX_TEXT = 1_000_000  # bytes; what is longer is named, and not shown
_MOST_COMPARED = 30  # files line by line, of those that differ
_FIRST = ("tool.py", "requirements.txt")


@dataclass(frozen=True, slots=True, kw_only=True)
class File:
    """One file. `text` is None where it is not text, or too long to show; `size` in bytes."""

    path: str
    size: int
    text: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class FileDifference:
    """A file that is not the same in both: `before` or `after` is None where it is not there."""

    path: str
    before: File | None
    after: File | None
    compared: bool  # line by line, where it is text

    @property
    def kind(self) -> str:
        if self.before is None:
            return "added"
        return "removed" if self.after is None else "changed"

    @property
    def texts(self) -> tuple[str, str] | None:
        """Both texts, empty where there is no file; None where they are not compared."""
        before = "" if self.before is None else self.before.text
        after = "" if self.after is None else self.after.text
        comparable = self.compared and before is not None and after is not None
        return (before or "", after or "") if comparable else None


def files_of(version: ToolTemplateVersion) -> tuple[File, ...]:
    """Its files: those that every template has first, the others by name."""
    return tuple(_file(path, data) for path, data in _ordered(_contents(version)))


def file_differences(
    before: ToolTemplateVersion, after: ToolTemplateVersion
) -> tuple[FileDifference, ...]:
    old, new = _contents(before), _contents(after)
    paths = [path for path, _data in _ordered({**old, **new}) if old.get(path) != new.get(path)]
    return tuple(
        FileDifference(
            path=path,
            before=_file(path, old[path]) if path in old else None,
            after=_file(path, new[path]) if path in new else None,
            compared=number < _MOST_COMPARED,
        )
        for number, path in enumerate(paths)
    )


def _contents(version: ToolTemplateVersion) -> Mapping[str, bytes]:
    return package_of(version).files


def _ordered(contents: Mapping[str, bytes]) -> list[tuple[str, bytes]]:
    def place(item: tuple[str, bytes]) -> tuple[int, str]:
        path = item[0]
        return (_FIRST.index(path) if path in _FIRST else len(_FIRST), path)

    return sorted(contents.items(), key=place)


def _file(path: str, data: bytes) -> File:
    return File(path=path, size=len(data), text=_text(data))


def _text(data: bytes) -> str | None:
    if len(data) > MAX_TEXT or b"\x00" in data:
        return None
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError:
        return None
    return text.replace("\r\n", "\n").replace("\r", "\n")
