"""Queue settings: changed by merge patch, checked as a whole, numbered, and back to the defaults when reset."""

from typing import Any

import pytest

from penstock import Backoff, Client, Invalid, Policy, QueueSettings
from penstock.domain.commands import DeleteSetting, PutSetting, SettingKind
from penstock.domain.queries import Settings
from penstock.domain.settings import Setting
from penstock.stores.port import Store


async def test_a_queue_has_the_defaults_until_somebody_changes_them(queue: Client) -> None:
    settings = await queue.queue("mail")
    assert settings == QueueSettings()
    assert (settings.paused, settings.max_attempts, settings.max_depth, settings.results) == (
        False,
        5,
        10_000_000,
        "keep",
    )
    assert (settings.retain_succeeded_s, settings.retain_cancelled_s, settings.retain_dead_s) == (
        3600,
        3600,
        14 * 86_400,
    )
    assert settings.backoff == Backoff(Policy.JITTER, 5.0, 3600.0)


async def test_what_is_named_changes_and_the_rest_stays(queue: Client) -> None:
    await queue.set_queue("mail", max_attempts=7, backoff={"policy": "linear", "base_s": 2.0})
    settings = await queue.set_queue("mail", paused=True, backoff={"cap_s": 9.0})
    assert (settings.max_attempts, settings.paused) == (7, True)
    assert settings.backoff == Backoff(Policy.LINEAR, 2.0, 9.0)
    assert await queue.queue("mail") == settings


async def test_none_puts_one_setting_back_to_its_default(queue: Client) -> None:
    await queue.set_queue("mail", max_attempts=7, max_depth=3)
    settings = await queue.set_queue("mail", max_attempts=None)
    assert (settings.max_attempts, settings.max_depth) == (5, 3)


async def test_a_reset_puts_all_of_them_back(queue: Client) -> None:
    await queue.set_queue("mail", max_attempts=7, max_depth=3)
    await queue.reset_queue("mail")
    assert await queue.queue("mail") == QueueSettings()
    await queue.reset_queue("mail")


async def test_a_queue_that_was_reset_and_never_used_is_forgotten(queue: Client) -> None:
    await queue.set_queue("mail", max_attempts=7)
    assert [stats.queue for stats in await queue.stats()] == ["mail"]
    await queue.reset_queue("mail")
    assert await queue.stats() == []


async def test_pause_and_resume_leave_the_other_settings_alone(queue: Client) -> None:
    await queue.set_queue("mail", max_attempts=7)
    paused = await queue.pause("mail")
    assert (paused.paused, paused.max_attempts) == (True, 7)
    resumed = await queue.resume("mail")
    assert (resumed.paused, resumed.max_attempts) == (False, 7)


async def test_a_paused_queue_takes_jobs_and_says_that_it_is_paused(queue: Client) -> None:
    await queue.pause("mail")
    await queue.enqueue("mail")
    [stats] = await queue.stats()
    assert (stats.paused, stats.queued, stats.ready) == (True, 1, 1)


async def test_settings_hold_for_one_queue_of_one_tenant(queue: Client, other: Client) -> None:
    await queue.set_queue("mail", max_attempts=7)
    assert await queue.queue("sms") == QueueSettings()
    assert await other.queue("mail") == QueueSettings()
    assert (await other.enqueue("mail")).max_attempts == 5


@pytest.mark.parametrize(
    "changes",
    [
        {"colour": "red"},
        {"paused": "yes"},
        {"max_depth": 0},
        {"max_depth": 1_000_000_001},
        {"max_attempts": 0},
        {"max_attempts": 101},
        {"max_attempts": 1.5},
        {"retain_succeeded_s": 899},
        {"retain_cancelled_s": 899},
        {"retain_dead_s": 899},
        {"retain_dead_s": float("nan")},
        {"retain_dead_s": 3651 * 86_400},
        {"results": "burn"},
        {"backoff": {"policy": "hope"}},
        {"backoff": {"base_s": -1}},
        {"backoff": {"cap_s": 8 * 86_400}},
        {"backoff": "jitter"},
        {"paused": {1, 2}},
    ],
    ids=str,
)
async def test_settings_that_cannot_be_are_refused_and_change_nothing(queue: Client, changes: dict[str, Any]) -> None:
    await queue.set_queue("mail", max_attempts=7)
    before = await queue.snapshot()
    with pytest.raises(Invalid):
        await queue.set_queue("mail", **{"max_depth": 3, **changes})
    assert await queue.snapshot() == before


async def test_a_setting_has_a_rev_that_rises_with_each_change_and_is_never_reused(store: Store) -> None:
    def put(**patch: Any) -> PutSetting:
        return PutSetting(kind=SettingKind.QUEUE, name="mail", patch=patch)

    async def rev(command: PutSetting | DeleteSetting) -> int | None:
        [outcome] = await store.commit([command])
        assert outcome is None or isinstance(outcome, Setting)
        return None if outcome is None else outcome.rev

    assert await rev(put(max_attempts=7)) == 1
    assert await rev(put(max_attempts=7)) == 1
    assert await rev(put(max_attempts=8)) == 2
    assert await rev(DeleteSetting(kind=SettingKind.QUEUE, name="mail")) is None
    assert await rev(put(max_attempts=7)) == 4


@pytest.mark.parametrize("kind", [kind for kind in SettingKind if kind is not SettingKind.QUEUE])
async def test_other_settings_have_their_place_already(store: Store, kind: SettingKind) -> None:
    for name in ("b", "a"):
        await store.commit([PutSetting(kind=kind, name=name, patch={"x": {"y": 1, "z": None}, "gone": None})])
    found = await store.ask(Settings(kind=kind))
    assert isinstance(found, tuple)
    settings = [item for item in found if isinstance(item, Setting)]
    assert [(setting.name, setting.value) for setting in settings] == [("a", {"x": {"y": 1}}), ("b", {"x": {"y": 1}})]
    assert await store.ask(Settings(kind=kind, name="c")) == ()
    assert await store.ask(Settings(tenant="other", kind=kind)) == ()


async def test_a_setting_as_python_values_is_stored_as_plain_json(queue: Client) -> None:
    settings = await queue.set_queue("mail", backoff=Backoff(Policy.FIXED, 1.0, 2.0))
    assert settings.backoff == Backoff(Policy.FIXED, 1.0, 2.0)
    [setting] = (await queue.snapshot()).settings
    assert setting.value == {"backoff": {"policy": "fixed", "base_s": 1.0, "cap_s": 2.0}}
