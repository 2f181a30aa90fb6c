"""A real server, visitors who try codes without a cookie, and others who have the right one."""

import asyncio

import pytest
import websockets
from streamlit.web.server.starlette import starlette_app_utils

from core.classroom import students
from core.classroom.classes import Classes
from core.classroom.question import ClassQuestion
from core.jobs.machine import LOCK_VARIABLE
from tests.benchmarks import sessions

INSIDE, OUTSIDE, ADMITTED = "Join", "Go to the class", "Predict"
"""Buttons that tell where a visitor is."""


class Visitor(sessions.Session):
    """One who brings a cookie, as a browser does, or none."""

    def __init__(self, port: int, query: str, cookie: str = "") -> None:
        super().__init__(port, query, page="class")
        self._cookie = cookie

    async def open(self) -> None:
        headers = {"Cookie": f"_streamlit_xsrf={self._cookie}"} if self._cookie else {}
        self._socket = await websockets.connect(
            self._address, subprotocols=["streamlit"], max_size=None, additional_headers=headers
        )
        self._reader = asyncio.create_task(self._read())
        await self.rerun()


def a_cookie() -> str:
    """What Streamlit would give a browser; anybody can make one up."""
    return starlette_app_utils.generate_xsrf_token_string()


@pytest.fixture
def classes(tmp_path):
    return Classes(tmp_path / "classes")


def test_browsers_are_told_apart_by_their_cookies_and_who_is_in_by_their_link(tmp_path, classes):
    of, _ = classes.create("Physics 7b", ClassQuestion.from_preset("signal"))
    student, token = classes.join(of, "ada")
    link = f"class={of.code}&me={student.id}.{token}"
    earlier = f"class={students.LETTERS[:4]}-{students.LETTERS[4:8]}"

    async def where(port, query, cookie=""):
        visitor = Visitor(port, query, cookie)
        await visitor.open()
        assert visitor.faults == []
        await visitor.close()
        return next((button for button in (ADMITTED, INSIDE, OUTSIDE) if button in visitor.buttons), "nowhere")

    async def visits(port):
        assert await where(port, f"class={of.code}", a_cookie()) == INSIDE
        for _ in range(students.CODE_RATES["visitor"].at_once + 10):
            assert await where(port, f"class={students.join_code()}") == OUTSIDE
        assert await where(port, earlier) == OUTSIDE
        assert await where(port, f"class={of.code}", a_cookie()) == INSIDE
        assert await where(port, link) == ADMITTED
        for _ in range(students.CODE_RATES["address"].at_once // 2):
            assert await where(port, f"class={students.join_code()}", a_cookie()) == OUTSIDE
        assert await where(port, f"class={of.code}", a_cookie()) == INSIDE
        assert await where(port, link) == ADMITTED

    folders = {"CROSSOVER_CLASSES": str(classes.folder), "CROSSOVER_JOBS": str(tmp_path / "jobs")}
    folders |= {"CROSSOVER_RESULTS": str(tmp_path / "results"), LOCK_VARIABLE: str(tmp_path / "machine.lock")}
    with sessions.server(**folders) as port:
        asyncio.run(visits(port))
