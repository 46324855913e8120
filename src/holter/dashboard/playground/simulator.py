"""The side that asks: one worker process, started on first use, one request at a time.

Training happens there, so that a server inside a notebook touches neither the random numbers nor
the hooks of the notebook's own training, and needs no torch before somebody asks for it.
"""

import importlib.util
import json
import select
import subprocess
import sys
import threading
from collections import OrderedDict
from collections.abc import Mapping
from typing import Any

from holter.record.errors import NEEDS_TORCH, HolterError

_SECONDS = 120.0  # within which an answer has to come
_KEPT = 64  # answers that need no second training


class Simulator:
    """Trains networks in a worker process and keeps the answers."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._process: subprocess.Popen[str] | None = None
        self._answers: OrderedDict[str, Any] = OrderedDict()

    def ask(self, task: str, options: Mapping[str, Any]) -> Any:
        """Return the answer to a task, from memory or from the worker."""
        request = json.dumps([task, options], sort_keys=True)
        with self._lock:
            if request not in self._answers:
                self._answers[request] = self._from_worker(request)
                if len(self._answers) > _KEPT:
                    self._answers.popitem(last=False)
            self._answers.move_to_end(request)
            return self._answers[request]

    def close(self) -> None:
        """End the worker."""
        process, self._process = self._process, None
        if process is not None:
            process.kill()
            process.wait()
            for pipe in (process.stdin, process.stdout):
                if pipe is not None:
                    pipe.close()

    def _from_worker(self, request: str) -> Any:
        if importlib.util.find_spec("torch") is None:
            raise HolterError(NEEDS_TORCH)
        if self._process is None or self._process.poll() is not None:
            self.close()
            self._process = _start()
        process = self._process
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(request + "\n")
        process.stdin.flush()
        ready, _, _ = select.select([process.stdout], [], [], _SECONDS)
        line = process.stdout.readline() if ready else ""
        if not line:
            self.close()
            raise HolterError("The network could not be trained: the worker process ended.")
        answer = json.loads(line)
        if "error" in answer:
            raise HolterError(f"The network could not be trained: {answer['error']}")
        return answer["answer"]


def _start() -> "subprocess.Popen[str]":
    return subprocess.Popen(
        [sys.executable, "-m", "holter.dashboard.playground.worker"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
