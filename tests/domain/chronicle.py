"""A log as the state machine makes it, and ways to have it say something else."""

from collections.abc import Iterable, Sequence
from typing import Any

import msgspec
from msgspec.structs import replace

from penstock.domain import due, fingerprint
from penstock.domain.batch import run
from penstock.domain.commands import Ack, Command, Enqueue, LeaseJobs, Nack
from penstock.domain.events import AnyEvent, Leased, Record
from penstock.domain.job import Job, NewJob
from penstock.domain.outcome import Accepted, Leases, Outcome
from penstock.domain.queries import Everything, Stats, snapshot, stats
from penstock.domain.tables import Tables
from penstock.domain.verify import Finding, Live, Verifier
from penstock.testing import FakeClock
from tests.model.wishes import World

_EVENTS = msgspec.json.Decoder(tuple[AnyEvent, ...])
QUEUE = "mail"


class Chronicle:
    """A state machine that keeps its log."""

    def __init__(self) -> None:
        self.clock = FakeClock()
        self.tables = Tables()
        self.world = World(self.clock, self.tables)
        self.records = [Record(1, self.clock.now(), ())]
        self.tables.begin(self.clock.now(), 1)
        self._watch = due.LeaseWatch()

    def commit(self, *batch: Command) -> list[Outcome]:
        self.tables.begin(self.clock.now(), self.tables.seq + 1)
        outcomes, events = run(self.tables, batch)
        if events:
            # As a reader of the log gets them.
            read = _EVENTS.decode(msgspec.json.encode(events))
            self.records.append(Record(self.tables.seq, self.tables.now, read))
            self._watch.hear(read, self.clock.elapsed())
        else:
            self.tables.rollback()
        self._note(batch, outcomes)
        return outcomes

    def _note(self, batch: Sequence[Command], outcomes: Sequence[Outcome]) -> None:
        """What callers learn."""
        world = self.world
        for command, outcome in zip(batch, outcomes, strict=True):
            if isinstance(outcome, Leases):
                world.leases += [(command.tenant, lease.job.id, lease.token) for lease in outcome.leases]
            elif isinstance(outcome, Accepted):
                world.jobs += [(command.tenant, job.id) for job in outcome.jobs]
            if isinstance(command, LeaseJobs):
                world.calls.append((command.tenant, command.request_id))

    def overdue(self) -> Sequence[Command]:
        elapsed, now = self.clock.elapsed(), self.clock.now()
        return [*self._watch.expired(elapsed), *self._watch.halfway(elapsed), *due.lapsed(self.tables, now)]

    def outlived(self) -> Sequence[Command]:
        return due.outlived(self.tables, self.clock.now())

    @property
    def seq(self) -> int:
        return self.tables.seq

    def live(self, jobs: tuple[Job, ...] | None = None) -> Live:
        """What a store would say it holds; these jobs, if they are given."""
        tables, now = self.tables, self.clock.now()
        held = {}
        for name in tables.tenants:
            everything = snapshot(tables, Everything(tenant=name), tables.seq)
            told = everything if jobs is None else replace(everything, jobs=jobs)
            held[name] = (told, stats(tables, Stats(tenant=name), now))
        return Live(tables.seq, held)

    def enqueue(self, **options: Any) -> str:
        new = NewJob(options.pop("queue", QUEUE), 1, id=self.clock.job_id(), **options)
        self.commit(Enqueue(jobs=(new,)))
        assert new.id is not None
        return new.id

    def lease(self, **options: Any) -> tuple[str, str]:
        """Lease the first job: its id and its token."""
        self.commit(LeaseJobs(queues=(QUEUE,), request_id=self.clock.secret(), **options))
        _, job_id, token = self.world.leases[-1]
        return job_id, token

    def leased(self, **options: Any) -> tuple[str, str]:
        self.enqueue(**options)
        return self.lease()

    def succeeded(self, **options: Any) -> str:
        job_id, token = self.leased(**options)
        self.commit(Ack(job_id=job_id, token=token))
        return job_id

    def dead(self) -> str:
        job_id, token = self.leased()
        self.commit(Nack(job_id=job_id, token=token, retry=False))
        return job_id

    def job(self, job_id: str) -> Job:
        job = self.tables.find("default", job_id)
        assert job is not None
        return job

    def next(self, job_id: str) -> dict[str, Any]:
        """What an event that follows the last one of the job says of it."""
        job = self.job(job_id)
        return {"id": job.id, "queue": job.queue, "kind": job.kind, "rev": job.rev + 1, "before": job.seq}

    def attempt(self, job_id: str) -> dict[str, Any]:
        """The same for an event of its last attempt."""
        job = self.job(job_id)
        return {**self.next(job_id), "attempt": job.attempt, "lease_no": job.lease_no}

    def a_lease(self, job_id: str, **fields: Any) -> Leased:
        """The event of a lease of this job, whether it may be leased or not."""
        facts = self.attempt(job_id)
        facts |= {"attempt": facts["attempt"] + 1, "lease_no": facts["lease_no"] + 1, "lease_s": 30.0}
        return Leased(**{**facts, "call": fingerprint.of_call(self.clock.secret()), "index": 0, **fields})

    def add(self, *events: AnyEvent) -> int:
        """A record that the state machine did not make; its seq."""
        self.records.append(Record(self.records[-1].seq + 1, self.clock.now(), events))
        return self.records[-1].seq

    def change(self, seq: int, line: int = 1, **fields: Any) -> int:
        """Have an event say something else; the record's seq."""
        record = self.records[seq - 1]
        events = list(record.events)
        events[line - 1] = replace(events[line - 1], **fields)
        self.records[seq - 1] = replace(record, events=tuple(events))
        return seq

    def drop(self, seq: int, line: int = 1) -> None:
        """Have an event never been written."""
        record = self.records[seq - 1]
        events = record.events[: line - 1] + record.events[line:]
        self.records[seq - 1] = replace(record, events=events)


def findings(records: Iterable[Record], live: Live | None = None) -> list[Finding]:
    """All that the checker says."""
    verifier = Verifier()
    return [*(found for record in records for found in verifier.check(record)), *verifier.finish(live)]
