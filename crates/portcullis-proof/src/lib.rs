//! Formats and offline verifier of the ledger.
