"""Writes the reference of the public names from their docstrings.

tools/api            writes docs/api.md anew
tools/api --print    prints the page
tools/api --check    fails if the page differs from the docstrings
"""

import inspect
import re
import sys
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, Final, is_typeddict

import shmq
from public_names import MODULES, Public, public

PAGE: Final = Path(__file__).resolve().parent.parent / "docs" / "api.md"
WIDTH: Final = 100  # of a signature on one line

HEAD: Final = """\
# All names

Names that `import shmq` gives, one by one. `tools/api` writes this page from the docstrings, and a test fails if they
differ. Another test runs the examples, with a `broker`, a `queue` named "jobs" and a `consumer` of it at hand.

Everywhere: durations are seconds, `timeout=None` waits for ever and `timeout=0` does not wait. Sizes are bytes, as a
number or as text such as "64MiB" (`shmq.Size`). Points in time are POSIX seconds. A header's value (`shmq.Header`) is a
str, int, float, bool, bytes or None. `**options` are [PutOptions](#shmqputoptions) of a message or
[QueueOptions](#shmqqueueoptions) of a queue.
"""

# In the order of reading; what is not named here follows, the errors last.
FIRST: Final = (
    "open",
    "Broker",
    "Queue",
    "QueueOptions",
    "PutOptions",
    "Consumer",
    "Message",
    "Death",
    "Loan",
    "Codec",
)
TITLED: Final = ("class", "function")  # what stands for itself; the others belong to a class
FIELD: Final = re.compile(r"( *)(\**\w+(?:, \w+)*): (.*)")


def spelled(annotation: Any) -> str:
    if isinstance(annotation, str):
        return annotation.strip("'\"")
    return str(inspect.formatannotation(annotation))


def written(parameter: inspect.Parameter) -> str:
    text = parameter.name
    if parameter.kind is parameter.VAR_POSITIONAL:
        text = f"*{text}"
    elif parameter.kind is parameter.VAR_KEYWORD:
        text = f"**{text}"
    is_typed, is_optional = parameter.annotation is not parameter.empty, parameter.default is not parameter.empty
    if is_typed:
        text += f": {spelled(parameter.annotation)}"
    if is_optional:
        text += f" = {parameter.default!r}" if is_typed else f"={parameter.default!r}"
    return text


def arguments(signature: inspect.Signature) -> Iterator[str]:
    """As they are written in a def, with the signs that say how they may be given."""
    before = None
    for parameter in signature.parameters.values():
        if parameter.name == "self":
            continue
        if before is parameter.POSITIONAL_ONLY and parameter.kind is not before:
            yield "/"
        if parameter.kind is parameter.KEYWORD_ONLY and before not in (
            parameter.KEYWORD_ONLY,
            parameter.VAR_POSITIONAL,
        ):
            yield "*"
        before = parameter.kind
        yield written(parameter)
    if before is inspect.Parameter.POSITIONAL_ONLY:
        yield "/"


def signature_of(name: Public) -> str:
    """How the name is called; of a property, its type. Empty for classes that nobody calls."""
    own = name.name.rpartition(".")[2]
    if name.kind == "property":
        result = inspect.signature(name.thing.fget).return_annotation
        return own if result is inspect.Signature.empty else f"{own}: {spelled(result)}"
    if not name.is_called:
        return ""
    signature = inspect.signature(name.thing)
    parts, returned = list(arguments(signature)), signature.return_annotation
    end = "" if name.kind == "class" or returned is signature.empty else f" -> {spelled(returned)}"
    line = f"{own}({', '.join(parts)}){end}"
    return line if len(line) <= WIDTH else f"{own}(\n    " + ",\n    ".join(parts) + f",\n){end}"


def fields_of(name: Public) -> set[str]:
    """The names that a line of the docstring may explain: `name: what it is`."""
    known = set(name.parameters())
    for options in (shmq.PutOptions, shmq.QueueOptions):
        if "options" in known or name.thing is options:
            known |= set(options.__annotations__)
    return known


