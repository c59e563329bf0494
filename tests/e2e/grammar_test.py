"""docs/grammar.md against the parsers.

The page's grammars are read and run as recognisers. What the parsers accept they must accept, every
alternative must occur in a program that a parser accepts, and every word that a parser's source asks
for must stand in the grammar of its layer.
"""

import os
import random
import re
import shutil
import sys
import unittest

from harness import ROOT, L3cTest

sys.setrecursionlimit(10000)

LAYERS = ("l3", "l2", "l1", "l0")
CLASSES = ("NAME", "INTEGER", "REAL", "BYTES", "RATE", "TIME", "STRING", "TOKEN")
PUNCTUATION = ["<->", "#[", "->", "<=", ">=", "==", "!=", "&&", "||", "::", ".."]
LEXEME = re.compile(
    r"\s+|//[^\n]*|#(?!\[)[^\n]*"
    r'|(?P<string>"(?:\\.|[^"\\\n])*")'
    r"|(?P<number>0[xX][0-9a-fA-F]\w*|\d+(?:\.\d+)?(?:[eE][+-]?\d+)?(?:\w*B/s(?!\w)|\w*))"
    r"|(?P<word>[A-Za-z_]\w*)"
    r"|(?P<mark>" + "|".join(map(re.escape, PUNCTUATION)) + r"|.)"
)


def tokens_of(text):
    return [
        (match.lastgroup, match.group()) for match in LEXEME.finditer(text) if match.lastgroup
    ]


class Grammar:
    """Productions as nested tuples: ("seq", …), ("or", …), ("many", x), ("maybe", x), ("text", t),
    ("class", name), ("rule", name)."""

    def __init__(self, text):
        self.rules = {}
        for name, body in re.findall(r"^(\w+) +=((?:.|\n(?!\w+ +=))*)", text, re.M):
            self.parts = re.findall(r'"[^"]*"|\w+|[{}\[\]()|]', body)
            self.at = 0
            self.rules[name] = self.choice()
            assert self.at == len(self.parts), f"{name}: {self.parts[self.at:]}"
        self.alternatives, self.reached = set(), set()
        self.reach("program")

    def choice(self):
        options = [self.sequence()]
        while self.at < len(self.parts) and self.parts[self.at] == "|":
            self.at += 1
            options.append(self.sequence())
        return options[0] if len(options) == 1 else ("or", *options)

    def sequence(self):
        items = []
        while self.at < len(self.parts) and self.parts[self.at] not in "|)]}":
            part = self.parts[self.at]
            self.at += 1
            if part in "([{":
                inner = self.choice()
                self.at += 1
                items.append({"(": inner, "[": ("maybe", inner), "{": ("many", inner)}[part])
            elif part[0] == '"':
                items.append(("text", part[1:-1]))
            else:
                items.append(("class" if part in CLASSES else "rule", part))
        return ("seq", *items)

    def reach(self, rule):
        if rule not in self.reached:
            self.reached.add(rule)
            self.collect(rule, self.rules[rule])

    def collect(self, rule, node):
        """Each alternative, and each optional part, is something to be covered."""
        if node[0] == "or":
            self.alternatives.update((rule, option) for option in node[1:])
        if node[0] in ("maybe", "many"):
            self.alternatives.add((rule, node[1]))
        if node[0] == "rule":
            self.reach(node[1])
        for child in node[1:]:
            if isinstance(child, tuple):
                self.collect(rule, child)

    def words(self, node=None):
        if node is None:
            return set().union(*(self.words(body) for body in self.rules.values()))
        if node[0] == "text":
            return {node[1]}
        return set().union(*(self.words(c) for c in node[1:] if isinstance(c, tuple)), set())


