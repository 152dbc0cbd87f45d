"""Events: every kind of them can be written as a line and read back, and the state follows from them alone."""

from datetime import timedelta
from typing import get_args

import msgspec
import pytest

from penstock.domain.apply import apply
from penstock.domain.batch import run
from penstock.domain.cells import BEGUN_AT, SCENES, VERBS, Script
from penstock.domain.commands import Command, DeleteSetting, PutSetting, SettingKind
from penstock.domain.events import AnyEvent, Leased, Record, Succeeded
from penstock.domain.job import Job, Output, Reason, Usage
from penstock.domain.queries import Everything, Snapshot, snapshot
from penstock.domain.tables import Tables
from tests.domain.values import a_job

SETTINGS: Script = (
    PutSetting(kind=SettingKind.QUEUE, name="mail", patch={"backoff": {"policy": "fixed"}, "paused": True}),
    DeleteSetting(kind=SettingKind.QUEUE, name="mail"),
)
SCRIPTS = [(*scene, *verb, *SETTINGS) for scene in SCENES.values() for verb in VERBS.values()]


def _played(script: Script) -> tuple[Tables, list[Record]]:
    records: list[Record] = []
    tables, now = Tables(), BEGUN_AT
    for step in script:
        if isinstance(step, Command):
            tables.begin(now, tables.seq + 1)
            _, events = run(tables, [step])
            records.append(Record(len(records) + 1, now, tuple(events)))
        else:
            now += timedelta(seconds=step)
    return tables, records


def _state(tables: Tables) -> tuple[Snapshot, ...]:
    return tuple(snapshot(tables, Everything(tenant=tenant), 0) for tenant in ("default", "other"))


def test_the_state_follows_from_the_events_alone() -> None:
    for script in SCRIPTS:
        tables, records = _played(script)
        again = Tables()
        for record in records:
            again.begin(record.at, record.seq)
            for event in record.events:
                apply(again, event)
        assert _state(again) == _state(tables)


def test_every_event_can_be_written_as_a_line_and_read_back() -> None:
    events = [event for script in SCRIPTS for record in _played(script)[1] for event in record.events]
    assert {type(event) for event in events} == set(get_args(AnyEvent))
    for event in events:
        line = msgspec.json.encode(event)
        assert b"\n" not in line
        assert msgspec.json.decode(line, type=AnyEvent) == event


def test_an_event_keeps_what_it_says_of_an_attempt() -> None:
    event = Succeeded(
        id="x",
        queue="mail",
        kind="mail",
        rev=7,
        attempt=2,
        lease_no=3,
        actor="ann",
        call_id="http-1",
        worker="w1",
        result=b"\x00",
        result_size=1,
        ran_s=1.5,
        usage=Usage(cpu_s=0.5, memory_bytes=1, exit_code=0, signal=9),
        output=Output(stdout="a\nb", stderr="ø"),
    )
    assert msgspec.json.decode(msgspec.json.encode(event), type=AnyEvent) == event


def test_a_whole_job_keeps_everything_it_has() -> None:
    job = a_job(headers={"a": "b"}, payload_bytes=b"\xff", reason=Reason.CRASHED, progress=0.5)
    assert msgspec.json.decode(msgspec.json.encode(job), type=Job) == job


def test_what_a_newer_release_adds_does_not_stop_an_older_reader() -> None:
    line = b'{"event":"leased","id":"x","queue":"q","kind":"k","rev":2,"attempt":1,"lease_no":1,"lease_s":30.0,"call":"c","index":0,"colour":"red"}'
    event = msgspec.json.decode(line, type=AnyEvent)
    assert isinstance(event, Leased)
    assert event.lease_no == 1


@pytest.mark.parametrize("name", ["event", "tenant", "actor", "call_id"])
def test_every_event_says_what_all_events_say(name: str) -> None:
    for kind in get_args(AnyEvent):
        config = kind.__struct_config__
        assert name == config.tag_field or name in kind.__struct_fields__
        assert config.tag == config.tag.lower()
