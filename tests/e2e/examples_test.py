"""The examples, each from its specification to a stated figure on its own data."""

import unittest

from harness import ROOT, L3cTest

EXAMPLES = ROOT / "examples"


class Examples(L3cTest):
    def train(self, example, *args):
        return self.run_json(EXAMPLES / example, *args)

    def test_iris(self):
        self.assertGreaterEqual(self.train("iris/iris.l3")["accuracy"], 0.9)

    def test_digits(self):
        self.assertGreaterEqual(self.train("digits/classify.l3", "--steps", 3000)["accuracy"], 0.85)

    def test_denoise(self):
        """The mean image leaves 0.074, the worn one 0.080; penalties are in the loss as well."""
        self.assertLess(self.train("digits/denoise.l3")["loss"], 0.06)

    def test_gan(self):
        """Neither wins: a judge that cannot tell has a loss of 2 log 2 = 1.386 and leaves its fooler
        log 2 = 0.693, one that always can has 0 and leaves it a large one (1.07 and 0.90 here)."""
        done = self.train("digits/gan.l3", "--steps", 2000)
        self.assertTrue(0.7 < done["loss"] < 1.386 and 0.6 < done["fool_loss"] < 1.5, done)

    def test_distill(self):
        done = self.train("digits/distill.l3", "--steps", 3000)
        self.assertGreaterEqual(done["accuracy"], 0.85)
        self.assertGreaterEqual(done["copy_accuracy"], 0.75)

    def test_front(self):
        """More weight on smallness costs accuracy."""
        ends = [self.train("digits/front.l3", "--steps", 3000, "--pick", n) for n in (1, 5)]
        self.assertGreater(ends[0]["accuracy"], ends[1]["accuracy"])

    def test_pairs(self):
        """Embeddings that say nothing leave log 2 = 0.693."""
        self.assertLess(self.train("pairs/pairs.l3", "--steps", 1500)["loss"], 0.5)

    def test_sunspots(self):
        """Next year as this year leaves 0.088."""
        self.assertLess(self.train("sunspots/sunspots.l3")["loss"], 0.06)

    def test_shakespeare(self):
        """Knowing only how often each character occurs leaves 3.3."""
        self.assertLess(self.train("shakespeare/shakespeare.l3", "--steps", 1500)["loss"], 2.7)

    def test_the_others(self):
        for example in ("sunspots/echo.l3", "sunspots/level.l3", "iris/spread.l3"):
            first = self.train(example, "--steps", 5)["loss"]
            self.assertLess(self.train(example, "--steps", 2000)["loss"], first, example)


if __name__ == "__main__":
    unittest.main()
