//! Simulator, plans and simulated tools.
