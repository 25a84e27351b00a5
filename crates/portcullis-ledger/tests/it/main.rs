//! Tests of the ledger on real files.

#[cfg(test)]
mod append;
#[cfg(test)]
mod cosign;
#[cfg(test)]
mod erase;
#[cfg(test)]
mod faults;
#[cfg(test)]
mod freezes;
#[cfg(test)]
mod go;
#[cfg(test)]
mod hammer;
#[cfg(test)]
mod injected;
#[cfg(test)]
mod large;
#[cfg(test)]
mod log;
#[cfg(test)]
mod oracle;
#[cfg(test)]
mod recovery;
#[cfg(test)]
mod sample;
#[cfg(test)]
mod summaries;
#[cfg(test)]
mod taints;
