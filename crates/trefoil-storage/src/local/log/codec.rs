//! zstd, set up for many small items: no magic number, no length, no checksum in the frames, and a
//! dictionary that stands for what the items have in common.

use std::cell::RefCell;

use trefoil_core::{Cause, Error, Result};
use zstd::zstd_safe::{CCtx, CDict, CParameter, DCtx, DDict, DParameter, FrameFormat, ParamSwitch};

fn failed(what: &str, code: usize) -> Error {
    Error::failed(what, Cause::new(zstd::zstd_safe::get_error_name(code)))
}

/// Compresses items one by one.
pub(crate) struct ZstdEncoder<'a> {
    context: CCtx<'a>,
    buffer: Vec<u8>,
}

impl<'a> ZstdEncoder<'a> {
    /// An encoder with or without a dictionary; the dictionary brings its own level.
    pub(crate) fn new(level: i32, dictionary: Option<&'a CDict<'a>>) -> Result<Self> {
        let mut context = CCtx::create();
        let set_up = |code| failed("setting up compression", code);
        for parameter in [
            CParameter::CompressionLevel(level),
            CParameter::Format(FrameFormat::Magicless),
            CParameter::ContentSizeFlag(false),
            CParameter::ChecksumFlag(false),
            CParameter::DictIdFlag(false),
            // What matches nothing is stored as it is: decoding takes a third less time, and items
            // a fifth more room.
            CParameter::LiteralCompressionMode(ParamSwitch::Disable),
        ] {
            context.set_parameter(parameter).map_err(set_up)?;
        }
        if let Some(dictionary) = dictionary {
            context.ref_cdict(dictionary).map_err(set_up)?;
        }
        Ok(Self {
            context,
            buffer: Vec::new(),
        })
    }

    /// The compressed form of `bytes`, if it is shorter.
    pub(crate) fn compress(&mut self, bytes: &[u8]) -> Result<Option<&[u8]>> {
        self.buffer.clear();
        self.buffer
            .reserve(zstd::zstd_safe::compress_bound(bytes.len()));
        self.context
            .compress2(&mut self.buffer, bytes)
            .map_err(|code| failed("compressing", code))?;
        Ok((self.buffer.len() < bytes.len()).then_some(&self.buffer))
    }
}

thread_local! {
    /// A context is expensive to make and has no memory of what it did, so each thread keeps one.
    static DECODER: RefCell<Option<DCtx<'static>>> = const { RefCell::new(None) };
}

fn new_decoder() -> Option<DCtx<'static>> {
    let mut context = DCtx::try_create()?;
    context
        .set_parameter(DParameter::Format(FrameFormat::Magicless))
        .ok()?;
    Some(context)
}

/// The `length` bytes that `stored` is the compressed form of; `None` if it is not.
pub(crate) fn decompress(
    stored: &[u8],
    length: usize,
    dictionary: Option<&DDict<'static>>,
) -> Option<Vec<u8>> {
    DECODER.with_borrow_mut(|slot| {
        if slot.is_none() {
            *slot = new_decoder();
        }
        let context = slot.as_mut()?;
        let mut out = Vec::with_capacity(length);
        let done = match dictionary {
            Some(dictionary) => context.decompress_using_ddict(&mut out, stored, dictionary),
            None => context.decompress(&mut out, stored),
        };
        (done.ok()? == length).then_some(out)
    })
}
