"""Shared by all tests: one thread, as two cores are shared by many."""

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")
