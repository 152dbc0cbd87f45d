"""The thread that works on a directory: rounds of calls, one sync for each directory of a round, then the answers."""

import errno
import logging
import os
from asyncio import AbstractEventLoop, Future, get_running_loop
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from pathlib import Path
from threading import Lock
from typing import Any, Final, NamedTuple

from penstock.errors import Busy, Corrupt, Denied, PenstockError, Unavailable

_log: Final = logging.getLogger("penstock")

_RETRY_FULL_S: Final = 1.0

# No more calls than this wait for each other.
_MOST_IN_ROUND: Final = 64

# Below the root no symbolic link is followed, so no key leads out of it.
FOLDER: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW

_FULL: Final = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})
_DENIED: Final = frozenset(
    {errno.EACCES, errno.EPERM, errno.EROFS, errno.EXDEV, errno.EOPNOTSUPP, errno.ENOSYS, errno.ENAMETOOLONG}
)
_FOREIGN: Final = frozenset({errno.ELOOP, errno.ENOTDIR, errno.EISDIR, errno.ENXIO})


class Disk(NamedTuple):
    """The system calls that matter to a crash, as a value: tests pass others, to watch them or to make them fail."""

    open: Callable[..., int] = os.open
    write: Callable[..., int] = os.write
    fsync: Callable[[int], None] = os.fsync
    close: Callable[[int], None] = os.close
    mkdir: Callable[..., None] = os.mkdir
    link: Callable[..., None] = os.link
    unlink: Callable[..., None] = os.unlink
    mounts: Callable[[], str] = partial(Path("/proc/self/mountinfo").read_text, errors="surrogateescape")


class Syncs:
    """The syncs of directories, of which the first that fails is the last: the next would be a lie.

    The kernel goes on to show the names that it could not write, and may count them as written from then on.
    """

    def __init__(self, root: Path, disk: Disk) -> None:
        self._root = root
        self._disk = disk
        self._failed = False

    def sync(self, opened: int) -> None:
        """Have the names in a directory outlive a crash."""
        try:
            self._disk.fsync(opened)
        except OSError as error:
            self._failed = True
            _log.error("directory_sync_failed root=%s reason=%s", self._root, error.strerror)
            raise

    def check(self) -> None:
        """Refuse to go on after a sync that has failed."""
        if self._failed:
            raise OSError(errno.EIO, "a sync has failed before: mend the disk, then open the bucket again")


class _Call(NamedTuple):
    work: Callable[[], object]
    answer: Future[Any]

    def tell(self, outcome: object) -> None:
        with suppress(RuntimeError):  # its event loop is gone
            self.answer.get_loop().call_soon_threadsafe(_tell, self.answer, outcome)


