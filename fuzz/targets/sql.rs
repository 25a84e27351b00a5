//! SQL: no panic, no overflow of the stack, and every effect stands in the text.

#![no_main]

portcullis_fuzz::target!(portcullis_effects::sql::read);
