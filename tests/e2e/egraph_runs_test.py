"""l3c egraph run: the same bytes whatever the threads and however often, budgets that stop and say
so, errors that name what failed."""

import re
import subprocess
import time
import unittest

from harness import L3C, ROOT, L3cTest

WORKLOADS = ROOT / "tests" / "egraph" / "workloads"

CALCULUS = """
(let e (Diff (Sym "x") (Sub (Pow (Sym "x") (Num 3.0)) (Mul (Num 7.0) (Pow (Sym "x") (Num 2.0))))))
(run-schedule (repeat 11 (seq (saturate analysis) (run calculus))))
(print-size) (extract e) (extract e 5)
"""
EVALUATION = """
(let e (App (Fix (Named "f") (Lam (Named "n")
         (If (Eq (Var (Named "n")) (Num 0)) (Num 0)
             (App (Var (Named "f")) (Add (Var (Named "n")) (Num -1)))))) (Num 3)))
(run-schedule (repeat 14 (seq (saturate analysis) (run evaluate))))
(print-size) (extract e) (print-function free 20)
"""
GRAPH = """
(relation arc (i64 i64)) (relation reach (i64 i64))
(function distance (i64 i64) i64 :merge (min old new))
(rule ((arc a b)) ((reach a b) (set (distance a b) 1)))
(rule ((reach a b) (arc b c)) ((reach a c)))
(rule ((= d (distance a b)) (arc b c)) ((set (distance a c) (+ d 1))))
""" + "".join(f"(arc {i} {(i * 7 + 1) % 60}) (arc {i} {(i * 11 + 5) % 60})\n" for i in range(60)) + """
(run 100) (print-size) (print-function distance 200)
"""
SUMS = """
(datatype T (Leaf i64) (Add T T) (Mul T T))
(rewrite (Add a b) (Add b a) :name "add-commutes")
(rewrite (Add a (Add b c)) (Add (Add a b) c) :name "add-associates")
(rewrite (Mul a (Add b c)) (Add (Mul a b) (Mul a c)) :name "distribute")
(let root (Mul (Leaf 0) (Add (Leaf 1) (Add (Leaf 2) (Add (Leaf 3) (Add (Leaf 4) (Add (Leaf 5)
  (Add (Leaf 6) (Add (Leaf 7) (Add (Leaf 8) (Add (Leaf 9) (Add (Leaf 10) (Leaf 11)))))))))))))
"""
CONTAINERS = """
(datatype* (T (Leaf i64) (Of Ts)) (sort Ts (Vec T)) (sort Bag (Map i64 T)))
(function bag (i64) Bag :merge old)
(rule ((= t (Leaf n)) (< n 40)) ((Leaf (+ n 1)) (Of (vec-of t (Leaf (% n 3))))))
(rewrite (Of (vec-of (Leaf n) (Leaf n))) (Leaf n))
(rule ((= t (Leaf n)) (Leaf m) (= m (* 2 n))) ((union t (Leaf m))))
(set (bag 0) (map-insert (map-empty) 1 (Leaf 1)))
(Leaf 0)
(run 60) (print-size) (print-function bag 3) (extract (Of (vec-of (Leaf 3) (Leaf 4))))
"""


