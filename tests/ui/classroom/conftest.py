"""A class of its own for each test, and a clock by which codes and joins are counted."""

import pytest

from core.classroom import students
from core.classroom.classes import Classes
from core.classroom.students import Limits
from pages.classroom import access, findings
from pages.shared import permits
from tests.students import QUESTION
from tests.ui.classroom.opened import Clock


@pytest.fixture(autouse=True)
def clock(monkeypatch):
    """What is counted of codes, joins and classes begins anew with each test, by a clock of the test."""
    clock = Clock()
    for name in ("_tried", "_secrets_tried", "_joined", "_made", "_brought"):
        counted = getattr(access, name)
        monkeypatch.setattr(access, name, Limits(counted.what, counted.rates, now=clock))
    return clock


@pytest.fixture(autouse=True)
def patient(monkeypatch):
    """Results of all students are read in one view, however slow the machine is."""
    monkeypatch.setattr(findings, "READING_S", 240.0)


@pytest.fixture
def comes_from(monkeypatch):
    """Says where visitors come from, from now on."""
    return lambda cookie, address="192.0.2.1": monkeypatch.setattr(
        permits, "source", lambda: students.source(cookie, address)
    )


@pytest.fixture
def classes(tmp_path, monkeypatch):
    monkeypatch.setenv("CROSSOVER_CLASSES", str(tmp_path / "classes"))
    return Classes(tmp_path / "classes")


@pytest.fixture
def made(classes):
    return classes.create("Physics 7b", QUESTION)
