//! Policies: what satisfies them, and that they are read strictly.

use portcullis_proof::log::policy::{POLICY_BYTES_MAX, POLICY_ITEMS_MAX};
use portcullis_proof::log::{Checkpoint, KeyKind, Note, NoteSigner, Policy, PolicyError, TrustPolicy};

use super::notes::{head, signer};

const LOG: &str = "example.com/log";

fn log() -> NoteSigner {
    signer(LOG, KeyKind::Ed25519, 1)
}

fn witness(number: u8) -> NoteSigner {
    signer(&format!("witness.example/w{number}"), KeyKind::Cosignature, 0x40 + number)
}

/// The two levels of groups of the specification's example.
fn two_levels() -> String {
    let mut policy = format!("log {}\n\n", log().verifier());
    for (group, first) in [("X", 1), ("Y", 4)] {
        for number in 0..3 {
            policy += &format!("witness {group}{} {}\n", number + 1, witness(first + number).verifier());
        }
    }
    policy
        + "group X-witnesses 2 X1 X2 X3\n\tgroup  Y-witnesses any Y1 Y2 Y3 \n# both\ngroup X-and-Y all X-witnesses Y-witnesses\nquorum X-and-Y\n"
}

/// A checkpoint that the log signed and witnesses cosigned.
fn cosigned(witnesses: &[u8]) -> String {
    let checkpoint = Checkpoint::new(LOG, head(5)).unwrap();
    let mut note = checkpoint.sign(&[&log()]).unwrap();
    for number in witnesses {
        note += &witness(*number).sign(&checkpoint.text(), 1000 + u64::from(*number)).unwrap();
    }
    note
}

fn satisfies(policy: &str, note: &str) -> Result<Option<u64>, PolicyError> {
    let policy = Policy::parse(policy.as_bytes()).unwrap();
    policy.check(&Note::parse(note.as_bytes()).unwrap()).map(|endorsed| endorsed.seen_by())
}

#[test]
fn a_quorum_is_reached_exactly_when_its_groups_are() {
    let policy = two_levels();
    for set in 0..64u32 {
        let witnesses: Vec<u8> = (0..6).filter(|bit| set >> bit & 1 == 1).map(|bit| bit + 1).collect();
        let x = witnesses.iter().filter(|number| **number <= 3).count();
        let expected = x >= 2 && witnesses.len() > x;
        let found = satisfies(&policy, &cosigned(&witnesses));
        assert_eq!(found.is_ok(), expected, "{witnesses:?}");
        if !expected {
            let error = found.unwrap_err().to_string();
            let count = witnesses.len();
            assert_eq!(
                error,
                format!("the quorum `X-and-Y` is not reached: {count} of 6 witnesses cosigned")
            );
        }
    }
    assert_eq!(satisfies(&policy, &cosigned(&[2, 3, 5])), Ok(Some(1002)));
}

#[test]
fn other_quorums() {
    let keys =
        format!("log {} https://example.com/\nwitness w {}\n", log().verifier(), witness(1).verifier());
    let none = format!("{keys}quorum none\n");
    assert_eq!(satisfies(&none, &cosigned(&[])), Ok(None));
    let policy = Policy::parse(none.as_bytes()).unwrap();
    let [stated] = policy.logs() else { panic!("{policy:?}") };
    assert_eq!((&stated.key, stated.url.as_deref()), (log().verifier(), Some(&b"https://example.com/"[..])));
    assert!(!policy.has_quorum());
    let one = format!("{keys}quorum w\n");
    assert!(satisfies(&one, &cosigned(&[])).is_err());
    assert_eq!(satisfies(&one, &cosigned(&[1])), Ok(Some(1001)));
    assert!(Policy::parse(one.as_bytes()).unwrap().has_quorum());
    let enough = |policy: &str, counts| Policy::parse(policy.as_bytes()).unwrap().is_quorum(&[counts]);
    assert_eq!([enough(&one, true), enough(&one, false), enough(&none, false)], [true, false, true]);
    assert!(satisfies(&one, &cosigned(&[2])).is_err(), "the cosignature of a witness that is not named");
    // The same witness twice is one witness.
    let two = format!("{keys}witness v {}\ngroup g 2 w v\nquorum g\n", witness(2).verifier());
    assert!(satisfies(&two, &cosigned(&[1, 1])).is_err());
    assert!(satisfies(&two, &cosigned(&[1, 2])).is_ok());
}

