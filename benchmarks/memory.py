"""Memory, 50 callers: ours over jqueue at several depths, ours over ours at depth, and memory per job."""

from typing import Final

from benchmarks import environments
from benchmarks.interleave import Comparison, Leg, compare

# (depth, jobs of ours, jobs of the peer, must, aim): the peer gets fewer jobs where it is slow; rates are per job.
_DEPTHS: Final = (
    (0, 20_000, 5_000, 3, 4),
    (1_000, 20_000, 500, 50, 80),
    (10_000, 20_000, 50, 500, 800),
)


def run(pairs: int) -> tuple[list[Comparison], dict[str, str]]:
    """All comparisons of this issue's table, and the single figures."""
    ours, peer = environments.penstock(), environments.jqueue()
    measured = []
    for loop in ((), ("uvloop",)):
        for depth, jobs, peer_jobs, must, aim in _DEPTHS:
            name = f"closed loop at depth {depth:,}{', ours on uvloop' if loop else ''} (must {must}x, aim {aim}x)"
            measured.append(
                compare(
                    name,
                    Leg(ours, "penstock_memory.py", ("closed", str(depth), str(jobs), *loop)),
                    Leg(peer, "jqueue_memory.py", ("closed", str(depth), str(peer_jobs))),
                    pairs=pairs,
                )
            )
    measured.append(
        compare(
            "2,000 enqueued, then drained (must 40x)",
            Leg(ours, "penstock_memory.py", ("drain", "0", "2000")),
            Leg(peer, "jqueue_memory.py", ("drain", "0", "2000")),
            pairs=pairs,
        )
    )
    measured.append(
        compare(
            "ours at depth 1,000,000 over depth 0 (must 0.8)",
            Leg(ours, "penstock_memory.py", ("closed", "1000000", "50000")),
            Leg(ours, "penstock_memory.py", ("closed", "0", "50000")),
            pairs=pairs,
        )
    )
    rss = Leg(ours, "penstock_memory.py", ("rss", "0", "200000")).run()
    return measured, {
        "RSS per queued job, 100 bytes of payload included (must be under 1,124 B)": f"{rss['rss_per_job']:,.0f} B"
    }
