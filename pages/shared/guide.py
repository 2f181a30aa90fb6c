"""The frame of every page: the instructions of its link at the top, and the button that makes such a link.

A teacher's link can contain instructions (`text`), the settings of a tutorial to begin with (`preset`, at a `scale`),
and a lesson to return to (`lesson`). It can also fix settings (`lock`) and hide them (`hide`). The page shows the text
of a link unformatted, never as Markdown or HTML. A lock helps a class and is not a permission: `pages.shared.permits`
decides which visitors may measure.
"""

from collections.abc import Sequence

import streamlit as st

from core.errors import InvalidValue, require_choice
from core.question import describe
from core.question.experiment import Contender
from core.question.fields import TRAINING
from core.question.presets import LIMITS, PRESETS, SCALES, Preset, Scale, preset
from core.question.sweep import Sweep
from pages.shared import layout, links, queries, session
from pages.shared.elements import plain

MOST_LETTERS = 500
"""Maximum number of characters of an instruction; the rest is left out."""

TWO_LINES = 72
"""Height of an instruction in pixels: its link must fit below, in a window of 800."""

STARTED: dict[links.PageName, str] = {
    "explore": layout.EXPLORE,
    "tutorials": layout.TUTORIALS,
}
"""Pages that a preset can start."""

NO_PRESET = "as set on this page"

OPEN_HELP = "Every other setting is shown and cannot be changed."

Link = dict[str, str | list[str]]


def run_page(page: st.Page) -> None:
    """Run a page below the instructions of its link and the button that shares it."""
    layout.draw_brand()
    if page.url_path in layout.FORMER:
        said = {name: st.query_params.get_all(name) for name in st.query_params}
        st.switch_page(layout.EXPLORE, query_params=layout.renew_link(page.url_path, said))
    name = next(name for name in links.PAGES if name == (page.url_path or "explore"))
    # The doors come first in code and last in the page, so the tab key reaches the page's controls before them.
    layout.draw_learn_links(page.url_path)
    content, doors = st.container(), st.container()
    with doors:
        layout.draw_doors(plain(queries.name_devices()), plain(queries.describe_repeatability()))
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
        st.page_link(layout.LESSONS, label=label, icon=":material/lightbulb:", query_params={"lesson": lesson})
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
        layout.put_away(names)


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
