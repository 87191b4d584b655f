"""What pydantic says of a class, in a process of its own: one module's source per line in, one answer per line out.

Run as a script. A line is {"source": …, "class": …} as JSON; the answer is {"schema": …} or {"error": …}.
"""

import __future__

import ast
import json
import linecache
import sys
import types
import typing
import warnings
from itertools import count

import pydantic.networks

pydantic.networks.import_email_validator = lambda: (
    None
)  # its schema is the same whether the package is there or not


def run(source: str, path: str, names: dict) -> None:
    """Statement by statement. Between them typing forgets the types it made, or else List[Union[int, str]] would be
    the List[Union[str, int]] of an earlier file."""
    deferred = "from __future__ import annotations" in source
    flags = __future__.annotations.compiler_flag if deferred else 0
    for statement in ast.parse(source).body:
        for forget in typing._cleanups:
            forget()
        exec(compile(ast.Module([statement], []), path, "exec", flags, dont_inherit=True), names)


def answer(source: str, class_name: str, number: int) -> dict:
    name, path = f"tool_{number}", f"<tool {number}>"
    module = types.ModuleType(name)
    module.__file__ = path
    sys.modules[name] = module
    linecache.cache[path] = (len(source), None, source.splitlines(keepends=True), path)
    try:
        run(source, path, vars(module))
        model = vars(module)[class_name]
        return {"schema": model.model_json_schema()}
    except Exception as error:  # noqa: BLE001 - whatever a generated class fails with
        return {"error": f"{type(error).__name__}: {error}"}
    finally:
        del sys.modules[name], linecache.cache[path]


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    for number, line in zip(count(), sys.stdin, strict=False):
        asked = json.loads(line)
        print(json.dumps(answer(asked["source"], asked["class"], number)), flush=True)
