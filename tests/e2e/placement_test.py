"""Placement on the example systems: what is chosen and why, what runs, what is refused."""

import os
import re
import struct
import unittest

from harness import ROOT, L3cTest, small_mnist

SYSTEMS = ROOT / "examples/systems"
WIDE = ROOT / "tests/layers/l1/programs/wide.l2"
MNIST = ROOT / "tests/layers/l1/programs/mnist.l2"


class Placement(L3cTest):
    def decisions(self, method, system, *args):
        events = self.l3c("optimize", method, "--synthetic", "--json", "--system",
                          SYSTEMS / system, *args).events()
        decisions = [e for e in events if e["event"] == "decision" and e["lowering"] == "l2->l1"]
        return {d["id"].removeprefix("l1/"): d for d in decisions}, events[-1]

    def test_systems_check(self):
        files = sorted(SYSTEMS.glob("*.l1"))
        self.assertEqual(4, len(files))
        for path in files:
            self.l3c("check", path)

    def test_what_is_chosen_on_each_system(self):
        for system, model, update in (
            ("one_cpu.l1", "cpu_0", "cpu_0"),
            ("cpu_gpu.l1", "gpu_0", "gpu_0"),
            ("four_gpus.l1", "gpu_0+gpu_1+gpu_2+gpu_3", "gpu_0+gpu_1+gpu_2+gpu_3"),
            ("two_hosts.l1", "cpu_0+cpu_1", "cpu_0+cpu_1"),
        ):
            decisions, done = self.decisions(WIDE, system)
            self.assertEqual(model, decisions["node.forward_backward"]["chosen"], system)
            self.assertEqual(update, decisions["node.model_state"]["chosen"], system)
            self.assertEqual("not_lowered" in done, "gpu" in system)
            for decision in decisions.values():
                for loser in decision["losers"]:
                    self.assertGreaterEqual(loser["cost"][0]["value"], decision["cost"][0]["value"])
                for pruned in decision["pruned"]:
                    self.assertTrue(pruned["why"])

    def test_a_loser_is_forced_at_the_cost_that_was_shown(self):
        free, _ = self.decisions(WIDE, "cpu_gpu.l1")
        for name, decision in free.items():
            for loser in decision["losers"][:2]:
                forced, _ = self.decisions(WIDE, "cpu_gpu.l1", "--force",
                                           f"l1/{name}={loser['label']}")
                self.assertEqual(loser["label"], forced[name]["chosen"])
                self.assertEqual(loser["cost"], forced[name]["cost"])

    def test_what_has_no_backend_is_refused_before_it_trains(self):
        out = self.dir / "run"
        for command in (("run", "-o", out), ("lower", "--to", "l0"), ("build", "-o", out)):
            done = self.l3c(command[0], WIDE, *command[1:], "--synthetic", "--system",
                            SYSTEMS / "cpu_gpu.l1", code=1)
            self.assertIn("node gpu_0 has isa ptx, which has no backend yet", done.err)
            self.assertIn("`l3c lower --to l1` prints the placement", done.err)
        self.assertFalse(out.exists())
        text = self.l3c("optimize", WIDE, "--synthetic", "--explain", "--system",
                        SYSTEMS / "cpu_gpu.l1").out
        self.assertIn("l1->l0: not lowered: node gpu_0 has isa ptx", text)
        # What is placed on the host runs there.
        forced = [arg for op in ("forward_backward", "model_state")
                  for arg in ("--force", f"l1/node.{op}=cpu_0")]
        self.l3c("lower", WIDE, "--synthetic", "--to", "l0", "--system", SYSTEMS / "cpu_gpu.l1",
                 *forced)

    def test_two_hosts_train_to_the_same_result(self):
        data = small_mnist(self.dir / "mnist", rows=300, test_rows=64)
        common = (MNIST, "--data", f"mnist={data}", "--steps", 5)
        def two_hosts(*forced):
            return self.run_json(*common, "--system", SYSTEMS / "two_hosts.l1",
                                 *[a for f in forced for a in ("--force", f)])

        alone = two_hosts("l1/node.forward_backward=cpu_0", "l1/node.model_state=cpu_0")
        other = self.run_json(*common, "--system", SYSTEMS / "one_cpu.l1")  # kernels of its own
        self.assertLess(abs(alone["loss"] - other["loss"]), 1e-4 * alone["loss"])
        # Where no sum over rows is cut, nothing changes: the state travels to the other host.
        for forced in (
            ("l1/node.forward_backward=cpu_1", "l1/node.model_state=cpu_0"),
            ("l1/node.forward_backward=cpu_1", "l1/node.model_state=cpu_1", "l1/stages=split"),
        ):
            run = two_hosts(*forced)
            self.assertEqual(alone["weights_sha256"], run["weights_sha256"], forced)
            self.assertEqual(alone["loss"], run["loss"], forced)
        for partition in ("data(2)", "stages(2)"):
            shared = two_hosts(f"l1/partition={partition}")
            self.assertLess(abs(alone["loss"] - shared["loss"]), 1e-4 * alone["loss"])
            self.assertNotEqual(alone["weights_sha256"], shared["weights_sha256"])
            self.assertEqual(alone["accuracy"], shared["accuracy"])

    def test_each_host_computes_on_a_stream_of_its_own(self):
        data = small_mnist(self.dir / "mnist", rows=300, test_rows=64)
        common = ("--data", f"mnist={data}", "--steps", 5)
        for partition, gradients in (("data(2)", "gather"), ("data(2)", "ring"), ("stages(2)", None)):
            forced = ["--force", f"l1/partition={partition}"]
            forced += ["--force", f"l1/gradients={gradients}"] if gradients else []
            placed = self.write("placed.l1", self.l3c(
                "lower", MNIST, *common, "--to", "l1", "--system", SYSTEMS / "two_hosts.l1", *forced).out)
            plan = self.l3c("lower", placed, *common, "--to", "l0").out
            for line in ("    compute_cpu_0 : compute on cpu_0", "    compute_cpu_1 : compute on cpu_1"):
                self.assertIn(line, plan)
            for words in ("wait cpu_0_to_cpu_1", "signal cpu_1_to_cpu_0"):
                self.assertIn(words, plan)
            self.assertRegex(plan, r" : exchange +on ram_1,")
            alone = ("--force", "l0/streams=one of each")
            self.assertNotIn("compute_cpu_1", self.l3c("lower", placed, *common, "--to", "l0", *alone).out)
            text = placed.read_text()
            depth = re.search(r"pipeline_depth: \d", text)[0]
            runs = [self.run_json(placed, *common, *alone)]
            for n in (1, 2, 3, 4):
                deep = self.write(f"depth{n}.l1", text.replace(depth, f"pipeline_depth: {n}"))
                runs.append(self.run_json(deep, *common, "--threads", n))
            for figure in ("weights_sha256", "loss", "accuracy"):
                self.assertEqual(1, len({run[figure] for run in runs}), (partition, figure))

    HOSTS = 4

    def hosts(self, count=HOSTS):
        nodes, edges = ["node ssd_0 { kind: storage }"], ["ssd_0 -> ram_0 : bandwidth 5GB/s"]
        for n in range(count):
            nodes += [f"node ram_{n} {{ kind: memory, capacity: 16GB }}",
                      f"node cpu_{n} {{ kind: compute, isa: x86_64, cores: 2, features: [avx2, fma] }}"]
            edges += [f"ram_{n} <-> cpu_{n} : bandwidth 50GB/s",
                      f"cpu_{n} <-> cpu_{(n + 1) % count} : bandwidth 10GB/s"]
        return self.write("hosts.l1", "system hosts {\n" + "\n".join(nodes) + "\nedges {\n" +
                          "\n".join(edges) + "\n}\n}\n")

    def test_many_hosts_have_a_plan(self):
        """What is looked at of them is bounded, and what is not is listed."""
        system = self.hosts(12)
        told = self.l3c("optimize", ROOT / "bench/workloads/mlp_small_sgd.l2", "--synthetic", "--system", system,
                        "--json", "--brief").events()
        placed = next(e for e in told if e["event"] == "search" and e["lowering"] == "l2->l1")
        left_out = [p["what"] for p in placed["pruned"] if "not looked at" in p["why"]]
        self.assertEqual(len([what for what in left_out if what.startswith("node cpu_")]), 4)

    def test_gradients_go_round_in_a_ring(self):
        """A decision with its cost; the result is that of one node within the class, and its bits do
        not depend on the threads. The plan passes its verifier."""
        data = small_mnist(self.dir / "mnist", rows=300, test_rows=64)
        system = self.hosts()
        shared = ("--force", f"l1/partition=data({self.HOSTS})")
        ring, gather = (shared + ("--force", f"l1/gradients={how}") for how in ("ring", "gather"))
        common = (MNIST, "--data", f"mnist={data}", "--steps", 5)
        alone = self.run_json(*common, "--system", SYSTEMS / "one_cpu.l1")
        runs = [self.run_json(*common, "--system", system, *ring, "--threads", n) for n in (1, 2)]
        self.assertEqual(runs[0]["weights_sha256"], runs[1]["weights_sha256"])
        self.assertEqual(runs[0]["loss"], runs[1]["loss"])
        self.assertLess(abs(alone["loss"] - runs[0]["loss"]), 1e-4 * alone["loss"])
        self.assertEqual(alone["accuracy"], runs[0]["accuracy"])
        # Parts that add up in another order.
        other = self.run_json(*common, "--system", system, *gather)
        self.assertNotEqual(other["weights_sha256"], runs[0]["weights_sha256"])
        self.assertLess(abs(other["loss"] - runs[0]["loss"]), 1e-4 * alone["loss"])
        # Of two nodes there is one order, so both give the same bits.
        two = [self.run_json(*common, "--system", SYSTEMS / "two_hosts.l1", "--force",
                             "l1/partition=data(2)", "--force", f"l1/gradients={how}")
               for how in ("ring", "gather")]
        self.assertEqual(two[0]["weights_sha256"], two[1]["weights_sha256"])

        placed = self.l3c("lower", MNIST, "--synthetic", "--to", "l1", "--system", system, *ring).out
        self.assertIn("actor model_state_3 on cpu_3 replicates model_state {", placed)
        self.assertIn("stage ring_train_1 on cpu_0 {", placed)
        text = self.write("ring.l1", placed)
        self.assertEqual(placed, self.l3c("lower", text, "--to", "l1").out)
        plan = self.l3c("lower", text, "--to", "l0").out
        self.l3c("check", self.write("ring.l0", plan))
        for words in ("sequence train_0 on compute_cpu_0 {", "wait full_0", "signal free_0"):
            self.assertIn(words, plan)

        free, _ = self.decisions(WIDE, "four_gpus.l1")
        self.assertEqual("ring", free["gradients"]["chosen"])
        self.assertEqual("rewrites/placement.egg",
                         next(r["file"] for r in free["node.model_state"]["rules"]
                              if r["name"] == "ring-all-reduce"))
        forced, _ = self.decisions(WIDE, "four_gpus.l1", "--force", "l1/gradients=gather")
        self.assertEqual(free["gradients"]["losers"][0]["cost"], forced["gradients"]["cost"])
        exact, _ = self.decisions(WIDE, "four_gpus.l1", "--numerics", "exact")
        self.assertNotIn("gradients", exact)


