"""The reason why something cannot be told without running the file."""


class UnreadableError(Exception):
    """Says why, in words that go into a sentence after what it is about: "… is a call of 'load', which …"."""
