"""All checks of one run, each by the promise it is about."""

from penstock.domain.events import Record
from penstock.domain.tables import Tables
from penstock.domain.verify import Live, Verifier
from tests.simulation import lawful, truthful
from tests.simulation.evidence import Evidence
from tests.simulation.ledger import Ledger
from tests.simulation.swarm import Swarm


def all_faults(evidence: Evidence, ledger: Ledger, swarm: Swarm) -> list[str]:
    """Whatever broke a promise in this run."""
    truth = truthful.Truth(evidence, swarm)
    return [
        *lawful.one_job_per_name(evidence),
        *lawful.revs_without_holes(evidence),
        *lawful.lives_in_order(evidence),
        *lawful.first_in_first_out(evidence, ledger),
        *lawful.expired_in_time(evidence, ledger, swarm),
        *truthful.answers_are_true(truth, ledger),
        *truthful.no_older_than_told(ledger),
        *truthful.wishes_come_true_once(evidence, ledger),
        *truthful.refused_is_not_there(truth, ledger),
        *truthful.nothing_doubles(truth, ledger),
        *truthful.a_call_takes_jobs_once(truth, ledger),
    ]


def verified(evidence: Evidence, live: Live) -> list[str]:
    """Whatever the product's own judge of logs finds in this one, and in what a store that opened now holds of it."""
    judge = Verifier()
    findings = [
        finding for commit in evidence.commits for finding in judge.check(Record(commit.seq, commit.at, commit.events))
    ]
    findings += judge.finish(live)
    return [
        f"verify {found.rule}: seq={found.seq} line={found.line} {found.job_id} {found.message}" for found in findings
    ]


def indexes(opened: Tables, folded: Tables) -> list[str]:
    """Whatever a store that opened now has lost or made up beside the jobs themselves: keys, calls, time, order."""
    faults = [
        f"G1 opened anew, {name} is {getattr(opened, name)} instead of {getattr(folded, name)}"
        for name in ("now", "log_time", "order", "seq", "settings", "setting_revs")
        if getattr(opened, name) != getattr(folded, name)
    ]
    for tenant, expected in folded.tenants.items():
        found = opened.tenant(tenant)
        if found.keys != expected.keys:
            faults.append(f"G3 opened anew, the keys of {tenant} are other ones")
        if {call: set(ids) for call, ids in found.calls.items()} != {
            call: set(ids) for call, ids in expected.calls.items()
        }:
            faults.append(f"G5 opened anew, the lease calls of {tenant} are other ones")
        for queue, table in expected.queues.items():
            if found.queue(queue).counts != table.counts:
                faults.append(f"G1 opened anew, the counts of {queue} are other ones")
    return faults
