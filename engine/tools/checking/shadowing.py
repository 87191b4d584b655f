"""Modules that a package's own files would hide: its directory comes first when Python looks for one."""

import sys
from collections.abc import Iterable, Iterator

_NEEDED = (
    sys.stdlib_module_names | {"annotated_types", "pydantic", "pydantic_core", "typing_extensions"}
) - {"__main__", "antigravity", "idlelib", "lib2to3", "test", "this", "turtledemo"}


def hidden_modules(paths: Iterable[str]) -> Iterator[tuple[str, str]]:
    """Each path that hides a module of the standard library or of pydantic, and that module's name."""
    for path in sorted(paths):
        module = path.removesuffix("/__init__.py" if "/" in path else ".py")
        if module != path and module in _NEEDED:
            yield path, module
