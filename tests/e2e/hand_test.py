"""L1 written by hand runs: stages with conditions, decoded bytes, two actors, any pipeline depth."""

import random
import re
import struct
import unittest

from harness import ROOT, L3cTest, idx

HAND = ROOT / "tests/layers/l1/programs/hand.l1"


class Hand(L3cTest):
    def setUp(self):
        super().setUp()
        draw = random.Random(5)
        rows = [[draw.randrange(256) for _ in range(6)] for _ in range(50)]
        targets = [sum(row) / 600 - 0.5 for row in rows]
        self.write("dots/train.x.idx", idx([v for row in rows for v in row], (50, 6)))
        self.write("dots/train.y.raw", struct.pack("<50f", *targets))

    def train(self, text, *args):
        path = self.write(f"program{len(list(self.dir.iterdir()))}.l1", text)
        return self.run_json(path, "--data", f"dots={self.dir / 'dots'}", *args)

    def test_every_depth_gives_the_same_bits(self):
        text = HAND.read_text()
        runs = [
            self.train(text.replace("pipeline_depth: 1", f"pipeline_depth: {depth}"))
            for depth in (1, 2, 3, 4)
        ]
        self.assertEqual(21, runs[0]["steps"])
        self.assertEqual(1, len({run["weights_sha256"] for run in runs}), runs)
        self.assertEqual(1, len({run["loss"] for run in runs}), runs)

    def test_conditions_and_stages_change_what_is_learned(self):
        text = HAND.read_text()
        plain = self.train(text)
        interpreted = self.train(text, "--engine", "interpreter")
        self.assertLess(abs(plain["loss"] - interpreted["loss"]), 1e-5 * plain["loss"])
        for old, new in (
            ("tensor_const(3, i64)", "tensor_const(5, i64)"),
            ("init: constant(3.0)", "init: constant(1.0)"),
            ("scale: 0.00392156862745098", "scale: 0.002"),
        ):
            self.assertIn(old, text)
            changed = self.train(text.replace(old, new))
            self.assertNotEqual(plain["weights_sha256"], changed["weights_sha256"], new)

    def test_rows_that_are_not_stated_are_counted(self):
        text = HAND.read_text()
        bare = text.replace(", rows: 50", "")
        self.assertNotEqual(text, bare)
        self.assertEqual(self.train(text)["weights_sha256"], self.train(bare)["weights_sha256"])
        path = self.write("elsewhere/bare.l1", bare)
        err = self.l3c("lower", path, "--to", "l0", code=1).err
        self.assertIn("the rows of split 'train' are not stated", err)
        self.write("dots/train.y.raw", b"odd")
        err = self.l3c("lower", path, "--to", "l0", "--data", f"dots={self.dir / 'dots'}", code=1).err
        self.assertIn("train.y.raw", err)

    def test_epochs_are_those_of_the_data_where_steps_are_counted(self):
        for text in (HAND.read_text(), HAND.read_text().replace(", rows: 50", "")):
            path = self.write("steps.l1", text)
            told = self.l3c("run", path, "--data", f"dots={self.dir / 'dots'}", "--steps", 15, "--json",
                            "--overwrite", "-o", self.dir / "steps").events()
            epochs = [(e["epoch"], e["steps"]) for e in told if e["event"] == "epoch"]
            self.assertEqual([(1, 7), (2, 7), (3, 1)], epochs)

    def test_without_phases_it_trains_for_an_epoch(self):
        text = re.sub(r"    phases .*\n", "", HAND.read_text())
        self.assertEqual(7, self.train(text)["steps"])
        self.assertEqual(14, self.train(text, "--epochs", 2)["steps"])

    def test_a_node_of_another_instruction_set_is_refused(self):
        text = HAND.read_text()
        self.assertIn("isa: x86_64", text)
        other = self.write("other.l1", text.replace("isa: x86_64", "isa: arm64"))
        err = self.l3c("lower", other, "--to", "l0", code=1).err
        self.assertIn("node cpu_0 has isa arm64, which has no backend yet", err)

    def test_a_program_that_trains_nothing_is_refused(self):
        text = HAND.read_text()
        path = self.write("still.l1", re.sub(r", +param\b", "", text))
        line = text[:text.index("actor model")].count("\n") + 1
        for command in (("check", path), ("lower", path, "--to", "l0"), ("run", path)):
            err = self.l3c(*command, code=1).err
            self.assertIn(f"still.l1:{line}:7: error[liveness]: there is nothing to train", err)
            self.assertIn("param`", err)

    def test_steps_are_counted_without_metrics(self):
        text = HAND.read_text()
        bare = self.train(re.sub(r"    metrics .*\n", "", text))
        self.assertEqual(21, bare["steps"])
        self.assertEqual(self.train(text)["weights_sha256"], bare["weights_sha256"])
        self.assertTrue(bare["checkpoint"].endswith("step-000000021"), bare["checkpoint"])

    def test_its_plan_and_its_printed_text_run_alike(self):
        data = ("--data", f"dots={self.dir / 'dots'}")
        printed = self.write("printed.l1", self.l3c("lower", HAND, "--to", "l1").out)
        self.assertEqual(printed.read_text(), self.l3c("lower", printed, "--to", "l1").out)
        plan = self.write("plan.l0", self.l3c("lower", HAND, "--to", "l0", *data).out)
        hashes = {self.run_json(path, *data)["weights_sha256"] for path in (HAND, printed, plan)}
        self.assertEqual(1, len(hashes))


if __name__ == "__main__":
    unittest.main()
