"""A client of a served studio's API."""

import httpx2

from tests.serving import Served


def client_of(served: Served) -> httpx2.Client:
    """With a token of the first user; to be closed."""
    url = served.url()
    token = served.manage("create_token", "admin").split()[-1]
    return httpx2.Client(
        base_url=f"{url}/api/v1", headers={"Authorization": f"Bearer {token}"}, timeout=70
    )
