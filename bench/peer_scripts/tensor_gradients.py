#!/usr/bin/env python3
"""Records values and gradients of tensor ops, as jax computes them in f64.

Writes tests/layers/tensor/fixtures/{derived,composed}.json, which fixtures_test.cc compares
with the interpreter and with differentiation. Every input is an f32 number, so that the same
figures serve an f32 graph. A case's loss is sum(output * weight); a scalar output is the loss.

    python3 bench/peer_scripts/tensor_gradients.py        # needs jax and numpy
"""

import json
import os

import jax
import jax.numpy as jnp
import numpy as np

jax.config.update("jax_enable_x64", True)

OUT = os.path.join(os.path.dirname(__file__), "..", "..", "tests", "layers", "tensor", "fixtures")
rng = np.random.default_rng(20251129)


def normal(*shape):
    return rng.standard_normal(shape)


def positive(*shape):
    return np.abs(normal(*shape)) + 0.25


def array(a):
    a = np.asarray(a)
    return {"shape": list(a.shape), "values": [float(v) for v in a.reshape(-1)]}


def case(name, function, inputs, weighted=True):
    """Value and gradients of `function`, a jax function of the inputs."""
    inputs = [np.asarray(i, dtype=np.float32).astype(np.float64) for i in inputs]
    output = function(*inputs)
    weight = np.float64(np.float32(normal(*output.shape))) if weighted else np.ones(output.shape)
    loss = lambda *a: jnp.sum(function(*a) * weight)
    gradients = jax.grad(loss, argnums=tuple(range(len(inputs))))(*inputs)
    return {
        "name": name,
        "inputs": [array(i) for i in inputs],
        "weight": array(weight),
        "output": array(output),
        "gradients": [array(g) for g in gradients],
    }


def derived():
    x = normal(5, 7)
    y = normal(5, 7)
    # Far from 0 in both directions, and 0 itself.
    wide = np.array([-200, -90, -30, -10, -1.5, 0, 1.5, 10, 30, 90, 200], dtype=np.float64)
    moderate = np.array([-80, -10, -1.5, 0, 1.5, 10, 80], dtype=np.float64)
    gelu = lambda a: jax.nn.gelu(a, approximate=True)
    return [
        case("sub", lambda a, b: a - b, [x, y]),
        case("div", lambda a, b: a / b, [x, positive(5, 7)]),
        case("min", jnp.minimum, [x, y]),
        case("abs", jnp.abs, [x]),
        case("square", jnp.square, [x]),
        case("scale", lambda a, s: a * s, [x, np.float64(0.375)]),
        case("exp", jnp.exp, [x]),
        case("exp", jnp.exp, [moderate]),
        case("log", jnp.log, [positive(5, 7)]),
        case("rsqrt", jax.lax.rsqrt, [positive(5, 7)]),
        case("cos", jnp.cos, [4 * x]),
        case("sigmoid", jax.nn.sigmoid, [3 * x]),
        case("sigmoid", jax.nn.sigmoid, [wide]),
        case("tanh", jnp.tanh, [3 * x]),
        case("tanh", jnp.tanh, [wide]),
        case("softplus", jax.nn.softplus, [3 * x]),
        case("softplus", jax.nn.softplus, [wide]),
        case("relu", jax.nn.relu, [x]),
        case("relu", jax.nn.relu, [wide]),
        case("silu", jax.nn.silu, [3 * x]),
        case("silu", jax.nn.silu, [wide]),
        case("gelu", gelu, [2 * x]),
        case("gelu", gelu, [wide]),
        case("reduce_mean", jnp.mean, [x]),
        case("transpose", jnp.transpose, [x]),
    ]


def layernorm(x, gamma, beta, eps=1e-5):
    centred = x - jnp.mean(x, axis=-1, keepdims=True)
    variance = jnp.mean(centred * centred, axis=-1, keepdims=True)
    return centred * jax.lax.rsqrt(variance + eps) * gamma + beta


def cross_entropy(logits, target):
    return -jnp.mean(jnp.sum(target * jax.nn.log_softmax(logits, axis=-1), axis=-1))


def one_hot(rows, classes):
    return np.eye(classes)[rng.integers(0, classes, rows)]


def mlp(x, w1, b1, gamma, beta, w2, b2, target):
    h = jax.nn.gelu(layernorm(x @ w1 + b1, gamma, beta), approximate=True)
    return cross_entropy(h @ w2 + b2, target)


def composed():
    norm = [normal(4, 13), normal(13), normal(13)]
    return [
        case("layernorm", layernorm, norm),
        case("cross_entropy", cross_entropy, [normal(6, 10), one_hot(6, 10)], weighted=False),
        case("matmul", lambda a, b: a @ b, [normal(5, 7), normal(7, 3)]),
        case("matmul_left_transposed", lambda a, b: a.T @ b, [normal(7, 5), normal(7, 3)]),
        case("matmul_right_transposed", lambda a, b: a @ b.T, [normal(5, 7), normal(3, 7)]),
        case("matmul_batched", lambda a, b: a @ b, [normal(2, 5, 7), normal(2, 7, 3)]),
        case("linear", lambda a, b, c: a @ b + c, [normal(5, 7), normal(7, 3), normal(3)]),
        case(
            "mlp",
            mlp,
            [normal(8, 11), 0.3 * normal(11, 16), normal(16), positive(16), normal(16),
             0.25 * normal(16, 10), normal(10), one_hot(8, 10)],
            weighted=False,
        ),
    ]


def write(name, cases):
    with open(os.path.join(OUT, name), "w", encoding="utf-8") as file:
        file.write("[\n" + ",\n".join(json.dumps(c) for c in cases) + "\n]\n")


write("derived.json", derived())
write("composed.json", composed())
