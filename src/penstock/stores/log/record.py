"""One commit as bytes: a header line, then one event per line.

    log/00000000000000000042.jsonl

    {"v":1,"seq":42,"commit":"5f1c...","prev":"a09b...","at":"2030-01-01T00:00:00Z","lines":1,"sha256":"9e10..."}
    {"event":"leased","id":"0193...","queue":"mail","kind":"mail","rev":2,"before":41,"attempt":1,"lease_no":1, ...}

``commit`` is a random id of the writer's, by which it knows its own write again; ``prev`` is that of the record
before, so that a record which belongs elsewhere is noticed; ``sha256`` is of the event lines. Seq 1 is the genesis
record: it has no events, and says in ``log`` which log this is and in ``layout`` how it is kept.
"""

import hashlib
from datetime import datetime
from typing import Annotated, Final

import msgspec
from msgspec import Meta, Struct

from penstock.domain.events import VERSION, AnyEvent, Record
from penstock.errors import Corrupt

LAYOUT: Final = "log"
_encoder: Final = msgspec.json.Encoder()
_events: Final = msgspec.json.Decoder(AnyEvent)


class Version(Struct, frozen=True, gc=False):
    """What every release can read of any header: which format the rest is in."""

    v: int


class Header(Struct, frozen=True, gc=False, omit_defaults=True, kw_only=True):
    """The first line of a record."""

    v: int
    seq: int
    commit: str
    prev: str
    at: Annotated[datetime, Meta(tz=True)]
    lines: int
    sha256: str
    log: str | None = None
    layout: str | None = None


_header: Final = msgspec.json.Decoder(Header)
_version: Final = msgspec.json.Decoder(Version)


def key(seq: int) -> str:
    """Where the record lies."""
    return f"log/{seq:020}.jsonl"


def encode(record: Record, *, commit: str, prev: str, log: str | None = None) -> bytes:
    """The bytes of a record; those of the genesis record say which log it begins."""
    body = _encoder.encode_lines(record.events)
    header = Header(
        v=VERSION,
        seq=record.seq,
        commit=commit,
        prev=prev,
        at=record.at,
        lines=len(record.events),
        sha256=hashlib.sha256(body).hexdigest(),
        log=log,
        layout=None if log is None else LAYOUT,
    )
    return _encoder.encode(header) + b"\n" + body


def decode(data: bytes, seq: int) -> tuple[Header, Record]:
    """The record, if these are the bytes that some process has written as commit ``seq``; else Corrupt."""
    name = key(seq)
    first, _, body = data.partition(b"\n")
    header = read_header(first, name)
    if header.seq != seq or header.layout not in {None, LAYOUT}:
        raise Corrupt("this record belongs elsewhere", object=name, seq=header.seq, layout=header.layout)
    check_body(body, header.lines, header.sha256, name)
    try:
        events = _events.decode_lines(body)
    except msgspec.DecodeError as error:
        raise Corrupt(f"an event of this record cannot be read ({error})", object=name) from error
    return header, Record(seq, header.at, tuple(events))


def read_header(line: bytes, name: str) -> Header:
    """The header of a record that this release can read."""
    check_version(line, name)
    try:
        return _header.decode(line)
    except msgspec.DecodeError as error:
        raise Corrupt(f"the header of this object cannot be read ({error})", object=name) from error


def check_version(line: bytes, name: str) -> None:
    """Refuse what is no header, and what a newer release has written: never is it taken for nothing."""
    try:
        version = _version.decode(line).v
    except msgspec.DecodeError as error:
        raise Corrupt(f"this object does not begin with a header ({error})", object=name) from error
    if version > VERSION:
        raise Corrupt("a newer release wrote this object; use that one", object=name, format=version, known=VERSION)


def check_body(body: bytes, lines: int, sha256: str, name: str) -> None:
    """Refuse lines that are not the ones the header speaks of."""
    if body.count(b"\n") != lines or hashlib.sha256(body).hexdigest() != sha256:
        raise Corrupt("this object is cut or damaged", object=name, lines=body.count(b"\n"), expected=lines)
