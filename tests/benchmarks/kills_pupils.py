"""Who takes part in `tests.benchmarks.kills`: scripted students over the websocket, and what each was shown as done."""

import asyncio
import contextlib
import random
import re
from dataclasses import dataclass, field
from typing import NamedTuple
from urllib.parse import parse_qs

from streamlit.proto.ForwardMsg_pb2 import ForwardMsg
from streamlit.proto.Radio_pb2 import Radio
from streamlit.proto.Selectbox_pb2 import Selectbox
from streamlit.proto.WidgetStates_pb2 import WidgetState

from tests.benchmarks.kills_house import House
from tests.benchmarks.sessions import Refused, Session, new_cookie

JOIN, EXPECT, EXPECT_AGAIN = ("Join", "Predict", "Change my prediction")
WHO, WHERE = "Which will", "From which"
MEASURE, AGAIN = "Measure here", "Measure another size"


@dataclass(kw_only=True)
class Shown:
    """What a student was shown as done.

    Attributes:
        nickname: that they joined by.
        link: who they are, as their link says it.
        expected: winner and place, as chosen.
        results: how often a result was shown.
        rows: names of the rows that were there when one was.
    """

    nickname: str = ""
    link: str = ""
    expected: tuple[str, str] | None = None
    results: int = 0
    rows: set[str] = field(default_factory=set)


class Field(NamedTuple):
    """A field as the page sent it last.

    Attributes:
        identity: of the widget.
        options: what can be chosen; empty where one types.
        chosen: what is chosen by what was kept; empty if nothing is.
    """

    identity: str
    options: tuple[str, ...] = ()
    chosen: str = ""


class Visit(Session):
    """A student's browser from the opened link until the connection ends.

    Attributes:
        said: what the page says.
        fields: what can be typed or chosen, by its label.
        address: parameters of the link as it is now.
        rerun_s: how long each run of the page took that this visitor asked for, after the first.
    """

    def __init__(self, port: int, query: str, cookie: str = "") -> None:
        super().__init__(port, query, page="class", cookie=cookie)
        self.said: list[str] = []
        self.fields: dict[str, Field] = {}
        self.address = query
        self.rerun_s: list[float] = []

    async def rerun(self) -> float:
        """As of any session, with a note of how long it took."""
        taken_s = await super().rerun()
        self.rerun_s.append(taken_s)
        return taken_s

    def fill(self, label: str, value: str) -> None:
        """Type or choose something, which is sent with the next button."""
        identity = self.fields[label].identity
        self._states[identity] = WidgetState(id=identity, string_value=value)

    def label(self, beginning: str) -> str:
        """The label of a field by how it begins."""
        return next(label for label in self.fields if label.startswith(beginning))

    def _take(self, data: str | bytes) -> None:
        message = ForwardMsg()
        message.ParseFromString(data)
        match message.WhichOneof("type"):
            case "new_session" if not message.metadata.run.fragment_ids:
                self.said.clear()
                self.buttons.clear()
                self.fields.clear()
            case "page_info_changed":
                self.address = message.page_info_changed.query_string
        super()._take(data)

    def _note(self, message: ForwardMsg) -> None:
        super()._note(message)
        element = message.delta.new_element
        match element.WhichOneof("type"):
            case "alert":
                self.said.append(element.alert.body)
            case "markdown":
                self.said.append(element.markdown.body)
            case "text_input":
                self.fields[element.text_input.label] = Field(element.text_input.id)
            case "radio":
                self.fields[element.radio.label] = _choice(element.radio)
            case "selectbox":
                self.fields[element.selectbox.label] = _choice(element.selectbox)


def _choice(of: Radio | Selectbox) -> Field:
    options = tuple(of.options)
    return Field(of.id, options, options[of.default] if of.HasField("default") else "")


class Pupil:
    """A student who comes back whenever the server does, and does what comes next.

    Attributes:
        shown: what they were shown as done.
        faults: exceptions that a page showed.
        over: whether they have what they came for: a result that they asked for once all kills were over.
        rerun_s: how long each run of the page took, but the first of each visit.
    """

    def __init__(self, number: int, port: int, code: str, house: House) -> None:
        self.shown, self.faults, self.over = Shown(), list[str](), False
        self.rerun_s: list[float] = []
        self._number, self._port, self._code, self._house = number, port, code, house
        self._draw = random.Random(f"{house.seed} {number}")
        self._tries, self._asked_last, self._cookie = 0, False, new_cookie()

    async def attend(self) -> None:
        """Take part until the last measurement is done."""
        await asyncio.sleep(self._draw.uniform(0, self._house.spread_s))
        while not self.over:
            link = f"class={self._code}" + (f"&me={self.shown.link}" if self.shown.link else "")
            visit = Visit(self._port, link, self._cookie)
            try:
                await asyncio.wait_for(visit.open(), timeout=60)
                await self._stay(visit)
            except (Refused, TimeoutError, OSError):
                await asyncio.sleep(self._house.look_s)
            finally:
                self.faults += visit.faults
                self.rerun_s += visit.rerun_s[1:]
                with contextlib.suppress(Exception):
                    await visit.close()

    async def _stay(self, visit: Visit) -> None:
        while not self.over:
            self._note(visit)
            if JOIN in visit.buttons:
                await self._join(visit)
            elif EXPECT in visit.buttons:
                await self._expect(visit, EXPECT)
            elif EXPECT_AGAIN in visit.buttons and self._draw.random() < 0.1:
                await self._expect(visit, EXPECT_AGAIN)
            elif MEASURE in visit.buttons or (AGAIN in visit.buttons and not self._asked_last):
                pressed, last = visit.buttons.get(MEASURE) or visit.buttons[AGAIN], self._house.last
                await asyncio.wait_for(visit.press(pressed), timeout=60)
                self._asked_last = last
            elif not self._done(visit):
                await asyncio.sleep(self._house.look_s)
                await asyncio.wait_for(visit.rerun(), timeout=60)

    def _done(self, visit: Visit) -> bool:
        """Whether the result of what was asked for once all kills were over is shown, and nobody waits for another."""
        self.over = self._asked_last and AGAIN in visit.buttons and self._house.idle()
        return self.over

    async def _join(self, visit: Visit) -> None:
        nickname = f"pupil {self._number}" + (f" no {self._tries}" if self._tries else "")
        visit.fill("Nickname", nickname)
        self._tries += 1  # if it is taken, by ourselves before a kill, the next one is another
        await asyncio.wait_for(visit.press(visit.buttons[JOIN]), timeout=60)

    async def _expect(self, visit: Visit, button: str) -> None:
        for question in (WHO, WHERE):
            label = visit.label(question)
            visit.fill(label, self._draw.choice(visit.fields[label].options))
        self.shown.expected = None  # until the page says what is kept, either may be
        await asyncio.wait_for(visit.press(visit.buttons[button]), timeout=60)

    def _note(self, visit: Visit) -> None:
        """Keep what the page shows as done."""
        me = parse_qs(visit.address).get("me", [""])[0]
        known = next((found[1] for text in visit.said if (found := re.match(r"You are \*\*(.+)\*\*", text))), "")
        if me and known:
            self.shown.link, self.shown.nickname = me, known.replace("\\", "")
        if EXPECT_AGAIN in visit.buttons:
            winner, place = (visit.fields[label].chosen for label in (visit.label(WHO), visit.label(WHERE)))
            self.shown.expected = winner, place
        if AGAIN in visit.buttons:
            self.shown.results += 1
            self.shown.rows |= self._house.rows_of(me.partition(".")[0])
