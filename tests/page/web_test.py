#!/usr/bin/env python3
"""Opens the page of `tpsim report` in headless Chromium and uses it.

web_test.py tpsim folder: loads the page from disk, drags a slider,
checks that the plan changes, and takes a picture. Exits with 77,
which ctest counts as skipped, if there is no Chromium or no page.
"""
import json
import pathlib
import shutil
import subprocess
import sys
import tempfile
import time
import zlib

from browser import PATIENCE, Browser, BrowserError

MOST_BYTES = 1_500_000  # 1.0 MB of program, 0.34 MB of catalogue


class Page:
    """The program in the tab: its facts, and its controls by label."""

    def __init__(self, browser: Browser):
        self.browser = browser

    def facts(self) -> dict:
        text = self.browser.value("typeof Module === 'object' && Module._tpsim_facts ? "
                                  "JSON.stringify(tpsimFacts()) : '{}'")
        return json.loads(text or "{}")

    def wait_until(self, what: str, holds, patience: float = PATIENCE) -> dict:
        end = time.time() + patience
        now = {}
        while time.time() < end:
            now = self.facts()
            if holds(now):
                return now
            time.sleep(0.1)
        raise BrowserError(f"waited in vain until {what}; the page says "
                           f"{self.browser.value('document.body.innerText')!r}, its errors are "
                           f"{self.browser.errors}, its facts "
                           f"{ {k: v for k, v in now.items() if not k.startswith('at:')} }")

    def mouse(self, kind: str, x: float, y: float, held: bool = False) -> None:
        """Sends a mouse event and waits until two more frames are drawn."""
        drawn = self.facts()["frames"]
        self.browser.mouse(kind, x, y, held)
        self.wait_until("a frame is drawn", lambda now: now["frames"] >= drawn + 2)

    def place(self, label: str, x: float = 0.5, y: float = 0.5) -> tuple:
        left, top, right, bottom = map(float, self.facts()[f"at:{label}"].split())
        return left + x * (right - left), top + y * (bottom - top)

    def click(self, label: str) -> None:
        x, y = self.place(label)
        self.mouse("mouseMoved", x, y)
        self.mouse("mousePressed", x, y, True)
        self.mouse("mouseReleased", x, y)

    def slide(self, label: str, share: float) -> None:
        x, y = self.place(label)
        end = self.place(label, share)[0]
        self.mouse("mouseMoved", x, y)
        self.mouse("mousePressed", x, y, True)
        for i in range(1, 6):
            self.mouse("mouseMoved", x + (end - x) * i / 5, y, True)
        self.mouse("mouseReleased", end, y)


def is_ready(now: dict) -> bool:
    has_interval = "(90 %: …)" not in now.get("answer.use", "")
    return now.get("plan.runs") == "yes" and now.get("searching") == "no" and has_interval


def colors_of(png: bytes) -> int:
    """Returns the number of distinct bytes in the picture's pixels; an empty page has very few."""
    at, packed = 8, b""
    while at < len(png):
        size, kind = int.from_bytes(png[at:at + 4], "big"), png[at + 4:at + 8]
        if kind == b"IDAT":
            packed += png[at + 8:at + 8 + size]
        at += size + 12
    return len(set(zlib.decompress(packed)))


def show_whole_step(page: Page) -> None:
    page.browser.key("0", "0")
    page.wait_until("0 shows the whole step", lambda now: float(now["timeline.begin"]) == 0)


def pinch(page: Page, x: float, y: float) -> None:
    """Moves two fingers apart around a point."""
    page.browser.touch("touchStart", (x - 20, y))
    page.browser.touch("touchStart", (x - 20, y), (x + 20, y))
    for apart in (40, 60, 80):
        page.browser.touch("touchMove", (x - apart, y), (x + apart, y))
    page.browser.touch("touchEnd")


def print_out(page: Page) -> None:
    """The picture keeps its shape on paper, and the recommendation is text."""
    page.wait_until("the plan is shown", is_ready)
    page.browser.call("Emulation.setEmulatedMedia", media="print")
    shape = page.browser.value(
        "(() => { const c = document.getElementById('canvas'); c.width = 900; c.height = 200; "
        "const box = c.getBoundingClientRect(); return box.width / box.height / 4.5; })()")
    assert abs(shape - 1) < 0.02, f"the picture is stretched by {shape}"
    assert page.browser.value("document.getElementById('answer').offsetHeight") > 10


