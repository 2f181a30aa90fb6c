"""The questionnaire of the Cases page: a few answers, all of them in the link."""

import streamlit as st

from core.question.published.cases import QUESTIONS
from pages.shared.link import choices


def asked() -> dict[str, str]:
    """Draw the questions; what was answered to each, empty where nothing was."""
    answers = dict.fromkeys(QUESTIONS, "")
    rows = [st.container(), st.container(), *st.columns([2, 3], gap="medium")]
    for place, (name, (text, options)) in zip(rows, QUESTIONS.items(), strict=True):
        bound = choices.bound(name, list(options), None, options.__getitem__)
        answers[name] = place.pills(text, list(options), **bound) or ""
    return answers
