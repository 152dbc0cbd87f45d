"""Which release this is."""


def release() -> str:
    """The version that was installed."""
    # Read when it is wanted: it takes longer to import than the rest of the command line.
    from importlib import metadata  # noqa: PLC0415

    return metadata.version("penstock")
