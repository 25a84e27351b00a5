//! Keys, notes, checkpoints and cosignatures: those of others are read, and nothing that was changed is believed.

use portcullis_proof::log::key::TIME_MAX;
use portcullis_proof::log::note::{NOTE_BYTES_MAX, NOTE_SIGNATURES_MAX, sign_note};
use portcullis_proof::log::tree::empty_root;
use portcullis_proof::log::{
    Checkpoint, KeyError, KeyKind, Note, NoteError, NoteSigner, TreeHead, VerifierKey,
};
use portcullis_proof::{Digest, Hex};

/// The example of the specification of signed notes.
const EXAMPLE_KEY: &str = "example.com/foo+530d903a+AekyeRrm56hApGFkyQR4ZCbV54Id2LKaANYcrnKv3U2k";
const EXAMPLE: &str = "This is an example message.\n\n\
    — example.com/foo Uw2QOkn8srV1yJGh2VYRlL1Tnagv1YEq6TfXppzi2ONncAlTgK7Ztg1ERYNZXsYjOBH3mFXmRKuwHjG1Yu72IneyaQM=\n";

/// A checkpoint of a public log, and the key of one of the witnesses that cosigned it.
const PUBLIC: &str = "arche2025h1.staging.ct.transparency.dev\n1432088532\nU7WM79jrzyhGZ5/GUBTpM7NzwdyfFx61t3RovgcC4Ro=\n\n\
    — arche2025h1.staging.ct.transparency.dev zTM8sQAAAZ5W0WdjBAMARjBEAiBjW5IQf9pvsYLfQFX6hoGREPMHbdQ3urbllzalApkptQIgIpwtEroeW2BXaHAI4kJXFbon5Ch9MNL5zRNZ55lvGt0=\n\
    — remora.n621.de 2net5wAAAABqEiEgPlfF3V06o0Y+fHM+J5J9s27wgxxcOVSpZ/2g/KSiXCg9DEZI+aVCIobWX9sXTynk5XeU/zZ0WBxtqB0DrAWfBw==\n\
    — witness.stagemole.eu Z/euoAAAAABqEiEgw0i+7g2ENfDAWHmtRzCfKTHSDwYDJA2NmKeGi9Y8FtEyOUvVr+AJmIY/2TUFucgKi7lI7cUiOvKFYe/TmN9DAg==\n";
const PUBLIC_WITNESS: &str = "remora.n621.de+da77ade7+BOvN63jn/bLvkieywe8R6UYAtVtNbZpXh34x7onlmtw2";

pub(crate) fn signer(name: &str, kind: KeyKind, seed: u8) -> NoteSigner {
    NoteSigner::from_seed(name, kind, &[seed; 32]).unwrap()
}

pub(crate) fn head(size: u64) -> TreeHead {
    TreeHead { size, root: if size == 0 { empty_root() } else { Hex([size as u8; 32]) } }
}

#[test]
fn notes_and_cosignatures_of_others_verify() {
    let key: VerifierKey = EXAMPLE_KEY.parse().unwrap();
    assert_eq!((key.name(), key.id(), key.kind()), ("example.com/foo", 0x530d_903a, KeyKind::Ed25519));
    assert_eq!(key.to_string(), EXAMPLE_KEY);
    let note = Note::parse(EXAMPLE.as_bytes()).unwrap();
    assert_eq!(note.text(), "This is an example message.\n");
    assert_eq!(note.verify([&key]).unwrap().len(), 1);
    assert_eq!(note.to_string(), EXAMPLE);
    let [signature] = note.signatures() else { panic!("{note:?}") };
    assert_eq!((signature.name, signature.key_id, signature.signature.len()), (key.name(), key.id(), 64));
    assert!(EXAMPLE.ends_with(&signature.line()));

    let witness: VerifierKey = PUBLIC_WITNESS.parse().unwrap();
    assert_eq!((witness.kind(), witness.to_string()), (KeyKind::Cosignature, PUBLIC_WITNESS.to_owned()));
    let (note, checkpoint) = Checkpoint::from_note(PUBLIC.as_bytes()).unwrap();
    assert_eq!(checkpoint.size(), 1_432_088_532);
    let signed = note.verify([&key, &witness]).unwrap();
    assert_eq!(signed.len(), 1);
    assert_eq!((signed[0].key, signed[0].time), (&witness, Some(1_779_573_024)));
    // A note that another program wrote is read by a third one, and the other way round.
    let theirs = tlog_tiles::Checkpoint::from_bytes(checkpoint.text().as_bytes()).unwrap();
    assert_eq!(
        (theirs.origin(), theirs.size(), theirs.hash().0),
        (checkpoint.origin(), checkpoint.size(), checkpoint.root().0)
    );
}

