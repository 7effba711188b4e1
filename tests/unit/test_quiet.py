"""What makes times vary on a machine: read off the system, judged once, told when it is true."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec
import psutil
import pytest

from orchestrator import doctor, gpus, host, kernel
from orchestrator.model.health import Facts, Other, Surroundings
from orchestrator.model.record import Load
from tests import factories
from tests.fakes import nvml

if TYPE_CHECKING:
    from pathlib import Path

CALM = Surroundings(siblings=((0,), (1,)))
IDLE = Load(load_1m=0.0, available_bytes=2**32)


def hints(*, noisy: bool = False, **facts: Any) -> dict[str, tuple[str, str]]:  # noqa: ANN401
    """Text and fix of what is told of a machine that is calm but for these facts, by subject."""
    here = Facts(**({"host": factories.HOST, "load": IDLE, "surroundings": CALM} | facts))
    return {one.subject: (one.text, one.fix) for one in doctor.hints(here, noisy=noisy)}


def on(**facts: Any) -> dict[str, Any]:  # noqa: ANN401
    """The facts of a host that is like the test's but for these."""
    return {"host": msgspec.structs.replace(factories.HOST, **facts)}


def around(**facts: Any) -> dict[str, Any]:  # noqa: ANN401
    """The surroundings that are calm but for these."""
    return {"surroundings": msgspec.structs.replace(CALM, **facts)}


def test_a_calm_machine_is_told_nothing() -> None:
    """No hint is given that is not true, however noisy it turned out to be."""
    assert {} == hints()
    assert {} == hints(noisy=True)
    assert () == doctor.hints(Facts(), noisy=True)


@pytest.mark.parametrize(
    ("facts", "subject", "text", "fix"),
    [
        (on(governor="powersave"), "governor", "powersave", "sudo cpupower frequency-set -g"),
        ({"load": Load(load_1m=3.0, available_bytes=2**32)}, "load", "3.0 on 2 cores", "top"),
        (
            around(others=(Other(name="ffmpeg", cores=1.5), Other(name="rsync", cores=0.3))),
            "others",
            "ffmpeg (1.5), rsync (0.3)",
            "--pin",
        ),
        (
            {"load": Load(load_1m=0, available_bytes=2**28), **around(swap_bytes=2**30)},
            "memory",
            "0.2 GiB available, 1.0 GiB of swap in use",
            "ps axo rss,comm",
        ),
        (around(virtual=True, stolen=0.2), "virtual machine", "gave 20% of the time", "shares"),
    ],
)
def test_what_is_wrong_is_told_with_what_mends_it(
    facts: dict[str, Any], subject: str, text: str, fix: str
) -> None:
    """Before every run, and by the doctor."""
    told = hints(**facts)
    assert [subject] == list(told)
    assert text in told[subject][0]
    assert fix in told[subject][1]


@pytest.mark.parametrize(
    ("facts", "subject", "fix"),
    [
        (on(turbo="on"), "turbo", "no_turbo"),
        (around(siblings=((0, 2), (1, 3))), "hyper-threads", "--pin 0-1"),
        (around(siblings=tuple((core,) for core in range(16))), "pinning", "--pin 1-8"),
        (around(virtual=True, stolen=0.0), "virtual machine", "shares"),
    ],
)
def test_what_may_be_as_it_is_is_told_where_it_is_too_noisy(
    facts: dict[str, Any], subject: str, fix: str
) -> None:
    """Turbo and the like are no fault, until the noise is."""
    assert {} == hints(**facts)
    told = hints(noisy=True, **facts)
    assert [subject] == list(told)
    assert fix in told[subject][1]


def test_the_load_is_that_of_all_cores() -> None:
    """Not only of those that workers are bound to: a load of 2 is little on sixteen."""
    little: dict[str, Any] = {"load": Load(load_1m=2.0, available_bytes=2**32), "pin": (0, 1)}
    assert {} == hints(**little, **around(cores=16))
    assert "2.0 on 4 cores: others" in hints(**little, **around(cores=4))["load"][0]
    assert psutil.cpu_count() == host.cores() == host.surroundings(rest=lambda: None).cores


