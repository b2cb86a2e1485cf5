//! `ACL`: who may do what. A namespace is the user, its token the password. What the token permits is told
//! in Redis' words as far as it has words for it.
//!
//! ```text
//! ACL WHOAMI | LIST | HELP
//! ACL CAT [category]
//! ```

use bytes::Bytes;
use trefoil::{Permission, Reply, Scope};

use super::super::session::Session;
use super::super::words::ReplyResult;
use super::help_lines;
use crate::visits::Visit;

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

/// A client is told of its own namespace and token only.
pub(super) fn list(session: &mut Session, _: &[Bytes]) -> ReplyResult {
    let grant = session.visit.as_ref().map(Visit::grant);
    let permission = grant.map(|grant| grant.permission());
    let has_keys = permission.is_some_and(|permission| permission.scopes.contains(Scope::State));
    let permitted = match permission.is_some_and(Permission::is_all) {
        true => "+@all",
        false if has_keys => "-@all +@read +@write +@admin",
        false => "-@all +@admin",
    };
    let rule = format!("user {} on ~* &* {permitted}", session.user());
    Ok(Reply::Array(vec![Reply::bulk(rule)]))
}
