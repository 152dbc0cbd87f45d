"""The whole state after one commit as bytes: a header line, then one line for each job, setting and forgotten setting.

    snapshot/00000000000000000040.jsonl

    {"v":1,"log":"77ab...","seq":40,"commit":"c310...","now":"2030-...","log_time":"2030-...","order":91,
     "jobs":1,"settings":1,"revs":0,"sha256":"02cf..."}
    {"id":"0193...","tenant":"default","queue":"mail", ...}
    {"tenant":"default","kind":"queue","name":"mail","value":{"paused":true},"rev":1, ...}

A job's line is the job as the tables hold it. ``now``, ``log_time`` and ``order`` are the tables' own (rule 8). Of a
setting that was deleted the rev stays, so that it goes on. A snapshot is a function of the log alone.
"""

import hashlib
from collections.abc import AsyncIterator, Iterator, Sequence
from datetime import datetime
from itertools import chain, islice
from typing import Final, TypeVar

import msgspec
from msgspec import Struct

from penstock.clock import Clock, pause
from penstock.domain.commands import SettingKind
from penstock.domain.events import VERSION
from penstock.domain.job import Job
from penstock.domain.settings import Setting
from penstock.domain.tables import Tables
from penstock.errors import Corrupt
from penstock.stores.log import record

FOLDER: Final = "snapshot/"
# What stands for the hash until it is known.
_BLANK: Final = "-" * 64
# So many lines are written before others get a turn: about a millisecond's worth.
_SLICE: Final = 250
_BREATH_S: Final = 0.001
_T = TypeVar("_T")


class Header(Struct, frozen=True, gc=False, kw_only=True):
    """The first line of a snapshot."""

    v: int
    log: str
    seq: int
    commit: str
    now: datetime
    log_time: datetime
    order: int
    jobs: int
    settings: int
    revs: int
    sha256: str


class Rev(Struct, frozen=True, gc=False):
    """How often a setting was changed that is no more."""

    tenant: str
    kind: SettingKind
    name: str
    rev: int


_encoder: Final = msgspec.json.Encoder()
_header: Final = msgspec.json.Decoder(Header)
_job: Final = msgspec.json.Decoder(Job)
_setting: Final = msgspec.json.Decoder(Setting)
_rev: Final = msgspec.json.Decoder(Rev)


def key(seq: int) -> str:
    """Where the snapshot lies."""
    return f"{FOLDER}{seq:020}.jsonl"


def seq_of(name: str) -> int:
    """Which commit a snapshot's key names; -1 for what is no snapshot."""
    digits = name.removeprefix(FOLDER).removesuffix(".jsonl")
    return int(digits) if len(digits) == 20 and digits.isdecimal() and key(int(digits)) == name else -1


class Image:
    """The state as it is at this moment, which stays so whatever happens to the tables: jobs are values."""

    def __init__(self, tables: Tables, *, log: str, commit: str) -> None:
        # Whole lists at once: a million jobs are taken down in some milliseconds, one by one in many.
        jobs = [list(tenant.jobs.values()) for tenant in tables.tenants.values()]
        gone = ((key, rev) for key, rev in tables.setting_revs.items() if key not in tables.settings)
        revs = [Rev(*key, rev) for key, rev in gone]
        self.seq = tables.seq
        self._lines: list[Sequence[Struct]] = [*jobs, list(tables.settings.values()), revs]
        self._header = Header(
            v=VERSION,
            log=log,
            seq=tables.seq,
            commit=commit,
            now=tables.now,
            log_time=tables.log_time,
            order=tables.order,
            jobs=sum(map(len, jobs)),
            settings=len(tables.settings),
            revs=len(revs),
            sha256=_BLANK,
        )

    async def encode(self, clock: Clock) -> bytearray:
        """The bytes, made in slices between which others get a turn.

        They grow in place, with room for the hash, since joining hundreds of megabytes would hold everybody up.
        """
        data = bytearray(_encoder.encode(self._header) + b"\n")
        room = data.index(_BLANK.encode())
        digest = hashlib.sha256()
        async for part in _sliced(chain.from_iterable(self._lines), clock):
            written = _encoder.encode_lines(part)
            digest.update(written)
            data += written
        data[room : room + len(_BLANK)] = digest.hexdigest().encode()
        return data


def decode(data: bytes, seq: int) -> tuple[Header, Tables]:
    """The state, if these are the bytes that some process has written after commit ``seq``; else Corrupt."""
    name = key(seq)
    first, _, body = data.partition(b"\n")
    record.check_version(first, name)
    try:
        header = _header.decode(first)
    except msgspec.DecodeError as error:
        raise Corrupt(f"the header of this snapshot cannot be read ({error})", object=name) from error
    if header.seq != seq:
        raise Corrupt("this snapshot belongs elsewhere", object=name, seq=header.seq)
    record.check_body(body, header.jobs + header.settings + header.revs, header.sha256, name)
    try:
        return header, _loaded(header, iter(body.split(b"\n")))
    except msgspec.DecodeError as error:
        raise Corrupt(f"a line of this snapshot cannot be read ({error})", object=name) from error


def _loaded(header: Header, lines: Iterator[bytes]) -> Tables:
    tables = Tables()
    tables.now, tables.now_s = header.now, header.now.timestamp()
    tables.log_time, tables.order, tables.seq = header.log_time, header.order, header.seq
    for line in islice(lines, header.jobs):
        tables.load(_job.decode(line))
    for line in islice(lines, header.settings):
        setting = _setting.decode(line)
        tables.put_setting((setting.tenant, setting.kind, setting.name), setting, setting.rev)
    for line in islice(lines, header.revs):
        gone = _rev.decode(line)
        tables.put_setting((gone.tenant, gone.kind, gone.name), None, gone.rev)
    return tables


async def _sliced(lines: Iterator[_T], clock: Clock) -> AsyncIterator[list[_T]]:
    part = list(islice(lines, _SLICE))
    while part:
        yield part
        part = list(islice(lines, _SLICE))
        if part:
            # A real pause: the thread that writes commits needs the interpreter too.
            await pause(clock, _BREATH_S)
