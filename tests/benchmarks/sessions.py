"""Visitors without a browser: sessions that speak Streamlit's own websocket protocol, and a server to visit.

Each session opens a link, keeps what the page shows as widgets, and re-runs timed fragments as a browser would.
"""

import asyncio
import contextlib
import os
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple
from urllib.request import urlopen

import websockets
from streamlit.proto.BackMsg_pb2 import BackMsg
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg
from streamlit.proto.Slider_pb2 import Slider as SliderMessage
from streamlit.proto.WidgetStates_pb2 import WidgetState
from streamlit.web.server.starlette.starlette_app_utils import generate_xsrf_token_string

from core.files.project import PROJECT
from tests.ports import free_port

START_TIMEOUT_S = 240
"""Far beyond what it takes; a busy machine is no failure."""


class Slider(NamedTuple):
    """A slider as the page sent it last.

    Attributes:
        identity: of the widget.
        low: its lowest value; for one of stops the number of the first.
        high: its highest value; for one of stops the number of the last.
        stops: what can be chosen, as text; empty for a slider of numbers.
        handles: how many values it has: 2 for a range.
    """

    identity: str
    low: float
    high: float
    stops: tuple[str, ...]
    handles: int


class Refused(ConnectionError):
    """The server let nobody in, or let a session go."""


@contextlib.contextmanager
def server(
    *, app: Path = PROJECT, descriptors: int | None = None, log: Path | None = None, **variables: str
) -> Iterator[int]:
    """The app on a free port of this machine; yields the port.

    Args:
        app: checkout that is started; this one unless given.
        descriptors: open files that it may have, both as it begins and at most; those of this process unless given.
        log: file that takes what it prints; nowhere unless given.
        variables: of its environment.
    """
    port = free_port()
    command = [sys.executable, "-m", "streamlit", "run", "streamlit_app.py", "--server.headless", "true"]
    options = ["--server.port", str(port), "--server.address", "127.0.0.1"]
    environment = {**os.environ, **variables}
    if descriptors:
        command = ["sh", "-c", f'ulimit -n {descriptors}; exec "$@"', "sh", *command]
    with contextlib.ExitStack() as opened:
        output = opened.enter_context(log.open("ab")) if log else subprocess.DEVNULL
        errors = subprocess.STDOUT if log else None
        started = subprocess.Popen([*command, *options], cwd=app, env=environment, stdout=output, stderr=errors)
        process = opened.enter_context(started)
        opened.callback(process.terminate)
        await_health(port)
        yield port


def await_health(port: int) -> None:
    """Wait until a server answers.

    Raises:
        TimeoutError: it does not within `START_TIMEOUT_S`.
    """
    deadline = time.monotonic() + START_TIMEOUT_S
    while time.monotonic() < deadline:
        with contextlib.suppress(OSError), urlopen(f"http://127.0.0.1:{port}/_stcore/health", timeout=1) as answer:
            if answer.status == 200:
                return
        time.sleep(0.05)
    message = "the server did not become healthy"
    raise TimeoutError(message)


def new_cookie() -> str:
    """The cookie that a browser is given at its first visit."""
    return f"_streamlit_xsrf={generate_xsrf_token_string()}"


