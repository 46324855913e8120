"""The process that trains networks for the playground: a line of JSON in, a line of JSON out."""

import json
import os
import sys
from typing import Any


def main() -> None:
    """Answer requests until standard input ends."""
    answers = os.fdopen(os.dup(sys.stdout.fileno()), "w")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())  # whatever prints does not print an answer
    from holter.dashboard.playground import networks, rates

    tasks = {"network": networks.train, "rates": rates.test_rates}
    for line in sys.stdin:
        task, options = json.loads(line)
        answer: dict[str, Any]
        try:
            answer = {"answer": tasks[task](options)}
        except Exception as error:
            answer = {"error": f"{type(error).__name__}: {error}"}
        answers.write(json.dumps(answer) + "\n")
        answers.flush()


if __name__ == "__main__":
    main()
