"""Packages of uploaded tools for tests: their source, their ZIPs, and the rows that come of them."""

import threading
from collections.abc import Callable, Mapping
from itertools import count
from typing import Any

from django.db import connections

from engine.tools.package import Package, write_archive, write_workflow
from studio.models import ToolEnvironment, ToolInstance, ToolTemplateVersion
from studio.operations.instances import create_instance
from studio.operations.templates import upload

_numbers = count(1)

SOURCE = '''"""{description}"""

import argparse
import json
from typing import Any, Literal, Optional

from pydantic import BaseModel, Field


class UserParameters(BaseModel):
{user}


class ToolParameters(BaseModel):
{tool}


def run_tool(config: UserParameters, args: ToolParameters) -> Any:
    return {{"said": "yes"}}


OUTPUT_KEY = "tool_output"

if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--user-params", required=True)
    parser.add_argument("--tool-params", required=True)
    given = parser.parse_args()
    output = run_tool(
        UserParameters(**json.loads(given.user_params)),
        ToolParameters(**json.loads(given.tool_params)),
    )
    print(OUTPUT_KEY, json.dumps(output))
'''
TOOL = 'query: str = Field(description="What to look for")'


def package_files(
    *,
    user: str = "pass",
    tool: str = TOOL,
    description: str = "Looks something up.",
    requirements: str = "pydantic\n",
    **more: str,
) -> dict[str, bytes]:
    """`user` and `tool` are the lines of the two classes' bodies."""
    source = SOURCE.format(description=description, user=_indented(user), tool=_indented(tool))
    files = {"tool.py": source, "requirements.txt": requirements, **more}
    return {path: text.encode() for path, text in files.items()}


def _indented(lines: str) -> str:
    return "\n".join(f"    {line}" for line in lines.splitlines())


def package_zip(**parts: Any) -> bytes:
    return write_archive(package_files(**parts))


def workflow_zip(name: str, packages: Mapping[str, Mapping[str, bytes]]) -> bytes:
    """`packages`: name of a template → its files."""
    slugs = {
        f"{template.lower().replace(' ', '_')}_a1b2c{number}": Package(template, files)
        for number, (template, files) in enumerate(packages.items())
    }
    return write_workflow(name, slugs)


def make_version(name: str = "", **parts: Any) -> ToolTemplateVersion:
    """A version of the template of this name, which is a new one unless it is there."""
    name = name or f"Template {next(_numbers)}"
    uploaded = upload(package_zip(**parts), filename="tool.zip", by="dana", name=name)
    return uploaded.versions[0]


def make_instance(
    version: ToolTemplateVersion | None = None, *, ready: bool = True, **overrides: Any
) -> ToolInstance:
    values: dict[str, Any] = {"name": f"tool_{next(_numbers)}", "config": {}, "by": "dana"}
    instance = create_instance(version or make_version(), **(values | overrides))
    if ready:
        built(instance.environment)
    return instance


def built(environment: ToolEnvironment | None) -> ToolEnvironment:
    """As if a worker had built it."""
    assert environment is not None
    ToolEnvironment.objects.filter(pk=environment.pk).update(state=ToolEnvironment.State.FINISHED)
    environment.refresh_from_db()
    return environment


def both(*calls: Callable[[], Any]) -> list[Any]:
    """What each of the calls, made at the same moment, answers or raises."""
    barrier = threading.Barrier(len(calls))
    answers: list[Any] = [None] * len(calls)

    def run(number: int) -> None:
        barrier.wait()
        try:
            answers[number] = calls[number]()
        except Exception as error:  # noqa: BLE001 - the test looks at it
            answers[number] = error
        finally:
            connections.close_all()

    threads = [threading.Thread(target=run, args=(number,)) for number in range(len(calls))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return answers
