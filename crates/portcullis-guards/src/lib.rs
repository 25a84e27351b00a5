//! The catalogue of built-in guards, one file each.
