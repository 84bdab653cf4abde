"""What the checks of the tree share: findings of one form, and how they end."""
import pathlib


class Findings:
    """Of one check over the tree below `root`."""

    def __init__(self, root: pathlib.Path):
        self.root = root
        self.errors: list[str] = []

    def report(self, name: str, line: int, reason: str) -> None:
        """`line` 0: it concerns the file as a whole."""
        self.errors.append(f"{name}:{line}: {reason}" if line else f"{name}: {reason}")

    def run(self) -> list[str]:
        raise NotImplementedError


def print_all(check: type[Findings], arguments: list[str]) -> int:
    """Runs the check over the tree that is named, or the one that holds this file; the exit code: 1 with findings."""
    root = pathlib.Path(arguments[0]) if arguments else pathlib.Path(__file__).resolve().parent.parent
    errors = check(root).run()
    for error in errors:
        print(error)
    return 1 if errors else 0
