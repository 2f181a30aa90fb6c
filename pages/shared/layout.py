"""The frame of every page: settings and answer in two columns, the brand, the styles, the instructions of a link.

From a width of 1,000 pixels, the settings are a narrow column that stays in view while the answer scrolls. Below that
width they fold behind a switch, and the button that measures stays in the window.

The table of pages lists the file, the label in the bar and the address of each page, and former addresses.

A teacher's link can contain instructions (`text`), the settings of a tutorial to begin with (`preset`, at a `scale`),
and a lesson to return to (`lesson`). It can also fix settings (`lock`) and hide them (`hide`). The page shows the text
of a link unformatted, never as Markdown or HTML. A lock helps a class and is not a permission: `pages.shared.permits`
decides which visitors may measure.
"""

import copy
import functools
import json
import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ParamSpec, TypeVar

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from core.errors import CrossoverError, InvalidValue, require_choice
from core.question import describe
from core.question.experiment import Contender
from core.question.fields import TRAINING
from core.question.presets import LIMITS, PRESETS, SCALES, Preset, Scale, preset
from core.question.sweep import Sweep
from core.text import to_html
from pages.shared import links, queries, session
from pages.shared.elements import plain

T = TypeVar("T")

LARGE = "font-size: min(3.5rem, 10vw); font-weight: 700; line-height: 1.2; white-space: nowrap; margin: 0"
"""Style of text to read from a distance; the widest class code fits a phone's window."""

BESIDE = """
.st-key-settings .stVerticalBlock { gap: 0.5rem; }
@media (min-width: 1000px) {
  .st-key-sides { flex-direction: row; flex-wrap: nowrap; align-items: flex-start; gap: 2.5rem; }
  div:has(> .st-key-settings_side) { flex: 0 0 21rem; width: 21rem; position: sticky; top: 4.5rem; }
  div:has(> .st-key-answer_side) { flex: 1 1 0; min-width: 0; }
  .st-key-answer_side [data-stale="true"] { opacity: 1; }
  .st-key-settings_side { max-height: calc(100vh - 6.5rem); flex-wrap: nowrap; }
  div:has(> .st-key-settings) {
    flex: 0 1 auto; min-height: 0; overflow-y: auto; scrollbar-width: thin;
    padding-bottom: 1.5rem; margin-bottom: -0.75rem; mask-image: linear-gradient(to top, transparent, black 1.5rem);
  }
  div:has(> .st-key-ask) { flex: none; }
  [data-testid="stMainBlockContainer"]:has(> .stVerticalBlock > [data-testid="stElementContainer"] .stAlert)
    .st-key-settings_side,
  [data-testid="stMainBlockContainer"]:has(.st-key-banner) .st-key-settings_side { max-height: calc(100vh - 11.5rem); }
  div:has(> .st-key-asked), div:has(> .st-key-in_short) { display: none; }
}
@media (max-width: 999px) {
  .st-key-settings_side:has(.st-key-unfold input:not(:checked)) div:has(> .st-key-settings) { display: none; }
  .st-key-settings_side:has(.st-key-unfold input:checked) div:has(> .st-key-in_short) { display: none; }
  .st-key-asked > :last-child { flex-basis: 100%; }
}
"""

ABREAST = """
.stVerticalBlock.st-key-two_abreast { display: grid; grid-template-columns: minmax(0, 1fr) minmax(0, 1fr); }
.st-key-settings .stVerticalBlock.st-key-two_abreast { column-gap: 1.5rem; }
.st-key-two_abreast [data-testid="stSelectbox"] input { text-overflow: ellipsis; }
"""

SKIP = """<style>
.st-key-skip_settings { position: absolute; left: 0; top: 0; height: 0; z-index: 999991; }
.skip-settings:not(:focus) { position: absolute; width: 1px; height: 1px; overflow: hidden; clip-path: inset(50%); }
.skip-settings { padding: 0.5rem 1rem; border-radius: 0.5rem; font: inherit; white-space: nowrap; }
</style>
<button type="button" class="skip-settings">LABEL</button>
<script>
if (!window.crossoverSkip) {
  window.crossoverSkip = true;
  document.addEventListener("click", (event) => {
    if (!event.target.closest(".skip-settings")) return;
    [...document.querySelectorAll(".st-key-ask button:not([disabled])")].pop()?.focus();
  });
}
</script>"""
"""A link `LABEL` that takes keyboard users to the Run button, past the twenty controls before it."""