class Clerk:
    """One thread that carries out calls in rounds: all that wait, then one sync of each directory, then the answers.

    A folder that is entered for the first time has the one above synced too: another process may have made it this
    instant, and an object is no more durable than the names that lead to it.
    """

    def __init__(self, root: Path, disk: Disk, syncs: Syncs) -> None:
        self._root = root
        self._disk = disk
        self._syncs = syncs
        self._thread = ThreadPoolExecutor(1, "penstock-directory")
        # Guards these two, which any event loop may change; all below is the thread's own, but for new calls.
        self._lock = Lock()
        self._turns: dict[AbstractEventLoop, list[_Call]] = {}
        self._dismissed = False
        self._calls: deque[_Call] = deque()
        self._open: dict[str, int] = {}
        self._touched: set[str] = set()
        self._durable: set[str] = set()

    async def do(self, work: Callable[[], object]) -> Any:
        """Have the work done by the thread. An OSError becomes an error that tells the caller what to do."""
        loop = get_running_loop()
        call = _Call(work, loop.create_future())
        with self._lock:
            if self._dismissed:
                raise Unavailable("the bucket is closed", root=self._root)
            if loop not in self._turns:
                loop.call_soon(self._end_turn, loop)
            self._turns.setdefault(loop, []).append(call)
        return await call.answer

    def dismiss(self) -> None:
        """Take no more calls; those made before are carried out."""
        with self._lock:
            self._dismissed = True
            waiting = [*self._turns]
        for loop in waiting:
            self._end_turn(loop)
        self._thread.shutdown(wait=False)

    def join(self) -> None:
        """Wait until the thread has ended."""
        self._thread.shutdown()

    def _end_turn(self, loop: AbstractEventLoop) -> None:
        with self._lock:
            calls = self._turns.pop(loop, [])
            self._calls.extend(calls)
        try:
            if calls:
                self._thread.submit(self._work)
        except RuntimeError as error:  # no thread can be had
            for call in calls:
                call.tell(Unavailable("the bucket has no thread", reason=error))

    def enter(self, folder: str) -> int:
        """Open a folder below the root, or the root as ``""``, for this round."""
        if folder not in self._open:
            above, _, name = folder.rpartition("/")
            if folder:
                self._open[folder] = self._disk.open(name, FOLDER, dir_fd=self.enter(above))
            else:
                self._open[folder] = self._disk.open(self._root, FOLDER)
            if folder and folder not in self._durable:
                self.touch(above)
        return self._open[folder]

    def make(self, folder: str) -> int:
        """Open a folder, which is made if it is missing."""
        try:
            return self.enter(folder)
        except FileNotFoundError:
            self._durable.clear()
        above, _, name = folder.rpartition("/")
        with suppress(FileExistsError):
            if folder:
                self._disk.mkdir(name, dir_fd=self.make(above))
            else:
                self._make_path(self._root)
        return self.enter(folder)

    def _make_path(self, path: Path) -> None:
        if not path.parent.exists():
            self._make_path(path.parent)
        with suppress(FileExistsError):
            self._disk.mkdir(path)

    def touch(self, folder: str) -> None:
        """Have a folder synced before anybody is answered."""
        self._touched.add(folder)

    def _work(self) -> None:
        while self._calls:
            taken = [self._calls.popleft() for _ in range(min(len(self._calls), _MOST_IN_ROUND))]
            calls = [call for call in taken if not call.answer.done()]
            for call, outcome in zip(calls, self._round(calls), strict=True):
                call.tell(outcome)

    def _round(self, calls: Sequence[_Call]) -> Sequence[object]:
        try:
            self._syncs.check()
            outcomes = [self._outcome(call.work) for call in calls]
            self._end()
        except Exception as error:  # noqa: BLE001 - as below
            # Also for those who were to hear Taken or NotFound: what they saw need not outlive a crash.
            facts = {"reason": error, "root": self._root}
            return [Unavailable("the directory of the bucket failed, nothing is certain", **facts) for _ in calls]
        return outcomes

    def _outcome(self, work: Callable[[], object]) -> object:
        try:
            return work()
        except OSError as error:
            return _told(error, self._root)
        except Exception as error:  # noqa: BLE001 - the caller is told, whatever it is; the thread goes on
            return error

    def _end(self) -> None:
        try:
            for folder in self._touched:
                self._syncs.sync(self._open[folder])
            if "" in self._open and "" not in self._durable:
                self._sync_above(os.fstat(self._open[""]).st_dev)
            self._syncs.check()
            self._durable.update(self._open)
        finally:
            self._touched.clear()
            while self._open:
                self._close(self._open.popitem()[1])

    def _sync_above(self, device: int) -> None:
        # None of our processes has made a directory that we may not read, or a file system.
        for path in self._root.parents:
            with suppress(PermissionError):
                opened = self._disk.open(path, FOLDER)
                try:
                    if os.fstat(opened).st_dev != device:
                        return
                    self._syncs.sync(opened)
                finally:
                    self._close(opened)

    def _close(self, opened: int) -> None:
        # It was only looked at, or is synced.
        with suppress(OSError):
            self._disk.close(opened)


def _told(error: OSError, root: Path) -> PenstockError:
    facts = {"reason": error.strerror, "name": error.filename, "root": root}
    if error.errno in _FULL:
        return Busy("the bucket is full, nothing was changed", retry_after_s=_RETRY_FULL_S, **facts)
    if error.errno in _DENIED:
        return Denied("the directory of the bucket does not allow this", **facts)
    if error.errno in _FOREIGN:
        return Corrupt("something lies in the bucket that it has not put there", **facts)
    return Unavailable("the directory of the bucket failed", **facts)


def _tell(answer: Future[Any], outcome: object) -> None:
    if answer.done():
        return
    if isinstance(outcome, Exception):
        answer.set_exception(outcome)
    else:
        answer.set_result(outcome)
