"""What is wrong with options, data files and annotations is told before the work, at its place."""

import json
import subprocess
import unittest

from harness import ROOT, L3cTest

SPEC = """data d {
    x : tensor(f32, [2])
    y : tensor(u8, [1])
}
model m {
    in:  d.x
    out: dist(3)
    properties: [depth(1)]
}
loss o {
    ce: divergence(m.out, d.y), weight: 1.0
    combine: weighted_sum
}
goal: minimize(o)
"""
METHOD = SPEC + """
methods for m {
    sample: epoch_shuffle(batch: 2)
    infer: sequential [ linear(2, 3), softmax ]
    backward: autodiff(mode: reverse)
    update: sgd(lr: 0.1)
    phases [ main(steps: 3) ]
}
"""


class Inputs(L3cTest):
    def setUp(self):
        super().setUp()
        self.spec = self.write("s.l3", SPEC)
        self.method = self.write("m.l2", METHOD)

    def data(self, manifest=None, **files):
        folder = self.dir / "data" / "d"
        folder.mkdir(parents=True, exist_ok=True)
        for old in folder.iterdir():
            old.unlink()
        rows = {"train_x": "1,2\n3,4\n5,6\n7,8\n", "train_y": "0\n1\n2\n0\n",
                "test_x": "1,2\n3,4\n", "test_y": "0\n1\n", **files}
        for name, text in rows.items():
            if text is not None:
                (folder / (name.replace("_", ".") + ".csv")).write_text(text)
        if manifest is not None:
            (folder / "dataset.json").write_text(
                manifest if isinstance(manifest, str) else json.dumps(manifest))

    def manifest(self):
        return {split: {field: {"file": f"{split}.{field}.csv", "format": "csv"} for field in "xy"}
                for split in ("train", "test")}

    def refused(self, *expected, args=None, code=1):
        result = self.l3c(*(args or ("run", self.method, "-o", self.dir / "run")), code=code)
        for word in expected:
            self.assertIn(word, result.err)
        self.assertFalse((self.dir / "run").exists(), "nothing was begun")
        return result.err

    # ---- data ---------------------------------------------------------------------------------
    def test_manifest(self):
        good = self.manifest()
        self.data({"train": good["train"], "tset": good["test"]})
        self.refused("'tset' is no split", "did you mean 'test'?")
        self.data({**good, "test": {"x": good["test"]["x"]}})
        self.refused("split 'test' has no field 'y'")
        self.data({**good, "test": {"x": good["test"]["x"], "yy": good["test"]["y"]}})
        self.refused("split 'test' has no field 'y'", "did you mean 'yy'?")
        self.data({**good, "test": {**good["test"], "y": {"file": "test.y.csv", "fromat": "csv"}}})
        self.refused("test.y: 'fromat' is unknown", "did you mean 'format'?")
        self.data('{"train": {}, "train": {}}')
        self.refused("'train' stands twice")

    def test_split_without_a_field(self):
        self.data(test_y=None)
        self.refused("test.y.EXT")
        self.data(test_x=None, test_y=None)
        self.run_json(self.method)

    def test_values_that_are_no_numbers(self):
        for text, value in (("1,2\n3,nan\n", "'nan' is no finite number"),
                            ("1,2\n3,-inf\n", "'-inf' is no finite number"),
                            ("1,2\n3,1e99\n", "'1e99' does not fit f32")):
            self.data(test_x=text)
            out = self.dir / f"run-{value[1:4]}"
            self.refused("test.x.csv: line 2: " + value, "field 'x'", args=("run", self.method, "-o", out))
            self.assertFalse(list(out.glob("checkpoints/*")), "nothing was trained")

    def test_names_of_data(self):
        self.data()
        folder = self.dir / "data" / "d"
        for name in ("D", "dd"):
            self.refused(f"--data {name}={folder}: the program has no data '{name}'",
                         "did you mean 'd'?",
                         args=("lower", self.method, "--to", "l0", "--data", f"{name}={folder}"))
        out = self.dir / "kept"
        self.l3c("run", self.method, "-o", out)
        self.assertIn("did you mean 'd'?", self.l3c("eval", out, "--data", f"dd={folder}", code=1).err)
        self.l3c("build", self.method, "-o", self.dir / "train")
        done = subprocess.run([self.dir / "train", "--data", f"dd={folder}"], capture_output=True,
                              text=True, cwd=self.dir)
        self.assertEqual(1, done.returncode)
        self.assertIn("did you mean 'd'?", done.stderr)
        helped = subprocess.run([self.dir / "train", "--help"], capture_output=True, text=True)
        self.assertIn("Trains 'm'", helped.stdout)

    def test_check_reads_what_data_names(self):
        self.data()
        folder = self.dir / "data" / "d"
        plan = self.dir / "plan.l0"
        placed = self.dir / "placed.l1"
        for path, layer in ((placed, "l1"), (plan, "l0")):
            self.l3c("lower", self.method, "--to", layer, "-o", path)
        files = (self.spec, self.method, placed, plan)
        for path in files:
            told = self.l3c("check", path, "--data", f"d={folder}").out
            self.assertIn("data d, as declared: 2 rows of test, 4 rows of train", told)
            self.assertNotIn("as declared", self.l3c("check", path).out)
        told = self.l3c("check", self.method, "--data", f"d={folder}", "--json").events()
        self.assertEqual({"event": "data", "name": "d", "rows": {"test": 2, "train": 4}}, told[0])
        self.data(train_y="0\n1\n9\n0\n")
        for path in files:
            self.refused("train.y.csv", args=("check", path, "--data", f"d={folder}"))
        self.refused("did you mean 'd'?", args=("check", self.method, "--data", f"dd={folder}"))
        self.refused("there is no folder", args=("check", self.method, "--data", f"d={self.dir / 'none'}"))

    # ---- outputs ------------------------------------------------------------------------------
    def test_outputs_are_looked_at_first(self):
        blocked = self.write("file", "") / "t"
        for option in ("--timeline", "-o"):
            self.refused("cannot", str(blocked), args=("run", self.method, "--synthetic", option, blocked))
        for args in (("run", self.method, "--timeline", ""), ("run", self.method, "-o", ""),
                     ("lower", self.method, "--to", "l1", "-o", ""),
                     ("build", self.method, "-o", ""), ("run", "--resume", "")):
            self.refused("takes a path, not ''", args=args, code=2)
        unsound = self.write("unsound.l2", METHOD.replace("linear(2, 3)", "linear(2, 4)"))
        for args in (("lower", unsound, "--to", "l1"), ("build", unsound), ("emit", unsound, "--target", "llvm")):
            self.refused(str(blocked), args=(*args, "-o", blocked))

    # ---- options ------------------------------------------------------------------------------
    def test_options_that_do_not_apply(self):
        placed, plan = self.dir / "p.l1", self.dir / "p.l0"
        self.l3c("lower", self.method, "--synthetic", "--to", "l1", "-o", placed)
        self.l3c("lower", placed, "--to", "l0", "-o", plan)
        for file, option, value in ((plan, "--search", "greedy"), (plan, "--budget", "nodes=9"),
                                    (plan, "--force", "a=b"), (plan, "--numerics", "exact"),
                                    (plan, "--without", "fusion"), (plan, "--system", placed),
                                    (placed, "--system", placed), (placed, "--pick", 1),
                                    (self.method, "--pick", 1)):
            self.refused(f"{option} does not apply", code=2,
                         args=("lower", file, "--synthetic", "--to", file.suffix[1:], option, value))

    def test_rule_files_left_out(self):
        for times in (1, 2):
            err = self.refused("without 'fusion'", args=(
                "lower", self.method, "--synthetic", "--to", "l0", *("--without", "fusion") * times))
            self.assertNotIn("did you mean", err)

    def test_cpu(self):
        self.refused("there is no CPU 'x86-64-v9'", code=2, args=(
            "build", self.method, "--synthetic", "--cpu", "x86-64-v9", "-o", self.dir / "x"))

    # ---- programs -----------------------------------------------------------------------------
    def lowered(self, text, *expected, name="s.l3"):
        path = self.write(name, text)
        return self.refused(*expected, args=("lower", path, "--synthetic", "--to", "l0"))

    def test_annotations(self):
        one, two = "    #[l2::update(sgd(lr: 0.1))]\n", "    #[l2::update(adam(lr: 0.1))]\n"
        self.lowered(SPEC.replace("    in:", one + two + "    in:"),
                     "s.l3:7:5: error[consistency]", "'l2::update' stands twice", "s.l3:6:5: first here")
        self.lowered(SPEC.replace("    in:", "    #[l1::on(nowhere)]\n    in:"), "s.l3:6:5: error")
        layer = "#[l1::on(cpu_0)] #[l1::on(cpu_1)] linear"
        self.lowered(METHOD.replace("linear", layer), "m2.l2:18:42: error", "stands twice", name="m2.l2")

    def test_places_are_those_of_the_file(self):
        self.lowered(SPEC.replace("x", "valid"), "s.l3:2:5: error", "'valid' names the mask of a batch")
        placed = self.l3c("lower", self.method, "--synthetic", "--to", "l1").out
        line = next(n for n, text in enumerate(placed.splitlines(), 1) if "init: kaiming" in text)
        error = self.lowered(placed.replace("init: kaiming", "init: normal(-1)", 1),
                             f"p.l1:{line}:", "standard deviation of 'normal' is -1.0", name="p.l1")
        self.assertEqual(1, error.count("error["), error)
        error = self.lowered(placed.replace('path: "data/d"', 'path: ""', 1), "p.l1:",
                             "the path of the data is empty", name="p.l1")
        self.assertEqual(1, error.count("error["), error)

    def test_numbers_too_small(self):
        self.lowered(METHOD.replace("lr: 0.1", "lr: 1e-400"), "'1e-400' is too small", name="m2.l2")

    def test_lengths_of_a_plan(self):
        plan = self.l3c("lower", self.method, "--synthetic", "--to", "l0").out
        for word, value in (("steps", 0), ("steps", -7), ("eval_batches", 10**12), ("eval_batches", -1)):
            lines = plan.splitlines()
            at = next(n for n, text in enumerate(lines) if text.strip().startswith(word + ":"))
            lines[at] = f"        {word}: {value},"
            self.lowered("\n".join(lines) + "\n", f"'{word}' is {value}", name="p.l0")


if __name__ == "__main__":
    unittest.main()
