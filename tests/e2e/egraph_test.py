"""The e-graph engine from the command line: programs, their output, and e-graphs as files."""

import json
import unittest

from harness import ROOT, L3cTest

PROGRAM = """
(datatype Math (Num i64) (Add Math Math) (Shift Math i64 :cost 5))
(rewrite (Add a b) (Add b a))
(rewrite (Add (Num a) (Num b)) (Num (+ a b)))
(let $x (Add (Num 1) (Add (Num 2) (Shift (Num 3) 1))))
(run 3)
(check (= $x (Add (Add (Num 2) (Shift (Num 3) 1)) (Num 1))))
(print-size Num)
(extract $x)
"""


class EGraph(L3cTest):
    def test_output_is_what_programs_print(self):
        path = self.write("p.egg", PROGRAM)
        result = self.l3c("egraph", "run", path)
        self.assertEqual(result.out, "3\n(Add (Num 1) (Add (Num 2) (Shift (Num 3) 1)))\n")
        self.assertEqual(result.err, "")
        self.assertEqual(self.l3c("egraph", "run", path, "--threads", "2").out, result.out)
        stats = self.l3c("egraph", "run", path, "--stats")
        self.assertEqual(stats.out, result.out)
        self.assertIn("saturated after", stats.err)
        events = self.l3c("egraph", "run", path, "--json").events()
        self.assertEqual([e["event"] for e in events], ["size", "extract", "done"])
        self.assertEqual("".join(e["text"] for e in events[:2]), result.out)
        self.assertTrue(events[-1]["ok"])

    def test_a_failed_check_names_what_failed(self):
        path = self.write("p.egg", PROGRAM + "(check (= (Num 7) $x) (= (Num 1) (Num 2)))\n")
        result = self.l3c("egraph", "run", path, code=1)
        self.assertTrue(result.out.startswith("3\n"))
        self.assertIn(f"{path}:10:8: error: check failed: no match for '(= (Num 7) $x)'", result.err)
        self.assertIn("'(Num 7)' is not in the e-graph", result.err)

    def test_malformed_programs_are_refused_at_their_place(self):
        for text, place in (
            ("(relation r (i64)", "1:1"),
            ("(relation r (i64))\n(rule ((r x)) ((r y)))", "2:19"),
            ("(check \"\\q\")", "1:9"),
            ("(" * 100000, "1:1001"),
            ("(f " * 900 + "x" + ")" * 900, "1:1"),
            ("\0", "1:1"),
        ):
            path = self.write("bad.egg", text)
            result = self.l3c("egraph", "run", path, code=1)
            self.assertIn(f"bad.egg:{place}: error: ", result.err)

    def test_a_program_becomes_a_file_and_is_extracted_again(self):
        program = self.write("p.egg", PROGRAM)
        graph, dot = self.dir / "p.json", self.dir / "p.dot"
        self.l3c("egraph", "run", program, "--to-json", graph, "--dot", dot)
        self.assertTrue(dot.read_text().startswith("digraph egraph {"))
        written = json.loads(graph.read_text())
        self.assertEqual(len(written["root_eclasses"]), 1)
        for extractor in ("tree", "greedy", "exact"):
            lines = self.l3c("egraph", "extract", graph, "--extractor", extractor).out.splitlines()
            # Literals cost nothing in a file: two times Add, three times Num, Shift.
            self.assertIn("dag cost 10", lines[0])
            self.assertEqual(lines[1], "(Add (Num 1) (Add (Num 2) (Shift (Num 3) 1)))")
        costs = self.write("costs.json", '{"Shift": 1}')
        self.assertIn("dag cost 6", self.l3c("egraph", "extract", graph, "--costs", costs).out)

    def test_malformed_files_are_refused(self):
        cyclic = {"nodes": {"a": {"op": "f", "children": ["a"], "eclass": "A"}}, "root_eclasses": ["A"]}
        for text, message in (
            ("{", "parse error at line 1"),
            ("[" * 100000, "parse error"),
            ('{"nodes": {"a": {"op": 1}}}', 'node "a": expected a string "op"'),
            (json.dumps(cyclic), "no finite term for the roots"),
        ):
            path = self.write("bad.json", text)
            self.assertIn(message, self.l3c("egraph", "extract", path, code=1).err)

    def test_what_is_no_file_is_refused(self):
        for command in ("run", "extract"):
            for path, why in ((self.dir, "it is a folder"), (self.dir / "none", "No such file")):
                result = self.l3c("egraph", command, path, code=1)
                self.assertIn("error[environment]: cannot read", result.err)
                self.assertIn(why, result.err)
        self.assertIn("is larger than", self.l3c("egraph", "run", "/dev/zero", code=1).err)

    def test_examples_print_what_lies_beside_them(self):
        examples = sorted((ROOT / "examples" / "egraph").glob("*.egg"))
        self.assertGreaterEqual(len(examples), 4)
        for example in examples:
            with self.subTest(example.name):
                done = self.l3c("egraph", "run", example.relative_to(ROOT))
                self.assertEqual(done.out, example.with_suffix(".out").read_text())
                self.assertEqual(done.err, "")
                # Every check of an example has a proof, and what it prints does not change with it.
                proven = self.l3c("egraph", "run", example.relative_to(ROOT), "--proofs")
                self.assertNotIn("warning", proven.err)

    def test_chains_as_deep_as_the_graph_is_large(self):
        depth = 20000
        program = self.write("deep.egg", f"""
            (datatype T (Z) (S T))
            (relation n (i64 T)) (n 0 (Z))
            (rule ((n i t) (< i {depth})) ((n (+ i 1) (S t))))
            (run {depth})
            (ruleset last) (function top () T :no-merge)
            (rule ((n {depth} t)) ((set (top) t)) :ruleset last) (run last)
            (extract (top))""")
        graph = self.dir / "deep.json"
        out = self.l3c("egraph", "run", program, "--to-json", graph).out
        self.assertEqual(out, "(S " * depth + "(Z)" + ")" * depth + "\n")
        self.assertIn(f"dag cost {depth + 1}", self.l3c("egraph", "extract", graph).out)


if __name__ == "__main__":
    unittest.main()
