"""A real server with folders of its own, and a real Chromium without a trace of an earlier visit."""

import os
import shutil
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, expect, sync_playwright

from core.classroom.classes import Classes
from core.files.project import PROJECT
from core.jobs.queue import Queue
from core.results.store import Store
from tests.ports import free_port

DEADLINE_S = 240
"""Far beyond what anything here takes; a busy machine is no failure."""

BROWSERS = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome")
"""The same engine, the lightest first: what has no window to draw takes two thirds of the processor time."""

FLAGS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)


@pytest.fixture(scope="package")
def chromium() -> Iterator[Browser]:
    """Chromium as installed on this machine; gone after these tests, as Playwright's event loop shuts others out."""
    found = next(filter(None, map(shutil.which, BROWSERS)), None)
    with sync_playwright() as playwright:
        path = found or playwright.chromium.executable_path
        if not Path(path).exists():
            if os.environ.get("CI"):
                pytest.fail("no Chromium is installed, and CI must not pass without the browser tests")
            pytest.skip("no Chromium is installed: `playwright install chromium` brings one")
        expect.set_options(timeout=DEADLINE_S * 1000)
        browser = playwright.chromium.launch(executable_path=path, args=list(FLAGS))
        yield browser
        browser.close()


@dataclass
class Visitors:
    """Browsers of visitors who know nothing of each other; what is taken back is somebody new's, its cache kept.

    A page in a browser without a cache takes twice as long: it compiles every script anew.

    Attributes:
        browser: what they are contexts of.
    """

    browser: Browser
    _spare: list[BrowserContext] = field(default_factory=list, repr=False)

    def come(self, theme: str, width: int, height: int) -> Page:
        """The only page of a browser without a trace of an earlier visit."""
        context = self._spare.pop() if self._spare else self.browser.new_context(reduced_motion="reduce")
        context.set_default_timeout(DEADLINE_S * 1000)  # of clicks, addresses and downloads, which have another one
        page = context.new_page()
        page.set_viewport_size({"width": width, "height": height})
        page.emulate_media(color_scheme=theme)
        return page

    def go(self, context: BrowserContext, server: "Server") -> None:
        """Close what a visitor opened and forget all that a page of this server may have left there."""
        protocol = context.new_cdp_session(context.pages[0])
        traces = "cookies,local_storage,indexeddb,service_workers,cache_storage"
        protocol.send("Storage.clearDataForOrigin", {"origin": server.url, "storageTypes": traces})
        context.clear_cookies()
        for page in context.pages:
            page.close()
        self._spare.append(context)


@pytest.fixture(scope="package")
def visitors(chromium: Browser) -> Visitors:
    return Visitors(chromium)


@dataclass
class Server:
    """The app as a user starts it, on a free port.

    Attributes:
        folder: where its jobs and results are.
        url: its address.
        training: file of one's own training that it is started with; none if empty.
    """

    folder: Path
    url: str = ""
    training: str = ""
    _process: subprocess.Popen[bytes] | None = field(default=None, repr=False)

    @property
    def queue(self) -> Queue:
        return Queue(self.folder / "jobs")

    @property
    def store(self) -> Store:
        return Store(self.folder / "results")

    @property
    def classes(self) -> Classes:
        return Classes(self.folder / "classes")

    def start(self) -> None:
        port = free_port()
        self.url = f"http://127.0.0.1:{port}"
        command = [sys.executable, "-m", "streamlit", "run", "streamlit_app.py"]
        command += ["--server.headless=true", f"--server.port={port}"]
        command += ["--", "--training", self.training] if self.training else []
        folders = {
            "CROSSOVER_JOBS": str(self.folder / "jobs"),
            "CROSSOVER_RESULTS": str(self.folder / "results"),
            "CROSSOVER_CLASSES": str(self.folder / "classes"),
            "CROSSOVER_LOCK": str(self.folder / "lock"),
        }
        with (self.folder / "server.log").open("ab") as log:
            environment = os.environ | folders
            self._process = subprocess.Popen(command, cwd=PROJECT, env=environment, stdout=log, stderr=log)
        until(self._answers)

    def stop(self) -> None:
        if self._process:
            self._process.kill()
            self._process.wait()

    def kill_worker(self) -> None:
        self.queue.worker_file.dismiss()

    def _answers(self) -> bool:
        try:
            with urllib.request.urlopen(f"{self.url}/_stcore/health", timeout=5) as answer:
                return bool(answer.status == 200)
        except OSError:
            return False


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    """A server that nobody has visited yet."""
    started = Server(tmp_path)
    started.start()
    yield started
    started.stop()
    started.kill_worker()