#[test]
fn the_log_has_to_sign_whatever_witnesses_do() {
    let policy = two_levels();
    let checkpoint = Checkpoint::new(LOG, head(5)).unwrap();
    let mut unsigned = format!("{}\n", checkpoint.text());
    for number in 1..=6 {
        unsigned += &witness(number).sign(&checkpoint.text(), 1).unwrap();
    }
    assert!(matches!(satisfies(&policy, &unsigned), Err(PolicyError::Signature(_))));
    // The key of the log under another origin, and another key under the origin of the log.
    let moved = Checkpoint::new("example.com/other", head(5)).unwrap().sign(&[&log()]).unwrap();
    assert_eq!(
        satisfies(&policy, &moved),
        Err(PolicyError::UnknownLog { origin: "example.com/other".into() })
    );
    let other = checkpoint.sign(&[&signer(LOG, KeyKind::Ed25519, 2)]).unwrap();
    assert!(matches!(satisfies(&policy, &other), Err(PolicyError::Signature(_))));
    // A cosignature of a known witness that does not hold condemns the checkpoint, quorum or not.
    let wrong = witness(1).sign("another text\n", 1).unwrap();
    assert!(matches!(satisfies(&policy, &(cosigned(&[2, 3, 4]) + &wrong)), Err(PolicyError::Signature(_))));
    // A cosignature of the right tree under another time is not one.
    let cosignature = witness(1).sign(&checkpoint.text(), 7).unwrap();
    assert!(satisfies(&policy, &(cosigned(&[2, 3, 4]) + &cosignature)).is_ok());
}

#[test]
fn policies_are_read_strictly() {
    let (log, w1, w2) = (log().verifier().to_string(), witness(1), witness(2));
    let (w1, w2) = (w1.verifier().to_string(), w2.verifier().to_string());
    let with = |rest: &str| format!("log {log}\nwitness a {w1}\nwitness b {w2}\n{rest}");
    for (policy, error) in [
        (String::new(), "line 1, byte 0: the policy ends without `quorum NAME`"),
        (with(""), "line 4"),
        (with("quorum none"), "line 4, byte 240: the text ends without a newline"),
        (with("quorum c\n"), "`c` is not a witness or group defined above"),
        (with("quorum a\nquorum b\n"), "line 5, byte 249: a second quorum"),
        (with("group g 1 c\nquorum g\n"), "`c` is not a witness or group"),
        (with("group g 1 g\nquorum g\n"), "`g` is not a witness or group"),
        (with("quorum g\ngroup g 1 a\n"), "`g` is not a witness or group"),
        (with("group g 0 a\nquorum g\n"), "0 of 1 members"),
        (with("group g 3 a b\nquorum g\n"), "3 of 2 members"),
        (with("group g 02 a b\nquorum g\n"), "`02` is not a number"),
        (with("group g some a b\nquorum g\n"), "`some` is not a number"),
        (with("group g 2\nquorum g\n"), "expected `log VKEY"),
        (with("group g 2 a a\nquorum g\n"), "`a` is already a member"),
        (with("group g 1 a\ngroup h 1 a\nquorum g\n"), "`a` is already a member"),
        (with("group a 1 b\nquorum a\n"), "`a` is defined twice"),
        (with("group none 1 b\nquorum none\n"), "the name `none`"),
        (with("group g all none\nquorum g\n"), "`none` is not a witness or group"),
        (with("quorum a b\n"), "expected `log VKEY"),
        (with("Quorum a\n"), "expected `log VKEY"),
        (with("quorum a\r\n"), "control character"),
        (with("# \u{7f}\nquorum a\n"), "control character"),
        (with(&format!("witness c {w1}\nquorum a\n")), "the key of this witness is already in the policy"),
        (with(&format!("log {log}\nquorum a\n")), "the key of this log is already in the policy"),
        (with(&format!("witness c {log}\nquorum a\n")), "is the key of a log; witnesses have type 0x04"),
        (with(&format!("log {w1}\nquorum a\n")), "is the key of a witness; logs and admins have type 0x01"),
        (with(&format!("admin {log}\nquorum a\n")), "expected `log VKEY"),
        (with(&format!("log {log} url more\nquorum a\n")), "expected `log VKEY"),
        (with(&format!("witness c {w1} url more\nquorum a\n")), "expected `log VKEY"),
    ] {
        let found = Policy::parse(policy.as_bytes()).unwrap_err().to_string();
        assert!(found.contains(error), "{policy}: {found}");
    }
    assert!(Policy::parse(&vec![b'#'; POLICY_BYTES_MAX + 1]).is_err());
    // Names are bytes; blanks are blanks; a quorum may stand before what it does not use.
    let odd = [
        b" \t log  ".as_slice(),
        log.as_bytes(),
        b"\t\nwitness \xff ",
        w1.as_bytes(),
        b" \xfe\n quorum \xff\n\t# \xff\nwitness b ",
        w2.as_bytes(),
        b"\n",
    ]
    .concat();
    let policy = Policy::parse(&odd).unwrap();
    assert_eq!(policy.witnesses()[0].name, b"\xff");
    assert_eq!(Policy::parse(&policy.to_bytes()), Ok(policy));
}

