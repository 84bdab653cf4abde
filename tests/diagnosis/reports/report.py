"""What a kind of user's report is here: how to make its files, and what is to be found in them."""
from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence


@dataclasses.dataclass
class Variant:
    arguments: dict[str, object]
    says: list[str] = dataclasses.field(default_factory=list)  # regular expressions that the first finding must match
    never: list[str] = dataclasses.field(default_factory=list)  # rules that must not speak
    rule: str | None = None  # in place of the report's; "": nothing is wrong
    beside: list[str] = dataclasses.field(default_factory=list)  # rules that may speak too


@dataclasses.dataclass
class Report:
    entry: str
    what: str
    rule: str  # alternatives by "|"; "": nothing is wrong
    make: Callable[..., None]
    variants: list[Variant]


def variant(*, says: Sequence[str] = (), never: Sequence[str] = (), rule: str | None = None, beside: Sequence[str] = (),
            **arguments: object) -> Variant:
    return Variant(arguments, list(says), list(never), rule, list(beside))
