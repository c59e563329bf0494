#!/usr/bin/env python3
"""Trains the MNIST method in JAX for some epochs and prints the seconds of each, as JSON.

    python bench/peer_scripts/mnist_jax.py EPOCHS

Same model, loss, optimiser, schedule, initial weights and rows as l3c's; batches are gathered and
scaled by numpy ahead of the jitted step, the last one of an epoch padded and masked. The first
epoch includes the compilation, told apart as first_step_s.
"""

import json
import math
import sys
import time

import jax
import jax.numpy as jnp
import mnist_reference as reference
import numpy as np
import optax


def masked_loss(p, x, y, mask):
    log_p = jax.nn.log_softmax(reference.forward(p, x))
    ce = -jnp.take_along_axis(log_p, y[:, None], axis=1)[:, 0]
    return (ce * mask).sum() / mask.sum() + 1e-4 * sum(jnp.abs(v).sum() for v in p.values())


def main():
    epochs = int(sys.argv[1])
    images = reference.read_idx("train-images-idx3-ubyte.gz").reshape(-1, 784)
    labels = reference.read_idx("train-labels-idx1-ubyte.gz").astype(np.int32)
    batch = reference.BATCH
    steps = math.ceil(len(images) / batch)
    optimiser = optax.adam(reference.warmup_cosine, b1=0.9, b2=0.999, eps=1e-8)
    p = {name: jnp.asarray(value) for name, value in reference.initial_parameters().items()}
    state = optimiser.init(p)

    def update(p, state, x, y, mask):
        value, grads = jax.value_and_grad(masked_loss)(p, x, y, mask)
        updates, state = optimiser.update(grads, state)
        return optax.apply_updates(p, updates), state, value

    step = jax.jit(update, donate_argnums=(0, 1))
    orders = [reference.shuffled(len(images), reference.SEED, epoch) for epoch in range(epochs)]
    seconds, first, losses = [], 0.0, []
    for order in orders:
        start = time.perf_counter()
        total = 0.0
        for i in range(steps):
            rows = order[i * batch : (i + 1) * batch]
            x = np.zeros((batch, 784), np.float32)
            y = np.zeros(batch, np.int32)
            mask = np.zeros(batch, np.float32)
            x[: len(rows)] = images[rows] * np.float32(1 / 255)
            y[: len(rows)], mask[: len(rows)] = labels[rows], 1
            p, state, value = step(p, state, x, y, mask)
            if not first:
                value.block_until_ready()
                first = time.perf_counter() - start
            losses.append(value)
        losses[-1].block_until_ready()
        seconds.append(time.perf_counter() - start)
    print(json.dumps({"epoch_seconds": seconds, "first_step_s": first, "first_loss": float(losses[0]),
                      "loss_50": float(losses[49])}))


if __name__ == "__main__":
    main()
