"""Lines of styled text for a terminal: wrapped with hanging indents, plain or in colour."""

import textwrap
from collections.abc import Iterable, Sequence

Span = tuple[str, str]  # text, style
Line = tuple[Span, ...]

BLANK: Line = ()


def hanging(
    text: str,
    *,
    width: int,
    lead: Line = (),
    indent: int | None = None,
    hang: int = 0,
    style: str = "",
) -> list[Line]:
    """Wrap `text` after `lead` to `width`; continuation lines are indented to where it begins.

    `hang` indents them further, which separates the items of a list. Words longer than the line
    stay whole, so that names can be copied.
    """
    start = sum(len(part) for part, _ in lead)
    indent = start if indent is None else indent
    gap = ((" " * (indent - start), ""),) if start < indent else ()
    first = " " * max(start - indent, 0)  # where the lead is longer than the indent
    cut = textwrap.wrap(
        text,
        max(width - indent, 20),
        initial_indent=first,
        subsequent_indent=" " * hang,
        break_long_words=False,
        break_on_hyphens=False,
    )
    lines: list[Line] = []
    code = False
    for number, line in enumerate(cut or [""]):
        spans, code = _with_code(line if number else line[len(first) :], style, code)
        lines.append((*lead, *gap, *spans) if number == 0 else ((" " * indent, ""), *spans))
    return lines


def painted(lines: Iterable[Line], *, color: bool) -> str:
    """Return all lines as one string: styled with ANSI codes, or plain."""
    safe = [tuple((printable(part), style) for part, style in line) for line in lines]
    if color:
        return _in_colour(safe)
    return "".join("".join(part for part, _ in line).rstrip() + "\n" for line in safe)


def code_spans(line: str, style: str = "") -> Line:
    """Return a line whose words between backticks are styled as code."""
    return _with_code(line, style, code=False)[0]


def _with_code(line: str, style: str, code: bool) -> tuple[Line, bool]:
    spans: list[Span] = []
    for number, part in enumerate(line.split("`")):
        if number:
            spans.append(("`", "dim"))
            code = not code
        if part:
            spans.append((part, "cyan" if code else style))
    return tuple(spans), code


def printable(text: str) -> str:
    """Return `text` without control characters: names and messages come from the training."""
    return "".join(char if char.isprintable() else " " for char in text)


def _in_colour(lines: Sequence[Line]) -> str:
    import io

    from rich.console import Console
    from rich.text import Text

    out = io.StringIO()
    console = Console(
        file=out, force_terminal=True, color_system="standard", no_color=False, highlight=False
    )
    for line in lines:
        console.print(Text.assemble(*line), soft_wrap=True)
    return out.getvalue()
