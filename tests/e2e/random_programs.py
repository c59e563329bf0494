"""Random specifications (L3) and methods (L2): any combination of the closed forms.

The forms are drawn without care for whether they go together. Sizes are small, so that whatever
can train does so in moments.
"""

ACTIVATIONS = ["relu", "gelu", "silu", "swish", "tanh", "sigmoid", "act(gelu)"]


class Specification:
    """The L3 half: one data set, one model, one or two terms."""

    def __init__(self, draw):
        self.draw = draw
        self.fields = []
        self.input = self.domain(["tensor", "image", "sequence", "tokens", "table", "scalar"])
        self.output = self.domain(["dist", "dist", "tensor", "scalar", "sequence", "labels"])
        if self.input[0] in ("sequence", "tokens") and draw.random() < 0.8:  # as long as the input
            self.output = (self.output[0], self.input[1], self.output[2])
        self.fields.append(("x", self.text(self.input)))
        self.fields.append(("y", self.target(self.output)))

    def domain(self, kinds):
        draw = self.draw
        kind = draw.choice(kinds)
        return (kind, draw.choice([1, 2, 3, 5, 8]), draw.choice([1, 2, 3, 4]))

    def text(self, domain):
        kind, n, c = domain
        return {
            "tensor": f"tensor(f32, [{n}])",
            "image": f"tensor(f32, [{n + 3}, {n + 3}, {c}])",
            "sequence": f"sequence({'scalar(f32)' if c == 1 else f'tensor(f32, [{c}])'}, {n + 1})",
            "tokens": f"sequence(scalar(u8), {n + 1})",
            "table": "table(a: scalar(f32), b: scalar(f32), c: scalar(i32))",
            "scalar": "scalar(f32)",
            "dist": f"dist({n + 1})",
            "labels": f"sequence(dist({c + 1}), {n + 1})",
        }[kind]

    def target(self, domain):
        kind, n, _ = domain
        if kind == "dist":
            return self.draw.choice(["scalar(u8)", "tensor(u8, [1])", self.text(domain)])
        if kind == "labels":
            return f"sequence(scalar(u8), {n + 1})"
        return self.text(domain)

    def properties(self, often=1.0):
        draw = self.draw
        found = []
        for text in [
            f"depth({draw.choice([1, 2, 3, 5])})",
            f"width({draw.choice([1, 8, 24])})",
            "causal",
            "autoregressive",
            f"equivariant({draw.choice(['translation', 'permutation', 'c4'])})",
            f"param_budget({draw.choice([10, 500, 20000])})",
            "latency_budget(1ms)",
        ]:
            if draw.random() < often * (0.6 if text[0] in "dw" else 0.15):
                found.append(text)
        return ", ".join(found)

    def terms(self):
        draw = self.draw
        y = "m.out"
        terms = [f"fit: divergence({y}, d.y), weight: {draw.choice(['1.0', '0.5'])}"]
        for text in [
            "small: norm(m.params, p=2), weight: 1e-3",
            "flat: norm(m.activations, p=1), weight: 1e-4",
            "low: norm(m.out, p=3), weight: 0.01",
            "range: constraint(max(m.out) <= 2), weight: 0.1",
            "own: custom(own, reads: [m.out], value: mean(m.out * m.out)), weight: 0.1",
        ]:
            if draw.random() < 0.15:
                terms.append(text)
        return "\n    ".join(terms)

    def program(self, often=1.0):
        fields = "\n    ".join(f"{name} : {text}" for name, text in self.fields)
        goal = self.draw.choice(["minimize(l)"] * 8 + ["maximize(l)", "minimize(l.fit)"])
        return (
            f"data d {{\n    {fields}\n}}\n\nmodel m {{\n    in: d.x\n    out: {self.text(self.output)}\n"
            f"    properties: [{self.properties(often)}]\n}}\n\nloss l {{\n    {self.terms()}\n"
            f"    combine: weighted_sum\n}}\n\ngoal: {goal}\n"
        )


