"""Trainings run again on purpose: setups, state, changes, experiments, replay, birth."""
