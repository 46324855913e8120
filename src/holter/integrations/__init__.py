"""Thin adapters: callbacks of training frameworks, and experiment trackers.

A callback opens a watch where a framework begins to train and closes it where it ends; everything
else is the watch's. A tracker is sent what a run holds. Each framework is imported by its own file.
"""
