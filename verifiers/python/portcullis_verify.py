#!/usr/bin/env python3
"""Verifies an export of Portcullis offline; written from `specs/`, without a line of the first one.

    portcullis_verify.py EXPORT [--trust FILE]... [--json]

EXPORT is a file, a folder or a ZIP archive, FILE a trust file or a trust policy. Exit codes:
0 VALID, 1 INVALID, 2 INCOMPLETE, 3 no answer. `portcullis_run.py` reads the run, and
`portcullis_log.py` the log; here are the files and the command. Headings name the page and section
of `specs/` that the code below them follows."""
import argparse, json, re, stat, struct, sys, zlib
from io import BufferedReader, RawIOBase
from pathlib import Path
sys.dont_write_bytecode = True  # it leaves nothing behind
from portcullis_log import FILE, LEAVES, STEPS, Leaf, Policy, judge, logged
from portcullis_run import Invalid, Run, Unreadable, attempt, limit, need, read_trust

ACCOUNTED, NAMES, DIRECTORY, TRUST = 1 << 17, 1 << 18, 64 << 20, 128 << 20

def sound(holds, why):
    if not holds: raise Unreadable("an archive or a folder that is not read: " + why)

# transparency-log.md §7.2: an archive, in which directory and headers agree and nothing is between
TIMES = {0x000a, 0x5455, 0x5855, 0x7855, 0x7875}
class Fields:
    """What is left of a record."""
    def __init__(self, data): self.data = data
    def bytes(self, length):
        sound(length <= len(self.data), "a record is cut off")
        found, self.data = self.data[:length], self.data[length:]
        return found
    def take(self, form): return struct.unpack("<" + form, self.bytes(struct.calcsize("<" + form)))

def extras(data):
    """The numbers that do not fit into 32 bits."""
    rest, found = Fields(data), {}
    while rest.data:
        ident, length = rest.take("HH")
        sound(ident not in found and ident in TIMES | {1}, "an extra field")
        found[ident] = rest.bytes(length)
    return Fields(found.get(1, b""))
def wide(number, large): return large.take("Q")[0] if number == 0xffffffff else number

def header(fields, form):
    """What a header and the directory both say; what only the directory says; the offset there."""
    flags, method, _, crc, packed, size, *more = fields.take("HHIIII" + form)
    name, large = fields.bytes(more[0]), extras(fields.bytes(more[1]))
    size = wide(size, large)
    packed = wide(packed, large)
    said = dict(flags=flags, method=method, crc=crc, packed=packed, size=size, name=name)
    offset = wide(more[-1], large) if len(more) > 2 else 0
    sound(not large.data, "a large number that is small")
    return said, more[2:-1], offset

def end_record(file, size):
    """How many files, and how long and where the directory is."""
    def at(offset, form):
        file.seek(offset)
        return Fields(file.read(struct.calcsize("<" + form))).take(form)
    sound(size >= 22, "too short")
    mark, disk, first, here, count, length, offset, comment = at(size - 22, "IHHHHIIH")
    sound(mark == 0x06054b50 and here == count, "no end")
    sound(not (disk or first or comment), "a comment, or parts in other files")
    end, last = size - 22, [count, length, offset]
    if size >= 42 and at(size - 42, "I")[0] == 0x07064b50:
        sound(size >= 98 and at(size - 42, "IIQI")[1:] == (0, size - 98, 1), "a wrong locator")
        mark, own, _, disk, first, here, *large = at(size - 98, "IQIIIQQQQ")
        right = [mark, own, disk, first, here] == [0x06064b50, 44, 0, 0, large[0]]
        ones = [0xffff, 0xffffffff, 0xffffffff]
        sound(right and all(a in (b, c) for a, b, c in zip(last, large, ones)), "two ends")
        end, last = size - 98, large
    sound(last[1] + last[2] == end, "a directory that is elsewhere")
    limit(last[0], NAMES, "files")
    limit(last[1], DIRECTORY, "bytes of directory")
    return last

