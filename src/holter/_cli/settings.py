"""What a user may set: `[tool.holter]` of pyproject.toml, and the command line over it."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from difflib import get_close_matches
from pathlib import Path
from types import MappingProxyType
from typing import Any

from holter.record.errors import HolterError
from holter.record.findings import Severity

FAIL_ON: Mapping[str, Severity | None] = MappingProxyType(
    {
        "error": Severity.ERROR,
        "warning": Severity.WARNING,
        "info": Severity.INFO,
        "never": None,
    }
)
_KEYS = ("select", "ignore", "fail-on", "rules")
_WORDS = {"true": True, "yes": True, "on": True, "false": False, "no": False, "off": False}


@dataclass(frozen=True, slots=True)
class Settings:
    """Which rules are applied, with which thresholds, and what fails a check."""

    select: tuple[str, ...] = ()
    ignore: tuple[str, ...] = ()
    fail_on: Severity | None = Severity.ERROR
    rule_options: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)


def read_settings(
    folder: Path,
    *,
    select: tuple[str, ...] | None = None,
    ignore: tuple[str, ...] | None = None,
    assignments: Sequence[str] = (),
    fail_on: str | None = None,
) -> Settings:
    """Settings of the project around `folder`, with those of the command line over them."""
    from holter.diagnosis.engine import chosen_rules

    file, table = _project_table(folder)
    kept = _of_file(file, table) if file is not None else Settings()
    options = {rule: dict(values) for rule, values in kept.rule_options.items()}
    for text in assignments:
        rule, option, value = _assignment(text)
        options.setdefault(rule, {})[option] = value
    ignored = ignore if ignore is not None else kept.ignore if select is None else ()
    settings = Settings(
        select=kept.select if select is None else select,
        ignore=ignored,
        fail_on=kept.fail_on if fail_on is None else FAIL_ON[fail_on],
        rule_options=options,
    )
    if not chosen_rules(settings.select, settings.ignore):
        raise HolterError("select and ignore leave no rule to apply; `holter rules` lists them.")
    return settings


def _project_table(folder: Path) -> tuple[Path | None, Mapping[str, Any]]:
    """The nearest pyproject.toml upwards that has a [tool.holter], and that table."""
    import tomllib

    for place in (folder, *folder.parents):
        file = place / "pyproject.toml"
        if not file.is_file():
            continue
        try:
            tables = tomllib.loads(file.read_text(encoding="utf-8"))
        except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
            raise HolterError(f"{file} is not valid TOML: {error}.") from error
        tools = tables.get("tool", {})
        if isinstance(tools, dict) and "holter" in tools:
            if not isinstance(tools["holter"], dict):
                raise HolterError(f"{file}: [tool.holter] has to be a table.")
            return file, tools["holter"]
    return None, {}


def _of_file(file: Path, table: Mapping[str, Any]) -> Settings:
    for key in table:
        if key not in _KEYS:
            raise HolterError(f"{file}: [tool.holter] has no key {key!r}{_nearest(key, _KEYS)}")
    fail_on = table.get("fail-on", "error")
    if not isinstance(fail_on, str) or fail_on not in FAIL_ON:
        raise HolterError(
            f"{file}: [tool.holter] fail-on is {fail_on!r}; it can be {', '.join(FAIL_ON)}."
        )
    rules = table.get("rules", {})
    if not isinstance(rules, dict):
        raise HolterError(f"{file}: [tool.holter.rules] has to be a table, with a table a rule.")
    return Settings(
        select=_patterns(file, table, "select"),
        ignore=_patterns(file, table, "ignore"),
        fail_on=FAIL_ON[fail_on],
        rule_options={rule: _options_of_file(file, rule, given) for rule, given in rules.items()},
    )


def _patterns(file: Path, table: Mapping[str, Any], key: str) -> tuple[str, ...]:
    from holter.diagnosis.engine import chosen_rules

    given = table.get(key, [])
    if not isinstance(given, list) or not all(isinstance(each, str) for each in given):
        raise HolterError(f"{file}: [tool.holter] {key} has to be a list of rule names.")
    for pattern in given:
        with _told_of(f"{file}: [tool.holter] {key}"):
            chosen_rules((pattern,))
    return tuple(given)


def _options_of_file(file: Path, rule: str, given: object) -> dict[str, Any]:
    from holter.diagnosis.engine import named_rule

    place = f"{file}: [tool.holter.rules.{rule}]"
    with _told_of(place):
        known = named_rule(rule).options
    if not isinstance(given, dict):
        raise HolterError(f"{place} has to be a table of options.")
    options = {}
    for key, value in given.items():
        option = key.replace("-", "_")
        if option not in known:
            raise HolterError(f"{place} has no option {key!r}{_nearest(option, known)}")
        default = known[option]
        if type(default) is float and type(value) is int:
            value = float(value)  # noqa: PLW2901  (TOML tells 1 from 1.0, a user does not)
        if default is not None and type(value) is not type(default):
            raise HolterError(
                f"{place} {key} is {value!r}, but has to be {_kind(default)}, as {default!r} is."
            )
        options[option] = value
    return options


def _assignment(text: str) -> tuple[str, str, Any]:
    """`RULE.OPTION=VALUE`, with the value as the type of the option's default."""
    from holter.diagnosis.engine import named_rule

    target, equals, value = text.partition("=")
    rule, dot, option = target.strip().partition(".")
    if not (equals and dot and rule and option):
        raise HolterError(f"--set {text}: write RULE.OPTION=VALUE, as in flat-loss.min_steps=50.")
    with _told_of(f"--set {text}"):
        known = named_rule(rule).options
    option = option.replace("-", "_")
    if option not in known:
        raise HolterError(f"--set {text}: {rule} has no option {option!r}{_nearest(option, known)}")
    try:
        return rule, option, _cast(value.strip(), known[option])
    except (ValueError, KeyError):
        raise HolterError(
            f"--set {text}: {value.strip()!r} is not {_kind(known[option])},"
            f" as the default {known[option]!r} is."
        ) from None


def _cast(text: str, default: object) -> object:
    if isinstance(default, bool):
        return _WORDS[text.lower()]
    if isinstance(default, int | float | str):
        return type(default)(text)
    raise ValueError(text)


def _kind(default: object) -> str:
    names = {bool: "true or false", int: "a whole number", float: "a number", str: "text"}
    return names.get(type(default), f"a {type(default).__name__}")


@contextmanager
def _told_of(place: str) -> Iterator[None]:
    """Say of an error where its cause was written."""
    try:
        yield
    except HolterError as error:
        raise HolterError(f"{place}: {error}") from error


def _nearest(word: str, known: Sequence[str] | Mapping[str, Any]) -> str:
    near = get_close_matches(word, list(known), n=1)
    if near:
        return f"; did you mean {near[0]!r}?"
    return f"; there are {', '.join(known)}." if known else "; it has none."
