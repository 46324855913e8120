"""Settings: `[tool.holter]` in pyproject.toml, overridden by the command line."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from difflib import get_close_matches
from pathlib import Path
from types import MappingProxyType
from typing import Any

from holter._cli.values import cast, kind
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


@dataclass(frozen=True, slots=True)
class Settings:
    """The rules to apply, their options, and the severity that fails a check."""

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
    """Return the settings of the project around `folder`, overridden by the command line."""
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
    """Return the nearest pyproject.toml upwards with a [tool.holter] table, and that table."""
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
                raise HolterError(f"{file}: [tool.holter] must be a table.")
            return file, tools["holter"]
    return None, {}


def _of_file(file: Path, table: Mapping[str, Any]) -> Settings:
    for key in table:
        if key not in _KEYS:
            raise HolterError(f"{file}: [tool.holter] has no key {key!r}{_nearest(key, _KEYS)}")
    fail_on = table.get("fail-on", "error")
    if not isinstance(fail_on, str) or fail_on not in FAIL_ON:
        raise HolterError(
            f"{file}: [tool.holter] fail-on is {fail_on!r}; use one of {', '.join(FAIL_ON)}."
        )
    rules = table.get("rules", {})
    if not isinstance(rules, dict):
        raise HolterError(f"{file}: [tool.holter.rules] must be a table with one table per rule.")
    return Settings(
        select=_patterns(file, table, "select"),
        ignore=_patterns(file, table, "ignore"),
        fail_on=FAIL_ON[fail_on],
        rule_options={rule: _options_of_file(file, rule, given) for rule, given in rules.items()},
    )


def _patterns(file: Path, table: Mapping[str, Any], key: str) -> tuple[str, ...]:
    from holter.diagnosis.engine import chosen_rules

    given = table.get(key, [])
    if not isinstance(given, list) or not all(isinstance(name, str) for name in given):
        raise HolterError(f"{file}: [tool.holter] {key} must be a list of rule names.")
    for pattern in given:
        with _located(f"{file}: [tool.holter] {key}"):
            chosen_rules((pattern,))
    return tuple(given)


def _options_of_file(file: Path, rule: str, given: object) -> dict[str, Any]:
    from holter.diagnosis.engine import named_rule

    place = f"{file}: [tool.holter.rules.{rule}]"
    with _located(place):
        defaults = named_rule(rule).options
    if not isinstance(given, dict):
        raise HolterError(f"{place} must be a table of options.")
    options = {}
    for key, value in given.items():
        option = key.replace("-", "_")
        if option not in defaults:
            raise HolterError(f"{place} has no option {key!r}{_nearest(option, defaults)}")
        default = defaults[option]
        if type(default) is float and type(value) is int:
            value = float(value)  # noqa: PLW2901  (TOML distinguishes 1 from 1.0)
        if default is not None and type(value) is not type(default):
            raise HolterError(
                f"{place} {key} is {value!r}; it must be {kind(default)},"
                f" like the default {default!r}."
            )
        options[option] = value
    return options


def _assignment(text: str) -> tuple[str, str, Any]:
    """Parse `RULE.OPTION=VALUE`, with the value in the type of the option's default."""
    from holter.diagnosis.engine import named_rule

    target, equals, value = text.partition("=")
    rule, dot, option = target.strip().partition(".")
    if not (equals and dot and rule and option):
        raise HolterError(
            f"--set {text}: write RULE.OPTION=VALUE, for example flat-loss.min_steps=50."
        )
    with _located(f"--set {text}"):
        defaults = named_rule(rule).options
    option = option.replace("-", "_")
    if option not in defaults:
        raise HolterError(
            f"--set {text}: {rule} has no option {option!r}{_nearest(option, defaults)}"
        )
    try:
        return rule, option, cast(value.strip(), defaults[option])
    except ValueError:
        raise HolterError(
            f"--set {text}: {value.strip()!r} is not {kind(defaults[option])},"
            f" like the default {defaults[option]!r}."
        ) from None


@contextmanager
def _located(place: str) -> Iterator[None]:
    """Prefix an error with the place of its cause."""
    try:
        yield
    except HolterError as error:
        raise HolterError(f"{place}: {error}") from error


def _nearest(word: str, names: Sequence[str] | Mapping[str, Any]) -> str:
    near = get_close_matches(word, list(names), n=1)
    if near:
        return f"; did you mean {near[0]!r}?"
    return f"; there are {', '.join(names)}." if names else "; it has none."
