"""The run's part of `portcullis_verify.py`: an export, and the trust file that it is held against.

Headings name the page and section of `specs/` that the code below them follows."""
import hashlib, json, math, re

TABLE, SEGMENTS, LINE, EVENT = 1 << 20, 1 << 16, 64 << 20, (1 << 20) + 65
CONTROL, LINK = re.compile("[\0-\x1f\x7f-\x9f]"), re.compile(b"[0-9a-f]{64} ")

class Unreadable(Exception):
    """There is no answer."""
class Invalid(ValueError):
    """A check failed: the attack, its place (file, line, byte), and the number of the event."""
    def __init__(self, attack, place=(None, None, None), seq=None):
        super().__init__(attack)
        self.found = dict(zip(("file", "line", "byte"), place), attack=attack, seq=seq)
def need(holds, attack="not of its format", place=(None, None, None), seq=None):
    if not holds: raise Invalid(attack, place, seq)
    return True
def limit(count, most, what):
    if count > most: raise Unreadable("over %d %s" % (most, what))
def attempt(read, *args):
    """What it reads; none where that is not of its format."""
    try: return read(*args)
    except (ValueError, RecursionError): return None

def sha(*parts): return hashlib.sha256(b"".join(parts)).digest()
def u64(n): return n.to_bytes(8, "big")
def lp(data): return len(data).to_bytes(4, "big") + data
def is_text(x): return isinstance(x, str)
def is_short(x): return is_text(x) and len(x.encode()) <= 256
def is_label(x): return is_short(x) and not CONTROL.search(x)
def is_name(x): return is_label(x) and x != "" and not any(map(str.isspace, x))
def is_u64(x): return type(x) is int and x < 1 << 64
def is_id(x): return is_text(x) and re.fullmatch("[0-9a-f]{32}", x) is not None
def is_hash(x): return is_text(x) and re.fullmatch("[0-9a-f]{64}", x) is not None
def is_utf8(data): return attempt(bytes.decode, data) is not None
unhex = bytes.fromhex

# run-chain.md §1: the four hashes
def event_hash(line): return sha(b"portcullis/event/v1\0", lp(line))
def event_link(run, segment, seq, before, hashed):
    return sha(b"portcullis/link/v1\0", run, segment, u64(seq), before, hashed)
def segment_link(origin, run, segment, r):
    names, numbers = [run, segment, lp(r["writer"].encode())], [u64(r["ordinal"]), u64(r["after"])]
    parent = parent_bytes(r["parent"])
    return sha(b"portcullis/segment/v1\0", lp(origin.encode()), *names, *numbers, parent)
def parent_bytes(parent): return unhex(parent["segment"] + parent["link"]) if parent else bytes(48)
def commitment(salt, media_type, data):
    return sha(b"portcullis/payload/v1\0", salt, lp(media_type.encode()), lp(data))

def described(media_type, size): return sha(u64(size), media_type.encode())  # of one length, always

# run-chain.md §2 and §3: JSON; events in any spelling, records in one
def unique(pairs): return need(len(dict(pairs)) == len(pairs)) and dict(pairs)
def number(text):
    need(math.isfinite(float(text)))
    return int(text) if text.isdigit() and len(text) <= 20 else float(text)
def depth(x):
    inner = x.values() if isinstance(x, dict) else x if isinstance(x, list) else None
    return 0 if inner is None else 1 + max(map(depth, inner), default=0)
def read_json(data):
    hooks = dict.fromkeys(("parse_int", "parse_float", "parse_constant"), number)
    value = json.loads(data.decode(), object_pairs_hook=unique, **hooks)
    json.dumps(value, ensure_ascii=False).encode()  # half of a surrogate pair is no text
    return need(isinstance(value, dict) and depth(value) <= 127) and value

KINDS = """run-opened config input proposed verdict enforcement approval-requested approval-decided
    grant-claimed outcome observation observed output evidence work state fact control gap
    run-closed""".split()
NUMBERS = "seq bytes ordinal after count segments events payloads erased".split()
IS = dict(  # what each member has to be; those that are not here are texts
    dict.fromkeys(NUMBERS, is_u64), v=lambda x: is_u64(x) and x == 1, kind=KINDS.__contains__,
    cause=lambda x: x is None or is_u64(x), body=lambda x: isinstance(x, dict), run=is_id,
    segment=is_id, link=is_hash, commitment=is_hash, salt=is_hash, origin=is_name, writer=is_short,
    state=("open", "closed", "abandoned").__contains__,
    hex=lambda x: re.fullmatch("([0-9a-f]{2})*", str(x)) and not is_utf8(unhex(x)),
    parent=lambda x: x is None or has(x, "segment link") and list(x)[0] == "segment")
