"""The browser's Back button: one entry a step of the user, whatever a page does to its link meanwhile.

Streamlit makes an entry of every change that a page makes to its link, and takes the settings out of the one that is
left. Here a page that is opened makes one, and so does a result that is opened; what a page adds to its link after that
belongs to the same entry, and what is left stays as it was left. Where the browser runs no scripts, Back takes more
steps, and nothing else changes.
"""

import json

import streamlit as st

from pages.shared import links

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
