"""Where in a ZIP tool templates lie, and what a workflow template says of them."""

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from engine.canonical import is_too_deep
from engine.tools.checking.rulebook import Issues, shown

DOCUMENT = "workflow_template.json"
TEMPLATES = "studio-data/tool_templates"
LONGEST_WORKFLOW_NAME = 80
MOST_DOCUMENT = 1_000_000
"""Bytes of the JSON that are read."""

_IN_TEMPLATES = re.compile(r"(?:^|/)tool_templates/([^/]+)/?")
_SAYS_DIRECTORY = re.compile(r"dir|path|folder|slug")
_SAYS_OTHER = re.compile(r"image|icon|file")
_NAMES = ("name", "tool_name", "template_name", "title")


@dataclass(frozen=True, slots=True, kw_only=True)
class Workflow:
    """`roots`: each tool template's directory → its name, empty where only the directory names it."""

    name: str
    roots: dict[str, str]


def template_roots(files: Iterable[str]) -> list[str]:
    """The directories of tool templates in an archive; "" is the archive itself.

    A directory is one if it has a tool.py. One with requirements.txt alone counts where a tool.py below it has no
    requirements of its own, or where there is no tool.py at all: what is missing is then said by the rules. The
    same holds for the only directory with files. None is inside another.
    """
    paths = list(files)
    tools, requirements = _having(paths, "tool.py"), _having(paths, "requirements.txt")
    bare = tools - requirements
    roots = tools | {
        root for root in requirements if not tools or any(_is_in(tool, root) for tool in bare)
    }
    if roots:
        return sorted(
            root for root in roots if not any(_is_in(root, other) for other in roots - {root})
        )
    innermost = _only_directory(paths)
    return [innermost] if any(_parent(path) == innermost for path in paths) else []


def _having(paths: Iterable[str], name: str) -> set[str]:
    return {_parent(path) for path in paths if path.rpartition("/")[2] == name}


def _parent(path: str) -> str:
    return path.rpartition("/")[0]


def _is_in(path: str, directory: str) -> bool:
    return not directory or path == directory or path.startswith(f"{directory}/")


def _only_directory(paths: list[str]) -> str:
    """Of directories that hold nothing but one directory each, the innermost."""
    here = ""
    while True:
        start = f"{here}/" if here else ""
        inside = {path.removeprefix(start).split("/", 1)[0] for path in paths}
        if len(inside) != 1 or f"{start}{min(inside)}" in paths:
            return here
        here = start + inside.pop()


def read(files: Mapping[str, bytes], issues: Issues) -> Workflow | None:
    """What a workflow template's ZIP says of its tools, or None if it is none. What is amiss is added to `issues`."""
    places = [path for path in files if path.rpartition("/")[2] == DOCUMENT]
    if not places:
        return None
    place = min(places, key=lambda path: (path.count("/"), path))
    start = f"{_parent(place)}/{TEMPLATES}/".lstrip("/")
    directories = {
        path.removeprefix(start).split("/", 1)[0]: ""
        for path in sorted(files)
        if path.startswith(start) and "/" in path.removeprefix(start)
    }
    document = _document(files[place], place, issues)
    for directory, name in _named(document, directories):
        if directory not in directories:
            issues.add(
                "T-001",
                f"{DOCUMENT} names the tool template directory {shown(directory)!r}, which is not in the ZIP.",
                path=place,
            )
        elif not directories[directory]:
            directories[directory] = name
    return Workflow(
        name=_name_of(document),
        roots={f"{start}{directory}": name for directory, name in directories.items()},
    )


def _document(content: bytes, place: str, issues: Issues) -> Any:
    try:
        if len(content) > MOST_DOCUMENT:
            raise ValueError(f"it has more than {MOST_DOCUMENT:,} bytes")
        document = json.loads(content)
        if is_too_deep(document):
            raise ValueError("it is nested too deep")
    except (ValueError, RecursionError) as error:
        issues.add("Z-014", f"{DOCUMENT} cannot be read as JSON: {shown(str(error))}.", path=place)
        return None
    return document


def _named(document: Any, directories: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """Directories of tool templates that the document mentions, each once, and the name beside it.

    Which keys it uses differs between programs, so any object counts that has a text which is such a directory.
    """
    seen = set()
    for item, in_tools in _objects(document):
        for key, value in item.items():
            directory = _directory(key, value, directories, in_tools=in_tools)
            if directory and directory not in seen:
                seen.add(directory)
                yield (
                    directory,
                    next(
                        (" ".join(item[key].split()) for key in _NAMES if _is_text(item.get(key))),
                        "",
                    ),
                )


def _directory(key: str, value: Any, directories: Mapping[str, str], *, in_tools: bool) -> str:
    if not _is_text(value) or key in _NAMES:
        return ""
    found = _IN_TEMPLATES.search(value)
    if found:
        return found[1]
    bare = value.strip("/")
    says = _SAYS_DIRECTORY.search(key.lower()) and not _SAYS_OTHER.search(key.lower())
    if bare in directories or (in_tools and says and "/" not in bare):
        return str(bare)
    return ""


def _objects(document: Any) -> Iterator[tuple[dict[str, Any], bool]]:
    """Every object of the document, and whether it stands under a key that speaks of tools."""
    waiting: list[tuple[Any, bool]] = [(document, False)]
    while waiting:
        here, in_tools = waiting.pop()
        if isinstance(here, dict):
            yield here, in_tools
            waiting += [(value, in_tools or "tool" in key.lower()) for key, value in here.items()]
        elif isinstance(here, list):
            waiting += [(item, in_tools) for item in here]


def _name_of(document: Any) -> str:
    if not isinstance(document, dict):
        return ""
    inner = (document.get(key) for key in ("workflow_template", "workflow", "template"))
    for place in (*(each for each in inner if isinstance(each, dict)), document):
        for key in _NAMES:
            if _is_text(place.get(key)):
                return shown(" ".join(place[key].split()))[:LONGEST_WORKFLOW_NAME]
    return ""


def _is_text(value: Any) -> bool:
    return isinstance(value, str) and bool(value.strip())


def document(name: str, names: Mapping[str, str]) -> bytes:
    """The JSON of a workflow template with these tools; `names` by the directory of each."""
    tools = [
        {"name": names[slug], "source_folder_path": f"{TEMPLATES}/{slug}"} for slug in sorted(names)
    ]
    value = {
        "template_version": "0.0.1",
        "workflow_template": {"name": name},
        "tool_templates": tools,
    }
    return json.dumps(value, indent=2, ensure_ascii=False).encode()
