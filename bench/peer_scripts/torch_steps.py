#!/usr/bin/env python3
"""Trains a job in PyTorch: `torch_steps.py FOLDER --steps N [--compile]`; see job.py.

As its users write it: one projection for query, key and value, fused scaled dot-product attention,
fused optimisers, images as NCHW. With --compile, network and loss are compiled by torch.compile.
"""

import job as jobs
import program as l2
import torch
import torch._dynamo  # optimisers import it when first used: a second that is no step's
import torch.nn.functional as F


def parameter(values):
    return torch.nn.Parameter(torch.from_numpy(values).contiguous())


def linear(p, name, form, state):
    weight = torch.from_numpy(p[name + "_weight"])
    if state["planes"]:  # rows of [h, w, c] become rows of [c, h, w]
        h, w, c = state["planes"]
        weight = weight.reshape(h, w, c, -1).permute(2, 0, 1, 3).reshape(h * w * c, -1)
        state["planes"] = None
    w = torch.nn.Parameter(weight.T.contiguous())
    b = parameter(p[name + "_bias"])
    n = form.args[0]
    flat = lambda x: x if x.shape[-1] == n and x.dim() < 4 else x.flatten(1)
    return [w, b], lambda x: F.linear(flat(x), w, b)


def conv(p, name, form, state):
    w = torch.nn.Parameter(torch.from_numpy(p[name + "_weight"]).permute(3, 2, 0, 1).contiguous())
    b = parameter(p[name + "_bias"])
    stride, padding = form.named.get("stride", 1), form.named.get("padding", 0)
    h, w_, _ = state["planes"]
    shrink = lambda n: (n + 2 * padding - form.named["kernel"]) // stride + 1
    state["planes"] = (shrink(h), shrink(w_), form.args[1])
    image = lambda x: x.unsqueeze(1) if x.dim() == 3 else x
    return [w, b], lambda x: F.conv2d(image(x), w, b, stride, padding)


def pool(p, name, form, state):
    kernel = form.args[1]
    h, w, c = state["planes"]
    state["planes"] = (h // kernel, w // kernel, c)
    return [], lambda x: (F.max_pool2d if form.args[0].name == "max" else F.avg_pool2d)(x, kernel)


def norm(p, name, form, state):
    if form.args[0].name != "layer":
        raise ValueError(f"norm({form.args[0].name}) is not known to this peer")
    gain, offset = parameter(p[name + "_gain"]), parameter(p[name + "_offset"])
    return [gain, offset], lambda x: F.layer_norm(x, gain.shape, gain, offset, 1e-5)


def embed(p, name, form, state):
    w = parameter(p[name + "_weight"])
    return [w], lambda x: F.embedding(x, w)


def position(p, name, form, state):
    table = parameter(p[name + "_table"])
    return [table], lambda x: x + table


def attention(p, name, form, state):
    heads, dim = form.args
    causal = "causal" in form.named and form.named["causal"].name == "true"
    joined = torch.cat([torch.from_numpy(p[f"{name}_{r}"]).T for r in ("query", "key", "value")])
    w = torch.nn.Parameter(joined.contiguous())
    out = torch.nn.Parameter(torch.from_numpy(p[name + "_out"]).T.contiguous())
    bias = parameter(p[name + "_bias"])

    def apply(x):
        n, t, _ = x.shape
        q, k, v = F.linear(x, w).view(n, t, 3, heads, dim // heads).permute(2, 0, 3, 1, 4)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=causal)
        return F.linear(y.transpose(1, 2).reshape(n, t, dim), out, bias)

    return [w, out, bias], apply


def plain(function):
    return lambda p, name, form, state: ([], function)


LAYERS = {
    "linear": linear,
    "conv": conv,
    "pool": pool,
    "norm": norm,
    "embed": embed,
    "position": position,
    "attn": attention,
    "relu": plain(F.relu),
    "gelu": plain(lambda x: F.gelu(x, approximate="tanh")),
    "tanh": plain(torch.tanh),
    "softmax": plain(lambda x: F.softmax(x, -1)),
}


def build(job):
    names = iter(l2.layers(job.program.network))
    sample = job.program.field(job.program.input).shape
    state = {"planes": (*sample, 1) if len(sample) == 2 else sample if len(sample) == 3 else None}
    if not any(f.name == "conv" for _, f in l2.layers(job.program.network)):
        state["planes"] = None
    parameters = []

    def make(node):
        if node.name in ("sequential", "residual"):
            parts = [make(n) for n in node.args]
            if node.name == "sequential":
                return lambda x: chain(parts, x)
            return lambda x: residual(parts, x)
        name, form = next(names)
        if form.name not in LAYERS:
            raise ValueError(f"layer '{form.name}' is not known to this peer")
        mine, function = LAYERS[form.name](job.parameters, name, form, state)
        parameters.extend(mine)
        return function

    def chain(parts, x):
        for part in parts:
            x = part(x)
        return x

    def residual(parts, x):
        for part in parts:
            x = x + part(x)
        return x

    root = job.program.network
    if job.program.loss == "ce":  # takes what the last softmax takes
        root = l2.Form("sequential", root.args[:-1])
    return make(root), parameters


def prepare(job, arguments):
    torch.set_num_threads(arguments.threads)
    forward, parameters = build(job)
    classes = job.program.classes

    def loss(x, y):
        out = forward(x)
        if job.program.loss == "ce":
            return F.cross_entropy(out.reshape(-1, classes), y)
        return F.mse_loss(out, y)

    if arguments.compile:
        loss = torch.compile(loss)
    update = job.program.update
    if update.name == "adam" and set(update.named) == {"lr"}:
        optimiser = torch.optim.Adam(parameters, lr=update.named["lr"], fused=True)
    elif update.name == "sgd" and set(update.named) == {"lr"}:
        optimiser = torch.optim.SGD(parameters, lr=update.named["lr"], fused=True)
    else:
        raise ValueError(f"update '{update.name}' as written is not known to this peer")

    def step(x, y):
        optimiser.zero_grad(set_to_none=True)
        value = loss(x, y)
        value.backward()
        optimiser.step()
        return value.detach()

    def place(x, y):
        x = torch.from_numpy(x)
        y = torch.from_numpy(y)
        x = x if x.is_floating_point() else x.long()
        return x, y.long().reshape(-1) if job.program.loss == "ce" else y

    return step, place


if __name__ == "__main__":
    jobs.train(f"torch {torch.__version__}", prepare)
