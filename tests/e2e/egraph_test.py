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
        self.assertIn(f"{path}:10:8: error[consistency]: check failed: no match for '(= (Num 7) $x)'", result.err)
        self.assertIn("'(Num 7)' is not in the e-graph", result.err)

    def test_malformed_programs_are_refused_at_their_place(self):
        for text, place, kind in (
            ("(relation r (i64)", "1:1", "syntax"),
            ("(relation r (i64))\n(rule ((r x)) ((r y)))", "2:19", "safety"),
            ("(check \"\\q\")", "1:9", "syntax"),
            ("(" * 100000, "1:1001", "resource-bound"),
            ("(f " * 900 + "x" + ")" * 900, "1:1", "syntax"),
            ("\0", "1:1", "syntax"),
            ("(include \"none.egg\")", "1:10", "environment"),
            ("(relation r (i64))\n(check (r 1))", "2:8", "consistency"),
            ("\ufeff(r 1)", "1:1", "syntax"),
        ):
            path = self.write("bad.egg", text)
            result = self.l3c("egraph", "run", path, code=1)
            self.assertIn(f"bad.egg:{place}: error[{kind}]: ", result.err)
            self.assertRegex(result.err.splitlines()[1], r"^ +\d+ \| ")
            self.assertRegex(result.err.splitlines()[2], r"^ +\| +\^~*$")

    def test_an_error_shows_its_line_and_marks_what_is_wrong(self):
        path = self.write("bad.egg", "; a comment\n\t(relation é (i64 Strin))  ; why\n")
        result = self.l3c("egraph", "run", path, code=1)
        self.assertEqual(result.err, f"""{path}:2:19: error[safety]: unknown sort 'Strin'; did you mean 'String'?
     2 |     (relation é (i64 Strin))  ; why
       |                      ^~~~~
""")
        events = self.l3c("egraph", "run", path, "--json", code=1).events()
        self.assertEqual([e["event"] for e in events], ["diagnostic", "done"])
        self.assertEqual({k: events[0][k] for k in ("kind", "file", "line", "column")},
                         {"kind": "safety", "file": str(path), "line": 2, "column": 19})
        self.assertEqual(events[1]["error"], result.err.splitlines()[0])
        sarif = json.loads(self.l3c("egraph", "run", path, "--diagnostics", "json", code=1).err)
        self.assertEqual(sarif["runs"][0]["results"][0]["ruleId"], "safety")

    def test_an_error_of_an_included_file_shows_a_line_of_that_file(self):
        inner = self.write("inner.egg", "(sort A)\n(sort A)\n")
        outer = self.write("outer.egg", f'(include "{inner.name}")\n(sort B)\n')
        result = self.l3c("egraph", "run", outer, "-F", self.dir, code=1)
        self.assertEqual(result.err.splitlines()[1:], ["     2 | (sort A)", "       |       ^"])
        self.assertIn("inner.egg:2:7: error[safety]: sort 'A' is declared already", result.err)

    def test_bad_json_is_shown_at_its_line(self):
        path = self.write("bad.json", '{"nodes": {\n  "a" 1}}\n')
        result = self.l3c("egraph", "extract", path, code=1)
        self.assertTrue(result.err.startswith(f"{path}:2:7: error[syntax]: "), result.err)
        self.assertEqual(result.err.splitlines()[1:], ['     2 |   "a" 1}}', "       |       ^"])
        path = self.write("bad.json", '{"nodes": {"a": {"op": "f", "eclass": "A", "children": ["b"]}}}')
        result = self.l3c("egraph", "extract", path, code=1)
        self.assertEqual(result.err, f'{path}: error[safety]: node "a": child "b" is no node\n')

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

    def test_extraction_does_all_it_is_asked_or_refuses(self):
        nodes = {
            "a": {"op": "a", "eclass": "A", "cost": 1},
            "b": {"op": "b", "eclass": "A", "cost": 2},
            "f": {"op": "f", "eclass": "F", "children": ["a", "a"]},
        }
        graph = self.write("f.json", json.dumps({"nodes": nodes, "root_eclasses": ["F"]}))
        dot = self.dir / "f.dot"
        tree = ("egraph", "extract", graph, "--extractor", "tree")
        self.assertIn("2: tree cost 4", self.l3c(*tree, "--top", "2", "--dot", dot).out)
        # The cheapest of them is filled: f and a.
        self.assertEqual(dot.read_text().count("filled"), 2)
        for top in ((), ("--top", "2")):
            self.assertIn("--max-seconds", self.l3c(*tree, *top, "--max-seconds", "1", code=2).err)
        greedy = ("egraph", "extract", graph, "--extractor", "greedy", "--max-seconds", "1e-9")
        self.assertIn("dag cost 2", self.l3c(*greedy).out)

    def test_a_tree_cost_beyond_a_number(self):
        nodes = {"0": {"op": "z", "eclass": "0"}}
        for i in range(1, 1200):
            nodes[str(i)] = {"op": "d", "eclass": str(i), "children": [str(i - 1)] * 2}
        graph = self.write("d.json", json.dumps({"nodes": nodes, "root_eclasses": ["1199"]}))
        for extractor in ("tree", "greedy", "exact"):
            args = ("egraph", "extract", graph, "--extractor", extractor)
            self.assertIn("dag cost 1200, tree cost above 1.79e308", self.l3c(*args).out)
            event = self.l3c(*args, "--json").events()[0]
            self.assertEqual((event["dag_cost"], event["tree_cost"]), (1200, 1.7976931348623157e308))

    def test_malformed_files_are_refused(self):
        cyclic = {"nodes": {"a": {"op": "f", "children": ["a"], "eclass": "A"}}, "root_eclasses": ["A"]}
        for text, message in (
            ("{", "bad.json:1:1: error[syntax]: syntax error while parsing"),
            ("[" * 100000, "bad.json:1:100000: error[syntax]: syntax error while parsing"),
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

    def test_programs_print_what_egglog_prints(self):
        """Recorded by bench/peer_scripts/egglog_outputs.py."""
        folder = ROOT / "tests" / "egraph" / "egglog_programs"
        programs = sorted(folder.glob("*.egg"))
        self.assertGreaterEqual(len(programs), 30)
        for program in programs:
            with self.subTest(program.name):
                refused = program.read_text().startswith("; Refused")
                done = self.l3c("egraph", "run", program.name, cwd=folder, code=int(refused))
                self.assertEqual(done.out, program.with_suffix(".out").read_text())
                # Classes have other numbers then, which nothing that is printed may show.
                proven = self.l3c("egraph", "run", "--proofs", program.name, cwd=folder,
                                  code=int(refused))
                self.assertEqual(proven.out, done.out)

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
