"""A sweep on other machines: where the host's settings name some, under way, ended, and refused."""

import dataclasses
import json

import pytest

from core.errors import NotAllowed
from core.jobs import process
from core.jobs.cluster_machine import ClusterMachine
from core.jobs.job import RemoteTarget
from core.jobs.machine import Serving
from core.progress import Progress
from core.question.policy import POLICY_VARIABLE
from pages.shared import permits, queries
from tests.integration import scripted_worker
from tests.integration.scripted_worker import sweep
from tests.ui.conftest import CPU, checked, words
from tests.ui.find import alts, button, table

PAGE, DEVICES = "/crossover", "pages/devices/devices.py"
CLUSTER = RemoteTarget(on="ray")
ASKED = sweep(sizes=(32, 64, 128, 256))
ONE = ClusterMachine(
    host="lab-1", machine_id="a" * 12, cpu="First CPU", devices=("First CPU",), state="measuring", total=4
)
TWO = dataclasses.replace(ONE, host="lab-2", machine_id="b" * 12, cpu="Second CPU")


@pytest.fixture
def host(tmp_path, monkeypatch, world):
    """Settings that let everybody have sweeps measured by whoever joined; this process stands for the driver."""
    world.has(CPU)
    driver = world.queue.driver_file
    driver.folder.mkdir()
    driver.take(Serving(process=process.current_process(), ready=True))

    def write(text='[cluster]\non = ["ray", "ray://head.lab:10001"]\nhost_names = true'):
        (tmp_path / "policy.toml").write_text(f'who_may_run = "everybody"\n{text}')
        monkeypatch.setenv(POLICY_VARIABLE, str(tmp_path / "policy.toml"))
        return world

    return write


def measured(world, *members, points=ASKED.points):
    """Rows of machines, as they have brought them to the store."""
    found = []
    for member in members:
        for number, point in enumerate(points):
            changes = {"machine_id": member.machine_id, "cpu_name": member.cpu}
            run_id = f"{member.machine_id[:3]}0{number:08x}"
            found += world.keep(scripted_worker.timed(ASKED.experiment(point), run_id, **changes))
    return found


def job(world, found=(), **changes):
    """A sweep that other machines measure, with the rows that are there by now."""
    world.queue.submit(ASKED, world.store, elsewhere=CLUSTER)
    claimed = world.queue.claim(process.current_process(), elsewhere=True)
    names = {name: tuple(dict.fromkeys(getattr(row, name) for row in found)) for name in ("run_id", "trial_id")}
    running = dataclasses.replace(claimed, run_ids=names["run_id"], trial_ids=names["trial_id"], **changes)
    world.queue.report(running)
    return running


def where(app):
    return next((radio for radio in app.radio if radio.key == "where"), None)


def test_nothing_of_it_is_seen_unless_the_settings_name_machines(host, open_page):
    host("")
    assert where(open_page(PAGE)) is None
    assert "on a cluster" not in words(open_page(DEVICES))


def test_what_is_chosen_goes_to_the_machines_and_into_no_link(host, open_page):
    world = host()
    app = open_page(PAGE)
    assert where(app).options == ["This machine", "Ray cluster", "Ray cluster, head.lab:10001"]
    app = checked(where(app).set_value("ray").run())
    app = checked(button(app, "Find the crossover").click().run())
    [asked] = world.queue.jobs()
    assert asked.elsewhere == CLUSTER
    assert [str(contender) for contender in asked.sweep.contenders] == ["cpu@1", "cpu"]
    assert "ray" not in str(app.query_params)


def test_what_is_not_offered_cannot_be_asked(host, world):
    host("")
    with pytest.raises(NotAllowed, match="cannot be measured on other machines"):
        permits.submit(ASKED, world.store, elsewhere=CLUSTER)


def test_only_who_has_signed_in_may_ask_where_the_settings_say_so(host, open_page):
    host('[cluster]\non = ["ray"]\nwho_may_ask = "signed_in"')
    assert where(open_page(PAGE)) is None


def test_under_way_every_machine_says_what_it_does(host, open_page):
    world = host()
    busy = dataclasses.replace(ONE, doing="hidden size 64", done=2, left_s=80.0)
    failed = dataclasses.replace(TWO, state="failed", message="There is no room.")
    running = job(world, machines=(busy, failed), progress=Progress(phase="1 of 2 machines done"))
    app = open_page(PAGE, job=running.id)
    lines = table(app, "State")
    assert list(lines["State"]) == ["measuring", "failed"]
    assert list(lines["Says"]) == ["hidden size 64", "There is no room."]
    assert list(lines["Points"]) == ["2 of 4", "0 of 4"]
    assert button(app, "Stop")


def test_before_any_machine_has_found_something_there_is_no_chart(host, open_page, monkeypatch):
    world = host()
    monkeypatch.setattr(scripted_worker, "step_s", lambda contender, size: 1e-3)
    running = job(world, measured(world, ONE, points=ASKED.points[:1]), machines=(ONE,))
    app = open_page(PAGE, job=running.id)
    assert "Crossover of 1 machine" not in alts(app)
    assert "Crossover" not in table(app, "State")


def test_one_that_is_told_to_stop_says_so(host, open_page):
    world = host()
    running = job(world, machines=(ONE,))
    world.queue.request_stop(running.id)
    assert "Stopping the machines." in words(open_page(PAGE, job=running.id))