class Session:
    """One visitor.

    Attributes:
        cookie: of the browser, by which the app tells visitors of one network apart.
        runs: script runs that came to their end, fragments included.
        sliders: each slider by its label.
        buttons: identity of each button by its label, as the page sent it last, whether it can be pressed or not.
        choices: identity of each multiselect by its label, with its options, as the page sent it last.
        parts: identity of each part that opens and closes by its label, as the page sent it last.
        faults: exceptions that a page showed.
        lost: code with which the server ended the connection; None while it holds.
    """

    def __init__(self, port: int, query: str = "", page: str = "compare", cookie: str = "") -> None:
        self.runs = 0
        self.cookie = cookie or new_cookie()
        self.lost: int | None = None
        self.sliders: dict[str, Slider] = {}
        self.buttons: dict[str, str] = {}
        self.choices: dict[str, tuple[str, tuple[str, ...]]] = {}
        self.parts: dict[str, str] = {}
        self.faults: list[str] = []
        self._address = f"ws://127.0.0.1:{port}/_stcore/stream"
        self._query, self._page, self._page_hash = query, page, ""
        self._states: dict[str, WidgetState] = {}
        self._timers: dict[str, asyncio.Task[None]] = {}
        self._finished = asyncio.Event()

    async def open(self) -> None:
        """Connect and run the page once.

        Raises:
            Refused: the server does not let this session in.
        """
        try:
            self._socket = await websockets.connect(
                self._address, subprotocols=["streamlit"], max_size=None, additional_headers={"Cookie": self.cookie}
            )
        except (OSError, websockets.WebSocketException) as error:
            raise Refused(error) from error
        self._reader = asyncio.create_task(self._read())
        await self.rerun()

    async def close(self) -> None:
        """Leave."""
        for timer in self._timers.values():
            timer.cancel()
        self._reader.cancel()
        await self._socket.close()

    async def rerun(self) -> float:
        """Ask for a run of the page and wait for its end; returns the seconds between.

        Raises:
            Refused: the server has ended the connection.
        """
        if self.lost is None:
            self._finished.clear()
        begin = time.perf_counter()
        with contextlib.suppress(websockets.ConnectionClosed):
            await self._ask()
        await self._finished.wait()
        if self.lost is not None:
            raise Refused(self.lost)
        return time.perf_counter() - begin

    async def slide(self, label: str, *values: float) -> float:
        """Move a slider and wait for the run that follows; returns its seconds.

        Args:
            label: of the slider.
            values: one for each of its handles; of a slider of stops, their numbers.
        """
        slider = self.sliders[label]
        state = WidgetState(id=slider.identity)
        if slider.stops:
            state.string_array_value.data.extend(slider.stops[int(value)] for value in values)
        else:
            state.double_array_value.data.extend(values)
        self._states[slider.identity] = state
        return await self.rerun()

    async def choose(self, label: str, options: Sequence[str]) -> float:
        """Choose options of a multiselect and wait for the run that follows; returns its seconds."""
        identity, _ = self.choices[label]
        state = WidgetState(id=identity)
        state.string_array_value.data.extend(options)
        self._states[identity] = state
        return await self.rerun()

    async def unfold(self, label: str) -> float:
        """Open a part of the page and wait for the run that follows; returns its seconds."""
        identity = self.parts[label]
        self._states[identity] = WidgetState(id=identity, bool_value=True)
        return await self.rerun()

    async def go(self, page: str) -> float:
        """Open another page by the menu; returns the seconds of its run."""
        self._page, self._query, self._page_hash = page, "", ""
        self._stop_timers(list(self._timers))
        self._states.clear()
        self.sliders.clear()
        self.choices.clear()
        self.parts.clear()
        return await self.rerun()

    async def press(self, identity: str) -> float:
        """Send what a button sends when it is pressed, whether the page has drawn it or not; seconds of the run."""
        kept = self._states.pop(identity, None)
        self._states[identity] = WidgetState(id=identity, trigger_value=True)
        try:
            return await self.rerun()
        finally:
            self._states.pop(identity)
            if kept:
                self._states[identity] = kept

    async def _ask(self, fragment: str = "") -> None:
        message = BackMsg()
        message.rerun_script.query_string = self._query
        if self._page_hash:  # as a browser does; without it a page that re-runs itself would become the first page
            message.rerun_script.page_script_hash = self._page_hash
        else:
            message.rerun_script.page_name = self._page
        message.rerun_script.fragment_id = fragment
        message.rerun_script.is_auto_rerun = bool(fragment)
        message.rerun_script.widget_states.widgets.extend(self._states.values())
        await self._socket.send(message.SerializeToString())

    async def _read(self) -> None:
        with contextlib.suppress(websockets.ConnectionClosed):
            async for data in self._socket:
                self._take(data)
        self.lost = self._socket.close_code or 1006
        self._stop_timers(list(self._timers))
        self._finished.set()

    def _take(self, data: str | bytes) -> None:
        message = ForwardMsg()
        message.ParseFromString(data)
        match message.WhichOneof("type"):
            case "delta":
                self._note(message)
            case "navigation":
                self._page_hash = message.navigation.page_script_hash
            case "new_session" if not message.metadata.run.fragment_ids:
                self._stop_timers(list(self._timers))  # as a browser does; the run says anew what is timed
            case "auto_rerun":
                self._repeat(message.auto_rerun.fragment_id, message.auto_rerun.interval)
            case "stop_auto_rerun":
                self._stop_timers(message.stop_auto_rerun.fragment_ids)
            case "script_finished":
                self._note_end(message.script_finished)

    def _note(self, message: ForwardMsg) -> None:
        part = message.delta.add_block.expandable
        if part.id:
            self.parts[part.label] = part.id
        element = message.delta.new_element
        match element.WhichOneof("type"):
            case "button":
                self.buttons[element.button.label] = element.button.id
            case "slider":
                self.sliders[element.slider.label] = _slider(element.slider)
            case "multiselect":
                self.choices[element.multiselect.label] = (element.multiselect.id, tuple(element.multiselect.options))
            case "exception":
                self.faults.append(element.exception.message)

    def _note_end(self, status: int) -> None:
        if status == ForwardMsg.FINISHED_EARLY_FOR_RERUN:
            return
        self.runs += 1
        if status != ForwardMsg.FINISHED_FRAGMENT_RUN_SUCCESSFULLY:
            self._finished.set()

    def _repeat(self, fragment: str, interval_s: float) -> None:
        async def tick() -> None:
            while True:
                await asyncio.sleep(interval_s)
                with contextlib.suppress(websockets.ConnectionClosed):
                    await self._ask(fragment)

        if fragment not in self._timers:
            self._timers[fragment] = asyncio.create_task(tick())

    def _stop_timers(self, fragments: Sequence[str]) -> None:
        for fragment in fragments:
            if timer := self._timers.pop(fragment, None):
                timer.cancel()


def _slider(message: SliderMessage) -> Slider:
    handles = max(1, len(message.default))
    return Slider(message.id, message.min, message.max, tuple(message.options), handles)
