//! Objects as a home uses them: whole lists, and errors that say what was being done.

use trefoil_core::{Cause, Error, Result};

use crate::contract::{KvError, KvObjects};

/// How many names are listed at a time.
const PAGE: usize = 1000;

/// Returns the error of a home's work.
pub(super) fn failed(what: &str) -> impl FnOnce(KvError) -> Error {
    move |error| match error {
        KvError::Fenced => Error::Closed(format!("{what}: another node has the namespace")),
        KvError::Unknown(text) => Error::result_lost(format!("{what}: {text}")),
        KvError::TooLarge { limit } => {
            Error::invalid(format!("{what}: the engine takes {limit} bytes at most"))
        }
        KvError::Unavailable(text) => Error::failed(what, Cause::new(text)),
        KvError::Damaged(text) => Error::Damaged(Box::new(trefoil_core::Damage {
            file: what.into(),
            offset: 0,
            position: 0,
            what: text,
            help: "restore it from a backup".to_owned(),
        })),
    }
}

/// Returns all names that begin with `prefix`, in order.
pub(super) fn list_all(objects: &dyn KvObjects, prefix: &str) -> Result<Vec<String>> {
    let mut names: Vec<String> = Vec::new();
    loop {
        let after = names.last().cloned().unwrap_or_default();
        let page = objects.list(prefix, &after, PAGE);
        let page = page.map_err(failed("listing objects"))?;
        let is_last = page.len() < PAGE;
        names.extend(page);
        if is_last {
            return Ok(names);
        }
    }
}
