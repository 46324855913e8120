"""InapplicableError: raised by whatever an experiment needs and a setup does not offer."""


class InapplicableError(Exception):
    """An experiment cannot be run on this setup; the sentence says why."""
