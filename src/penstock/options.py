"""Every option of a process, in one table: flag, variable, default, unit and range. Read once, at the edge."""

import os
import pwd
import re
from collections.abc import Mapping
from enum import StrEnum
from types import MappingProxyType
from typing import Any, Final

from msgspec import Struct

from penstock.broker import BrokerOptions
from penstock.domain import limits
from penstock.domain.job import DEFAULT_TENANT
from penstock.errors import Invalid

PREFIX: Final = "PENSTOCK_"
DEFAULT: Final = "default"
FLAG: Final = "flag"


class Kind(StrEnum):
    """What values of an option look like."""

    TEXT = "text"
    NAME = "name"
    WHOLE = "whole number"
    NUMBER = "number"


class Option(Struct, frozen=True, kw_only=True):
    """One line of the table. ``least`` and ``most`` bound a number, or the length of a text."""

    name: str
    kind: Kind
    default: str | float | None
    least: float
    most: float
    help: str
    unit: str = ""
    # What the default is in words, where the value alone does not say it.
    default_is: str = ""
    # Whether a value can hold a password, which is masked wherever the value is shown.
    secret: bool = False

    @property
    def flag(self) -> str:
        """How it is given on the command line."""
        return f"--{self.name.replace('_', '-')}"

    @property
    def variable(self) -> str:
        """How it is given in the environment."""
        return f"{PREFIX}{self.name.upper()}"

    @property
    def range(self) -> str:
        """Which values it takes, in words."""
        match self.kind:
            case Kind.NAME:
                return f"1 to {self.most:g} of A-Z a-z 0-9 . _ : - beginning with a letter or digit"
            case Kind.TEXT:
                return f"{self.least:g} to {self.most:g} characters"
            case Kind.WHOLE | Kind.NUMBER:
                return f"a {self.kind} from {_plain(self.least)} to {_plain(self.most)}"

    @property
    def default_text(self) -> str:
        """The default, for people."""
        if self.default_is:
            return self.default_is
        return _plain(self.default) if isinstance(self.default, int | float) else str(self.default)


_BROKER: Final = BrokerOptions()

TABLE: Final = (
    Option(
        name="store",
        kind=Kind.TEXT,
        default=None,
        default_is="none",
        least=1,
        most=2048,
        secret=True,
        help="Where the jobs live, as a URL such as file:///var/lib/jobs.",
    ),
    Option(
        name="tenant",
        kind=Kind.NAME,
        default=DEFAULT_TENANT,
        least=1,
        most=128,
        help="Whose jobs, queues and settings these are.",
    ),
    Option(
        name="actor",
        kind=Kind.TEXT,
        default=None,
        default_is="your login name, or cli",
        least=1,
        most=256,
        help="Who acts, as the history will name it.",
    ),
    Option(
        name="most_waiting",
        kind=Kind.WHOLE,
        default=_BROKER.most_waiting,
        unit="commands",
        least=1,
        most=1_000_000,
        help="How many commands may wait for a commit before more are refused as busy.",
    ),
    Option(
        name="sweep_s",
        kind=Kind.NUMBER,
        default=_BROKER.sweep_s,
        unit="seconds",
        least=0.05,
        most=60,
        help="How often overdue leases and deadlines are looked for.",
    ),
    Option(
        name="retention_s",
        kind=Kind.NUMBER,
        default=_BROKER.retention_s,
        unit="seconds",
        least=1,
        most=86_400,
        help="How often finished jobs that were kept long enough are purged.",
    ),
    Option(
        name="poll_s",
        kind=Kind.NUMBER,
        default=_BROKER.poll_s,
        unit="seconds",
        least=0.05,
        most=60,
        help="How long a waiting call sleeps at most before it looks again.",
    ),
    Option(
        name="answer_s",
        kind=Kind.NUMBER,
        default=_BROKER.answer_s,
        unit="seconds",
        least=1,
        most=3600,
        help="How long a caller waits for a store that does not answer before its outcome is unknown.",
    ),
)


class Options(Struct, frozen=True, kw_only=True):
    """The options of this process. ``came_from`` says of each: flag, default, or the name of the variable."""

    store: str | None
    tenant: str
    actor: str
    most_waiting: int
    sweep_s: float
    retention_s: float
    poll_s: float
    answer_s: float
    came_from: Mapping[str, str]

    @property
    def broker(self) -> BrokerOptions:
        """Those that are the broker's."""
        return BrokerOptions(**{name: getattr(self, name) for name in BrokerOptions.__struct_fields__})


def read(flags: Mapping[str, str | None], environ: Mapping[str, str]) -> Options:
    """The value of every option: a flag beats a variable beats the default. An empty variable counts as unset."""
    values: dict[str, Any] = {}
    came_from: dict[str, str] = {}
    for option in TABLE:
        given, variable = flags.get(option.name), environ.get(option.variable)
        if given is not None:
            values[option.name], came_from[option.name] = _parsed(option, given), FLAG
        elif variable:
            values[option.name], came_from[option.name] = _parsed(option, variable), option.variable
        else:
            values[option.name], came_from[option.name] = option.default, DEFAULT
    if values["actor"] is None:
        values["actor"] = _login(environ)
    return Options(**values, came_from=MappingProxyType(came_from))


def unknown(environ: Mapping[str, str]) -> list[str]:
    """Variables that look like ours and are not: a misspelt one would be ignored in silence."""
    known = {option.variable for option in TABLE}
    return sorted(name for name in environ if name.startswith(PREFIX) and name not in known)


def shown(option: Option, value: object) -> str:
    """The value for people's eyes: numbers without noise, credentials masked."""
    if value is None:
        return ""
    if isinstance(value, int | float):
        return _plain(value)
    return masked(str(value)) if option.secret else str(value)


def masked(url: str) -> str:
    """The URL without what could be a password, in user info or query."""
    scheme, found, rest = url.partition("://")
    if not found:
        # What is no URL at all may be anything, also a password pasted into the wrong place.
        return "***" if "@" in url else url
    # The last @ counts, as a password can hold every other character; a directory's name can hold one too.
    if "@" in rest and scheme != "file":
        rest = f"***@{rest.rpartition('@')[2]}"
    return scheme + "://" + _SECRET.sub(r"\1***", rest)


_SECRET: Final = re.compile(r"(?i)([?&][^=&]*(?:pass|secret|token|key|sig|credential)[^=&]*=)[^&#]*")


def _parsed(option: Option, text: str) -> str | int | float:
    try:
        match option.kind:
            case Kind.WHOLE:
                return int(_bounded(option, int(text), text))
            case Kind.NUMBER:
                return _bounded(option, float(text), text)
            case Kind.NAME:
                limits.name(option.name, text)
            case Kind.TEXT:
                limits.text(option.name, text, least=int(option.least), most=int(option.most))
    except (Invalid, ValueError) as error:
        raise _refused(option, text) from error
    return text


def _bounded(option: Option, number: float, text: str) -> float:
    if not option.least <= number <= option.most:
        raise _refused(option, text)
    return number


def _refused(option: Option, text: str) -> Invalid:
    unit = f", in {option.unit}" if option.unit else ""
    return Invalid(
        f"{option.flag} ({option.variable}) must be {option.range}{unit}", value=repr(shown(option, text))[:80]
    )


def _login(environ: Mapping[str, str]) -> str:
    named = environ.get("LOGNAME") or environ.get("USER")
    if named:
        return limits.cut("actor", named, 200)
    try:
        return pwd.getpwuid(os.getuid()).pw_name
    except KeyError:
        # A container may run as a user that no file names.
        return "cli"


def _plain(number: float) -> str:
    return f"{number:.15g}"
