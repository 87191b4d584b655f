"""Calling the API in tests."""

import json
import threading
from collections.abc import Callable
from typing import Any

from django.db import connections
from django.test import Client


class Caller:
    """Sends requests with one token, and bodies as JSON."""

    def __init__(self, token: str = "") -> None:
        self.client = Client(raise_request_exception=False)
        self.headers = {"authorization": f"Bearer {token}"} if token else {}

    def __call__(self, method: str, path: str, body: Any = None, **more: Any) -> Any:
        content = (
            {"data": json.dumps(body), "content_type": "application/json"}
            if body is not None
            else {}
        )
        headers = {**self.headers, **more.pop("headers", {})}
        return self.client.generic(method, f"/api/v1{path}", headers=headers, **content, **more)

    def get(self, path: str, **more: Any) -> Any:
        return self("GET", path, **more)

    def post(self, path: str, body: Any = None, **more: Any) -> Any:
        return self("POST", path, body, **more)

    def patch(self, path: str, body: Any = None, **more: Any) -> Any:
        return self("PATCH", path, body, **more)

    def put(self, path: str, body: Any = None, **more: Any) -> Any:
        return self("PUT", path, body, **more)

    def delete(self, path: str, **more: Any) -> Any:
        return self("DELETE", path, **more)


def is_problem(response: Any, status: int) -> dict[str, Any]:
    """The problem that the response carries, checked to be one."""
    assert response.status_code == status, response.content
    assert response.headers["content-type"] == "application/problem+json"
    problem: dict[str, Any] = response.json()
    assert problem["status"] == status
    assert problem["title"]
    assert problem["detail"]
    return problem


class InThread(threading.Thread):
    """A request on its way while the test does something else."""

    def __init__(self, request: Callable[[], Any]) -> None:
        super().__init__()
        self._request = request
        self.answer: Any = None
        self.start()

    def run(self) -> None:
        try:
            self.answer = self._request()
        finally:
            connections.close_all()
