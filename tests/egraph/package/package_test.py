#!/usr/bin/env python3
"""The engine as a package: installs it, builds a program against it, runs that.

  package_test.py --build DIR     installs the engine that was built in DIR
  package_test.py --own           configures and builds egraph/ as a project of its own first

The generator and the compiler are those of --generator and --compiler.
"""
import argparse
import pathlib
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
EGRAPH = HERE.parents[2] / "egraph"


def run(*command):
    done = subprocess.run([str(c) for c in command], stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True)
    if done.returncode != 0:
        sys.exit(f"{' '.join(map(str, command))}\n{done.stdout}")
    return done.stdout


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=pathlib.Path)
    parser.add_argument("--own", action="store_true")
    parser.add_argument("--cmake", default="cmake")
    parser.add_argument("--generator", default="Ninja")
    parser.add_argument("--compiler", default="c++")
    parser.add_argument("--flags", default="", help="of the compiler, for the program")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        folder = pathlib.Path(temporary)
        configure = [args.cmake, "-G", args.generator, f"-DCMAKE_CXX_COMPILER={args.compiler}"]
        build = args.build
        # As a project of its own it is always configured: nothing of the rest may be needed for that.
        own = folder / "own"
        run(*configure, "-S", EGRAPH, "-B", own)
        if args.own:
            run(args.cmake, "--build", own, "--parallel", "2")
            build = own
        prefix = folder / "prefix"
        run(args.cmake, "--install", build, "--component", "egraph", "--prefix", prefix)
        consumer = folder / "consumer"
        run(*configure, "-S", HERE / "consumer", "-B", consumer, f"-DCMAKE_PREFIX_PATH={prefix}",
            f"-DCMAKE_CXX_FLAGS={args.flags}")
        run(args.cmake, "--build", consumer)
        print(run(consumer / "consumer"), end="")
        stray = [str(p.relative_to(prefix)) for p in prefix.rglob("*.h")
                 if not str(p.relative_to(prefix)).startswith("include/egraph/")]
        if stray:
            sys.exit(f"headers outside of include/egraph: {stray}")


if __name__ == "__main__":
    main()
