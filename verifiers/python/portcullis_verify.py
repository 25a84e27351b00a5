#!/usr/bin/env python3
"""Verifies an export of Portcullis offline. Written from `specs/`; it shares no code with `portcullis verify`.

    portcullis_verify.py EXPORT [--trust FILE] [--json]   EXPORT: a file, a folder or a ZIP archive; FILE: a trust file or a trust policy
    portcullis_verify.py --vectors specs/vectors          holds this verifier to every vector

Exit codes: 0 VALID, 1 INVALID, 2 INCOMPLETE, 3 no answer. It names attack and place; `portcullis verify` says more in words.
Headings name the page and section of `specs/` that the code below them follows."""
import argparse, hashlib, json, os, re, stat, sys, zipfile

TABLE, SEGMENTS, EVENT, LINE, LOOK_AHEAD = 1 << 20, 1 << 16, 1 << 20, 64 << 20, 100_000
FILE, EVIDENCE, TRUST, CONTROL = 384 << 10, 4096 + 256, 128 << 20, re.compile("[\0-\x1f\x7f-\x9f]")

class Invalid(Exception):
    """A check failed: the attack, and where."""
    def __init__(self, attack, line=None, byte=None, seq=None, file=None):
        super().__init__(attack)
        self.found = dict(attack=attack, file=file, line=line, byte=byte, seq=seq)

class Malformed(ValueError):
    """A file of the log is not of its format, in this line and byte."""

class Unreadable(Exception):
    """There is no answer."""

def need(holds, why="not of its format"):
    if not holds: raise ValueError(why)

def sha(*parts): return hashlib.sha256(b"".join(parts)).digest()
def u64(n): return n.to_bytes(8, "big")
def lp(data): return len(data).to_bytes(4, "big") + data
def is_text(x): return isinstance(x, str)
def is_name(x): return is_text(x) and 0 < len(x.encode()) <= 256 and not CONTROL.search(x) and not any(map(str.isspace, x))
def is_u64(x): return type(x) is int and x < 1 << 64
def is_hex(x, size): return is_text(x) and re.fullmatch("[0-9a-f]{%d}" % (2 * size), x) is not None
def is_id(x): return is_hex(x, 16)
def is_hash(x): return is_hex(x, 32)

# run-chain.md §1: the four hashes
def event_hash(line): return sha(b"portcullis/event/v1\0", lp(line))
def event_link(run, segment, seq, before, hashed): return sha(b"portcullis/link/v1\0", run, segment, u64(seq), before, hashed)

def segment_link(origin, run, segment, writer, ordinal, after, parent):
    label, origin, writer = b"portcullis/segment/v1\0", lp(origin.encode()), lp(writer.encode())
    return sha(label, origin, run, segment, writer, u64(ordinal), u64(after), parent_bytes(parent))

def parent_bytes(parent): return bytes.fromhex(parent["segment"] + parent["link"]) if parent else bytes(48)
def commitment(salt, media_type, data): return sha(b"portcullis/payload/v1\0", salt, lp(media_type.encode()), lp(data))

# run-chain.md §2: JSON, events, and what may follow what
def unique(pairs):
    need(len(dict(pairs)) == len(pairs))
    return dict(pairs)

def real(text):
    need(text not in ("NaN", "Infinity", "-Infinity") and abs(float(text)) != float("inf"))
    return float(text)

def shallow(value, left):
    need(left >= 0)
    for inner in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        shallow(inner, left - isinstance(inner, (dict, list)))

def read_json(data):
    whole = lambda text: int(text) if len(text) <= 20 and text[0] != "-" else real(text)
    try: value = json.loads(data.decode(), object_pairs_hook=unique, parse_int=whole, parse_float=real, parse_constant=real)
    except RecursionError: raise ValueError("nested too deep") from None
    if data.count(b"{") + data.count(b"[") > 127: shallow(value, 126)
    if b"\\ud" in data.lower(): json.dumps(value, ensure_ascii=False).encode()  # half of a pair is no text
    return value

WORDS = {"verdict": "allow warn modify clarify pause review deny halt", "enforced": "held withheld executed replaced let-pass asked",
         "status": "ok error timeout not-executed input-required unknown", "decision": "granted refused expired", "state": "closed abandoned"}
KINDS = ("run-opened config input proposed verdict enforcement approval-requested approval-decided grant-claimed outcome observation "
         "output evidence control gap run-closed").split()

