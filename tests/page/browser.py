"""One tab of a headless Chromium, driven over its DevTools protocol.

Implements the protocol's WebSocket with Python's standard library only.
"""
import base64
import json
import os
import pathlib
import socket
import struct
import subprocess
import time
import urllib.request

PATIENCE = 90  # seconds; without a GPU the CPU renders


class BrowserError(Exception):
    """An error of the browser, or a timeout."""


class Browser:
    def __init__(self, program: str, page: pathlib.Path | None, profile: str, size=(1280, 800),
                 prepared: str = ""):
        """Opens the page, if there is one. `prepared` is a script that runs before each page's."""
        self.errors = []  # of the page's scripts
        self.requests = []  # URLs that the page loaded
        environment = {k: v for k, v in os.environ.items() if k != "DISPLAY"}
        self.process = subprocess.Popen(
            [program, "--headless", "--no-sandbox", "--disable-quic", "--no-first-run",
             "--disable-background-networking", "--disable-component-update", "--disable-sync",
             "--disable-dev-shm-usage",  # /dev/shm is small in containers
             "--use-angle=swiftshader", "--enable-unsafe-swiftshader", "--hide-scrollbars",
             f"--window-size={size[0]},{size[1]}", "--remote-debugging-port=0",
             f"--user-data-dir={profile}", "about:blank"],
            env=environment, stderr=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
        try:
            self._connect(profile, size)
            if prepared:
                self.call("Page.addScriptToEvaluateOnNewDocument", source=prepared)
            if page is not None:
                self.open(page)
        except BaseException:
            self.process.kill()
            self.process.wait(timeout=PATIENCE)
            raise

    def open(self, page: pathlib.Path) -> None:
        self.call("Page.navigate", url=page.resolve().as_uri())

    def _connect(self, profile: str, size) -> None:
        port = self._port(pathlib.Path(profile) / "DevToolsActivePort")
        tabs = json.load(urllib.request.urlopen(f"http://127.0.0.1:{port}/json", timeout=PATIENCE))
        address = next(t["webSocketDebuggerUrl"] for t in tabs if t["type"] == "page")
        self.socket = socket.create_connection(("127.0.0.1", port), timeout=PATIENCE)
        path = address.split(f":{port}", 1)[1]
        self.socket.sendall((f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\n"
                             "Upgrade: websocket\r\nConnection: Upgrade\r\n"
                             f"Sec-WebSocket-Key: {base64.b64encode(os.urandom(16)).decode()}\r\n"
                             "Sec-WebSocket-Version: 13\r\n\r\n").encode())
        answer = b""
        while b"\r\n\r\n" not in answer:
            answer += self.socket.recv(1)
        self.last = 0
        for domain in ("Runtime", "Network", "Page"):
            self.call(f"{domain}.enable")
        self.call("Emulation.setDeviceMetricsOverride", width=size[0], height=size[1],
                  deviceScaleFactor=1, mobile=False)

    def _port(self, file: pathlib.Path) -> int:
        end = time.time() + PATIENCE
        while time.time() < end:
            if file.exists() and file.read_text().strip():
                return int(file.read_text().split()[0])
            if self.process.poll() is not None:
                raise BrowserError(f"Chromium ended with {self.process.returncode}")
            time.sleep(0.1)
        raise BrowserError("Chromium did not start")

    def _bytes(self, count: int) -> bytes:
        data = b""
        while len(data) < count:
            part = self.socket.recv(count - len(data))
            if not part:
                raise BrowserError("Chromium went away")
            data += part
        return data

    def _message(self) -> dict:
        text = b""
        while True:
            first, second = self._bytes(2)
            length = second & 127
            if length == 126:
                length = struct.unpack(">H", self._bytes(2))[0]
            elif length == 127:
                length = struct.unpack(">Q", self._bytes(8))[0]
            text += self._bytes(length)
            if first & 128:
                return json.loads(text)

    def _note(self, event: dict) -> None:
        if event.get("method") == "Runtime.exceptionThrown":
            details = event["params"]["exceptionDetails"]
            self.errors.append(details.get("exception", {}).get("description", details["text"]))
        elif event.get("method") == "Network.requestWillBeSent":
            self.requests.append(event["params"]["request"]["url"])

    def call(self, method: str, **params) -> dict:
        self.last += 1
        body = json.dumps({"id": self.last, "method": method, "params": params}).encode()
        head = struct.pack(">BBQ", 0x81, 0x80 | 127, len(body)) + b"\0\0\0\0"  # masked with zeros
        self.socket.sendall(head + body)
        while True:
            message = self._message()
            if message.get("id") != self.last:
                self._note(message)
                continue
            if "error" in message:
                raise BrowserError(f"{method}: {message['error']}")
            return message["result"]

    def value(self, expression: str):
        """Evaluates a JavaScript expression and returns its value."""
        result = self.call("Runtime.evaluate", expression=expression, returnByValue=True)
        return result["result"].get("value")

    def mouse(self, kind: str, x: float, y: float, down: bool = False) -> None:
        self.call("Input.dispatchMouseEvent", type=kind, x=x, y=y,
                  button="none" if kind == "mouseMoved" and not down else "left",
                  buttons=1 if down else 0, clickCount=0 if kind == "mouseMoved" else 1)

    def wheel(self, x: float, y: float, pixels: float, sideways: float = 0) -> None:
        self.call("Input.dispatchMouseEvent", type="mouseWheel", x=x, y=y, deltaX=sideways,
                  deltaY=pixels)

    def touch(self, kind: str, *fingers: tuple) -> None:
        points = [{"x": x, "y": y, "id": i} for i, (x, y) in enumerate(fingers)]
        self.call("Input.dispatchTouchEvent", type=kind, touchPoints=points)

    def key(self, name: str, text: str = "") -> None:
        self.call("Input.dispatchKeyEvent", type="keyDown", key=name, text=text)
        self.call("Input.dispatchKeyEvent", type="keyUp", key=name)

    def picture(self) -> bytes:
        """Returns the tab's content as PNG."""
        return base64.b64decode(self.call("Page.captureScreenshot")["data"])

    def close(self) -> None:
        self.socket.close()
        self.process.terminate()
        self.process.wait(timeout=PATIENCE)
