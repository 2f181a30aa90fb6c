"""The layout of every page: settings beside the answer, the brand, the styles, and parts that fail by themselves.

From 1,100 pixels on the settings are a narrow column that stays in view while the answer scrolls; below that they fold
behind a switch, and the button that measures stays in the window. During a measurement they fold at every width.
"""

import json
import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import ParamSpec, TypeVar

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from core.errors import CrossoverError
from core.question import refusals
from pages.shared import links
from pages.shared.text import plain

T = TypeVar("T")

BESIDE = """
.st-key-settings .stVerticalBlock { gap: 0.5rem; }
@media (min-width: 1100px) {
  .st-key-sides { flex-direction: row; flex-wrap: nowrap; align-items: flex-start; gap: 2.5rem; }
  div:has(> .st-key-settings_side) { flex: 0 0 21rem; width: 21rem; position: sticky; top: 4.5rem; }
  div:has(> .st-key-answer_side) { flex: 1 1 0; min-width: 0; }
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
@media (max-width: 1099px) {
  .st-key-settings_side:has(.st-key-unfold input:not(:checked)) div:has(> .st-key-settings) { display: none; }
  .st-key-settings_side:has(.st-key-unfold input:checked) div:has(> .st-key-in_short) { display: none; }
}
"""

ABREAST = """
.stVerticalBlock.st-key-two_abreast { display: grid; grid-template-columns: minmax(0, 1fr) minmax(0, 1fr); }
.st-key-settings .stVerticalBlock.st-key-two_abreast { column-gap: 1.5rem; }
.st-key-two_abreast [data-testid="stSelectbox"] input { text-overflow: ellipsis; }
"""

FOLDED = """
.st-key-answer_side [data-stale="true"] { opacity: 1; }
.st-key-asked { flex-wrap: nowrap; }
.st-key-asked > :last-child { flex: 1 1 0; min-width: 0; }
.st-key-asked > :last-child p { white-space: nowrap; overflow: hidden; text-overflow: ellipsis; }
.st-key-settings_side:has(.st-key-unfold_asked input:not(:checked)) div:has(> :is(.st-key-settings, .st-key-ask)) {
  display: none;
}
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
"""Who comes by the tab key reaches the button that asks without the twenty controls before it, which `LABEL` names."""


@dataclass(frozen=True, kw_only=True)
class Sides:
    """Where a page draws: the controls, what follows from them with the button that asks, and the answer."""

    settings: DeltaGenerator
    ask: DeltaGenerator
    answer: DeltaGenerator


def sides(title: str, *, asked: str = "", folds: bool = True) -> Sides:
    """The places of a page that has settings and an answer, below its title.

    Args:
        title: name of the page.
        asked: what is being measured, in a line that stands for the settings; empty while nothing is.
        folds: whether the settings fold on a phone; not those that have to be read before one asks.
    """
    style = f"<style>{ABREAST}{FOLDED if asked else BESIDE}</style>"
    if asked:
        st.html(style)
    else:
        skip("Skip the settings", style)
    with st.container(key="sides"):
        settings_side, answer = st.container(key="settings_side"), st.container(key="answer_side")
    with settings_side:
        st.title(title, anchor=False)
        if asked or folds:
            with st.container(horizontal=True, vertical_alignment="center", key="asked"):
                st.toggle("Settings", key="unfold_asked" if asked else "unfold", width="content")
                if asked:
                    st.caption(plain(asked))
        settings = st.container(key="settings", gap="xsmall")
        ask = st.container(key="ask", gap="small")
    return Sides(settings=settings, ask=ask, answer=answer)


def draw_settings_line(*settings: str) -> None:
    """Say the settings in a line, which is seen in their stead where they are folded."""
    with st.container(key="in_short"):
        st.caption(plain(" · ".join(filter(None, settings))))


def skip(label: str, style: str = "") -> None:
    """Draw the way past what stands before the button that asks, seen once the tab key reaches it; and set a style."""
    with st.container(key="skip_settings"):
        st.html(style + SKIP.replace("LABEL", label), unsafe_allow_javascript=True)


def draw_pairs(items: Sequence[T], draw: Callable[[T], None]) -> None:
    """Draw each of several things in a column of its own, two beside each other."""
    for at in range(0, len(items), 2):
        for column, item in zip(st.columns(2, gap="medium"), items[at : at + 2], strict=False):
            with column:
                draw(item)


def two_abreast() -> DeltaGenerator:
    """A place for small controls, which stand two in a row in the order in which they are drawn."""
    return st.container(key="two_abreast")


def put_away(keys: Sequence[str]) -> None:
    """Take what is drawn with these keys out of sight; it is drawn all the same, so that its values hold."""
    st.html(f"<style>{', '.join(f'.st-key-{key}' for key in keys)} {{ display: none; }}</style>")


LOGO = """<svg xmlns="http://www.w3.org/2000/svg" width="132" height="28" viewBox="0 0 132 28" fill="none">
<path d="M3 5 C 10 6, 16 13, 25 23" stroke="#D55E00" stroke-width="3" stroke-linecap="round"/>
<path d="M3 23 C 10 21, 17 14, 25 5" stroke="#2E82BE" stroke-width="3" stroke-linecap="round"/>
<text x="36" y="20" textLength="92" lengthAdjust="spacingAndGlyphs" fill="#2E82BE" font-size="19" font-weight="700"
 font-family="'Source Sans 3', 'Source Sans Pro', 'Segoe UI', Helvetica, Arial, sans-serif">Crossover</text>
</svg>"""
"""Two curves that cross, and the name in a colour that reads on white and by night."""

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
.st-key-doors a { border: 1px solid rgba(128, 128, 128, 0.5); border-radius: 0.5rem; padding: 0.5rem 1rem; }
.st-key-doors > :first-child a { background: #0072B2; border-color: #0072B2; }
.st-key-doors > :first-child a * { color: #FFFFFF !important; }
.stButtonGroup [role="radiogroup"] { flex-wrap: wrap; }
button[kind="tertiary"]:is(:active, [aria-expanded="true"]) { color: inherit; }
@media (max-width: 1099px) { [data-testid="stMainBlockContainer"] { padding: 4.25rem 1rem 3rem; } }
"""
"""Figures stand below each other. Streamlit leaves 130 pixels of nothing above a title. Sharing is in the bar, over
which Streamlit would draw what it does for as long as a page follows a measurement. The doors of the front page look
like something to press, the first like the button that it leads to. What opens something keeps its colour while it is
open, where Streamlit has one that cannot be read by night."""


def draw_brand() -> None:
    """Draw the brand into the bar, and set the rules, in one element with what else every page has out of sight."""
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
    """Draw what keeps the history, and the rules of a style; of no size, and harmless when it comes again."""
    with st.container(key=KEY):
        st.html(f"<style>{style}</style>{_SCRIPT}", unsafe_allow_javascript=True)


P = ParamSpec("P")

_log = logging.getLogger(__name__)


def draw_isolated(part: Callable[P, object], *args: P.args, **kwargs: P.kwargs) -> None:
    """Draw a part of a page; the rest is drawn whatever becomes of it."""
    try:
        part(*args, **kwargs)
    except CrossoverError as error:
        st.error(plain(refusals.format_page_error(error)))
    except Exception:
        _log.exception("A part of a page could not be drawn")
        st.error("This part of the page could not be drawn, and the server's log says why. The rest of it works.")
