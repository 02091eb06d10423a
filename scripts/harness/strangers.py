"""The hostile side of tests: processes that belong to no job and speak libfabric's `tcp` and Tidegate's batches to its ports.

Run as a program of its own, usually as another user (`as_nobody`) and on another host, it says what it has done in one line of
JSON. It needs nothing but Python and knows nothing but what such a process can see or is told on its command line.
"""

from __future__ import annotations

import json
import os
import re
import socket
import struct
import sys
import time
from pathlib import Path

NOBODY = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"]
"""Before a command: as a user that has nothing here."""

HELLO, WELCOME, REFUSAL, PACKETS, PING, ANSWER, SEVERED, ABSENT = 1, 2, 3, 4, 6, 7, 8, 10
"""Kinds of batches (crates/link/src/fabric/wire.rs)."""
VERSION = 9
RANDOM_PROOF = bytes(range(8))
DATA_OF_ONE_SLOT = 1 << 54
"""A packet's header: an eager message."""


class Connection:
    """A connection by the protocol of libfabric's `tcp`, from a process that says that it listens at `claim`."""

    def __init__(self, address: str, port: int, claim: int, seconds: float = 5.0) -> None:
        self._socket = socket.create_connection((address, port), timeout=seconds)
        name = struct.pack("!BBHI", 1, 0, claim, os.getpid())
        # Version 3, a request; then the length of what follows, numbers that are ours to choose, and our byte order.
        self._socket.sendall(struct.pack("=BB", 3, 0) + struct.pack("!H", len(name)) + struct.pack("=IQQQ", 0, 0, 0, 1) + name)
        head = self._read(32)
        self.is_taken = head[1] == 1
        self._read(struct.unpack("!H", head[2:4])[0])

    def _read(self, length: int) -> bytes:
        read = b""
        while len(read) < length:
            part = self._socket.recv(length - len(read))
            if not part:
                raise ConnectionError("closed")
            read += part
        return read

    def send(self, message: bytes) -> None:
        self.send_raw(self.head(len(message)) + message)

    def send_raw(self, data: bytes) -> None:
        self._socket.sendall(data)

    @staticmethod
    def head(length: int, operation_data: int = 0) -> bytes:
        """The header of a message of so many bytes, or one that acknowledges what was never sent."""
        return struct.pack("=BBHBBBBQ", 3, 0, 0, operation_data, 0, 16, 0, 16 + length)

    def receive(self, seconds: float) -> bytes:
        """What comes within this time, as it comes."""
        self._socket.settimeout(seconds)
        try:
            return self._socket.recv(1 << 16)
        except OSError:
            return b""


def batch(kind: int, to: int, sender: int, body: bytes = b"", sequence: int = 0) -> bytes:
    return struct.pack("<3sBBBHQQQQ", b"TGB", VERSION, kind, 0, 0, to, sender, sequence, 0) + body


def greeting(tag: int, address: str, port: int) -> bytes:
    """What a rank says of itself; our address is where its answer goes."""
    process = b"tg" + bytes(6) + struct.pack("<II", os.getpid() & 0x3FFFFF, 1) + struct.pack("<Q", tag)
    settings = struct.pack("<BIB", 2 | 0x80, 64 | 2 << 24, 0)
    lower = struct.pack("=H", socket.AF_INET) + struct.pack("!H", port) + socket.inet_aton(address) + bytes(8)
    return process + settings + bytes([1, 1]) + struct.pack("<II", 1 << 20, 99) + bytes([16]) + lower.ljust(32, b"\0") + b"\1m"


def packet(text: bytes, tag: int = 5) -> bytes:
    head = struct.pack("<QII", tag, len(text) | 1 << 24, 1) + text
    return struct.pack("<Q", len(head) << 48 | DATA_OF_ONE_SLOT) + head.ljust(56, b"\0")


def seen_numbers() -> set[int]:
    """All numbers of 64 bits that stand where another user of the host can read them, as text of either kind."""
    texts = [name for name in os.listdir("/dev/shm")]
    for path in ("/proc/net/unix", "/proc/locks", "/proc/net/tcp"):
        texts.append(Path(path).read_text())
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                texts.append((entry / "cmdline").read_bytes().decode(errors="replace"))
            except OSError:
                continue
    numbers = set()
    for text in texts:
        for word in re.findall(r"[0-9a-fA-F]{6,}", text):
            numbers.add(int(word[:16], 16))
            if word.isdigit():
                numbers.add(int(word) & (1 << 64) - 1)
                # A lock's place in a file, as a peer's number gave it once.
                numbers.update((int(word) << 2 | low) & (1 << 64) - 1 for low in range(4))
    return numbers


