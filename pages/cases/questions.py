"""The questionnaire of the Cases page: a few answers, all of them in the link."""

import streamlit as st

from core.question.published.cases import QUESTIONS
from pages.shared.link import choices


def asked() -> dict[str, str]:
    """Draw the questions, two beside each other; what was answered to each, empty where nothing was."""
    answers = dict.fromkeys(QUESTIONS, "")
    columns = st.columns(2, gap="medium")
    for at, (name, (text, options)) in enumerate(QUESTIONS.items()):
        bound = choices.bound(name, list(options), None, options.__getitem__)
        answers[name] = columns[at % 2].pills(text, list(options), **bound) or ""
    return answers
