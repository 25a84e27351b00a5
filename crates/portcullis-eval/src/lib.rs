//! Evaluation on public data sets: adapters, metrics, reports.
