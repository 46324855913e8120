"""The one error holter raises for what a user can put right."""

NEEDS_TORCH = "Watching a training needs PyTorch: install it with `pip install 'holter[torch]'`."


class HolterError(Exception):
    """Something the user can put right; the message is one sentence that says how."""
