"""The page of a rule as HTML: the Markdown of docstrings, with every character escaped."""

import re
from collections.abc import Iterator
from html import escape

_CODE = re.compile(r"`([^`]+)`")
_RULE = re.compile(r"[a-z]+(?:-[a-z]+)+")


def to_html(page: str, *, rules: frozenset[str] = frozenset()) -> str:
    """Return headings, paragraphs, lists and code blocks; names of rules become links."""
    return "\n".join(_blocks(page.splitlines(), rules))


def with_code(text: str, rules: frozenset[str] = frozenset()) -> str:
    """Return one paragraph: words between backticks are code, or links if they are rules."""
    parts = _CODE.split(text)
    marked = [
        _code(part, rules) if number % 2 else _linked(part, rules)
        for number, part in enumerate(parts)
    ]
    return "".join(marked)


def _blocks(lines: list[str], rules: frozenset[str]) -> Iterator[str]:
    at = 0
    while at < len(lines):
        line = lines[at]
        if line.startswith("```"):
            end = next(
                (n for n in range(at + 1, len(lines)) if lines[n].startswith("```")), len(lines)
            )
            yield f"<pre><code>{_example(lines[at + 1 : end])}</code></pre>"
            at = end + 1
        elif line.startswith("## "):
            yield f"<h2>{escape(line[3:])}</h2>"
            at += 1
        elif not line.strip():
            at += 1
        else:
            end = at + 1
            while (
                end < len(lines)
                and lines[end].strip()
                and not lines[end].startswith(("## ", "```"))
            ):
                end += 1
            yield _paragraph(lines[at:end], rules)
            at = end


def _paragraph(lines: list[str], rules: frozenset[str]) -> str:
    text = "\n".join(lines)
    if not text.startswith("- "):
        return f"<p>{with_code(' '.join(text.split()), rules)}</p>"
    items = [" ".join(item.split()) for item in re.split(r"^- ", text, flags=re.MULTILINE)[1:]]
    return f"<ul>{''.join(f'<li>{with_code(item, rules)}</li>' for item in items)}</ul>"


def _example(lines: list[str]) -> str:
    """Return the lines of an example; those that end in `# bad` or `# good` carry a class."""
    marked = []
    for line in lines:
        kind = next((word for word in ("bad", "good") if line.rstrip().endswith(f"# {word}")), "")
        marked.append(f'<span class="{kind}">{escape(line)}</span>' if kind else escape(line))
    return "\n".join(marked)


def _code(text: str, rules: frozenset[str]) -> str:
    code = f"<code>{escape(text)}</code>"
    return f'<a href="/rules/{text}">{code}</a>' if text in rules else code


def _linked(text: str, rules: frozenset[str]) -> str:
    """Return escaped text in which the names of rules are links."""
    out, at = [], 0
    for match in _RULE.finditer(text):
        if match[0] in rules:
            out += [escape(text[at : match.start()]), f'<a href="/rules/{match[0]}">{match[0]}</a>']
            at = match.end()
    return "".join([*out, escape(text[at:])])
