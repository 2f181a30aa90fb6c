"""Cases: why is my GPU not faster? Public threads with their causes, likely ones by a few questions, each run here."""

import streamlit as st

from core.question import published
from pages.cases import view
from pages.shared import controls, job_view, layout, session
from pages.shared.elements import plain

INTRO = (
    "Public questions of other users, with their answers. Choose what you see. Each matching case shows "
    "the report, the cause, and a similar training to run on this machine."
)

COMMAND = " ".join(("python -m core run", "--training", "my_training.py:build", "--size", "512"))


def draw_cases_page() -> None:
    """Draw the questionnaire with the matching cases, or the open case."""
    st.title("Why is my GPU not faster?", anchor=False)
    shown = session.read_view()
    known = published.load_cases()
    if shown is not None and shown[1] in known:
        layout.draw_isolated(view.draw_case, known[shown[1]], job_view.find_machine())
    else:
        if shown is not None:
            st.warning(plain(f"There is no case called {shown[1]}."))
        st.markdown(INTRO)
        answers = _ask_questions()
        view.draw_case_cards(published.likely(answers), answered=any(answers.values()))
    _draw_custom_training_hint()


def _ask_questions() -> dict[str, str]:
    """Draw the questionnaire, stored in the link; return the answer to each question, empty if there is none."""
    answers = dict.fromkeys(published.QUESTIONS, "")
    rows = [st.container(), st.container(), *st.columns([2, 3], gap="medium")]
    for place, (name, (text, options)) in zip(rows, published.QUESTIONS.items(), strict=True):
        bound = session.bind_choice(name, list(options), None, options.__getitem__)
        answers[name] = place.pills(text, list(options), **bound) or ""
    return answers


def _draw_custom_training_hint() -> None:
    """Draw how to measure a custom script, and links to Explore and the lessons."""
    st.header("Your script")
    st.markdown(
        "Profile your own training script the same way; it does not need to import Crossover. The result shows where "
        "the time goes, what the script waits for, and from which size another device pays off."
    )
    st.code(COMMAND, language=None, wrap_lines=True)
    controls.invite_custom_training()
    with st.container(horizontal=True):
        st.page_link(layout.EXPLORE, label="Explore", icon=":material/balance:")
        st.page_link(layout.LESSONS, label="Lessons on what misleads", icon=":material/lightbulb:")


draw_cases_page()
