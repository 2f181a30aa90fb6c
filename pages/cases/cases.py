"""Cases: why is my GPU not faster? Public threads with their causes, likely ones by a few questions, each run here."""

import streamlit as st

from core.question import published
from pages.cases import view
from pages.shared import controls, job_view, layout, navigation, session
from pages.shared.text import plain

INTRO = (
    "Others asked this in public, and found out. Say what you see: the cases that fit stand below, each with what was "
    "reported, what the cause was, and the same kind of training to run on this machine."
)

COMMAND = " ".join(("python -m core run", "--training", "my_training.py:build", "--size", "512"))


def draw_cases_page() -> None:
    """The questions with the cases that fit; or the one that is open."""
    st.title("Why is my GPU not faster?", anchor=False)
    shown = session.read_view()
    known = published.load_cases()
    if shown is not None and shown[1] in known:
        layout.draw_isolated(view.draw_case, known[shown[1]], job_view.find_machine())
    else:
        if shown is not None:
            st.warning(plain(f"There is no case called {shown[1]} here."))
        st.markdown(INTRO)
        answers = _ask_questions()
        view.draw_case_cards(published.likely(answers), answered=any(answers.values()))
    _draw_custom_training_hint()


def _ask_questions() -> dict[str, str]:
    """Draw the questionnaire, all of it in the link; what was answered to each question, empty where nothing was."""
    answers = dict.fromkeys(published.QUESTIONS, "")
    rows = [st.container(), st.container(), *st.columns([2, 3], gap="medium")]
    for place, (name, (text, options)) in zip(rows, published.QUESTIONS.items(), strict=True):
        bound = session.bind_choice(name, list(options), None, options.__getitem__)
        answers[name] = place.pills(text, list(options), **bound) or ""
    return answers


def _draw_custom_training_hint() -> None:
    """The way from here to what one came for."""
    st.header("Your own training")
    st.markdown(
        "Your own file can be taken apart in the same way, without a line of ours in it: where its time goes, what it "
        "waits for, and from which size on another device pays off."
    )
    st.code(COMMAND, language=None, wrap_lines=True)
    controls.invite_custom_training()
    with st.container(horizontal=True):
        st.page_link(navigation.COMPARE, label="Compare", icon=":material/balance:")
        st.page_link(navigation.LESSONS, label="Lessons on what misleads", icon=":material/lightbulb:")


draw_cases_page()