@dataclass(frozen=True, kw_only=True)
class Sides:
    """The places of a page: the controls, the button that submits with its notes, and the answer."""

    settings: DeltaGenerator
    ask: DeltaGenerator
    answer: DeltaGenerator


def sides(title: str, *, asked: str = "", folds: bool = True) -> Sides:
    """Return the places of a page that has settings and an answer, below its title.

    Args:
        title: name of the page.
        asked: the current measurement in a line that replaces the settings; empty without one.
        folds: whether the settings fold on a phone; False if visitors must read them before a run.
    """
    skip("Skip the settings", f"<style>{ABREAST}{BESIDE}</style>")
    with st.container(key="sides"):
        settings_side, answer = st.container(key="settings_side"), st.container(key="answer_side")
    with settings_side:
        st.title(title, anchor=False)
        if asked or folds:
            with st.container(horizontal=True, vertical_alignment="center", key="asked"):
                st.toggle("Settings", key="unfold", width="content")
                if asked:
                    st.caption(plain(asked))
        settings = st.container(key="settings", gap="xsmall")
        ask = st.container(key="ask", gap="small")
    return Sides(settings=settings, ask=ask, answer=answer)


def draw_settings_line(*settings: str) -> None:
    """Draw the settings in a line that replaces them where they are folded."""
    with st.container(key="in_short"):
        st.caption(plain(" · ".join(filter(None, settings))))


def skip(label: str, style: str = "") -> None:
    """Draw the link that skips to the Run button, visible once the tab key reaches it, and set a style."""
    with st.container(key="skip_settings"):
        st.html(style + SKIP.replace("LABEL", label), unsafe_allow_javascript=True)


def draw_pairs(items: Sequence[T], draw: Callable[[T], None]) -> None:
    """Draw each of several items in its own column, two in a row."""
    for at in range(0, len(items), 2):
        for column, item in zip(st.columns(2, gap="medium"), items[at : at + 2], strict=False):
            with column:
                draw(item)


def two_abreast() -> DeltaGenerator:
    """Return a container for small controls, two in a row in the order of drawing."""
    return st.container(key="two_abreast")


def draw_picture(source: str, *, alt: str, width: int) -> None:
    """Draw a picture from the address of its data, `width` pixels wide; `alt` describes it for screen readers."""
    st.html(f'<img src="{to_html(source)}" alt="{to_html(alt)}" width="{width}">')


def draw_large_text(text: str) -> None:
    """Draw a short text in letters for the last row of a lecture hall."""
    st.html(f'<p style="{LARGE}">{to_html(text)}</p>')


def put_away(keys: Sequence[str]) -> None:
    """Hide the elements with these keys; they still exist, so their values apply."""
    st.html(f"<style>{', '.join(f'.st-key-{key}' for key in keys)} {{ display: none; }}</style>")


LOGO = """<svg xmlns="http://www.w3.org/2000/svg" width="132" height="28" viewBox="0 0 132 28" fill="none">
<path d="M3 5 C 10 6, 16 13, 25 23" stroke="#D55E00" stroke-width="3" stroke-linecap="round"/>
<path d="M3 23 C 10 21, 17 14, 25 5" stroke="#2E82BE" stroke-width="3" stroke-linecap="round"/>
<text x="36" y="20" textLength="92" lengthAdjust="spacingAndGlyphs" fill="#2E82BE" font-size="19" font-weight="700"
 font-family="'Source Sans 3', 'Source Sans Pro', 'Segoe UI', Helvetica, Arial, sans-serif">Crossover</text>
</svg>"""
"""Two crossing curves, and the name in a colour that is legible in the light and the dark theme."""

