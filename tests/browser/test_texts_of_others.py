"""What others wrote, in a real browser: no link, no picture, no request elsewhere, and files that run nowhere."""

from urllib.parse import quote

import pytest
from playwright.sync_api import expect

from core.answer.gallery import overview
from core.question.policy import POLICY_VARIABLE
from pages.shared.links import PAGES
from tests import rows, strangers
from tests.browser.conftest import Filled, Server, settled, visits
from tests.browser.views import ready
from tests.hostile import LEGITIMATE, STRANGER, UNSEEN, formulas

pytestmark = pytest.mark.browser

PATHS = (
    f"/compare?run={rows.RUN_ID}&reports=true&blocks=true",
    "/compare?text={text}&lock={text}&recorded={text}",
    "/crossover?study={study}&speedup=true",
    "/devices",
    "/lessons?lesson={text}&text={text}",
    "/gallery?unread=true&filters=true",
    "/gallery?view=Trials",
    f"/gallery?run={rows.RUN_ID}&lacks=true&reports=true",
    "/gallery?study={study}&beside={other}&lacks=true&fingerprint=true&speedup=true",
    "/class?class={class}&me={me}&results=true",
)

MADE = """
() => ({
    links: [...document.querySelectorAll('a')].map(link => link.getAttribute('href')),
    pictures: [...document.querySelectorAll('img, iframe, object, embed, video, audio')].map(one => one.outerHTML),
    icons: [...document.querySelectorAll('[role=img]')].map(one => one.ariaLabel || ''),
    formulas: document.querySelectorAll('.katex').length,
    coloured: [...document.querySelectorAll('[class*=stMarkdownColored], .stMarkdownBadge')].map(one => one.innerText),
})
"""

COPIED = """
(box) => {
    const range = document.createRange();
    range.selectNodeContents(box);
    getSelection().removeAllRanges();
    getSelection().addRange(range);
    return getSelection().toString();
}
"""


@pytest.fixture(scope="module")
def strange(tmp_path_factory):
    """A server in which everything that others can write is hostile."""
    folder = tmp_path_factory.mktemp("strange")
    (folder / "crossover.toml").write_text(strangers.settings())
    server = Server(folder)
    strangers.fill(server.store, server.store)
    of = strangers.classroom(server.classes)
    known = overview.find_study_lines(overview.load_overview([(server.store, "measured here")]).table)
    names = {"study": known[0].id, "other": known[1].id, "class": of.code, "me": of.me, "secret": of.secret}
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(POLICY_VARIABLE, str(folder / "crossover.toml"))
        server.start()
    yield Filled(server=server, names={**names, "text": strangers.PRINTABLE.replace("&", "")})
    server.stop()
    server.kill_worker()


@pytest.fixture
def among(visitors, strange):
    """Opens an address of that server; fails if a page raised or asked another host."""
    with visits(visitors, strange.server, strange.names) as opened:
        yield opened


def require_nothing_made(page, server):
    """Find out whether a page has links, pictures, icons or formulas that are not ours."""
    made = page.evaluate(MADE)
    assert [link for link in made["links"] if not (link or "#").startswith(("#", "/", server.url, "?", *PAGES))] == []
    assert [one for one in made["pictures"] if "data:" not in one and "blob:" not in one] == []
    assert not {"home icon", "heart emoji", "Streamlit logo"} & set(made["icons"])
    assert made["formulas"] == 0
    assert [text for text in made["coloured"] if "Trust: " not in text] == []
    assert not UNSEEN.search(page.inner_text("body").replace("\t", " "))


@pytest.mark.parametrize("path", PATHS)
def test_nothing_of_it_is_a_link_a_picture_or_a_formula(among, strange, path):
    page = ready(among(path, height=4_000))
    expect(page.get_by_text(STRANGER).first).to_be_attached()
    require_nothing_made(page, strange.server)


def test_it_is_shown_and_copied_letter_for_letter(among):
    page = ready(among("/compare?text={text}"))
    said = page.get_by_test_id("stAlert").filter(has_text="Note from the person who shared this link").first
    expect(said).to_contain_text(strangers.PRINTABLE)
    assert strangers.PRINTABLE in said.evaluate(COPIED)


def test_so_is_what_nothing_is_wrong_with(among):
    page = ready(among(f"/compare?text={quote(' · '.join(LEGITIMATE))}"))
    copied = (
        page.get_by_test_id("stAlert")
        .filter(has_text="Note from the person who shared this link")
        .first.evaluate(COPIED)
    )
    assert [name for name in LEGITIMATE if name not in copied] == []


def download(page, what):
    """The file that a table makes of itself, by what it shows."""
    with page.expect_download() as taken:
        page.get_by_role("button", name=f"Download as CSV: {what}").press("Enter")
    return taken.value.path().read_bytes()


def without_picker(page):
    """The page in a browser that saves files without asking where."""
    page.add_init_script("delete window.showSaveFilePicker")
    page.reload()
    return ready(page)


def test_the_file_that_the_teachers_table_makes_of_itself_runs_nowhere(among, strange):
    page = without_picker(among("/class?class={class}"))
    page.get_by_text("For the teacher").click()
    page.get_by_label("Teacher's code").fill(strange.names["secret"])
    page.get_by_role("button", name="Open the teacher's view").click()
    expect(page.get_by_role("button", name="Open the teacher's view")).to_have_count(0)
    data = download(settled(page), "Students with their predictions and results")
    assert data.decode("utf-8-sig").startswith("Nickname,")
    assert data.count(STRANGER.encode()) > 4
    assert formulas(data) == []


def test_nor_does_the_file_of_a_charts_data(among):
    page = without_picker(among(f"/gallery?run={rows.RUN_ID}"))
    page.get_by_role("button", name="Show data: Training loss against time").press("Enter")
    data = download(page, "Training loss against time")
    assert data.count(STRANGER.encode()) > 4
    assert formulas(data) == []
