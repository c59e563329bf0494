"""Runner-ups: whatever --explain lists as a loser can be forced, and trains. Of the layers below the
method it trains to the same result, within the numerics class."""

import math
import os
import random
import unittest

from harness import ROOT, L3cTest

EXAMPLES = ROOT / "examples"
FULL = os.environ.get("L3C_FULL") == "1"
STEPS = 5
# Of one example; all of them would be a night for the few with hundreds.
MOST = 20


class Losers(L3cTest):
    def losers(self, example, *args):
        """(decision, runner-up), those of the method apart from the others. Of the run that is made
        with them: what a step reads of the schedule, and which phases there are, follows from its length."""
        events = self.l3c("optimize", example, *args, "--steps", STEPS, "--explain", "--json",
                          timeout=1200).events()
        pairs = [(e["id"], e["losers"][0]["label"]) for e in events if e["event"] == "decision" and e["losers"]]
        method = [pair for pair in pairs if pair[0].startswith("l2/")]
        return method, [pair for pair in pairs if pair not in method]

    def train(self, example, *args):
        return self.run_json(example, *args, "--steps", STEPS, timeout=1200)["train_loss"]

    def assert_trains_alike(self, example, most, *args):
        method, others = self.losers(example, *args)
        expected = self.train(example, *args)
        draw = random.Random(str(example))
        for pairs in (method, others):
            for decision, loser in sorted(draw.sample(pairs, min(most, len(pairs)))):
                with self.subTest(str(example.relative_to(EXAMPLES)), force=f"{decision}={loser}"):
                    loss = self.train(example, *args, "--force", f"{decision}={loser}")
                    if pairs is method:  # another method: another result
                        self.assertTrue(math.isfinite(loss), loss)
                    else:
                        self.assertLess(abs(loss - expected), 1e-3 * max(abs(expected), 1e-3))
        return len(others)

    def test_a_few(self):
        self.assertGreater(self.assert_trains_alike(EXAMPLES / "iris/iris.l3", 3), 5)

    def test_a_few_of_a_run_that_ends_in_its_first_phase(self):
        self.assertGreater(self.assert_trains_alike(EXAMPLES / "methods/phases.l2", 2), 5)

    @unittest.skipUnless(FULL, "at length in the nightly preset")
    def test_those_of_every_example(self):
        count = 0
        for example in sorted([*EXAMPLES.glob("*/*.l3"), *EXAMPLES.glob("*/*.l2")]):
            # Those without data of their own train on random data.
            lowered = self.l3c("lower", example, "--to", "l1", code=None, timeout=1200)
            data = ("--synthetic",) if "there is no folder" in lowered.err else ()
            found = self.assert_trains_alike(example, MOST, *data)
            print(f"{example.name:20} {found} decisions", flush=True)
            count += found
        self.assertGreater(count, 300)


if __name__ == "__main__":
    unittest.main()