RULES = """
.stApp { font-variant-numeric: tabular-nums; }
[data-testid="stSliderThumbValue"],
button:is([data-variant="segmented_control"], [data-variant="pills"])[data-selected] { color: inherit !important; }
[data-testid="stMainBlockContainer"] { padding: 4.5rem 2.5rem 4rem; max-width: 1600px; }
[data-testid="stMainBlockContainer"] h1 { padding: 0 0 0.5rem; }
[data-testid="stMainBlockContainer"] h2 { padding: 1rem 0 0.25rem; }
[data-testid="stMainBlockContainer"] .st-key-settings h2 { padding-bottom: 0.5rem; }
div:has(> :is(.st-key-history, .st-key-skip_settings)) { position: absolute; left: 0; width: 0; }
div:has(> .st-key-bar) { position: fixed; top: 0.7rem; right: 4rem; width: auto; z-index: 999991; }
.stApp[data-test-connection-state="CONNECTED"] [data-testid="stStatusWidget"] { display: none; }
div:has(> .st-key-doors) { position: fixed; top: 0.8rem; left: 11rem; width: auto; z-index: 999991; }
.st-key-doors { flex-wrap: nowrap; width: auto; align-items: center; }
.st-key-doors > :last-child a { border: 1px solid rgba(128, 128, 128, 0.5); border-radius: 1rem; }
.st-key-doors > :last-child a p { white-space: nowrap; max-width: 12rem; overflow: hidden; text-overflow: ellipsis; }
@media (max-width: 767px) {
  [data-testid="stHeaderLogo"], [data-testid="stLogoLink"], [data-testid="stLogo"] { display: none; }
  div:has(> .st-key-doors) { left: 0.25rem; }
  .st-key-doors a { padding: 0.25rem 0.4rem; }
  .st-key-doors > :last-child a [data-testid="stMarkdownContainer"], .st-key-share button p {
    position: absolute; width: 1px; height: 1px; overflow: hidden; clip-path: inset(50%);
  }
}
.stButtonGroup [role="radiogroup"] { flex-wrap: wrap; }
button[kind="tertiary"]:is(:active, [aria-expanded="true"]) { color: inherit; }
@media (max-width: 999px) { [data-testid="stMainBlockContainer"] { padding: 4.25rem 1rem 3rem; } }
"""
"""The style rules. All digits have the same width, so numbers align in columns. The empty 130 pixels that Streamlit
leaves above a title are reduced. The Share button is in the bar, and Streamlit's own running indicator would cover it
while a page follows a measurement. The doors are in the bar too, on a phone without the brand. So all four and the chip
of the devices are visible at every width. An open button keeps its colour, because Streamlit's colour for it is
illegible in the dark theme.
"""


def draw_brand() -> None:
    """Draw the brand into the bar, and set the style rules in one element with the other hidden parts of a page."""
    st.logo(LOGO, size="medium", link=None)
    draw_history_style(RULES)


KEY = "history"

SCRIPT = """<style>.st-key-%(key)s { display: none; }</style>
<script>
(() => {
  if (window.crossoverHistory) return;
  window.crossoverHistory = true;
  const push = history.pushState.bind(history), replace = history.replaceState.bind(history);
  let acted = false, left = location.href;
  const act = (event) => { if (event.isTrusted) { acted = true; left = location.href; } };
  for (const name of ["pointerdown", "keydown"]) document.addEventListener(name, act, true);
  window.addEventListener("popstate", () => { acted = false; });
  const kinds = %(kinds)s, opened = (url) => kinds.map((kind) => url.searchParams.get(kind)).join();
  const ended = (from, to) => from.searchParams.has("job") && kinds.some((kind) => to.searchParams.has(kind));
  const step = (from, to) => opened(from) !== opened(to) && !ended(from, to);
  history.pushState = (state, title, address) => {
    const here = new URL(location.href), to = new URL(address, here), turned = to.pathname !== here.pathname;
    if (!acted || !(turned || step(here, to))) { replace(state, title, address); return; }
    if (turned && here.href !== left) replace(state, title, left);
    push(state, title, address);
    acted = false;
  };
})();
</script>"""

_SCRIPT = SCRIPT % {"key": KEY, "kinds": json.dumps(sorted(links.PATTERNS))}


def draw_history_style(style: str) -> None:
    """Draw the script that keeps the browser history, and the rules of a style; invisible, and safe to repeat."""
    with st.container(key=KEY):
        st.html(f"<style>{style}</style>{_SCRIPT}", unsafe_allow_javascript=True)


P = ParamSpec("P")

_log = logging.getLogger(__name__)


def draw_isolated(part: Callable[P, object], *args: P.args, **kwargs: P.kwargs) -> None:
    """Draw a part of a page; its failure does not affect the rest."""
    try:
        part(*args, **kwargs)
    except CrossoverError as error:
        st.error(plain(describe.format_page_error(error)))
    except Exception:
        _log.exception("Drawing a part of a page failed")
        st.error("This part of the page failed to load. The server's log has the reason. The rest of the page works.")


EXPLORE = "pages/explore/explore.py"
DEVICES = "pages/devices/devices.py"
TUTORIALS = "pages/tutorials/tutorials.py"
LESSONS = "pages/lessons/lessons.py"
CASES = "pages/cases/cases.py"
CLASS = "pages/classroom/class.py"
GALLERY = "pages/gallery/gallery.py"

