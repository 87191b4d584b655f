"""`python -m tests.bench.model_server LATENCY`: the scenario's model as a process of its own; prints its address."""

import sys
import threading

from tests.bench.scenario import answer
from tests.openai_server import OpenAIServer

if __name__ == "__main__":
    with OpenAIServer(
        answer=answer, latency=float(sys.argv[1]), checks_answers=False, piece_length=40
    ) as server:
        print(server.base_url, flush=True)
        threading.Event().wait()
