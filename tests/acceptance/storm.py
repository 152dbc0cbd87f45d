"""Several processes on one store, killed and stopped at random; the ledger is kept here, where nobody is killed."""

import os
import random  # noqa: TID251 a test's own choices, from its seed
import signal
import subprocess
import sys
import threading
import time
from collections import Counter, defaultdict
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Self

SCRIPT = Path(__file__).with_name("storm_process.py")


class Ledger:
    """What the processes were answered."""

    def __init__(self) -> None:
        self.accepted: set[str] = set()
        self.acked: defaultdict[str, set[str]] = defaultdict(set)
        self.said: Counter[str] = Counter()
        self.problems: list[str] = []

    def hear(self, line: str) -> None:
        word, *rest = line.split()
        self.said[word] += 1
        if word == "accepted":
            self.accepted.add(rest[0])
        elif word == "acked":
            # The same lease may be acked twice by one who repeats; two leases may not.
            self.acked[rest[0]].add(rest[1])

    @property
    def doubled(self) -> list[str]:
        return [job_id for job_id, leases in self.acked.items() if len(leases) > 1]


class Storm:
    """The processes, each started again when it was killed."""

    def __init__(self, url: str, *, processes: int, jobs: int, seed: int) -> None:
        self.ledger = Ledger()
        self.kills = self.stops = 0
        self._url = url
        self._jobs = jobs
        self._chance = random.Random(seed)  # noqa: S311 as above
        self._lives = 0
        self._ears: dict[int, threading.Thread] = {}
        self._running = [self._start() for _ in range(processes)]

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for process in self._running:
            process.kill()
            self._bury(process)

    def strike(self, *, stop_s: float = 0.0) -> None:
        """Kill one of them, or let one stand still for a while."""
        place = self._chance.randrange(len(self._running))
        process = self._running[place]
        if stop_s:
            process.send_signal(signal.SIGSTOP)
            time.sleep(stop_s)  # longer than a lease, and this is what is tested
            process.send_signal(signal.SIGCONT)
            self.stops += 1
        else:
            process.kill()
            self._bury(process)
            self.kills += 1
            self._running[place] = self._start()

    def rest(self) -> None:
        """Let them work for a moment of chance: from not even started to well under way."""
        time.sleep(self._chance.uniform(0.0, 0.6))

    def end(self) -> None:
        """Tell all to go, and wait for them."""
        for process in self._running:
            assert process.stdin is not None
            process.stdin.close()
        for process in self._running:
            if process.wait(timeout=60) != 0:
                self.ledger.problems.append(f"a process ended with {process.returncode}")

    def _start(self) -> "subprocess.Popen[str]":
        self._lives += 1
        process = subprocess.Popen(  # noqa: S603 our own script
            [sys.executable, str(SCRIPT), self._url, f"p{self._lives}", str(self._jobs)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1"},
        )
        self._ears[process.pid] = threading.Thread(target=self._listen, args=(process,))
        self._ears[process.pid].start()
        return process

    def _bury(self, process: "subprocess.Popen[str]") -> None:
        """Hear what it still has to say, and let go of it."""
        self._ears.pop(process.pid).join()
        process.wait()
        for pipe in (process.stdin, process.stdout):
            assert pipe is not None
            with suppress(BrokenPipeError):
                pipe.close()

    def _listen(self, process: "subprocess.Popen[str]") -> None:
        assert process.stdout is not None
        for line in process.stdout:
            if line.endswith("\n"):
                self.ledger.hear(line)
