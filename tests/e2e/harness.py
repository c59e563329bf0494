"""What the end-to-end tests share: running l3c, scratch folders, small data sets."""

import atexit
import gzip
import json
import os
import pathlib
import re
import shutil
import struct
import subprocess
import tempfile
import unittest

# A cache of the test's own: neither the user's nor left behind.
if "XDG_CACHE_HOME" not in os.environ:
    os.environ["XDG_CACHE_HOME"] = tempfile.mkdtemp(prefix="l3c-test-cache-")
    atexit.register(shutil.rmtree, os.environ["XDG_CACHE_HOME"], ignore_errors=True)

# Nor the evidence of a calibration, which would give other plans.
if "XDG_DATA_HOME" not in os.environ:
    os.environ["XDG_DATA_HOME"] = tempfile.mkdtemp(prefix="l3c-test-data-")
    atexit.register(shutil.rmtree, os.environ["XDG_DATA_HOME"], ignore_errors=True)

ROOT = pathlib.Path(__file__).resolve().parents[2]
L3C = os.environ.get("L3C", str(ROOT / "build/release/bin/l3c"))
MNIST = ROOT / "examples/mnist/mnist.l3"


class Result:
    def __init__(self, done):
        self.code, self.out, self.err = done.returncode, done.stdout, done.stderr

    def events(self):
        return [json.loads(line) for line in self.out.splitlines() if line.startswith("{")]

    @property
    def done(self):
        last = self.events()[-1]
        assert last["event"] == "done", last
        return last


class L3cTest(unittest.TestCase):
    maxDiff = None

    def setUp(self):
        self.dir = pathlib.Path(tempfile.mkdtemp(prefix="l3c-test-"))
        self.addCleanup(shutil.rmtree, self.dir, ignore_errors=True)

    def l3c(self, *args, code=0, cwd=ROOT, timeout=240):
        done = subprocess.run(
            [L3C, *map(str, args)], cwd=cwd, capture_output=True, text=True, timeout=timeout,
            errors="replace", stdin=subprocess.DEVNULL,
        )
        result = Result(done)
        if code is not None:
            self.assertEqual(code, result.code, f"l3c {' '.join(map(str, args))}\n{result.err}")
        return result

    def run_json(self, *args, **kwargs):
        """Trains with --json into a scratch folder and returns the last event."""
        if "-o" not in args:
            args = (*args, "-o", self.dir / f"run-{len(list(self.dir.iterdir()))}")
        return self.l3c("run", *args, "--json", **kwargs).done

    def write(self, name, text):
        path = self.dir / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text) if isinstance(text, str) else path.write_bytes(text)
        return path


def arenas(plan):
    """Of each arena of a plan's text: its bytes, and the most that live in it at once."""
    slots, found = {}, {}
    for pool, at, size, first, last in re.findall(
            r"^    \w+ +: .* in (\w+) +at (\d+) +size (\d+) +live (\d+)\.\.(\d+)", plan, re.MULTILINE):
        slots.setdefault(pool, []).append((int(at), int(size), int(first), int(last)))
    for pool, entries in slots.items():
        changes = {}
        for _, size, first, last in entries:
            size = -(-size // 64) * 64 if size >= 1024 else size  # large slots begin lines
            changes[first] = changes.get(first, 0) + size
            changes[last + 1] = changes.get(last + 1, 0) - size
        live = most = 0
        for position in sorted(changes):
            live += changes[position]
            most = max(most, live)
        found[pool] = max(at + size for at, size, _, _ in entries), most
    return found


def idx(values, shape):
    """An idx file of unsigned bytes."""
    header = struct.pack(">HBB", 0, 8, len(shape)) + b"".join(struct.pack(">I", n) for n in shape)
    return header + bytes(values)


def small_mnist(folder, rows=64, test_rows=32, labels=None, compress=True):
    """Blurred bars whose position is the label: 28×28, ten classes, learnable in a few steps."""
    folder.mkdir(parents=True, exist_ok=True)
    pack = gzip.compress if compress else (lambda raw: raw)
    suffix = ".gz" if compress else ""
    for split, prefix, n in (("train", "train", rows), ("test", "t10k", test_rows)):
        classes = [(7 * i + i // 10) % 10 for i in range(n)] if labels is None else labels(split, n)
        pixels = bytearray()
        for i, label in enumerate(classes):
            for row in range(28):
                for column in range(28):
                    pixels.append(
                        max(0, 255 - 90 * abs(column - 2 * label - 4) - (row * 7 + i * 13) % 31)
                    )
        (folder / f"{prefix}-images-idx3-ubyte{suffix}").write_bytes(pack(idx(pixels, (n, 28, 28))))
        (folder / f"{prefix}-labels-idx1-ubyte{suffix}").write_bytes(pack(idx(classes, (n,))))
    table = json.loads((ROOT / "data/mnist/dataset.json").read_text())
    if not compress:
        for fields in table.values():
            for field in fields.values():
                field["file"] = field["file"].removesuffix(".gz")
    (folder / "dataset.json").write_text(json.dumps(table))
    return folder
