"""``penstock verify``: read a store's whole log, and say whether it keeps the promises."""

from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Final

import msgspec
import typer
from rich.console import RenderableType
from rich.text import Text

from penstock.cli import screens
from penstock.cli.command import command
from penstock.cli.exits import CORRUPT, OK
from penstock.cli.progress import progress
from penstock.cli.session import Session, Usage
from penstock.cli.text import counted, one_line
from penstock.domain.events import Record
from penstock.domain.verify import Finding, Live, Verifier
from penstock.errors import Corrupt, Invalid
from penstock.stores.log.bucket import Bucket
from penstock.stores.log.reading import StillStore, extent, read_log
from penstock.stores.urls import bucket_at

app = typer.Typer()

# What is wrong so often need not be shown each time; the numbers by rule are of all.
_SHOWN: Final = 100


@dataclass
class Report:
    """What was read and what was found; ``whole`` says that the log was read to its end and compared with the store."""

    verifier: Verifier
    records: int = 0
    seconds: float = 0.0
    whole: bool = False
    shown: list[Finding] = field(default_factory=list)
    by_rule: Counter[str] = field(default_factory=Counter)

    def add(self, finding: Finding) -> None:
        """Take it down."""
        self.by_rule[finding.rule] += 1
        if len(self.shown) < _SHOWN:
            self.shown.append(finding)

    def read(self, record: Record) -> None:
        """Check the next record."""
        self.records += 1
        for finding in self.verifier.check(record):
            self.add(finding)

    def end(self, live: Live) -> None:
        """Compare the log, which was read to its end, with the store."""
        for finding in self.verifier.finish(live):
            self.add(finding)
        self.whole = True

    @property
    def clean(self) -> bool:
        """Whether all was looked at, and nothing was wrong."""
        return self.whole and not self.by_rule


@command(app, "verify")
async def verify(session: Session) -> int:
    """Read the whole log of the store, of all tenants: is a job lost or doubled, is any promise broken?"""
    async with _bucket(session) as bucket:
        report = await _examined(session, bucket)
    session.tell(_document(report), *_screen(report))
    return OK if report.clean else CORRUPT


@asynccontextmanager
async def _bucket(session: Session) -> AsyncIterator[Bucket]:
    url = session.options.store
    if url is None:
        raise Usage("no store: give --store URL, or set PENSTOCK_STORE")
    if url.lower().startswith("memory:"):
        raise Invalid("memory:// keeps its log in the process that uses it, so there is nothing to verify from here")
    bucket = bucket_at(url, session.edge.clock)
    try:
        yield bucket
    finally:
        await bucket.close()


async def _examined(session: Session, bucket: Bucket) -> Report:
    """Open the store, read the log up to where the store stands, and compare the two."""
    clock = session.edge.clock
    began = clock.elapsed()
    within, base = await extent(bucket)
    report = Report(Verifier(base))
    store: StillStore | Corrupt
    try:
        store = await StillStore.open(bucket, clock)
        # Records were listed before: what lies beyond the store's last is behind one that is missing.
        within = msgspec.structs.replace(within, last=max(store.seq, within.last))
    except Corrupt as error:
        # No process can open it. The log may say more of why, and is read as far as there are records.
        store = error
    with progress(session, "verify", within.records) as advance:
        try:
            async for record in read_log(bucket, within):
                report.read(record)
                advance(1)
        except Corrupt as error:
            report.add(_corrupt(report.verifier.seq + 1, error))
        else:
            if isinstance(store, Corrupt):
                report.add(_corrupt(0, store))
            else:
                report.end(await store.live(report.verifier.tenants))
    report.seconds = clock.elapsed() - began
    return report


def _corrupt(seq: int, error: Corrupt) -> Finding:
    return Finding("corrupt", seq, 0, None, str(error))


def _document(report: Report) -> dict[str, object]:
    return {
        "ok": report.clean,
        "records": report.records,
        "events": report.verifier.events,
        "jobs": report.verifier.jobs,
        "finished": report.verifier.finished,
        "seconds": round(report.seconds, 3),
        "rules": dict(report.by_rule),
        "findings": report.shown,
    }


def _screen(report: Report) -> list[RenderableType]:
    verifier = report.verifier
    read = ", ".join(
        (
            f"{counted(report.records, 'record')}, {counted(verifier.events, 'event')}",
            f"{counted(verifier.jobs, 'job')} of which {verifier.finished:,} finished, in {report.seconds:.1f} s",
        )
    )
    if report.clean:
        return [f"{read}: nothing lost, nothing doubled"]
    more = sum(report.by_rule.values()) - len(report.shown)
    rest = [Text(f"and {more:,} more; by rule: {_numbers(report)}", style="dim")] if more else []
    return [_table(report), *rest, f"{read}: {counted(sum(report.by_rule.values()), 'finding')}"]


def _table(report: Report) -> RenderableType:
    table = screens.table()
    table.add_column("RULE", no_wrap=True)
    table.add_column("SEQ", no_wrap=True, justify="right")
    table.add_column("JOB", overflow="fold")
    table.add_column("WHAT", overflow="fold")
    for found in report.shown:
        job = "-" if found.job_id is None else one_line(found.job_id)
        table.add_row(Text(found.rule, style="red"), str(found.seq or "-"), job, Text(one_line(found.message)))
    return table


def _numbers(report: Report) -> str:
    return ", ".join(f"{rule} {count:,}" for rule, count in report.by_rule.most_common())
