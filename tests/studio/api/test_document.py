"""The API's own document, and the page that reads it.

After a meant change: `python manage.py export_openapi_schema --api studio.api.api --sorted --indent 1 --output
tests/studio/api/openapi.json`
"""

import json
import re
from pathlib import Path

import pytest
from django.contrib.staticfiles import finders
from django.test import Client

from studio.api import api

SNAPSHOT = Path(__file__).with_name("openapi.json")


def test_the_document_is_the_one_that_was_agreed() -> None:
    now = json.loads(json.dumps(api.get_openapi_schema(path_prefix="/api/v1/")))
    agreed = json.loads(SNAPSHOT.read_text())
    assert now == agreed, f"see {Path(__file__).name} for how to agree to a change"


def test_the_document_is_served_to_everybody(client: Client) -> None:
    served = client.get("/api/v1/openapi.json")
    assert served.json() == json.loads(SNAPSHOT.read_text())


def test_every_operation_names_its_errors_and_asks_for_a_token() -> None:
    for path, operations in json.loads(SNAPSHOT.read_text())["paths"].items():
        for method, operation in operations.items():
            assert "default" in operation["responses"], (method, path)
            assert operation["security"] == [{"BearerToken": []}], (method, path)


def test_the_reader_needs_no_foreign_host_and_no_inline_script(client: Client) -> None:
    page = client.get("/api/v1/docs")
    assert page.status_code == 200
    html = page.content.decode()
    policy = page.headers["content-security-policy"]
    assert "unsafe-inline" not in policy
    assert "://" not in "".join(re.findall(r'(?:src|href)="([^"]*)"', html))
    for opening in re.findall(r"<script\b[^>]*>", html):
        assert "src=" in opening or 'type="application/json"' in opening
    assert "<style" not in html
    for address in re.findall(r'(?:src|href)="/static/([^"]*)"', html):
        assert finders.find(address), address


@pytest.mark.parametrize("path", ["/api/v1/docs", "/api/v1/openapi.json"])
def test_the_document_is_only_read(client: Client, path: str) -> None:
    assert client.get(path).status_code == 200