class Reading:
    """One text under one grammar: the ends that a production can reach from each token."""

    def __init__(self, grammar, text):
        self.grammar, self.tokens, self.memo = grammar, tokens_of(text), {}
        self.farthest = 0

    def accepts(self):
        return len(self.tokens) in self.ends(("rule", "program"), 0)

    def matches(self, name, at):
        """How many tokens a token class takes there, or none."""
        kind, text = self.tokens[at]
        signed = 0
        if name in ("INTEGER", "REAL") and text == "-" and at + 1 < len(self.tokens):
            kind, text = self.tokens[at + 1]
            signed = 1
        fits = {
            "NAME": kind == "word",
            "INTEGER": kind == "number",
            "REAL": kind == "number" or text in ("inf", "nan"),
            "BYTES": kind == "number",
            "RATE": kind == "number",
            "TIME": kind == "number",
            "STRING": kind == "string",
            "TOKEN": text not in ("(", ")", "[", "]", "{", "}", "#["),
        }[name]
        return signed + 1 if fits else 0

    def ends(self, node, at):
        key = (id(node), at)
        if key in self.memo:
            return self.memo[key]
        self.memo[key] = ends = self.reach(node, at)
        return ends

    def reach(self, node, at):
        kind = node[0]
        self.farthest = max(self.farthest, at)
        if kind == "rule":
            return self.ends(self.grammar.rules[node[1]], at)
        if kind == "text":
            there = at < len(self.tokens) and self.tokens[at][1] == node[1]
            return frozenset([at + 1] if there else [])
        if kind == "class":
            count = self.matches(node[1], at) if at < len(self.tokens) else 0
            return frozenset([at + count] if count else [])
        if kind == "or":
            return frozenset().union(*(self.ends(option, at) for option in node[1:]))
        if kind == "maybe":
            return self.ends(node[1], at) | {at}
        if kind == "many":
            reached, new = {at}, {at}
            while new:
                new = set().union(*(self.ends(node[1], place) for place in new)) - reached
                reached |= new
            return frozenset(reached)
        places = frozenset([at])
        for item in node[1:]:
            places = frozenset().union(*(self.ends(item, place) for place in places))
            if not places:
                break
        return places

    def covered(self):
        """Alternatives that take part in a reading of the whole text."""
        used = set()
        self.walk(("rule", "program"), 0, len(self.tokens), "program", used, set())
        return used

    def walk(self, node, start, end, rule, used, seen):
        if (id(node), start, end) in seen:
            return
        seen.add((id(node), start, end))
        kind = node[0]
        if kind == "rule":
            self.walk(self.grammar.rules[node[1]], start, end, node[1], used, seen)
        elif kind == "or":
            for option in node[1:]:
                if end in self.ends(option, start):
                    used.add((rule, option))
                    self.walk(option, start, end, rule, used, seen)
        elif kind == "maybe":
            if start != end and end in self.ends(node[1], start):
                used.add((rule, node[1]))
                self.walk(node[1], start, end, rule, used, seen)
        elif kind in ("many", "seq"):
            self.walk_chain(node, start, end, rule, used, seen)

    def walk_chain(self, node, start, end, rule, used, seen):
        """The places between the items, forwards and then backwards from the end."""
        if node[0] == "seq":
            items = node[1:]
            layers = [{start}]
            for item in items:
                layers.append(set().union(*(self.ends(item, place) for place in layers[-1]), set()))
            wanted = {end}
            for index in range(len(items) - 1, -1, -1):
                before = set()
                for place in layers[index]:
                    for reached in self.ends(items[index], place) & wanted:
                        before.add(place)
                        self.walk(items[index], place, reached, rule, used, seen)
                wanted = before
            return
        steps, new, reached = {}, {start}, {start}
        while new:
            following = set()
            for place in new:
                steps[place] = self.ends(node[1], place) - {place}
                following |= steps[place]
            new = following - reached
            reached |= new
        wanted, work = {end}, [end]
        while work:
            goal = work.pop()
            for place, ends in steps.items():
                if goal in ends:
                    used.add((rule, node[1]))
                    self.walk(node[1], place, goal, rule, used, seen)
                    if place not in wanted:
                        wanted.add(place)
                        work.append(place)


def grammars():
    page = (ROOT / "docs/grammar.md").read_text()
    blocks = dict(re.findall(r"```ebnf (\w+)\n(.*?)```", page, re.S))
    assert set(blocks) == {"shared", *LAYERS}, blocks.keys()
    blocks["l2"] = re.sub(r"(?m)^program .*\n", "", blocks["l3"], count=1) + blocks["l2"]
    return {layer: Grammar(blocks["shared"] + blocks[layer]) for layer in LAYERS}


def programs(layer):
    """Texts of a layer that its parser accepts."""
    found = sorted(ROOT.glob(f"examples/**/*.{layer}")) + sorted(
        (ROOT / "tests").glob(f"layers/**/*.{layer}")
    )
    found += sorted(p for p in (ROOT / f"tests/errors/{layer}").glob("*") if "valid" in p.name
                    and p.suffix == f".{layer}" or p.name.endswith(f".ok.{layer}"))
    found += sorted((ROOT / "tests/e2e/fixtures").glob(f"grammar*.{layer}"))
    texts = {path.read_text(): path for path in found if path.stat().st_size < 40000}
    return list(texts.values())


