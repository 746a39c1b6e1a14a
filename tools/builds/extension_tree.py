"""A tree of links around an extension module that was compiled in another way, and an interpreter that imports from it.

    python tools/builds/extension_tree.py DIRECTORY [OPTION OF CMAKE...]

makes DIRECTORY/tree and DIRECTORY/venv/bin/python. Both are used together: the installed shmq is not seen there.
"""

import shutil
import sys
from pathlib import Path

from builds.native_build import ROOT, BuildFailed, call, command

__all__ = ["interpreter_of", "linked_tree", "tree_around"]


def linked_tree(directory: Path, *options: str) -> Path:
    """Builds the extension and lays a tree of links around it; answers the tree.

    Arguments:
        directory: of the build, and of the tree.
        options: of cmake.
    """
    given = [*options, f"-DPython_EXECUTABLE={sys.executable}", f"-DCMAKE_MAKE_PROGRAM={command('ninja')}"]
    call(command("cmake"), "-S", ROOT / "native", "-B", directory, "-G", "Ninja", *given)
    call(command("cmake"), "--build", directory)
    return tree_around(directory)


def tree_around(directory: Path) -> Path:
    """Lays the links around an extension that was built there."""
    tree = directory / "tree"
    shutil.rmtree(tree, ignore_errors=True)
    (tree / "shmq").mkdir(parents=True)
    for path in (ROOT / "shmq").iterdir():
        if path.name != "__pycache__" and path.suffix != ".so":
            (tree / "shmq" / path.name).symlink_to(path)
    for name in ("tests", "tools", "docs", "bench", "native", "pyproject.toml", "README.md"):
        (tree / name).symlink_to(ROOT / name)
    for library in directory.glob("_native*.so"):
        (tree / "shmq" / library.name).symlink_to(library)
    return tree


def interpreter_of(directory: Path) -> Path:
    """One that sees this one's packages, but for the shmq that is installed there.

    Arguments:
        directory: of the build.
    """
    call(sys.executable, "-m", "venv", "--without-pip", "--clear", directory / "venv")
    site = next((directory / "venv" / "lib").glob("python*")) / "site-packages"
    packages = [path for path in sys.path if path.endswith("site-packages")]
    (site / "tree.pth").write_text("\n".join([str(directory / "tree"), *packages]) + "\n")
    return directory / "venv" / "bin" / "python"


def main(directory: str, *options: str) -> int:
    try:
        linked_tree(Path(directory).absolute(), *options)
        interpreter_of(Path(directory).absolute())
    except BuildFailed as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
