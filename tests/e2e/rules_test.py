"""l3c rules, l3c rules check, and --rules: what a user sees of rules of their own."""

import json
import re
import shlex
import subprocess
import unittest

from harness import L3C, MNIST, ROOT, L3cTest

NEGATE = """; (−x) · y = −(x · y)
(rewrite (Mul (Neg x) y) (Neg (Mul x y)) :name "negate-last" :ruleset algebra :numerics exact)
"""
WRONG = """(rewrite (Add x y) x :name "forget" :ruleset algebra :numerics reassoc)
"""


class Rules(L3cTest):
    def test_lists_the_built_in_sets(self):
        done = self.l3c("rules")
        for file in sorted((ROOT / "rewrites").glob("*.egg")):
            self.assertIn(f"rewrites/{file.name}", done.out)
        lines = self.l3c("rules", "--json")
        sets = [e for e in lines.events() if e["event"] == "ruleset"]
        self.assertEqual({"algebra", "store", "choose", "checkpoint", "placement", "l3_to_l2"}, {e["ruleset"] for e in sets})
        self.assertGreater(sum(e["rules"] for e in sets), 60)
        self.assertTrue(lines.done["ok"])
        self.assertIn("Examples:", self.l3c("rules", "--help").out)

    def test_check(self):
        good = self.write("good.egg", NEGATE)
        self.assertIn("holds in 30 cases", self.l3c("rules", "check", good, "--cases", 30).out)

        wrong = self.write("wrong.egg", NEGATE + WRONG)
        done = self.l3c("rules", "check", wrong, "--seed", 3, code=1)
        self.assertIn("wrong.egg:3:1: error[consistency]", done.err)
        self.assertIn("left   (Add x y) : f32[]", done.err)
        lines = self.l3c("rules", "check", wrong, "--json", code=1)
        verdicts = [e for e in lines.events() if e["event"] == "rule"]
        self.assertEqual(["holds", "fails"], [e["verdict"] for e in verdicts])
        self.assertEqual(200, verdicts[0]["cases"])
        self.assertTrue(verdicts[1]["counterexample"]["lines"])
        self.assertEqual({"event": "done", "ok": False, "holds": 1, "fails": 1, "untested": 0}, lines.done)
        self.assertEqual(lines.out, self.l3c("rules", "check", wrong, "--json", code=1).out)

    def test_bad_input(self):
        for text, place in (
            ("model m { }\n", ":1:1: error[syntax]"),
            ("(rewrite (Foo a) a :ruleset algebra)\n", ":1:11: error[consistency]"),
            ("(rewrite (Neg a) b :ruleset algebra)\n", ":1:18: error[consistency]"),
            ("(rewrite (Neg a) a :ruleset mine)\n", ":1:29: error[consistency]"),
            ("(sort S)\n", "has no rules"),
            ("", "has no rules"),
        ):
            done = self.l3c("rules", "check", self.write("bad.egg", text), code=1)
            self.assertIn(place, done.err, text)
            done = self.l3c("lower", MNIST, "--to", "l0", "--rules", self.dir / "bad.egg", code=1)
            self.assertIn(place, done.err, text)
        self.assertIn("error[environment]", self.l3c("rules", "check", self.dir / "none.egg", code=1).err)
        self.l3c("rules", "check", code=2)
        self.l3c("rules", "check", self.dir / "bad.egg", "--cases", 0, code=2)

    def test_a_rule_that_does_not_hold_shapes_no_plan(self):
        wrong = self.write("wrong.egg", WRONG)
        for command in (("optimize",), ("lower", "--to", "l0"), ("run", "-o", self.dir / "run")):
            done = self.l3c(command[0], MNIST, *command[1:], "--synthetic", "--rules", wrong, code=1)
            self.assertIn("the rule 'forget' does not hold as reassoc", done.err)
            self.assertIn("left   (Add x y)", done.err)
        self.assertFalse((self.dir / "run").exists())

    def test_rules_that_never_end_are_named(self):
        # Each step holds, and gives another.
        grows = self.write(
            "grows.egg",
            "(rewrite (Exp2 a) (Exp2 (Neg (Neg a))) :name \"grow\" :ruleset algebra :numerics exact)\n",
        )
        done = self.l3c("lower", MNIST, "--to", "l0", "--synthetic", "--rules", grows,
                        "--budget", "nodes=20000", code=1)
        self.assertIn("warning: ", done.err)
        self.assertIn("resource-bound", done.err)
        self.assertIn("rule 'grow'", done.err)

    def test_traces_of_other_lowerings(self):
        batch = self.write(
            "batch.egg",
            "(rule ((EpochCount e) (< e 0)) ((union (PhasesWanted) (Epochs e)))"
            " :name \"none\" :ruleset l3_to_l2)\n",
        )
        move = self.write(
            "move.egg",
            "(rule ((Want v m) (Link k m) (= what (Name v)))"
            " ((union (Placed v m) (Move (Made v k) what k m)) (WantMade v k))"
            " :name \"carry\" :ruleset placement)\n",
        )
        keep = self.write(
            "keep.egg",
            "(rule ((operand m v)) ((stored m)) :name \"keep\" :ruleset store :numerics exact)\n",
        )
        events = self.l3c("optimize", MNIST, "--synthetic", "--json", "--rules", batch, "--rules", move,
                          "--rules", keep).events()
        traces = {e["name"]: e for e in events if e["event"] == "rule"}
        self.assertEqual(["l3->l2", "l2->l1", "l1->l0"], [traces[n]["lowering"] for n in ("none", "carry", "keep")])
        self.assertIn("fails: (< e 0)", traces["none"]["why_not"])
        self.assertGreater(traces["carry"]["matches"], 0)
        self.assertGreater(traces["keep"]["matches"], 0)
        # Answers that no fact makes right are refused wherever they would go.
        for text in (
            "(rule ((PowerOfTwo w)) ((Width (* w 3))) :ruleset l3_to_l2)",
            "(rule ((Want v m)) ((union (Placed v m) (Rest v m))) :ruleset placement)",
            "(rule ((root k v q c)) ((union (InMem v q) (Store v k (Run k) (InReg k c)))) :ruleset choose)",
        ):
            wrong = self.write("wrong.egg", text + "\n")
            done = self.l3c("lower", MNIST, "--to", "l0", "--synthetic", "--rules", wrong, code=1)
            self.assertIn("does not hold", done.err, text)

    def test_an_edited_copy_is_checked_and_not_added(self):
        copy = self.write("copy.egg", (ROOT / "rewrites/placement.egg").read_text() + "; edited\n")
        self.assertIn("16 hold, 0 fail, 0 not tested", self.l3c("rules", "check", copy).out)
        done = self.l3c("lower", MNIST, "--to", "l0", "--synthetic", "--rules", copy, code=1)
        self.assertIn("declares the terms of l2->l1 anew", done.err)
        both = [
            self.write(name, "(relation mine (i64))\n(rule ((Width w)) ((mine w)) :ruleset l3_to_l2)\n")
            for name in ("one.egg", "two.egg")
        ]
        done = self.l3c("lower", MNIST, "--to", "l2", "--rules", both[0], "--rules", both[1], code=1)
        self.assertIn("two.egg: error[consistency]: line 1: ", done.err)
        self.assertIn("'mine' is declared already by another file of --rules", done.err)

    def test_tutorial(self):
        page = (ROOT / "docs/tutorials/rules.md").read_text()
        (self.dir / "examples").symlink_to(ROOT / "examples")
        commands = 0
        for kind, name, body in re.findall(r"^```(\w+) ?(\S*)\n(.*?)^```$", page, re.MULTILINE | re.DOTALL):
            if kind == "egg":
                self.write(name, body)
                continue
            for block in re.split(r"^\$ ", body, flags=re.MULTILINE)[1:]:
                command, *shown = block.splitlines()
                self.assertTrue(command.startswith("l3c "), command)
                done = subprocess.run([L3C, *shlex.split(command[4:])], cwd=self.dir, text=True, timeout=240,
                                      stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
                # "…" stands for any lines.
                pattern = "".join("(.*\n)*" if line == "…" else re.escape(line) + "\n" for line in shown)
                self.assertTrue(re.fullmatch(pattern, done.stdout), f"{command}\n{done.stdout}")
                commands += 1
        self.assertGreater(commands, 6)
        # The rule has changed the plan.
        plain = self.l3c("lower", MNIST, "--to", "l0", "--synthetic").out
        self.assertNotEqual(plain, (self.dir / "mine.l0").read_text())


if __name__ == "__main__":
    unittest.main()
