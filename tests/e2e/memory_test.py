"""--memory and small systems: what does not fit is computed again, to the same bits."""

import os
import re
import unittest

from harness import ROOT, L3cTest

DEEP = ROOT / "examples/memory/deep.l2"
SMALL = ROOT / "examples/memory/small.l1"
EXAMPLES = ROOT / "examples"


def pools(plan):
    """Bytes of each pool of a plan's text."""
    units = {"B": 1, "kB": 1000, "MB": 1000**2, "GB": 1000**3, "KiB": 2**10, "MiB": 2**20,
             "GiB": 2**30}
    found = re.findall(r"^    (\w+) +: (?:persistent|arena|staging|exchange|window) +on \w+, (\d+)([A-Za-z]+) +of",
                       plan, re.MULTILINE)
    return {name: int(number) * units[unit] for name, number, unit in found}


class Memory(L3cTest):
    def plan(self, *args, **kwargs):
        return self.l3c("lower", *args, "--to", "l0", **kwargs)

    def test_the_example_trains_where_it_does_not_fit(self):
        capacity = 2_200_000
        self.assertIn(f"capacity: {capacity // 1000}kB", SMALL.read_text())
        free = self.plan(DEEP, "--system", self.roomy()).out
        self.assertGreater(sum(pools(free).values()), 2 * capacity)
        bound = self.plan(DEEP, "--system", SMALL).out
        self.assertLessEqual(sum(pools(bound).values()), capacity)
        self.assertGreater(bound.count("launch"), free.count("launch"))
        ends = [self.run_json(DEEP, "--system", system)
                for system in (self.roomy(), SMALL)]
        for figure in ("loss", "accuracy", "weights_sha256"):
            self.assertEqual(ends[0][figure], ends[1][figure])
        # Without the rules nothing can be computed again.
        self.assertIn("checkpointing.egg",
                      self.plan(DEEP, "--system", SMALL, "--without", "checkpointing", code=1).err)

    def roomy(self):
        return self.write("roomy.l1", SMALL.read_text().replace("2200kB", "2GB"))

    def test_the_least_that_is_needed_is_enough(self):
        refused = self.plan(DEEP, "--memory", "300KiB", code=1).err
        self.assertIn("error[resource-bound]: the plan needs", refused)
        self.assertIn("--memory gives it 307200", refused)
        needed = int(re.search(r"fix: write --memory (\d+)B or more", refused).group(1))
        self.assertGreater(needed, 307200)
        least = self.plan(DEEP, "--memory", f"{needed}B").out
        self.assertLessEqual(sum(pools(least).values()), needed)
        again = self.plan(DEEP, "--memory", f"{needed * 97 // 100}B", code=1).err
        self.assertIn(f"fix: write --memory {needed}B or more", again)
        # A plan has no decision left.
        plan = self.write("least.l0", least)
        self.l3c("lower", plan, "--to", "l0", "--memory", f"{needed}B")
        self.assertIn("a plan has no decision left",
                      self.l3c("lower", plan, "--to", "l0", "--memory", "300KiB", code=1).err)
        # A system that is too small says so at its node.
        tiny = self.write("tiny.l1", SMALL.read_text().replace("2200kB", "900kB"))
        refused = self.plan(DEEP, "--system", tiny, code=1).err
        self.assertIn("error[resource-bound]", refused)
        self.assertIn("bytes of memory 'ram_0' at least, which has 900000", refused)

    def two_memories(self, near, far):
        return self.write(f"two-{near}-{far}.l1", f"""system two {{
    node ssd_0 {{ kind: storage }}
    node ram_0 {{ kind: memory, capacity: {near} }}
    node cpu_0 {{ kind: compute, isa: x86_64, cores: 2, features: [avx2, fma] }}
    node ram_1 {{ kind: memory, capacity: {far} }}
    node cpu_1 {{ kind: compute, isa: x86_64, cores: 2, features: [avx2, fma] }}
    edges {{
        ssd_0 -> ram_0  : bandwidth 5GB/s
        ram_0 <-> cpu_0 : bandwidth 50GB/s
        ram_1 <-> cpu_1 : bandwidth 50GB/s
        cpu_0 <-> cpu_1 : bandwidth 100GB/s
    }}
}}
""")

    def test_each_memory_is_counted_by_itself(self):
        """State in one memory, results in another: neither would take both."""
        apart = ("--force", "l1/node.forward_backward=cpu_0", "--force", "l1/node.model_state=cpu_1")
        plan = self.plan(DEEP, "--system", self.two_memories("4MB", "1200kB"), *apart).out
        on = dict(re.findall(r"^    (\w+) +: \w+ +on (\w+),", plan, re.MULTILINE))
        self.assertEqual({"ram_1"}, {on[name] for name in on if name == "state"})
        # Two nodes, two streams: what they hand to one another.
        self.assertEqual("ram_0", on["exchange_train"])
        sizes = pools(plan)
        self.assertLess(sizes["state"], 1_200_000)
        self.assertGreater(sizes["state"] + sizes["exchange_train"], 1_200_000)
        placed = self.l3c("lower", DEEP, "--to", "l1", "--system",
                          self.two_memories("4MB", "1200kB"), *apart).out
        self.assertIn("capacity: 4MB", placed)
        small = self.write("small.l1", placed.replace("capacity: 4MB", "capacity: 400kB"))
        refused = self.plan(small, code=1).err
        self.assertRegex(refused, r"needs about \d+ bytes of memory 'ram_0' at least, which has 400000")
        # What is short is computed again, there alone.
        tight = self.plan(DEEP, "--system", self.two_memories("1500kB", "1200kB"), *apart).out
        self.assertGreater(tight.count("launch"), plan.count("launch"))

    def test_usage(self):
        for wrong in ("8", "0B", "-1MB", "8XB", "lots"):
            refused = self.plan(DEEP, f"--memory={wrong}", code=2).err
            self.assertIn("--memory", refused)
            self.assertIn("with a unit, such as 8MB", refused)

    def test_explain_and_force(self):
        args = (DEEP, "--memory", "2200kB")
        explained = self.l3c("optimize", *args, "--json").events()
        kept = [e for e in explained if e["event"] == "decision" and ".kept@" in e["id"]]
        chosen = {e["chosen"] for e in kept}
        self.assertEqual({"save", "recompute"}, chosen)
        for choice in ("save", "recompute"):
            decision = next(e for e in kept if e["chosen"] == choice and e["losers"])
            self.assertIn("rewrites/checkpointing.egg", str(decision["rules"]))
            loser = decision["losers"][0]
            forced = self.l3c("optimize", *args, "--json", "--force",
                              f"{decision['id']}={loser['label']}").events()
            after = next(e for e in forced if e.get("id") == decision["id"])
            self.assertEqual(after["chosen"], loser["label"])
            self.assertEqual(after["cost"], loser["cost"])
        self.assertIn("rewrites/checkpointing.egg:",
                      self.l3c("optimize", *args, "--explain").out)
        self.assertIn("closest is", self.l3c(
            "lower", *args, "--to", "l0", "--force",
            kept[0]["id"][:-1] + "=save", code=1).err)
        # How slots are packed is a decision too.
        packing = next(e for e in explained if e.get("id") == "l0/train/arena.packing")
        loser = packing["losers"][-1]
        forced = self.l3c("lower", DEEP, "--to", "l0", "--force",
                          f"l0/train/arena.packing={loser['label']}").out
        self.assertIn("arena_train", pools(forced))


