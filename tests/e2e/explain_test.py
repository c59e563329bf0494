"""--explain says what was chosen, what it beat and why; --force takes any loser at its cost."""

import re
import unittest

from harness import MNIST, ROOT, L3cTest


class Explain(L3cTest):
    def decisions(self, *args):
        events = self.l3c("optimize", MNIST, "--explain", "--json", *args).events()
        return {event["id"]: event for event in events if event["event"] == "decision"}

    def test_chooses_the_trace(self):
        text = self.l3c("lower", MNIST, "--to", "l2").out
        flat = re.sub(r"\s+", " ", text)
        self.assertIn("sample: epoch_shuffle(batch: 128)", flat)
        self.assertIn(
            "linear(784, 256), norm(layer), gelu, linear(256, 256), norm(layer), gelu, "
            "linear(256, 10), softmax",
            flat,
        )
        self.assertIn("backward: autodiff(mode: reverse)", flat)
        self.assertIn("schedule(warmup: 1000, decay: cosine, inner: adam(lr: 3e-4))", flat)
        self.assertIn("epochs: 10", flat)

    def test_same_bytes_from_run_to_run(self):
        first = self.l3c("optimize", MNIST, "--explain", "--json").out
        self.assertEqual(first, self.l3c("optimize", MNIST, "--explain", "--json").out)
        self.assertNotIn("seconds\":", first.replace('"unit"', ""))

    def test_what_is_explained_is_what_runs(self):
        """Repeated layers, a counter that is state, memory decisions: the plan is the same bytes."""
        layers = ", ".join(["linear(64, 24)", *["linear(24, 24), relu"] * 3, "linear(24, 10)"])
        cnn = (ROOT / "examples/methods/cnn.l2").read_text()
        flat = re.sub(r"infer: sequential \[.*?\]\n", f"infer: sequential [ {layers}, softmax ]\n",
                      cnn.replace("[8, 8]", "[64]"), flags=re.DOTALL)
        for program in (MNIST, ROOT / "examples/methods/cnn.l2", self.write("flat.l2", flat)):
            args = ("lower", program, "--synthetic", "--no-cache", "--to", "l0")
            self.assertEqual(self.l3c(*args).out, self.l3c(*args, "--explain").out, program)

    def test_every_layer_explains_itself(self):
        events = self.l3c("optimize", MNIST, "--explain", "--json").events()
        lowerings = {e["lowering"]: e for e in events if e["event"] == "search"}
        self.assertEqual({"l3->l2", "l2->l1", "l1->l0"}, set(lowerings))
        for event in lowerings.values():
            self.assertGreater(event["egraph_nodes"], 0)
            self.assertTrue(event["stop_reason"])
        decisions = [e for e in events if e["event"] == "decision"]
        self.assertTrue(any(d["losers"] for d in decisions))
        for decision in decisions:
            self.assertTrue(decision["chosen"])
            for loser in decision["losers"]:
                self.assertTrue(loser["decided_by"], decision["id"])
        text = self.l3c("optimize", MNIST, "--explain").out
        self.assertRegex(text, r"rewrites/\w+\.egg:\d+")

    def test_force_takes_the_loser_at_the_cost_it_was_given(self):
        tried = 0
        for lowering in ("l2/", "l0/"):
            with_losers = [d for i, d in self.decisions().items() if i.startswith(lowering) and d["losers"]]
            self.assertTrue(with_losers, lowering)
            for decision in with_losers[:6]:
                loser = decision["losers"][0]
                forced = self.decisions("--force", f"{decision['id']}={loser['label']}")
                again = forced[decision["id"]]
                self.assertEqual(loser["label"], again["chosen"], decision["id"])
                self.assertEqual(loser["cost"], again["cost"], decision["id"])
                tried += 1
        self.assertGreater(tried, 3)

    def test_force_of_something_unknown_is_refused(self):
        result = self.l3c("optimize", MNIST, "--force", "l2/nothing=here", code=1)
        self.assertIn("l2/nothing", result.err)

    def test_every_rule_file_matters(self):
        """Left out, a rule file changes or fails the plan."""
        memory = ROOT / "examples/memory"
        examples = {"weighted_mean": (ROOT / "examples/methods/language.l2",),
                    "convolution": (ROOT / "examples/mnist/cnn.l2",),
                    "layout": (ROOT / "examples/mnist/cnn.l2",),
                    "bf16": (MNIST, "--numerics", "fast"),
                    # What computes again matters where something does not fit.
                    "checkpointing": (memory / "deep.l2", "--system", memory / "small.l1")}
        bases = {}
        for path in sorted((ROOT / "rewrites").glob("*.egg")):
            program = examples.get(path.stem, (MNIST,))
            command = ("lower", *program, "--to", "l0", "--synthetic")
            if command not in bases:
                bases[command] = self.l3c(*command).out
            base = bases[command]
            result = self.l3c(*command, "--without", path.stem, code=None)
            self.assertIn(result.code, (0, 1), path.name)
            if result.code == 1:
                self.assertIn("error[", result.err, path.name)
            else:
                self.assertNotEqual(base, result.out, path.name)

    def test_search_modes_agree_on_the_result(self):
        losses = {}
        for mode in ("off", "greedy", "egraph"):
            method = self.write("m.l2", self.l3c("lower", MNIST, "--to", "l2").out)
            losses[mode] = self.run_json(method, "--steps", 30, "--search", mode)["loss"]
        for mode, loss in losses.items():
            self.assertAlmostEqual(losses["egraph"], loss, delta=1e-3 * loss, msg=mode)


if __name__ == "__main__":
    unittest.main()