def entry(file, rest, at):
    """What an entry of the directory and the header at this place say, and where its data end."""
    sound(rest.take("II")[0] == 0x02014b50, "a directory that is cut off")
    said, (comment, disk, _, attributes), offset = header(rest, "HHHHHII")
    sound(offset == at and not (comment or disk), "another order, or a comment")
    file.seek(at)
    fixed = file.read(30)
    sound(fixed[:4] == b"PK\3\4" and len(fixed) == 30, "no header")
    fixed += file.read(sum(struct.unpack("<HH", fixed[26:])))
    sound(header(Fields(fixed[6:]), "HH")[0] == said, "a header that differs")
    folder = said["name"].endswith(b"/")
    stored = said["method"] == 0 and said["size"] == said["packed"]
    sound(not said["flags"] & ~0x0806 and (stored or said["method"] == 8), "flags or method")
    sound(not folder or stored and said["size"] == said["crc"] == 0, "a full folder")
    sound(attributes >> 28 in (0, 4 if folder else 8), "neither a file nor a folder")
    sound(folder or not attributes & 16, "a folder that is a file")
    plain = re.fullmatch(rb"[ -\[\]-~]+", said["name"]) and said["name"].decode()
    parts = plain[:len(plain) - folder].split("/") if plain else [""]
    sound(not {"", ".", ".."} & set(parts), "a name")
    return dict(said, name=plain, at=at + len(fixed)), at + len(fixed) + said["packed"]

def unzipped(path):
    """Names, and what opens each."""
    entries, at = [], 0
    with path.open("rb") as file:
        count, length, directory = end_record(file, path.stat().st_size)
        file.seek(directory)
        rest = Fields(file.read(length))
        for _ in range(count):
            said, at = entry(file, rest, at)
            sound(at <= directory, "data past their end")
            entries.append(said)
    sound(at == directory and not rest.data, "bytes that belong to nothing")
    bare = [said["name"].rstrip("/") for said in entries]
    above = {name[:i] for name in bare for i, c in enumerate(name) if c == "/"}
    files = [said for said in entries if not said["name"].endswith("/")]
    sound(len(bare) == len(set(bare)), "two files of one name")
    sound(not any(said["name"] in above for said in files), "a file that is a folder")
    return [(said["name"], Packed(path, said)) for said in files]

class Packed:
    def __init__(self, path, said): self.path, self.said = path, said
    def __call__(self, _): return BufferedReader(Unpacked(self.path, self.said), 1 << 16)

class Unpacked(RawIOBase):
    """A file of an archive, as it is read: at its end it has to be what its header says."""
    def __init__(self, path, said):
        self.file, self.said, self.left = path.open("rb"), said, said["packed"]
        self.crc = self.size = 0
        self.file.seek(said["at"])
        self.inflate = zlib.decompressobj(-15) if said["method"] else None
    def close(self):
        self.file.close()
        super().close()
    def readable(self): return True
    def readinto(self, buffer):
        data, packed = b"", b" "
        while packed and not data and not (self.inflate and self.inflate.eof):
            packed = self.inflate.unconsumed_tail if self.inflate else b""
            if not packed:
                packed = self.file.read(min(self.left, len(buffer)))
                self.left -= len(packed)
            data = self.inflate.decompress(packed, len(buffer)) if self.inflate else packed
        self.crc, self.size = zlib.crc32(data, self.crc), self.size + len(data)
        if not data:
            over = not self.inflate or self.inflate.eof and not self.inflate.unused_data
            same = [self.crc, self.size] == [self.said["crc"], self.said["size"]]
            sound(over and not self.left and same, "data that are not those of their header")
        sound(self.size <= self.said["size"], "more data than the header says")
        buffer[:len(data)] = data
        return len(data)

# transparency-log.md §7: an export as files
def files(path):
    """Names in their order, and what opens each; a file by itself is a run without a log."""
    if path.is_dir():
        found = [(p.relative_to(path).as_posix(), p) for p in path.rglob("*")]
        sound(all(stat.S_IFMT(p.lstat().st_mode) in (stat.S_IFREG, stat.S_IFDIR) for _, p in found),
              "neither a file nor a folder")
        return sorted((name, p.open) for name, p in found if p.is_file())
    if not path.is_file(): return [("run.export", path.open)]
    with path.open("rb") as file: packed = file.read(2) == b"PK"
    if not packed: return [("run.export", path.open)]
    return sorted(unzipped(path), key=lambda pair: pair[0])
def whole(opens, most=FILE):
    with opens("rb") as file:
        data = file.read(most + 1)
        while isinstance(opens, Packed) and file.read(1 << 20): pass
    return data

