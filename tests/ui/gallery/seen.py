"""What the Gallery shows, and what is pressed there."""

from pages.shared import layout
from tests.ui.conftest import checked

PAGE = layout.GALLERY


def listed(app):
    """The table of trials."""
    return next(table.value for table in app.dataframe if "Step (ms)" in table.value.columns)


def table(app, column):
    return next(table.value for table in app.dataframe if column in table.value.columns)


def linked(app, name):
    """The value of a parameter of the link, which AppTest has as text or as a list of one."""
    value = app.query_params[name]
    return value if isinstance(value, str) else value[0]


def press(app, label):
    next(found for found in app.button if found.label == label).click()
    return checked(app.run())


def cards(app):
    return [found.key.removeprefix("open-") for found in app.button if found.label == "Open"]