class EGraph(L3cTest):
    def egraph(self, *arguments, code=0):
        return self.l3c("egraph", "run", *arguments, code=code)

    def outputs(self, program, threads):
        """Everything that a run gives: text, statistics, JSON lines, the graph."""
        graph = self.dir / "graph.json"
        plain = self.egraph(program, "--stats", "--threads", threads)
        lines = self.egraph(program, "--json", "--threads", threads, "--to-json", graph)
        return plain.out, plain.err, lines.out, lines.err, graph.read_bytes()

    def test_same_bytes_for_any_threads_and_every_time(self):
        programs = {
            "calculus": (WORKLOADS / "math.egg").read_text() + CALCULUS,
            "evaluation": (WORKLOADS / "lambda.egg").read_text() + EVALUATION,
            "graph": GRAPH,
            "sums": SUMS + "(run 6) (print-size) (extract root)",
            "containers": CONTAINERS,
        }
        for name, text in programs.items():
            path = self.write(f"{name}.egg", text)
            first = self.outputs(path, 1)
            self.assertGreater(len(first[0]), 20, name)
            for run_number in range(1, 7):  # twenty runs: determinism_test
                threads = (1, 2, 4)[run_number % 3]
                again = self.outputs(path, threads)
                for what, a, b in zip(("output", "statistics", "JSON", "warnings", "graph"),
                                      first, again):
                    self.assertTrue(a == b, f"{name}: {what} of run {run_number}, {threads} threads")

    def test_budgets_stop_a_run_and_name_the_rules(self):
        path = self.write("sums.egg", SUMS + "(run 100) (print-size)")
        for option, value, reason in (("--max-nodes", 5000, "node limit"),
                                      ("--max-matches", 7000, "match limit"),
                                      ("--max-work", 20000, "work limit"),
                                      ("--max-iterations", 3, "iteration limit"),
                                      ("--max-bytes", 2 << 20, "byte limit"),
                                      ("--max-seconds", 0.05, "time limit")):
            with self.subTest(option):
                done = self.egraph(path, option, value, "--json")
                self.assertIn(f"stopped at its {reason}", done.err)
                self.assertRegex(done.err, r"rule '(add|distribute).*sums.egg:[345]\)")
                if option == "--max-nodes":
                    self.assertLessEqual(done.done["rows"], value * 1.1)
                if option == "--max-bytes":
                    self.assertLessEqual(done.done["bytes"], value * 1.1)

    def test_the_time_limit_holds_for_checks_and_conditions(self):
        facts = "(r a x) (r b x) (r c x) (= (+ a (+ b c)) -1)"
        rows = ("(relation r (i64 i64)) (r 0 0) (rule ((r a b) (< a 30000)) ((r (+ a 1) b)))"
                "(run 30001)\n")
        check = self.write("check.egg", rows + f"(check {facts})\n")
        done = self.l3c("egraph", "run", check, "--max-seconds", 1, code=1, timeout=60)
        self.assertIn("check.egg:2:1: error[resource-bound]: the time limit passed", done.err)
        until = self.write("until.egg", rows + f"(run 1 :until {facts})\n")
        done = self.l3c("egraph", "run", until, "--max-seconds", 1, timeout=60)
        self.assertIn("time limit", done.err)

    def test_a_check_that_fails_has_one_time_limit_for_all_that_it_says(self):
        """It looks for the fact that failed, fact by fact, and each look takes as long as the check."""
        rows = 4000
        facts = f"(r a x) (r b y) (= (+ a b) {2 * (rows - 1)})"
        facts += "".join(f" (< a {999999 + i})" for i in range(12)) + " (= a -1)"
        path = self.write("slow.egg", "(relation r (i64 i64)) (r 0 0)"
                          f"(rule ((r a b) (< a {rows - 1})) ((r (+ a 1) b)))\n"
                          f"(run {rows})\n(check {facts})\n")
        began = time.monotonic()
        done = self.egraph(path, "--max-seconds", 1, code=1)
        self.assertLess(time.monotonic() - began, 3)
        self.assertRegex(done.err, r"slow.egg:3:1: error(\[consistency\]: check failed|\[resource-bound\]: the time limit passed)")

    def test_a_search_without_a_match_stops_at_its_work(self):
        facts = "(r a x) (r b x) (r c x) (= (+ a (+ b c)) -1)"
        rows = ("(relation r (i64 i64)) (r 0 0) (rule ((r a b) (< a 3000)) ((r (+ a 1) b)))"
                "(run 3001)\n(ruleset slow)")
        rule = self.write("rule.egg", rows + f'(rule ({facts}) ((panic "no")) :ruleset slow :name "triples")'
                          "(rule ((r a b) (< b 0)) ((r b a)) :ruleset slow :name \"once\") (run slow 1)")
        seen = set()
        for threads in (1, 2):
            done = self.l3c("egraph", "run", rule, "--max-work", 10_000_000, "--threads", threads)
            self.assertIn("warning: a run stopped at its work limit: 10000000 rows looked at\n", done.err)
            told = [int(n) for n in re.findall(r"^  (\d+) rows looked at", done.err, re.MULTILINE)]
            self.assertEqual(10_000_000, sum(told))
            self.assertRegex(done.err.splitlines()[1], "looked at.*'triples'")
            seen.add(done.err)
        self.assertEqual(len(seen), 1)
        check = self.write("check.egg", rows + f"(check {facts})\n")
        done = self.l3c("egraph", "run", check, "--max-work", 10_000_000, code=1)
        self.assertIn("check.egg:2:15: error[resource-bound]: the work limit passed before this was known", done.err)

    def test_costs_that_extract_cannot_add_are_refused(self):
        for cost in ("1.5", "inf", "-1", "9007199254740993"):
            program = self.write("cost.egg", f"(datatype A (B :cost {cost}))")
            self.assertIn("a cost is a whole number", self.l3c("egraph", "run", program, code=1).err)

    def test_counts_and_times_that_are_none_are_wrong_usage(self):
        program = self.write("empty.egg", "")
        for option in ("--max-nodes", "--max-matches", "--max-work", "--max-iterations",
                       "--max-bytes"):
            for value in ("-1", "99999999999999999999", "1.5", "x"):
                self.egraph(program, option, value, code=2)
        for value in ("nan", "inf", "-1"):
            self.egraph(program, "--max-seconds", value, code=2)

    def test_no_output_is_written_over_an_input_or_another_output(self):
        program = self.write("kept.egg", "(datatype M (A i64)) (let a (A 1))\n")
        before = program.read_bytes()
        self.egraph(program, "--to-json", program, code=2)
        self.egraph(program, "--to-json", self.dir / "x", "--dot", self.dir / "." / "x", code=2)
        self.assertEqual(before, program.read_bytes())
        self.assertFalse((self.dir / "x").exists())

    def test_a_failed_check_still_says_why_not_and_writes_the_graph(self):
        program = self.write("fast.egg", "(datatype M (A i64)) (rewrite (A x) (A 7) :numerics fast)\n"
                             "(let a (A 1)) (run 3) (check (= a (A 7)))\n")
        graph = self.dir / "fast.json"
        done = self.egraph(program, "--why-not", "a", "(A 7)", "--to-json", graph, code=1)
        self.assertIn("rules of class fast do not run", done.out)
        self.assertNotIn("(A 7)", graph.read_text())
        self.assertTrue(graph.exists())

    def test_output_that_cannot_be_written_is_an_error_that_is_said(self):
        program = self.write("print.egg", "(datatype M (A i64)) (print-size)\n")
        with open("/dev/full", "w") as full:
            done = subprocess.run([L3C, "egraph", "run", str(program)], stdout=full,
                                  stderr=subprocess.PIPE, text=True, timeout=60)
        self.assertEqual(done.returncode, 1)
        self.assertIn("could not be written", done.stderr)

    def test_contradictions_name_both_rules(self):
        path = self.write("colors.egg", """(datatype T (A) (B))
(function color (T) String :no-merge)
(rule ((= e (A))) ((set (color e) "red")) :name "a is red")
(rule ((= e (B))) ((set (color e) "blue")) :name "b is blue")
(A) (B) (union (A) (B))
(run 1)""")
        done = self.egraph(path, code=1)
        for part in ("colors.egg:6:1: error", "a is red", "colors.egg:3", "b is blue",
                     "colors.egg:4"):
            self.assertIn(part, done.err)


if __name__ == "__main__":
    unittest.main()