#[test]
fn a_checkpoint_says_what_others_make_of_it() {
    for size in [0, 1, 255, 70_000, i64::MAX as u64] {
        let ours = Checkpoint::new("example.com/log", head(size)).unwrap();
        let theirs =
            tlog_tiles::Checkpoint::new("example.com/log", size, tlog_tiles::Hash(ours.root().0), "")
                .unwrap();
        assert_eq!(ours.text().into_bytes(), theirs.to_bytes());
        assert_eq!(Checkpoint::parse(&ours.text()), Ok(ours));
    }
}

#[test]
fn every_changed_bit_of_a_note_is_found() {
    // All bits of the one, the lowest of the other.
    for (note, key, bits) in [(EXAMPLE, EXAMPLE_KEY, 8), (PUBLIC, PUBLIC_WITNESS, 1)] {
        let key: VerifierKey = key.parse().unwrap();
        let line = note.lines().find(|line| line.starts_with(&format!("— {} ", key.name()))).unwrap();
        let text = 0..note.find("\n\n").unwrap() + 1;
        let signature = note.find(line).unwrap()..note.find(line).unwrap() + line.len() + 1;
        let mut tried = 0;
        for byte in text.clone().chain(signature.clone()) {
            for bit in 0..bits {
                let mut changed = note.as_bytes().to_vec();
                changed[byte] ^= 1 << bit;
                let verified = Note::parse(&changed).map(|note| note.verify([&key]).is_ok());
                assert!(verified != Ok(true), "bit {bit} of byte {byte}");
                tried += 1;
            }
        }
        assert_eq!(tried, bits * (text.len() + signature.len()));
    }
}

#[test]
fn signatures_of_unknown_keys_are_ignored_and_known_ones_must_hold() {
    let [log, other] = [1, 2].map(|seed| signer("example.com/log", KeyKind::Ed25519, seed));
    let witness = signer("example.com/log", KeyKind::Cosignature, 1);
    let checkpoint = Checkpoint::new("example.com/log", head(7)).unwrap();
    let text = checkpoint.text();
    let lines = [log.sign(&text, 0), other.sign(&text, 0), witness.sign(&text, 9)].map(Result::unwrap);
    let note = format!("{text}\n{}{}{}{}", lines[0], lines[1], lines[2], lines[0]);
    let note = Note::parse(note.as_bytes()).unwrap();
    let verified = |keys: &[&NoteSigner]| {
        note.verify(keys.iter().map(|key| key.verifier()).collect::<Vec<_>>())
            .map(|signed| signed.iter().map(|signed| (signed.key.id(), signed.time)).collect::<Vec<_>>())
    };
    let [a, b, c] = [&log, &other, &witness].map(|key| key.verifier().id());
    assert_eq!(verified(&[&log]), Ok(vec![(a, None)]), "once, though it signed twice");
    assert_eq!(verified(&[&witness, &other, &log]), Ok(vec![(a, None), (b, None), (c, Some(9))]));
    let third = signer("example.com/log", KeyKind::Ed25519, 3);
    assert_eq!(
        verified(&[&third]).unwrap_err().to_string(),
        "no trusted key signed the note; it is signed by `example.com/log`, `example.com/log`, `example.com/log`, `example.com/log`"
    );
    // The signature of one key under the id of another is a forgery, even beside a good one.
    let claimed = log.sign("another text\n", 0).unwrap();
    let forged = format!("{text}\n{}{claimed}", lines[1]);
    let error =
        Note::parse(forged.as_bytes()).unwrap().verify([log.verifier(), other.verifier()]).unwrap_err();
    assert_eq!(
        error,
        NoteError::Forged {
            line: 6,
            byte: (text.len() + 1 + lines[1].len()) as u64,
            name: "example.com/log".into()
        }
    );
}

