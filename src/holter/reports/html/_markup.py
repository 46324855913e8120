"""HTML made of elements: every text is escaped unless an element made it."""

import re
from html import escape

from holter.reports._lines import printable

_VOID = frozenset({"meta", "br"})
_CODE = re.compile(r"`([^`]+)`")


class Html(str):
    """Text that is HTML already."""

    __slots__ = ()


def element(name: str, *children: str, **attributes: str | bool | None) -> Html:
    """Return `<name ...>children</name>`; `class_` and `data_x` become `class` and `data-x`.

    An attribute that is True stands without a value; one that is False or None is left out.
    """
    written = "".join(
        f" {_spelled(key)}" if value is True else f' {_spelled(key)}="{escape(printable(value))}"'
        for key, value in attributes.items()
        if value is not None and value is not False
    )
    if name in _VOID:
        return Html(f"<{name}{written}>")
    return Html(f"<{name}{written}>{joined(*children)}</{name}>")


def joined(*children: str) -> Html:
    """Return texts and elements in a row."""
    return Html("".join(child if isinstance(child, Html) else text(child) for child in children))


def text(plain: str) -> Html:
    """Return a text that comes from anywhere, so that it is shown as it is."""
    return Html(escape("\n".join(map(printable, plain.split("\n"))), quote=False))


def with_code(plain: str) -> Html:
    """Return a sentence whose words between backticks are code."""
    parts = _CODE.split(plain)
    return joined(*(element("code", part) if n % 2 else part for n, part in enumerate(parts)))


def _spelled(key: str) -> str:
    return key.removesuffix("_").replace("_", "-")
