"""The page is tested with the rules as they are."""

import pytest


@pytest.fixture(autouse=True)
def made_up_rules() -> None:
    """Take the place of the fixture for text reports."""