#[test]
fn a_signature_of_one_kind_does_not_pass_for_the_other() {
    let (log, witness) = (signer("w", KeyKind::Ed25519, 1), signer("w", KeyKind::Cosignature, 1));
    assert_ne!(log.verifier().id(), witness.verifier().id());
    // A log that is made to sign what a witness would sign has signed another note.
    let text = "cosignature/v1\ntime 5\nlog\n0\n47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=\n";
    let signed = sign_note(text, &[&log]).unwrap();
    assert!(Note::parse(signed.as_bytes()).unwrap().verify([witness.verifier()]).is_err());
    assert!(witness.sign("text\n", TIME_MAX).is_ok());
    assert!(witness.sign("text\n", TIME_MAX + 1).is_err());
}

#[test]
fn keys_are_read_strictly() {
    let weak = VerifierKey::new("w", KeyKind::Ed25519, &{
        let mut one = [0; 32];
        one[0] = 1;
        one
    });
    assert!(matches!(weak, Err(KeyError::Material { message, .. }) if message.contains("low order")));
    for (vkey, message) in [
        ("example.com/foo", "expected a verifier key"),
        ("example.com/foo+530d903a", "expected a verifier key"),
        ("+530d903a+AekyeRrm56hApGFkyQR4ZCbV54Id2LKaANYcrnKv3U2k", "key name ``"),
        ("a b+530d903a+AekyeRrm56hApGFkyQR4ZCbV54Id2LKaANYcrnKv3U2k", "key name `a b`"),
        ("a\u{2003}b+530d903a+AekyeRrm56hApGFkyQR4ZCbV54Id2LKaANYcrnKv3U2k", "key name"),
        ("example.com/foo+530d903b+AekyeRrm56hApGFkyQR4ZCbV54Id2LKaANYcrnKv3U2k", "states id `530d903b`"),
        ("example.com/foo+530D903A+AekyeRrm56hApGFkyQR4ZCbV54Id2LKaANYcrnKv3U2k", "states id `530D903A`"),
        ("example.com/fop+530d903a+AekyeRrm56hApGFkyQR4ZCbV54Id2LKaANYcrnKv3U2k", "name and key have"),
        ("example.com/foo+530d903a+AekyeRrm56hApGFkyQR4ZCbV54Id2LKaANYcrnKv3U2", "is not base64"),
        ("example.com/foo+530d903a+BukyeRrm56hApGFkyQR4ZCbV54Id2LKaANYcrnKv3U2k", "signature type 0x06"),
        ("example.com/foo+530d903a+AQ==", "has 32 bytes"),
        ("example.com/foo+530d903a+", "the key is empty"),
    ] {
        let error = vkey.parse::<VerifierKey>().unwrap_err().to_string();
        assert!(error.contains(message), "{vkey}: {error}");
    }
    let secret = signer("w", KeyKind::Ed25519, 0x5a);
    assert!(!format!("{secret:?}").to_lowercase().contains("5a5a5a"), "a seed is never shown");
}