RECORDS = [  # records, their members in order, and the versions of the export that have them
    ("export", "format origin run", "v1 v2"),
    ("segment", "segment writer ordinal after parent link", "v1 v2"),
    ("head", "segment state count link", "v1 v2"),
    ("payload", "commitment salt media_type text", "v1 v2"),
    ("payload", "commitment salt media_type hex", "v1 v2"),
    ("erased", "commitment", "v2"),
    ("end", "segments events payloads", "v1"),
    ("end", "segments events payloads erased", "v2")]
FORMATS = {"portcullis-export/v1": "v1", "portcullis-export/v2": "v2"}

def has(x, members):
    """Whether it has these members and no others, each of them what it has to be."""
    known = isinstance(x, dict) and x.keys() == set(members.split())
    return known and all(IS.get(key, is_text)(value) for key, value in x.items())
def read_event(line):
    e = read_json(line)
    payloads = e.pop("payloads", None)
    need(has(e, "v seq t kind actor cause body"))
    need(e["cause"] is None or 0 < e["cause"] < e["seq"])
    need(isinstance(payloads, dict) and len(payloads) <= 256)
    need(all(has(p, "commitment media_type bytes") for p in payloads.values()))
    return dict(e, payloads=payloads)
def read_record(line):
    """A record, and the versions that have it."""
    r = read_json(line)
    rows = [row for row in RECORDS if list(r) == ["record", *row[1].split()]]
    need(rows and r["record"] == rows[0][0] and has(r, "record " + rows[0][1]))
    need(json.dumps(r, ensure_ascii=False, separators=(",", ":")).encode() == line)
    return r, rows[0][2]

# run-chain.md §2: what happens to an action or an approval
VERDICTS = "allow warn modify clarify pause review deny halt"
FREE = "new requested once granted closed"
MOVES = [  # kind of event, its words, the states that it may follow, the state that it leads to
    ("proposed", "-", "new", "proposed"),
    *[("verdict", word, "proposed " + VERDICTS, word) for word in VERDICTS.split()],
    ("enforcement", "held withheld", VERDICTS, None),  # it stays
    ("enforcement", "executed replaced", "allow warn modify", "gone"),
    ("enforcement", "let-pass", VERDICTS, "gone"),
    ("enforcement", "asked", "review", "gone"),
    ("outcome", "ok error timeout not-executed input-required", "gone unknown", "ended"),
    ("outcome", "unknown", "gone", "unknown"),
    ("approval-requested", "-", "new", "requested"),
    ("approval-decided", "granted", FREE, "granted"),  # or `once`, where that is its scope
    ("approval-decided", "refused expired", FREE + " claimed", "closed"),
    ("approval-decided", "endorsed", "requested", None),
    ("approval-decided", "answered", "requested", "closed"),
    ("approval-decided", "revoked", "granted once", "closed"),
    ("grant-claimed", "-", "granted", "granted"),
    ("grant-claimed", "-", "once", "claimed")]
NEXT = {(kind, word, state): after or state for kind, words, before, after in MOVES
        for word in words.split() for state in before.split()}
WORD = {"verdict": "verdict", "enforcement": "enforced", "outcome": "status",
        "approval-decided": "decision"}

def observe(states, body):
    """What was seen of something contained: how it ended once, and up to 4,096 connections."""
    need(("ended" in body) != ("connection" in body))
    if "action" not in body: return need(is_text(body.get("server")))
    need(is_id(body["action"]) and body["action"] in states["contained"])
    ended, connections = states["contained"][body["action"]]
    if "connection" in body: need(connections < 4096); connections += 1
    else: need(not ended); ended = True
    states["contained"][body["action"]] = ended, connections
WORK = {  # operation: who, states before (none: it is made), states after (none: it stays)
    "create": ("agent: approver:", "", "pending"), "propose": ("agent:", "pending", ""),
    "accept": ("approver:", "pending", ""), "decline": ("approver:", "pending", ""),
    "require": ("approver:", "pending", ""), "start": ("agent:", "pending", "in_progress"),
    "claim": ("agent:", "in_progress", "claimed"),
    "check": ("gate", "claimed", "claimed in_progress verified"),
    "attest": ("approver:", "claimed", "verified"), "stale": ("gate", "", ""),
    "ask_changes": ("approver:", "claimed", "in_progress"),
    "bury": ("approver:", "pending in_progress claimed verified", "")}
