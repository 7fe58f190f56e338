"""Whoever reaches the collector's port, or answers in its place, and is not one of us."""

import contextlib
import os
import re
import socket
import sqlite3
import threading
import time
import unittest

import wire_client as wire
from collector import Collector
from telemetry import MIB, ON, TelemetryCase, U1, build_dir, wait_for
from wire_client import Client, Closed

# An advice table without entries: each of its 256 lists is empty and begins behind them (cdb).
EMPTY_TABLE = (2048).to_bytes(4, "little").ljust(8, b"\0") * 256


class Strangers(TelemetryCase):
    lab_name = "wire"

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.lab.run_as(U1, ["srun", ON, "true"])  # before a run there is nothing to ship
        wait_for(cls.lab.node_db(cls.lab.nodes[0]).is_file, 20, "something to ship")
        cls.collector = Collector(cls.lab)
        cls.collector.start()
        cls.addClassCleanup(cls.collector.stop_all)
        wait_for(lambda: "shipping to" in cls.collector.log(f"ship-{cls.lab.nodes[0]}"), 20,
                 "the node to ship")

    def setUp(self):
        self.before = self.rows()

    def tearDown(self):
        self.assertEqual(self.rows(), self.before, "something was stored")
        self.assertIsNone(self.collector.process("serve").poll(), "the collector is gone")
        self.assertLess(self.peak_bytes(), 200 * MIB)
        with Client(self.collector.port) as client:
            self.assertEqual(client.hello(self.lab)[0], wire.WELCOME, "an honest node is refused")

    def rows(self):
        """How many rows of each table are of anybody but the lab's own node."""
        node = self.lab.nodes[0]
        with contextlib.closing(sqlite3.connect(self.collector.database)) as db:
            return {table: db.execute(f"SELECT count(*) FROM {table} WHERE node <> ?",
                                      [node]).fetchone()[0]
                    for table in ("run", "notice", "shipper", "node_clock")}

    def peak_bytes(self):
        """The most memory that the collector ever had."""
        with open(f"/proc/{self.collector.process('serve').pid}/status", encoding="ascii") as file:
            return int(re.search(r"VmHWM:\s+(\d+) kB", file.read())[1]) * 1024

    def assertRefused(self, client, why):
        """The next frame says so, and is the last one."""
        kind, body = client.receive()
        self.assertEqual(kind, wire.REFUSED, body)
        self.assertRegex(body.decode(), why)
        self.assertRaises(Closed, client.receive)

    def assertEnded(self, client):
        """Closed, with a word on it or without: unread bytes may have swallowed that."""
        with contextlib.suppress(Closed, ConnectionError):
            kind, _ = client.receive()
            self.assertEqual(kind, wire.REFUSED)
            client.receive()
            self.fail("it goes on")

    @contextlib.contextmanager
    def known(self):
        """A connection of root's, who may ship."""
        with Client(self.collector.port) as client:
            self.assertEqual(client.hello(self.lab)[0], wire.WELCOME)
            yield client

    def refuse_hello(self, cred, why):
        with Client(self.collector.port) as client:
            client.nonce()
            client.send(wire.HELLO, cred)
            self.assertRefused(client, why)

    # --- who are you? -----------------------------------------------------------------------------

    def test_another_users_credential_is_no_good(self):
        with Client(self.collector.port) as client:
            kind, body = client.hello(self.lab, user=U1)
            self.assertEqual(kind, wire.REFUSED)
            self.assertRegex(body.decode(), r"^user \d+ may not ship: see TrustedUsers")

    def test_no_credential_and_what_is_none(self):
        for cred in (b"", b"\0", b"MUNGE:", b"MUNGE:" + b"A" * 5000 + b":", os.urandom(500)):
            self.refuse_hello(cred, "^MUNGE: ")

    def test_a_credential_around_nothing_or_anything_else(self):
        for payload in (b"", b"\0", b"x" * 3000, os.urandom(60)):
            self.refuse_hello(wire.credential(self.lab, payload),
                              "the credential is not of this connection")

    def test_a_credential_of_another_connection(self):
        with Client(self.collector.port) as client:
            said = wire.Hello(client.nonce(), os.urandom(16))
        self.refuse_hello(wire.credential(self.lab, said.body()),
                          "the credential is not of this connection")

    def test_a_recorded_hello_is_good_once(self):
        with Client(self.collector.port) as client:
            said = wire.credential(self.lab, wire.Hello(client.nonce(), os.urandom(16)).body())
            client.send(wire.HELLO, said)
            self.assertEqual(client.receive()[0], wire.WELCOME)
        self.refuse_hello(said, "^MUNGE: Replayed credential")

    def test_a_credential_that_is_too_old(self):
        with Client(self.collector.port) as client:
            said = wire.Hello(client.nonce(), os.urandom(16)).body()
            cred = wire.credential(self.lab, said, None, "--ttl=1")
            made = time.time()
            wait_for(lambda: time.time() > made + 2.5, 5, "the credential to be too old")
            client.send(wire.HELLO, cred)
            self.assertRefused(client, "^MUNGE: Expired credential")

    def test_the_collector_signs_nothing_but_a_nonce(self):
        for size in (0, 15, 17, 1000):
            with Client(self.collector.port) as client:
                said = wire.Hello(client.nonce(), b"x" * size)
                client.send(wire.HELLO, wire.credential(self.lab, said.body()))
                self.assertRefused(client, "the credential is not of this connection")

    # --- frames -----------------------------------------------------------------------------------

    def test_garbage_before_a_hello(self):
        for data in (b"GET / HTTP/1.1\r\nHost: x\r\n\r\n", b"\0" * 100, b"\xff" * 100,
                     os.urandom(4096), b"\xff\xff\xff\xff\x02", wire.frame(99),
                     wire.frame(wire.HELLO, b"x" * 9000)):
            with Client(self.collector.port) as client:
                client.nonce()
                client.sock.sendall(data)
                self.assertEnded(client)

    def test_garbage_after_a_hello(self):
        for data in (b"\0" * 100, b"\xff" * 100, b"\xff\xff\xff\xff\x08", wire.frame(99),
                     b"\x01\x80\x00\x01\x08"):
            with self.known() as client:
                client.sock.sendall(data)
                self.assertEnded(client)

    def test_frames_before_a_hello(self):
        for kind in (wire.CLOCK, wire.ASK, wire.SHIP, wire.ALIVE):
            with Client(self.collector.port) as client:
                client.nonce()
                client.send(kind, b"\1\0")
                self.assertRefused(client, "a Hello of a node comes first")

    def test_a_second_hello(self):
        with self.known() as client:
            client.send(wire.HELLO, b"x")
            self.assertRefused(client, "a second Hello")

    def test_frames_that_only_a_collector_sends(self):
        for kind in (wire.CHALLENGE, wire.WELCOME, wire.REFUSED, wire.SEEN, wire.STORED,
                     wire.ADVICE):
            with self.known() as client:
                client.send(kind, b"x")
                self.assertRefused(client, "a frame that only a collector sends")

    def test_questions_that_cannot_be_read(self):
        for body in (wire.ask(257), wire.varint(1 << 63), b"", wire.ask(3)[:-1], wire.ask(2) + b"x"):
            with self.known() as client:
                client.send(wire.ASK, body)
                self.assertRefused(client, "a question that cannot be read")
        with self.known() as client:
            client.send(wire.ASK, wire.ask(256))
            self.assertEqual(client.receive()[0], wire.SEEN)

    def test_shipments_of_garbage(self):
        with self.known() as client:
            client.send(wire.SHIP, b"")
            self.assertRefused(client, "a shipment without a head")
        for rest in (b"", b"\0" * 50, os.urandom(1 << 20), b"\xff" * (8 * MIB)):
            with self.known() as client:
                client.send(wire.SHIP, wire.ship_head(1) + rest)
                self.assertRefused(client, "^the collector could not store it: ")

    def test_a_large_frame_that_never_comes(self):
        with contextlib.ExitStack() as all_of_them:
            for i in range(20):
                client = all_of_them.enter_context(Client(self.collector.port))
                client.hello(self.lab, node=b"stranger%d" % i)
                client.sock.sendall(b"\x01\x7f\xff\xff\x08")
            self.assertLess(self.peak_bytes(), 200 * MIB)

    # --- time -------------------------------------------------------------------------------------

    def test_a_hello_a_byte_at_a_time(self):
        with Client(self.collector.port) as client:
            said = wire.Hello(client.nonce(), os.urandom(16)).body()
            for byte in wire.frame(wire.HELLO, wire.credential(self.lab, said)):
                client.sock.sendall(bytes([byte]))
            self.assertEqual(client.receive()[0], wire.WELCOME)

    def test_who_says_nothing_is_closed_and_keeps_nobody_out(self):
        """500 connections, and one that says a byte a second."""
        with contextlib.ExitStack() as all_of_them:
            begun = time.monotonic()
            silent = [all_of_them.enter_context(Client(self.collector.port)) for _ in range(500)]
            slow = all_of_them.enter_context(Client(self.collector.port))
            stop = threading.Event()

            def drip():
                with contextlib.suppress(OSError):
                    for byte in wire.frame(wire.HELLO, b"x" * 1000):
                        if stop.wait(1):
                            return
                        slow.sock.sendall(bytes([byte]))

            thread = threading.Thread(target=drip)
            thread.start()
            all_of_them.callback(thread.join)
            all_of_them.callback(stop.set)
            job = self.srun(["true"], ON)
            self.collector.wait_ended(job.id, 1, 8)
            self.assertLess(time.monotonic() - begun, 9, "the connections were not there any more")
            for client in (*silent, slow):
                client.nonce()
                self.assertRaises(Closed, client.receive)
            took = time.monotonic() - begun
            print(f"closed after {took:.1f} s")
            self.assertGreater(took, 9)
            self.assertLess(took, 15)


