#!/usr/bin/env python3
"""Records what layers, losses and updates of L2 compute, as jax and optax compute it in f64.

Writes tests/layers/l2/fixtures/{layers,losses,updates}.json, which fixtures_test.cc compares with
the expansions of the entries, forward and gradients, in f64 and in f32. Every input is an f32
number, so that the same figures serve an f32 graph.

    python3 bench/peer_scripts/method_fixtures.py        # needs jax, optax and numpy
"""

import json
import os

import jax
import jax.numpy as jnp
import numpy as np
import optax

jax.config.update("jax_enable_x64", True)

OUT = os.path.join(os.path.dirname(__file__), "..", "..", "tests", "layers", "l2", "fixtures")
rng = np.random.default_rng(20261129)


def f32(a):
    return np.asarray(a, dtype=np.float32).astype(np.float64)


def normal(*shape, scale=1.0):
    return f32(scale * rng.standard_normal(shape))


def array(a):
    a = np.asarray(a, dtype=np.float64)
    return {"shape": list(a.shape), "values": [float(v) for v in a.reshape(-1)]}


def layer(form, function, x, parameters=(), through_x=True):
    """Value and gradients of a layer: of sum(output * weight), by x and each parameter."""
    weight = normal(*function(x, *parameters).shape)
    loss = lambda *a: jnp.sum(function(*a) * weight)
    first = 0 if through_x else 1
    inputs = [x, *parameters]
    gradients = jax.grad(loss, argnums=tuple(range(first, len(inputs))))(*inputs) if len(inputs) > first else ()
    return {
        "form": form,
        "inputs": [array(i) for i in inputs],
        "weight": array(weight),
        "output": array(function(*inputs)),
        "through_x": through_x,
        "gradients": [array(g) for g in gradients],
    }


def conv(x, w, b, stride, padding):
    axes = w.ndim - 2
    letters = "HW"[:axes]
    numbers = ("N" + letters + "C", letters + "IO", "N" + letters + "C")
    y = jax.lax.conv_general_dilated(x, w, (stride,) * axes, [(padding, padding)] * axes, dimension_numbers=numbers)
    return y + b


