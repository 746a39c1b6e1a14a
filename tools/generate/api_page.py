"""Writes the reference of the public names from their docstrings.

tools/api            writes docs/api.md anew
tools/api --print    prints the page
tools/api --check    fails if the page differs from the docstrings
"""

import inspect
import re
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import is_dataclass
from pathlib import Path
from typing import Any, Final, Literal, get_origin, is_typeddict

import shmq
from generate.public_names import MODULES, Public, is_protocol, public, told_by_bases

PAGE: Final = Path(__file__).resolve().parents[2] / "docs" / "api.md"
WIDTH: Final = 100  # of a signature on one line

HEAD: Final = """\
# All names

Names that `import shmq` gives, one by one. `tools/api` writes this page from the docstrings, and a test fails if they
differ. Another test runs the examples, with a `broker`, a `queue` named "jobs" and a `consumer` of it at hand. Examples
of methods that multiprocessing has, too, stand in `help()`.

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
    annotation = getattr(annotation, "__forward_arg__", annotation)  # of a TypedDict
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


def in_lines(own: str, signature: inspect.Signature, end: str) -> str:
    parts = list(arguments(signature))
    line = f"{own}({', '.join(parts)}){end}"
    return line if len(line) <= WIDTH else f"{own}(\n    " + ",\n    ".join(parts) + f",\n){end}"


def returned(signature: inspect.Signature) -> str:
    result = signature.return_annotation
    return "" if result is signature.empty else spelled(result)


def signature_of(name: Public) -> str:
    """How the name is called, once for each overload. Empty for classes that nobody calls."""
    own = name.name.rpartition(".")[2]
    if is_protocol(name.thing):
        methods = {own: each for own, each in vars(name.thing).items() if inspect.isfunction(each) and own[0] != "_"}
        found = ((own, inspect.signature(each)) for own, each in methods.items())
        return "\n".join(in_lines(own, each, f" -> {returned(each)}") for own, each in found)
    if not name.is_called:
        return ""
    ends = ((each, "" if name.kind == "class" else returned(each)) for each in name.signatures())
    return "\n".join(in_lines(own, each, end and f" -> {end}") for each, end in ends)


def property_line(name: Public) -> str:
    """A property as a line of a list."""
    own = name.name.rpartition(".")[2]
    kind = returned(inspect.signature(name.typed or name.thing.fget))
    return f"* `{own}: {kind}`: {' '.join(name.text.split())}" if kind else f"* `{own}`: {' '.join(name.text.split())}"


def with_values(kind: type, text: str) -> str:
    """An annotation in which a name for some values is those values."""
    known = vars(sys.modules[kind.__module__])
    alias = {own: str(each).removeprefix("typing.") for own, each in known.items() if get_origin(each) is Literal}
    return re.sub(r"\w+", lambda word: alias.get(word[0], word[0]), text)


def facts_of(kind: type) -> Iterator[str]:
    """The bases and arguments of an error, the types of fields, the names of inherited methods."""
    if issubclass(kind, BaseException):
        bases = (
            base for base in kind.__bases__ if base not in (Exception, shmq.ShmqError) and base.__name__ != "ShutDown"
        )
        names = [
            f"`{base.__name__}`" if "queue" not in base.__module__ else f"`queue.{base.__name__}`" for base in bases
        ]
        made = with_values(kind, ", ".join(arguments(inspect.signature(kind)))) if "__init__" in vars(kind) else ""
        if names or made:
            yield " ".join(
                [f"Is a {', '.join(names)}."] * bool(names) + [f"Made by `{kind.__name__}({made})`."] * bool(made)
            )
            yield ""
    elif is_typeddict(kind) or is_dataclass(kind):
        written = (f"`{own}: {with_values(kind, spelled(each))}`" for own, each in kind.__annotations__.items())
        yield from [f"Types: {', '.join(written)}.", ""]
    for base in told_by_bases(kind) if not issubclass(kind, BaseException) else []:
        own = (f"`{name}`" for name in vars(base) if name[0] != "_" and name not in vars(kind))
        yield from [f"As in {public_name(base)}: {', '.join(own)}.", ""]


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
        yield from ["```", signature, "```", ""] if "\n" in signature else [f"`{signature}`", ""]
    if name.kind == "class":
        yield from facts_of(name.thing)
    # Methods of shmq.mp are multiprocessing's: their examples stand in help() alone.
    text = name.text.partition("\nExample:")[0] if name.name.startswith("shmq.mp.") and own[0].isupper() else name.text
    yield from in_markdown(text, fields_of(name))


def public_name(kind: type) -> str:
    module = next(module for module in MODULES if kind in vars(module).values())
    return f"[{module.__name__}.{kind.__name__}](#{(module.__name__ + kind.__name__).replace('.', '').lower()})"


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
            if name.kind == "property":
                if not lines[-2].startswith("* "):
                    lines.append("")
                lines[-1:] = [property_line(name), ""]
                continue
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