def door() -> tuple[socket.socket, int]:
    """A port of our own, to which answers may come."""
    listening = socket.socket()
    listening.bind(("0.0.0.0", 0))
    listening.listen(64)
    listening.settimeout(1.0)
    return listening, listening.getsockname()[1]


def guess(address: str, port: int) -> dict:
    """Tries all numbers that can be seen: greets, says things in each other's names, sends a message."""
    listening, own = door()
    numbers = sorted(seen_numbers())
    connection, sent = Connection(address, port, own), 0
    for number in numbers:
        for other in numbers[:3] + [number, 77]:
            words = [
                batch(HELLO, number, other, greeting(other, address, own) + RANDOM_PROOF, 1),
                batch(SEVERED, number, other, RANDOM_PROOF),
                batch(PACKETS, number, other, packet(b"not from a rank")),
                batch(ABSENT, number, other),
            ]
            for word in words:
                connection.send(word)
                sent += 1
        time.sleep(0.001)
    time.sleep(0.5)
    answers = 0
    try:
        while True:
            listening.accept()
            answers += 1
    except OSError:
        pass
    return {"user": os.getuid(), "numbers": len(numbers), "sent": sent, "answers": answers}


def numbers_of(data: bytes) -> tuple[int, int] | None:
    """The ids of receiver and sender of a batch, if one stands in these bytes."""
    at = data.find(b"TGB")
    return struct.unpack("<QQ", data[at + 8:at + 24]) if 0 <= at <= len(data) - 40 else None


def take_over(address: str, port: int, claims: tuple[int, ...]) -> tuple[Connection, bytes] | None:
    """A connection that passes for that of one of the processes that listen at these ports, and what has come by it. Which one
    gives way is libfabric's choice, so each is tried several times."""
    for claim in claims * 5:
        try:
            connection = Connection(address, port, claim)
        except OSError:
            continue
        data = b""
        for _ in range(8):
            data += connection.receive(0.25)
            if numbers_of(data):
                return connection, data
    return None


def steal(address: str, port: int, *claims: int) -> dict:
    """Takes a rank's place on the connection of another, reads who is who, and says all that would end one of them."""
    _listening, own = door()
    words, sent, stolen = None, 0, 0
    # The rank makes its connection again when it has lost it, and then we have lost ours.
    for _ in range(5):
        taken = take_over(address, port, claims)
        if not taken:
            break
        connection, data = taken
        stolen += len(data)
        words = words if words is not None else fatal_words(*numbers_of(data), address, own)
        try:
            while words:
                connection.send(words[0])
                words.pop(0)
                sent += 1
            time.sleep(0.5)
            break
        except OSError:
            continue
    return {"user": os.getuid(), "stolen": stolen, "sent": sent}


def fatal_words(rank: int, victim: int, address: str, own: int) -> list[bytes]:
    """All that would end one of the two, or make another one join, if it counted without a proof."""
    words = [batch(kind, victim, rank, RANDOM_PROOF) for kind in (SEVERED, ANSWER)]
    words += [batch(kind, victim, sender, greeting(sender, address, own) + RANDOM_PROOF, 1)
              for kind in (HELLO, WELCOME, REFUSAL) for sender in (rank, 0x777)]
    words += [batch(ABSENT, victim, rank)] * 20
    words += [batch(PACKETS, victim, 0x777, packet(b"not from a rank"))]
    return words


def acknowledge(address: str, port: int) -> dict:
    """Acknowledges to libfabric's `tcp` what it never sent."""
    connection = Connection(address, port, 0)
    connection.send_raw(Connection.head(0, operation_data=2))
    time.sleep(1)
    return {"sent": 1}


def promise(address: str, port: int, mebibytes: int, seconds: float) -> dict:
    """Begins a message of such a length and holds on."""
    connection = Connection(address, port, 0)
    connection.send_raw(Connection.head(mebibytes << 20))
    for _ in range(mebibytes - 1):
        connection.send_raw(bytes([1]) * (1 << 20))
    time.sleep(seconds)
    return {"sent": mebibytes}


def main() -> None:
    what, address, port, *more = sys.argv[1:]
    called = {"guess": guess, "steal": steal, "acknowledge": acknowledge, "promise": promise}[what]
    try:
        said = called(address, int(port), *map(int, more))
    except OSError as error:
        said = {"error": str(error)}
    print(json.dumps(said))


if __name__ == "__main__":
    main()
