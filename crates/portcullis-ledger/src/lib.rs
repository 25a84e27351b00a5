//! The append-only, hash-chained store: one writer thread, group commit, SQLite.
