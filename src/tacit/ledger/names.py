"""What may stand in a ledger as a name: pseudonyms and ids, short and printable. The offending text is never repeated."""

from tacit.errors import InvalidParameter

MOST_CHARACTERS = 128


def name(what: str, value: str, most: int = MOST_CHARACTERS) -> str:
    """``value``, if it is a text of 1 to ``most`` printable characters (no line breaks, no control characters)."""
    if type(value) is not str:
        raise InvalidParameter(f"{what} must be a text, not {type(value).__name__}.")
    if not 1 <= len(value) <= most:
        raise InvalidParameter(f"{what} must have 1 to {most} characters, not {len(value):,}.")
    if not value.isprintable():
        raise InvalidParameter(f"{what} must be printable: no line breaks, control characters or lone surrogates.")
    return value