PART = re.compile(r"log/([a-z0-9-]{1,64})\.(leaf|tlog-proof|consistency)")
def sort(found, run_belongs=True):
    """Pairs of leaf and proof, consistency proofs, and the names that do not belong there."""
    evidence, wrong = {}, []
    for name, opens in found:
        part = PART.fullmatch(name)
        run = run_belongs and name == "run.export"
        if part: evidence.setdefault(part[1], {})[part[2]] = name, whole(opens)
        elif isinstance(opens, Packed) and not run: whole(opens, 0)
        other = name == "README.txt" or name.endswith((".policy", ".trust"))
        wrong += [] if part or run or other else [name]
        limit(len(evidence), ACCOUNTED + STEPS, "leaves and consistency proofs")
    parts = [evidence[name] for name in sorted(evidence)]
    pairs = [[part[key] for key in ("leaf", "tlog-proof") if key in part] for part in parts]
    steps = [part["consistency"] for part in parts if "consistency" in part]
    wrong += [pair[0][0] for pair in pairs if len(pair) == 1]
    return [pair for pair in pairs if len(pair) == 2], steps, wrong

def empty(): return dict(status="INVALID", exit_code=1, failure=None, not_checked=[])
def answer(report, missing):
    status, code = ("INCOMPLETE", 2) if missing else ("VALID", 0)
    report.update(not_checked=list(missing), status=status, exit_code=code)

def one(found, trust, policy):
    """The report on a run, its leaves, and what it says of others."""
    report, opens, kin = empty(), dict(found).get("run.export"), None
    if not opens: raise Unreadable("there is no `run.export`")
    pairs, steps, wrong = sort(found)
    wanted = {getattr(attempt(Leaf, *leaf), "count", 0) for leaf, _ in pairs} if policy else None
    try:
        with opens("rb") as stream: run = Run(stream, trust, wanted)
        kin = run.kin
        left = len(run.payloads) - sum(run.given.values())
        counts = dict(verified=run.given["payload"], withheld=left, erased=run.given["erased"])
        report.update(origin=run.origin, run=run.id, events=run.events, payloads=counts)
        for name in wrong: need(False, "files-mismatched", (name, None, 0))
        answer(report, judge(policy, run, pairs, steps) if policy else run.not_checked())
    except Invalid as error:
        report["failure"] = error.found
        if isinstance(opens, Packed): whole(opens, 0)
    return report, [leaf for leaf, _ in pairs], kin

# transparency-log.md §7.1: many runs
def many(found, trust, policy):
    report, runs, beside, leaves = empty(), {}, [], []
    for name, opens in found:
        part = re.fullmatch(r"(runs/[a-z0-9-]{1,64}/)(.+)", name, re.S)
        if part: runs.setdefault(part[1], []).append((part[2], opens))
        else: beside.append((name, opens))
    if not runs: raise Unreadable("there is no run")
    tree = [opens for name, opens in beside if name == "tree"]
    beside = [(name, opens) for name, opens in beside if name != "tree"]
    pairs, steps, wrong = sort(beside, False)
    if tree: wrong = sorted([*wrong, *[name for name, _ in beside if name[:4] == "log/"]])[:1]
    reports, known, members = [], set(), {}
    for folder in sorted(runs):
        of_run, more, members[folder] = one(runs[folder], trust, policy)
        reports.append((folder, of_run))
        leaves += [(folder + name, data) for name, data in more]
    try:
        for name in wrong: need(False, "files-mismatched", (name, None, 0))
        for folder, of_run in reports:
            if of_run["failure"]:
                found = dict(of_run["failure"], file=folder + of_run["failure"]["file"])
                return dict(report, failure=found)
        origin = reports[0][1]["origin"]
        for folder, of_run in reports:
            name = folder + "run.export"
            need(of_run["origin"] == origin, "wrong-origin", (name, 1, 0))
            need(of_run["run"] not in known, "files-mismatched", (name, None, 0))
            known.add(of_run["run"])
        related(reports, members, whole(tree[0], TRUST) if tree else None)
        missing = [folder for folder, of_run in reports if of_run["exit_code"]]
        if not tree: missing += numbers(policy, origin, pairs, steps, leaves) if policy else ["numbers"]
        answer(report, missing)
    except Invalid as error: report["failure"] = error.found
    return report

