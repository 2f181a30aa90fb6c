"""Settings beside the answer: what both measuring pages are drawn into.

From 1,100 pixels on the settings stand in a narrow column that stays in view while the answer scrolls; below that they
fold behind a switch, and what asks for the answer stays. While something is measured they fold at every width. Where
the column is longer than the window its end fades, so that one sees that it goes on; it is shorter below what a link,
its fault or the host says on top of the page, so that what asks for the answer is in the window all the same.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeVar

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

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
