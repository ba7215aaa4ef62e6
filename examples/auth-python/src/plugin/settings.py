"""Reads settings strictly: every problem is reported at once, with its path."""

import dataclasses
import difflib
import json
from typing import TypeVar, get_type_hints

T = TypeVar("T")
TYPES = {str: "a string", bool: "true or false", int: "a whole number", float: "a number", list[str]: "a list"}


@dataclasses.dataclass(frozen=True)
class Problem:
    """One problem. The message never repeats a value, which could be a secret."""

    path: str
    message: str
    nearest: str = ""


def parse(text: str, into: type[T], data_dir: str = "") -> tuple[T, list[Problem]]:
    """Reads settings into a dataclass whose fields are str, bool, int, float or list[str], each with a default. Use them
    only if there are no problems. The class's method `problems` checks what types cannot express."""
    problems: list[Problem] = []
    hints = get_type_hints(into)
    types = {field.name: hints[field.name] for field in dataclasses.fields(into)}
    for name, wanted in types.items():
        if wanted not in TYPES:
            raise TypeError(f"the setting {name} is {wanted}: use str, bool, int, float or list[str]")
    values: dict[str, object] = {}
    seen: set[str] = set()
    for name, value in read(text, problems):
        if name in seen:
            problems.append(Problem(name, "is given twice"))
        elif name not in types:
            near = difflib.get_close_matches(name, types, n=1, cutoff=0.6)
            problems.append(Problem(name, "is not a setting", near[0] if near else ""))
        elif not fits(value, types[name]):
            problems.append(Problem(name, f"must be {TYPES[types[name]]}, not {kind_of(value)}"))
        elif types[name] != list[str] or are_texts(name, value, problems):
            values[name] = value
        seen.add(name)
    settings = into(**values)
    wrong = {p.path for p in problems}
    return settings, problems + [p for p in settings.problems(data_dir) if p.path not in wrong]


class Pairs(list):
    """A JSON object as written, with duplicate names."""


def read(text: str, problems: list[Problem]) -> Pairs:
    try:
        value = json.loads(text or "{}", object_pairs_hook=Pairs)
    except (ValueError, RecursionError) as error:
        where = f" at character {error.pos}" if isinstance(error, json.JSONDecodeError) else ""
        problems.append(Problem("", f"must be one JSON object, but cannot be parsed{where}"))
        return Pairs()
    if not isinstance(value, Pairs):
        problems.append(Problem("", f"must be an object, not {kind_of(value)}"))
        return Pairs()
    return value


def are_texts(name: str, value: list, problems: list[Problem]) -> bool:
    wrong = [
        Problem(f"{name}[{i}]", f"must be a string, not {kind_of(item)}")
        for i, item in enumerate(value)
        if not isinstance(item, str)
    ]
    problems += wrong
    return not wrong


def fits(value: object, wanted: object) -> bool:
    return type(value) is int if wanted is int else kind_of(value) == TYPES[wanted]


def kind_of(value: object) -> str:
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true or false"
    if isinstance(value, Pairs):
        return "an object"
    return {str: "a string", list: "a list"}.get(type(value), "a number")