def read_event(line):
    e = read_json(line)
    need(isinstance(e, dict) and set(e) == set("v seq t kind actor cause payloads body".split()) and is_u64(e["v"]) and e["v"] == 1)
    need(is_u64(e["seq"]) and is_text(e["t"]) and is_text(e["kind"]) and is_text(e["actor"]) and e["kind"] in KINDS)
    need(e["cause"] is None or is_u64(e["cause"]) and 0 < e["cause"] < e["seq"])
    need(isinstance(e["body"], dict) and isinstance(e["payloads"], dict) and len(e["payloads"]) <= 256)
    for p in e["payloads"].values():
        need(isinstance(p, dict) and set(p) == {"commitment", "media_type", "bytes"})
        need(is_hash(p["commitment"]) and is_text(p["media_type"]) and is_u64(p["bytes"]))
    return e

def word(body, key):
    need(is_text(body.get(key)) and body[key] in WORDS[key].split())
    return body[key]

class Trajectory:
    """What happened to each action and approval; `step` raises ValueError at what may not follow."""
    def __init__(self): self.actions, self.approvals = {}, {}

    def step(self, kind, body):
        if kind not in ("verdict", "enforcement") and not kind.startswith(("proposed", "outcome", "approval", "grant")): return
        known = {"verdict": "verdict", "enforcement": "enforced", "outcome": "status", "approval-decided": "decision"}.get(kind)
        said = word(body, known) if known else None
        if known in ("verdict", "enforced") and "action" not in body: return  # on a text
        if kind != "approval-decided":
            need(is_id(body.get("action")) and (body["action"] in self.actions) == (kind != "proposed"))
            action = self.actions.setdefault(body["action"], dict(verdict=None, went=False, outcome=None))
        if kind.startswith(("approval", "grant")):
            need(is_id(body.get("approval")))
            approval, state = body["approval"], self.approvals.get(body["approval"])
        if kind == "verdict":
            need(not action["went"])
            action["verdict"] = said
        elif kind == "enforcement":
            need(action["verdict"] and not action["went"] and (said != "asked" or action["verdict"] == "review"))
            need(said not in ("executed", "replaced") or action["verdict"] in ("allow", "warn", "modify"))
            action["went"] = said not in ("held", "withheld")
        elif kind == "outcome":
            need(action["went"] and (action["outcome"] is None or action["outcome"] == "unknown" != said))
            action["outcome"] = said
        elif kind == "approval-requested":
            need(state is None)
            self.approvals[approval] = "requested"
        elif kind == "approval-decided":
            need(said != "granted" or state != "claimed")
            self.approvals[approval] = "closed" if said != "granted" else "once" if body.get("scope", "once") == "once" else "granted"
        elif kind == "grant-claimed":
            need(state in ("once", "granted"))
            self.approvals[approval] = "claimed" if state == "once" else state
        if max(len(self.actions), len(self.approvals)) > TABLE: raise Unreadable("over %d actions or approvals" % TABLE)

# run-chain.md §3: records in their one spelling
SHAPES = {"export": ["record format origin run"], "segment": ["record segment writer ordinal after parent link"],
          "head": ["record segment state count link"], "end": ["record segments events payloads", "record segments events payloads erased"], "erased": ["record commitment"],
          "payload": ["record commitment salt media_type text", "record commitment salt media_type hex"]}
