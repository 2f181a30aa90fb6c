"""Where branches of `core` are counted, those that quick unit tests reach are: while others run nothing is counted.

Counting slows all that Python does down, also in what is not counted; it begins and stops between two tests.
"""

import pytest

IMPORTER = "gw0"
"""The worker that counts what an import runs, while it collects the tests; the others import the same."""


def begin(config):
    """Say when pytest-cov counts, if it was asked to."""
    cov = config.pluginmanager.getplugin("_cov")
    if cov and not config.option.no_cov:
        worker = getattr(config, "workerinput", {}).get("workerid")
        if worker:  # pytest-cov began before it knew, and would go on counting beneath what it begins next
            cov.cov_controller.pause()
        alone = getattr(config.option, "dist", "no") == "no"
        config.pluginmanager.register(Counting(cov, importing=alone and worker in (None, IMPORTER)))


class Counting:
    """Lets pytest-cov count when it is of use.

    Args:
        cov: its plugin.
        importing: whether it counts while tests are collected.
    """

    def __init__(self, cov, *, importing):
        self._cov, self._importing = cov, importing
        self._counted, self._counting = set(), True

    @pytest.hookimpl(tryfirst=True)
    def pytest_collection(self):
        self._count(self._importing)

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, items):
        quick = {
            item for item in items if item.nodeid.startswith("tests/unit/") and not item.get_closest_marker("slow")
        }
        self._counted = quick or set(items)

    def pytest_collection_finish(self):
        self._count(False)

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_protocol(self, item):
        self._count(item in self._counted)

    def _count(self, wanted):
        if wanted != self._counting:
            controller, self._counting = self._cov.cov_controller, wanted
            (controller.resume if wanted else controller.pause)()
