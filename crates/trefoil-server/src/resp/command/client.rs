//! `CLIENT`: what the server knows of its connections.
//!
//! ```text
//! CLIENT ID | GETNAME | INFO | GETREDIR | TRACKINGINFO | HELP
//! CLIENT SETNAME name
//! CLIENT SETINFO LIB-NAME|LIB-VER text
//! CLIENT LIST [TYPE NORMAL|MASTER|REPLICA|PUBSUB] [ID id …]
//! CLIENT KILL address | [ID id] [ADDR address] [LADDR address] [USER namespace] [TYPE type] [SKIPME YES|NO] …
//! CLIENT REPLY ON|OFF|SKIP
//! CLIENT NO-EVICT ON|OFF
//! CLIENT NO-TOUCH ON|OFF
//! ```
//!
//! A client sees and ends the clients of its own namespace; the administrator's sees all.

use bytes::Bytes;
use trefoil::{NamespaceId, Reply};

use super::super::clients::RespClient;
use super::super::profile::ReplyMode;
use super::super::session::Session;
use super::super::words::{ReplyResult, Words, error, integer, is, syntax_error};
use super::{beginning, help_lines};
use crate::limits::{RESP_NAME_BYTES_MAX, RESP_REPEATED_BYTES_MAX};

pub(super) fn help(_: &mut Session, _: &[Bytes]) -> ReplyResult {
    let lines = [
        "GETNAME",
        "GETREDIR",
        "ID",
        "INFO",
        "KILL <ip:port> | <option> <value> [<option> <value> [...]]",
        "LIST [TYPE <type>] [ID <id> [<id> ...]]",
        "NO-EVICT (ON|OFF)",
        "NO-TOUCH (ON|OFF)",
        "REPLY (ON|OFF|SKIP)",
        "SETINFO <LIB-NAME|LIB-VER> <value>",
        "SETNAME <name>",
        "TRACKINGINFO",
    ];
    Ok(help_lines(
        "CLIENT <subcommand> [<arg> ...]. Subcommands are:",
        &lines,
    ))
}

pub(super) fn id(session: &mut Session, _: &[Bytes]) -> ReplyResult {
    Ok(Reply::Integer(
        i64::try_from(session.client.id).unwrap_or(i64::MAX),
    ))
}

pub(super) fn get_name(session: &mut Session, _: &[Bytes]) -> ReplyResult {
    let name = session.client.known.lock().name.clone();
    Ok(Reply::bulk_or_nil((!name.is_empty()).then(|| name.into())))
}

pub(super) fn set_name(session: &mut Session, words: &[Bytes]) -> ReplyResult {
    let name = name(&words[2], "Client names")?;
    session.client.known.lock().name = name;
    Ok(Reply::OK)
}

/// A name without spaces; an empty one means none.
pub(super) fn name(word: &[u8], what: &str) -> ReplyResult<String> {
    let is_plain = word.iter().all(|byte| (b'!'..=b'~').contains(byte));
    let name = std::str::from_utf8(word).ok().filter(|_| is_plain);
    let name = name.ok_or_else(|| {
        error(format!(
            "ERR {what} cannot contain spaces, newlines or special characters."
        ))
    })?;
    if name.len() > RESP_NAME_BYTES_MAX {
        return Err(error(format!(
            "ERR {what} may have {RESP_NAME_BYTES_MAX} bytes, this one has {}",
            name.len()
        )));
    }
    Ok(name.to_owned())
}

pub(super) fn set_info(session: &mut Session, words: &[Bytes]) -> ReplyResult {
    let (option, value) = (&words[2], &words[3]);
    if is(option, "lib-name") {
        session.client.known.lock().library = name(value, "lib-name")?;
    } else if is(option, "lib-ver") {
        session.client.known.lock().library_version = name(value, "lib-ver")?;
    } else {
        let option = String::from_utf8_lossy(option);
        return Err(error(format!("ERR Unrecognized option '{option}'")));
    }
    Ok(Reply::OK)
}

pub(super) fn info(session: &mut Session, _: &[Bytes]) -> ReplyResult {
    session.record_activity();
    Ok(Reply::Text(session.client.line() + "\n"))
}

pub(super) fn get_redirection(_: &mut Session, _: &[Bytes]) -> ReplyResult {
    Ok(Reply::Integer(-1))
}

pub(super) fn tracking_info(_: &mut Session, _: &[Bytes]) -> ReplyResult {
    Ok(Reply::Map(vec![
        (Reply::bulk("flags"), Reply::Set(vec![Reply::bulk("off")])),
        (Reply::bulk("redirect"), Reply::Integer(-1)),
        (Reply::bulk("prefixes"), Reply::Array(Vec::new())),
    ]))
}

/// Nothing is evicted here and nothing is touched by being read, so there is nothing to switch.
pub(super) fn on_or_off(_: &mut Session, words: &[Bytes]) -> ReplyResult {
    if is(&words[2], "on") || is(&words[2], "off") {
        return Ok(Reply::OK);
    }
    Err(syntax_error())
}

