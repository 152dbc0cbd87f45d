"""What ``penstock demo`` shows and runs: the same lines."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

import penstock
from penstock.domain.events import Entry
from penstock.domain.queries import QueueStats


@dataclass(frozen=True)
class Happened:
    """What a step led to: in sentences, and as the history of a job or the numbers of queues."""

    lines: Sequence[str] = ()
    history: Sequence[Entry] = ()
    queues: Sequence[QueueStats] = ()


def mail(queue: penstock.SyncClient) -> Iterator[Happened]:
    """Jobs that succeed, fail, die and come back. A block is a step: its title, its lines, and what came of them."""
    # Enqueue three jobs. The same idempotency key again is the same job.
    soon = penstock.Backoff(penstock.Policy.FIXED, base_s=0.2)
    hello = queue.enqueue("email", {"to": "ada"}, idempotency_key="hello-ada")
    again = queue.enqueue("email", {"to": "ada"}, idempotency_key="hello-ada")
    bill = queue.enqueue("email", {"to": "bob"}, max_attempts=2, backoff=soon)
    queue.enqueue("reports", {"month": "May"}, backoff=soon)
    yield Happened([f"three jobs are {hello.state}; again.id == hello.id is {again.id == hello.id}"])

    # A worker leases the first one, and says with a heartbeat how far it is.
    [lease] = queue.lease("email", worker="w1", lease_s=30)
    holding = queue.heartbeat(lease, progress=0.5)
    hello = queue.get(hello.id)
    yield Happened([f"{holding} by {hello.worker}: attempt {hello.attempt} is at {hello.progress:.0%}"])

    # The work is done: ack it, with a result and a follow-up job in one commit.
    follow_up = penstock.NewJob("audit", {"mailed": "ada"})
    queue.ack(lease, {"sent": True}, then=[follow_up])
    hello = queue.get(hello.id)
    [audit] = queue.list(queue="audit")
    yield Happened([f"{hello.state} with {hello.result}; in audit, {audit.payload} is {audit.state}"])

    # Another job fails. It is tried again, and dead after its last attempt.
    [lease] = queue.lease("email", worker="w1")
    first = queue.nack(lease, "smtp.example.com: connection refused")
    [lease] = queue.lease("email", worker="w2", wait_s=10)
    second = queue.nack(lease, "smtp.example.com: connection refused")
    yield Happened(
        [
            f"attempt {first.attempt}: {first.state} again, to run at {first.run_at:%H:%M:%SZ}",
            f"attempt {second.attempt}: {second.state}, because {second.reason}",
        ]
    )

    # An operator has seen to the cause, and has the dead job run once more.
    bill = queue.requeue(bill.id)
    [lease] = queue.lease("email", worker="w1")
    ended = queue.ack(lease)
    yield Happened([f"requeued with attempt {bill.attempt} of {bill.max_attempts}, then {ended.state}"])


def reports(queue: penstock.SyncClient) -> Iterator[Happened]:
    """A job whose worker goes quiet, and what can be looked at in the end."""
    # A worker leases a job for one second and goes quiet. Another one waits.
    [quiet] = queue.lease("reports", worker="w1", lease_s=1)
    [other] = queue.lease("reports", worker="w2", wait_s=10)
    yield Happened(
        [f"w1's lease expired; w2 got the same job {other.waited_s:.1f} s later, attempt {other.job.attempt}"]
    )

    # The quiet one wakes up and is too late: one completion is accepted, not two.
    queue.ack(other, "by w2")
    try:
        queue.ack(quiet, "by w1")
        late = "was accepted"
    except penstock.LeaseLost as lost:
        late = f"is refused: {lost.message}"
    report = queue.get(quiet.job.id)
    yield Happened([f"w1's ack {late}", f"the job {report.state}, its result is {report.result!r}"])

    # All of that is in the job's history.
    history = queue.history(report.id)
    yield Happened(history=history)

    # And this is where the jobs are now.
    stats = queue.stats()
    yield Happened(queues=stats)


# In this order, on one queue.
STORY: Final = (mail, reports)
