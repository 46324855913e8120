"""`holter diff` on runs on disk."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from recorded import write_run

from holter._cli import main


def test_equal_runs_give_0_and_different_ones_1(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    a = write_run(tmp_path / "a", [3.0, 2.0, 1.0])
    b = write_run(tmp_path / "b", [3.0, 2.0, 1.0])
    c = write_run(tmp_path / "c", [3.0, 2.5, 1.0])
    assert main(["diff", str(a), str(b)]) == 0
    assert "equal bit for bit" in capsys.readouterr().out
    assert main(["diff", str(a), str(c)]) == 1
    assert "equal for 1 step and differ from step 1 on" in capsys.readouterr().out


def test_json_is_for_programs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    a = write_run(tmp_path / "a", [3.0, float("nan")])
    b = write_run(tmp_path / "b", [3.0, 2.0])
    assert main(["diff", str(a), str(b), "--json"]) == 1
    document = json.loads(capsys.readouterr().out)
    (first,) = document["first_difference"]
    assert (first["step"], first["signal"], first["a"], first["b"]) == (1, "loss", "nan", 2.0)
    assert document["equal"] is False


def test_a_folder_that_is_no_run_gives_one_sentence(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    a = write_run(tmp_path / "a", [3.0])
    assert main(["diff", str(a), str(tmp_path / "nothing")]) == 2
    assert capsys.readouterr().err.startswith("holter: There is no folder")


def test_it_works_without_torch(tmp_path: Path) -> None:
    a = write_run(tmp_path / "a", [3.0])
    code = (
        "import sys; sys.modules['torch'] = None\n"
        "from holter._cli import main\n"
        f"sys.exit(main(['diff', {str(a)!r}, {str(a)!r}]))"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
