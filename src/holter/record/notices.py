"""One-line notices to the person whose training is running."""

import sys


def tell(sentence: str) -> None:
    """Write one line to standard error, above a tqdm progress bar if there is one."""
    line = f"holter: {sentence}"
    tqdm = sys.modules.get("tqdm")
    try:
        if tqdm is not None:
            tqdm.tqdm.write(line, file=sys.stderr, nolock=True)
        else:
            sys.stderr.write(line + "\n")
            sys.stderr.flush()
    except (OSError, ValueError):  # standard error is closed: there is nobody to tell
        pass
