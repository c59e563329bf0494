"""What a peer is given to train, and what it answers.

A job is a folder: the rows as `train.FIELD.npy` (l3c reads the same files), l3c's placement of the
program, from which the initial weights follow, and the L2 file. A peer prints one line of JSON.
"""

import argparse
import json
import math
import pathlib
import re
import resource
import time

import numpy as np
import philox
import program as l2

SEED = 0
STATE = re.compile(r"^\s+(\w+)\s*: tensor\(f32, \[([\d, ]*)\]\),\s*init: (\w+)(?:\(([^)]*)\))?, param$", re.M)
BYTES_OF_ROWS = 64 << 20


def make_rows(program, folder):
    """Random rows of the declared domains, in so many batches that no cache holds them all."""
    elements = sum(math.prod(f.shape) * (4 if f.type != "u8" else 1) for f in program.fields)
    batches = min(32, max(4, BYTES_OF_ROWS // (elements * program.batch)))
    rows = batches * program.batch
    rng = np.random.default_rng(20261130)
    vocabulary = next((f.args[0] for _, f in l2.layers(program.network) if f.name == "embed"), 256)
    types = {"f32": np.float32, "u8": np.uint8, "i32": np.int32}
    for field in program.fields:
        shape = (rows, *field.shape)
        if field.type == "f32":
            values = rng.random(shape, dtype=np.float32)
        else:
            below = program.classes if field.name == program.target else vocabulary
            values = rng.integers(0, below, shape).astype(types[field.type])
        np.save(folder / f"train.{field.name}.npy", values)


def initial_parameters(placement):
    """Of every learned parameter of an L1 text: the values that l3c begins with."""
    found = {}
    for name, extents, init, figure in STATE.findall(placement):
        shape = tuple(int(n) for n in extents.split(","))
        if init in ("zeros", "ones"):
            found[name] = np.full(shape, 1.0 if init == "ones" else 0.0, np.float32)
        elif init in ("normal", "kaiming"):
            fan_in = math.prod(shape[:-1])
            deviation = np.float32(math.sqrt(2 / fan_in) if init == "kaiming" else float(figure))
            draws = philox.normals(SEED, philox.state_key("model_state." + name), math.prod(shape))
            found[name] = (deviation * draws).reshape(shape)
        else:
            raise ValueError(f"initial distribution '{init}' of {name} is not known to the peers")
    return found


class Job:
    def __init__(self, folder):
        self.folder = pathlib.Path(folder)
        self.program = l2.read(next(self.folder.glob("*.l2")))
        load = lambda name: np.load(self.folder / f"train.{name}.npy")
        self.inputs, self.targets = load(self.program.input), load(self.program.target)
        self.parameters = initial_parameters((self.folder / "placement.l1").read_text())
        if not self.parameters:
            raise ValueError("the placement names no parameter of an actor 'model_state'")

    def batches(self, steps):
        """The rows of each step, in the order in which l3c shuffles them."""
        batch, count = self.program.batch, len(self.inputs)
        per_epoch = count // batch
        for step in range(steps):
            if step % per_epoch == 0:
                order = philox.shuffled(count, SEED, step // per_epoch)
            rows = order[step % per_epoch * batch :][:batch]
            yield self.inputs[rows], self.targets[rows]


def train(version, prepare):
    """`prepare(job, arguments)` gives `step(x, y) → loss`, which returns when the step is done, and
    `place(x, y)`, which brings a batch where the system wants it: that is not timed."""
    parser = argparse.ArgumentParser()
    parser.add_argument("folder")
    parser.add_argument("--steps", type=int, required=True)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--compile", action="store_true")
    arguments = parser.parse_args()
    job = Job(arguments.folder)
    placed = None
    losses, seconds = [], []
    begun = time.perf_counter()
    step, place = prepare(job, arguments)
    preparing = time.perf_counter() - begun
    for x, y in job.batches(arguments.steps):
        placed = place(x, y)
        start = time.perf_counter()
        loss = step(*placed)
        seconds.append(time.perf_counter() - start)
        losses.append(float(loss))
    print(
        json.dumps(
            {
                "version": version,
                "first_step_s": preparing + seconds[0],
                "step_seconds": seconds[1:],
                "losses": losses,
                "peak_rss_bytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024,
            }
        )
    )