def test_who_is_pinned_is_not_told_to_pin() -> None:
    """Nor of hyper-threads, when one thread of each core was chosen."""
    siblings = tuple((core, core + 8) for core in range(8))
    assert {} == hints(noisy=True, pin=(0, 1, 2), **around(siblings=siblings))
    told = hints(noisy=True, pin=(0, 8, 1), **around(siblings=siblings))
    assert ["hyper-threads"] == list(told)
    assert "--pin 0-1" in told["hyper-threads"][1]


def test_who_uses_other_gpus_is_told() -> None:
    """They share power and heat with the run's own."""
    used = nvml.rtx3090()
    used.processes = [nvml.Process(7, nvml.GIB)]
    told = hints(gpus=gpus.find(nvml.FakeNvml(nvml.h200(), used)))
    assert ["GPU 1"] == list(told)
    assert "process 7" in told["GPU 1"][0]


def proc(folder: Path, *, flags: str = "avx", stat: str = "cpu 0 0 0 0 0 0 0 0 0 0") -> None:
    """Files like those of /proc."""
    (folder / "cpuinfo").write_text(f"flags\t\t: {flags}\n")
    (folder / "stat").write_text(f"{stat}\ncpu0 1 2 3\n")


def looked(folder: Path, *, later: str | None = None) -> Surroundings:
    """What is read off them; between the two looks, the times become `later`."""

    def rest() -> None:
        if later is not None:
            proc(folder, flags="avx hypervisor", stat=later)

    return host.surroundings(folder / "cpuinfo", folder / "cpu", folder / "stat", rest=rest)


def test_stolen_time_is_that_between_two_looks(tmp_path: Path) -> None:
    """What a hypervisor took before is no matter; guest time is not counted twice."""
    proc(tmp_path, stat="cpu 100 0 100 700 0 0 0 500 50 0")
    found = looked(tmp_path, later="cpu 130 0 110 740 0 0 0 520 90 0")
    assert 0.2 == found.stolen
    assert found.virtual


def test_what_the_system_does_not_tell_is_not_known(tmp_path: Path) -> None:
    """No files, old kernels and no time in between make no figure."""
    assert None is looked(tmp_path).stolen
    proc(tmp_path, stat="cpu 1 2 3 4")
    assert None is looked(tmp_path).stolen
    proc(tmp_path)
    found = looked(tmp_path)
    assert (None, False) == (found.stolen, found.virtual)
    assert tuple((core,) for core in kernel.allowed()) == found.siblings


def test_threads_of_one_core_stand_together(tmp_path: Path) -> None:
    """As the kernel lists them, of those cores that this process may use."""
    for core in kernel.allowed():
        folder = tmp_path / "cpu" / f"cpu{core}" / "topology"
        folder.mkdir(parents=True)
        (folder / "thread_siblings_list").write_text("0-127\n")
    assert (kernel.allowed(),) == looked(tmp_path).siblings


def test_own_processes_are_nobody_else() -> None:
    """This one works all the time between the two looks, and is not told."""

    def work() -> None:
        began = psutil.Process().cpu_times().user
        while psutil.Process().cpu_times().user < began + 0.05:
            pass

    me = psutil.Process().pid
    before = host._spent()
    work()
    assert me not in {one.pid for one in before}
    assert all(other.cores > 0 for other in host.surroundings(rest=work).others)


def test_pinned_workers_have_their_cores_in_the_record() -> None:
    """What a record says of cores is what its worker had; another number is another machine."""
    free, pinned = host.facts(), host.facts(pin=(0,))
    assert (1, [0]) == (pinned.cores, pinned.facts["pin"])
    assert "pin" not in free.facts
    assert (free.cores == 1) is (free.machine == pinned.machine)


def test_others_are_kept_away_by_pinning_or_by_other_cores() -> None:
    """Who has pinned is not told to."""
    busy = around(others=(Other(name="ffmpeg", cores=1.5),))
    assert hints(**busy)["others"][1] == "End them, or --pin workers elsewhere"
    assert hints(pin=(0,), **busy)["others"][1] == "End them, or bind them to other cores"