WIDE = ROOT / "examples/memory/wide.l2"
NEAR_FAR = ROOT / "examples/memory/near_far.l1"
BESIDE = ROOT / "examples/memory/beside.l1"
GOLDEN = ROOT / "tests/e2e/fixtures/streamed.txt"


class Streamed(L3cTest):
    """State that rests in another memory, and is brought in launch by launch."""

    def roomy(self):
        return self.write("roomy.l1", NEAR_FAR.read_text().replace("6500kB", "2GB"))

    def test_a_model_larger_than_its_memory_trains_to_the_same_bits(self):
        args = (WIDE, "--data", f"digits={ROOT / 'data/digits'}")
        for more in (("--steps", 20), ("--steps", 4, "--threads", 1),
                     ("--steps", 1, "--engine", "interpreter")):
            short = [self.run_json(*args, *more, "--system", system)["weights_sha256"]
                     for system in (self.roomy(), NEAR_FAR)]
            self.assertEqual(short[0], short[1], more)

    def test_state_beside_a_processor_is_used_where_it_lies(self):
        """To the same bits, with nothing brought in."""
        args = (WIDE, "--data", f"digits={ROOT / 'data/digits'}", "--steps", 4)
        shas = [self.run_json(*args, "--system", system)["weights_sha256"]
                for system in (self.roomy(), BESIDE)]
        self.assertEqual(shas[0], shas[1])
        text = self.l3c("lower", WIDE, "--synthetic", "--to", "l1", "--system", BESIDE).out
        self.assertIn("state @ ram_1 {", text)
        self.assertNotIn("stage carry_", text)
        placed = self.write("placed.l1", text)
        self.assertEqual(text, self.l3c("lower", placed, "--to", "l1").out)
        plan = self.l3c("lower", placed, "--to", "l0").out
        self.assertNotIn("window_train", pools(plan))
        self.assertNotIn("fetch_train", plan)
        self.assertGreater(pools(plan)["state"], 6_500_000)
        self.l3c("check", self.write("plan.l0", plan))

    def test_the_plan_keeps_a_window_of_the_state(self):
        text = self.l3c("lower", WIDE, "--synthetic", "--to", "l1", "--system", NEAR_FAR).out
        self.assertIn("state @ ram_1 {", text)
        placed = self.write("placed.l1", text)
        self.assertEqual(text, self.l3c("lower", placed, "--to", "l1").out)
        plan = self.l3c("lower", placed, "--to", "l0").out
        sizes = pools(plan)
        self.assertGreater(sizes["state"], 6_500_000)
        near = sum(size for name, size in sizes.items() if name != "state")
        self.assertLessEqual(near, 6_500_000)
        self.assertLess(sizes["window_train"], sizes["state"] / 3)
        # While a launch computes, the state of the next one comes: the order of all transfers.
        fetch = re.search(r"^sequence fetch_train on transfer \{\n.*?^\}\n", plan,
                          re.MULTILINE | re.DOTALL).group(0)
        if os.environ.get("L3C_REGENERATE"):
            GOLDEN.write_text(fetch)
        self.assertEqual(GOLDEN.read_text(), fetch)
        # A plan is complete by itself, and what orders its streams is looked at.
        self.l3c("check", self.write("plan.l0", plan))
        broken = re.sub(r"(sequence fetch_train on transfer \{.*?)    wait used\n", r"\1", plan, count=1,
                        flags=re.DOTALL)
        self.assertNotEqual(broken, plan)
        refused = self.l3c("check", self.write("broken.l0", broken), code=1).err
        self.assertRegex(refused, r"error\[(safety|liveness)\]")

    def test_it_is_a_decision_with_its_cost(self):
        done = self.l3c("optimize", WIDE, "--synthetic", "--json", "--system", NEAR_FAR).events()
        decision = next(e for e in done if e.get("id") == "l1/state")
        self.assertEqual("in ram_1", decision["chosen"])
        self.assertIn("resident", str(decision["pruned"]))
        # A slower edge makes a slower step: what is brought in is size over bandwidth.
        slow = self.write("slow.l1", NEAR_FAR.read_text().replace("bandwidth 10GB/s", "bandwidth 1GB/s"))
        slower = next(e for e in self.l3c("optimize", WIDE, "--synthetic", "--json", "--system",
                                          slow).events() if e.get("id") == "l1/state")
        self.assertGreater(slower["cost"][0]["value"], 5 * decision["cost"][0]["value"])
        # Forced on a node that has another choice.
        two = self.write("two.l1", NEAR_FAR.read_text().replace(
            "    node ram_1 { kind: memory, capacity: 16GB }\n",
            "    node ram_1 { kind: memory, capacity: 16GB }\n"
            "    node cpu_1 { kind: compute, isa: x86_64, cores: 1, features: [avx2, fma] }\n").replace(
            "    ram_1 <-> ram_0 : bandwidth 10GB/s\n",
            "    ram_1 <-> ram_0 : bandwidth 10GB/s\n        ram_1 <-> cpu_1 : bandwidth 1GB/s\n"))
        for choice, there in (("in ram_1", True), ("resident", False)):
            text = self.l3c("lower", WIDE, "--synthetic", "--to", "l1", "--system", two,
                            "--force", f"l1/state={choice}").out
            self.assertEqual(there, "state @ ram_1 {" in text, choice)


