//! Money: amount, currency, payee.
