"""Runs commands in this process against one memory store with a clock that stands still."""

import asyncio
import json
from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from typing import Any, NamedTuple, TypeVar

import pytest

from penstock import Client, MemoryStore, connect
from penstock.cli import run
from penstock.cli.session import Edge, Opener
from penstock.options import Options
from penstock.testing import FakeClock

T = TypeVar("T")


class Answer(NamedTuple):
    """What a command left behind."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        """The one document on stdout."""
        return json.loads(self.out)

    @property
    def error(self) -> Any:
        """The one document on stderr."""
        assert self.out == ""
        return json.loads(self.err)["error"]

    @property
    def line(self) -> str:
        """The one line on stderr."""
        assert self.out == ""
        assert self.err.count("\n") == 1
        assert "Traceback" not in self.err
        return self.err.rstrip("\n")


class Cli:
    """``cli("jobs", "list")`` runs that command."""

    def __init__(self, capsys: pytest.CaptureFixture[str]) -> None:
        self.clock = FakeClock()
        self.store = MemoryStore(self.clock)
        self.environ = {"USER": "ada"}
        self.ask: Callable[[str], bool] | None = None
        self.opener: Opener = self.open
        self._capsys = capsys

    def __call__(self, *args: str) -> Answer:
        code = run(args, Edge(self.opener, self.environ, self.clock, self.ask))
        out, err = self._capsys.readouterr()
        return Answer(code, out, err)

    def ok(self, *args: str) -> Any:
        """The JSON that the command answers, which must work."""
        answer = self(*args, "--json")
        assert (answer.code, answer.err) == (0, "")
        return answer.json

    def open(self, options: Options) -> AbstractAsyncContextManager[Client]:
        return connect(
            store=self.store, tenant=options.tenant, actor=options.actor, clock=self.clock, options=options.broker
        )

    def do(self, work: Callable[[Client], Awaitable[T]]) -> T:
        """Do something to the store without the command line."""

        async def opened() -> T:
            async with connect(store=self.store, clock=self.clock, actor="worker") as client:
                return await work(client)

        return asyncio.run(opened())

    def enqueue(self, queue: str = "mail", **options: Any) -> str:
        """The id of a new job."""

        async def work(client: Client) -> str:
            return (await client.enqueue(queue, {"to": "bob"}, **options)).id

        return self.do(work)

    def dead(self, queue: str = "mail", error: str = "boom", **options: Any) -> str:
        """The id of a new job that has failed for good."""
        job_id = self.enqueue(queue, max_attempts=1, **options)

        async def work(client: Client) -> str:
            [lease] = await client.lease(queue, worker="w1")
            await client.nack(lease, error)
            assert lease.job.id == job_id
            return job_id

        return self.do(work)
