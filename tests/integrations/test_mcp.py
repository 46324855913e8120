"""The server, asked over standard input and output by the client of the mcp package."""

import asyncio
import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from holter import HolterError
from holter.integrations.agents.questions import Questions
from holter.record import Writer
from holter.record.signals import LOSS

LOSSES = [2.0, 1.5, 1.0, float("nan"), float("nan"), float("nan")]


@pytest.fixture
def root(tmp_path: Path) -> Path:
    writer = Writer(tmp_path / "holter-runs" / "first", status="finished")
    for step, loss in enumerate(LOSSES):
        writer.write("steps", step, [(LOSS.name, ("",), np.array([loss], np.float32))])
    writer.update_meta(status="finished", steps=len(LOSSES))
    writer.close()
    rows = "".join(f"{step},{2 / (step + 1)}\n" for step in range(100))
    (tmp_path / "log.csv").write_text(f"step,loss\n{rows}")
    return tmp_path


def test_an_agent_asks(root: Path) -> None:
    pytest.importorskip("mcp")
    asyncio.run(_ask(root))


async def _ask(root: Path) -> None:
    from mcp import Client, StdioServerParameters
    from mcp.client.stdio import stdio_client

    server = StdioServerParameters(
        command=sys.executable,
        args=["-m", "holter", "mcp", "--root", str(root)],
        env={"PYTHONPATH": ":".join(filter(None, sys.path))},
    )
    async with Client(stdio_client(server)) as client:
        tools = (await client.list_tools()).tools
        assert {tool.name for tool in tools} == {
            "list_runs",
            "diagnose",
            "evidence",
            "explain",
            "next_experiment",
        }
        assert all(tool.annotations and tool.annotations.read_only_hint for tool in tools)
        assert all(tool.description for tool in tools)

        async def ask(tool: str, **arguments: Any) -> Any:
            answer = await client.call_tool(tool, arguments)
            assert not answer.is_error, answer.content
            return answer.structured_content

        (listed,) = (await ask("list_runs"))["result"]
        assert (listed["path"], listed["steps"]) == ("holter-runs/first", 6)
        told = await ask("diagnose", path=listed["path"])
        assert told["outcome"]["state"] == "broke"
        assert told["diagnosis"]["leading"]["rule"] == "nonfinite-loss"
        assert told["counts"]["findings"] == 1
        (finding,) = (await ask("evidence", path=listed["path"], rule="nonfinite-loss"))["result"]
        assert finding["evidence"][0]["readings"]["values"][-1] == "nan"
        page = await client.call_tool("explain", {"rule": "nonfinite-loss"})
        assert "## What to do" in page.content[0].text
        imported = await ask("next_experiment", path="log.csv")
        assert imported["command"] == "holter run train.py"
        refused = await client.call_tool("diagnose", {"path": "../secret"})
        assert refused.is_error
        assert "outside of" in refused.content[0].text
        unknown = await client.call_tool("explain", {"rule": "nonfinite-los"})
        assert unknown.is_error
        assert "did you mean" in unknown.content[0].text


def test_questions_without_the_protocol(root: Path) -> None:
    questions = Questions(root)
    short, long = (questions.diagnose("log.csv", everything=every) for every in (False, True))
    assert "not_examined" not in short
    assert len(long["not_examined"]) == short["counts"]["not_examined"]
    assert json.dumps(long, allow_nan=False)
    with pytest.raises(HolterError, match="not examined: the log has no validation loss"):
        questions.evidence("log.csv", "overfitting")
    with pytest.raises(HolterError, match="outside of"):
        questions.list_runs("..")
    before = {path: path.stat().st_mtime_ns for path in root.rglob("*")}
    questions.next_experiment("holter-runs/first")
    assert {path: path.stat().st_mtime_ns for path in root.rglob("*")} == before