def related(reports, members, tree):
    """Whether the runs agree on which opened which and, of a tree, are one that is whole."""
    known, root = {of_run["run"]: members[folder] for folder, of_run in reports}, None
    place = {of_run["run"]: (folder + "run.export", None, 0) for folder, of_run in reports}
    if tree is not None:
        root = re.fullmatch(rb"portcullis-tree/v1\nrun ([0-9a-f]{32})\n", tree)
        root = need(root, "tree-malformed", ("tree", None, 0)) and root[1].decode()
    for run, kin in known.items():
        def same(holds, seq, attack="kin-mismatched"): need(holds, attack, place[run], seq)
        same(not kin["malformed"], kin["malformed"])
        parent, *event = kin["parent"] or [None]
        if parent in known: same((run, *event) in known[parent]["opened"], 1)
        never = {child for _, child, count, _ in kin["closed"] if count == 0}
        before = {}
        for child, seq, link in kin["opened"]:
            same(child not in before, seq)
            before[child] = seq
            if child in known: same(known[child]["parent"] == (run, seq, link), seq)
            else: same(not root or child in never, seq, "kin-missing")
        for seq, child, count, link in kin["closed"]:
            ended = child not in known or count and known[child]["ends"].get(count) == link
            same(before.get(child, seq) < seq and ended and (count > 0) == (link is not None), seq)
    if not root: return
    need(root in known, "kin-missing", ("tree", None, 0))
    reached, open_ = set(), [root]
    while open_:
        run = open_.pop()
        if run in known and run not in reached:
            reached.add(run)
            open_ += [child for child, *_ in known[run]["opened"]]
    for run in known: need(run in reached, "kin-foreign", place[run])

def numbers(policy, origin, pairs, steps, leaves):
    """What cannot be checked of the numbers of the segments."""
    limit(len(pairs), ACCOUNTED, "leaves that account for numbers")
    accounting, missing = logged(policy, origin, pairs, steps)
    accounting = [leaf for leaf in accounting if leaf.kind == "run-head"]
    exported = [leaf for leaf in (Leaf(*leaf) for leaf in leaves) if leaf.kind == "run-head"]
    segments, given, spans = {}, {}, {}
    for h in accounting + exported:
        number, segment = (h.writer, h.epoch, h.run_no), (h.run, h.segment)
        place = h.file, None, 0
        need(segments.setdefault(number, segment) == segment, "run-number-reused", place)
        need(given.setdefault(segment, number) == number, "head-mismatch", place)
    shown = {(h.writer, h.epoch, h.run_no) for h in exported}
    accounted = {(h.writer, h.epoch, h.run_no) for h in accounting}
    for writer, epoch, number in accounted: spans.setdefault((writer, epoch), []).append(number)
    holes = any(max(all_) - min(all_) >= len(all_) for all_ in spans.values())
    whole_ = accounted and shown == accounted and not holes
    return [name for name in missing if missing[name]] + ([] if whole_ else ["numbers"])

def verify(path, trusts):
    """The report; `trusts` are the bytes of a trust file, of a trust policy, or of both."""
    believed = {}
    for data in trusts:
        lines = [line.rstrip(b"\r") for line in data.split(b"\n")]
        first = next((line for line in lines if line and line[:1] != b"#"), b"")
        read = read_trust if first == b"portcullis-trust/v1" else Policy
        if read in believed: raise Unreadable("two trust files or two trust policies")
        believed[read] = read(data)
    found = files(Path(path))
    trust, policy = believed.get(read_trust), believed.get(Policy)
    if any(name.startswith("runs/") for name, _ in found): return many(found, trust, policy)
    report, *_ = one(found, trust, policy)
    report["not_read"] = [name for name, _ in found if name.endswith((".policy", ".trust"))]
    return report

def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.error = lambda why: sys.exit(print("UNREADABLE:", why) or 3)
    parser.add_argument("export", metavar="EXPORT")
    parser.add_argument("--trust", metavar="FILE", action="append", default=[])
    parser.add_argument("--json", action="store_true", help="print the report as one line of JSON")
    args = parser.parse_args()
    try:
        trusts = [whole(Path(name).open, TRUST) for name in args.trust]
        limit(max(map(len, trusts), default=0), TRUST, "bytes of trust file")
        report = verify(args.export, trusts)
    except Exception as error:  # no answer, whatever it is: a traceback would exit as INVALID does
        report = dict(status="UNREADABLE", exit_code=3, error=str(error) or type(error).__name__)
    found = report.get("failure") or {key: report[key] for key in report if key == "error"}
    found = ["%s %s" % (key, ascii(value)) for key, value in found.items() if value is not None]
    said = [", ".join([report["status"], *found]), *report.get("not_checked", [])]
    print(json.dumps(report) if args.json else "\n  not checked: ".join(said))
    return report["exit_code"]

if __name__ == "__main__": sys.exit(main())
