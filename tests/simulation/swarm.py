"""What a seed draws: how the world is, how often which fault strikes, and who lives in it (swarm testing).

Most faults are absent from most seeds: a world with everything in it hides the faults that need calm elsewhere.
"""

import random  # noqa: TID251 the type of the loop's one seeded source
from math import exp, log
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from penstock import BrokerOptions
from penstock.stores.log.store import LogOptions


class Swarm(Struct, frozen=True, kw_only=True):
    """The settings of one run. A rate is a chance per call; an ``every`` is a mean, 0 for never."""

    # Who lives here.
    processes: int = 2
    producers: int = 2
    workers: int = 3
    embedded_workers: int = 1
    operators: int = 1
    watchers: int = 0
    jobs: int = 12
    queues: int = 2
    active_s: float = 30.0
    # In the middle nobody wants anything for so long; jobs that finished before are forgotten meanwhile.
    silence_s: float = 0.0
    lease_s: float = 5.0
    vanish: float = 0.1
    fail: float = 0.2
    # The bucket.
    latency_s: float = 0.02
    slow: float = 0.0
    refused: float = 0.0
    lost: float = 0.0
    doubled: float = 0.0
    late: float = 0.0
    late_floors: float = 0.0
    unread: float = 0.0
    outage_every_s: float = 0.0
    outage_s: float = 3.0
    full_every_s: float = 0.0
    full_s: float = 3.0
    # The processes, by calls made, so that every await is hit.
    crash_every: int = 0
    pause_every: int = 0
    pause_s: float = 8.0
    stop_every_s: float = 0.0
    down_s: float = 1.0
    # The clocks.
    skew_s: float = 0.0
    drift: float = 0.0
    jump_every_s: float = 0.0
    # The product's own numbers.
    answer_s: float = 30.0
    sweep_s: float = 1.0
    look_s: float = 1.0
    listing_s: float = 0.0
    # Up to so many bytes the bucket carries out what one process asks in the order it was asked, as a directory does.
    in_order_bytes: int = 0
    snapshot_records: int = 20
    snapshot_bytes: int = 4096
    # The cleaners; a day of so many seconds.
    cleaners: int = 1
    clean_every_s: float = 0.0
    day_s: float = 20.0

    @property
    def calm(self) -> bool:
        """Whether the bucket does what it is asked, in time."""
        return not any(
            (self.slow, self.refused, self.lost, self.late, self.unread, self.outage_every_s, self.full_every_s)
        )

    def broker(self) -> BrokerOptions:
        """The options of every broker."""
        return BrokerOptions(sweep_s=self.sweep_s, retention_s=10.0, poll_s=self.look_s, answer_s=self.answer_s)

    def log(self) -> LogOptions:
        """The options of every store."""
        return LogOptions(
            listing_s=self.listing_s,
            in_order_bytes=self.in_order_bytes,
            look_s=self.look_s,
            snapshot_bytes=self.snapshot_bytes,
            snapshot_records=self.snapshot_records,
        )


class Bent(Struct, frozen=True):
    """Worlds of one kind: what is so in all of them, whatever the seed draws. The plain ones have no name."""

    name: str = ""
    so: dict[str, Any] = {}


def draw(chance: random.Random) -> Swarm:
    """The world of one seed."""
    quiet = chance.random() < 0.1
    faults = _faults(chance)
    listing_s = chance.choice((0.0, 0.0, 4.0))
    drawn = Swarm(
        processes=chance.choice((1, 2, 2, 3, 4)),
        producers=chance.choice((1, 2, 3)),
        workers=chance.choice((1, 2, 4)),
        embedded_workers=chance.choice((0, 1, 2)),
        operators=chance.choice((0, 1, 2)),
        watchers=chance.choice((0, 0, 1)),
        jobs=chance.choice((4, 10, 20, 30)),
        queues=chance.choice((1, 1, 2, 3)),
        active_s=chance.choice((10.0, 25.0, 40.0)),
        silence_s=chance.choice((0.0,) * 30 + (1100.0,)),
        lease_s=chance.choice((2.0, 5.0, 12.0)),
        vanish=chance.choice((0.0, 0.1, 0.4)),
        fail=chance.choice((0.0, 0.2, 0.5)),
        latency_s=chance.choice((0.001, 0.02, 0.1)),
        outage_s=chance.choice((1.0, 5.0)),
        full_s=chance.choice((1.0, 5.0)),
        pause_s=chance.choice((1.0, 8.0, 30.0)),
        down_s=chance.choice((0.0, 1.0, 10.0)),
        skew_s=chance.choice((0.0, 1.0, 25.0)),
        drift=chance.choice((0.0, 0.0, 0.01)),
        listing_s=listing_s,
        snapshot_records=chance.choice((3, 10, 40, 10_000)),
        snapshot_bytes=chance.choice((500, 4_000, 1_000_000)),
        clean_every_s=_perhaps(chance, 1, 10, share=0.5),
        # With a window of 0 no clock is involved and any day will do; else a day is longer than a window (rule 2).
        day_s=chance.choice((0.5, 5.0, 20.0)) if listing_s == 0.0 else chance.choice((10.0, 20.0)),
        **({} if quiet else faults),  # type: ignore[arg-type] # the counts are whole numbers
    )
    # What was thought of later is drawn last, so that the seeds before it keep their worlds.
    in_order_bytes = 0 if listing_s else chance.choice((0, 0, 1_000, 1 << 20))
    answer_s = chance.choice((30.0, 30.0, 3.0))
    slowly = {"sweep_s": 10.0, "look_s": 10.0} if drawn.silence_s else {}
    return replace(drawn, in_order_bytes=in_order_bytes, answer_s=answer_s, **slowly)


def _faults(chance: random.Random) -> dict[str, float]:
    return {
        "slow": _perhaps(chance, 0.002, 0.1),
        "refused": _perhaps(chance, 0.005, 0.3),
        "lost": _perhaps(chance, 0.005, 0.3),
        "doubled": _perhaps(chance, 0.01, 0.5),
        "late": _perhaps(chance, 0.005, 0.2),
        "unread": _perhaps(chance, 0.005, 0.2),
        "outage_every_s": _perhaps(chance, 10, 60, share=0.3),
        "full_every_s": _perhaps(chance, 10, 60, share=0.2),
        "crash_every": int(_perhaps(chance, 150, 3000, share=0.6)),
        "pause_every": int(_perhaps(chance, 300, 3000)),
        "stop_every_s": _perhaps(chance, 10, 60, share=0.2),
        "jump_every_s": _perhaps(chance, 5, 60, share=0.3),
    }


def _perhaps(chance: random.Random, least: float, most: float, *, share: float = 0.4) -> float:
    """A rate between these by its order of magnitude, and none at all in most seeds."""
    drawn = exp(chance.uniform(log(least), log(most)))
    return drawn if chance.random() < share else 0.0
