"""The protocol between nodes and the collector, as far as a test speaks it: both ends of it, and all
that an honest program would never send. What lies on the wire: collector/wire/frame.h, message.cpp.
"""

import os
import socket
import struct
import subprocess
from typing import NamedTuple

(CHALLENGE, HELLO, WELCOME, REFUSED, CLOCK, ASK, SEEN, SHIP, STORED, ALIVE, ADVICE) = range(1, 12)
NONCE_BYTES = 16


class Closed(Exception):
    """The other end has closed the connection."""


# --- bytes ----------------------------------------------------------------------------------------

def varint(number):
    out = bytearray()
    while number >= 0x80:
        out.append(number & 0x7f | 0x80)
        number >>= 7
    return bytes([*out, number])


def number(value):
    return varint(value << 1 if value >= 0 else (-value << 1) - 1)


def text(value):
    data = value if isinstance(value, bytes) else value.encode()
    return varint(len(data)) + data


def frame(kind, body=b""):
    return struct.pack(">IB", len(body) + 1, kind) + body


def take_varint(data):
    """(number, what follows it)"""
    value = shift = 0
    for at, byte in enumerate(data):
        value |= (byte & 0x7f) << shift
        shift += 7
        if byte < 0x80:
            return value, data[at + 1:]
    raise ValueError("a varint that is cut")


def take_text(data):
    size, rest = take_varint(data)
    return rest[:size], rest[size:]


# --- bodies ---------------------------------------------------------------------------------------

class Hello(NamedTuple):
    nonce: bytes
    own_nonce: bytes
    node: bytes = b"stranger1"
    file_id: bytes = b"0123"
    wants_advice: bool = False

    def body(self):
        return (b"".join(text(part) for part in self[:4])) + bytes([self.wants_advice])


def parse_hello(body):
    parts = []
    for _ in range(4):
        part, body = take_text(body)
        parts.append(part)
    return Hello(*parts, wants_advice=body == b"\1")


def run_name(job_id, node="stranger1"):
    return text("lab") + text("0") + text(node) + number(job_id) + number(0) + number(1)


def ask(count):
    return varint(count) + b"".join(run_name(i) for i in range(count))


def ship_head(count):
    """Without a word on the clock."""
    return varint(count) + b"\0"


def challenge(nonce):
    return b"SPHASE" + varint(1) + nonce


def welcome(credential, change=0):
    return number(change) + text(credential)


def advice(table, last=True):
    return bytes([last]) + table


# --- MUNGE ----------------------------------------------------------------------------------------

def credential(lab, payload, user=None, *options):
    """Of `user` (None: root) around `payload`, made by the lab's munged."""
    with lab.popen_as(user, ["munge", f"--socket={lab.dir}/munge/socket", *options],
                      stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        out, _ = process.communicate(payload, timeout=20)
    if process.returncode:
        raise OSError(f"munge ended with {process.returncode}")
    return out.strip()


def payload_of(lab, cred):
    """What a credential holds. munged remembers that it was read."""
    done = subprocess.run(["unmunge", f"--socket={lab.dir}/munge/socket", "--metadata=/dev/null"],
                          input=cred, capture_output=True, timeout=20, check=True)
    return done.stdout


# --- connections ----------------------------------------------------------------------------------

class Connection:
    """Frames on a socket. Each call waits `limit_s` at most."""

    def __init__(self, sock, limit_s=20):
        self.sock = sock
        sock.settimeout(limit_s)
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.sock.close()

    def send(self, kind, body=b""):
        self.sock.sendall(frame(kind, body))

    def _take(self, count):
        data = b""
        while len(data) < count:
            try:
                more = self.sock.recv(count - len(data))
            except ConnectionResetError:
                more = b""
            if not more:
                raise Closed
            data += more
        return data

    def receive(self):
        """(type, body) of the next frame; Closed where there is none."""
        length, kind = struct.unpack(">IB", self._take(5))
        return kind, self._take(length - 1)


class Client(Connection):
    """A node, or somebody who claims to be one."""

    def __init__(self, port, limit_s=20):
        super().__init__(socket.create_connection(("127.0.0.1", port), timeout=limit_s), limit_s)

    def nonce(self):
        """Of the collector's challenge, its first frame."""
        kind, body = self.receive()
        if kind != CHALLENGE or not body.startswith(challenge(b"")):
            raise ValueError(f"no challenge: {kind} {body}")
        return body[len(challenge(b"")):]

    def hello(self, lab, user=None, **more):
        """The whole handshake; the answer to it."""
        said = Hello(self.nonce(), os.urandom(NONCE_BYTES), **more)
        self.send(HELLO, credential(lab, said.body(), user))
        return self.receive()