@pytest.fixture
def own_server(tmp_path: Path) -> Iterator[Server]:
    """A server that was started with a training of one's own: a copy of an example, which a test may change."""
    started = Server(tmp_path, training=shutil.copy(PROJECT / "examples" / "plain.py", tmp_path))
    started.start()
    yield started
    started.stop()
    started.kill_worker()


@pytest.fixture(scope="package")
def calm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A server on which nobody measures and nothing is stored, for all tests that only look."""
    started = Server(tmp_path_factory.mktemp("calm"))
    started.start()
    yield started
    started.stop()
    started.kill_worker()
    assert not started.queue.jobs(), "somebody measured"


@dataclass
class Filled:
    """A server that has something to show on every page.

    Attributes:
        server: for who only looks; all tests share it.
        names: what links call what it holds.
    """

    server: Server
    names: dict[str, str]


@pytest.fixture(scope="package")
def filled(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Filled]:
    """The server of all tests that only look."""
    from tests.browser import views  # which needs what is above

    started = Server(tmp_path_factory.mktemp("filled"))
    names = views.fill(started)
    started.start()
    yield Filled(server=started, names=names)
    started.stop()
    started.kill_worker()


@pytest.fixture
def visit(visitors: Visitors, server: Server) -> Iterator[Callable[..., Page]]:
    """Opens an address in a browser of its own, empty each time; fails if a page raised or asked another host."""
    with visits(visitors, server) as opened:
        yield opened


@pytest.fixture
def visit_own(visitors: Visitors, own_server: Server) -> Iterator[Callable[..., Page]]:
    """The same on a server that offers a training of one's own."""
    with visits(visitors, own_server) as opened:
        yield opened


@pytest.fixture
def glance(visitors: Visitors, calm: Server) -> Iterator[Callable[..., Page]]:
    """The same on a server that is shared with others, where nothing is measured."""
    with visits(visitors, calm) as opened:
        yield opened


@pytest.fixture
def look(visitors: Visitors, filled: Filled) -> Iterator[Callable[..., Page]]:
    """The same on the server that has something to show, where links may name what it holds."""
    with visits(visitors, filled.server, filled.names) as opened:
        yield opened


@contextmanager
def visits(visitors: Visitors, server: Server, names: dict[str, str] | None = None) -> Iterator[Callable[..., Page]]:
    """What opens an address of a server; fails at the end if a page raised or asked another host."""
    contexts = []
    strangers: list[str] = []

    def opened(path: str = "/", width: int = 1280, height: int = 1000, theme: str = "light") -> Page:
        page = visitors.come(theme, width, height)
        contexts.append(page.context)
        page.on("request", lambda request: _note_stranger(request.url, strangers))
        page.goto(server.url + (path.format(**names) if names else path))
        return page

    yield opened
    for context in contexts:
        if context.pages:  # a test may have closed what it opened
            for page in context.pages:
                assert page.get_by_test_id("stException").count() == 0
            visitors.go(context, server)
    assert strangers == []


def settled(page: Page) -> Page:
    """The page once its script has run and everything is drawn; not for a page that follows a job."""
    app = "[data-testid=stApp][data-test-connection-state=CONNECTED][data-test-script-state=notRunning]"
    page.locator(app).wait_for(state="attached", timeout=DEADLINE_S * 1000)
    expect(page.get_by_test_id("stSkeleton")).to_have_count(0)
    return page


def stop_button(page):
    """Ours; Streamlit shows one of that name too while a script runs."""
    return page.locator(".st-key-stop").get_by_role("button")


def until(condition: Callable[[], bool]) -> None:
    """Wait for a condition."""
    deadline = time.monotonic() + DEADLINE_S
    while not condition():
        assert time.monotonic() < deadline, "it did not happen"
        time.sleep(0.05)


def _note_stranger(url: str, strangers: list[str]) -> None:
    if not url.startswith(("http://127.0.0.1:", "ws://127.0.0.1:", "data:", "blob:")):
        strangers.append(url)