#[test]
fn malformed_notes_are_refused_with_their_place() {
    let line = "— a AAAAAAE=\n";
    for (note, error) in [
        ("", "line 1, byte 0: the note has no empty line"),
        ("text\n", "line 2, byte 5: the note has no empty line"),
        ("\n— a AAAAAAE=\n", "no empty line"),
        ("text\n\n", "line 3, byte 6: there is no signature"),
        ("text\n\nnothing\n", "line 3, byte 6: expected a signature"),
        ("text\n\n— a AAAAAAE=", "line 3, byte 6: the text ends without a newline"),
        ("text\r\n\n— a AAAAAAE=\n", "line 1, byte 0: the line has a control character"),
        ("text\n\n— a AAAAAA==\n", "line 3, byte 6: a signature has a key id"),
        ("text\n\n— a+b AAAAAAE=\n", "line 3, byte 6: key name `a+b`"),
        ("text\n\n— a  AAAAAAE=\n", "line 3, byte 6: ` AAAAAAE=` is not base64"),
        ("text\n\n—  AAAAAAE=\n", "line 3, byte 6: key name ``"),
        ("text\n\n- a AAAAAAE=\n", "line 3, byte 6: expected a signature"),
        ("text\n\n— a AAAAAAE=\n\n", "line 5, byte 22: there is no signature"),
        ("text\n\n— a AAAAAAE=\nx\n", "line 4, byte 21: expected a signature"),
    ] {
        let found = Note::parse(note.as_bytes()).unwrap_err().to_string();
        assert!(found.contains(error), "{note:?}: {found}");
    }
    assert!(Note::parse(b"text\xff\n\n\xe2\x80\x94 a AAAAAAE=\n").unwrap_err().message.contains("UTF-8"));
    assert!(Note::parse(format!("text\n\n{}", line.repeat(NOTE_SIGNATURES_MAX)).as_bytes()).is_ok());
    let many = format!("text\n\n{}", line.repeat(NOTE_SIGNATURES_MAX + 1));
    assert!(Note::parse(many.as_bytes()).unwrap_err().message.contains("more than 64"));
    assert!(Note::parse(&vec![b'a'; NOTE_BYTES_MAX + 1]).is_err());
    // The text goes to the last empty line, whatever looks like a signature before it.
    let note = format!("a\n\n{line}\nb\n\n{line}");
    assert_eq!(Note::parse(note.as_bytes()).unwrap().text(), format!("a\n\n{line}\nb\n"));
    let key = signer("a", KeyKind::Ed25519, 1);
    for text in ["", "no newline", "a\tb\n", "a\n\n"] {
        let signed = sign_note(text, &[&key]);
        assert_eq!(signed.is_ok(), text == "a\n\n", "{text:?}");
    }
    let smuggled = sign_note(&format!("a\n\n{}", line.trim_end()), &[&key]).unwrap_err().to_string();
    assert!(
        smuggled.contains("does not end in one newline"),
        "a signature of another in the text: {smuggled}"
    );
    assert!(sign_note("text\n", &[&signer("a", KeyKind::Cosignature, 1)]).is_err(), "nobody signed");
}

#[test]
fn malformed_checkpoints_are_refused_with_their_place() {
    let root = "CsUYapGGPo4dkMgIAUqom/Xajj7h2fB2MPA3j2jxq2I=";
    for (text, error) in [
        (String::new(), "line 1, byte 0: the text ends where the origin belongs"),
        ("log\n".to_owned(), "line 2, byte 4: the text ends where the size"),
        ("log\n7\n".to_owned(), "line 3, byte 6: the text ends where the root"),
        (format!("\n7\n{root}\n"), "line 1, byte 0: an origin has"),
        (format!("a log\n7\n{root}\n"), "line 1, byte 0: an origin has no white space"),
        (format!("log\n07\n{root}\n"), "line 2, byte 4: `07` is not a number"),
        (format!("log\n-7\n{root}\n"), "line 2, byte 4: `-7` is not a number"),
        (format!("log\n9223372036854775808\n{root}\n"), "line 3, byte 24: a tree has at most"),
        (format!("log\n0\n{root}\n"), "line 3, byte 6: a tree without leaves"),
        ("log\n7\nAAAA\n".to_owned(), "line 3, byte 6: `AAAA` has 3 bytes"),
        (format!("log\n7\n{root}\n\n"), "line 4, byte 51: at most 16 extension lines"),
        (format!("log\n7\n{root}\n{}", "x\n".repeat(17)), "line 20"),
    ] {
        let found = Checkpoint::parse(&text).unwrap_err().to_string();
        assert!(found.contains(error), "{text:?}: {found}");
    }
    let extended = format!("log\n7\n{root}\nextension\n");
    assert_eq!(Checkpoint::parse(&extended).unwrap().text(), extended);
    assert!(Checkpoint::new("a b", head(1)).is_err());
    assert!(Checkpoint::new("a", TreeHead { size: 0, root: Digest::from([1; 32]) }).is_err());
}