IS = dict({k: is_u64 for k in "ordinal after count segments events payloads erased".split()}, origin=is_name, run=is_id, segment=is_id, link=is_hash,
          commitment=is_hash, salt=is_hash, writer=lambda x: is_text(x) and len(x.encode()) <= 256,
          state=lambda x: x in ("open", "closed", "abandoned"), hex=lambda x: is_text(x) and len(x) % 2 == 0 and is_hex(x, len(x) // 2),
          parent=lambda x: x is None or isinstance(x, dict) and list(x) == ["segment", "link"] and is_id(x["segment"]) and is_hash(x["link"]))

def is_utf8(data):
    try: return data.decode() is not None
    except UnicodeDecodeError: return False

def read_record(line):
    r = read_json(line)
    need(isinstance(r, dict) and is_text(r.get("record")) and " ".join(r) in SHAPES.get(r["record"], ()))
    need(all(IS.get(key, is_text)(value) for key, value in r.items()) and not ("hex" in r and is_utf8(bytes.fromhex(r["hex"]))))
    need(json.dumps(r, ensure_ascii=False, separators=(",", ":")).encode() == line)
    return r

def read_trust(data):
    """run-chain.md §4: the origin, and (count, link) of each run."""
    (first, *lines), origin, heads = [line for line in data.decode().split("\n") if line and not line.startswith("#")] or [""], None, {}
    for line in lines:
        found = re.fullmatch("head ([0-9a-f]{32}) ([1-9][0-9]{0,18}) ([0-9a-f]{64})", line)
        if found: heads.setdefault(found.group(1), set()).add((int(found.group(2)), found.group(3)))
        else: need(line.startswith("origin ") and origin is None and is_name(line[7:]), "`%s` is no head, or a second origin" % line)
        origin = origin if found else line[7:]
    need(first == "portcullis-trust/v1" and origin and sum(map(len, heads.values())) <= TABLE, "neither trust file nor trust policy")
    return origin, heads

# run-chain.md §3 and §5: one export, read once
class Chain:
    """What is known after each line. `wanted`: the counts after which a head in the log needs the link."""
    AFTER = dict(export=["start"], segment=["export", "head"], head=["segment"], **dict.fromkeys(["payload", "erased", "end"], ["head", "payload", "erased"]))
    FORMATS = ["portcullis-export/v1", "portcullis-export/v2"]  # the second one says what was erased

    def __init__(self, trust=None, wanted=()):
        self.trust, self.wanted, self.heads, self.trajectory, self.payloads = trust, wanted, set(), Trajectory(), {}
        self.number = self.byte = self.seq = self.events = self.given = self.erased = self.anchored = 0
        self.segments, self.last, self.state = [], "", "start"

    def fail(self, attack, seq=None): raise Invalid(attack, self.number, self.byte, seq)

    def read(self, stream):
        while True:
            most = LINE if self.state in ("head", "payload", "erased") else EVENT + 65
            line, self.number = stream.readline(most + 2), self.number + 1
            if self.state == "end": return self.fail("trailing-data") if line else self
            if line[-1:] != b"\n" and len(line) <= most and (line or self.number > 1): self.fail("truncated")
            if self.state == "start" and line[:1] != b"{": self.fail("not-a-portcullis-export")
            if line == b"\n" or b"\r" in line or len(line) > most + 1: self.fail(self.malformed())
            (self.record if line[:1] == b"{" else self.event)(line[:-1], stream)
            self.byte += len(line)

    def malformed(self): return "not-a-portcullis-export" if self.state == "start" else "line-malformed"

    def record(self, line, _):
        try: r = read_record(line)
        except ValueError: self.fail(self.malformed())
        if self.state == "start" and (r["record"] != "export" or r["format"] not in self.FORMATS): self.fail(self.malformed())
        if self.state != "start" and r["record"] in ("erased", "end") and self.newer != ("erased" in (r["record"], *r)): self.fail("line-malformed")
        if self.state not in self.AFTER[r["record"]]: self.fail("record-out-of-order")
        self.state = r["record"]
        getattr(self, "on_" + r["record"])(r)

    def on_export(self, r):
        self.origin, self.run, self.newer = r["origin"], r["run"], r["format"] == self.FORMATS[1]
        if self.trust and self.trust[0] != self.origin: self.fail("wrong-origin")
        self.heads = self.trust[1].get(self.run, set()) if self.trust else set()

    def on_segment(self, r):
        self.ids, before = (bytes.fromhex(self.run), bytes.fromhex(r["segment"])), self.segments[-1] if self.segments else None
        self.link = segment_link(self.origin, *self.ids, r["writer"], r["ordinal"], r["after"], r["parent"])
        if self.link.hex() != r["link"]: self.fail("segment-altered", self.seq + 1)
        parent = dict(segment=before["segment"], link=before["link"]) if before else None
        if (r["ordinal"], r["after"], r["parent"]) != (len(self.segments), self.seq, parent): self.fail("segment-spliced", self.seq + 1)
        if before and before["state"] == "open": self.fail("state-machine", self.seq + 1)
        if len(self.segments) == SEGMENTS: raise Unreadable("over %d segments" % SEGMENTS)
        self.segments.append(dict(r, start=self.seq, end=self.seq, state="open", links={self.seq: r["link"]}))

    def event(self, text, stream):
        if not re.match(b"[0-9a-f]{64} ", text): self.fail("line-malformed")
        if self.state != "segment": self.fail("record-out-of-order")
        link, line, segment, expected = text[:64].decode(), text[65:], self.segments[-1], self.seq + 1
        try: e = read_event(line)
        except ValueError: e = None
        seq = e["seq"] if e else expected
        self.link = event_link(*self.ids, seq, self.link, event_hash(line))
        lost = e and e["kind"] == "gap" and seq > expected and (e["body"].get("from"), e["body"].get("to")) == (expected, seq - 1)
        if self.link.hex() != link or seq != expected and not lost: self.fail(self.diagnose(seq, expected, stream), expected)
        if not e: self.fail("event-malformed", expected)
        for count, trusted in sorted(h for h in self.heads if self.seq < h[0] <= seq):
            if (count, trusted) != (seq, link): self.fail("chain-rewritten", count)
            self.anchored = seq
        try: self.meaning(e, segment, lost)
        except ValueError: self.fail("state-machine", seq)
        self.seq, self.events, segment["end"], segment["link"] = seq, self.events + 1, seq, link
        if seq in self.wanted: segment["links"][seq] = link

    def meaning(self, e, segment, lost):
        need(segment["state"] == "open" and (e["seq"] != 1 or e["kind"] == "run-opened") and (e["kind"] != "gap" or lost))
        if e["kind"] == "run-closed":
            need(is_u64(e["body"].get("count")) and e["body"]["count"] == e["seq"])
            segment["state"] = word(e["body"], "state")
        self.trajectory.step(e["kind"], e["body"])
        for p in e["payloads"].values():
            said = self.payloads.setdefault(p["commitment"], (e["seq"], p["media_type"], p["bytes"]))
            need(said[1:] == (p["media_type"], p["bytes"]))
        if len(self.payloads) > TABLE: raise Unreadable("over %d payloads" % TABLE)

    def diagnose(self, seq, expected, stream):
        """A name for what was done to a chain that does not hold here: a guess from the lines that follow."""
        later = []
        for _ in range(LOOK_AHEAD if seq > expected else 0):
            found = re.match(rb'[0-9a-f]{64} \{"v":1,"seq":([0-9]{1,19}),', stream.readline(EVENT + 67))
            if not found: break
            later.append(int(found.group(1)))
        if seq < expected: return "event-duplicated"
        return "event-reordered" if expected in later else "event-altered" if seq == expected or later[:1] == [expected + 1] else "event-missing"

    def on_head(self, r):
        segment = self.segments[-1]
        if r["segment"] == segment["segment"] and r["count"] > self.seq: self.fail("event-missing", self.seq + 1)
        if [r["segment"], r["state"], r["count"], r["link"]] != [segment["segment"], segment["state"], self.seq, self.link.hex()]:
            self.fail("head-mismatch", self.seq)
        segment["links"][self.seq] = r["link"]

    def on_payload(self, r):
        seq, *said = self.payloads.get(r["commitment"], (None,))
        data = r["text"].encode() if "text" in r else bytes.fromhex(r["hex"])
        if commitment(bytes.fromhex(r["salt"]), r["media_type"], data).hex() != r["commitment"]: self.fail("payload-altered", seq)
        if seq is None: self.fail("payload-unknown")
        if said != [r["media_type"], len(data)]: self.fail("payload-altered", seq)
        self.in_order(r, seq)
        self.given += 1

    def on_erased(self, r):
        if r["commitment"] not in self.payloads: self.fail("payload-unknown")
        self.in_order(r, self.payloads[r["commitment"]][0])
        self.erased += 1

    def in_order(self, r, seq):
        if r["commitment"] <= self.last: self.fail("record-out-of-order", seq)
        self.last = r["commitment"]

    def on_end(self, r):
        counted = r.get("erased", 0)
        if r["payloads"] > self.given or counted > self.erased: self.fail("payload-missing")
        there = [len(self.segments), self.events, self.given, self.erased]
        if [r["segments"], r["events"], r["payloads"], counted] != there: self.fail("count-mismatch")
        if any(count > self.seq for count, _ in self.heads): self.fail("tail-missing", self.seq + 1)

    def not_checked(self):
        """The checks that could not be made."""
        return ["closure"] * (self.segments[-1]["state"] == "open") + ["anchor"] * (not self.heads or self.anchored < self.seq)

# transparency-log.md §7: an export as files, and the command
def opened(path):
    """What opens `run.export`, and the other files: name and what opens it. A file by itself is an export without a log."""
    if os.path.isdir(path):
        found = [(os.path.relpath(os.path.join(top, f), path).replace(os.sep, "/"), os.path.join(top, f)) for top, _, fs in os.walk(path) for f in fs]
        return [(name, (lambda full=full: open(full, "rb")) if stat.S_ISREG(os.lstat(full).st_mode) else None) for name, full in sorted(found)]
    with open(path, "rb") as file:
        if file.read(4) != b"PK\3\4": return [("run.export", lambda: open(path, "rb"))]
    archive = zipfile.ZipFile(path)
    return [(i.orig_filename, lambda i=i: archive.open(i)) for i in archive.infolist() if i.orig_filename != "log/"]

def sorted_out(path, report):
    """What opens the run, the evidence on it by name and ending, and the first file that should not be there."""
    export, evidence, seen, problem = None, {}, set(), None
    for name, file in opened(path):
        part = re.fullmatch(r"log/([a-z0-9-]{1,64})\.(leaf|tlog-proof|consistency)", name)
        if name.endswith((".policy", ".trust")): report["not_read"].append(name)
        elif name in seen or not file or not part and name not in ("run.export", "README.txt"): problem = problem or name
        elif part: evidence.setdefault(part.group(1), {})[part.group(2)] = (name, file)
        elif name == "run.export": export = file
        seen.add(name)
    halves = [parts.get("leaf", parts.get("tlog-proof"))[0] for _, parts in sorted(evidence.items()) if ("leaf" in parts) != ("tlog-proof" in parts)]
    if not export: raise Unreadable("there is no `run.export`")
    if len(evidence) > EVIDENCE: raise Unreadable("over %d leaves and consistency proofs" % EVIDENCE)
    return export, evidence, problem or (halves or [None])[0]

def verify(path, trusts):
    """The report over an export and what the reader believes: the bytes of a trust file, of a trust policy, or of both."""
    report, trust, policy, log = dict(status="INVALID", exit_code=1, failure=None, not_checked=[], not_read=[]), None, None, None
    for data in trusts:
        heads = b"portcullis-trust/v1" in data.split(b"\n")
        if trust if heads else policy: raise Unreadable("two trust files or two trust policies")
        if heads: trust = read_trust(data)
        else:
            import portcullis_log as log
            policy = log.Policy(data)
    export, evidence, problem = sorted_out(path, report)
    for parts in evidence.values() if policy else ():
        for ending, (name, file) in parts.items():
            with file() as stream: parts[ending] = name, stream.read(FILE + 1)
    chain = Chain(trust, log.counts(p["leaf"][1] for p in evidence.values() if "leaf" in p) if policy else ())
    try:
        with export() as stream: chain.read(stream)
        counts = dict(verified=chain.given, withheld=len(chain.payloads) - chain.given - chain.erased, erased=chain.erased)
        report.update(origin=chain.origin, run=chain.run, events=chain.events, payloads=counts, not_checked=chain.not_checked())
        if problem: raise Invalid("files-mismatched", None, 0, file=problem)
        if policy:
            leaves = [p["leaf"] + p["tlog-proof"] for _, p in sorted(evidence.items()) if "leaf" in p]
            steps = [p["consistency"] for _, p in sorted(evidence.items()) if "consistency" in p]
            report["not_checked"] = log.judge(policy, chain.origin, chain.run, chain.segments, leaves, steps)
        report.update(status="INCOMPLETE" if report["not_checked"] else "VALID", exit_code=2 if report["not_checked"] else 0)
    except Invalid as error:
        report.update(failure=dict(error.found, file=error.found["file"] or "run.export"), not_checked=[])
    return report

def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("export", nargs="?", metavar="EXPORT")
    parser.add_argument("--trust", metavar="FILE", action="append", default=[], help="a trust file or a trust policy, or twice for both")
    parser.add_argument("--json", action="store_true", help="print the report as one line of JSON")
    parser.add_argument("--vectors", metavar="DIR", help="run the vectors in this folder")
    parser.error = lambda why: (print("UNREADABLE: %s; see --help" % why), sys.exit(3))
    args = parser.parse_args()
    sys.dont_write_bytecode = True
    sys.modules["portcullis_verify"] = sys.modules["__main__"]  # what the other files import is this one, once
    if args.vectors: return __import__("vectors").run(args.vectors)
    try:
        if not args.export: raise Unreadable("no export is named; see --help")
        trusts = [open(name, "rb").read(TRUST + 1) for name in args.trust]
        if any(len(data) > TRUST for data in trusts): raise Unreadable("a trust file of over %d bytes" % TRUST)
        report = verify(args.export, trusts)
    except Exception as error:  # whatever it is, it is no answer: a traceback would exit as INVALID does
        report = dict(status="UNREADABLE", exit_code=3, error=ascii(str(error) or type(error).__name__))
    found, said = report.get("failure") or {}, [report[key] for key in ("status", "error") if key in report]
    said += ["%s %s" % (key, ascii(value)) for key, value in found.items() if value is not None]
    print(json.dumps(report) if args.json else "\n  not checked: ".join([", ".join(said)] + report.get("not_checked", [])))
    return report["exit_code"]

if __name__ == "__main__": sys.exit(main())
