"""The questions of an agent over the Model Context Protocol, on standard input and output."""

from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import Any

from holter._version import __version__
from holter.integrations.agents.questions import Questions
from holter.record.errors import HolterError

NEEDS_MCP = "`holter mcp` needs the package mcp: install it with `pip install 'holter[mcp]'`."
INSTRUCTIONS = """\
holter records the training of a neural network and diagnoses what is wrong with it. Ask
`diagnose` about a run in holter-runs/ or about a log of another tool; `outcome` says how the
training went, `diagnosis.leading` is the cause with its fix, `next` is the command to run now. A
rule that was not examined is neither clear nor a finding. These tools only read."""


def serve(root: Path) -> None:
    """Answer until the client closes standard input."""
    make_server(Questions(root)).run("stdio")


def make_server(questions: Questions) -> Any:
    """Return a server with one tool a question."""
    try:
        from mcp.server.mcpserver import MCPServer
        from mcp.server.mcpserver.exceptions import ToolError
        from mcp_types import ToolAnnotations
    except ImportError as error:
        raise HolterError(NEEDS_MCP) from error

    def told(question: Callable[..., Any]) -> Callable[..., Any]:
        """Return a question whose errors reach the agent as their sentence."""

        @wraps(question)
        def answer(*arguments: Any, **named: Any) -> Any:
            try:
                return question(*arguments, **named)
            except HolterError as error:
                raise ToolError(str(error)) from error
            except OSError as error:
                raise ToolError(f"{error.strerror or error}.") from error

        return answer

    server = MCPServer("holter", instructions=INSTRUCTIONS, version=__version__)
    reads = ToolAnnotations(read_only_hint=True, open_world_hint=False)
    for question in (
        questions.list_runs,
        questions.diagnose,
        questions.evidence,
        questions.explain,
        questions.next_experiment,
    ):
        server.tool(annotations=reads)(told(question))
    return server
