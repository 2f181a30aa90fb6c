"""A class as its teacher and its students open it."""

from core.classroom import students
from tests.ui.conftest import checked
from tests.ui.find import CLASS_PAGE as PAGE
from tests.ui.find import button


class Clock:
    """Seconds that pass when told."""

    now_s = 0.0

    def __call__(self):
        return self.now_s


def field(app, label):
    return next(found for found in app.text_input if found.label == label)


def enter(app, code):
    field(app, "Join code").set_value(code)
    return checked(button(app, "Go to the class").click().run())


def teaching(open_page, of, secret, **link):
    """The class page with the teacher's view open."""
    app = open_page(PAGE, **{"class": of.code, **link})
    field(app, "Teacher's code").set_value(secret)
    return checked(button(app, "Open the teacher's view").click().run())


def linked(app, name):
    """A parameter of the link as it is now."""
    value = app.query_params[name]
    return value if isinstance(value, str) else value[0]


def wrong_code():
    """A code that nobody has and that could be one: it has to be looked up."""
    return students.join_code()


def labels(app):
    return [found.label for found in app.button]
