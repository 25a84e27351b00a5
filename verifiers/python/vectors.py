#!/usr/bin/env python3
"""Holds the verifier to the vectors.

    vectors.py specs/vectors      answers every vector, and changes a bit of each byte of some
    vectors.py --answers FOLDER   answers each `<name>.export` there, against `<name>.trust`, a line each"""
import base64, hashlib, io, json, os, sys, types
sys.dont_write_bytecode = True
import portcullis_log, portcullis_run, portcullis_verify

verifier = types.SimpleNamespace(**{**vars(portcullis_run), **vars(portcullis_log), **vars(portcullis_verify)})

def read(*names):
    with open(os.path.join(*names), encoding="utf-8") as file:
        return json.load(file)

def public(seed):
    """The public key of the seed that consists of one byte, 32 times."""
    scalar = bytearray(hashlib.sha512(bytes([seed]) * 32).digest()[:32])
    scalar[0], scalar[31] = scalar[0] & 248, scalar[31] & 127 | 64
    x, y, z = verifier.times(int.from_bytes(scalar, "little"), verifier.BASE)
    x, y = [a * pow(z, -1, verifier.P) % verifier.P for a in (x, y)]
    return (y | (x & 1) << 255).to_bytes(32, "little")

def root(first, size):
    """The root over the texts `leaf <i>`, as RFC 6962 defines it."""
    if size < 2:
        return verifier.sha(*[b"\0", b"leaf %d" % first] * size)
    return verifier.node(root(first, verifier.half(size)), root(first + verifier.half(size), size - verifier.half(size)))

def hashed(vector):
    i = {key: bytes.fromhex(x) if key in ("run", "segment", "before", "event_hash", "salt") else x for key, x in vector["input"].items()}
    if vector["hash"] == "event_hash":
        return verifier.event_hash(i["line"].encode())
    if vector["hash"] == "link_0":
        return verifier.segment_link(i["origin"], i["run"], i["segment"], i)
    if vector["hash"] == "link_n":
        return verifier.event_link(i["run"], i["segment"], i["seq"], i["before"], i["event_hash"])
    return verifier.commitment(i["salt"], i["media_type"], i["text"].encode())

def export(folder, v):
    path = os.path.join(folder, v["file"])
    report = verifier.verify(path, [v["trust"].encode()] if v["trust"] else [])
    found = report["failure"] or dict.fromkeys(["attack", "line", "seq", "byte"])
    with open(path, "rb") as file:
        byte = sum(len(line) for line in file.readlines()[:v["line"] - 1]) if v["line"] else None
    return [report["status"], report["exit_code"], found["attack"], found["line"], found["seq"], found["byte"],
            None if report["failure"] else list(report["payloads"].values())], \
        [v["status"], v["exit_code"], v["attack"], v["line"], v["seq"], byte, v["payloads"]]

def archive(folder, v):
    """A whole export as it is handed over, and a policy."""
    with open(os.path.join(folder, v["policy"]), "rb") as file:
        policy = file.read()
    try:
        report = verifier.verify(os.path.join(folder, v["file"]), [policy])
    except Exception:  # as the command answers
        report = dict(status="UNREADABLE", exit_code=3, failure=None)
    return [report[key] for key in ("status", "exit_code", "failure")], [v[key] for key in ("status", "exit_code", "failure")]

def verdict(files, v):
    segments = [dict(s, ordinal=i, links={int(count): link for count, link in s["links"].items()},
                     parent=dict(segment=s["parent_segment"], link=s["parent_link"]) if s["parent_segment"] else None)
                for i, s in enumerate(v["segments"])]
    run = types.SimpleNamespace(origin=v["origin"], id=v["run"], segments=segments)
    leaves = [((a, files[x]), (b, files[y])) for (a, x), (b, y) in v["leaves"]]
    steps = [(a, files[x]) for a, x in v["consistency"]]
    try:
        unmade = verifier.judge(verifier.Policy(files[v["policy"]]), run, leaves, steps)
        answer = ["INCOMPLETE", 2] if unmade else ["VALID", 0]
        answer += [None] * 4
    except verifier.Invalid as error:
        answer = ["INVALID", 1] + [error.found[key] for key in ("attack", "file", "line", "byte")]
    return answer, [v[key] for key in ("status", "exit_code", "attack", "file", "line", "byte")]

def signed(v):
    policy = b"witness w %s\nquorum w\nlog %s\n" if v["time"] else b"log %s\nquorum none\n"
    other = read_key(1, "portcullis/example")
    policy = verifier.Policy(policy % ((v["vkey"].encode(), other) if v["time"] else v["vkey"].encode()))
    note = (v["text"] + "\n" + v["line"]).encode() + b"\n" * (v["line"][-1] != "\n")
    tree = verifier.Text("proof-malformed", verifier.SIGNED, verifier.NOTE, "note", note)
    key, signature = tree.signatures[0]
    text = b"cosignature/v1\ntime %d\n" % v["time"] + tree.text if v["time"] else tree.text
    return key in policy.keys and verifier.signed_by(public(v["seed_byte"]), text, signature[-64:])

