//! What a client wishes of its transactions.
//!
//! ```text
//! TREFOIL.STRICT ON|OFF    the first command that fails takes back everything
//! TREFOIL.COMMITID id      the name of the transaction
//! ```
//!
//! Before `MULTI`, the first is for all transactions to come and the second for the next one.
//! Between `MULTI` and `EXEC` both are for that transaction alone, and are queued and answered as
//! any command is, because that is what clients expect of all they send there.

use bytes::Bytes;
use trefoil::limits::COMMIT_ID_BYTES_MAX;
use trefoil::{Error, Reply};

use super::failure::of_error;
use super::words::{ReplyResult, is, syntax_error};

/// What a wish is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Wish {
    Strict,
    CommitId,
}

/// What a client wishes.
#[derive(Debug, Default)]
pub(super) struct Wishes {
    /// Whether the first command that fails takes back everything.
    pub(super) strict: Option<bool>,
    /// The name of the next transaction.
    pub(super) commit_id: Option<Bytes>,
}

impl Wishes {
    /// Notes what a client says.
    pub(super) fn note(&mut self, wish: Wish, words: &[Bytes]) -> ReplyResult {
        let value = &words[1];
        match wish {
            Wish::Strict => self.strict = Some(on_or_off(value)?),
            Wish::CommitId => self.commit_id = Some(commit_id(value)?),
        }
        Ok(Reply::OK)
    }
}

fn on_or_off(word: &[u8]) -> ReplyResult<bool> {
    match is(word, "on") {
        true => Ok(true),
        false if is(word, "off") => Ok(false),
        false => Err(syntax_error()),
    }
}

fn commit_id(id: &Bytes) -> ReplyResult<Bytes> {
    if id.is_empty() || id.len() > COMMIT_ID_BYTES_MAX {
        let what = "length of a commit id";
        let failure = Error::over_limit(what, id.len(), COMMIT_ID_BYTES_MAX);
        return Err(of_error(&failure));
    }
    Ok(id.clone())
}
