#!/usr/bin/env python3
"""Records the first losses of the MNIST method as JAX and optax compute them.

The model is the one of examples/mnist: 784-256-256-10 with layer norm and tanh gelu, softmax
cross-entropy plus 1e-4 times the sum of the absolute values of all parameters, Adam at 3e-4 on
batches of 128. Initial weights and the order of the rows come from the same counter-based random
numbers as l3c's (philox.py).

    python bench/peer_scripts/mnist_reference.py    # needs jax, optax, numpy

writes tests/e2e/fixtures/mnist_losses.json. Run it from anywhere; the result depends on nothing but
data/mnist.
"""

import gzip
import hashlib
import json
import math
import pathlib
import struct

import jax
import jax.numpy as jnp
import numpy as np
import optax
from philox import normals, shuffled, state_key

ROOT = pathlib.Path(__file__).resolve().parents[2]
OUTPUT = ROOT / "tests/e2e/fixtures/mnist_losses.json"
SEED = 0
STEPS = 50
BATCH = 128
EPOCHS = 10
WIDTHS = (784, 256, 256, 10)


def initial_parameters():
    parameters = {}
    for i in range(3):
        layer = f"linear{i + 1}"
        fan_in, width = WIDTHS[i], WIDTHS[i + 1]
        deviation = np.float32(math.sqrt(2 / fan_in))
        draws = normals(SEED, state_key(f"model_state.{layer}_weight"), fan_in * width)
        parameters[f"{layer}_weight"] = (deviation * draws).reshape(fan_in, width)
        parameters[f"{layer}_bias"] = np.zeros(width, np.float32)
        if i < 2:
            parameters[f"norm{i + 1}_gain"] = np.ones(width, np.float32)
            parameters[f"norm{i + 1}_offset"] = np.zeros(width, np.float32)
    return parameters


def read_idx(name):
    data = gzip.decompress((ROOT / "data/mnist" / name).read_bytes())
    rank = data[3]
    shape = struct.unpack(f">{rank}I", data[4 : 4 + 4 * rank])
    return np.frombuffer(data, np.uint8, offset=4 + 4 * rank).reshape(shape)


def forward(p, x):
    for i in (1, 2):
        x = x @ p[f"linear{i}_weight"] + p[f"linear{i}_bias"]
        mean = x.mean(axis=1, keepdims=True)
        variance = jnp.square(x - mean).mean(axis=1, keepdims=True)
        x = (x - mean) * jax.lax.rsqrt(variance + 1e-5) * p[f"norm{i}_gain"] + p[f"norm{i}_offset"]
        x = jax.nn.gelu(x, approximate=True)
    return x @ p["linear3_weight"] + p["linear3_bias"]


def loss(p, x, y):
    log_p = jax.nn.log_softmax(forward(p, x))
    ce = -jnp.take_along_axis(log_p, y[:, None], axis=1).mean()
    return ce + 1e-4 * sum(jnp.abs(value).sum() for value in p.values())


def train(rate):
    images = read_idx("train-images-idx3-ubyte.gz").reshape(-1, 784)
    labels = read_idx("train-labels-idx1-ubyte.gz").astype(np.int32)
    order = shuffled(len(images), SEED, 0)
    optimiser = optax.adam(rate, b1=0.9, b2=0.999, eps=1e-8)
    p = {name: jnp.asarray(value) for name, value in initial_parameters().items()}
    state = optimiser.init(p)

    @jax.jit
    def step(p, state, x, y):
        value, grads = jax.value_and_grad(loss)(p, x, y)
        updates, state = optimiser.update(grads, state)
        return optax.apply_updates(p, updates), state, value

    losses = []
    for i in range(STEPS):
        rows = order[i * BATCH : (i + 1) * BATCH]
        x = images[rows].astype(np.float32) * np.float32(1 / 255)
        p, state, value = step(p, state, x, labels[rows])
        losses.append(float(value))
    return losses


def warmup_cosine(step):
    warmup, total = 1000, EPOCHS * math.ceil(60000 / BATCH)
    progress = jnp.clip((step - warmup) / (total - warmup), 0, 1)
    return 3e-4 * jnp.minimum((step + 1) / warmup, 1) * (1 + jnp.cos(jnp.pi * progress)) / 2


def main():
    sums = {name: float(np.abs(v.astype(np.float64)).sum()) for name, v in initial_parameters().items()}
    digest = hashlib.sha256()
    for value in initial_parameters().values():
        digest.update(value.tobytes())
    record = {
        "made_by": "bench/peer_scripts/mnist_reference.py",
        "jax": jax.__version__,
        "optax": optax.__version__,
        "seed": SEED,
        "batch": BATCH,
        # Sums agree to rounding; the digest only where the library's logarithm and cosine give the
        # same last bit as l3c's own.
        "initial_absolute_sums": sums,
        "initial_sha256": digest.hexdigest(),
        "first_rows": shuffled(60000, SEED, 0)[:8].tolist(),
        "losses": {
            "schedule(warmup: 1000, decay: cosine, inner: adam(lr: 3e-4))": train(warmup_cosine),
            "adam(lr: 3e-4)": train(3e-4),
        },
    }
    OUTPUT.write_text(json.dumps(record, indent=1) + "\n")
    for name, losses in record["losses"].items():
        print(f"{name}: {losses[0]:.6f} … {losses[-1]:.6f}")


if __name__ == "__main__":
    main()