def work(items, body, actor):
    """What is done to a work item, by whom; `items` has None for those that were buried."""
    op = body.get("op")
    who, before, after = need(is_text(op) and op in WORK) and WORK[op]
    if op != "stale" and "refused" in body: return
    need(any(actor.startswith(w) if w[-1] == ":" else actor == w for w in who.split()))
    if op == "stale": return
    item, state = body.get("item"), body.get("state")
    need(is_u64(item) and is_text(state))
    if not before: need(item == len(items) + 1); limit(item, TABLE, "items")
    else: need(item in items and items[item] in before.split())
    need(state in after.split() if after else state == items[item])
    items[item] = None if op == "bury" else state
def state(versions, body, actor, seq):
    """A key of the session state is put, in place of the version that is there."""
    need(body.get("op") == "put")
    if "refused" in body: return
    cell, replaces = body.get("cell"), body.get("replaces")
    need(actor.startswith("agent:") and is_u64(cell))
    if "replaces" in body: need(is_u64(replaces) and versions.get(cell) == replaces)
    else: need(cell == len(versions) + 1); limit(cell, TABLE, "cells")
    versions[cell] = seq
def fact(states, body, actor, seq, run):
    """A fact is established, read or forgotten: one of this run only while it is there."""
    who = dict(write=("agent:",), read=("agent:",), forget=("agent:", "approver:"))
    op = body.get("op")
    need(is_text(op) and op in who)
    if "refused" in body: return
    need(actor.startswith(who[op]))
    if op == "write":
        states["written"] += 1
        limit(states["written"], TABLE, "facts")
        states["held"].add(seq)
    if op == "forget":
        name = re.fullmatch("([0-9a-f]{32})[.]([1-9][0-9]{0,19})", str(body.get("fact")))
        need(name and is_u64(int(name[2])))
        if name[1] == run:
            need(int(name[2]) in states["held"])
            states["held"].remove(int(name[2]))
def step(states, kind, body, seq):
    word = body.get(WORD[kind]) if kind in WORD else "-"
    need(any(entry[:2] == (kind, word) for entry in NEXT))
    if kind in ("verdict", "enforcement") and "action" not in body: return  # on a text
    subject = "approval" if kind.startswith(("approval", "grant")) else "action"
    about = subject == "approval" and word == "-"  # it says what the approval is about
    if about and "action" not in body: need(is_u64(body.get("text")) and 1 <= body["text"] < seq)
    for key in ("action", "approval") if about and "action" in body else (subject,):
        need(is_id(body.get(key)) and (key == subject or body[key] in states[key]))
    now, once = states[subject].get(body[subject], "new"), body.get("scope", "once") == "once"
    after = need((kind, word, now) in NEXT) and NEXT[kind, word, now]
    states[subject][body[subject]] = "once" if word == "granted" and once else after
    if "contained" in body and word in ("executed", "replaced", "let-pass"):
        states["contained"][body["action"]] = False, 0
    limit(len(states[subject]), TABLE, subject + "s")

def read_trust(data):
    """run-chain.md §4: the origin, and (count, link) of each run."""
    lines = [line for line in re.split("\r?\n", data.decode()) if line and line[0] != "#"]
    origin, heads = None, {}
    for line in lines[1:]:
        head = re.fullmatch("head ([0-9a-f]{32}) ([1-9][0-9]{0,19}) ([0-9a-f]{64})", line)
        if head:
            count = need(is_u64(int(head[2])), "no count: " + line) and int(head[2])
            heads.setdefault(head[1], set()).add((count, head[3]))
        else:
            need(line[:7] == "origin " and not origin and is_name(line[7:]), "no head: " + line)
            origin = line[7:]
    need(lines[:1] == ["portcullis-trust/v1"] and origin, "neither a trust file nor a trust policy")
    limit(sum(map(len, heads.values())), TABLE, "heads")
    return origin, heads