class GrammarTest(L3cTest):
    grammars = grammars()

    def test_every_program_is_a_sentence_and_every_alternative_occurs(self):
        for layer, grammar in self.grammars.items():
            covered = set()
            for path in programs(layer):
                reading = Reading(grammar, path.read_text())
                self.assertTrue(
                    reading.accepts(),
                    f"{path} near {reading.tokens[max(0, reading.farthest - 4):][:8]}",
                )
                covered |= reading.covered()
            if layer == "l2":  # what is L3 of it has been covered there
                l3 = {rule for rule in self.grammars["l3"].rules if rule != "program"}
                covered |= {a for a in grammar.alternatives if a[0] in l3}
            missing = grammar.alternatives - covered
            # A comma before a closing bracket, spelled out in every list.
            missing = {(r, a) for r, a in missing if a != ("seq", ("text", ","))}
            # Every dtype exists at every layer.
            missing = {(r, a) for r, a in missing if r not in ("dtype", "anything")}
            self.assertFalse(
                missing, f"{layer}: no program shows\n" + "\n".join(map(str, sorted(missing, key=str)))
            )

    def test_the_parsers_read_what_only_shows_the_grammar(self):
        for layer in LAYERS:
            checked = self.l3c("check", ROOT / f"tests/e2e/fixtures/grammar.{layer}", code=None)
            self.assertNotIn("error[syntax]", checked.err)

    def test_what_the_parser_accepts_of_damaged_programs_the_grammar_accepts(self):
        draw = random.Random(11)
        pieces = [",", ":", "(", ")", "[", "]", "{", "}", "->", "1", "x", "-", "=", ".", '"s"', "let"]
        # Beside which a program stands that takes a kernel from it.
        shutil.copy(ROOT / "tests/e2e/fixtures/loss.uop", self.dir)
        for layer, grammar in self.grammars.items():
            accepted = 0
            paths = [p for p in programs(layer) if p.stat().st_size < 20000]
            paths = [p for p in paths if p.stem != "grammar"]  # which need not make sense
            for round_ in range(int(os.environ.get("L3C_PROGRAMS", 24))):
                text = draw.choice(paths).read_text()
                spans = [m.span() for m in LEXEME.finditer(text) if m.lastgroup]
                start, end = draw.choice(spans)
                kind = draw.randrange(4)
                if kind == 0:
                    text = text[:start] + text[end:]
                elif kind == 1:
                    text = text[:end] + " " + draw.choice(pieces) + " " + text[end:]
                elif kind == 2:
                    text = text[:start] + " " + draw.choice(pieces) + " " + text[end:]
                else:  # a comma before a closing bracket
                    closing = [m.start() for m in re.finditer(r"(?<=[\w\)\]])[\)\]](?!\])", text)]
                    place = draw.choice(closing or [start])
                    text = text[:place] + "," + text[place:]
                path = self.write(f"damaged{round_}.{layer}", text)
                if self.l3c("check", path, code=None).code != 0:
                    continue
                accepted += 1
                reading = Reading(grammar, text)
                accepts = reading.accepts()
                near = " ".join(t for _, t in reading.tokens[max(0, reading.farthest - 8):][:12])
                self.assertTrue(accepts, f"{layer} at: {near}")
            self.assertGreater(accepted, 0, layer)

    def test_every_word_of_a_parser_stands_in_its_grammar(self):
        sources = {
            "l3": ["layers/l3/parse.cc", "layers/l3/domain.cc"],
            "l2": ["layers/l2/parse.cc"],
            "l1": [str(p.relative_to(ROOT)) for p in ROOT.glob("layers/l1/parse*.cc")],
            "l0": ["layers/l0/plan_spelling.h"]
            + [f"layers/l0/{name}_text.cc" for name in ("plan", "kernel", "code", "control")],
        }
        for layer, files in sources.items():
            words = self.grammars[layer].words()
            for file in files:
                text = (ROOT / file).read_text()
                asked = re.findall(r'(?:AtWord|AcceptWord|ExpectWord|IsWord)\("(\w+)"\)', text)
                asked += re.findall(r'text == "(\w+)"', text)
                asked += re.findall(r'constexpr Spelling \w+\[\] = \{(.*?)\};', text, re.S) and [
                    word for block in re.findall(r"constexpr Spelling \w+\[\] = \{(.*?)\};", text, re.S)
                    for word in re.findall(r'\{"(\w+)"', block)
                ]
                self.assertTrue(asked, file)
                self.assertEqual(set(), set(asked) - words - {"inf", "nan"}, file)


if __name__ == "__main__":
    unittest.main()
