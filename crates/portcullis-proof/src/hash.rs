//! SHA-256 (FIPS 180-4), for everything in this crate that is hashed.
//!
//! ring's: it is in every build for TLS anyway, and on machines without instructions for SHA it takes little more than
//! half the time of one written in plain code, which is what a verifier does most.

use ring::digest::{Context, SHA256};

/// A hash under way.
pub(crate) struct Sha256(Context);

impl Sha256 {
    pub(crate) fn new() -> Sha256 {
        Sha256(Context::new(&SHA256))
    }

    pub(crate) fn update(&mut self, bytes: impl AsRef<[u8]>) {
        self.0.update(bytes.as_ref());
    }

    pub(crate) fn finish(self) -> [u8; 32] {
        let mut bytes = [0; 32];
        bytes.copy_from_slice(self.0.finish().as_ref());
        bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chain::hex_text;

    /// The examples of FIPS 180-4's companion, "SHA256 examples": one block, two blocks, none.
    #[test]
    fn the_standards_examples() {
        let hash = |parts: &[&str]| {
            let mut hash = Sha256::new();
            parts.iter().for_each(|part| hash.update(part));
            hex_text(&hash.finish())
        };
        assert_eq!(hash(&["abc"]), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
        assert_eq!(hash(&["a", "", "bc"]), hash(&["abc"]));
        assert_eq!(
            hash(&["abcdbcdecdefdefgefghfghighijhijkijkl", "jklmklmnlmnomnopnopq"]),
            "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1"
        );
        assert_eq!(hash(&[]), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
    }
}
