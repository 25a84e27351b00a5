//! Tests of the verifier over whole exports.

#[cfg(test)]
mod archives;
#[cfg(test)]
mod log;
#[cfg(test)]
mod properties;
#[cfg(test)]
mod reports;
#[cfg(test)]
mod sample;
#[cfg(test)]
mod second;
#[cfg(test)]
mod segments;
#[cfg(test)]
mod tamper;
#[cfg(test)]
mod vectors;
