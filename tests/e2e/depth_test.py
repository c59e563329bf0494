"""Deep networks compile within seconds: the search looks at less of them, and says so."""

import os
import time
import unittest

from harness import L3cTest

PROGRAM = """data d {{
    x : {domain}
    y : {target}
}}
model m {{
    in:  d.x
    out: {out}
}}
loss o {{ ce: divergence(m.out, d.y), weight: 1.0  combine: weighted_sum }}
goal: minimize(o)
methods for m {{
    sample: epoch_shuffle(batch: 32)
    infer: sequential [ {layers} ]
    backward: autodiff(mode: reverse)
    update: adam(lr: 1e-3)
    phases [ main(epochs: 1) ]
}}
"""


def flat(*layers):
    return PROGRAM.format(domain="tensor(f32, [32])", target="tensor(u8, [1])", out="dist(10)",
                          layers=", ".join(["linear(32, 32)", *layers, "linear(32, 10)", "softmax"]))


def transformer(layers):
    block = ("residual [ sequential [ norm(layer), attn(4, 64, causal: true) ], sequential [ "
             "norm(layer), linear(64, 256), gelu, linear(256, 64) ] ]")
    sequence = "sequence(scalar(u8), 32)"
    return PROGRAM.format(domain=sequence, target=sequence, out="sequence(dist(65), 32)", layers=", ".join(
        ["embed(65, 64)", "position(learned, 32)", *[block] * layers, "norm(layer)", "linear(64, 65)", "softmax"]))


RESIDUAL = "residual [ sequential [ norm(layer), linear(32, 32), gelu, linear(32, 32) ] ]"


class Depth(L3cTest):
    def compiled(self, text, *args):
        path = self.write("deep.l2", text)
        return self.l3c("lower", path, "--synthetic", "--no-cache", "--to", "l0", *args)

    def test_gelus_in_a_row(self):
        for search in ("egraph", "greedy"):
            result = self.compiled(flat(*["gelu"] * 28), "--search", search)
            self.assertIn("deep.l2: warning: 'train' has", result.err)
            self.assertIn("--budget nodes=N", result.err)

    # Of a budget that is too small for anything fused there is a plan still.
    def test_few_nodes(self):
        result = self.compiled(flat(*["gelu"] * 4), "--budget", "nodes=100", "--explain")
        self.assertIn("every operation is a kernel of its own", result.err)
        self.assertIn("  cut       'train'", result.err)

    @unittest.skipUnless(os.environ.get("L3C_FULL"), "nightly")
    def test_any_kind(self):
        for name, text in (("300 gelus", flat(*["gelu"] * 300)),
                           ("200 linear and gelu", flat(*["linear(32, 32), gelu"] * 200)),
                           ("100 residual blocks", flat(*[RESIDUAL] * 100)),
                           ("200 norms", flat(*["norm(layer)"] * 200)),
                           ("48 layers of a transformer", transformer(48))):
            for search in ("egraph", "greedy"):
                with self.subTest(name, search=search):
                    begun = time.process_time() + sum(os.times()[2:4])
                    self.compiled(text, "--search", search)
                    spent = time.process_time() + sum(os.times()[2:4]) - begun
                    self.assertLess(spent, 20)


if __name__ == "__main__":
    unittest.main()
