"""A served model under load on the loopback: requests a second, waiting times, errors, memory.

Server and clients share the two cores, so a server of its own would answer more. Run
``python benchmarks/bench_serve.py``; it needs ``pip install 'deltarank[serve]'``.
"""

import asyncio
import json
import re
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

from measure import extra, row, run_sections, scaled, seconds, table

DELTARANK = str(Path(sys.executable).parent / "deltarank")
SECONDS = scaled(8.0, 0.5)
WARM_UP = scaled(200, 20)


def fit(folder):
    """Fit the example of the package: text, numbers, categories; 11 labels."""
    with Path(folder, "recipes.csv").open("w") as file:
        subprocess.run([DELTARANK, "datasets", "example"], stdout=file, check=True)
    command = [DELTARANK, "fit", "recipes.csv", "--C", "10", "--model", "recipes.delta"]
    subprocess.run(command, cwd=folder, stderr=subprocess.DEVNULL, check=True)


def request(n_items):
    """Return the bytes of a request for some recipes."""
    item = {"description": "a hot curry of chili and tofu", "minutes": 15, "season": "winter"}
    body = json.dumps({"items": [item] * n_items, "top": 5}).encode()
    head = ["POST /rank HTTP/1.1", "host: localhost", "content-type: application/json"]
    return "\r\n".join([*head, f"content-length: {len(body)}", "\r\n"]).encode() + body


async def client(port, message, until, waits, errors):
    """Ask again and again over one connection."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    while until(len(waits)):
        began = time.perf_counter()
        writer.write(message)
        head = await reader.readuntil(b"\r\n\r\n")
        length = int(re.search(rb"content-length: (\d+)", head).group(1))
        body = await reader.readexactly(length)
        waits.append(time.perf_counter() - began)
        if b" 200 " not in head.splitlines()[0] or b"rankings" not in body:
            errors.append(body)
    writer.close()
    await writer.wait_closed()


async def load(port, n_clients, n_items, until):
    """Return the waiting times of all requests, and answers that were errors."""
    waits, errors = [], []
    message = request(n_items)
    await asyncio.gather(*(client(port, message, until, waits, errors) for _ in range(n_clients)))
    return np.array(waits), errors


def resident_kb(pid):
    """Return what a process holds in memory."""
    return int(re.search(r"VmRSS:\s+(\d+)", Path(f"/proc/{pid}/status").read_text()).group(1))


def serve():
    """Load the server with few and many clients, single items and batches."""
    extra("serve", "uvicorn")
    table(
        f"Server and clients on the same two cores, {SECONDS:g} s each",
        ["clients", "items a request", "requests/s", "items/s", "p50", "p99", "errors",
         "memory before", "after"],
    )  # fmt: skip
    with tempfile.TemporaryDirectory() as folder:
        fit(folder)
        server = subprocess.Popen(
            [DELTARANK, "serve", "recipes.delta", "--port", "0"],
            cwd=folder, stderr=subprocess.PIPE, text=True,
        )  # fmt: skip
        try:
            port = int(server.stderr.readline().rpartition(":")[2])
            for n_clients, n_items in ((1, 1), (16, 1), (16, 100)):
                asyncio.run(load(port, n_clients, n_items, lambda n: n < WARM_UP))
                before, ends = resident_kb(server.pid), time.perf_counter() + SECONDS
                until = lambda n: time.perf_counter() < ends  # noqa: B023, E731
                waits, errors = asyncio.run(load(port, n_clients, n_items, until))
                rate = len(waits) / SECONDS
                p50, p99 = np.percentile(waits, [50, 99])
                after = resident_kb(server.pid)
                row(
                    n_clients, n_items, f"{rate:.0f}", f"{rate * n_items:.0f}", seconds(p50),
                    seconds(p99), len(errors), f"{before / 1e3:.0f} MB", f"{after / 1e3:.0f} MB",
                )  # fmt: skip
        finally:
            server.send_signal(signal.SIGINT)
            server.communicate()


if __name__ == "__main__":
    run_sections(serve)