pub(super) fn reply(session: &mut Session, words: &[Bytes]) -> ReplyResult {
    let wanted = &words[2];
    if is(wanted, "on") {
        session.set_reply_mode(ReplyMode::On);
    } else if is(wanted, "off") {
        session.set_reply_mode(ReplyMode::Off);
    } else if is(wanted, "skip") {
        session.set_reply_mode(ReplyMode::SkipNext);
    } else {
        return Err(syntax_error());
    }
    Ok(Reply::OK)
}

/// Returns whether ordinary clients, the only ones there are, belong to a type.
fn has_ordinary_clients(client_type: &[u8]) -> ReplyResult<bool> {
    let others = ["master", "replica", "slave", "pubsub"];
    if is(client_type, "normal") {
        Ok(true)
    } else if others.iter().any(|other| is(client_type, other)) {
        Ok(false)
    } else {
        let client_type = String::from_utf8_lossy(client_type);
        Err(error(format!("ERR Unknown client type '{client_type}'")))
    }
}

pub(super) fn list(session: &mut Session, words: &[Bytes]) -> ReplyResult {
    session.record_activity();
    let mut clients = session.fellows();
    let mut words = Words::after(words, 2);
    if words.take("type") {
        if !has_ordinary_clients(words.word()?)? {
            clients.clear();
        }
        if !words.is_empty() {
            return Err(syntax_error());
        }
    } else if words.take("id") {
        let mut ids = vec![words.word()?];
        ids.extend(std::iter::from_fn(|| words.next()));
        let ids = ids
            .into_iter()
            .map(|id| client_id(id, "ERR Invalid client ID"));
        let ids = ids.collect::<ReplyResult<Vec<u64>>>()?;
        clients.retain(|client| ids.contains(&client.id));
    } else if !words.is_empty() {
        return Err(syntax_error());
    }
    let lines = clients.iter().map(|client| client.line() + "\n");
    Ok(Reply::Text(lines.collect()))
}

fn client_id(word: &[u8], wrong: &'static str) -> ReplyResult<u64> {
    let id = integer(word).ok().and_then(|id| u64::try_from(id).ok());
    id.filter(|id| *id > 0).ok_or_else(|| error(wrong))
}

pub(super) fn kill(session: &mut Session, words: &[Bytes]) -> ReplyResult {
    if let [_, _, address] = words {
        let clients = session.fellows();
        let mut clients = clients.iter();
        let client = clients.find(|client| has_address(client, address));
        session.end(client.ok_or_else(|| error("ERR No such client"))?);
        return Ok(Reply::OK);
    }
    let filter = ClientFilter::parse(Words::after(words, 2))?;
    if let Some(user) = filter.namespace.filter(|user| !session.knows_user(user)) {
        let user = beginning(user, RESP_REPEATED_BYTES_MAX);
        return Err(error(format!("ERR No such user '{user}'")));
    }
    let own = session.client.id;
    let mut clients = session.fellows();
    clients.retain(|client| filter.matches(client) && !(filter.skips_own && client.id == own));
    for client in &clients {
        session.end(client);
    }
    Ok(Reply::count(clients.len()))
}

fn has_address(client: &RespClient, address: &[u8]) -> bool {
    client.address.to_string().as_bytes() == address
}

/// Which clients `CLIENT KILL` means.
struct ClientFilter<'a> {
    id: Option<u64>,
    address: Option<&'a Bytes>,
    local: Option<&'a Bytes>,
    namespace: Option<&'a Bytes>,
    is_possible: bool,
    skips_own: bool,
}

impl<'a> ClientFilter<'a> {
    fn parse(mut words: Words<'a>) -> ReplyResult<Self> {
        let mut filter = Self {
            id: None,
            address: None,
            local: None,
            namespace: None,
            is_possible: true,
            skips_own: true,
        };
        while let Some(option) = words.next() {
            let value = words.word()?;
            if is(option, "id") {
                filter.id = Some(client_id(value, "ERR client-id should be greater than 0")?);
            } else if is(option, "addr") {
                filter.address = Some(value);
            } else if is(option, "laddr") {
                filter.local = Some(value);
            } else if is(option, "user") {
                filter.namespace = Some(value);
            } else if is(option, "type") {
                filter.is_possible = has_ordinary_clients(value)?;
            } else if is(option, "skipme") && (is(value, "yes") || is(value, "no")) {
                filter.skips_own = is(value, "yes");
            } else {
                return Err(syntax_error());
            }
        }
        Ok(filter)
    }

    fn matches(&self, client: &RespClient) -> bool {
        let known = client.known.lock();
        let namespace = known.namespace.as_ref().map_or("", NamespaceId::as_str);
        self.is_possible
            && self.id.is_none_or(|id| id == client.id)
            && self
                .address
                .is_none_or(|address| has_address(client, address))
            && self
                .local
                .is_none_or(|local| client.local.to_string().as_bytes() == local)
            && self
                .namespace
                .is_none_or(|wanted| namespace.as_bytes() == wanted)
    }
}
