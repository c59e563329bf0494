"""The main job: MNIST from its specification to a trained network."""

import json
import re
import unittest

from harness import MNIST, ROOT, L3cTest

FIXTURE = ROOT / "tests/e2e/fixtures/mnist_losses.json"


class Train(L3cTest):
    def test_reaches_the_accuracy(self):
        done = self.run_json(MNIST)
        self.assertGreaterEqual(done["accuracy"], 0.977)
        self.assertEqual(4690, done["steps"])
        self.assertLessEqual(done["compile_seconds"], 3.0)  # 1 s on a quiet machine

    def test_same_bits_for_any_thread_count_and_from_run_to_run(self):
        digests = {
            self.run_json(MNIST, "--steps", 120, "--threads", threads)["weights_sha256"]
            for threads in (1, 2, 2, 3)
        }
        self.assertEqual(1, len(digests))

    def test_seed_changes_the_run(self):
        zero = self.run_json(MNIST, "--steps", 5)["weights_sha256"]
        self.assertEqual(zero, self.run_json(MNIST, "--steps", 5, "--seed", 0)["weights_sha256"])
        self.assertNotEqual(zero, self.run_json(MNIST, "--steps", 5, "--seed", 1)["weights_sha256"])

    def step_losses(self, program):
        out = self.dir / "losses"
        self.run_json(program, "--steps", 50, "--overwrite", "-o", out)
        events = [json.loads(line) for line in (out / "events.jsonl").read_text().splitlines()]
        return [event["loss"] for event in events if event["event"] == "step"]

    def test_losses_match_an_independent_framework(self):
        """The first 50 steps from the same initial weights and batches, with and without warm-up."""
        fixture = json.loads(FIXTURE.read_text())
        method = self.l3c("lower", MNIST, "--to", "l2", "--steps", 50).out
        self.assertEqual(2, len(fixture["losses"]))
        for update, expected in fixture["losses"].items():
            text, count = re.subn(r"update: .*?\)\)\n", f"update: {update}\n", method, flags=re.DOTALL)
            self.assertEqual(1, count)
            losses = self.step_losses(self.write("method.l2", text))
            self.assertEqual(50, len(expected))
            self.assertEqual(50, len(losses))
            for step, (ours, theirs) in enumerate(zip(losses, expected)):
                self.assertLess(abs(ours - theirs), 1e-3 * abs(theirs), f"{update}, step {step}")

    def test_evaluation_of_a_run_gives_its_figures(self):
        out = self.dir / "run"
        done = self.run_json(MNIST, "--epochs", 1, "-o", out)
        again = self.l3c("eval", out, "--json").done
        self.assertEqual(done["accuracy"], again["accuracy"])
        self.assertEqual(done["loss"], again["loss"])
        self.assertEqual(done["weights_sha256"], again["weights_sha256"])

    def test_interpreter_agrees(self):
        jit = self.run_json(MNIST, "--steps", 2)
        slow = self.run_json(MNIST, "--steps", 2, "--engine", "interpreter")
        self.assertAlmostEqual(jit["loss"], slow["loss"], delta=1e-4 * slow["loss"])


if __name__ == "__main__":
    unittest.main()