def test_the_queue_of_other_machines_is_one_of_its_own(host, open_page):
    world = host()
    job(world)
    waiting = world.queue.submit(sweep(sizes=(8, 16)), world.store, elsewhere=CLUSTER)
    assert "Place 1 in the queue of the cluster" in words(open_page(PAGE, job=waiting.id))


def test_at_its_end_all_are_on_one_chart_and_in_one_table(host, open_page):
    world = host()
    found = measured(world, ONE, TWO)
    failed = dataclasses.replace(ONE, host="lab-3", machine_id="c" * 12, state="failed", message="There is no room.")
    done = [dataclasses.replace(member, state="finished", done=4) for member in (ONE, TWO)]
    running = job(world, found, machines=(*done, failed))
    world.end(running, state="finished", message="lab-3: There is no room.", missing=("lab-3: There is no room.",))
    app = open_page(PAGE, job=running.id)
    assert "Crossover of 2 machines" in alts(app)
    lines = table(app, "State")
    assert list(lines["Machine"]) == ["lab-1", "lab-2", "lab-3"]
    assert list(lines["State"]) == ["done", "done", "failed"]
    assert all("(" in said for said in lines["Crossover"][:2])
    assert "lab-3: There is no room." in words(app)
    second = next(box for box in app.selectbox if box.key == "machine")
    app = checked(second.set_value("b" * 12).run())
    assert r"lab\-2" in [header.value for header in app.header]


def test_the_only_one_that_says_something_has_room_for_it(host, open_page):
    world = host()
    failed = dataclasses.replace(TWO, state="failed", message="It has no device cuda:0: PyTorch sees the CPU alone.")
    app = open_page(PAGE, job=job(world, machines=(ONE, failed)).id)
    (listed,) = (frame for frame in app.dataframe if "Says" in frame.value)
    widths = {name: column["width"] for name, column in json.loads(listed.proto.columns).items() if "width" in column}
    assert widths["Machine"] < 100 < 300 < widths["Says"]


def test_visitors_read_numbers_and_no_names_of_hosts(host, open_page):
    world = host('[cluster]\non = ["ray"]')
    found = measured(world, ONE, TWO)
    done = [dataclasses.replace(member, state="finished", done=4, threads=2) for member in (ONE, TWO)]
    failed = dataclasses.replace(ONE, host="lab-10", machine_id="c" * 12, state="failed", message="There is no room.")
    said = "lab-10: There is no room. Not heard by then: lab-1."
    running = job(world, found, machines=(*done, failed))
    world.end(running, state="finished", message=said)
    app = open_page(PAGE, job=running.id)
    names = ["machine 1 (First CPU, 2 CPU threads)", "machine 2 (First CPU)", "machine 3 (Second CPU, 2 CPU threads)"]
    assert list(table(app, "State")["Machine"]) == names
    chosen = next(box for box in app.selectbox if box.key == "machine")
    assert [name.partition(" (")[0] for name in chosen.options] == ["machine 1", "machine 3"]
    assert "machine 2 (First CPU): There is no room. Not heard by then: machine 1 (First CPU, 2" in words(app)
    listed = open_page(DEVICES)
    assert list(table(listed, "State")["Machine"]) == names
    for page in (app, listed):
        assert "lab-1" not in words(page).replace("\\", "")


def test_on_ones_own_machine_hosts_have_their_names(host, open_page, monkeypatch):
    running = job(host(), machines=(ONE, TWO))
    monkeypatch.delenv(POLICY_VARIABLE)
    assert list(table(open_page(PAGE, job=running.id), "State")["Machine"]) == ["lab-1", "lab-2"]


def test_visitors_read_no_address_of_a_cluster(host, open_page):
    world = host('[cluster]\non = ["ray", "ray://head.lab:10001"]')
    assert where(open_page(PAGE)).options == ["This machine", "Ray cluster", "Ray cluster, 2"]
    world.queue.submit(ASKED, world.store, elsewhere=RemoteTarget(on="ray://head.lab:10001"))
    running = world.queue.claim(process.current_process(), elsewhere=True)
    world.end(running, state="failed", message="No Ray cluster answers at ray://head.lab:10001: head.lab:10001 is gone")
    said = words(open_page(PAGE, job=running.id))
    assert "No Ray cluster answers at its address: its address is gone" in said


def test_alike_machines_that_share_points_are_one_by_their_numbers(host, open_page):
    world = host('[cluster]\non = ["ray"]')
    alike = [dataclasses.replace(ONE, host=f"lab-{letter}", own_id=letter * 12) for letter in "fe"]
    running = job(world, measured(world, ONE, TWO), machines=(*alike, TWO))
    world.end(running, state="finished")
    chosen = next(box for box in open_page(PAGE, job=running.id).selectbox if box.key == "machine")
    assert [name.partition(" (")[0] for name in chosen.options] == ["machines 2, 3", "machine 1"]


def test_the_gallery_puts_machines_that_answered_one_question_together(host, open_page):
    world = host("")
    measured(world, ONE, TWO)
    study = queries.list_study_lines()[0]
    app = open_page("pages/gallery/gallery.py", study=study.id)
    assert "Crossover of 2 machines" in alts(app)


def test_the_devices_page_lists_the_machines_of_the_last_sweep(host, open_page):
    job(host(), machines=(ONE,))
    assert list(table(open_page(DEVICES), "State")["Machine"]) == ["lab-1"]
