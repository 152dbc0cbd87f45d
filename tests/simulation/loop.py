"""An event loop on virtual time, shared by several simulated processes and driven by one seed.

Every call belongs to the process in whose context it was made. The loop picks at random which process makes its
next call; within one process calls keep their order, as on a real loop. Time moves when nobody has anything to do.
"""

import asyncio
import contextvars
import random  # noqa: TID251 all chance of a simulation comes from this one seeded source
import signal
import sys
import threading
import warnings
from asyncio import events
from collections import deque
from collections.abc import AsyncGenerator, Awaitable, Callable, Coroutine, Generator, Iterator
from contextlib import contextmanager
from heapq import heappop, heappush
from itertools import count
from types import FrameType
from typing import Any, Final, TypeVar

T = TypeVar("T")

# A run that reaches any of these without its end is stuck: calls made, virtual time, and time of this machine's processor.
# An ordinary run makes 4,000 calls in a minute of virtual time and a tenth of a second; the longest of 400 made 36,000.
MOST_CALLS: Final = 400_000
MOST_S: Final = 10_000.0
MOST_CPU_S: Final = 20.0


class Stuck(BaseException):
    """The run would never end. No ``except Exception`` of the product is to keep it from ending here."""


class Process:
    """What shares one fate: its calls are made in order, wait together while it is paused, and vanish when it crashes."""

    def __init__(self, name: str, number: int) -> None:
        self.name = name
        self.number = number
        self.ready: deque[asyncio.Handle] = deque()
        self.tasks: list[SimTask] = []
        self.paused = False
        self.dead = False
        # What befalls the process before its so-manieth next call.
        self.calls_left: int | None = None
        self.mishap: Callable[[], None] = lambda: None


class SimTask(asyncio.Task[Any]):
    """A task that hashes by its number, so that the order of a set of tasks is a matter of the seed alone."""

    def __init__(self, number: int, coro: Coroutine[Any, Any, Any], **options: Any) -> None:
        # Before all else: asyncio keeps every task in a set from its first moment on.
        self.number = number
        super().__init__(coro, **options)

    def __hash__(self) -> int:
        return self.number


OWNER: contextvars.ContextVar[Process] = contextvars.ContextVar("OWNER")


