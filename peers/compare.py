"""Compares two reports of surface.py as JSON, except for a committed list of fields.

    compare.py FIRST SECOND [--fields FILE]

Prints one line a difference, and a summary. Exits 0 when the reports are equal, 1 when they are not, 3 when one cannot
be read. What is equal, to the letter: members (in any order), lengths, types (1 is not 1.0 and not true), values.
"""

import argparse
import base64
import binascii
import json
import re
import sys
from pathlib import Path

FIELDS = Path(__file__).parent / "nondeterministic.json"
DIFFERENCES_SHOWN_MAX = 50
VALUE_CHARACTERS_MAX = 200


def step(name):
    """One step of a JSON pointer."""
    return str(name).replace("~", "~0").replace("/", "~1")


def shown(value):
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= VALUE_CHARACTERS_MAX else f"{text[:VALUE_CHARACTERS_MAX]}..."


class Field:
    """One line of the list: where two runs may differ, and how."""

    def __init__(self, entry):
        self.where = entry["field"]
        steps = [("[^/]+" if part == "*" else re.escape(part)) for part in self.where.split("/")]
        self.path = re.compile("/".join(steps))
        self.pattern = re.compile(entry["pattern"])
        self.base64 = entry.get("base64", False)
        self.renamed = entry.get("renamed", False)
        self.used = False

    def fits(self, value):
        if not isinstance(value, str):
            return False
        if self.base64:
            try:
                value = base64.b64decode(value, validate=True).decode("utf-8")
            except (binascii.Error, UnicodeDecodeError):
                return False
        return self.pattern.fullmatch(value) is not None


class Comparison:
    def __init__(self, fields):
        self.fields = fields
        self.differences = []
        self.names = {}
        self.originals = {}

    def compare(self, path, first, second):
        if type(first) is not type(second):
            self.differ(path, first, second)
        elif isinstance(first, dict):
            for key in sorted(first.keys() | second.keys()):
                below = f"{path}/{step(key)}"
                if key not in first or key not in second:
                    side = "second" if key in second else "first"
                    self.differences.append(f"{below}: only in the {side} report")
                else:
                    self.compare(below, first[key], second[key])
        elif isinstance(first, list):
            if len(first) != len(second):
                self.differences.append(f"{path}: {len(first)} items in the first report, {len(second)} in the second")
            for index, (left, right) in enumerate(zip(first, second)):
                self.compare(f"{path}/{index}", left, right)
        else:
            self.leaf(path, first, second)

    def leaf(self, path, first, second):
        for field in self.fields:
            # Several lines may cover one place, with different patterns; what none of them covers must be equal.
            if not field.path.fullmatch(path) or not (field.fits(first) and field.fits(second)):
                continue
            field.used = True
            if field.renamed and not self.same_renaming(first, second):
                self.differences.append(f"{path}: {shown(first)} was called by another name before {shown(second)}")
            return
        if first != second:
            self.differ(path, first, second)

    def same_renaming(self, first, second):
        return self.names.setdefault(first, second) == second and self.originals.setdefault(second, first) == first

    def differ(self, path, first, second):
        self.differences.append(f"{path}: {shown(first)} in the first report, {shown(second)} in the second")


def named(report, path):
    """A pointer into "calls" with the name of the step, for people."""
    match = re.match(r"/calls/(\d+)", path)
    return f"[{report['calls'][int(match[1])]['name']}] {path}" if match else path


def compare(first, second, fields):
    """The differences between two reports, as text."""
    comparison = Comparison(fields)
    comparison.compare("", first, second)
    unused = [f"{field.where}: listed as differing, but matches nothing here" for field in fields if not field.used]
    return [named(first, line) for line in comparison.differences] + unused


def load(path):
    try:
        return json.loads(Path(path).read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        print(f"compare.py: cannot read `{path}`: {error}", file=sys.stderr)
        sys.exit(3)


def listed(path=FIELDS):
    return [Field(entry) for entry in load(path)["fields"]]


def main():
    parser = argparse.ArgumentParser(description="compare two reports of surface.py")
    parser.add_argument("first")
    parser.add_argument("second")
    parser.add_argument("--fields", default=FIELDS, help="fields in which they may differ")
    arguments = parser.parse_args()

    first, second = load(arguments.first), load(arguments.second)
    differences = compare(first, second, listed(arguments.fields))
    for line in differences[:DIFFERENCES_SHOWN_MAX]:
        print(line)
    if len(differences) > DIFFERENCES_SHOWN_MAX:
        print(f"and {len(differences) - DIFFERENCES_SHOWN_MAX} more")
    print(f"{len(first['calls'])} calls, {len(first['notifications'])} notifications, {len(differences)} differences")
    return 1 if differences else 0


if __name__ == "__main__":
    sys.exit(main())
