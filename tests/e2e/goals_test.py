"""Goals and losses of every kind, from the specification to trained weights."""

import random
import unittest

from harness import L3cTest

GAN = """
data shapes {
    noise : tensor(f32, [4])
    image : tensor(f32, [6])
}
model generate { in: shapes.noise out: tensor(f32, [6]) properties: [depth(2), width(16)] }
model judge    { in: shapes.image out: scalar(f32)      properties: [depth(2), width(16)] }
loss tell {
    real: custom(real, reads: [judge.out], value: softplus(-judge.out))
    fake: custom("fake.expr", reads: [judge(generate.out)])
}
loss fool {
    fake: custom(fooled, reads: [judge(generate.out)], value: softplus(-judge(generate.out)))
}
goal: alternate([minimize(tell, models: [judge]), minimize(fool, models: [generate])])
"""

PAIRS = """
data views {
    a : tensor(f32, [8])
    b : tensor(f32, [8])
    c : tensor(f32, [8])
}
model encode { in: views.a out: tensor(f32, [4]) properties: [depth(2), width(16)] }
loss apart {
    pair:  contrastive(encode.out, encode(views.b), encode(views.c))
    small: constraint(norm(encode.out) <= 2), weight: 0.1
    calm:  norm(encode.activations, p=2), weight: 1e-3
}
goal: GOAL
"""

DISTILLED = """
data d {
    x : tensor(f32, [6])
    y : tensor(u8, [1])
}
model teacher { in: d.x out: dist(3) properties: [depth(2), width(32)] }
model student { in: d.x out: dist(3) properties: [depth(1)] }
loss learn { ce: divergence(teacher.out, d.y) }
loss copy  { kl: divergence(student.out, teacher.out) }
goal: alternate([minimize(learn, models: [teacher]), minimize(copy, models: [student])])
"""


