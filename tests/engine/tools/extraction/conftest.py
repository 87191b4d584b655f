from collections.abc import Iterator

import pytest

from tests.engine.tools.extraction.real_pydantic import RealPydantic


@pytest.fixture(scope="session")
def real_pydantic() -> Iterator[RealPydantic]:
    real = RealPydantic()
    yield real
    real.close()
