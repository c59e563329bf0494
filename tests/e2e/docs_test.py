"""The commands that the README shows work as shown."""

import os
import re
import shlex
import unittest

from harness import ROOT, L3cTest


class Docs(L3cTest):
    def test_readme_commands(self):
        for name in ("examples", "data"):
            os.symlink(ROOT / name, self.dir / name)
        blocks = re.findall(r"^```\n(.*?)^```", (ROOT / "README.md").read_text(), re.MULTILINE | re.DOTALL)
        commands = [line for block in blocks for line in block.splitlines() if line.startswith("l3c ")]
        self.assertGreater(len(commands), 5)
        for command in commands:
            self.l3c(*shlex.split(command)[1:], cwd=self.dir)

    def test_relative_links_lead_somewhere(self):
        for page in [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]:
            # A lambda in a program looks like a link.
            prose = re.sub(r"^```.*?^```", "", page.read_text(), flags=re.MULTILINE | re.DOTALL)
            for target in re.findall(r"\]\(([^)#:]+)\)", prose):
                self.assertTrue((page.parent / target).exists(), f"{page.name}: {target}")

    def test_the_specification_in_the_readme_is_the_example(self):
        self.assertIn((ROOT / "examples/mnist/mnist.l3").read_text(), (ROOT / "README.md").read_text())


if __name__ == "__main__":
    unittest.main()
