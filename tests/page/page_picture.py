#!/usr/bin/env python3
"""Renders a page of `tpsim report` in a browser: page_picture.py report.html out.png"""
import pathlib
import shutil
import sys
import tempfile

from browser import Browser
from web_test import Page, is_ready


def main() -> int:
    page, out = map(pathlib.Path, sys.argv[1:])
    chromium = shutil.which("chromium") or shutil.which("chromium-browser")
    if chromium is None:
        print("no Chromium here (apt-get install chromium)", file=sys.stderr)
        return 4
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
        browser = Browser(chromium, page.resolve(), profile)
        try:
            tab = Page(browser)
            tab.wait_until("the plan is shown", is_ready)
            tab.click("Critical path")
            x, y = tab.place("Plan", 0.5, 0.85)
            tab.mouse("mouseMoved", x, y)
            out.write_bytes(browser.picture())
        finally:
            browser.close()
    return 0


if __name__ == "__main__":
    sys.exit(main())
