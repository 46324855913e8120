"""Thin adapters to other tools: frameworks, trackers, notebooks, coding agents.

A callback opens a watch where a framework begins to train and closes it where it ends; everything
else is the watch's. A tracker is sent what a run holds. Each tool is imported by its own file.
"""
