import pytest

from core.classroom.classes import Classes
from core.classroom.question import ClassQuestion


@pytest.fixture
def classes(tmp_path):
    return Classes(tmp_path / "classes")


@pytest.fixture
def of(classes):
    """A class that measures where the first tutorial crosses."""
    return classes.create("Physics 7b", ClassQuestion.from_preset("disc"))[0]
