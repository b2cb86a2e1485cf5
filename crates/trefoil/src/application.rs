//! What applications are made of: commands beside those of Redis, and what falls due.
//!
//! An application is added with [`Options::with_application`](crate::Options::with_application).
//! `docs/extending.md` explains how to write one, with an example.

pub use bytes::Bytes;
pub use trefoil_state::{
    Application, ArgumentReader, HashReader, Keyspace, SYNTAX, StoredString, StringDraft, Timer,
};
