"""A page in Debian's Chromium without a window, driven over a pipe by the DevTools protocol."""
import base64
import fcntl
import json
import os
import pathlib
import shutil
import subprocess
import tempfile

OPTIONS = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage",
           "--no-first-run", "--disable-background-networking", "--disable-component-update",
           "--disable-extensions", "--disable-sync", "--hide-scrollbars",
           "--remote-debugging-pipe"]
TO_BROWSER, FROM_BROWSER = 3, 4  # file descriptors, by the browser's convention


def find_chromium():
    for name in ("chromium", "chromium-browser", "google-chrome"):
        if shutil.which(name):
            return shutil.which(name)
    raise FileNotFoundError("no Chromium; to do: apt-get install chromium")


class Browser:
    """Its profile is a folder that goes when it is closed."""

    def __init__(self):
        self.profile = tempfile.mkdtemp(prefix="ridge-browser-")
        theirs_in, ours_out = self._pipe()
        ours_in, theirs_out = self._pipe()

        def take_descriptors():
            os.dup2(theirs_in, TO_BROWSER)
            os.dup2(theirs_out, FROM_BROWSER)

        self.process = subprocess.Popen(
            [find_chromium(), f"--user-data-dir={self.profile}", *OPTIONS],
            env={**os.environ, "HOME": self.profile}, preexec_fn=take_descriptors,
            pass_fds=(TO_BROWSER, FROM_BROWSER), stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL)
        os.close(theirs_in)
        os.close(theirs_out)
        self.out, self.into = os.fdopen(ours_out, "wb"), os.fdopen(ours_in, "rb")
        self.calls, self.unread, self.events = 0, b"", []

    @staticmethod
    def _pipe():
        """Both ends above the numbers that the browser expects."""
        ends = []
        for end in os.pipe():
            ends.append(fcntl.fcntl(end, fcntl.F_DUPFD_CLOEXEC, 10))
            os.close(end)
        return ends

    def close(self):
        if self.process.poll() is None:
            self.call("Browser.close")
            self.process.wait(timeout=20)
        self.out.close()
        self.into.close()
        shutil.rmtree(self.profile, ignore_errors=True)

    def _read(self):
        while b"\0" not in self.unread:
            data = self.into.read1(1 << 16)
            if not data:
                raise EOFError(f"{find_chromium()} ended")
            self.unread += data
        message, self.unread = self.unread.split(b"\0", 1)
        return json.loads(message)

    def call(self, method, session=None, **params):
        """The result; events that come before it are kept."""
        self.calls += 1
        message = {"id": self.calls, "method": method, "params": params}
        if session:
            message["sessionId"] = session
        self.out.write(json.dumps(message).encode() + b"\0")
        self.out.flush()
        while True:
            answer = self._read()
            if answer.get("id") != self.calls:
                self.events.append(answer)
            elif "error" in answer:
                raise RuntimeError(f"{method}: {answer['error']['message']}")
            else:
                return answer["result"]

    def wait_for(self, event, session):
        """Takes the event's place among the kept ones, too."""
        while not any(e.get("method") == event and e.get("sessionId") == session
                      for e in self.events):
            self.events.append(self._read())

    def open(self, path, width=1200, height=900, media=()):
        return Tab(self, path, width, height, media)


class Tab:
    """A loaded file.  `media`: features such as ("prefers-color-scheme", "dark")."""

    def __init__(self, browser, path, width, height, media):
        self.browser = browser
        target = browser.call("Target.createTarget", url="about:blank")["targetId"]
        self.session = browser.call("Target.attachToTarget", targetId=target,
                                    flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network", "Accessibility"):
            self.call(f"{domain}.enable")
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height,
                  deviceScaleFactor=1, mobile=False)
        self.call("Emulation.setEmulatedMedia",
                  features=[{"name": name, "value": value} for name, value in media])
        self.url = pathlib.Path(path).resolve().as_uri()
        self.call("Page.navigate", url=self.url)
        browser.wait_for("Page.loadEventFired", self.session)

    def call(self, method, **params):
        return self.browser.call(method, self.session, **params)

    def run(self, script):
        """The value of an expression of JavaScript."""
        answer = self.call("Runtime.evaluate", expression=script, returnByValue=True)
        if "exceptionDetails" in answer:
            raise RuntimeError(answer["exceptionDetails"]["exception"]["description"])
        return answer["result"].get("value")

    def press(self, key, **more):
        """A key with its character, where it has one: press("Enter", text="\\r")."""
        self.call("Input.dispatchKeyEvent", type="keyDown", key=key, code=key, **more)
        self.call("Input.dispatchKeyEvent", type="keyUp", key=key, code=key)

    def events(self, name):
        """What has happened in this tab so far."""
        self.run("0")  # events of what was done before have come with its answer
        return [e["params"] for e in self.browser.events
                if e.get("sessionId") == self.session and e["method"] == name]

    def screenshot(self, whole=False):
        """Of what is seen, or of the whole page, as PNG."""
        return base64.b64decode(self.call("Page.captureScreenshot", format="png",
                                          captureBeyondViewport=whole)["data"])

    def pdf(self):
        return base64.b64decode(self.call("Page.printToPDF", printBackground=True)["data"])
