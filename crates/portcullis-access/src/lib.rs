//! Access control: who may do what to which resource, written in Cedar.
