"""Small HTML for notebooks: a title and rows of text, all of it escaped."""

from collections.abc import Iterable
from html import escape

_LONGEST = 400  # characters of a cell


def card(title: str, rows: Iterable[tuple[str, str]]) -> str:
    """Return a table of two columns under a title; empty cells leave their row out."""
    cells = "".join(
        f'<tr><th style="text-align:left">{_cell(name)}</th>'
        f'<td style="text-align:left">{_cell(value)}</td></tr>'
        for name, value in rows
        if value
    )
    return f"<div><strong>{_cell(title)}</strong><table>{cells}</table></div>"


def _cell(text: str) -> str:
    return escape(text if len(text) <= _LONGEST else f"{text[:_LONGEST]} …")
