//! Archives of one good run: those that have one reading, and those that have two.

use super::zip::{Entry, Said, Zip, crc};
use super::{Case, World, case, invalid, logged, packed};

/// The files of the run.
fn files() -> Vec<(String, Vec<u8>)> {
    let mut files = World::of(vec![logged(1, 0)]).run("", 0);
    files.insert(0, ("README.txt".to_owned(), b"One run.\n".to_vec()));
    files
}

fn changed(change: impl FnOnce(&mut Zip)) -> Vec<u8> {
    let mut zip = Zip::of(&files());
    change(&mut zip);
    zip.bytes()
}

/// The extra field `id`.
fn extra(id: u16, data: &[u8]) -> Vec<u8> {
    [&id.to_le_bytes()[..], &u16::try_from(data.len()).unwrap().to_le_bytes(), data].concat()
}

/// An entry for a folder.
fn folder(name: &str) -> Entry {
    Entry { attributes: 0o040_755 << 16 | 0x10, ..Entry::stored(name, b"") }
}

pub(super) fn cases() -> Vec<Case> {
    let mut cases = accepted();
    for (name, says, bytes) in [layout(), entries(), names(), data()].concat() {
        cases.push(case(name, says, bytes, "UNREADABLE"));
    }
    cases.extend(strangers());
    cases
}

fn accepted() -> Vec<Case> {
    let deflated = files().iter().map(|(name, bytes)| Entry::deflated(name, bytes)).collect();
    let mut flagged: Zip = Zip { entries: deflated, ..Zip::default() };
    flagged.entries.iter_mut().for_each(|entry| entry.both(|said| said.flags = 0x0806));
    let large = changed(|zip| {
        for entry in &mut zip.entries {
            let numbers = [entry.local.size, entry.local.packed].map(|size| u64::from(size).to_le_bytes());
            entry.both(|said| {
                (said.size, said.packed) = (u32::MAX, u32::MAX);
                said.extra = extra(1, &numbers.concat());
            });
        }
        zip.large = Some(zip.entries.len() as u64);
    });
    let timed = changed(|zip| {
        for entry in &mut zip.entries {
            // Programs say more in the header than in the directory.
            entry.local.extra =
                [extra(0x5455, &[3, 0, 0, 0, 0, 0, 0, 0, 0]), extra(0x7875, &[1, 0, 0])].concat();
            entry.central.extra = extra(0x5455, &[3, 0, 0, 0, 0]);
            entry.attributes = 0o100_644 << 16;
        }
    });
    vec![
        case("zip-stored", "nothing is compressed", packed(&files()), "VALID"),
        case("zip-deflated", "deflated, with harmless flags", flagged.bytes(), "VALID"),
        case(
            "zip-folders",
            "folders have entries of their own, one of them without use",
            changed(|zip| {
                zip.entries.insert(1, folder("log/"));
                zip.entries.push(folder("spare/"));
            }),
            "VALID",
        ),
        case("zip-large", "numbers stand where those of large archives do", large, "VALID"),
        case("zip-times", "extra fields with times and owners", timed, "VALID"),
        case(
            "zip-backwards",
            "headers and directory have the files in another order than their names'",
            changed(|zip| zip.entries.reverse()),
            "VALID",
        ),
    ]
}

/// Name, what it is, and the archive.
type Refused = (&'static str, &'static str, Vec<u8>);

/// Where things are.
fn layout() -> Vec<Refused> {
    let good = packed(&files());
    let other = packed(&World::of(vec![logged(2, 0)]).run("", 0));
    let shift = u32::try_from(other.len()).unwrap();
    let decoy = changed(|zip| {
        // A program that looks for the locator of a large archive finds one in the last extra field.
        let locator = [&b"PK\x06\x07\0\0\0\0"[..], &[0; 8], &[1, 0, 0, 0]].concat();
        zip.entries.last_mut().unwrap().central.extra = extra(0x5455, &locator);
    });
    vec![
        ("zip-empty", "an archive without files", Zip::default().bytes()),
        ("zip-bytes-after", "a byte follows the archive", [&good[..], b"x"].concat()),
        ("zip-archive-after", "another archive follows", [&good[..], &other].concat()),
        (
            "zip-archive-before",
            "another archive stands before it, and its offsets count from there",
            [other, changed(|zip| zip.shift = shift)].concat(),
        ),
        (
            "zip-bytes-between",
            "bytes between the files and the directory",
            changed(|zip| zip.between = b"x".to_vec()),
        ),
        ("zip-comment", "the archive has a comment", changed(|zip| zip.comment = b"x".to_vec())),
        (
            "zip-order",
            "the directory has another order than the headers",
            changed(|zip| zip.backwards = true),
        ),
        (
            "zip-unlisted",
            "a file that the directory does not have",
            changed(|zip| {
                let other = logged(2, 0).export.text;
                zip.entries.push(Entry { listed: false, ..Entry::stored("run.export", &other) });
            }),
        ),
        (
            "zip-unlisted-first",
            "another run stands first, and the directory does not have it",
            changed(|zip| {
                let other = logged(2, 0).export.text;
                zip.entries.insert(0, Entry { listed: false, ..Entry::stored("run.export", &other) });
            }),
        ),
        (
            "zip-two-ends",
            "the record for large archives counts another number of files",
            changed(|zip| zip.large = Some(1)),
        ),
        ("zip-locator-decoy", "an extra field ends in what looks like a locator", decoy),
        ("zip-cut", "the last byte is missing", good[..good.len() - 1].to_vec()),
    ]
}

