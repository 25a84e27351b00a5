//! Access policies: text that is too large or too deep is refused before Cedar's parser sees it, and whatever remains
//! is a bundle or a list of mistakes.

#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    let _ = portcullis_fuzz::load(&[("access/p.cedar", text)]);
});
