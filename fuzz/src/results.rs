//! What tools return: taken apart, and read for orders.

use portcullis_detect::{Detector, Head, Model};

/// Every leaf and every sentence is a range of characters of the text.
pub fn leaves(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    let mut last = 0;
    for leaf in &portcullis_detect::leaves(text) {
        let all = leaf.places.raw(0..leaf.text.len());
        assert!(text.get(all.clone()).is_some());
        assert!(all.start >= last, "leaves stand in order");
        last = all.start;
        for range in portcullis_detect::sentences(&leaf.text) {
            assert!(!leaf.text[range.clone()].trim().is_empty());
            assert!(text.get(leaf.places.raw(range)).is_some());
        }
    }
}

/// The whole detector: whatever it finds is a range of characters of the text.
pub fn detect(bytes: &[u8]) {
    let _ = Model::from_bytes(bytes);
    let (Ok(text), Ok(detector)) = (std::str::from_utf8(bytes), Detector::shipped()) else { return };
    for head in [Head::Order, Head::Override] {
        for hit in detector.scan(text, head) {
            assert!(text.get(hit.range).is_some());
        }
    }
}