class Method:
    """The L2 half: a network that often has the right shapes, and everything else at random."""

    def __init__(self, spec):
        self.spec, self.draw = spec, spec.draw

    def network(self):
        draw, (kind, n, c) = self.draw, self.spec.input
        layers = []
        if kind == "tokens":
            layers.append(f"embed(256, {2 * c})")
            positions, channels = n + 1, 2 * c
        elif kind == "image":
            positions, channels = None, c
        elif kind == "sequence":
            positions, channels = n + 1, c
        else:
            positions, channels = None, {"tensor": n, "table": 3, "scalar": 1}[kind]
        side = n + 3 if kind == "image" else 0
        for _ in range(draw.randrange(4)):
            pick = draw.randrange(12)
            wide = draw.choice([2, 4, 6])
            if pick < 3 and side == 0:
                layers.append(f"linear({channels}, {wide})")
                channels = wide
            elif pick == 3:
                layers.append(draw.choice(["norm(layer)", "norm(rms)", "norm(group(1))"]))
            elif pick == 4:
                layers.append(f"dropout({draw.choice(['0.0', '0.3'])})")
            elif pick == 5 and side == 0:
                layers.append(
                    f"residual [ sequential [ linear({channels}, {wide}), {draw.choice(ACTIVATIONS)}, "
                    f"linear({wide}, {channels}) ] ]"
                )
            elif pick == 6 and positions:
                layers.append(f"attn(1, {channels}, causal: {draw.choice(['true', 'false'])})")
            elif pick == 7 and (side or positions):
                layers.append(f"conv({channels}, {wide}, kernel: 3, padding: 1)")
                channels = wide
            elif pick == 8 and (side or positions):
                layers.append(f"pool({draw.choice(['avg', 'max'])}, {draw.choice([1, 2])})")
                side, positions = (side // 2, positions and max(1, positions // 2))
            elif pick == 9 and side == 0 and not positions:
                layers.append(
                    f"mixture(experts: [linear({channels}, {wide}), linear({channels}, {wide})], "
                    f"gate: sequential [ linear({channels}, 2), softmax ])"
                )
                channels = wide
            elif pick == 10 and side == 0 and not positions:
                layers.append(
                    f"recurrent(cell: sequential [ linear({channels}, {channels}), tanh ], steps: 3)"
                )
            elif pick == 11 and positions:
                layers.append(
                    f"graph(nodes: linear({channels}, {wide}), edges: {draw.choice(['chain', 'ring', 'full'])})"
                )
                channels = wide
            else:
                layers.append(draw.choice(ACTIVATIONS))
        elements = channels * (side * side if side else positions or 1)
        out_kind, n, c = self.spec.output
        if out_kind in ("dist", "tensor", "scalar"):
            layers.append(f"linear({elements}, {dict(dist=n + 1, tensor=n, scalar=1)[out_kind]})")
        else:
            wide = c if out_kind == "sequence" else c + 1
            if positions == n + 1:
                layers.append(f"linear({channels}, {wide})")
            else:
                layers += [f"linear({elements}, {wide * (n + 1)})", f"positions({n + 1})"]
        if out_kind in ("dist", "labels"):
            layers.append("softmax")
        return "sequential [ " + ", ".join(layers) + " ]"

    def sample(self, depth=0):
        draw = self.draw
        shuffle = f"epoch_shuffle(batch: {draw.choice([1, 3, 8])}, drop_last: {draw.choice(['true', 'false'])})"
        return draw.choice(
            [shuffle] * 5
            + [
                f"stream_window(window: {self.spec.input[1] + 1}, stride: 2, batch: 4)",
                "curriculum([{ filter: max(d.x) < 0, duration: 2 }, { filter: max(d.x) >= 0, duration: 3 }], batch: 4)",
                f"replay(buffer: 16, priority: {draw.choice(['uniform', 'recent'])}, batch: 4)",
                f"distributed_shard(shards: 2, method: {shuffle})",
            ]
        )

    def backward(self):
        draw = self.draw
        plain = ["autodiff(mode: reverse)"] * 5 + [
            "autodiff(mode: forward)",
            "straight_through(estimator: clipped)",
            "dfa(feedback_dim: 3)",
            f"reinforce(baseline: {draw.choice(['mean', 'none'])})",
            "zeroth_order(samples: 2, sigma: 0.01)",
            "evolution(pop: 4, sigma: 0.05)",
        ]
        if draw.random() < 0.1:
            return (
                f"hybrid(primary: {draw.choice(plain)}, aux: {draw.choice(plain)}, "
                f"blend: {draw.choice(['constant', 'linear', 'cosine'])})"
            )
        return draw.choice(plain)

    def update(self, depth=0):
        draw = self.draw
        if depth < 3 and draw.random() < 0.35:
            inner = self.update(depth + 1)
            return draw.choice(
                [
                    f"schedule(warmup: 2, decay: {draw.choice(['constant', 'linear', 'cosine'])}, inner: {inner})",
                    f"gradient_clip(max_norm: 1, inner: {inner})",
                    f"ema(decay: 0.9, inner: {inner})",
                ]
            )
        return draw.choice(
            [
                "sgd(lr: 0.01)",
                "sgd(lr: 0.01, momentum: 0.9)",
                "adam(lr: 1e-3)",
                "muon(lr: 0.01)",
                "lion(lr: 1e-3)",
            ]
        )

    def loss(self):
        return self.draw.choice(
            {
                "dist": ["ce", "ce(label_smoothing: 0.1)", "ce(ignore_index: 1)", "kl", "error"],
                "labels": ["ce", "ce(label_smoothing: 0.1)", "error"],
            }.get(self.spec.output[0], ["mse", "mae", "huber(delta: 0.5)", "bce"])
        )

    def phases(self):
        draw = self.draw
        return draw.choice(
            [
                "main(steps: 3)",
                "main(epochs: 1)",
                "a(steps: 2), b(steps: 2, update: sgd(lr: 1e-3))",
                "a(steps: 2), b(steps: 2, frozen: [linear1])",
                "a(steps: 1, eval: 0), b(epochs: 1, checkpoint: 0)",
            ]
        )

    def program(self):
        text = self.spec.program(often=0.1)
        return (
            f"{text}\nmethods for m {{\n    sample: {self.sample()}\n    infer: {self.network()}\n"
            f"    backward: {self.backward()}\n    update: {self.update()}\n    loss: {self.loss()}\n"
            f"    phases [ {self.phases()} ]\n}}\n"
        )
