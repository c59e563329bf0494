#!/usr/bin/env python3
"""Trains a job of dense layers in tinygrad: `tinygrad_steps.py FOLDER --steps N`; see job.py."""

import os

os.environ.setdefault("DEV", "CPU")

import importlib.metadata  # noqa: E402

import job as jobs  # noqa: E402
import program as l2  # noqa: E402
from tinygrad import Context, Tensor, TinyJit, nn  # noqa: E402

PLAIN = {"relu": Tensor.relu, "gelu": Tensor.gelu, "tanh": Tensor.tanh}


def norm(x, gain, offset):
    return x.layernorm(eps=1e-5) * gain + offset


def prepare(job, arguments):
    program = job.program
    p = {name: Tensor(value).realize() for name, value in job.parameters.items()}
    layers = l2.layers(program.network)[:-1]
    for _, form in layers:
        if form.name not in ("linear", "norm", *PLAIN):
            raise ValueError(f"layer '{form.name}' is not known to this peer")
    if program.loss != "ce" or program.update.name not in ("adam", "sgd"):
        raise ValueError("loss or update is not known to this peer")

    def loss(x, y):
        x = x.flatten(1)
        for name, form in layers:
            if form.name == "linear":
                x = x @ p[name + "_weight"] + p[name + "_bias"]
            elif form.name == "norm":
                x = norm(x, p[name + "_gain"], p[name + "_offset"])
            else:
                x = PLAIN[form.name](x)
        return x.sparse_categorical_crossentropy(y)

    rate = program.update.named["lr"]
    make = nn.optim.Adam if program.update.name == "adam" else nn.optim.SGD
    optimiser = make(list(p.values()), lr=rate)

    @TinyJit
    def compiled(x, y):
        optimiser.zero_grad()
        value = loss(x, y)
        value.backward()
        return value.realize(*optimiser.schedule_step())

    def step(x, y):
        with Context(TRAINING=1):
            return compiled(x, y).item()

    def place(x, y):
        return Tensor(x).realize(), Tensor(y.reshape(-1).astype("int32")).realize()

    return step, place


if __name__ == "__main__":
    jobs.train(f"tinygrad {importlib.metadata.version('tinygrad')}", prepare)