class Goals(L3cTest):
    def table(self, name, rows, width, seed):
        draw = random.Random(seed)
        self.write(name, "".join(
            ",".join(f"{draw.uniform(-1, 1):.3f}" for _ in range(width)) + "\n" for _ in range(rows)))

    def gan(self):
        self.write("fake.expr", "// of what the generator makes\nsoftplus(judge(generate.out))\n")
        for split, rows in (("train", 40), ("test", 9)):
            self.table(f"data/shapes/{split}.noise.csv", rows, 4, rows)
            self.table(f"data/shapes/{split}.image.csv", rows, 6, rows + 1)
        return self.write("gan.l3", GAN)

    def test_turns_train_one_another_the_same_on_both_engines(self):
        spec = self.gan()
        jit = self.run_json(spec, "--steps", 12)
        slow = self.run_json(spec, "--steps", 12, "--engine", "interpreter")
        self.assertIn("fool_loss", jit)
        for figure in ("loss", "fool_loss"):
            self.assertAlmostEqual(jit[figure], slow[figure], delta=1e-4 * abs(slow[figure]))

    def test_a_later_turn_sees_what_an_earlier_one_changed(self):
        """In the first step only what comes after the judge's turn can tell whether the judge moves."""
        spec = self.gan()
        method = self.l3c("lower", spec, "--to", "l2").out
        turns = "minimize(tell, models: [judge]), minimize(fool, models: [generate])"
        self.assertIn(turns, method)

        def losses(text, judge_moves):
            head, tail = text.split("methods for judge")
            self.assertIn("lr: 3e-4", tail)
            if not judge_moves:
                tail = tail.replace("lr: 3e-4", "lr: 0")
            done = self.run_json(self.write("turns.l2", head + "methods for judge" + tail), "--steps", 1)
            own = {name.rsplit("_", 1)[0]: value for name, value in done.items()
                   if name.startswith("train_") and name.endswith("loss")}
            self.assertEqual(len(own), 2)
            return own

        still, moving = losses(method, False), losses(method, True)
        self.assertEqual(still["train"], moving["train"])
        self.assertNotEqual(still["train_fool"], moving["train_fool"])
        swapped = method.replace(
            turns, "minimize(fool, models: [generate]), minimize(tell, models: [judge])")
        self.assertEqual(losses(swapped, False), losses(swapped, True))

    def test_the_layers_hand_over_the_same_program(self):
        spec = self.gan()
        whole = self.run_json(spec, "--steps", 3)
        at = spec
        for layer in ("l2", "l1", "l0"):
            at = self.write(f"gan.{layer}", self.l3c("lower", at, "--to", layer, "--steps", 3).out)
        self.assertEqual(whole["weights_sha256"], self.run_json(at)["weights_sha256"])

    def test_contrastive_pairs_constraints_and_activations(self):
        spec = self.write("pairs.l3", PAIRS.replace("GOAL", "minimize(apart)"))
        first = self.run_json(spec, "--synthetic", "--steps", 2)
        last = self.run_json(spec, "--synthetic", "--steps", 150)
        self.assertLess(last["loss"], first["loss"])

    def test_a_point_of_the_front_is_picked(self):
        spec = self.write("pairs.l3", PAIRS.replace("GOAL", "pareto([apart.pair, apart.small])"))
        explained = self.l3c("optimize", spec, "--synthetic", "--explain", "--brief").out
        self.assertIn("0.9 apart.pair + 0.1 apart.small", explained)
        ends = [self.l3c("lower", spec, "--synthetic", "--to", "l2", "--pick", n).out for n in (1, 5)]
        self.assertIn("weight: 0.9", ends[0])
        self.assertNotEqual(*ends)
        self.assertIn("5 points", self.l3c("lower", spec, "--to", "l2", "--pick", 6, code=1).err)

    def test_a_student_learns_from_its_teacher(self):
        """On labels that the teacher can know: the student ends near what the teacher gives."""
        spec = self.write("distilled.l3", DISTILLED)
        draw = random.Random(5)
        for split, rows in (("train", 60), ("test", 20)):
            x = [[draw.uniform(-1, 1) for _ in range(6)] for _ in range(rows)]
            self.write(f"data/d/{split}.x.csv",
                       "".join(",".join(f"{v:.3f}" for v in row) + "\n" for row in x))
            self.write(f"data/d/{split}.y.csv",
                       "".join(f"{max(range(3), key=lambda c: row[c])}\n" for row in x))
        done = self.run_json(spec, "--steps", 6000)
        self.assertGreaterEqual(done["accuracy"], 0.75)
        self.assertLess(done["copy_loss"], 0.65)  # log 3 = 1.099 where it has learnt nothing

    def test_a_distribution_that_is_none_is_refused(self):
        spec = self.write("d.l3", DISTILLED.split("model student")[0].replace(
            "tensor(u8, [1])", "dist(3)") + "loss l { t: divergence(teacher.out, d.y) }\n"
            "goal: minimize(l)\n")
        self.table("data/d/train.x.csv", 3, 6, 1)
        self.write("data/d/train.y.csv", "0.2,0.3,0.5\n1,0,0\n0.2,0.2,0.2\n")
        err = self.l3c("run", spec, "-o", self.dir / "run", code=1).err
        self.assertIn("train.y.csv: sample 2: field 'y' is a distribution over 3 classes", err)
        self.write("data/d/train.y.csv", "0.2,0.3,0.5\n1,0,0\n0,0,1\n")
        self.run_json(spec, "--steps", 2)

    def test_files_of_losses_say_what_is_wrong_in_them(self):
        spec = self.gan()
        self.write("fake.expr", "softplus(judge(generate.out)")
        err = self.l3c("check", spec, code=1).err
        self.assertIn("fake.expr:1:", err)
        (self.dir / "fake.expr").unlink()
        err = self.l3c("check", spec, code=1).err
        self.assertIn("error[environment]", err)


if __name__ == "__main__":
    unittest.main()