#[test]
fn a_policy_is_written_as_it_is_read() {
    let policy = Policy::parse(two_levels().as_bytes()).unwrap();
    let written = policy.to_bytes();
    assert_eq!(Policy::parse(&written).unwrap(), policy);
    assert_eq!(Policy::parse(&written).unwrap().to_bytes(), written);
}

#[test]
fn lines_of_our_own() {
    let root = "CsUYapGGPo4dkMgIAUqom/Xajj7h2fB2MPA3j2jxq2I=";
    let admin = signer("example.com/admin", KeyKind::Ed25519, 9);
    let key = "ab".repeat(32);
    let ours =
        format!("{}admin {}\nremember {LOG} 5 {root}\nrevoked {key} 17\n", two_levels(), admin.verifier());
    let trust = TrustPolicy::parse(ours.as_bytes()).unwrap();
    assert_eq!(trust.remembered[0].size(), 5);
    assert_eq!(trust.revoked, [(key.parse().unwrap(), 17)]);
    assert_eq!(trust.admins(LOG).map(|key| key.name()).collect::<Vec<_>>(), ["example.com/admin"]);
    assert_eq!(TrustPolicy::parse(&trust.to_bytes()), Ok(trust));
    for other in [format!("remember {LOG} 6 {root}"), format!("remember {LOG}/2 5 {root}")] {
        let more = TrustPolicy::parse(format!("{ours}{other}\n").as_bytes()).unwrap();
        assert_eq!(more.remembered.len(), 2, "{other}");
    }
    assert!(Policy::parse(ours.as_bytes()).is_err(), "a reader of plain policies refuses them");
    let plain = TrustPolicy::parse(two_levels().as_bytes()).unwrap();
    assert_eq!(plain.admins(LOG).map(|key| key.name()).collect::<Vec<_>>(), [LOG]);
    assert_eq!(plain.admins("example.com/other").count(), 0);
    for (line, error) in [
        (format!("remember {LOG} 5 {root}"), "a tree of this origin and size is remembered already"),
        (format!("remember {LOG} 0 {root}"), "a tree without leaves"),
        (format!("remember {LOG} 5"), "expected `admin VKEY`"),
        (format!("revoked {key} 3"), "the key is revoked already"),
        ("revoked ab 3".to_owned(), "key `ab`: expected 64"),
        (format!("admin {}", admin.verifier()), "the key of this admin is already"),
        ("admin x".to_owned(), "expected a verifier key"),
    ] {
        let found = TrustPolicy::parse(format!("{ours}{line}\n").as_bytes()).unwrap_err();
        assert!(found.message.contains(error), "{line}: {found}");
    }
}

#[test]
fn so_many_items_are_read() {
    let key = |kind, number: usize| {
        let mut seed = [0x77; 32];
        seed[..8].copy_from_slice(&number.to_be_bytes());
        NoteSigner::from_seed("k", kind, &seed).unwrap().verifier().to_string()
    };
    let log = |number| format!("log {}\n", key(KeyKind::Ed25519, number));
    let witness = |number| format!("witness w{number} {}\n", key(KeyKind::Cosignature, number));
    let group = |number| format!("group g{number} 1 w{number}\n");
    let admin = |number| format!("admin {}\n", key(KeyKind::Ed25519, number));
    let remember =
        |number| format!("remember {LOG} {} CsUYapGGPo4dkMgIAUqom/Xajj7h2fB2MPA3j2jxq2I=\n", number + 1);
    let revoked = |number: usize| format!("revoked {number:064x} 1\n");
    let many = |line: &dyn Fn(usize) -> String, count| (0..count).map(line).collect::<String>();
    let read = |text: String| TrustPolicy::parse((text + "quorum none\n").as_bytes());
    let kinds: [(&dyn Fn(usize) -> String, &str); 5] = [
        (&log, "logs"),
        (&witness, "witnesses"),
        (&admin, "admins"),
        (&remember, "remembered checkpoints"),
        (&revoked, "revoked keys"),
    ];
    for (line, what) in kinds {
        assert!(read(many(line, POLICY_ITEMS_MAX)).is_ok(), "{what}");
        let error = read(many(line, POLICY_ITEMS_MAX + 1)).unwrap_err();
        assert_eq!((error.line, error.message), (257, format!("more than 256 {what}")));
    }
    let witnesses = many(&witness, POLICY_ITEMS_MAX);
    let groups = witnesses.clone() + &many(&group, POLICY_ITEMS_MAX);
    assert!(read(groups.clone()).is_ok());
    assert_eq!(read(groups + "group h 1 g0\n").unwrap_err().message, "more than 256 groups");
    let members = many(&|number| format!(" w{number}"), POLICY_ITEMS_MAX);
    assert!(read(format!("{witnesses}group all 256{members}\n")).is_ok());
    let error = read(format!("{witnesses}group all 256{members} w0\n")).unwrap_err();
    assert_eq!(error.message, "more than 256 members of a group");
}
