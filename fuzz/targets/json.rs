//! Hook inputs, and with them JSON that must not be readable in two ways.

#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let _ = portcullis_wire::hook::parse(bytes);
});
