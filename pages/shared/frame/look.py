"""The look of every page that `.streamlit/config.toml` has no words for: the brand in the bar, spacing, few rules more.

White on the accent and the accent on a dark page cannot both have enough contrast, so it colours no small text.
"""

import streamlit as st

from pages.shared.frame import history

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
    history.draw_history_style(RULES)
