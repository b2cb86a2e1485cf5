//! zstd, with contexts that each thread keeps.

use std::cell::RefCell;

use trefoil_core::{Cause, Error, Result};
use zstd::bulk::{Compressor, Decompressor};

/// Fast, and a third smaller than without.
const LEVEL: i32 = 3;

thread_local! {
    static COMPRESSOR: RefCell<Option<Compressor<'static>>> = const { RefCell::new(None) };
    static DECOMPRESSOR: RefCell<Option<Decompressor<'static>>> = const { RefCell::new(None) };
}

fn failed(error: &std::io::Error) -> Error {
    Error::failed("compressing", Cause::new(error.to_string()))
}

/// Returns the compressed bytes.
pub(super) fn compress(bytes: &[u8]) -> Result<Option<Vec<u8>>> {
    COMPRESSOR.with_borrow_mut(|kept| {
        if kept.is_none() {
            *kept = Some(Compressor::new(LEVEL).map_err(|error| failed(&error))?);
        }
        let compressed = kept.as_mut().map(|zstd| zstd.compress(bytes));
        compressed.transpose().map_err(|error| failed(&error))
    })
}

/// Returns `length` bytes that were compressed; `None` if they were not.
pub(super) fn decompress(bytes: &[u8], length: usize) -> Option<Vec<u8>> {
    DECOMPRESSOR.with_borrow_mut(|kept| {
        if kept.is_none() {
            *kept = Some(Decompressor::new().ok()?);
        }
        kept.as_mut()?.decompress(bytes, length).ok()
    })
}
