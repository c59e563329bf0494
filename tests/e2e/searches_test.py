"""The three searches over the workloads of the benchmarks, at small extents: what each decides by its own costs."""

import os
import re
import sys
import unittest

from harness import ROOT, L3cTest

sys.path.insert(0, str(ROOT / "bench/peer_scripts"))

import workloads  # noqa: E402

# The extents of each workload, and what stands in their place.
SMALLER = {
    "mlp_small_adam": {784: 784, 256: 48, 128: 16},
    "mlp_small_sgd": {784: 784, 256: 48, 128: 16},
    "mlp_1024": {784: 784, 1024: 96, 512: 48},
    "cnn": {32: 4, 64: 8, 3136: 392, 128: 16},
    "gpt_small": {128: 32, 512: 128, 64: 16, 16: 4},
    "gpt": {384: 48, 1536: 192, 256: 32, 8: 2},
    "gpt2_block": {768: 96, 3072: 384, 256: 32},
    "wide_4096": {4096: 512},
    "layer_norm": {512: 64, 768: 96},
    "softmax": {512: 64},
    "cross_entropy": {256: 64, 1024: 128},
}


def smaller(name):
    extents = SMALLER[name]
    text = (workloads.FOLDER / f"{name}.l2").read_text()
    return re.sub(r"\b\d+\b", lambda m: str(extents.get(int(m[0]), int(m[0]))), text)


class Searches(L3cTest):
    def figures(self, file, search, *options):
        events = self.l3c("optimize", file, "--synthetic", "--no-cache", "--json", "--brief", "--search", search,
                          *options).events()
        plan = next(e for e in events if e["event"] == "plan" and e["split"] == "train")
        return plan | {"predicted": next(e["step_time"] for e in events if e["event"] == "cost")}

    def test_what_looks_at_more_is_never_dearer(self):
        for name in workloads.WORKLOADS:
            file = self.write(f"{name}.l2", smaller(name))
            greedy, egraph = (self.figures(file, mode) for mode in ("greedy", "egraph"))
            with self.subTest(name):
                self.assertLessEqual(egraph["predicted"], greedy["predicted"])

    def test_greedy_computes_a_product_once_for_all_that_need_it(self):
        for name in ("mlp_1024", "gpt2_block"):
            file = self.write(f"{name}.l2", smaller(name))
            off, greedy = (self.figures(file, mode) for mode in ("off", "greedy"))
            with self.subTest(name):
                self.assertLessEqual(greedy["predicted"], off["predicted"])
                self.assertLessEqual(greedy["multiply_adds"], 1.02 * off["multiply_adds"])

    @unittest.skipUnless(os.environ.get("L3C_FULL"), "nightly")
    def test_nor_is_it_within_a_bound_on_memory(self):
        file = self.write("gpt.l2", smaller("gpt"))
        events = self.l3c("optimize", file, "--synthetic", "--no-cache", "--json", "--brief").events()
        bound = int(0.6 * next(e["bytes"] for e in events if e["event"] == "memory"))
        greedy, egraph = (self.figures(file, mode, "--memory", f"{bound}B") for mode in ("greedy", "egraph"))
        self.assertLessEqual(egraph["predicted"], greedy["predicted"])

    def test_a_choice_of_one_copy_of_a_block_or_of_all(self):
        text = smaller("mlp_1024").replace("linear(96, 96), relu", ", ".join(["linear(96, 96), gelu"] * 6))
        file = self.write("deep.l2", text)
        command = ("optimize", file, "--synthetic", "--no-cache", "--json")
        decisions = [e for e in self.l3c(*command).events() if e["event"] == "decision"]
        shared = next(d for d in decisions
                      if d["losers"] and d["losers"][0]["label"] in ("load", "compute") and "exp2" not in d["id"]
                      and any("other copies" in p["what"] for p in d["pruned"]))
        loser = shared["losers"][0]
        every = self.figures(file, "egraph", "--force", f"{shared['id']}={loser['label']}")
        self.assertAlmostEqual(every["predicted"] / loser["cost"][0]["value"], 1, places=9)
        # The same place of the next copy, alone.
        other = re.sub(r"(?<=[a-z]{2})\d+", lambda m: str(int(m[0]) + 1), shared["id"])
        alone = self.l3c("lower", file, "--synthetic", "--to", "l0", "--force", f"{other}={loser['label']}")
        self.assertIn("repeated blocks", alone.err)


if __name__ == "__main__":
    unittest.main()