class Messages(L3cTest):
    """Why there is no placement, and a way out: the cause that holds, on record."""

    GOLDEN = ROOT / "tests/e2e/fixtures/placement_messages.txt"
    MODEL = ROOT / "examples/memory/wide.l2"

    def near_far(self, edge, more=""):
        text = (ROOT / "examples/memory/near_far.l1").read_text()
        text = text.replace("    ram_1 <-> ram_0 : bandwidth 10GB/s\n",
                            "".join(f"    {e} : bandwidth 10GB/s\n" for e in edge.split(", ") if e))
        return text.replace("    node cpu_0", more + "    node cpu_0")

    def test_the_cause_that_holds(self):
        two = (SYSTEMS / "two_hosts.l1").read_text()
        between = "cpu_0 <-> cpu_1 : bandwidth 12.5GB/s"
        self.assertIn(between, two)
        on_1 = ("--force", "l1/node.forward_backward=cpu_1")
        hop = "    node ram_2 { kind: memory, capacity: 1MB }\n"
        cases = {
            "no edge to the memory that has room": (self.near_far(""), ()),
            "an edge one way": (self.near_far("ram_1 -> ram_0"), ()),
            "two edges, by way of a memory": (self.near_far("ram_1 <-> ram_2, ram_2 <-> ram_0", hop), ()),
            "no memory has room": (self.near_far("ram_1 <-> ram_0").replace("16GB", "6MB"), ()),
            "a memory too small for a step": (self.near_far("ram_1 <-> ram_0").replace("6500kB", "100kB"), ()),
            "state is brought in to one node": (self.near_far(
                "ram_1 <-> ram_0, ram_2 <-> cpu_1, cpu_0 <-> cpu_1",
                "    node ram_2 { kind: memory, capacity: 6MB }\n"
                "    node cpu_1 { kind: compute, isa: x86_64, cores: 2, features: [avx2, fma] }\n"),
                ("--force", "l1/partition=data(2)")),
            "no edge to the node that is asked for": (two.replace(between, ""), on_1),
            "one way to the node that is asked for": (
                two.replace(between, "cpu_0 -> cpu_1 : bandwidth 12.5GB/s"),
                on_1 + ("--force", "l1/node.model_state=cpu_0")),
            "a storage that nothing is read from": (two.replace("ssd_0 -> ram_0", "ram_0 -> ssd_0"), ()),
        }
        told = ""
        for name, (system, args) in cases.items():
            err = self.l3c("lower", self.MODEL, "--synthetic", "--to", "l1", "--system",
                           self.write("system.l1", system), *args, code=1).err
            lines = [line for line in err.splitlines() if re.match(r".*error\[|fix:|note:", line)]
            told += f"== {name}\n" + "\n".join(lines).replace(f"{ROOT}/", "") + "\n"
        if os.environ.get("L3C_REGENERATE"):
            self.GOLDEN.write_text(told)
        self.assertEqual(self.GOLDEN.read_text(), told)


