"""What an automated check of accessibility (axe-core) says of a page."""

from importlib import resources

from playwright.sync_api import expect

AXE = (resources.files("axe_playwright_python") / "axe.min.js").read_text()
"""As the package ships it; nothing is fetched while testing."""

RULES = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "best-practice"]
SEVERE = {"serious", "critical"}
ALSO = {"heading-order"}
"""Rules of less weight that hold here as well: who listens to a page finds its parts by their headings."""

CHECK = """
async rules => {
    const {violations} = await axe.run(document, {runOnly: rules, elementRef: true});
    const locked = part => part?.closest('[class*="st-key-"]')?.querySelector('input:disabled, button:disabled');
    return violations.flatMap(violation => violation.nodes
        .filter(node => !(violation.id === 'color-contrast' && locked(node.element)))
        .map(node => ({rule: violation.id, impact: violation.impact, html: node.html, why: node.failureSummary})));
}
"""
"""What axe finds; controls that are locked may be pale (WCAG 1.4.3 leaves inactive ones out, axe cannot tell)."""

KNOWN = {
    "svg-img-alt": "role-mark",  # Vega names every mark but not the empty group that holds them
}
"""By rule, part of the code of what Streamlit and Vega draw and no page can change."""


TRIES = 3
"""A page that draws itself anew is pale meanwhile; what is wrong with it is still wrong afterwards."""


def violations(page):
    """What axe finds that is serious or that we hold to as well, a line each, however often one looks."""
    page.evaluate(AXE)
    for _ in range(TRIES):
        expect(page.locator("[data-stale=true]")).to_have_count(0)
        if not (found := _violations(page)):
            break
    return found


def _violations(page):
    return [
        f"{found['rule']}: {found['html'][:200]}: {found['why'][:300]}"
        for found in page.evaluate(CHECK, RULES)
        if (found["impact"] in SEVERE or found["rule"] in ALSO) and KNOWN.get(found["rule"], "\0") not in found["html"]
    ]
