"""What earlier runs left changes no result: cold, warm, damaged, shared or switched off."""

import os
import re
import shutil
import subprocess
import unittest

from harness import L3C, ROOT, L3cTest

PHASES = ROOT / "examples/methods/phases.l2"
DEEP = ROOT / "bench/workloads/gpt.l2"


class Cache(L3cTest):
    def setUp(self):
        super().setUp()
        self.cache = self.dir / "cache"
        before = os.environ["XDG_CACHE_HOME"]
        os.environ["XDG_CACHE_HOME"] = str(self.cache)
        self.addCleanup(os.environ.__setitem__, "XDG_CACHE_HOME", before)

    def plan(self, *args, program=PHASES):
        return self.l3c("lower", program, "--to", "l0", "--synthetic", *args)

    def reused(self, *args, program=PHASES, kind="search"):
        """What the search reused and what it made."""
        err = self.plan("--explain", *args, program=program).err
        line = re.search(rf"^cache, {kind}: reused (.*); made (.*)$", err, re.MULTILINE)
        return tuple(set() if part == "nothing" else set(part.split(", ")) for part in line.groups())

    def state(self, *args):
        return self.l3c("cache", *args, "--json").events()[0]

    def entries(self):
        return sorted(p for p in self.cache.rglob("*-*") if p.is_file())

    def test_no_result_depends_on_it(self):
        off = self.plan("--no-cache").out
        self.assertFalse(self.cache.exists())
        explained = self.l3c("optimize", PHASES, "--synthetic", "--json", "--no-cache").out
        for _ in ("cold", "warm"):
            self.assertEqual(off, self.plan().out)
            self.assertEqual(explained, self.l3c("optimize", PHASES, "--synthetic", "--json").out)
        self.assertGreater(self.state()["entries"], 0)
        # Nowhere to keep anything: a file in its place, and no place at all.
        shutil.rmtree(self.cache)
        self.cache.write_text("in the way")
        self.assertEqual(off, self.plan().out)
        nowhere = {k: v for k, v in os.environ.items() if k not in ("XDG_CACHE_HOME", "HOME")}
        done = subprocess.run([L3C, "lower", str(PHASES), "--to", "l0", "--synthetic"], cwd=ROOT,
                              capture_output=True, text=True, env=nowhere, timeout=240)
        self.assertEqual(off, done.stdout, done.stderr)

    def test_what_a_change_concerns_is_made_anew(self):
        everything = {"l0/train", "l0/test", "l0/train_2", "l0/train_3"}
        self.assertEqual((set(), everything), self.reused())
        self.assertEqual((everything, set()), self.reused())
        # The update of the last phase is nothing to the others.
        text = PHASES.read_text()
        self.assertIn("finetune(steps: 50, update: sgd(lr: 1e-3))", text)
        changed = self.write("changed.l2", text.replace("sgd(lr: 1e-3)", "sgd(lr: 2e-3)"))
        self.assertEqual((everything - {"l0/train_3"}, {"l0/train_3"}), self.reused(program=changed))
        self.assertEqual(self.plan("--no-cache", program=changed).out, self.plan(program=changed).out)
        # Everything else that decides is part of the key.
        for option in (("--search", "greedy"), ("--numerics", "exact"), ("--without", "layout"),
                       ("--budget", "work=40000000")):
            self.assertEqual(set(), self.reused(*option)[0], option)
            self.assertEqual(self.plan("--no-cache", *option).out, self.plan(*option).out, option)

    def test_a_loss_term_leaves_the_blocks(self):
        parts = {"l0/train/block", "l0/train/before", "l0/train/after"}
        greedy = ("--search", "greedy")  # explained in a tenth of the time
        self.assertEqual((set(), parts), self.reused(*greedy, program=DEEP, kind="part"))
        self.assertEqual(({"l0/train"}, set()), self.reused(*greedy, program=DEEP))
        # A term more: the gradient is made of other ops, and every later value has another name.
        term = "ce: divergence(predict.out, tokens.next), weight: 1.0\n"
        self.assertIn(term, DEEP.read_text())
        more = term + "    more: divergence(predict.out, tokens.next), weight: 0.5\n"
        changed = self.write("changed.l2", DEEP.read_text().replace(term, more))
        self.assertEqual((parts - {"l0/train/after"}, {"l0/train/after"}),
                         self.reused(*greedy, program=changed, kind="part"))
        self.assertEqual(self.plan("--no-cache", *greedy, program=changed).out,
                         self.plan(*greedy, program=changed).out)

    def kernels(self, out, program=PHASES):
        """A run: its end, and how many kernels it reused and made."""
        result = self.l3c("run", program, "--synthetic", "--explain", "--json", "-o", self.dir / out)
        line = re.search(r"^cache, kernel: reused (.*); made (.*)$", result.err, re.MULTILINE)

        def count(text):
            listed, _, more = text.partition(" and ")
            return 0 if text == "nothing" else len(listed.split(", ")) + int(more.removesuffix(" more") or 0)

        reused, made = count(line.group(1)), count(line.group(2))
        plan = (self.dir / out / "plan.l0").read_text()
        self.assertEqual(len(re.findall("^kernel ", plan, re.MULTILINE)), reused + made)
        return result.done["weights_sha256"], reused, made

    def test_kernels_are_kept(self):
        off = self.run_json(PHASES, "--synthetic", "--no-cache", "-o", self.dir / "off")["weights_sha256"]
        cold, reused, made = self.kernels("cold")
        self.assertEqual((off, 0), (cold, reused))
        self.assertGreater(made, 20)
        self.assertEqual((off, made, 0), self.kernels("warm"))
        # Another rate of the last phase: its constant is in a few kernels.
        changed = self.write("changed.l2", PHASES.read_text().replace("sgd(lr: 1e-3)", "sgd(lr: 2e-3)"))
        bits, reused, remade = self.kernels("changed", changed)
        self.assertNotEqual(off, bits)
        self.assertGreater(reused, 4 * remade)
        self.assertGreater(remade, 0)
        self.assertEqual(self.run_json(changed, "--synthetic", "--no-cache", "-o", self.dir / "changed-off")
                         ["weights_sha256"], bits)
        # Another weight of a loss term: the forward pass and what is no gradient stay.
        self.assertIn("weight: 1.0", PHASES.read_text())
        weighed = self.write("weighed.l2", PHASES.read_text().replace("weight: 1.0", "weight: 2.0"))
        _, reused, remade = self.kernels("weighed", weighed)
        self.assertGreater(reused, remade)
        self.assertGreater(remade, 0)
        for entry in self.entries():
            data = bytearray(entry.read_bytes())
            data[len(data) // 2] ^= 1
            entry.write_bytes(data)
        self.assertEqual((off, 0, made), self.kernels("damaged"))

    def test_damage_counts_for_nothing(self):
        whole = self.plan().out
        entries = self.entries()
        self.assertGreater(len(entries), 3)
        for n, entry in enumerate(entries):
            data = entry.read_bytes()
            if n % 3 == 0:
                entry.write_bytes(data[: len(data) // 2])
            elif n % 3 == 1:
                entry.write_bytes(data[:-1] + bytes([data[-1] ^ 1]))
            else:
                entry.write_bytes(b"")
        self.assertEqual(len(entries), self.state()["damaged"])
        self.assertEqual(whole, self.plan().out)
        self.assertEqual(0, self.state()["damaged"])
        self.assertEqual(entries, self.entries())

    def test_programs_at_the_same_time(self):
        command = [L3C, "lower", str(PHASES), "--to", "l0", "--synthetic"]
        running = [subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) for _ in range(4)]
        outs = {process.communicate(timeout=240)[0] for process in running}
        self.assertEqual({self.plan("--no-cache").out}, outs)
        state = self.state()
        self.assertEqual((4, 0), (state["entries"], state["damaged"]))
        self.assertEqual([], list(self.cache.rglob(".aside-*")))

    def test_its_bound_holds(self):
        self.plan()
        full = self.state()
        self.assertEqual(1 << 30, full["limit"])
        self.assertEqual(sum(p.stat().st_size for p in self.entries()), full["bytes"])
        oldest = min(self.entries(), key=lambda p: p.stat().st_mtime_ns)
        half = self.state("limit", f"{full['bytes'] * 3 // 4}B")
        self.assertLessEqual(half["bytes"], half["limit"])
        self.assertGreater(half["entries"], 0)
        self.assertFalse(oldest.exists())
        self.plan("--search", "greedy")
        self.assertLessEqual(self.state()["bytes"], half["limit"])
        self.assertIn("entries removed", self.l3c("cache", "clear").out)
        self.assertEqual(0, self.state()["entries"])
        self.assertEqual(half["limit"], self.state()["limit"])
        self.l3c("cache", "limit", "lots", code=2)
        self.l3c("cache", "limit", code=2)
        self.l3c("cache", "bin", code=2)


if __name__ == "__main__":
    unittest.main()
