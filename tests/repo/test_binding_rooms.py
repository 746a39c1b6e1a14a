"""Calls in the binding go downward: who calls whom in native/python is compared with its rooms in tools/layers.toml.

Read from the text, as test_rooms reads the core: a name that a source defines for others, and another source mentions.
"""

import re
import tomllib
from collections.abc import Iterator, Mapping

from tests.repo.test_rooms import without_noise
from tests.repo.tree import ROOT, files

BINDING: dict[str, list[str]] = tomllib.loads((ROOT / "tools" / "layers.toml").read_text())["binding"]
HEIGHT = {file: height for height, names in enumerate(BINDING.values()) for file in names}

OWN = r"^(?!static\b|extern\b|typedef\b)"
FUNCTION = re.compile(rf"{OWN}\w[\w *]*?\b(\w+)\([^;{{}}]*?\)\s*\{{", re.MULTILINE)
OBJECT = re.compile(rf"{OWN}(?:\w[\w *]*)\b(\w+)(?:\[[^\]\n]*\])? = |{OWN}PyTypeObject \*(\w+)", re.MULTILINE)
WORD = re.compile(r"\b[A-Za-z_]\w+\b")


def defined_in(text: str) -> set[str]:
    objects = {name for both in OBJECT.findall(text) for name in both if name}
    return {*FUNCTION.findall(text), *objects}


def upward(sources: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """Yields (file, name) where a source mentions a name that a source of a higher room defines."""
    texts = {file: without_noise(text) for file, text in sources.items()}
    home = {name: file for file, text in texts.items() for name in defined_in(text)}
    for file, text in texts.items():
        for name in sorted(set(WORD.findall(text)) & home.keys()):
            if HEIGHT[home[name]] > HEIGHT[file]:
                yield file, name


def test_every_file_of_the_binding_lies_in_one_room() -> None:
    listed = [file for names in BINDING.values() for file in names]
    assert sorted(listed) == sorted(path.stem for path in files("native/python", ".c"))


def test_calls_in_the_binding_go_downward_only() -> None:
    sources = {path.stem: path.read_text() for path in files("native/python", ".c")}
    assert sum(len(defined_in(without_noise(text))) for text in sources.values()) > 100
    wrong = [f"{file} uses {name}" for file, name in upward(sources)]
    assert not wrong, "these go upward (tools/layers.toml):\n" + "\n".join(wrong)


def test_a_call_upward_is_found_of_functions_and_of_types() -> None:
    high = "PyObject *queue_high(PyObject *o) {\n}\nPyTypeObject *high_type;\nstatic int own(void) {\n}\n"
    low = "static int f(void) {\n    /* high_type */ return queue_high(high_type) + own();\n}\n"
    assert list(upward({"py_raise": low, "module": high})) == [("py_raise", "high_type"), ("py_raise", "queue_high")]
    assert list(upward({"py_raise": high, "module": low})) == []
    assert list(upward({"py_batch": low, "py_body": high})) == []
