//! The whole detector: whatever it finds is a range of characters of the text.

#![no_main]

use libfuzzer_sys::fuzz_target;
use portcullis_detect::{Detector, Head, Model};

fuzz_target!(|bytes: &[u8]| {
    let _ = Model::from_bytes(bytes);
    let (Ok(text), Ok(detector)) = (std::str::from_utf8(bytes), Detector::shipped()) else { return };
    for head in [Head::Order, Head::Override] {
        for hit in detector.scan(text, head) {
            assert!(text.get(hit.range).is_some());
        }
    }
});
