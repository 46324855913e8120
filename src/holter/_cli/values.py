"""Values of options as text on the command line."""

_WORDS = {"true": True, "yes": True, "on": True, "false": False, "no": False, "off": False}


def cast(text: str, default: object) -> object:
    """Return `text` in the type of `default`, a number if that is None; ValueError if it is not."""
    if isinstance(default, bool):
        if text.lower() not in _WORDS:
            raise ValueError(text)
        return _WORDS[text.lower()]
    if default is None:
        return float(text)
    if isinstance(default, int | float | str):
        return type(default)(text)
    raise ValueError(text)


def kind(default: object) -> str:
    """Return the type of an option in words: `a whole number`."""
    names = {bool: "true or false", int: "a whole number", float: "a number", str: "text"}
    return names.get(type(default), "a number" if default is None else type(default).__name__)
