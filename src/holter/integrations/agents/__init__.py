"""Agents: what a coding agent can ask about runs, as functions and over MCP.

What belongs here answers questions with plain data, and only reads. `questions` needs nothing but
holter; `server` offers them by the Model Context Protocol and needs the package `mcp`.
"""
