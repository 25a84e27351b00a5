//! The main file of a bundle: TOML and what stands in it.

#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    let _ = portcullis_fuzz::load(&[("portcullis.toml", text)]);
});
