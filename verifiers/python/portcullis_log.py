"""The log's part of `portcullis_verify.py`: leaves, proofs, policies, nine checks over them.

Headings name the page and section of `specs/` that the code below them follows."""
import base64, hashlib, re
from functools import lru_cache
from itertools import chain
from portcullis_run import (Unreadable, attempt, is_hash, is_label, is_name, limit, need,
                            parent_bytes, sha, unhex)

LEAVES, STEPS, ITEMS, LEAF, FILE = 4096, 256, 256, 65_535, 384 << 10
NOTE, CHECKPOINT, EXTRA, STEP, POLICY = 256 << 10, 16 << 10, 64 << 10, 264 << 10, 256 << 10

# Ed25519, RFC 8032: canonical encodings only, S below L, no cofactor, no point of low order
P, L = 2**255 - 19, 2**252 + 27742317777372353535851937790883648493
D, ROOT_OF_MINUS_1 = -121665 * pow(121666, -1, P) % P, pow(2, (P - 1) // 4, P)

def add(p, q):
    """The sum of two points, each (x, y, z) for the affine (x/z, y/z)."""
    x, y, z = [a * b % P for a, b in zip(p, q)]
    xy, k = p[0] * q[1] + p[1] * q[0], D * x * y % P
    less, more = z * z - k, z * z + k
    return z * less * xy % P, z * more * (y + x) % P, less * more % P
def times(n, p):
    total = 0, 1, 1
    for bit in bin(n)[2:]:
        total = add(total, total)
        total = add(total, p) if bit == "1" else total
    return total
@lru_cache(1024)
def point(data):
    """The point that 32 bytes stand for, none where it is of low order."""
    y = int.from_bytes(data, "little") % 2**255
    square = (y * y - 1) * pow(D * y * y + 1, -1, P) % P
    x = pow(square, (P + 3) // 8, P)
    x = x if x * x % P == square else x * ROOT_OF_MINUS_1 % P
    p = x if x & 1 == data[31] >> 7 else P - x, y, 1
    return p if y < P and x * x % P == square and times(8, p)[0] else None
BASE = point((4 * pow(5, -1, P) % P).to_bytes(32, "little"))
@lru_cache(8192)
def signed_by(key, message, signature):
    a, r, s = point(key), signature[:32], int.from_bytes(signature[32:], "little")
    if len(signature) != 64 or s >= L or None in (a, point(r)): return False
    k = int.from_bytes(hashlib.sha512(r + key + message).digest(), "little") % L
    (x, y, z), (u, v, w) = times(s, BASE), add(point(r), times(k, a))
    return (x * w - u * z) % P == (y * w - v * z) % P == 0

# transparency-log.md §1 to §3: texts in one spelling, checkpoints, proofs
def base(text, sizes=range(32, 33)):
    data = base64.b64decode(text, validate=True)
    return need(base64.b64encode(data).decode() == text and len(data) in sizes) and data
def below(text):
    return need(re.fullmatch("0|[1-9][0-9]{0,18}", text) and int(text) < 1 << 63) and int(text)
def index(text): return need(below(text) + 1 < 1 << 63) and int(text)
def named(text, barred=" "): return need(is_name(text) and barred not in text) and text
def extra(text): return base(text, range(1, EXTRA + 1))
def signature(name, text):
    blob = base(text, range(5, NOTE))
    return (named(name, "+"), blob[:4]), blob[4:]

SIGNED = [  # lines: what they are, how few and how many, in which form, and how they are read
    ("origin", 1, 1, "(.+)", named), ("size", 1, 1, "(.+)", below), ("root", 1, 1, "(.+)", base),
    ("extensions", 0, 16, ".+", str), ("blank", 1, 1, "", str),
    ("signatures", 1, 64, "— ([^ ]+) (.+)", signature)]
PATH = [("path", 0, 63, "(.+)", base), ("", 1, 1, "", str)]
CONTINUED = [("number", 1, 1, "old (.+)", below), *PATH, *SIGNED]
INCLUDED = [("", 1, 1, r"c2sp\.org/tlog-proof@v1", str), ("", 0, 1, "extra (.*)", extra),
            ("number", 1, 1, "index (.+)", index), *PATH, *SIGNED]

class Text:
    """A file of such lines: the values of each kind by its name, in `places` where they stand."""
    def __init__(self, attack, kinds, most, file, data):
        lines, at, self.file, self.places = data.split(b"\n"), 0, file, {}
        def place(): return file, at + 1, sum(map(len, lines[:at])) + at
        need(len(data) <= most, attack, place())
        for name, few, many, form, read in kinds:
            values, self.places[name] = [], []
            if name == "origin": self.lengths(attack, data, place())
            while len(values) < many and at < len(lines) - 1:
                try:
                    found = re.fullmatch(form, lines[at].decode())
                    need(found and not re.search("[\0-\x1f]", found[0]))
                    values.append(read(*found.groups()))
                except ValueError: break
                self.places[name].append(place())
                at += 1
            need(len(values) >= few, attack, place())
            setattr(self, name or "form", values[0] if values and many == 1 else values)
        need(at == len(lines) - 1 and not lines[at], attack, place())
        need(self.size > 0 or self.root == sha(), attack, self.places["root"][0])
        self.origin_at, (_, blank, _) = self.places["origin"][0], self.places["blank"][0]
        self.text = b"\n".join(lines[self.origin_at[1] - 1:blank - 1]) + b"\n"
    def lengths(self, attack, data, place):
        """A note, and the text in it, up to its first empty line, that are too long."""
        note = data[place[2]:]
        need(len(note) <= NOTE, attack, place)
        need(len(note.partition(b"\n\n")[0]) < CHECKPOINT, attack, place)

def node(left, right): return sha(b"\1", left, right)
def half(size): return 1 << (size - 1).bit_length() - 1
def included(leaf, index, size, path):
    """The root that an inclusion proof leads to, from the top down; RFC 9162 §2.1.3."""
    need(index < size and (size > 1) == bool(path))
    if size == 1: return leaf
    if index < half(size): return node(included(leaf, index, half(size), path[:-1]), path[-1])
    return node(path[-1], included(leaf, index - half(size), size - half(size), path[:-1]))
def continued(old, new, path, root):
    """Both roots of a consistency proof; `root` is the old one while its tree is whole. §2.1.4."""
    if old == new: return need(len(path) == (root is None)) and (root or path[0],) * 2
    need(0 < old < new and path)
    if old > half(new):
        inner = continued(old - half(new), new - half(new), path[:-1], None)
        return tuple(node(path[-1], root) for root in inner)
    first, second = continued(old, half(new), path[:-1], root)
    return first, node(second, path[-1])

# trust-policy.md
def put(table, key, value, most=ITEMS):
    table[key] = need(key not in table and len(table) < most) and value

class Policy:
    """What the reader believes; `on_<word>` reads the rest of a line that begins with this word."""
    def __init__(self, data):
        self.keys, self.of, self.quorum = {}, dict(log={}, witness={}, admin={}), None
        self.names, self.groups, self.used = {"none": (0, [])}, {}, {"none"}
        self.remembered, self.revoked = {}, {}
        need(data[-1:] == b"\n", "no trust policy")
        need(not re.search(b"[\0-\x08\x0b-\x1f\x7f]", data), "no trust policy")
        limit(len(data), POLICY, "bytes of policy")
        for at, line in enumerate(data.decode("utf-8", "surrogateescape").split("\n"), 1):
            words = [word for word in re.split("[ \t]+", line) if word]
            try:
                if words and words[0][0] != "#": getattr(self, "on_" + words[0])(*words[1:])
            except Exception: raise Unreadable("the trust policy, line %d" % at) from None
        need(self.quorum, "the trust policy has no line `quorum`")
    def key(self, of, vkey):
        name, ident, blob = re.fullmatch(r"([^+]+)\+([0-9a-f]{8})\+(.+)", vkey).groups()
        blob = base(blob, range(33, 34))
        need(blob[0] == (4 if of == "witness" else 1) and point(blob[1:]))
        need(sha(named(name).encode(), b"\n", blob)[:4].hex() == ident)
        put(self.of[of], blob, name)
        if of != "admin": self.keys[name, unhex(ident)] = blob
        return name, unhex(ident)
    def on_log(self, vkey, url=None): self.key("log", vkey)
    def on_admin(self, vkey): self.key("admin", vkey)
    def on_witness(self, name, vkey, url=None):
        put(self.names, name, (1, [self.key("witness", vkey)]), 3 * ITEMS)
    def on_group(self, name, k, *members):
        k = {"all": len(members), "any": 1}.get(k) or below(k)
        need(0 < k <= len(members) <= ITEMS and len(set(members)) == len(members))
        need(all(member in self.names and member not in self.used for member in members))
        put(self.groups, name, members)
        put(self.names, name, (k, members), 3 * ITEMS)
        self.used.update(members)
    def on_quorum(self, name): self.quorum = need(not self.quorum and name in self.names) and name
    def on_remember(self, origin, size, root):
        put(self.remembered, (named(origin), below(size)), base(root))
    def on_revoked(self, key, index):
        put(self.revoked, need(is_hash(key)) and unhex(key), below(index))

    def check(self, note, quorum=True):
        held, mine = set(), {key for key in self.keys if key[0] == note.origin}
        mine = {key for key in mine if self.keys[key][0] == 1}
        need(mine, "unknown-log", note.origin_at)
        for place, (key, signature) in zip(note.places["signatures"], note.signatures):
            if key not in self.keys: continue
            blob, text = self.keys[key], note.text
            if blob[0] == 4:
                time, signature = int.from_bytes(signature[:8], "big"), signature[8:]
                need(time < 1 << 63, "checkpoint-forged", place)
                text = b"cosignature/v1\ntime %d\n" % time + text
            need(signed_by(blob[1:], text, signature), "checkpoint-forged", place)
            held.add(key)
        need(held & mine, "checkpoint-forged", note.origin_at)
        for name, (k, members) in self.names.items():
            if sum(member in held for member in members) >= k: held.add(name)
        need(not quorum or self.quorum in held, "quorum-missing", note.origin_at)

# run-heads.md §1: who signs a leaf of each kind, and its fields: texts, numbers (n), or bytes
FIELDS = {"enrol": "admin origin:text type:n1 public:32 label:text admin:32",
          "revoke": "admin origin:text writer:32 reason:text admin:32",
          "epoch": "writer origin:text writer:32 epoch:n8 runs:n8 last_head:32",
          "run-head": "signer origin:text run:16 segment:16 ordinal:n8 parent_segment:16 "
                      "parent_link:32 writer:32 epoch:n8 run_no:n8 state:n1 count:n8 link:32 "
                      "bundle:32 previous:32 signer:32"}
HOLDS = {  # what has to hold once a field is read
    "type": lambda x: x.type == 1,
    "public": lambda x: point(x.public),
    "epoch": lambda x: x.epoch > 0 or x.kind == "run-head",
    "parent_link": lambda x: any(x.parent_segment) == any(x.parent_link) == (x.ordinal > 0),
    "state": lambda x: x.state < 4,
    "previous": lambda x: any(x.previous) == (x.state > 0),
    "signer": lambda x: x.signer == x.writer or x.state == 3}

class Leaf:
    def __init__(self, file, data):
        def check(holds, at): need(holds, "leaf-malformed", (file, None, at))
        kinds = [kind for kind in FIELDS if data.startswith(b"portcullis/%s/v1\0" % kind.encode())]
        check(kinds and len(data) <= LEAF, 0)
        self.kind, self.file, self.hash, self.signed = kinds[0], file, sha(b"\0", data), data[:-64]
        (signer, *fields), at = FIELDS[self.kind].split(), len(self.kind) + 15
        self.origin_at = file, None, at + 4
        for name, size in [field.split(":") for field in [*fields, "signature:64"]]:
            before, start = at, at + 4 * (size == "text")
            counted = int.from_bytes(data[at:start], "big")
            length = counted if size == "text" else int(size.strip("n"))
            at, value = start + length, data[start:start + length]
            check(at <= len(data), before)
            if size == "text":
                check(length <= 256, before)
                value = attempt(bytes.decode, value)
                check(is_label(value), start)
                check(is_name(value) or name != "origin", before)
            setattr(self, name, int.from_bytes(value, "big") if size[0] == "n" else value)
            check(name not in HOLDS or HOLDS[name](self), at)
        check(at == len(data), at)
        self.by = getattr(self, signer)

# transparency-log.md §6: the nine checks
def judge(policy, run, leaves, steps):
    """The checks that cannot be made. `leaves` are pairs of leaf and proof, all names and bytes."""
    limit(len(leaves), LEAVES, "leaves")
    leaves, missing = logged(policy, run.origin, leaves, steps)
    unknown, ended = heads(run, [leaf for leaf in leaves if leaf.kind == "run-head"])
    missing.update(heads=unknown, closure=run.segments[-1]["segment"] not in ended)
    return [name for name in missing if missing[name]]

def logged(policy, origin, leaves, steps):
    """The leaves in the order of the log, and which checks cannot be made, of those that hold
    whatever runs they are of."""
    limit(len(steps), STEPS, "consistency proofs")
    leaves = [(Leaf(*a), Text("proof-malformed", INCLUDED, FILE, *b)) for a, b in leaves]
    leaves.sort(key=lambda pair: pair[1].number)
    steps = [Text("consistency-malformed", CONTINUED, STEP, *file) for file in steps]
    for each in [*chain(*leaves), *steps]:
        need(each.origin == origin, "wrong-origin", each.origin_at)
    for _, proof in leaves: policy.check(proof)
    for each in steps: policy.check(each, quorum=False)
    for leaf, proof in leaves:
        led = attempt(included, leaf.hash, proof.number, proof.size, proof.path)
        need(led == proof.root, "not-in-log", proof.places["number"][0])
    trees, connected = history(policy, origin, leaves, steps)
    writers(policy, origin, leaves)
    remembered = [size for name, size in policy.remembered if name == origin]
    shown = connected and max(remembered, default=-1) >= max(trees, default=0)
    missing = dict(inclusion=not leaves, history=not connected)
    missing["split-view"] = policy.quorum == "none" and not shown
    return [leaf for leaf, _ in leaves], missing

def history(policy, origin, leaves, steps):
    """The trees by size, and whether each is shown to be the beginning of the largest."""
    known = policy.remembered.items()
    at, trees = {}, {size: root for (name, size), root in known if name == origin}
    for leaf, proof in leaves:
        same = at.setdefault(proof.number, leaf.hash) == leaf.hash
        need(same, "log-forked", proof.places["number"][0])
    for _, proof in leaves:
        need(trees.setdefault(proof.size, proof.root) == proof.root, "log-forked", proof.origin_at)
    for s in steps:
        root, place = trees.get(s.number), (s.file, 1, 0)
        need(root and trees.get(s.size) == s.root, "log-not-continued", place)
        led = attempt(continued, s.number, s.size, s.path, root) == (root, s.root)
        if s.number == 0: led = not s.path and root == sha()
        need(led, "log-not-continued", place)
    shown = {max(trees, default=0), 0}
    for size in sorted(trees, reverse=True):
        if size in shown: shown.update(s.number for s in steps if s.size == size)
    return trees, shown.issuperset(trees)

def writers(policy, origin, leaves):
    def ids(keys): return {sha(b"portcullis/key/v1\0", key): key[1:] for key in keys}
    own = [key for key, name in policy.of["log"].items() if name == origin]
    admins, enrolled, revoked = ids(policy.of["admin"] or own), {}, dict(policy.revoked)
    for leaf, proof in leaves:
        place, by_admin = (leaf.file, None, len(leaf.signed)), leaf.kind in ("enrol", "revoke")
        known = admins if by_admin else enrolled
        revoked_at = 1 << 63 if by_admin else revoked.get(leaf.by, 1 << 63)
        need(proof.number < revoked_at, "writer-revoked", place)
        need(leaf.by in known, "admin-unknown" if by_admin else "writer-not-enrolled", place)
        need(signed_by(known[leaf.by], leaf.signed, leaf.signature), "leaf-forged", place)
        if leaf.kind == "enrol": enrolled.update(ids([b"\1" + leaf.public]))
        if leaf.kind == "revoke":
            revoked[leaf.writer] = min(proof.number, revoked.get(leaf.writer, proof.number))

def heads(run, leaves):
    """Whether a link was not computed, and the segments that the log has the end of."""
    latest, follows, numbers, unknown, ended = {}, {}, {}, False, set()
    segments = {s["segment"]: s for s in run.segments}
    for h in leaves:
        place, s, final = (h.file, None, 0), segments.get(h.segment.hex()), h.state > 1
        need(h.run.hex() == run.id, "head-of-another-run", place)
        need(s, "tail-missing", place)
        parent = h.parent_segment + h.parent_link == parent_bytes(s["parent"])
        need(h.ordinal == s["ordinal"] and parent and h.count >= s["start"], "head-mismatch", place)
        need(h.count <= s["end"], "tail-missing", place)
        need(s["links"].get(h.count, h.link.hex()) == h.link.hex(), "chain-rewritten", place)
        end = [h.count, ["open", "open", "closed", "abandoned"][h.state]]
        need(not final or end == [s["end"], s["state"]], "head-mismatch", place)
        before, latest[h.segment] = latest.get(h.segment, h), h
        if before.hash != h.hash:
            number = before.writer, before.epoch, before.run_no
            need(number == (h.writer, h.epoch, h.run_no), "head-mismatch", place)
            need(before.state < 2, "closed-twice" if final else "head-regressed", place)
            need(h.count >= before.count and h.state, "head-regressed", place)
        forked = h.state and follows.setdefault(h.previous, h.hash) != h.hash
        need(not forked, "head-forked", place)
        only = numbers.setdefault((h.writer, h.epoch, h.run_no), h.segment) == h.segment
        need(only, "run-number-reused", place)
        unknown = unknown or h.count not in s["links"]
        if final: ended.add(s["segment"])
    return unknown, ended
