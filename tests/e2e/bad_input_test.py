"""Bad input gives a clear error at its place and the right exit code; nothing crashes or hangs."""

import json
import random
import re
import subprocess
import unittest

from harness import L3C, MNIST, ROOT, L3cTest, small_mnist

SPEC = MNIST.read_text()


class BadInput(L3cTest):
    def refuse(self, text, *expected, args=("optimize",), name="spec.l3"):
        path = self.write(name, text)
        result = self.l3c(args[0], path, *args[1:], code=1, timeout=60)
        for word in expected:
            self.assertIn(word, result.err)
        return result

    # ---- programs -----------------------------------------------------------------------------
    def test_unknown_name(self):
        result = self.refuse(SPEC.replace("mnist.images\n", "mnist.imagse\n"), "spec.l3:7:", "images")
        self.assertIn("error[safety]", result.err)

    def test_wrong_domain(self):
        self.refuse(SPEC.replace("labels : tensor(u8, [1])", "labels : tensor(f32, [3])"), "error[consistency]")

    def test_budget_that_admits_nothing(self):
        result = self.refuse(SPEC.replace("500K", "100"), "error[resource-bound]", "param_budget")
        self.assertIn("NoCandidates", result.err)

    def test_too_loose(self):
        """Dominance leaves few candidates of any specification; more than may be scored is an error."""
        path = self.write("loose.l3", SPEC.replace("500K", "100K"))
        self.l3c("lower", path, "--to", "l2")
        result = self.l3c("lower", path, "--to", "l2", "--budget", "candidates=2", code=1)
        self.assertIn("error[resource-bound]: TooManyCandidates", result.err)
        self.assertIn("fix:", result.err)

    def test_wide_open_specifications_are_quick(self):
        text = SPEC.replace("depth(3)", "depth(64)").replace("width(512)", "width(65536)")
        path = self.write("open.l3", text.replace(", param_budget(500K)", ""))
        self.l3c("lower", path, "--to", "l2", timeout=20)

    def test_work_bounds_placement_and_the_search_for_kernels(self):
        """Each search stops at its budget, and says which ended and the option that raises it."""
        method = ROOT / "tests/layers/l1/programs/wide.l2"
        hosts = ("--synthetic", "--system", ROOT / "examples/systems/two_hosts.l1")
        for work, doing in ((100, "saturating"), (500, "comparing placements")):
            err = self.l3c("lower", method, *hosts, "--to", "l1", "--budget", f"work={work}", code=1).err
            self.assertIn(f"the budget of work ran out while {doing}: {work} of {work} spent", err)
            # The figure is enough.
            enough = int(re.search(r"fix: raise it with --budget work=N: placement takes (\d+)", err)[1])
            self.assertGreater(enough, work)
            self.l3c("lower", method, *hosts, "--to", "l1", "--budget", f"work={enough}")
        one = ("--synthetic", "--system", ROOT / "examples/systems/one_cpu.l1")
        err = self.l3c("lower", method, *one, "--to", "l0", "--budget", "work=1000", code=1).err
        self.assertRegex(err, r"the budget of work ran out while saturating(, for which too little was left)?: "
                              r"\d+ of 1000 spent")
        least = int(re.search(r"fix: raise it with --budget work=N; a first plan of 'train' takes (\d+)", err)[1])
        self.assertGreater(least, 1000)
        self.assertNotIn("mend rule", err)  # nobody can who brought none
        self.assertNotIn("--budget nodes", err)
        done = self.l3c("optimize", method, *one, "--budget", "work=60000", "--json")
        self.assertIn(f"the budget of work, 60000, is less than a first plan of the kernels of 'train' takes, "
                      f"{least}: that plan was made all the same, and compared with no other. '--budget work=N' "
                      f"with N above {least} looks further", done.err)
        searches = [e for e in done.events() if e["event"] == "search"]
        self.assertNotIn("saturated", [e["stop_reason"] for e in searches if e["lowering"] == "l1->l0"])
        for search in searches:
            # Of two pipelines the kernels, and what is saved or computed again.
            self.assertLessEqual(search["work"], 4 * 60000)

    # ---- systems ------------------------------------------------------------------------------
    SYSTEM = (ROOT / "examples/systems/cpu_gpu.l1").read_text()
    WIDE = ROOT / "tests/layers/l1/programs/wide.l2"

    def refuse_system(self, text, *expected, args=()):
        system = self.write("system.l1", text)
        err = self.l3c("lower", self.WIDE, "--synthetic", "--to", "l1", "--system", system, *args,
                       code=1).err
        for words in expected:
            self.assertIn(words, err)
        return err

    def test_why_there_is_no_placement(self):
        """The cause is the one that holds, and the way out fits it."""
        gpu = self.SYSTEM.replace("isa: x86_64, cores: 8, features: [avx2, fma]",
                                  "isa: ptx, vram: 8GB, sm: 20, arch: sm_86")
        self.assertNotEqual(gpu, self.SYSTEM)
        self.refuse_system(gpu, "no node of the system can draw batches", "add a compute node without vram")
        self.refuse_system(self.SYSTEM.replace("        ssd_0 -> ram_0  : bandwidth 2GB/s\n", ""),
                           "no path of edges leads from ssd_0 to ram_0", "fix: add an edge ssd_0 -> ram_0")
        small = re.sub(r"capacity: \w+", "capacity: 40MB", self.SYSTEM).replace("vram: 24GB", "vram: 40MB")
        err = self.refuse_system(small, "the model cannot be computed on", "which has 40MB")
        self.assertNotIn("no path", err)
        self.assertNotIn("missing edges", err)
        self.refuse_system(self.SYSTEM, "without the rules 'transfer' of placement.egg", "drop --without",
                           args=("--without", "placement/transfer"))
        # By way of the processor, which keeps no bytes, is a path.
        one = (ROOT / "examples/systems/one_cpu.l1").read_text()
        through = self.write("through.l1", one.replace("ssd_0 -> ram_0", "ssd_0 -> cpu_0"))
        self.l3c("lower", self.WIDE, "--synthetic", "--to", "l1", "--system", through)

    def test_a_system_file_that_is_not_there(self):
        err = self.l3c("optimize", MNIST, "--synthetic", "--system", "none.l1", code=1).err
        self.assertTrue(err.startswith("error[environment]: cannot"), err)
        self.assertIn("none.l1", err)

    # ---- annotations --------------------------------------------------------------------------
    def method(self, annotation):
        text = (ROOT / "tests/layers/l1/programs/mnist.l2").read_text()
        self.assertIn("linear(784", text)
        return self.write("method.l2", text.replace("linear(784", f"\n        {annotation}\n        linear(784", 1))

    def test_annotations_of_a_layer_are_told_at_their_place(self):
        for annotation, code, words in (
            ('#[l0::kernel("none.uop")]', "environment", "none.uop"),
            ('#[l0::kernal("none.uop")]', "resource-bound", "did you mean 'kernel'?"),
            ("#[l2::update(sgd)]", "syntax", "an annotation of l2 is for a layer below it; l2 is none"),
        ):
            with self.subTest(annotation):
                path = self.method(annotation)
                err = self.l3c("lower", path, "--synthetic", "--to", "l0", code=1).err
                self.assertRegex(err, rf"method.l2:\d+:\d+: error\[{code}\]")
                self.assertIn(words, err)
        # The operands that the user names are the operands.
        path = self.method('#[l0::kernel("none.uop", of: [images])]')
        text = self.l3c("lower", path, "--synthetic", "--to", "l1").out
        self.assertEqual(2, text.count("of: [images]"))  # in training and in evaluation
        self.assertNotIn("], of:", text)

    def test_check_looks_for_the_kernels_of_a_program(self):
        path = self.method('#[l0::kernel("none.uop")]')
        placed = self.write("placed.l1", self.l3c("lower", path, "--synthetic", "--to", "l1").out)
        err = self.l3c("check", placed, code=1).err
        self.assertRegex(err, r"placed.l1:\d+:\d+: error\[environment\]: cannot read '.*none.uop'")

    # ---- data ---------------------------------------------------------------------------------
    def test_where_a_data_set_is_no_json(self):
        data = self.dir / "broken"
        self.write("broken/dataset.json", '{\n  "train": {\n    "images" {}\n  }\n}\n')
        err = self.l3c("run", MNIST, "--data", f"mnist={data}", code=1).err
        self.assertRegex(err, r"dataset.json:3:14: not JSON")
        self.assertNotIn("pass --data", err)
        self.assertIn("docs/data.md", err)

    def test_two_files_of_one_field(self):
        data = small_mnist(self.dir / "mnist", rows=64, test_rows=32)
        images = next(data.glob("train*images*"))
        (data / "dataset.json").unlink(missing_ok=True)
        for split in ("train", "test"):
            for field, part in (("images", "images"), ("labels", "labels")):
                source = next(f for f in data.iterdir() if part in f.name and
                              f.name.startswith("train" if split == "train" else "t10k"))
                (data / f"{split}.{field}.idx{'.gz' if source.suffix == '.gz' else ''}").write_bytes(
                    source.read_bytes())
        self.run_json(MNIST, "--data", f"mnist={data}", "--steps", 1)
        (data / "train.images.raw").write_bytes(images.read_bytes())
        err = self.l3c("run", MNIST, "--data", f"mnist={data}", "--steps", 1, code=1).err
        self.assertRegex(err, "both '.*train.images.idx.*' and '.*train.images.raw' could be field 'images'")

    def test_budget_that_runs_out(self):
        for budget in ("work=100", "nodes=20"):
            result = self.l3c("lower", MNIST, "--to", "l2", "--budget", budget, code=1)
            self.assertIn("Timeout", result.err)
            self.assertIn("fix:", result.err)

    def test_cyclic_models(self):
        text = SPEC.replace("in:  mnist.images", "in:  other.out") + (
            "\nmodel other {\n    in:  classify.out\n    out: tensor(f32, [28, 28])\n}\n"
        )
        self.refuse(text, "cycl")

    def test_garbage(self):
        generator = random.Random(1)
        for blob in (
            b"",
            b"\0" * 1000,
            generator.randbytes(100_000),
            bytes(generator.choice(b"{}()[]:,.#abz019 \n") for _ in range(200_000)),
            b"data " * 10,
            SPEC.encode()[: len(SPEC) // 2],
        ):
            for name in ("x.l3", "x.l2", "x.l1", "x.l0"):
                path = self.write(name, blob)
                result = self.l3c("check", path, code=1, timeout=60)
                self.assertIn("error[", result.err)

    def test_ten_megabytes(self):
        path = self.write("big.l3", b"model x { " * 1_000_000)
        self.assertIn("error[", self.l3c("check", path, code=1, timeout=60).err)

    def test_ten_thousand_brackets(self):
        for opening in "([{":
            for text in (opening * 10_000, SPEC.replace("dist(10)", "dist" + opening * 10_000)):
                for suffix in ("l3", "l2", "l1", "l0"):
                    path = self.write(f"deep.{suffix}", text)
                    self.assertIn("error[", self.l3c("check", path, code=1, timeout=60).err)

    def test_system_without_a_program(self):
        system = "system s {\n    node cpu { kind: compute, isa: x86_64, cores: 2 }\n\n    edges {\n    }\n}\n"
        path = self.write("system.l1", system)
        for args in (("run", path), ("optimize", path), ("lower", path, "--to", "l0")):
            self.assertIn("--system", self.l3c(*args, code=1).err)

    def test_missing_file_and_unknown_layer(self):
        self.assertIn("error[environment]", self.l3c("check", self.dir / "none.l3", code=1).err)
        self.assertIn("error", self.l3c("check", self.write("x.txt", "hello"), code=1).err)
        self.assertIn("error", self.l3c("check", self.dir, code=1).err)

    def test_cannot_raise_a_layer(self):
        method = self.write("m.l2", self.l3c("lower", MNIST, "--to", "l2").out)
        self.assertIn("l3", self.l3c("lower", method, "--to", "l3", code=1).err)

    def test_more_steps_than_can_be_counted(self):
        plan = self.l3c("lower", MNIST, "--to", "l0").out
        plan, places = re.subn(r"(?m)^(\s+steps_per_epoch: )\d+", rf"\g<1>{2**62}", plan)
        self.assertEqual(places, 1)
        result = self.l3c("run", self.write("plan.l0", plan), "--epochs", 3, code=1)
        self.assertIn("more steps than can be counted", result.err)

    # ---- usage --------------------------------------------------------------------------------
    def test_usage(self):
        for args, hint in (
            ((), "help"),
            (("optimize", MNIST, "--budget", "seconds=3"), "candidates"),
            (("optimize", MNIST, "--budget", "work=-1"), "work"),
            (("optimise", MNIST), "optimize"),
            (("run", MNIST, "--epoch", "3"), "--epochs"),
            (("run", MNIST, "--epochs", "0"), "epochs"),
            (("run", MNIST, "--epochs", "many"), "epochs"),
            (("run",), "FILE"),
            (("lower", MNIST), "--to"),
            (("lower", MNIST, "--to", "l9"), "l9"),
            (("optimize", MNIST, "--search", "egg"), "egraph"),
            (("optimize", MNIST, "--force", "nonsense"), "ID=LOSER"),
            (("run", MNIST, "--data", "mnist"), "NAME=DIR"),
        ):
            result = self.l3c(*args, code=2)
            self.assertIn(hint, result.err + result.out, args)

    def test_wrong_usage_names_the_help_of_its_command(self):
        for args, command in (
            ((), "l3c"),
            (("fly",), "l3c"),
            (("run", MNIST, "--fast"), "l3c run"),
            (("check",), "l3c check"),
            (("lower", MNIST), "l3c lower"),
            (("egraph",), "l3c egraph"),
            (("egraph", "run", "x.egg", "--max-nodes", "-1"), "l3c egraph run"),
            (("egraph", "extract"), "l3c egraph extract"),
        ):
            self.assertIn(f"run '{command} --help' for usage\n", self.l3c(*args, code=2).err)

    def test_data_and_no_data_exclude_each_other(self):
        for command in (("run",), ("optimize",), ("lower", "--to", "l2")):
            result = self.l3c(*command, MNIST, "--data", f"mnist={self.dir}", "--synthetic", code=2)
            self.assertIn("--data and --synthetic exclude each other", result.err)

    # ---- JSON lines ---------------------------------------------------------------------------
    def lines(self, *args, code=1, **kwargs):
        """What --json prints: objects alone, the last one the event done."""
        result = self.l3c(*args, "--json", code=code, **kwargs)
        events = [json.loads(line) for line in result.out.splitlines()]
        self.assertEqual(["done"], [e["event"] for e in events if e["event"] == "done"])
        self.assertEqual(("done", code == 0), (events[-1]["event"], events[-1].get("ok", True)))
        return events, result.err

    def test_errors_are_json_lines_too(self):
        bad = self.write("bad.l3", SPEC.replace("mnist.images\n", "mnist.imagse\n"))
        for command in ("check", "optimize", "run"):
            events, err = self.lines(command, bad)
            error = events[0]
            self.assertEqual(("diagnostic", "safety"), (error["event"], error["kind"]))
            place = f"{error['file']}:{error['line']}:{error['column']}: error[safety]: "
            self.assertIn(place + error["message"], err)
        events, err = self.lines("check", self.dir / "none.l3")
        self.assertEqual("environment", events[0]["kind"])
        self.assertIn(events[0]["message"], err)
        self.assertEqual("environment", self.lines("eval", self.dir)[0][0]["kind"])
        self.assertIn("fix", self.lines("optimize", MNIST, "--budget", "nodes=20")[0][0])

    def test_errors_of_the_engine_are_json_lines_too(self):
        program = self.write("bad.egg", "(print-size)\n(relation r (i64))\n (r \"é\")\n")
        events, err = self.lines("egraph", "run", program)
        self.assertEqual(["sizes", "diagnostic", "done"], [e["event"] for e in events])
        self.assertEqual((3, 5), (events[1]["line"], events[1]["column"]))
        self.assertIn(f"{program}:3:5: error[safety]: {events[1]['message']}", err)
        self.assertEqual(2, len(self.lines("egraph", "run", self.dir / "none.egg")[0]))
        graph = self.write("bad.json", "{")
        error = self.lines("egraph", "extract", graph)[0][0]
        self.assertEqual(("syntax", 1), (error["kind"], error["line"]))
        graph = self.write("good.json", json.dumps(
            {"nodes": {"a": {"op": "f", "children": [], "eclass": "A", "cost": 1}}, "root_eclasses": ["A"]}))
        events, _ = self.lines("egraph", "extract", graph, code=0)
        self.assertEqual(["extraction", "done"], [e["event"] for e in events])
        self.lines("check", MNIST, code=0)

    def test_help_shows_examples(self):
        self.assertIn("examples/mnist/mnist.l3", self.l3c("--help").out)

    # ---- data ---------------------------------------------------------------------------------
    def train_on(self, folder, code=1):
        return self.l3c(
            "run", MNIST, "--data", f"mnist={folder}", "--steps", 2, "-o", self.dir / "out",
            "--overwrite", code=code,
        )

    def test_small_data_trains_compressed_or_not(self):
        for compress in (True, False):
            self.train_on(small_mnist(self.dir / f"data-{compress}", rows=200, compress=compress), code=0)

    def test_missing_data(self):
        result = self.train_on(self.dir / "nowhere")
        self.assertIn("nowhere", result.err)
        folder = small_mnist(self.dir / "partial")
        (folder / "train-labels-idx1-ubyte.gz").unlink()
        self.assertIn("train-labels", self.train_on(folder).err)

    def test_truncated_data(self):
        for keep in (0, 3, 10, 1000, -5):
            folder = small_mnist(self.dir / f"cut{keep}", rows=200)
            path = folder / "train-images-idx3-ubyte.gz"
            path.write_bytes(path.read_bytes()[:keep])
            self.assertIn("train-images", self.train_on(folder).err)
        for keep in (0, 3, 15, 16, 1000, -1):
            folder = small_mnist(self.dir / f"raw{keep}", rows=200, compress=False)
            path = folder / "train-images-idx3-ubyte"
            path.write_bytes(path.read_bytes()[:keep])
            self.assertIn("train-images", self.train_on(folder).err)

    def test_label_out_of_range(self):
        folder = small_mnist(
            self.dir / "labels", rows=200, labels=lambda split, n: [10 if i == 57 else i % 10 for i in range(n)]
        )
        result = self.train_on(folder)
        self.assertIn("57", result.err)
        self.assertIn("10", result.err)

    def test_counts_that_differ(self):
        a, b = small_mnist(self.dir / "a", rows=200), small_mnist(self.dir / "b", rows=150)
        name = "train-labels-idx1-ubyte.gz"
        (a / name).write_bytes((b / name).read_bytes())
        result = self.train_on(a)
        self.assertIn("200", result.err)
        self.assertIn("150", result.err)

    # ---- output -------------------------------------------------------------------------------
    def test_output_that_cannot_be_a_folder(self):
        taken = self.write("taken", "a file")
        result = self.l3c("run", MNIST, "--steps", 1, "-o", taken, code=1)
        self.assertIn("error[environment]", result.err)
        self.assertEqual("a file", taken.read_text())
        result = self.l3c("run", MNIST, "--steps", 1, "-o", "/proc/l3c-run", code=1)
        self.assertIn("error[environment]", result.err)

    def test_earlier_run_is_not_overwritten(self):
        out = self.dir / "run"
        self.run_json(MNIST, "--steps", 1, "-o", out)
        before = (out / "events.jsonl").read_bytes()
        result = self.l3c("run", MNIST, "--steps", 1, "-o", out, code=1)
        self.assertIn("--overwrite", result.err)
        self.assertEqual(before, (out / "events.jsonl").read_bytes())

    def test_output_that_does_not_arrive(self):
        for args in (("check", MNIST), ("lower", MNIST, "--to", "l2"), ("optimize", MNIST, "--json")):
            with open("/dev/full", "w") as full:
                done = subprocess.run(
                    [L3C, *map(str, args)], cwd=ROOT, stdout=full, stderr=subprocess.PIPE, text=True
                )
            self.assertEqual(1, done.returncode, args)
            self.assertIn("error[environment]", done.stderr)

    def test_links_are_written_through(self):
        target, link = self.write("target.l2", "old"), self.dir / "link.l2"
        link.symlink_to(target)
        self.l3c("lower", MNIST, "--to", "l2", "-o", link)
        self.assertTrue(link.is_symlink())
        self.assertTrue(target.read_text().startswith("# l3c l2 v1"))

    def test_eval_of_nothing(self):
        self.assertIn("error[environment]", self.l3c("eval", self.dir / "none", code=1).err)
        self.assertIn("error[environment]", self.l3c("eval", self.dir, code=1).err)


if __name__ == "__main__":
    unittest.main()