def read_key(kind, name):
    blob = bytes([kind]) + public(1)
    ident = verifier.sha(name.encode(), b"\n", blob)[:4].hex()
    return ("%s+%s+%s" % (name, ident, base64.b64encode(blob).decode())).encode()

def leaf(v):
    read_leaf = verifier.Leaf("leaf", bytes.fromhex(v["hex"]))
    return v["kind"].split()[0] == read_leaf.kind and read_leaf.hash.hex() == v["hash"] \
        and verifier.signed_by(public(v["seed_byte"]), read_leaf.signed, read_leaf.signature)

def flipped(data):
    """The bytes, with one bit of one of them changed, for each byte."""
    for at in range(len(data)):
        yield at, data[:at] + bytes([data[at] ^ 1 << at % 8]) + data[at + 1:]

def survivors(folder, files, runs, trees):
    """The places of a VALID export and of a leaf and its proof where a changed bit is not found."""
    v, found = next(v for v in runs["exports"] if v["status"] == "VALID"), []
    with open(os.path.join(folder, "run-chain", v["file"]), "rb") as file:
        export = file.read()
    for at, data in flipped(export):
        try:
            if not verifier.Run(io.BytesIO(data), verifier.read_trust(v["trust"].encode())).not_checked():
                found.append((v["file"], at))
        except verifier.Invalid:
            pass
    v = next(v for v in trees["verdicts"] if v["name"] == "valid")
    for name, number in v["leaves"][-1]:
        for at, data in flipped(files[number]):
            if verdict({**dict(enumerate(files)), number: data}, v)[0][0] == "VALID":
                found.append((name, at))
    return found

def run(folder):
    runs, trees = read(folder, "run-chain", "vectors.json"), read(folder, "transparency-log", "vectors.json")
    files = [f["text"].encode() if "text" in f else bytes.fromhex(f["hex"]) for f in trees["files"]]
    made = [("hash " + v["hash"], hashed(v).hex(), v["value"]) for v in runs["hashes"]]
    made += [("export " + v["file"], *export(os.path.join(folder, "run-chain"), v)) for v in runs["exports"]]
    made += [("tree %d" % v["size"], root(0, v["size"]).hex(), v["root"]) for v in trees["trees"]]
    for v in trees["inclusion"]:
        got = verifier.included(root(v["index"], 1), v["index"], v["size"], [bytes.fromhex(x) for x in v["path"]])
        made.append(("inclusion %d in %d" % (v["index"], v["size"]), got, root(0, v["size"])))
    for v in trees["consistency"]:
        got = verifier.continued(v["old"], v["new"], [bytes.fromhex(x) for x in v["path"]], root(0, v["old"]))
        made.append(("consistency %d to %d" % (v["old"], v["new"]), got, (root(0, v["old"]), root(0, v["new"]))))
    for v in trees["keys"]:
        name, blob = v["vkey"].split("+")[0], verifier.base(v["vkey"].split("+", 2)[2], range(33, 34))
        made.append(("key " + v["vkey"], blob[1:], public(v["seed_byte"])))
        made.append(("id of " + name, verifier.sha(b"portcullis/key/v1\0\1", blob[1:]).hex(), v["key_id_in_leaves"]))
    made += [("note " + v["vkey"], signed(v), True) for v in trees["notes"]]
    made += [("leaf " + v["kind"], leaf(v), True) for v in trees["leaves"]]
    made += [("verdict " + v["name"], *verdict(files, v)) for v in trees["verdicts"]]
    archives = os.path.join(folder, "archives")
    made += [("archive %s, %s" % (v["file"], v["policy"]), *archive(archives, v)) for v in read(archives, "vectors.json")]
    made.append(("tampered: none VALID", survivors(folder, files, runs, trees), []))
    for name, got, expected in made:
        print("%s %s%s" % ("agrees  " if got == expected else "DIFFERS ", name, "" if got == expected else ": %r, expected %r" % (got, expected)))
    differ = sum(got != expected for _, got, expected in made)
    print("%d vectors, %d agree, %d differ" % (len(made), len(made) - differ, differ))
    return 1 if differ else 0

def answers(folder):
    for name in sorted(os.listdir(folder)):
        if name.endswith(".export"):
            with open(os.path.join(folder, name[:-7] + ".trust"), "rb") as file:
                trust = file.read()
            report = verifier.verify(os.path.join(folder, name), [trust] if trust else [])
            found = report["failure"] or {}
            print(json.dumps([name, report["status"], *[found.get(key) for key in ("attack", "line", "byte", "seq")]]))
    return 0

if __name__ == "__main__":
    sys.exit(answers(sys.argv[2]) if sys.argv[1] == "--answers" else run(sys.argv[1]))