FILES = (EXPLORE, DEVICES, TUTORIALS, LESSONS, CASES, CLASS, GALLERY)

LEARN = ((TUTORIALS, "Tutorials"), (LESSONS, "Lessons"), (CASES, "Cases"))
"""Pages behind the second door, and their labels there."""

DOORS = ((EXPLORE, "Explore"), (TUTORIALS, "Learn"), (GALLERY, "Results"), (CLASS, "Class"))
"""The page that each door opens, and its label."""

FORMER: Mapping[str, Mapping[str, str]] = {"compare": {}, "crossover": {"sizes": "range"}}
"""Address of an earlier page that leads to Explore with its whole link, and the settings that it implied."""


def draw_doors(devices: str, note: str) -> None:
    """Draw the four doors and the chip of this machine's devices with a note, which the style puts into the bar."""
    with st.container(horizontal=True, key="doors", gap="xsmall"):
        for file, label in DOORS:
            st.page_link(file, label=label)
        st.page_link(DEVICES, label=devices, icon=":material/memory:", help=note or None)


def draw_learn_links(address: str) -> None:
    """Draw links to the pages behind the second door, on each of them."""
    if address in ("tutorials", "lessons", "cases"):
        with st.container(horizontal=True, key="rooms", gap="xsmall"):
            for file, label in LEARN:
                st.page_link(file, label=label)


def menu() -> list[st.Page]:
    """Return every page that has an address; the first one is the start page."""
    return [copy.copy(page) for page in _pages()]  # a page object stores whether it ran for one visitor


@functools.cache
def _pages() -> tuple[st.Page, ...]:
    """Return the pages to copy: making a page searches all folders above its file, which is too slow for every run."""
    return (
        st.Page(EXPLORE, title="Explore", default=True),
        st.Page(TUTORIALS, title="Tutorials", url_path="tutorials"),
        st.Page(LESSONS, title="Lessons", url_path="lessons"),
        st.Page(CASES, title="Cases", url_path="cases"),
        st.Page(GALLERY, title="Gallery", url_path="gallery"),
        st.Page(CLASS, title="Class", url_path="class"),
        st.Page(DEVICES, title="Devices", url_path="devices"),
        *(st.Page(_lead_on, title="Explore", url_path=address) for address in FORMER),
    )


def renew_link(address: str, link: Mapping[str, Any]) -> dict[str, Any]:
    """Return the link of Explore that replaces a link of an earlier page; with a job, it has no implied settings."""
    return {**({} if "job" in link else FORMER.get(address, {})), **link}


def _lead_on() -> None:
    """Draw nothing: an earlier address is redirected before its page would run."""


MOST_LETTERS = 500
"""Maximum number of characters of an instruction; the rest is left out."""

TWO_LINES = 72
"""Height of an instruction in pixels: its link must fit below, in a window of 800."""

STARTED: dict[links.PageName, str] = {
    "explore": EXPLORE,
    "tutorials": TUTORIALS,
}
"""Pages that a preset can start."""

NO_PRESET = "as set on this page"

OPEN_HELP = "Every other setting is shown and cannot be changed."

Link = dict[str, str | list[str]]


def run_page(page: st.Page) -> None:
    """Run a page below the instructions of its link and the button that shares it."""
    draw_brand()
    if page.url_path in FORMER:
        said = {name: st.query_params.get_all(name) for name in st.query_params}
        st.switch_page(EXPLORE, query_params=renew_link(page.url_path, said))
    name = next(name for name in links.PAGES if name == (page.url_path or "explore"))
    # The doors come first in code and last in the page, so the tab key reaches the page's controls before them.
    draw_learn_links(page.url_path)
    content, doors = st.container(), st.container()
    with doors:
        draw_doors(plain(queries.name_devices()), plain(queries.describe_repeatability()))
    session.shorten_link(name)
    _begin(name)
    session.enter_page(name)
    with content:
        bar = st.container(key="bar", width="content")
        _say(name)
        page.run()
        with bar:
            _share(name)
    session.leave_page()


