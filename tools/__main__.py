"""Runs a module of the folders beside this file: python tools FOLDER.MODULE [ARGUMENT...]."""

import runpy
import sys

if __name__ == "__main__":
    runpy.run_module(sys.argv.pop(1), run_name="__main__", alter_sys=True)