class Order(L3cTest):
    def test_nothing_waits(self):
        """What a step makes is read soon: a layer's update comes before the layer below it is done
        with, and a weight is turned over where its product needs it, not at the step's beginning."""
        run = self.dir / "run"
        self.run_json(ROOT / "bench/workloads/gpt_small.l2", "--synthetic", "--steps", 1, "-o", run)
        plan = (run / "plan.l0").read_text()
        launches = re.findall(r"^ *launch (\w+)\((.*?) ?-> (.*)\)$", plan, re.MULTILINE)
        launches = launches[:len(launches) // 2]  # those of the batches' other half are the same
        reads = [set(reads.split(", ")) for _, reads, _ in launches]
        writes = [set(writes.split(", ")) for _, _, writes in launches]

        def writer(of):
            return next(i for i, names in enumerate(writes) if of in names)

        updates = [writer(f"linear{n}_weight") for n in (5, 4, 3, 2, 1)]
        self.assertEqual(updates, sorted(updates))
        # Once a layer's weights are new, nothing reads what the layers above it left.
        self.assertLess(updates[2], writer("linear2_weight"))
        turned = [i for i, (kernel, _, _) in enumerate(launches)
                  if re.search("reshape.*_permute$", kernel)]
        self.assertGreaterEqual(len(turned), 10)
        for i in turned:
            reader = next(j for j in range(i, len(launches)) if writes[i] & reads[j])
            self.assertLessEqual(reader - i, 8, launches[i])


class ThisMachine(L3cTest):
    def test_what_it_needs_and_what_there_is_comes_before_the_run(self):
        """On a system that says to have more memory than this machine: nothing is made by then."""
        program = (ROOT / "bench/workloads/mlp_small_sgd.l2").read_text()
        for small, large in (("784, 256", "784, 900000"), ("256, 256", "900000, 900000"),
                             ("256, 10", "900000, 10")):
            program = program.replace(f"linear({small})", f"linear({large})")
        system = (EXAMPLES / "systems/one_cpu.l1").read_text()
        large = self.write("large.l1", re.sub("capacity: .*GB", "capacity: 900TB", system))
        out = self.dir / "run"
        refused = self.l3c("run", self.write("wide.l2", program), "--synthetic", "--steps", 1, "--system",
                           large, "-o", out, code=1).err
        self.assertRegex(refused, r"the plan takes [\d,]+ bytes of memory: state [\d,]+, staging .*; the machine has "
                                  r"[\d,]+ available")
        self.assertIn("do not fit", refused)
        self.assertFalse(out.exists())
        explained = self.l3c("run", ROOT / "bench/workloads/mlp_small_sgd.l2", "--synthetic", "--steps", 1,
                             "--explain", "-o", out).err
        self.assertRegex(explained, r"the plan takes [\d,]+ bytes of memory: .*; the machine has [\d,]+ available")


class Explanations(L3cTest):
    def test_what_only_the_forward_pass_reads(self):
        """A launch of the forward pass whose results nobody reads later reads values all the same."""
        self.l3c("optimize", EXAMPLES / "methods/cnn.l2", "--synthetic", "--explain")


class Arenas(L3cTest):
    @unittest.skipUnless(os.environ.get("L3C_FULL") == "1", "takes minutes: in the nightly preset")
    def test_no_larger_than_op_by_op(self):
        """Within 3 % of what the step would take op by op, each result there until it is read for
        the last time; examples_test.py has the bytes that live at once."""
        for example in sorted([*EXAMPLES.glob("*/*.l3"), *EXAMPLES.glob("*/*.l2")]):
            with self.subTest(str(example.relative_to(EXAMPLES))):
                done = self.l3c("optimize", example, "--synthetic", "--json", timeout=1200)
                for e in done.events():
                    if not e.get("id", "").endswith("/arena.packing"):
                        continue
                    cost = {c["name"]: c["value"] for c in e["cost"]}
                    print(f"{example.name:20} {e['id']:26} arena {cost['memory']:>10.0f}"
                          f"  live {cost['live']:>10.0f}  op by op {cost['op_by_op']:>10.0f}",
                          flush=True)
                    self.assertLessEqual(cost["memory"], 1.03 * cost["live"])
                    self.assertLessEqual(cost["memory"], 1.03 * cost["op_by_op"])


if __name__ == "__main__":
    unittest.main()