def link_of_preset(page: links.PageName, of: Preset, scale: Scale, sizes: str = "one") -> Link:
    """Return the settings of a preset as parameters of a page's link; the page chooses the devices."""
    if page == "tutorials":
        return {"tutorial": of.name, "scale": scale}
    training: Link = {**links.make_brief_link(of.point_at_scale(scale))}
    if sizes != "range":
        return {**training, "budget_s": describe.format_value(LIMITS[scale].budget_s)}
    asked = of.build_question(scale, (Contender(), Contender(threads=1)))
    if not isinstance(asked, Sweep):
        return training
    varied = {axis.name for axis in asked.axes}
    return {
        name: value
        for name, value in links.make_sweep_link(asked).items()
        if name not in ("contenders", "fair") and (name not in TRAINING or name in training) and name not in varied
    }


def _begin(page: links.PageName) -> None:
    """Replace a preset of the link by its settings; other settings of the link stay and take precedence."""
    if page not in STARTED or "preset" not in st.query_params:
        return
    said = {name: st.query_params.get_all(name) for name in st.query_params if name not in ("preset", "scale")}
    try:
        scale = require_choice("scale", st.query_params.get("scale", "class"), SCALES)
        link = link_of_preset(page, preset(st.query_params["preset"]), scale, st.query_params.get("sizes", "one"))
    except InvalidValue as error:
        st.error(plain(describe.format_page_error(error)))
        return
    session.restart_page(page, {**link, **said})
    st.switch_page(STARTED[page], query_params={**link, **said})


def _say(page: links.PageName) -> None:
    """Draw the instruction of the link, the way back to a lesson, and the parts of the link that were not read."""
    if unread := session.explain_unread_parts():
        st.warning("  \n".join(map(plain, unread)))
    text = session.read_guide("text")
    if text:
        shown = text if len(text) <= MOST_LETTERS else f"{text[:MOST_LETTERS]}…"
        st.info(f"**Note from the person who shared this link:** {plain(shown)}", icon=":material/school:")
    lesson = session.read_guide("lesson")
    if lesson in links.LESSON_TITLES:
        label = "Back to the lesson"
        st.page_link(LESSONS, label=label, icon=":material/lightbulb:", query_params={"lesson": lesson})
    elif lesson:
        _complain("lesson", [lesson], tuple(links.LESSON_TITLES))
    known = links.PAGES[page].settings
    for parameter in ("lock", "hide"):
        strange = [
            name
            for name in session.list_guided(parameter)
            if name.removeprefix(links.UNLOCK_PREFIX) not in ("all", *known)
        ]
        if strange:
            _complain(parameter, strange, ("all", *known) if parameter == "lock" else known)
    _put_away(page)


def _complain(parameter: str, names: Sequence[str], allowed: tuple[str, ...]) -> None:
    st.warning(plain(str(InvalidValue(parameter, links.shorten_list(names), "one of {}", allowed))))


def _put_away(page: links.PageName) -> None:
    """Hide controls; they still exist, so their values apply and stay in the link."""
    hidden = set(session.list_guided("hide"))
    names = [name for name in links.PAGES[page].settings if name in hidden]
    if names:
        put_away(names)


@st.fragment
def _share(page: links.PageName) -> None:
    """Draw the link to the current view, and the controls that make a link for a class."""
    shared = st.popover("Share", type="tertiary", icon=":material/link:", key="share", on_change="rerun")
    if not shared.open:
        return
    with shared:
        st.markdown("**Link to this view**")
        st.code(session.make_address(session.read_link()), language=None, wrap_lines=True)
        if st.toggle("Make a link for a class", key="share_class"):
            st.code(session.make_address(_for_class(page)), language=None, wrap_lines=True)


def _for_class(page: links.PageName) -> Link:
    """Return the link that a teacher's choices describe."""
    text = st.text_area("Task, in your own words", key="share_text", max_chars=MOST_LETTERS, height=TWO_LINES)
    settings = session.list_drawn_settings()
    said = session.read_link()
    link: Link = {**(links.strip_answers(page, said) if settings else said)}
    if page in STARTED:
        chosen = st.selectbox("Settings", [NO_PRESET, *PRESETS], key="share_preset")
        if chosen in PRESETS:
            scale = st.segmented_control("Scale", list(SCALES), default="class", key="share_scale", required=True)
            link = {"preset": chosen, **({"scale": scale} if scale != "class" else {})}
    if settings and st.toggle("Fix the settings", key="share_lock"):
        left = st.multiselect("Settings that can be changed", settings, key="share_open", help=OPEN_HELP)
        link["lock"] = ",".join(["all", *(links.UNLOCK_PREFIX + name for name in left)])
    return link | ({"text": text} if text else {})
