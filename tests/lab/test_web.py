"""The collector's web page: who gets in, who sees what, and that a job is seen while it runs."""

import http.client
import json
import os
import re
import socket
import sys
import time
import unittest
import urllib.parse
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "page"))

import browser
from collector import Collector
from lab_procs import free_ports
from telemetry import ON, TelemetryCase, U1, U2, build_dir, wait_for

SCRIPT = """#!/bin/bash
sphase begin early
sleep 1
sphase end
sphase begin late
sleep 60
"""


class Web(TelemetryCase):
    lab_name = "httpweb"

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.port = free_ports(1)[0]
        cls.collector = Collector(cls.lab, options=("--http", cls.port))
        cls.collector.start()
        cls.addClassCleanup(cls.collector.stop_all)
        wait_for(lambda: "web page at" in cls.collector.log("serve"), 20, "the web page")
        cls.cookies = {user: cls.log_in(user) for user in (U1, U2, None)}
        cls.job = cls.lab.sbatch(U1, [ON, "--job-name=<b>live"], input=SCRIPT)
        cls.lab.wait_job(cls.job, {"RUNNING"})
        cls.begun = time.monotonic()
        cls.addClassCleanup(cls.lab.run, ["scancel", str(cls.job)])

    @classmethod
    def link(cls, user):
        """What `sphase web` prints."""
        done = cls.lab.run_as(user, [build_dir() / "cli" / "sphase", "web", "--port", cls.port],
                              check=True)
        return done.stdout.strip()

    @classmethod
    def request(cls, path, *, cookie=None, method="GET", headers=()):
        """(response, text). The link may be given whole."""
        connection = http.client.HTTPConnection("127.0.0.1", cls.port, timeout=20)
        fields = dict(headers)
        if cookie:
            fields["Cookie"] = cookie
        try:
            connection.request(method, path.removeprefix(f"http://127.0.0.1:{cls.port}"),
                               headers=fields)
            answer = connection.getresponse()
            return answer, answer.read().decode()
        finally:
            connection.close()

    @classmethod
    def log_in(cls, user):
        answer, text = cls.request(cls.link(user))
        if answer.status != 303:
            raise AssertionError(f"{user} cannot log in: {answer.status} {text}")
        return answer.headers["Set-Cookie"].split(";")[0]

    def get_json(self, path, user):
        answer, text = self.request(path, cookie=self.cookies[user])
        return json.loads(text) if answer.status == 200 else None

    def wait_early(self):
        """Until the first phase is in the data of the live page."""
        def early():
            data = self.get_json(f"/api/job/{self.job}/page", U1)
            return data and "early" in json.dumps(data) and data

        return wait_for(early, 15, "the phase to be in the page", 0.1)

    # --- what is seen -------------------------------------------------------------------------

    def test_1_a_phase_is_in_the_page_within_five_seconds_while_its_job_runs(self):
        data = self.wait_early()
        took = time.monotonic() - self.begun
        print(f"in the page {took:.2f} s after the job began, {took - 1:.2f} s after the phase ended")
        self.assertLess(took, 1 + 5)
        self.assertTrue(data["starts"][0]["running"])

    def test_the_job_is_in_its_owners_list_and_in_that_of_operators(self):
        def listed(user):
            return [job["id"] for job in self.get_json("/api/jobs?q=", user)["jobs"]]

        self.wait_early()
        self.assertIn(str(self.job), listed(U1))
        self.assertIn(str(self.job), listed(None))
        self.assertEqual([], listed(U2))
        self.assertEqual([], self.get_json("/api/jobs?q=nothing-of-that-name", U1)["jobs"])

    def test_another_users_job_is_as_unknown_as_one_that_is_not_there(self):
        self.wait_early()
        for form in ("/job/{}", "/api/job/{}", "/api/job/{}/page"):
            other, other_text = self.request(form.format(self.job), cookie=self.cookies[U2])
            none, none_text = self.request(form.format(999999), cookie=self.cookies[U2])
            self.assertEqual((404, 404, other_text), (other.status, none.status, none_text), form)
            self.assertEqual(200, self.request(form.format(self.job), cookie=self.cookies[U1])[0].status)
            self.assertEqual(200, self.request(form.format(self.job), cookie=self.cookies[None])[0].status)

    # --- who gets in --------------------------------------------------------------------------

    def test_a_link_logs_in_once(self):
        link = self.link(U1)
        self.assertEqual(303, self.request(link)[0].status)
        # MUNGE does not read what stands behind a credential: it is the same one all the same.
        for again in (link, link + "x"):
            answer, text = self.request(again)
            self.assertEqual((403, None), (answer.status, answer.headers["Set-Cookie"]))
            self.assertIn("sphase web", text)

    def test_a_link_that_was_changed_does_not_log_in(self):
        place, _, quoted = self.link(U1).partition("token=")
        token = urllib.parse.unquote(quoted)
        flipped = token[:100] + ("a" if token[100] != "a" else "b") + token[101:]
        for wrong in (token[:-20], flipped, "MUNGE:x:"):
            answer, _ = self.request(f"{place}token={urllib.parse.quote(wrong, safe='')}")
            self.assertEqual((403, None), (answer.status, answer.headers["Set-Cookie"]), wrong)

    def test_without_a_cookie_there_is_nothing(self):
        for path in ("/", f"/job/{self.job}", "/api/jobs", f"/api/job/{self.job}/page"):
            for cookie in (None, "sphase=", "sphase=" + "0" * 64):
                answer, text = self.request(path, cookie=cookie)
                self.assertEqual(401, answer.status, path)
                self.assertIn("sphase web", text)

    def test_a_name_that_was_made_to_lead_here_is_not_served(self):
        answer, _ = self.request("/", cookie=self.cookies[U1], headers={"Host": "evil.example"})
        self.assertEqual(421, answer.status)

    # --- the protocol -------------------------------------------------------------------------

    def raw(self, data):
        """What comes back until the other end closes."""
        with socket.create_connection(("127.0.0.1", self.port), timeout=20) as wire:
            wire.sendall(data)
            wire.shutdown(socket.SHUT_WR)
            got = b""
            while part := wire.recv(65536):
                got += part
            return got

    def test_garbage_is_refused_and_nothing_breaks(self):
        for data, status in ((b"\0\xff\x16\x03\x01 garbage\r\n\r\n", b"400"),
                             (b"GET / HTTP/9.9\r\n\r\n", b"400"),
                             (b"POST / HTTP/1.1\r\nHost: localhost\r\n\r\n", b"405"),
                             (b"GET / HTTP/1.1\r\n\r\n", b"421"),
                             (b"GET / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5\r\n\r\nhello", b"400"),
                             (b"GET /%zz HTTP/1.1\r\nHost: localhost\r\n\r\n", b"400"),
                             (b"GET /" + b"a" * 20000 + b" HTTP/1.1\r\nHost: localhost\r\n\r\n", b"431"),
                             (b"GET / HTTP/1.1\r\nHost: localhost\r\nX: " + b"a" * 9000 + b"\r\n\r\n", b"431")):
            with self.subTest(data=data[:60]):
                self.assertEqual(b"HTTP/1.1 " + status, self.raw(data)[:12])
        self.assertEqual(b"", self.raw(b""))
        self.assertEqual(b"", self.raw(b"GET / HT"))
        self.assertEqual(200, self.request("/", cookie=self.cookies[U1])[0].status)

    def test_head_has_the_fields_and_no_body(self):
        whole, text = self.request("/", cookie=self.cookies[U1])
        head, nothing = self.request("/", cookie=self.cookies[U1], method="HEAD")
        self.assertEqual((200, ""), (head.status, nothing))
        self.assertEqual(str(len(text.encode())), head.headers["Content-Length"])
        self.assertEqual(whole.headers["Content-Security-Policy"], head.headers["Content-Security-Policy"])

    def test_a_connection_is_kept(self):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=20)
        wires = set()
        for _ in range(3):
            connection.request("GET", "/api/jobs", headers={"Cookie": self.cookies[U1]})
            answer = connection.getresponse()
            self.assertEqual(200, answer.status)
            self.assertIn("jobs", json.loads(answer.read()))
            wires.add(connection.sock)
        connection.close()
        self.assertEqual(1, len(wires - {None}), "it was closed in between")

    def test_no_more_than_256_connections_are_held(self):
        wires = [socket.create_connection(("127.0.0.1", self.port), timeout=5) for _ in range(260)]
        try:
            wires[-1].settimeout(5)
            self.assertEqual(b"", wires[-1].recv(1))
        finally:
            for wire in wires:
                wire.close()
        wait_for(lambda: self.status_of_root() == 200, 10, "a connection to be taken again")

    def status_of_root(self):
        try:
            return self.request("/", cookie=self.cookies[U1])[0].status
        except (OSError, http.client.HTTPException):
            return None

    def test_every_answer_forbids_what_a_browser_might_do_with_it(self):
        for path in ("/", f"/job/{self.job}", "/api/jobs", "/login", "/no/such"):
            answer, _ = self.request(path, cookie=self.cookies[U1])
            for name, value in (("X-Content-Type-Options", "nosniff"), ("Referrer-Policy", "no-referrer"),
                                ("Cache-Control", "no-store"), ("X-Frame-Options", "DENY")):
                self.assertEqual(value, answer.headers[name], path)
            self.assertIn("default-src 'none'", answer.headers["Content-Security-Policy"])
            self.assertNotIn("unsafe", answer.headers["Content-Security-Policy"])

    def test_the_counts_are_openmetrics(self):
        self.wait_early()
        answer, text = self.request("/metrics")
        self.assertEqual("application/openmetrics-text; version=1.0.0; charset=utf-8",
                         answer.headers["Content-Type"])
        lines = text.split("\n")
        self.assertEqual(["# EOF", ""], lines[-2:])
        kinds, values = {}, {}
        for line in lines[:-2]:
            if match := re.fullmatch(r"# TYPE (\w+) (gauge|counter)", line):
                kinds[match[1]] = match[2]
            elif not line.startswith("#"):
                name, value = line.split(" ")
                family = name.removesuffix("_total")
                self.assertEqual("counter" if name.endswith("_total") else "gauge", kinds[family])
                values[family] = int(value)
        self.assertEqual(1, values["sphase_nodes"])
        self.assertEqual(0, values["sphase_nodes_silent"])
        self.assertGreaterEqual(values["sphase_jobs"], 1)
        self.assertGreaterEqual(values["sphase_web_sessions"], 3)
        self.assertGreater(values["sphase_database_bytes"], 0)

    # --- in a browser -------------------------------------------------------------------------

    def shoot(self, driver, name):
        """A picture, where $SPHASE_SHOTS names a folder for them."""
        if folder := os.environ.get("SPHASE_SHOTS"):
            driver.screenshot(os.path.join(folder, f"{name}.png"))

    @unittest.skipIf(browser.missing(), f"skipped: {browser.missing()}")
    def test_the_page_of_a_running_job_grows_without_being_loaded_again(self):
        self.wait_early()
        driver = browser.Browser()
        self.addCleanup(driver.close)
        driver.visit(self.link(U1))
        driver.wait("document.querySelectorAll('#jobs tr').length > 0")
        self.shoot(driver, "jobs")
        self.assertIn("<b>live", driver.value("document.getElementById('jobs').textContent"))
        driver.visit(f"http://127.0.0.1:{self.port}/job/{self.job}")
        driver.wait("globalThis.sphase && sphase.view.start")
        driver.run("window.same_page = sphase.view.start.length")
        driver.wait("sphase.view.start.length > window.same_page + 2e6", 15)
        self.assertEqual("live", driver.value("document.getElementById('live').textContent"))
        self.shoot(driver, "live")
        self.assertEqual([], [entry["message"] for entry in driver.log() if "favicon" not in entry["message"]])


if __name__ == "__main__":
    unittest.main()
