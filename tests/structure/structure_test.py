#!/usr/bin/env python3
"""Holds the tree to its structure.

1. Includes point one way: each folder may include itself and what ALLOWED lists for it.
2. Folders form no cycle (of what is actually included).
3. Nothing below L2, and nothing beside the languages, knows a layer, a loss or an optimiser: it works on
   whatever the program says. The tensor algebra has functions of its own (gelu, relu, cosine).
4. LLVM's headers stay in backends/llvm.

usage: structure_test.py ROOT
"""

import pathlib
import re
import sys
import unittest

ROOT = pathlib.Path(sys.argv.pop(1) if len(sys.argv) > 1 else ".").resolve()

SUPPORT = {"layers/support"}
TENSOR = SUPPORT | {"layers/tensor"}
SEARCH = SUPPORT | {"layers/search", "egraph", "rewrites"}
ALLOWED = {
    "egraph": set(),
    "rewrites": set(),
    "layers/support": set(),
    "layers/tensor": SUPPORT,
    "layers/search": SUPPORT | {"egraph"},
    "layers/l3": TENSOR,
    "layers/l2": TENSOR | SEARCH | {"layers/l3"},
    "layers/l1": TENSOR | SEARCH | {"layers/l3", "layers/l2"},
    "layers/l0": TENSOR | SEARCH | {"layers/l1"},
    "layers/rules": TENSOR | SEARCH | {"layers/l3", "layers/l2", "layers/l1", "layers/l0"},
    "cost": TENSOR | SEARCH | {"layers/l3", "layers/l2", "layers/l1", "layers/l0"},
    "backends": TENSOR | {"layers/l0"},
    "runtime": TENSOR | {"layers/l0"},
}
EXTENSIONS = {".h", ".cc"}
# Words that only L3 and L2 (and the examples) may know.
METHOD_WORDS = re.compile(
    r"\"linear\"|\blinear (layer|\()|\bk?(conv2?d?|attn|attention|layer_?norm|rms_?norm|relu|gelu|silu|swish|softmax|dropout|"
    r"cross_?entropy|divergence|mse|huber|triplet|info_nce|reinforce|straight_?through|zeroth_?order|recurrent|mixture|diffusion|sgd|adam\w*|muon|lion|kaiming|warm_?up|cosine)\b",
    re.IGNORECASE,
)
INITS = re.compile(r"k?kaiming$", re.IGNORECASE)
KNOW_INITS = ["layers/l1", "layers/l0/lower"]  # an initial value is a word of L1
METHOD_FREE = ["egraph", "layers/support", "layers/search", "layers/l1", "layers/l0", "cost", "backends",
               "runtime", "tools"]


def sources(folder):
    return sorted(p for p in (ROOT / folder).rglob("*") if p.suffix in EXTENSIONS)


def module_of(path):
    """'layers/l0/lower/encode.cc' → 'layers/l0'; 'backends/llvm/jit.cc' → 'backends'."""
    parts = pathlib.PurePosixPath(path).parts
    return "/".join(parts[:2]) if parts[0] == "layers" else parts[0]


OURS = {folder.split("/")[0] for folder in ALLOWED} | {"tools", "tests", "bench"}


def includes(path):
    """(line, is one of ours, name) of each include."""
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        match = re.match(r'\s*#\s*include\s*["<]([^">]+)[">]', line)
        if match:
            yield number, match.group(1).split("/")[0] in OURS, match.group(1)


class Structure(unittest.TestCase):
    def test_every_folder_has_sources(self):
        for folder in ALLOWED:
            if folder != "rewrites":
                self.assertTrue(sources(folder), f"{folder} has no sources: is the list stale?")

    def test_includes_point_one_way(self):
        wrong = []
        for folder, allowed in ALLOWED.items():
            for path in sources(folder):
                for number, ours, name in includes(path):
                    if ours and module_of(name) not in allowed | {folder}:
                        wrong.append(f"{path.relative_to(ROOT)}:{number}: {folder} may not include {name}")
        self.assertEqual([], wrong)

    def test_no_cycles(self):
        edges = {f: set() for f in ALLOWED}
        for folder in ALLOWED:
            for path in sources(folder):
                edges[folder] |= {
                    module_of(n) for _, ours, n in includes(path) if ours and module_of(n) != folder
                }
        seen, path = set(), []

        def visit(folder):
            self.assertNotIn(folder, path, "cycle: " + " → ".join(path + [folder]))
            if folder in seen:
                return
            path.append(folder)
            for other in sorted(edges.get(folder, ())):
                visit(other)
            path.pop()
            seen.add(folder)

        for folder in sorted(edges):
            visit(folder)

    def test_nothing_below_l2_knows_a_method(self):
        wrong = []
        paths = [p for folder in METHOD_FREE for p in sources(folder)]
        # What L3 is lowered by is about methods; the other rules are not.
        paths += sorted(p for p in (ROOT / "rewrites").glob("*.egg") if p.name != "lower_l3_l2.egg")
        for path in paths:
            for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
                match = METHOD_WORDS.search(line)
                if match and not (INITS.match(match.group(0)) and any(
                        path.is_relative_to(ROOT / folder) for folder in KNOW_INITS)):
                    wrong.append(f"{path.relative_to(ROOT)}:{number}: names '{match.group(0)}'")
        self.assertEqual([], wrong)

    def test_llvm_headers_are_confined(self):
        wrong = [
            f"{path.relative_to(ROOT)}:{number}"
            for folder in [*ALLOWED, "tools", "tests"]
            for path in sources(folder)
            if not str(path.relative_to(ROOT)).startswith("backends/llvm/")
            for number, _, name in includes(path)
            if name.startswith(("llvm/", "llvm-c/"))
        ]
        self.assertEqual([], wrong)


if __name__ == "__main__":
    unittest.main()
