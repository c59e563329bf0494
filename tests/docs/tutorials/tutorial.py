#!/usr/bin/env python3
"""The pages of docs/tutorials are programs: their ```cpp blocks, one after the other, are compiled,
and what the program prints must be their ```text blocks, one after the other.

  tutorial.py extract PAGE OUTPUT    writes the program
  tutorial.py check PAGE PROGRAM     runs it and compares
"""
import difflib
import pathlib
import re
import subprocess
import sys


def blocks(page, language):
    """(first line number, text) of each block of the language."""
    text = page.read_text(encoding="utf-8")
    for match in re.finditer(r"^```(\w*)\n(.*?)^```$", text, re.MULTILINE | re.DOTALL):
        if match.group(1) == language:
            yield text.count("\n", 0, match.start(2)) + 1, match.group(2)


def extract(page, output):
    program = "".join(f'#line {line} "{page.name}"\n{text}' for line, text in blocks(page, "cpp"))
    if not program:
        sys.exit(f"{page}: no program")
    output.write_text(program, encoding="utf-8")


def check(page, program):
    expected = "".join(text for _, text in blocks(page, "text"))
    done = subprocess.run([program], capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"exit code {done.returncode}\n{done.stdout}{done.stderr}")
    if not expected or done.stdout != expected:
        difference = difflib.unified_diff(expected.splitlines(), done.stdout.splitlines(),
                                          str(page), "printed", lineterm="")
        sys.exit("\n".join(difference))


def main():
    action, page, other = sys.argv[1], pathlib.Path(sys.argv[2]), pathlib.Path(sys.argv[3])
    {"extract": extract, "check": check}[action](page, other)


if __name__ == "__main__":
    main()
