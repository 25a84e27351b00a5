//! What tools return, taken apart: every leaf and every sentence is a range of characters of the text.

#![no_main]

use libfuzzer_sys::fuzz_target;
use portcullis_detect::{leaves, sentences};

fuzz_target!(|bytes: &[u8]| {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    let mut last = 0;
    for leaf in &leaves(text) {
        let all = leaf.places.raw(0..leaf.text.len());
        assert!(text.get(all.clone()).is_some());
        assert!(all.start >= last, "leaves stand in order");
        last = all.start;
        for range in sentences(&leaf.text) {
            assert!(!leaf.text[range.clone()].trim().is_empty());
            assert!(text.get(leaf.places.raw(range)).is_some());
        }
    }
});