class TwoDevices(L3cTest):
    """A placement written by hand: gradients go back to the other side in a pipeline of its own."""

    def test_trains_as_its_text_says(self):
        text = (ROOT / "tests/layers/l1/programs/two_devices.l1").read_text()
        refused = self.l3c("run", self.write("card.l1", text), "-o", self.dir / "none", code=1)
        self.assertIn("has isa cuda, which has no backend yet", refused.err)
        x = [[((7 * i + 3 * j) % 11) / 5 - 1 for j in range(12)] for i in range(64)]
        y = [[sum(row[k::5]) for k in range(5)] for row in x]
        self.write("points/train.x.raw", struct.pack("<768f", *[v for row in x for v in row]))
        self.write("points/train.y.raw", struct.pack("<320f", *[v for row in y for v in row]))
        # The card as a second CPU with a memory of its own; the parameters from zero.
        both = re.sub(r"isa: cuda, vram: 8GB, sm: 68, arch: sm_86", "isa: x86_64, cores: 4, vram: 8GB",
                      text).replace("init: kaiming", "init: zeros")
        both = both.replace("    pipeline_depth: 2", """    pipeline_depth: 2
    phases [ main(pipeline: learn, epochs: 3) ]
    metrics [ loss(split: train, graph: both_ways, numerator: loss, denominator: ones) ]""")
        both = both.replace("return (loss, ", "return (loss, ones, ").replace(
            "-> (loss, gm, gc)", "-> (loss, ones, gm, gc)").replace(
            "        return (", "        let ones = tensor_const(1.0)\n        return (")
        run = self.run_json(self.write("both.l1", both), "--data", f"points={self.dir / 'points'}")
        m = [[0.0] * 5 for _ in range(12)]
        c = [0.0] * 5
        for _ in range(3):
            losses = []
            for first in range(0, 64, 16):
                rows = range(first, first + 16)
                gap = [[sum(x[r][j] * m[j][k] for j in range(12)) + c[k] - y[r][k] for k in range(5)]
                       for r in rows]
                losses.append(sum(g * g for row in gap for g in row) / 80)
                gm = [[sum(x[first + r][j] * gap[r][k] * 0.025 for r in range(16)) for k in range(5)]
                      for j in range(12)]
                gc = [sum(gap[r][k] * 0.025 for r in range(16)) for k in range(5)]
                m = [[m[j][k] - 3e-4 * gm[j][k] for k in range(5)] for j in range(12)]
                c = [c[k] - 3e-4 * gc[k] for k in range(5)]
        self.assertEqual(12, run["steps"])
        expected = sum(losses) / 4
        self.assertLess(abs(run["loss"] - expected), 1e-5 * expected)


if __name__ == "__main__":
    unittest.main()
