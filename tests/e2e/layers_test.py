"""Every layer's text stands by itself: printed, parsed, lowered on, edited and trained."""

import os
import re
import unittest

from harness import MNIST, ROOT, L3cTest

EXAMPLES = ROOT / "examples"
STEPS = ("--steps", 40)


class Layers(L3cTest):
    def texts(self):
        texts = {}
        for layer in ("l2", "l1", "l0"):
            texts[layer] = self.write(
                f"mnist.{layer}", self.l3c("lower", MNIST, "--to", layer, *STEPS).out
            )
        return texts

    def test_printing_is_a_fixpoint(self):
        for layer, path in self.texts().items():
            again = self.l3c("lower", path, "--to", layer).out
            self.assertEqual(path.read_text(), again, layer)
            self.assertTrue(again.startswith(f"# l3c {layer} v1\n"), layer)
        spec = self.write("spec.l3", self.l3c("lower", MNIST, "--to", "l3").out)
        self.assertEqual(spec.read_text(), self.l3c("lower", spec, "--to", "l3").out)

    def test_each_text_lowers_to_the_same_next_layer(self):
        texts = self.texts()
        self.assertEqual(texts["l1"].read_text(), self.l3c("lower", texts["l2"], "--to", "l1", *STEPS).out)
        self.assertEqual(texts["l0"].read_text(), self.l3c("lower", texts["l2"], "--to", "l0", *STEPS).out)
        self.assertEqual(texts["l0"].read_text(), self.l3c("lower", texts["l1"], "--to", "l0").out)

    def test_each_text_trains_to_the_same_weights(self):
        texts = self.texts()
        expected = self.run_json(MNIST, *STEPS)["weights_sha256"]
        self.assertEqual(expected, self.run_json(texts["l2"], *STEPS)["weights_sha256"])
        self.assertEqual(expected, self.run_json(texts["l1"])["weights_sha256"])
        self.assertEqual(expected, self.run_json(texts["l0"])["weights_sha256"])

    def test_length_and_seed_are_taken_at_every_layer(self):
        args = ("--steps", 25, "--seed", 5)
        expected = self.run_json(MNIST, *args)["weights_sha256"]
        for layer in ("l2", "l1", "l0"):
            path = self.write(f"whole.{layer}", self.l3c("lower", MNIST, "--to", layer).out)
            done = self.run_json(path, *args)
            self.assertEqual((25, expected), (done["steps"], done["weights_sha256"]), layer)

    def test_one_number_changes_the_run(self):
        texts = self.texts()
        base = self.run_json(texts["l0"])
        edits = {
            # layer: (pattern, replacement, what it is)
            "l2": [
                (r"lr: 3e-4", "lr: 1e-3", "learning rate"),
                (r"linear\(784, 256\)", "linear(784, 128)", "width"),
                (r"batch: 128", "batch: 64", "batch"),
            ],
            "l1": [
                (r"3e-4|0\.0003", "0.001", "learning rate"),
                (r"seed: 0", "seed: 7", "seed"),
                (r"init: kaiming", "init: zeros", "initial value"),
            ],
            "l0": [
                (r"0\.0003\b|3e-4", "0.001", "learning rate"),
                (r"seed 0\b", "seed 7", "seed"),
            ],
        }
        for layer, changes in edits.items():
            for pattern, replacement, what in changes:
                text = texts[layer].read_text()
                if layer == "l2" and what == "width":
                    text = text.replace("linear(256, 256)", "linear(128, 256)", 1)
                edited, count = re.subn(pattern, replacement, text)
                self.assertGreater(count, 0, f"{layer} has no {what} to edit")
                path = self.write(f"edited.{layer}", edited)
                args = STEPS if layer == "l2" else ()
                changed = self.run_json(path, *args)
                self.assertNotEqual(base["weights_sha256"], changed["weights_sha256"], f"{layer} {what}")

    def test_a_tile_is_a_schedule_not_a_meaning(self):
        text = self.texts()["l0"].read_text()
        edited, count = re.subn(r"grid 128 block \d+ tile \d+", "grid 128 block 4 tile 4", text)
        self.assertGreater(count, 0)
        base = self.run_json(self.write("base.l0", text))
        changed = self.run_json(self.write("tiles.l0", edited))
        self.assertAlmostEqual(base["loss"], changed["loss"], delta=1e-3 * base["loss"])


class EveryExample(L3cTest):
    def assert_alike_through_every_text(self, example, *args):
        """One text is printed from the one before; each trains to the bits of the example."""
        steps = ("--steps", 4)
        expected = self.run_json(example, *args, *steps, timeout=1200)
        source = example
        for layer in ("l2", "l1", "l0"):
            lowered = self.l3c("lower", source, "--to", layer, *args, *steps, timeout=1200).out
            source = self.write(f"{example.stem}.{layer}", lowered)
            done = self.run_json(source, *args, *steps, timeout=1200)
            for figure in ("steps", "train_loss", "weights_sha256"):
                self.assertEqual(expected[figure], done[figure], f"{figure} of {layer}")

    def test_some(self):
        for example in ("iris/iris.l3", "methods/binary.l2"):
            self.assert_alike_through_every_text(EXAMPLES / example)

    @unittest.skipUnless(os.environ.get("L3C_FULL") == "1", "at length in the nightly preset")
    def test_all(self):
        for example in sorted([*EXAMPLES.glob("*/*.l3"), *EXAMPLES.glob("*/*.l2")]):
            with self.subTest(example.relative_to(EXAMPLES)):
                # Those without data of their own train on random data.
                lowered = self.l3c("lower", example, "--to", "l1", code=None, timeout=1200)
                data = ("--synthetic",) if "there is no folder" in lowered.err else ()
                self.assert_alike_through_every_text(example, *data)


if __name__ == "__main__":
    unittest.main()