/// What is said of a file.
fn entries() -> Vec<Refused> {
    let run = |change: fn(&mut Entry)| changed(|zip| change(zip.entry("run.export")));
    let set = |change: fn(&mut Said)| changed(|zip| zip.entry("run.export").both(change));
    vec![
        (
            "zip-renamed-header",
            "the header of a file has another name than the directory",
            run(|entry| entry.local.name = b"run.backup".to_vec()),
        ),
        ("zip-other-sum", "header and directory have different sums", run(|entry| entry.local.crc ^= 1)),
        (
            "zip-other-method",
            "header and directory have different methods",
            run(|entry| entry.local.method = 8),
        ),
        ("zip-streamed", "sizes follow the data", set(|said| said.flags = 8)),
        ("zip-encrypted", "a flag says that the file is encrypted", set(|said| said.flags = 1)),
        ("zip-method-unknown", "a method that is not read", set(|said| said.method = 12)),
        ("zip-stored-sizes", "a stored file has two sizes", set(|said| said.size += 1)),
        ("zip-file-comment", "a file has a comment", run(|entry| entry.comment = b"x".to_vec())),
        ("zip-link", "a file is a symbolic link", run(|entry| entry.attributes = 0o120_777 << 16)),
        ("zip-marked-folder", "a file is marked as a folder", run(|entry| entry.attributes = 0x10)),
        (
            "zip-another-name",
            "an extra field gives the file another name",
            set(|said| said.extra = extra(0x7075, b"\x01\0\0\0\0run.backup")),
        ),
        (
            "zip-extra-twice",
            "an extra field stands twice",
            set(|said| said.extra = [extra(0x5455, &[0]), extra(0x5455, &[0])].concat()),
        ),
        (
            "zip-extra-cut",
            "an extra field is longer than there is room",
            set(|said| said.extra = vec![0x55, 0x54, 9, 0]),
        ),
        (
            "zip-large-unasked",
            "a large number for one that is not too large",
            set(|said| said.extra = extra(1, &u64::from(said.size).to_le_bytes())),
        ),
        (
            "zip-full-folder",
            "an entry for a folder holds something",
            changed(|zip| {
                let mut entry = folder("log/");
                entry.data = b"x".to_vec();
                entry.both(|said| (said.packed, said.size, said.crc) = (1, 1, crc(b"x")));
                zip.entries.push(entry);
            }),
        ),
    ]
}

fn names() -> Vec<Refused> {
    let named = |name: &[u8]| {
        changed(|zip| {
            let mut entry = Entry::stored("x", b"x");
            entry.both(|said| said.name = name.to_vec());
            zip.entries.push(entry);
        })
    };
    vec![
        ("zip-name-twice", "two files of one name", named(b"run.export")),
        ("zip-name-of-folder", "a file and a folder of one name", named(b"log")),
        ("zip-name-parent", "a name that leads out of the folder", named(b"../run.export")),
        ("zip-name-rooted", "a name that starts with a slash", named(b"/run.export")),
        ("zip-name-dot", "a name with a part that means nothing", named(b"./run.export")),
        ("zip-name-backslash", "a name with a backslash", named(b"log\\x.leaf")),
        ("zip-name-other-letters", "a name that is not ASCII", named("löschen.txt".as_bytes())),
        ("zip-name-control", "a name with a control character", named(b"run.export\x08")),
        ("zip-name-empty", "a file without a name", named(b"")),
    ]
}

fn data() -> Vec<Refused> {
    let deflated = |change: fn(&mut Entry)| {
        changed(|zip| {
            let text = zip.entry("run.export").data.clone();
            let mut entry = Entry::deflated("run.export", &text);
            change(&mut entry);
            *zip.entry("run.export") = entry;
        })
    };
    vec![
        (
            "zip-readme-damaged",
            "the data of a file that is not read are not those of its sum",
            changed(|zip| zip.entry("README.txt").data[0] ^= 1),
        ),
        (
            "zip-run-damaged",
            "an event is changed, and so is no sum",
            changed(|zip| {
                let data = &mut zip.entry("run.export").data;
                let at = data.windows(4).position(|window| window == b"deny").unwrap();
                data[at] = b'D';
            }),
        ),
        (
            "zip-data-longer",
            "the data go on after the deflated file ended",
            deflated(|entry| {
                entry.data.extend(b"PK\x03\x04");
                entry.both(|said| said.packed += 4);
            }),
        ),
        (
            "zip-data-unfinished",
            "the deflated data do not say that they end",
            deflated(|entry| entry.data[0] = 0),
        ),
        (
            "zip-data-shorter",
            "the file is longer than its header says",
            deflated(|entry| entry.both(|said| said.size -= 1)),
        ),
    ]
}

/// Names that are plain, and that no export has.
fn strangers() -> Vec<Case> {
    let with = |name: &str| packed(&[files(), vec![(name.to_owned(), b"x".to_vec())]].concat());
    let mismatched = |name, says, file: &str| {
        invalid(name, says, with(file), ("files-mismatched", file.to_owned(), None, 0, None))
    };
    let two = [files(), vec![("z.txt".to_owned(), Vec::new()), ("a.txt".to_owned(), Vec::new())]].concat();
    vec![
        mismatched("name-upper-case", "a name below `log/` in upper case", "log/X.leaf"),
        mismatched("name-in-a-folder", "a run in a folder", "old/run.export"),
        mismatched("name-proof-alone", "a proof without its leaf", "log/x.tlog-proof"),
        invalid(
            "names-in-order",
            "two files that no export has: the first by its name is named",
            packed(&two),
            ("files-mismatched", "a.txt".to_owned(), None, 0, None),
        ),
    ]
}