# run-chain.md §3 and §5: one export, read once
class Run:
    """What an export says. `wanted`: the counts after which a head in the log needs the link, where
    there is a log."""
    def __init__(self, stream, trust=None, wanted=None):
        self.stream, self.wanted, self.states = stream, wanted, dict(
            action={}, approval={}, contained={}, items={}, cells={}, held=set(), written=0)
        self.line = self.byte = self.size = self.seq = self.events = self.anchored = 0
        self.segments, self.payloads, self.given, last = [], {}, dict(payload=0, erased=0), ""
        self.kin = dict(parent=None, opened=[], closed=[], ends={}, malformed=None)
        self.version, self.bad = "v1", "not-a-portcullis-export"
        r = self.next("export")
        self.need(r["format"] in FORMATS, self.bad)
        self.version, self.bad = FORMATS[r["format"]], "line-malformed"
        self.origin, self.id = r["origin"], r["run"]
        origin, heads = trust or (self.origin, {})
        self.need(origin == self.origin, "wrong-origin")
        self.heads = sorted(heads.get(self.id, ()))
        r = self.next("segment")
        while r["record"] == "segment":
            self.segment(r)
            r = self.next("segment", "payload", "erased", "end")
        while r["record"] != "end":
            self.payload(r, last)
            last = r["commitment"]
            r = self.next("payload", "erased", "end")
        said = dict(payload=r["payloads"], erased=r.get("erased", 0))
        self.need(all(said[key] <= self.given[key] for key in said), "payload-missing")
        counts = [r["segments"], r["events"], said] == [len(self.segments), self.events, self.given]
        self.need(counts, "count-mismatch")
        self.need(all(head[0] <= self.seq for head in self.heads), "tail-missing", self.seq + 1)
        self.next()

    def need(self, holds, attack, seq=None):
        need(holds, attack, ("run.export", self.line, self.byte), seq)

    def next(self, *kinds):
        """The next line, which has to be one of these; without any, the end of the file."""
        most = LINE if "payload" in kinds else EVENT
        self.line, self.byte = self.line + 1, self.byte + self.size
        line = self.stream.readline(most + 2)
        self.size = len(line)
        if not kinds: return self.need(not line, "trailing-data")
        ended = line.endswith(b"\n") or len(line) > most + 1
        self.need(ended or self.line == 1 and not line, "truncated")
        self.need(1 < len(line) <= most + 1 and b"\r" not in line, self.bad)
        r, versions = dict(record="event", link=line[:64].decode("latin-1")), self.version
        if LINK.match(line): r["text"] = line[65:-1]
        else: r, versions = attempt(read_record, line[:-1]) or (None, "")
        self.need(r and (self.line > 1 or r["record"] == "export"), self.bad)
        self.need(self.version in versions, self.bad)
        self.need(r["record"] in kinds, "record-out-of-order")
        return r

    def segment(self, r):
        before, here = self.segments[-1] if self.segments else None, self.seq + 1
        parent = {key: before[key] for key in ("segment", "link")} if before else None
        link = segment_link(self.origin, unhex(self.id), unhex(r["segment"]), r).hex()
        self.need(link == r["link"], "segment-altered", here)
        spliced = [r["ordinal"], r["after"], r["parent"]] != [len(self.segments), self.seq, parent]
        self.need(not spliced, "segment-spliced", here)
        self.need(not before or before["state"] != "open", "state-machine", here)
        if self.wanted is not None: limit(len(self.segments) + 1, SEGMENTS, "segments")
        s = dict(r, start=self.seq, end=self.seq, state="open", links={self.seq: link})
        self.segments.append(s)
        r = self.next("event", "head")
        while r["record"] == "event":
            self.event(s, r["link"], r["text"])
            r = self.next("event", "head")
        cut = r["segment"] == s["segment"] and r["count"] > self.seq
        self.need(not cut, "event-missing", self.seq + 1)
        there = ["head", s["segment"], s["state"], self.seq, s["link"]]
        self.need(list(r.values()) == there, "head-mismatch", self.seq)
        s["links"][self.seq] = s["link"]

    def event(self, s, link, text):
        e, expected = attempt(read_event, text), self.seq + 1
        seq = e["seq"] if e else expected
        hole = [e["body"].get("from"), e["body"].get("to")] if e and e["kind"] == "gap" else []
        lost = seq > expected and all(map(is_u64, hole)) and hole == [expected, seq - 1]
        if self.follower(s, s["link"], seq, text) != link or seq != expected and not lost:
            self.need(False, self.diagnosis(s, link, seq, expected), expected)
        self.need(e, "event-malformed", expected)
        for head in [head for head in self.heads if self.seq < head[0] <= seq]:
            self.need(head == (seq, link), "chain-rewritten", head[0])
            self.anchored = seq
        self.need(attempt(self.follow, e, s, lost), "state-machine", seq)
        self.relate(e["kind"], e["body"], seq, link)
        self.seq, self.events, s["end"], s["link"] = seq, self.events + 1, seq, link
        if seq in (self.wanted or ()): s["links"][seq] = link

    def follower(self, s, before, seq, text):
        ids = unhex(self.id), unhex(s["segment"])
        return event_link(*ids, seq, unhex(before), event_hash(text)).hex()

    def diagnosis(self, s, link, seq, expected):
        """A name for what was done to a chain that does not hold, from the lines that follow."""
        if seq == expected: return "event-altered"
        nearest = True
        for line in iter(lambda: self.stream.readline(EVENT + 1), b""):
            if not line.endswith(b"\n"): break
            if LINK.match(line):
                e = attempt(read_event, line[65:-1])
                if not e: continue
                if nearest and e["seq"] == expected + 1:
                    follows = self.follower(s, link, e["seq"], line[65:-1]).encode()
                    if follows == line[:64]: return "event-altered"
                if seq > e["seq"] == expected: return "event-reordered"
            elif nearest:
                head, _ = attempt(read_record, line[:-1]) or ({}, "")
                if head.get("count") == expected and head["link"] == link: return "event-altered"
            nearest = False
        return "event-duplicated" if seq < expected else "event-missing"

    def follow(self, e, s, lost):
        kind, body = e["kind"], e["body"]
        need(s["state"] == "open" and (e["seq"] != 1 or kind == "run-opened"))
        need(lost or kind != "gap")
        if kind == "observed": observe(self.states, body)
        if kind == "work": work(self.states["items"], body, e["actor"])
        if kind == "state": state(self.states["cells"], body, e["actor"], e["seq"])
        if kind == "fact": fact(self.states, body, e["actor"], e["seq"], self.id)
        if any(kind == move[0] for move in MOVES): step(self.states, kind, body, e["seq"])
        if kind == "run-closed":
            need(is_u64(body.get("count")) and body["count"] == e["seq"])
            s["state"] = need(body.get("state") in ("closed", "abandoned")) and body["state"]
        for p in e["payloads"].values():
            said = described(p["media_type"], p["bytes"])
            need(self.payloads.setdefault(p["commitment"], (e["seq"], said))[1] == said)
        limit(len(self.payloads), TABLE, "payloads")
        return True

    def relate(self, kind, body, seq, link):
        """transparency-log.md §7.1: what the run says of others."""
        kin, change = self.kin, body.get("change") if kind == "config" else None
        if kind == "run-closed": kin["ends"][seq] = link
        if kind == "run-opened" and "parent" in body:
            p = body["parent"]
            good = isinstance(p, dict) and is_id(p.get("run")) and is_u64(p.get("seq"))
            if good and is_hash(p.get("link")): kin["parent"] = (p["run"], p["seq"], p["link"])
            else: kin["malformed"] = kin["malformed"] or seq
        if change in ("child-opened", "child-closed"):
            count, end = body.get("count"), body.get("link")
            good = change == "child-opened" or is_u64(count) and (end is None or is_hash(end))
            if not is_id(body.get("run")) or not good: kin["malformed"] = kin["malformed"] or seq
            elif change == "child-opened": kin["opened"].append((body["run"], seq, link))
            else: kin["closed"].append((seq, body["run"], count, end))
        limit(max(map(len, (kin["opened"], kin["closed"], kin["ends"]))), SEGMENTS, "runs that it opened")

    def payload(self, r, last):
        seq, *said = self.payloads.get(r["commitment"], (None,))
        if r["record"] == "payload":
            data = r["text"].encode() if "text" in r else unhex(r["hex"])
            holds = commitment(unhex(r["salt"]), r["media_type"], data).hex() == r["commitment"]
            same = said in ([], [described(r["media_type"], len(data))])
            self.need(holds and same, "payload-altered", seq)
        self.need(seq, "payload-unknown")
        self.need(r["commitment"] > last, "record-out-of-order", seq)
        self.given[r["record"]] += 1

    def not_checked(self):
        """The checks that could not be made."""
        unanchored = not self.heads or self.anchored < self.seq
        return ["closure"] * (self.segments[-1]["state"] == "open") + ["anchor"] * unanchored
