"""The one error holter raises for what a user can put right."""


class HolterError(Exception):
    """Something the user can put right; the message is one sentence that says how."""
