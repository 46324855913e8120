"""What pyproject.toml and the command line may set, and what is said when they set it wrong."""

from pathlib import Path

import pytest

from holter._cli.settings import Settings, read_settings
from holter.diagnosis.rule import Rule
from holter.record.errors import HolterError
from holter.record.findings import Level, Severity
from holter.record.signals import LOSS


def flat(run: object, *, drop: float = 0.1, steps: int = 10, loud: bool = False, kind: str = "a"):  # type: ignore[no-untyped-def]
    """The loss is flat."""


def empty(run: object):  # type: ignore[no-untyped-def]
    """The loss is empty."""


RULES = {
    name: Rule(name, Severity.ERROR, Level.DATA, (LOSS,), False, False, (), function)
    for name, function in (("flat", flat), ("empty", empty))
}


@pytest.fixture(autouse=True)
def made_up_rules(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("holter.diagnosis.engine.all_rules", lambda: RULES)


def project(folder: Path, text: str) -> Path:
    (folder / "pyproject.toml").write_text(text)
    return folder


def test_without_a_file_the_defaults_hold(tmp_path: Path) -> None:
    assert read_settings(tmp_path) == Settings()


def test_reads_the_file(tmp_path: Path) -> None:
    folder = project(
        tmp_path,
        '[tool.holter]\nselect = ["fl*"]\nignore = ["empty"]\nfail-on = "never"\n'
        "[tool.holter.rules.flat]\ndrop = 1\nloud = true\n",
    )
    assert read_settings(folder) == Settings(
        ("fl*",), ("empty",), None, {"flat": {"drop": 1.0, "loud": True}}
    )


def test_the_nearest_file_with_a_table_counts(tmp_path: Path) -> None:
    project(tmp_path, '[tool.holter]\nselect = ["flat"]\n')
    inner = tmp_path / "a" / "b"
    inner.mkdir(parents=True)
    project(tmp_path / "a", '[project]\nname = "a"\n')
    assert read_settings(inner).select == ("flat",)


def test_the_command_line_overrides_the_file(tmp_path: Path) -> None:
    folder = project(
        tmp_path,
        '[tool.holter]\nignore = ["flat"]\nfail-on = "never"\n'
        "[tool.holter.rules.flat]\ndrop = 0.5\nsteps = 3\n",
    )
    settings = read_settings(
        folder, select=("flat",), assignments=["flat.drop=0.2"], fail_on="warning"
    )
    assert settings.select == ("flat",)
    assert settings.ignore == ()
    assert settings.fail_on is Severity.WARNING
    assert settings.rule_options == {"flat": {"drop": 0.2, "steps": 3}}


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("flat.drop=1e-3", {"drop": 1e-3}),
        ("flat.steps=7", {"steps": 7}),
        ("flat.loud=yes", {"loud": True}),
        ("flat.kind=b=c", {"kind": "b=c"}),
    ],
)
def test_a_value_has_the_type_of_the_default(
    text: str, value: dict[str, object], tmp_path: Path
) -> None:
    (options,) = read_settings(tmp_path, assignments=[text]).rule_options.values()
    assert options == value
    assert [type(each) for each in options.values()] == [type(each) for each in value.values()]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("flat", "write RULE.OPTION=VALUE"),
        ("flat.drop", "write RULE.OPTION=VALUE"),
        ("flatt.drop=1", "no rule 'flatt'; did you mean 'flat'"),
        ("flat.dorp=1", "no option 'dorp'; did you mean 'drop'"),
        ("flat.steps=1.5", "'1.5' is not a whole number, like the default 10"),
        ("flat.loud=maybe", "'maybe' is not true or false"),
    ],
)
def test_a_wrong_assignment_is_told(text: str, said: str, tmp_path: Path) -> None:
    with pytest.raises(HolterError) as error:
        read_settings(tmp_path, assignments=[text])
    assert str(error.value).startswith(f"--set {text}: ")
    assert said in str(error.value)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[tool.holter", "is not valid TOML"),
        ("[tool]\nholter = 3", "[tool.holter] must be a table"),
        ('[tool.holter]\nslect = ["flat"]', "no key 'slect'; did you mean 'select'?"),
        ('[tool.holter]\nselect = "flat"', "select must be a list of rule names"),
        ('[tool.holter]\nignore = ["flatt"]', "ignore: No rule matches 'flatt'"),
        ('[tool.holter]\nfail-on = "fatal"', "fail-on is 'fatal'; use one of error, warning"),
        (
            "[tool.holter.rules]\nflat = 3",
            "[tool.holter.rules.flat] must be a table",
        ),
        ("[tool.holter.rules.flta]\ndrop = 3", "no rule 'flta'; did you mean 'flat'"),
        ("[tool.holter.rules.flat]\ndorp = 3", "no option 'dorp'; did you mean 'drop'"),
        ('[tool.holter.rules.flat]\ndrop = "3"', "drop is '3'; it must be a number"),
        (
            "[tool.holter.rules.flat]\nsteps = true",
            "steps is True; it must be a whole number",
        ),
        ("[tool.holter.rules.empty]\nx = 1", "no option 'x'; it has none."),
    ],
)
def test_a_wrong_file_is_told(text: str, said: str, tmp_path: Path) -> None:
    with pytest.raises(HolterError) as error:
        read_settings(project(tmp_path, text))
    assert str(error.value).startswith(str(tmp_path / "pyproject.toml"))
    assert said in str(error.value)


def test_no_rule_left_is_told(tmp_path: Path) -> None:
    with pytest.raises(HolterError, match="leave no rule"):
        read_settings(tmp_path, ignore=("*",))