class SimLoop(asyncio.AbstractEventLoop):
    """The part of an event loop that tasks, futures, timeouts and locks use. There is no I/O and there are no threads."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)  # noqa: S311 chance that can be repeated is the point
        self.outside = Process("outside", 0)
        self.outside_context = contextvars.copy_context()
        self.outside_context.run(OWNER.set, self.outside)
        self.unhandled: list[str] = []
        self.order = bytearray()
        self._processes = [self.outside]
        self._buried: list[Process] = []
        self._generators: list[AsyncGenerator[Any, Any]] = []
        self._timers: list[tuple[float, int, asyncio.TimerHandle, Process]] = []
        self._numbers = count(1)
        self._time = 0.0
        self._running = False

    def process(self, name: str) -> tuple[Process, contextvars.Context]:
        """A new process, and the context in which to begin its tasks."""
        process = Process(name, len(self._processes) + len(self._buried))
        context = self.outside_context.copy()
        context.run(OWNER.set, process)
        self._processes.append(process)
        return process, context

    def crash(self, process: Process) -> None:
        """End a process between two of its calls: nothing of it runs any more, no ``finally`` either."""
        process.dead = True
        process.ready.clear()
        self._processes.remove(process)
        self._buried.append(process)

    # What asyncio asks of a loop.

    def time(self) -> float:
        return self._time

    def call_soon(  # type: ignore[override] # the stub's variadic types say no more than this
        self, callback: Callable[..., object], *args: Any, context: contextvars.Context | None = None
    ) -> asyncio.Handle:
        handle = asyncio.Handle(callback, args, self, context)
        _owner(context).ready.append(handle)
        return handle

    def call_at(  # type: ignore[override] # as above
        self, when: float, callback: Callable[..., object], *args: Any, context: contextvars.Context | None = None
    ) -> asyncio.TimerHandle:
        handle = asyncio.TimerHandle(when, callback, args, self, context)
        heappush(self._timers, (when, next(self._numbers), handle, _owner(context)))
        return handle

    def call_later(  # type: ignore[override] # as above
        self, delay: float, callback: Callable[..., object], *args: Any, context: contextvars.Context | None = None
    ) -> asyncio.TimerHandle:
        return self.call_at(self._time + max(0.0, delay), callback, *args, context=context)

    def create_future(self) -> asyncio.Future[Any]:
        return asyncio.Future(loop=self)

    def create_task(  # type: ignore[override] # as above
        self, coro: Coroutine[Any, Any, Any], *, name: str | None = None, context: contextvars.Context | None = None
    ) -> SimTask:
        task = SimTask(next(self._numbers), coro, loop=self, name=name, context=context)
        _owner(context).tasks.append(task)
        return task

    def get_debug(self) -> bool:
        return False

    def is_running(self) -> bool:
        return self._running

    def is_closed(self) -> bool:
        return False

    def call_exception_handler(self, context: dict[str, Any]) -> None:
        if self._running:
            self.unhandled.append(f"{context.get('message')}: {context.get('exception')!r}")

    def _timer_handle_cancelled(self, handle: asyncio.TimerHandle) -> None:
        """Leave it where it is: a cancelled call is skipped when its time comes."""

    def run_until_complete(self, future: Generator[Any, None, T] | Awaitable[T]) -> T:
        """Run everybody until this is done; what is left then never runs, and leaves no warning behind.

        Raises Stuck rather than run for ever.
        """
        assert asyncio.iscoroutine(future)
        hooks = sys.get_asyncgen_hooks()
        events._set_running_loop(self)
        sys.set_asyncgen_hooks(firstiter=self._generators.append)
        self._running = True
        try:
            with _limited() as overrun:
                task = self.outside_context.run(self.create_task, future)
                for _ in range(MOST_CALLS):
                    if task.done():
                        return task.result()  # type: ignore[no-any-return] # what the coroutine returns
                    self._step()
                    if overrun or self._time > MOST_S:
                        break
                raise Stuck(f"no end after {len(self.order)} calls, at {self._time:.3f} s")
        finally:
            self._running = False
            self._bury()
            sys.set_asyncgen_hooks(*hooks)
            events._set_running_loop(None)

    def _step(self) -> None:
        runnable = [process for process in self._processes if process.ready and not process.paused]
        while not runnable:
            self._pass_time()
            runnable = [process for process in self._processes if process.ready and not process.paused]
        process = runnable[0] if len(runnable) == 1 else self.random.choice(runnable)
        if process.calls_left is not None:
            process.calls_left -= 1
            if process.calls_left <= 0:
                process.calls_left = None
                self.outside_context.run(process.mishap)
                return
        handle = process.ready.popleft()
        self.order.append(process.number & 0xFF)
        if not handle.cancelled():
            handle._run()

    def _pass_time(self) -> None:
        assert self._timers, "everybody waits for something that never happens"
        due, _, handle, process = heappop(self._timers)
        if handle.cancelled() or process.dead:
            return
        self._time = max(self._time, due)
        process.ready.append(handle)

    def _bury(self) -> None:
        """End what never ran to its end, before the interpreter finds it and complains."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            for process in (*self._buried, *self._processes):
                for task in process.tasks:
                    task._log_destroy_pending = False  # type: ignore[attr-defined] # asyncio's own switch
                    if not task.done():
                        _close(task.get_coro().close)
            for generator in self._generators:
                _close(lambda stopped=generator: _drive(stopped.aclose()))  # type: ignore[misc] # bound at once


@contextmanager
def _limited() -> Iterator[list[int]]:
    """Break off whatever runs, be it one call, when the processor's time is up; the list is no longer empty then.

    By a timer of its own, which leaves that of pytest's alone. Only the main thread hears of it.
    """
    overrun: list[int] = []

    def break_off(number: int, _: FrameType | None) -> None:
        overrun.append(number)
        raise Stuck(f"no end after {MOST_CPU_S:g} s of the processor's time")

    if threading.current_thread() is not threading.main_thread():
        yield overrun
        return
    before = signal.signal(signal.SIGVTALRM, break_off)
    # Again each second: who catches everything is asked again.
    signal.setitimer(signal.ITIMER_VIRTUAL, MOST_CPU_S, 1.0)
    try:
        yield overrun
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before)


def _close(close: Callable[[], object]) -> None:
    # A ``finally`` that awaits survives being closed; each try takes it one await further.
    for _ in range(100):
        try:
            close()
        except RuntimeError:
            continue
        except BaseException:  # noqa: BLE001, S110 it ended, which is all that is wanted
            pass
        return


def _drive(awaitable: Coroutine[Any, Any, Any]) -> None:
    try:
        while True:
            awaitable.send(None)
    except StopIteration:
        pass


def _owner(context: contextvars.Context | None) -> Process:
    return OWNER.get() if context is None else context[OWNER]
