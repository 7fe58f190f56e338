"""A headless Chromium, driven over the WebDriver protocol (w3.org/TR/webdriver2) with urllib alone."""

import base64
import json
import shutil
import subprocess
import tempfile
import time
import urllib.error
import urllib.request

KEYS = {"Escape": "\ue00c", "Enter": "\ue007", "Tab": "\ue004", "ArrowLeft": "\ue012", "ArrowUp": "\ue013",
        "ArrowRight": "\ue014", "ArrowDown": "\ue015", "Home": "\ue011"}

# Never by way of a proxy.
LOCAL = urllib.request.build_opener(urllib.request.ProxyHandler({}))


def missing():
    """Why there is no browser here; None: there is one."""
    for program in ("chromium", "chromedriver"):
        if shutil.which(program) is None:
            return f"{program} is not installed"
    return None


class Browser:
    def __init__(self, width=1400, height=900, dark=False):
        self.profile = tempfile.mkdtemp(prefix="sphase-browser-")
        self.driver = subprocess.Popen(["chromedriver", "--port=0"], stdout=subprocess.PIPE,
                                       stderr=subprocess.DEVNULL, text=True)
        self.url = f"http://127.0.0.1:{self._port()}"
        arguments = ["--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--hide-scrollbars=0",
                     f"--user-data-dir={self.profile}", f"--window-size={width},{height}", "--force-device-scale-factor=1"]
        if dark:
            arguments.append("--blink-settings=preferredColorScheme=0")
        wanted = {"browserName": "chrome", "goog:chromeOptions": {"args": arguments},
                  "goog:loggingPrefs": {"browser": "ALL"}}
        made = self._call("POST", "/session", {"capabilities": {"alwaysMatch": wanted}}, session=False)
        self.session = made["sessionId"]

    def _port(self):
        """chromedriver says which port it took."""
        for line in self.driver.stdout:
            if "successfully on port" in line:
                return int(line.rsplit("on port", 1)[1].strip(" .\n"))
        raise RuntimeError("chromedriver did not start")

    def _call(self, method, path, body=None, session=True):
        url = self.url + (f"/session/{self.session}" if session else "") + path
        request = urllib.request.Request(url, method=method, headers={"Content-Type": "application/json"},
                                         data=None if body is None else json.dumps(body).encode())
        try:
            with LOCAL.open(request, timeout=60) as answer:
                return json.load(answer)["value"]
        except urllib.error.HTTPError as error:
            raise RuntimeError(json.load(error)["value"]["message"]) from None

    def visit(self, url):
        self._call("POST", "/url", {"url": url})

    def open(self, path):
        self.visit(f"file://{path}")
        self.wait("globalThis.sphase && sphase.view.start")
        self.settle()

    def run(self, script, *arguments):
        return self._call("POST", "/execute/sync", {"script": script, "args": list(arguments)})

    def value(self, expression):
        return self.run(f"return {expression}")

    def wait(self, expression, limit_s=20):
        end = time.monotonic() + limit_s
        while not self.value(f"!!({expression})"):
            if time.monotonic() > end:
                raise AssertionError(f"after {limit_s} s still not: {expression}")
            time.sleep(0.05)

    def settle(self):
        """Until what was changed is drawn."""
        self._call("POST", "/execute/async", {
            "script": "const done = arguments[0]; requestAnimationFrame(() => requestAnimationFrame(() => done()))",
            "args": []})

    def keys(self, *keys):
        actions = []
        for key in keys:
            value = KEYS.get(key, key)
            actions += [{"type": "keyDown", "value": value}, {"type": "keyUp", "value": value}]
        self._call("POST", "/actions", {"actions": [{"type": "key", "id": "keyboard", "actions": actions}]})
        self.settle()

    def mouse(self, *steps):
        """Steps: (x, y) moves in the window, "down", "up"."""
        actions = []
        for step in steps:
            if step in ("down", "up"):
                actions.append({"type": "pointerDown" if step == "down" else "pointerUp", "button": 0})
            else:
                actions.append({"type": "pointerMove", "x": round(step[0]), "y": round(step[1]), "duration": 30})
        self._call("POST", "/actions", {"actions": [{"type": "pointer", "id": "mouse", "actions": actions,
                                                     "parameters": {"pointerType": "mouse"}}]})
        self.settle()

    def wheel(self, x, y, delta_y, ctrl=False):
        pause = [{"type": "pause"}]
        key = [{"type": "keyDown", "value": "\ue009"}] + pause + [{"type": "keyUp", "value": "\ue009"}]
        turn = {"type": "scroll", "x": round(x), "y": round(y), "deltaX": 0, "deltaY": delta_y, "duration": 0}
        sources = [{"type": "wheel", "id": "wheel", "actions": pause + [turn] + pause}]
        if ctrl:
            sources.append({"type": "key", "id": "keyboard", "actions": key})
        self._call("POST", "/actions", {"actions": sources})
        self.settle()

    def box(self, selector):
        return self.run("const r = document.querySelector(arguments[0]).getBoundingClientRect();"
                        "return {x: r.x, y: r.y, width: r.width, height: r.height}", selector)

    def log(self):
        return self._call("POST", "/se/log", {"type": "browser"})

    def screenshot(self, path, whole=True):
        if whole:
            width = self.value("innerWidth")
            height = self.value("document.documentElement.scrollHeight")
            self._call("POST", "/goog/cdp/execute", {"cmd": "Emulation.setDeviceMetricsOverride", "params": {
                "width": width, "height": min(height, 4000), "deviceScaleFactor": 1, "mobile": False}})
            self.settle()
        with open(path, "wb") as file:
            file.write(base64.b64decode(self._call("GET", "/screenshot")))
        if whole:
            self._call("POST", "/goog/cdp/execute", {"cmd": "Emulation.clearDeviceMetricsOverride", "params": {}})
            self.settle()

    def print_pdf(self):
        return base64.b64decode(self._call("POST", "/print", {"orientation": "landscape"}))

    def close(self):
        try:
            self._call("DELETE", "")
        finally:
            self.driver.terminate()
            self.driver.wait(10)
            shutil.rmtree(self.profile, ignore_errors=True)
