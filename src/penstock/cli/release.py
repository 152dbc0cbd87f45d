"""Which release this is."""


def release() -> str:
    """The version that was installed."""
    from importlib import metadata  # noqa: PLC0415 read when it is wanted: it takes longer than the rest of the command line

    return metadata.version("penstock")
