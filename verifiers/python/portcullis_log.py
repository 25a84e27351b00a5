"""The log's half of `portcullis_verify.py`: what heads in a transparency log say of a run. Run that file, not this one.

Headings name the page and section of `specs/` that the code below them follows."""
import base64, hashlib, re
from functools import lru_cache
from portcullis_verify import CONTROL, Invalid, Malformed, Unreadable, is_hash, is_name, is_utf8, need, parent_bytes, sha

POLICY, NOTE, CHECKPOINT, PROOF, EXTRA, STEP, LEAF, ITEMS = 256 << 10, 256 << 10, 16 << 10, 384 << 10, 64 << 10, 264 << 10, 65_535, 256
NUMBER = "(0|[1-9][0-9]{0,18})"

# Ed25519, RFC 8032, in extended coordinates. Strict: canonical encodings, S below L, no cofactor, no point of low order.
P, L = 2**255 - 19, 2**252 + 27742317777372353535851937790883648493
D, ROOT_OF_MINUS_1 = -121665 * pow(121666, P - 2, P) % P, pow(2, (P - 1) // 4, P)

def add(p, q):
    a, b = (p[1] - p[0]) * (q[1] - q[0]) % P, (p[1] + p[0]) * (q[1] + q[0]) % P
    c, d = 2 * p[3] * q[3] * D % P, 2 * p[2] * q[2] % P
    return (b - a) * (d - c) % P, (d + c) * (b + a) % P, (d - c) * (d + c) % P, (b - a) * (b + a) % P

@lru_cache(1024)
def point(data):
    """The point that 32 bytes stand for; None where they stand for none, or for one of low order."""
    sign, y = data[31] >> 7, int.from_bytes(data, "little") & 2**255 - 1
    square = (y * y - 1) * pow(D * y * y + 1, P - 2, P) % P
    x = pow(square, (P + 3) // 8, P)
    x = x if x * x % P == square else x * ROOT_OF_MINUS_1 % P
    x = x if x & 1 == sign else P - x
    p = eightfold = x, y, 1, x * y % P
    for _ in range(3): eightfold = add(eightfold, eightfold)
    return p if y < P and x * x % P == square and eightfold[0] else None

BASE = point((4 * pow(5, P - 2, P) % P).to_bytes(32, "little"))

def encoded_sum(m, p, n, q):
    """The encoding of m p + n q, the bits of both scalars walked at once."""
    table, total = [None, p, q, add(p, q)], (0, 1, 1, 0)
    for bit in range(255, -1, -1):
        total, pick = add(total, total), m >> bit & 1 | (n >> bit & 1) << 1
        total = add(total, table[pick]) if pick else total
    inverse = pow(total[2], P - 2, P)
    return (total[1] * inverse % P | (total[0] * inverse % P & 1) << 255).to_bytes(32, "little")

@lru_cache(8192)
def signed_by(public, message, signature):
    r, s, a = signature[:32], int.from_bytes(signature[32:], "little"), point(public)
    if len(signature) != 64 or s >= L or a is None or point(r) is None: return False
    k = int.from_bytes(hashlib.sha512(r + public + message).digest(), "little") % L
    return encoded_sum(s, BASE, L - k, a) == r

# transparency-log.md §1 and §2: texts in one spelling, checkpoints, proofs
def base(text, *sizes):
    data = base64.b64decode(text, validate=True)
    need(base64.b64encode(data).decode() == text and (not sizes or len(data) in sizes))
    return data

def below(text):
    need(int(text) < 1 << 63)
    return int(text)

class Text:
    """The lines of a text, each with number and byte, and which of them is next."""
    def __init__(self, data, most):
        self.lines, self.at, byte, bad = [], 0, 0, len(data) > most
        for raw in data[:most].split(b"\n"):
            self.lines.append((len(self.lines) + 1, byte, raw.decode("utf-8", "replace")))
            byte, bad = byte + len(raw) + 1, bad or not is_utf8(raw) or CONTROL.search(self.lines[-1][2])
            if bad: raise Malformed(*self.lines[-1][:2])
        if self.lines[-1][2]: raise Malformed(*self.lines[-1][:2])

    def here(self): return self.lines[min(self.at, len(self.lines) - 1)]

    def take(self, pattern, read=str):
        """The next line, which has to match; its groups as `read` understands them."""
        found, where = re.fullmatch(pattern, self.here()[2]), self.here()[:2]
        try: value = read(*found.groups())
        except (AttributeError, ValueError): raise Malformed(*where) from None
        if self.at >= len(self.lines) - 1: raise Malformed(*where)
        self.at += 1
        return value

def named(text, barred=" "):
    need(is_name(text) and barred not in text)
    return text

class Checkpoint:
    """A signed note, from the next line of `t` to its end."""
    def __init__(self, t):
        self.where, start, self.signatures = t.here()[:2], t.at, []
        self.origin, self.size = t.take("(.+)", named), t.take(NUMBER, below)
        self.root = t.take("(.+)", lambda x: base(x, 32))
        while t.at < start + 19 and t.here()[2]: t.take("(.+)")  # 16 extensions
        self.text = "".join(line[2] + "\n" for line in t.lines[start:t.at]).encode()
        t.take("")
        while not self.signatures or t.at < len(t.lines) - 1:
            where = t.here()[:2]
            name, blob = t.take("— ([^ ]+) (.+)", lambda name, blob: (named(name, "+"), base(blob)))
            if len(blob) < 5 or len(self.signatures) == 64: raise Malformed(*where)
            self.signatures.append((where, (name, blob[:4]), blob[4:]))
        if len(self.text) > CHECKPOINT or t.lines[-1][1] - self.where[1] > NOTE: raise Malformed(*self.where)

class Proof:
    """A `.tlog-proof`, or a `.consistency`: §3, what leads from the tree of `old` leaves to that of the checkpoint."""
    def __init__(self, data, step=False):
        t = Text(data, STEP if step else PROOF)
        if not step: t.take(r"c2sp\.org/tlog-proof@v1")
        if not step and t.here()[2].startswith("extra "): t.take("extra (.*)", lambda x: need(len(base(x)) <= EXTRA))
        self.where, self.number, self.path = t.here()[:2], t.take(("old " if step else "index ") + NUMBER, below), []
        while len(self.path) < 63 and t.here()[2]: self.path.append(t.take("(.+)", lambda x: base(x, 32)))
        t.take("")
        self.tree = Checkpoint(t)

def node(left, right): return sha(b"\1", left, right)
def half(size): return 1 << (size - 1).bit_length() - 1

def included(leaf, index, size, path):
    """The root that an inclusion proof leads to, from the top down; RFC 9162 §2.1.3."""
    need(index < size and (size > 1) == bool(path))
    if size == 1: return leaf
    if index < half(size): return node(included(leaf, index, half(size), path[:-1]), path[-1])
    return node(path[-1], included(leaf, index - half(size), size - half(size), path[:-1]))

def continued(old, new, path, root):
    """Both roots that a consistency proof leads to; `root` is the old one as long as its tree is a whole one. §2.1.4."""
    if old == new:
        need(len(path) == (root is None))
        return root or path[0], root or path[0]
    need(0 < old < new and path)
    if old <= half(new):
        first, second = continued(old, half(new), path[:-1], root)
        return first, node(second, path[-1])
    return tuple(node(path[-1], x) for x in continued(old - half(new), new - half(new), path[:-1], None))

# trust-policy.md
class Policy:
    def __init__(self, data):
        self.keys, self.names, self.used, self.quorum, self.remembered, self.revoked = {}, {"none": None}, set(), None, {}, {}
        self.of = {"log": {}, "witness": {}, "admin": {}}
        if len(data) > POLICY or data[-1:] != b"\n" or re.search(b"[\0-\x08\x0b-\x1f\x7f]", data): raise Unreadable("no trust policy")
        for number, line in enumerate(data.decode("utf-8", "surrogateescape").split("\n"), 1):
            words = [w for w in re.split("[ \t]+", line) if w]
            try:
                if words and words[0][0] != "#": self.line(*words)
            except (ValueError, TypeError, IndexError, AttributeError): raise Unreadable("the trust policy, line %d" % number) from None
        if not self.quorum: raise Unreadable("the trust policy has no line `quorum`")

    def key(self, kind, text):
        name, ident, blob = re.fullmatch(r"([^+]+)\+([0-9a-f]{8})\+(.+)", text).groups() if text.count("+") > 1 else [""] * 3
        blob, of = base(blob, 33), self.of[kind]
        need(blob[0] == (4 if kind == "witness" else 1) and sha(named(name).encode(), b"\n", blob)[:4].hex() == ident)
        need(point(blob[1:]) and blob not in of and len(of) < ITEMS)
        of[blob] = name
        if kind != "admin": self.keys[name, bytes.fromhex(ident)] = blob
        return name, bytes.fromhex(ident)

    def line(self, kind, first, *rest):
        if kind == "log" and len(rest) < 2 or kind == "admin" and not rest: self.key(kind, first)
        elif kind == "witness" and 0 < len(rest) < 3 and first not in self.names: self.names[first] = self.key(kind, rest[0])
        elif kind == "group" and first not in self.names:
            k, members = {"all": len(rest) - 1, "any": 1}.get(rest[0]) or below(re.fullmatch(NUMBER, rest[0]).group(1)), rest[1:]
            need(0 < k <= len(members) <= ITEMS and len(set(members)) == len(members) and not self.used & set(members))
            need(all(self.names.get(m) for m in members) and sum(isinstance(n, list) for n in self.names.values()) < ITEMS)
            self.used.update(members)
            self.names[first] = [k, members]
        elif kind == "quorum" and not rest and self.quorum is None and first in self.names: self.quorum = first
        elif kind == "remember" and is_name(first) and len(rest) == 2 and len(self.remembered) < ITEMS:
            tree = first, below(re.fullmatch(NUMBER, rest[0]).group(1))
            need(tree not in self.remembered)
            self.remembered[tree] = base(rest[1], 32)
        elif kind == "revoked" and is_hash(first) and len(self.revoked) < ITEMS:
            need(bytes.fromhex(first) not in self.revoked)
            self.revoked[bytes.fromhex(first)] = below(re.fullmatch(NUMBER, *rest).group(1))
        else: raise ValueError

    def reached(self, name, signers):
        if isinstance(self.names[name], tuple): return self.names[name] in signers
        return sum(self.reached(member, signers) for member in self.names[name][1]) >= self.names[name][0]

    def check(self, file, tree, quorum):
        signers, mine = set(), {key for key, blob in self.keys.items() if blob[0] == 1 and key[0] == tree.origin}
        if not mine: raise Invalid("unknown-log", *tree.where, file=file)
        for where, key, signature in tree.signatures:
            blob, text, time = self.keys.get(key), tree.text, int.from_bytes(signature[:8], "big")
            if blob and blob[0] == 4: text, signature = b"cosignature/v1\ntime %d\n" % time + text, signature[8:] if time < 1 << 63 else b""
            if blob and not signed_by(blob[1:], text, signature): raise Invalid("checkpoint-forged", *where, file=file)
            signers |= {key} if blob else set()
        if not signers & mine: raise Invalid("checkpoint-forged", *tree.where, file=file)
        if quorum and self.quorum != "none" and not self.reached(self.quorum, signers): raise Invalid("quorum-missing", *tree.where, file=file)

# run-heads.md §1 and §3
FIELDS = {"enrol": "origin:text type:1 public:32 label:text admin:32", "revoke": "origin:text writer:32 reason:text admin:32",
          "epoch": "origin:text writer:32 epoch:8 runs:8 last_head:32",
          "run-head": "origin:text run:16 segment:16 ordinal:8 parent_segment:16 parent_link:32 writer:32 epoch:8 run_no:8 state:1 count:8 link:32 "
                      "bundle:32 previous:32 signer:32"}

class Leaf:
    def __init__(self, data):
        self.kind = next((kind for kind in FIELDS if data.startswith(b"portcullis/%s/v1\0" % kind.encode())), None)
        if not self.kind or len(data) > LEAF: raise Malformed(None, 0)
        at = len(self.kind) + 15
        self.origin_at, self.hash, self.signed = at + 4, sha(b"\0", data), data[:-64]
        for name, size in (field.split(":") for field in (FIELDS[self.kind] + " signature:64").split()):
            start = at + 4 if size == "text" else at
            at = start + int.from_bytes(data[at:start], "big") if size == "text" else at + int(size)
            value = data[start:at]
            if at > len(data) or size == "text" and not self.good_text(name, value): raise Malformed(None, start)
            setattr(self, name, int.from_bytes(value, "big") if size in ("1", "8") else value.decode() if size == "text" else value)
        good = len(data) == at and (self.kind != "enrol" or self.type == 1) and (self.kind != "epoch" or self.epoch > 0)
        if self.kind == "run-head":
            good &= self.state < 4 and (not self.state) == (not any(self.previous)) and (self.signer == self.writer or self.state == 3)
            good &= (not self.ordinal) == (not any(self.parent_segment)) == (not any(self.parent_link))
        if not good: raise Malformed(None, len(data))
        self.by = {"enrol": "admin", "revoke": "admin", "epoch": "writer", "run-head": "signer"}[self.kind]
        self.by = getattr(self, self.by)

    def good_text(self, name, value):
        return is_utf8(value) and len(value) <= 256 and not CONTROL.search(value.decode()) and (name != "origin" or is_name(value.decode()))

def counts(leaves):
    """The events after which a head, as far as it can be read, speaks of the chain."""
    found = set()
    for data in leaves:
        try: found.add(getattr(Leaf(data), "count", 0))
        except Malformed: pass
    return found

# transparency-log.md §6: the nine checks. `leaves` are (name, bytes, name, bytes), `steps` (name, bytes), `segments` those of a Chain.
def judge(policy, origin, run, segments, leaves, steps):
    if len(leaves) > 4096 or len(steps) > 256: raise Unreadable("over 4096 leaves or 256 consistency proofs")
    def reading(attack, what, name, *args):
        try: return what(*args)
        except Malformed as error: raise Invalid(attack, *error.args, file=name) from None
    leaves = [(a, reading("leaf-malformed", Leaf, a, x), b, reading("proof-malformed", Proof, b, y)) for a, x, b, y in leaves]
    leaves.sort(key=lambda entry: entry[3].number)
    steps = [(name, reading("consistency-malformed", Proof, name, data, True)) for name, data in steps]
    for name, leaf, file, proof in leaves:
        if leaf.origin != origin: raise Invalid("wrong-origin", None, leaf.origin_at, file=name)
        if proof.tree.origin != origin: raise Invalid("wrong-origin", *proof.tree.where, file=file)
    for file, step in steps:
        if step.tree.origin != origin: raise Invalid("wrong-origin", *step.tree.where, file=file)
    for _, _, file, proof in leaves: policy.check(file, proof.tree, True)
    for file, step in steps: policy.check(file, step.tree, False)
    for _, leaf, file, proof in leaves:
        try: need(included(leaf.hash, proof.number, proof.tree.size, proof.path) == proof.tree.root)
        except ValueError: raise Invalid("not-in-log", *proof.where, file=file) from None
    trees, connected = history(policy, origin, leaves, steps)
    writers(policy, origin, leaves)
    unknown, ended = heads(run, segments, leaves)
    unmade = ["inclusion"] * (not leaves) + ["history"] * (not connected) + ["heads"] * unknown
    unmade += ["closure"] * (segments[-1]["segment"] not in ended)
    remembered = [size for name, size in policy.remembered if name == origin]
    vouched = policy.quorum != "none" or connected and max(remembered, default=-1) >= max(trees, default=0)
    return unmade + ["split-view"] * (not vouched)

def history(policy, origin, leaves, steps):
    places, trees = {}, {size: root for (name, size), root in policy.remembered.items() if name == origin}
    for _, leaf, file, proof in leaves:
        if places.setdefault(proof.number, leaf.hash) != leaf.hash: raise Invalid("log-forked", *proof.where, file=file)
    for _, _, file, proof in leaves:
        if trees.setdefault(proof.tree.size, proof.tree.root) != proof.tree.root: raise Invalid("log-forked", *proof.tree.where, file=file)
    for file, step in steps:
        old, new, root = step.number, step.tree.size, trees.get(step.number)
        try:
            need(root and trees.get(new) == step.tree.root)
            need((not step.path and root == sha()) if old == 0 else continued(old, new, step.path, root) == (root, step.tree.root))
        except ValueError: raise Invalid("log-not-continued", 1, 0, file=file) from None
    shown = {max(trees, default=0), 0}
    for size in sorted(trees, reverse=True):
        shown |= {step.number for _, step in steps if step.tree.size == size} if size in shown else set()
    return trees, set(trees) <= shown

def writers(policy, origin, leaves):
    admins = policy.of["admin"] or [blob for blob, name in policy.of["log"].items() if name == origin]
    key_id = lambda public: sha(b"portcullis/key/v1\0\1", public)
    admins, enrolled, revoked = {key_id(blob[1:]): blob[1:] for blob in admins}, {}, dict(policy.revoked)
    for name, leaf, _, proof in leaves:
        fail = lambda attack: Invalid(attack, None, len(leaf.signed), file=name)
        by_admin, index = leaf.kind in ("enrol", "revoke"), proof.number
        public = (admins if by_admin else enrolled).get(leaf.by)
        if not by_admin and index >= revoked.get(leaf.by, 1 << 63): raise fail("writer-revoked")
        if not public: raise fail("admin-unknown" if by_admin else "writer-not-enrolled")
        if not signed_by(public, leaf.signed, leaf.signature): raise fail("leaf-forged")
        if leaf.kind == "enrol": enrolled.setdefault(key_id(leaf.public), leaf.public)
        if leaf.kind == "revoke": revoked[leaf.writer] = min(index, revoked.get(leaf.writer, index))

def heads(run, segments, leaves):
    """Whether a link was not computed, and the segments that the log has the end of."""
    latest, follows, numbers, unknown, ended = {}, {}, {}, False, set()
    segments = {s["segment"]: s for s in segments}
    for name, h in [(name, leaf) for name, leaf, _, _ in leaves if leaf.kind == "run-head"]:
        fail, s = lambda attack: Invalid(attack, None, 0, file=name), segments.get(h.segment.hex())
        if h.run.hex() != run: raise fail("head-of-another-run")
        if s is None: raise fail("tail-missing")
        place = (h.ordinal, h.parent_segment + h.parent_link) == (s["ordinal"], parent_bytes(s["parent"])) and h.count >= s["start"]
        if not place: raise fail("head-mismatch")
        if h.count > s["end"]: raise fail("tail-missing")
        if s["links"].get(h.count, h.link.hex()) != h.link.hex(): raise fail("chain-rewritten")
        final, unknown = h.state > 1, unknown or h.count not in s["links"]
        if final and (h.count, ["closed", "abandoned"][h.state - 2]) != (s["end"], s["state"]): raise fail("head-mismatch")
        before, latest[h.segment] = latest.get(h.segment, h), h
        if before.hash != h.hash:
            if (before.writer, before.epoch, before.run_no) != (h.writer, h.epoch, h.run_no): raise fail("head-mismatch")
            if before.state > 1: raise fail("closed-twice" if final else "head-regressed")
            if h.count < before.count or h.state == 0: raise fail("head-regressed")
        if h.state and follows.setdefault(h.previous, h.hash) != h.hash: raise fail("head-forked")
        if numbers.setdefault((h.writer, h.epoch, h.run_no), h.segment) != h.segment: raise fail("run-number-reused")
        ended |= {s["segment"]} if final else set()
    return unknown, ended