class FakeCollector(threading.Thread):
    """Listens at a port, challenges whoever comes, and answers the first Hello as it is told."""

    def __init__(self, lab, answer):
        super().__init__()
        self.lab, self.answer = lab, answer
        self.kinds = []  # of all frames that came
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.listener.settimeout(20)
        self.port = self.listener.getsockname()[1]

    def run(self):
        with self.listener:
            sock, _ = self.listener.accept()
        with wire.Connection(sock) as peer, contextlib.suppress(Closed, ConnectionError):
            peer.send(wire.CHALLENGE, wire.challenge(os.urandom(16)))
            kind, cred = peer.receive()
            self.kinds.append(kind)
            self.answer(peer, cred)
            while True:
                self.kinds.append(peer.receive()[0])


class Impostor(TelemetryCase):
    """Answers at the collector's address, and is not the collector."""

    lab_name = "wirefake"

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.lab.run_as(U1, ["srun", ON, "true"])
        wait_for(cls.lab.node_db(cls.lab.nodes[0]).is_file, 20, "something to ship")
        cls.table = cls.lab.dir / "state-sphase" / "fetched.cdb"

    def ship_to(self, answer):
        """Log of a shipper that came to a collector which answers so, and the frames that it sent."""
        fake = FakeCollector(self.lab, answer)
        conf = self.lab.dir / "etc" / "fake.conf"
        conf.write_text(f"Collector=127.0.0.1:{fake.port}\nMungeSocket={self.lab.dir}/munge/socket\n"
                        f"TrustedUsers=root\nAdviceTable={self.table}\n")
        self.table.write_bytes(b"mine")
        log = self.lab.log("fake")
        fake.start()
        with log.open("w+", encoding="utf-8") as file:
            node = self.lab.popen_as(
                None, [build_dir() / "collector" / "sphase-collector", "node", "--conf", conf,
                       "--node-db", self.lab.node_db(self.lab.nodes[0]), "--advice"],
                stdout=file, stderr=file)
            try:
                fake.join(30)
                self.assertFalse(fake.is_alive(), "the shipper keeps the connection")
                wait_for(lambda: log.read_text().count("\n") >= 2, 10, "a word on why")
            finally:
                node.terminate()
                node.wait(20)
        return log.read_text(), fake.kinds

    def assertNotTrusted(self, answer, why):
        log, kinds = self.ship_to(answer)
        self.assertRegex(log, why)
        self.assertNotIn("shipping to", log)
        self.assertEqual(kinds, [wire.HELLO])
        self.assertEqual(self.table.read_bytes(), b"mine")

    def sign(self, cred, user=None):
        """A credential of `user` around what a Hello wants signed."""
        hello = wire.parse_hello(wire.payload_of(self.lab, cred))
        return wire.credential(self.lab, hello.own_nonce, user)

    def test_one_that_is_real_would_be_trusted(self):
        """So that the others fail for their own reason."""
        def answer(peer, cred):
            peer.send(wire.WELCOME, wire.welcome(self.sign(cred)))
            peer.send(wire.ADVICE, wire.advice(EMPTY_TABLE))
            kind, body = peer.receive()  # asks for the time
            self.assertEqual(kind, wire.CLOCK)
            peer.send(wire.CLOCK, body)
            raise Closed

        self.ship_to(answer)
        self.assertNotEqual(self.table.read_bytes(), b"mine")

    def test_a_welcome_without_a_credential(self):
        self.assertNotTrusted(lambda peer, cred: peer.send(wire.WELCOME, wire.welcome(b"")),
                              "the collector: MUNGE: ")

    def test_a_welcome_of_another_user(self):
        self.assertNotTrusted(
            lambda peer, cred: peer.send(wire.WELCOME, wire.welcome(self.sign(cred, U1))),
            r"is not our collector: user \d+ runs it")

    def test_a_welcome_that_signs_something_else(self):
        self.assertNotTrusted(
            lambda peer, cred: peer.send(
                wire.WELCOME, wire.welcome(wire.credential(self.lab, os.urandom(16)))),
            "is not our collector")

    def test_a_hello_sent_back(self):
        self.assertNotTrusted(lambda peer, cred: peer.send(wire.WELCOME, wire.welcome(cred)),
                              "is not our collector")

    def test_an_advice_table_in_place_of_a_welcome(self):
        self.assertNotTrusted(lambda peer, cred: peer.send(wire.ADVICE, wire.advice(EMPTY_TABLE)),
                              "sent what nobody asked for")

    def test_an_advice_table_behind_a_bad_welcome(self):
        def answer(peer, cred):
            peer.send(wire.WELCOME, wire.welcome(self.sign(cred, U1)))
            peer.send(wire.ADVICE, wire.advice(EMPTY_TABLE))

        self.assertNotTrusted(answer, "is not our collector")

    def test_garbage_in_place_of_a_welcome(self):
        for data in (b"\xff" * 50, wire.frame(wire.WELCOME, b""), wire.frame(wire.SEEN, b"\0"),
                     wire.frame(wire.WELCOME, os.urandom(300)), b"HTTP/1.1 400 Bad Request\r\n"):
            self.assertNotTrusted(lambda peer, cred, data=data: peer.sock.sendall(data),
                                  "collector")


if __name__ == "__main__":
    unittest.main()