def explain_without_webgl(page: Page) -> None:
    end, said = time.time() + PATIENCE, ""
    while "needs WebGL 2" not in said and time.time() < end:
        time.sleep(0.1)
        said = page.browser.value("document.body ? document.body.innerText : ''")
    assert "needs WebGL 2" in said, said


# Runs before the page, in a browser that has no WebGL.
NO_WEBGL = "HTMLCanvasElement.prototype.getContext = () => null;"


def use(page: Page, folder: pathlib.Path) -> str:
    shown = page.wait_until("the plan is shown", is_ready)
    assert shown["model"] == "bloom-7b1" and shown["gpus"] == "16", shown
    assert shown["chosen"] == "yes", "the plan of the file is looked at"
    assert int(shown["plans"]) > 10, shown

    page.slide("tensor parallel", 0.98)
    turned = page.wait_until("the slider turned the plan", lambda now: now["plan.tp"] == "16")
    assert turned["plan.step_s"] != shown["plan.step_s"], turned
    (folder / "report.png").write_bytes(picture := page.browser.picture())
    assert colors_of(picture) > 100, "the picture is all but empty"

    x, y = page.place("timeline")
    page.browser.mouse("mouseMoved", x, y)
    page.browser.wheel(x, y, -300)
    page.wait_until("the wheel zoomed", lambda now: float(now["timeline.begin"]) > 0)
    begin = float(page.facts()["timeline.begin"])
    page.browser.wheel(x, y, 0, 40)
    page.wait_until("a sideways wheel pans", lambda now: float(now["timeline.begin"]) > begin)
    show_whole_step(page)
    pinch(page, x, y)
    page.wait_until("two fingers zoom", lambda now: float(now["timeline.begin"]) > 0)
    show_whole_step(page)
    assert "tp 16" in (text := page.browser.value("document.body.innerText")), text
    page.click("Theme")
    page.wait_until("the theme changed", lambda now: now["theme"] == "dark")
    (folder / "report-dark.png").write_bytes(page.browser.picture())

    def takes(key: str, ctrl: bool = False) -> bool:
        """Presses a key and returns whether the page takes it from the browser."""
        return page.browser.value(
            f"(() => {{ const send = kind => {{ const event = new KeyboardEvent(kind, "
            f"{{ key: '{key}', ctrlKey: {str(ctrl).lower()}, bubbles: true, cancelable: true }}); "
            "document.getElementById('canvas').dispatchEvent(event); "
            "return event.defaultPrevented; }; "
            "const taken = send('keydown'); send('keyup'); return taken; })()")

    assert takes("Tab") and takes("f", True), "Tab and Ctrl+F work in the page"
    assert not takes("=", True) and not takes("-", True), "the browser keeps its zoom"
    assert takes("Escape") and not takes("Tab"), "Escape, then Tab leaves the page"
    page.click("Save")
    page.click("Save plan")
    saved = page.wait_until("the plan is downloaded", lambda now: now["notice"] != "")
    assert saved["notice"].startswith("Saved the plan"), saved["notice"]

    time.sleep(1)  # all frames of the last input are then drawn
    idle = page.facts()["frames"]
    time.sleep(1)
    assert page.facts()["frames"] - idle <= 2, "frames are drawn while nothing happens"
    assert page.browser.errors == [], page.browser.errors
    strangers = [url for url in page.browser.requests if not url.startswith(("file:", "blob:"))]
    assert strangers == [], strangers
    return (f"tensor parallel {shown['plan.tp']} -> {turned['plan.tp']}, "
            f"step {shown['plan.step_s']} s -> {turned['plan.step_s']} s")


# A name that would end the script around it, or become markup, without escaping.
HOSTILE = ("</script><script>window.broken=1</script><img src=x onerror=window.broken=1>"
           "<!--<script>]]>&lt;${window.broken=1}`'\"\\\u2028\u202e%s%n")


