"""Testing: a team tests its training like its code.

`assert_trains` and `assert_overfits_batch` take a setup and raise an AssertionError that carries
the report. The fixtures are in `holter.pytest_plugin`, which every run of pytest imports.
"""

from holter.testing.asserting import assert_overfits_batch, assert_trains

__all__ = ["assert_overfits_batch", "assert_trains"]
