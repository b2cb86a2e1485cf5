//! `ACL`: who may do what. A namespace is the user, its token the password, and who has the token
//! may do everything in the namespace.
//!
//! ```text
//! ACL WHOAMI | LIST | HELP
//! ACL CAT [category]
//! ```

use bytes::Bytes;
use trefoil::Reply;

use super::super::session::Session;
use super::super::words::ReplyResult;
use super::help_lines;

pub(super) use super::about::categories;

pub(super) fn help(_: &mut Session, _: &[Bytes]) -> ReplyResult {
    let lines = ["CAT [<category>]", "LIST", "WHOAMI"];
    Ok(help_lines(
        "ACL <subcommand> [<arg> ...]. Subcommands are:",
        &lines,
    ))
}

pub(super) fn who_am_i(session: &mut Session, _: &[Bytes]) -> ReplyResult {
    Ok(Reply::bulk(session.user()))
}

/// A client is told of its own namespace only.
pub(super) fn list(session: &mut Session, _: &[Bytes]) -> ReplyResult {
    let rule = format!("user {} on ~* &* +@all", session.user());
    Ok(Reply::Array(vec![Reply::bulk(rule)]))
}