def hostile_plan(tpsim: pathlib.Path, folder: pathlib.Path) -> pathlib.Path:
    """Writes a plan with hostile names of model and cluster; returns its path."""
    for kind, name in (("model", "bloom-560m"), ("cluster", "jean-zay-a100")):
        entry = json.loads(subprocess.run([tpsim, "show", kind, name], check=True,
                                          capture_output=True).stdout)
        (folder / f"{kind}.json").write_text(json.dumps({**entry, "name": HOSTILE}))
    plan = folder / "hostile.json"
    subprocess.run([tpsim, "plan", "--model", folder / "model.json", "--cluster",
                    folder / "cluster.json", "--gpus", "8", "--global-batch", "64", "--save", plan],
                   check=True, stdout=subprocess.DEVNULL)
    return plan


def withstand(page: Page) -> None:
    shown = page.wait_until("the plan with hostile names is shown", is_ready)
    assert shown["model"] == HOSTILE, shown["model"]
    page.click("Theme")
    assert page.browser.value("String(window.broken)") == "undefined", "a name ran as a script"
    assert page.browser.value("document.images.length") == 0, "a name became an element"
    assert page.browser.errors == [], page.browser.errors
    strangers = [url for url in page.browser.requests if not url.startswith(("file:", "blob:"))]
    assert strangers == [], strangers


def browse(chromium: str, tpsim: pathlib.Path, plan: pathlib.Path, page: pathlib.Path, visit,
           prepared: str = ""):
    """Returns the result of `visit` on the plan's page, before which `prepared` runs."""
    subprocess.run([tpsim, "report", plan, "--html", page], check=True, stdout=subprocess.DEVNULL)
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
        browser = Browser(chromium, page.resolve(), profile, prepared=prepared)
        try:
            return visit(Page(browser))
        finally:
            browser.close()


def saved_view(tpsim: pathlib.Path, plan: pathlib.Path, folder: pathlib.Path) -> pathlib.Path:
    """Saves a view of the plan with another micro-batch and a dark theme; returns its path."""
    view, script = folder / "view.json", folder / "view.txt"
    script.write_text(f"theme dark\nclick Save\nclick \"file name\"\npress Ctrl+A\ntype {view}\n"
                      "click \"Save view\"\nwait 2\n")
    subprocess.run([tpsim, "gui", plan, "--script", script, "--screenshot", folder / "view.png"],
                   check=True, stdout=subprocess.DEVNULL)
    return view


def show_view(page: Page) -> None:
    shown = page.wait_until("the view is shown", is_ready)
    assert shown["theme"] == "dark" and shown["model"] == "bloom-7b1", shown


def main() -> int:
    tpsim, folder = map(pathlib.Path, sys.argv[1:])
    chromium = shutil.which("chromium") or shutil.which("chromium-browser")
    if chromium is None:
        print("skipped: no Chromium here (apt-get install chromium)")
        return 77
    if not (tpsim.parent / "tpsim-page.html").exists():
        print("skipped: built without pages for browsers (TPSIM_WEB)")
        return 77
    folder.mkdir(parents=True, exist_ok=True)
    plan, page = folder / "plan.json", folder / "report.html"
    subprocess.run([tpsim, "plan", "--model", "bloom-7b1", "--gpus", "16", "--global-batch", "64",
                    "--save", plan], check=True, stdout=subprocess.DEVNULL)
    started = time.time()
    said = browse(chromium, tpsim, plan, page, lambda shown: use(shown, folder))
    size = page.stat().st_size
    assert size < MOST_BYTES, f"the page has {size} bytes"
    assert "<noscript>This page needs JavaScript" in page.read_text()
    browse(chromium, tpsim, plan, page, print_out)
    browse(chromium, tpsim, plan, page, explain_without_webgl, NO_WEBGL)
    view = saved_view(tpsim, plan, folder)
    browse(chromium, tpsim, view, folder / "view.html", show_view)
    browse(chromium, tpsim, hostile_plan(tpsim, folder), folder / "hostile.html", withstand)
    print(f"{size} bytes; {said}; {time.time() - started:.0f} s in the browser")
    return 0


if __name__ == "__main__":
    sys.exit(main())
