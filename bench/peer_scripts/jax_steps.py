#!/usr/bin/env python3
"""Trains a job in JAX: `jax_steps.py FOLDER --steps N`; see job.py.

As its users write it: a pure loss, value_and_grad, an optax update, one jit over the whole step with
the state given away; images as NHWC.
"""

import job as jobs
import program as l2
import jax
import jax.numpy as jnp
import numpy as np
import optax


def linear(p, name, form, x):
    if x.shape[-1] != form.args[0]:
        x = x.reshape(x.shape[0], -1)
    return x @ p[name + "_weight"] + p[name + "_bias"]


def conv(p, name, form, x):
    if x.ndim == 3:
        x = x[..., None]
    stride, padding = form.named.get("stride", 1), form.named.get("padding", 0)
    y = jax.lax.conv_general_dilated(x, p[name + "_weight"], (stride, stride), [(padding, padding)] * 2,
                                     dimension_numbers=("NHWC", "HWIO", "NHWC"))
    return y + p[name + "_bias"]


def pool(p, name, form, x):
    if form.args[0].name != "max":
        raise ValueError(f"pool({form.args[0].name}) is not known to this peer")
    window = (1, form.args[1], form.args[1], 1)
    return jax.lax.reduce_window(x, -jnp.inf, jax.lax.max, window, window, "VALID")


def norm(p, name, form, x):
    if form.args[0].name != "layer":
        raise ValueError(f"norm({form.args[0].name}) is not known to this peer")
    mean = x.mean(-1, keepdims=True)
    variance = jnp.square(x - mean).mean(-1, keepdims=True)
    return (x - mean) * jax.lax.rsqrt(variance + 1e-5) * p[name + "_gain"] + p[name + "_offset"]


def attention(p, name, form, x):
    heads, dim = form.args
    causal = "causal" in form.named and form.named["causal"].name == "true"
    n, t, _ = x.shape
    q, k, v = jnp.split((x @ p[name + "_joined"]).reshape(n, t, 3 * heads, dim // heads), 3, axis=2)
    y = jax.nn.dot_product_attention(q, k, v, is_causal=causal)
    return y.reshape(n, t, dim) @ p[name + "_out"] + p[name + "_bias"]


def plain(function):
    return lambda p, name, form, x: function(x)


LAYERS = {
    "linear": linear,
    "conv": conv,
    "pool": pool,
    "norm": norm,
    "embed": lambda p, name, form, x: p[name + "_weight"][x],
    "position": lambda p, name, form, x: x + p[name + "_table"],
    "attn": attention,
    "relu": plain(jax.nn.relu),
    "gelu": plain(lambda x: jax.nn.gelu(x, approximate=True)),
    "tanh": plain(jnp.tanh),
    "softmax": plain(jax.nn.softmax),
}


def forward(network, p, x):
    names = iter(l2.layers(network))

    def apply(node, x):
        if node.name == "sequential":
            for part in node.args:
                x = apply(part, x)
            return x
        if node.name == "residual":
            for part in node.args:
                x = x + apply(part, x)
            return x
        name, form = next(names)
        if form.name not in LAYERS:
            raise ValueError(f"layer '{form.name}' is not known to this peer")
        return LAYERS[form.name](p, name, form, x)

    return apply(network, x)


def prepare(job, arguments):
    program = job.program
    network = program.network
    if program.loss == "ce":  # takes what the last softmax takes
        network = l2.Form("sequential", network.args[:-1])
    start = dict(job.parameters)
    for name, form in l2.layers(network):
        if form.name == "attn":
            start[name + "_joined"] = np.concatenate([start.pop(f"{name}_{r}") for r in ("query", "key", "value")], 1)
    p = {name: jnp.asarray(value) for name, value in start.items()}
    update = program.update
    if update.name not in ("adam", "sgd") or set(update.named) != {"lr"}:
        raise ValueError(f"update '{update.name}' as written is not known to this peer")
    optimiser = (optax.adam if update.name == "adam" else optax.sgd)(update.named["lr"])
    state = optimiser.init(p)

    def loss(p, x, y):
        out = forward(network, p, x)
        if program.loss == "ce":
            return optax.softmax_cross_entropy_with_integer_labels(out.reshape(-1, program.classes), y).mean()
        return jnp.square(out - y).mean()

    def update_all(p, state, x, y):
        value, grads = jax.value_and_grad(loss)(p, x, y)
        updates, state = optimiser.update(grads, state)
        return optax.apply_updates(p, updates), state, value

    compiled = jax.jit(update_all, donate_argnums=(0, 1))
    held = [p, state]

    def step(x, y):
        held[0], held[1], value = compiled(held[0], held[1], x, y)
        return value.block_until_ready()

    def place(x, y):
        y = y.reshape(-1).astype(np.int32) if program.loss == "ce" else y
        return jnp.asarray(x).block_until_ready(), jnp.asarray(y).block_until_ready()

    return step, place


if __name__ == "__main__":
    jobs.train(f"jax {jax.__version__}", prepare)