def explained(paragraph: Sequence[str], known: set[str] | None) -> Iterator[str]:
    """A paragraph of a docstring, its fields as a list. known: their names; None: all that look like one."""
    lines: list[str] = []
    depths: list[int] = []  # of the list that the last line belongs to
    for line in paragraph:
        depth = len(line) - len(line.lstrip())
        found = FIELD.fullmatch(line)
        if found and (known is None or set(re.split(", ", found[2].lstrip("*"))) <= known):
            depths = [each for each in depths if each < depth] + [depth]
            names = ", ".join(f"`{each}`" for each in found[2].split(", "))
            lines.append(f"{'  ' * (len(depths) - 1)}* {names}: {found[3]}")
        elif depths and depth > depths[-1]:
            lines[-1] += f" {line.strip()}"
        elif depths:
            depths = []
            lines += ["", line.strip()]
        else:
            lines.append(line.strip())
    yield from lines


def in_markdown(text: str, known: set[str]) -> Iterator[str]:
    """The lines of a docstring as Markdown: fields become lists, examples code."""
    for paragraph in re.split(r"\n\s*\n", text):
        lines = paragraph.splitlines()
        heads = [number for number, line in enumerate(lines) if line in ("Attributes:", "Arguments:", "Example:")]
        title = lines[heads[0]] if heads else ""
        before, block = (lines[: heads[0]], lines[heads[0] + 1 :]) if heads else (lines, [])
        if before:
            yield from explained(before, known)
            yield ""
        if title == "Example:":
            yield from ["```pycon", *inspect.cleandoc("\n".join(block)).splitlines(), "```", ""]
        elif title:
            yield from [title, "", *explained(block, None), ""]


def entry(name: Public) -> Iterator[str]:
    mark = "###" if name.kind in TITLED else "####"
    own = name.name if mark == "###" else ".".join(name.name.split(".")[-2:])
    yield from [f"{mark} {own}", ""]
    signature = signature_of(name)
    if signature:
        yield from ["```", signature, "```", ""]
    elif is_typeddict(name.thing):
        keys = ", ".join(f"`{key}`" for key in name.thing.__annotations__)
        yield from [f"The keys of a dict, and the names of arguments: {keys}.", ""]
    yield from in_markdown(name.text, fields_of(name))


def place(name: Public) -> tuple[bool, int]:
    own = name.name.split(".")[1]
    kind = getattr(shmq, own, None)
    is_error = name.name.startswith("shmq.") and inspect.isclass(kind) and issubclass(kind, BaseException)
    return is_error, FIRST.index(own) if own in FIRST else len(FIRST)


def page(modules: Iterable[Any] = MODULES) -> str:
    lines = [HEAD]
    for module in modules:
        names = list(public(module))
        if module is shmq:
            names.sort(key=place)
        links = [f"[{name.name}](#{name.name.replace('.', '').lower()})" for name in names if name.kind in TITLED]
        lines += [f"## {module.__name__}", "", f"{', '.join(links)}.", ""]
        was_error = False
        for name in names:
            if module is shmq and place(name)[0] and not was_error:
                was_error = True
                lines += ["## Errors", "", "All are a `shmq.ShmqError`.", ""]
            lines += entry(name)
    return re.sub(r"\n{3,}", "\n\n", "\n".join(lines)).rstrip() + "\n"


def main(arguments: Sequence[str]) -> int:
    if list(arguments) == ["--print"]:
        print(page(), end="")
    elif list(arguments) == ["--check"]:
        if not PAGE.exists() or PAGE.read_text() != page():
            print("docs/api.md differs from the docstrings: tools/api writes it anew")
            return 1
    elif arguments:
        print(__doc__, file=sys.stderr)
        return 2
    else:
        PAGE.write_text(page())
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
