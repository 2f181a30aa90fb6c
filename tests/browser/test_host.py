"""What a host says on top of every page, in a real browser."""

from playwright.sync_api import expect

from tests.browser.conftest import Server, Visitors, settled


def test_what_asks_stays_in_the_window_below_the_banner_of_a_host(tmp_path, visitors: Visitors, monkeypatch):
    settings = tmp_path / "policy.toml"
    settings.write_text('who_may_run = "everybody"\nbanner = "Restarted on Mondays."\n[run]\nseconds = 30\n')
    monkeypatch.setenv("CROSSOVER_POLICY", str(settings))
    server = Server(tmp_path)
    server.start()
    page = visitors.come("light", 1280, 800)
    try:
        page.goto(f"{server.url}/tutorials?tutorial=signal")
        expect(page.get_by_text("Restarted on Mondays.")).to_be_visible()
        run = page.get_by_role("button", name="Run", exact=True)
        expect(run).to_be_visible()
        settled(page)
        box = run.bounding_box()
        assert box
        assert box["y"] + box["height"] <= 800
    finally:
        visitors.go(page.context, server)
        server.stop()
        server.kill_worker()
