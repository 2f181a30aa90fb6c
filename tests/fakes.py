"""A clock and a device that the tests move by hand: work is queued, and takes its time when it is waited for."""

import sys
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field


@dataclass
class FakeClock:
    """Nanoseconds that pass only when someone says so."""

    now_ns: int = 0

    def __call__(self) -> int:
        return self.now_ns

    def pass_s(self, seconds: float) -> None:
        self.now_ns += round(seconds * 1e9)


@dataclass
class FakeDevice:
    """A device with a queue: launching costs the host a little, the work itself runs beside the host.

    Attributes:
        clock: of the host.
        launch_s: host time of queueing one piece of work.
        depth: pieces of work that its queue holds; the host waits where it is full. Without end unless given.
        busy_until_ns: when the device has done all that is queued.
        ends_ns: when it has done each of the last pieces.
        log: what happened, in order.
    """

    clock: FakeClock
    launch_s: float = 0.0
    depth: int = sys.maxsize
    busy_until_ns: int = 0
    ends_ns: deque[int] = field(default_factory=deque)
    log: list[str] = field(default_factory=list)

    def launch(self, seconds: float) -> None:
        """Queue work that occupies the device for `seconds`."""
        self.log.append("work")
        if len(self.ends_ns) >= self.depth:
            self.clock.now_ns = max(self.clock.now_ns, self.ends_ns[-self.depth])
            self.ends_ns.popleft()
        self.clock.pass_s(self.launch_s)
        self.busy_until_ns = max(self.busy_until_ns, self.clock.now_ns) + round(seconds * 1e9)
        self.ends_ns.append(self.busy_until_ns)

    def synchronize(self) -> None:
        """Wait until the queue is empty."""
        self.log.append("drain")
        self.clock.now_ns = max(self.clock.now_ns, self.busy_until_ns)


@dataclass
class Undrained:
    """The same device, but whoever waits for it does not wait: the mistake the timer must not make."""

    device: FakeDevice

    def synchronize(self) -> None:
        self.device.log.append("no drain")


@dataclass
class FakeRecorder:
    """Records work without doing it, and does it when it is replayed: what a CUDA graph is, without CUDA.

    Attributes:
        log: what happened, in order.
        device: gets one launch a replay, if there is one.
    """

    log: list[str] = field(default_factory=list)
    device: FakeDevice | None = None

    def warm_up(self, work: Callable[[], object]) -> None:
        self.log.append("warm up")
        work()

    def record(self, work: Callable[[], object]) -> Callable[[], None]:
        self.log.append("record")

        def replay() -> None:
            self.log.append("replay")
            if self.device:
                self.device.launch(1e-3)
            work()

        return replay


def queueing(device: FakeDevice, seconds: float, times: int) -> Callable[[], None]:
    """Work of `times` launches of `seconds` each."""

    def work() -> None:
        for _ in range(times):
            device.launch(seconds)

    return work