def attention(x, q, k, v, o, b, heads, causal):
    n, t, d = x.shape
    split = lambda a: (x @ a).reshape(n, t, heads, d // heads).transpose(0, 2, 1, 3)
    # By hand: jax.nn.dot_product_attention takes its softmax in f32.
    score = split(q) @ split(k).transpose(0, 1, 3, 2) / np.sqrt(d // heads)
    if causal:
        score = jnp.where(np.tril(np.ones((t, t), bool)), score, -jnp.inf)
    y = jax.nn.softmax(score, -1) @ split(v)
    return y.transpose(0, 2, 1, 3).reshape(n, t, d) @ o + b


def normalise(x, axes, centre=True):
    if centre:
        return (x - x.mean(axes, keepdims=True)) / jnp.sqrt(x.var(axes, keepdims=True) + 1e-5)
    return x / jnp.sqrt((x * x).mean(axes, keepdims=True) + 1e-5)


def group_norm(x, gain, offset, groups):
    n, c = x.shape[0], x.shape[-1]
    split = x.reshape(n, -1, groups, c // groups)
    return normalise(split, (1, 3)).reshape(x.shape) * gain + offset


def pool(x, kernel, reduce):
    start, fold = (-jnp.inf, jax.lax.max) if reduce == "max" else (0.0, jax.lax.add)
    window = (1,) + (kernel,) * (x.ndim - 2) + (1,)
    y = jax.lax.reduce_window(x, start, fold, window, window, "VALID")
    return y if reduce == "max" else y / kernel ** (x.ndim - 2)


def sinusoid(n, d):
    p = np.arange(n)[:, None] / 10000.0 ** (2 * (np.arange(d) // 2) / d)[None, :]
    return np.where(np.arange(d) % 2 == 1, np.cos(p), np.sin(p))


def layers():
    tokens = np.asarray(rng.integers(0, 11, (3, 5)), dtype=np.float64)
    linear = lambda x, w, b: x @ w + b
    cases = [
        layer("linear(6, 5)", linear, normal(7, 6), [normal(6, 5), normal(5)]),
        layer("linear(6, 1)", linear, normal(1, 6), [normal(6, 1), normal(1)]),
        layer("linear(4, 3)", linear, normal(2, 5, 4), [normal(4, 3), normal(3)]),
        layer("conv(1, 3, kernel: 3)", lambda x, w, b: conv(x[..., None], w, b, 1, 0), normal(2, 6, 7),
              [normal(3, 3, 1, 3), normal(3)]),
        layer("conv(5, 4, kernel: 3, padding: 1)", lambda x, w, b: conv(x, w, b, 1, 1), normal(2, 5, 4, 5),
              [normal(3, 3, 5, 4), normal(4)]),
        layer("conv(2, 3, kernel: 3, stride: 2, padding: 1)", lambda x, w, b: conv(x, w, b, 2, 1),
              normal(2, 7, 6, 2), [normal(3, 3, 2, 3), normal(3)]),
        layer("conv(6, 2, kernel: 2, stride: 2)", lambda x, w, b: conv(x, w, b, 2, 0), normal(1, 5, 5, 6),
              [normal(2, 2, 6, 2), normal(2)]),
        layer("conv(4, 3, kernel: 3, padding: 1)", lambda x, w, b: conv(x, w, b, 1, 1), normal(2, 7, 4),
              [normal(3, 4, 3), normal(3)]),
        layer("norm(layer)", lambda x, g, o: normalise(x, -1) * g + o, normal(4, 6), [normal(6), normal(6)]),
        layer("norm(layer)", lambda x, g, o: normalise(x, -1) * g + o, normal(2, 3, 1), [normal(1), normal(1)]),
        layer("norm(rms)", lambda x, g: normalise(x, -1, False) * g, normal(4, 6), [normal(6)]),
        layer("norm(group(2))", lambda x, g, o: group_norm(x, g, o, 2), normal(2, 3, 3, 6), [normal(6), normal(6)]),
        layer("relu", jax.nn.relu, normal(3, 5)),
        layer("gelu", lambda x: jax.nn.gelu(x, approximate=True), normal(3, 5)),
        layer("silu", jax.nn.silu, normal(3, 5)),
        layer("swish", jax.nn.silu, normal(3, 5)),
        layer("tanh", jnp.tanh, normal(3, 5)),
        layer("sigmoid", jax.nn.sigmoid, normal(3, 5)),
        layer("softmax", jax.nn.softmax, normal(3, 5)),
        layer("softmax", jax.nn.softmax, normal(2, 3, 4)),
        layer("embed(11, 4)", lambda x, w: w[jnp.asarray(x, int)], tokens, [normal(11, 4)], through_x=False),
        layer("position(learned, 7)", lambda x, t: x + t[:5], normal(2, 5, 4), [normal(7, 4)]),
        layer("position(sinusoid, 5)", lambda x: x + sinusoid(5, 4), normal(2, 5, 4)),
        layer("pool(avg, 2)", lambda x: pool(x, 2, "avg"), normal(2, 5, 4, 3)),
        layer("pool(max, 2)", lambda x: pool(x, 2, "max"), normal(2, 5, 4, 3)),
        layer("pool(max, 3)", lambda x: pool(x, 3, "max"), normal(2, 7, 3)),
    ]
    for causal in (False, True):
        form = "attn(2, 6, causal: true)" if causal else "attn(2, 6)"
        cases.append(layer(form, lambda x, q, k, v, o, b, c=causal: attention(x, q, k, v, o, b, 2, c),
                           normal(2, 5, 6), [normal(6, 6, scale=0.4) for _ in range(4)] + [normal(6)]))
    return cases


def loss(form, function, output, target, kind):
    """The rows' losses and the gradient of their sum by `output`: logits where kind is no tensor."""
    rows = function(output, target)
    gradient = jax.grad(lambda o: jnp.sum(function(o, target)))(output)
    return {"form": form, "kind": kind, "output": array(output), "target": array(target), "rows": array(rows),
            "gradient": array(gradient)}


def losses():
    logits, labels = normal(5, 4), np.asarray(rng.integers(0, 4, 5), dtype=np.float64)
    weights = np.abs(normal(5, 4)) + 0.1
    spread = f32(weights / weights.sum(-1, keepdims=True))
    sequence, tokens = normal(3, 6, 4), np.asarray(rng.integers(0, 4, (3, 6)), dtype=np.float64)
    x, y = normal(4, 3, 2), normal(4, 3, 2)
    p = f32(jax.nn.sigmoid(normal(4, 3, 2)))
    index = lambda t: jnp.asarray(t, int)
    ce = lambda o, t: optax.softmax_cross_entropy_with_integer_labels(o, index(t))
    smooth = lambda o, t: optax.softmax_cross_entropy(o, optax.smooth_labels(jax.nn.one_hot(index(t), 4), 0.1))
    return [
        loss("ce", ce, logits, labels, "label"),
        loss("ce", lambda o, t: ce(o, t).mean(-1), sequence, tokens, "label"),
        loss("ce(label_smoothing: 0.1)", smooth, logits, labels, "label"),
        loss("ce", optax.softmax_cross_entropy, logits, spread, "distribution"),
        loss("kl", lambda o, t: optax.losses.kl_divergence(jax.nn.log_softmax(o), t), logits, spread, "distribution"),
        loss("error", lambda o, t: 1 - jnp.take_along_axis(jax.nn.softmax(o), index(t)[:, None], 1)[:, 0], logits,
             labels, "label"),
        loss("mse", lambda o, t: ((o - t) ** 2).mean((1, 2)), x, y, "tensor"),
        loss("mae", lambda o, t: jnp.abs(o - t).mean((1, 2)), x, y, "tensor"),
        loss("huber(delta: 0.5)", lambda o, t: optax.huber_loss(o, t, delta=0.5).mean((1, 2)), x, y, "tensor"),
        loss("bce", lambda o, t: optax.sigmoid_binary_cross_entropy(o, t).mean((1, 2)), x, p, "tensor"),
    ]


def muon(lr, steps, momentum):
    """Jordan et al. 2024 for matrices [in, out]; vectors step along u of root mean square 1."""

    def direction(u):
        if u.ndim < 2:
            return u / (jnp.linalg.norm(u) + 1e-7) * np.sqrt(u.size)
        r, c = u.shape
        x = u.T if r > c else u
        x = x / (jnp.linalg.norm(x) + 1e-7)
        for _ in range(steps):
            a = x @ x.T
            x = 3.4445 * x + (-4.7750 * a + 2.0315 * (a @ a)) @ x
        return (x.T if r > c else x) * np.sqrt(max(1.0, c / r))

    def update(grads, state, params=None):
        state = {k: momentum * state[k] + g for k, g in grads.items()}
        return {k: -lr * direction(g + momentum * state[k]) for k, g in grads.items()}, state

    return optax.GradientTransformation(lambda params: {k: jnp.zeros_like(p) for k, p in params.items()}, update)


def updates():
    start = {"a": normal(3, 5), "b": normal(5)}
    gradients = [{k: normal(*p.shape) for k, p in start.items()} for _ in range(10)]

    def case(form, transform, mean=None):
        params, state, history, ema = dict(start), transform.init(start), [], None
        for i, g in enumerate(gradients):
            change, state = transform.update(g, state, params)
            params = optax.apply_updates(params, change)
            entry = {k: array(p) for k, p in params.items()}
            if mean is not None:
                zero = {k: jnp.zeros_like(p) for k, p in params.items()}
                ema = {k: mean * (ema or zero)[k] + (1 - mean) * params[k] for k in params}
                entry.update({k + "_ema": array(e) for k, e in ema.items()})
            history.append(entry)
        return {"form": form, "total": 10, "history": history}

    cosine = lambda s: 0.1 * min((s + 1) / 3, 1) * 0.5 * (1 + np.cos(np.pi * min(max((s - 3) / 7, 0), 1)))

    def scheduled(s):
        return jnp.asarray([cosine(i) for i in range(11)])[s]

    return {
        "start": {k: array(p) for k, p in start.items()},
        "gradients": [{k: array(g) for k, g in step.items()} for step in gradients],
        "cases": [
            case("sgd(lr: 0.1)", optax.sgd(0.1)),
            case("sgd(lr: 0.1, momentum: 0.9)", optax.sgd(0.1, momentum=0.9)),
            case("adam(lr: 0.01)", optax.adam(0.01)),
            case("adam(lr: 0.05, beta1: 0.5, beta2: 0.9, eps: 1e-3)", optax.adam(0.05, 0.5, 0.9, 1e-3)),
            case("lion(lr: 0.01)", optax.lion(0.01, weight_decay=0.0)),
            case("lion(lr: 0.01, beta1: 0.5, beta2: 0.7)", optax.lion(0.01, 0.5, 0.7, weight_decay=0.0)),
            case("muon(lr: 0.02)", muon(0.02, 5, 0.95)),
            case("muon(lr: 0.02, ns_steps: 3, momentum: 0.5)", muon(0.02, 3, 0.5)),
            case("schedule(warmup: 3, decay: cosine, inner: sgd(lr: 0.1))", optax.sgd(scheduled)),
            case("gradient_clip(max_norm: 2, inner: sgd(lr: 0.1))",
                 optax.chain(optax.clip_by_global_norm(2.0), optax.sgd(0.1))),
            case("ema(decay: 0.8, inner: sgd(lr: 0.1))", optax.sgd(0.1), mean=0.8),
        ],
    }


def main():
    os.makedirs(OUT, exist_ok=True)
    for name, content in (("layers", layers()), ("losses", losses()), ("updates", updates())):
        with open(os.path.join(OUT, name + ".json"), "w", encoding="utf-8") as file:
            json.dump(content, file, separators=(",", ":"))
            file.write("\n")


if __name__ == "__main__":
    main()
