"""One-line notices to the person whose training is running."""

import shutil
import sys
import time

_OFTEN, _RARELY = 0.1, 10.0  # seconds between two lines: on a terminal, and in a log
_BAR = 24  # columns of a bar, where the terminal has room for it


class Progress:
    """One line on standard error: rewritten on a terminal, a new one now and then elsewhere."""

    def __init__(self, *, quiet: bool = False) -> None:
        self._quiet, self._rewrites = quiet, sys.stderr.isatty()
        self._told = 0.0 if self._rewrites else time.monotonic()
        self._shown = False

    def show(self, text: str, *, share: float | None = None) -> None:
        """Show how far the work is, unless it was shown a moment ago; with a `share`, as a bar."""
        now = time.monotonic()
        if self._quiet or now - self._told < (_OFTEN if self._rewrites else _RARELY):
            return
        self._told = now
        if not self._rewrites:
            tell(text)
            return
        self._shown = True
        columns = shutil.get_terminal_size().columns
        sys.stderr.write(f"\r\033[K{line_of(text, share, columns, encoding=sys.stderr.encoding)}")
        sys.stderr.flush()

    def clear(self) -> None:
        """Remove the line."""
        if self._shown:
            self._shown = False
            sys.stderr.write("\r\033[K")
            sys.stderr.flush()


def line_of(text: str, share: float | None, columns: int, *, encoding: str = "utf-8") -> str:
    """Return a line of progress that fits a terminal: a longer one could not be rewritten."""
    room = columns - 1 - len("holter: ")
    if share is None or room < _BAR + 20:
        return f"holter: {text}"[: max(columns - 1, 0)]
    whole, rest = ("━", "─") if encoding.lower().startswith("utf") else ("#", "-")
    filled = round(_BAR * min(max(share, 0.0), 1.0))
    bar = whole * filled + rest * (_BAR - filled)
    return f"holter: {bar} {text}"[: columns - 1]


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
