//! Which commands a token permits: by what each needs, and by the streams and keys among its words.

use bytes::Bytes;
use trefoil::{CommandSpec, Grant, Result, Source};

use super::super::words::is;
use super::catalogue::{Catalogue, CatalogueEntry, KeyPlace};
use super::event::{NO_STREAM, requirement};
use super::{AtOnce, CommandAction, EventLookup, FoundCommand, Own};
use crate::permit;

impl Catalogue {
    /// Refuses a command that the token does not permit.
    pub(in super::super) fn permit(
        &self,
        grant: &Grant,
        found: FoundCommand,
        words: &[Bytes],
    ) -> Result<()> {
        match found {
            _ if grant.permission().is_all() => Ok(()),
            FoundCommand::State(spec) => self.permit_on_state(grant, spec, words),
            FoundCommand::Own(own) => permit_own(grant, own, words),
        }
    }

    /// Refuses a command on the state.
    pub(crate) fn permit_on_state(
        &self,
        grant: &Grant,
        spec: &CommandSpec,
        words: &[Bytes],
    ) -> Result<()> {
        grant.require(spec.scope)?;
        if !grant.permission().is_confined() {
            return Ok(());
        }
        // What a command of an application touches, its words do not say.
        let entry = self.named(words).and_then(|name| self.entry(name));
        let entry =
            entry.filter(|entry| !spec.is_of_application() && !entry.looks_elsewhere(words));
        let keys = entry.and_then(|entry| entry.keys_of(words));
        match keys.filter(|keys| !keys.is_empty()) {
            Some(keys) => keys.into_iter().try_for_each(|key| grant.require_key(key)),
            None => grant.require_unconfined(),
        }
    }
}

impl CatalogueEntry {
    /// Returns whether a command reads keys that it does not name, as `SORT` does with `BY` and `GET`.
    fn looks_elsewhere(&self, words: &[Bytes]) -> bool {
        let mut keys = self.keys.iter();
        let may_look = keys.any(|key| key.place == KeyPlace::Unknown && key.flags.contains(&"RO"));
        may_look && { words.iter().skip(2) }.any(|word| is(word, "by") || is(word, "get"))
    }
}

fn permit_own(grant: &Grant, own: &Own, words: &[Bytes]) -> Result<()> {
    own.need.check(grant)?;
    // A name that is not text is refused by the command itself.
    let name = words.get(1).and_then(|word| std::str::from_utf8(word).ok());
    let name = name.unwrap_or_default();
    match own.action {
        _ if !grant.permission().is_confined() => Ok(()),
        CommandAction::Append => grant.require_stream(Some(name).filter(|name| *name != NO_STREAM)),
        CommandAction::Look(EventLookup::Stream | EventLookup::Last | EventLookup::Version) => {
            grant.require_stream(Some(name))
        }
        CommandAction::Look(EventLookup::Category) => {
            grant.require_source(&Source::Category(name.to_owned()))
        }
        CommandAction::Look(EventLookup::Query | EventLookup::Head) => grant.require_unconfined(),
        CommandAction::Require => match requirement(words) {
            Ok(condition) => permit::conditions(grant, &[condition]),
            // It says itself what is wrong.
            Err(_) => Ok(()),
        },
        CommandAction::AtOnce(AtOnce::Watch) => {
            let mut keys = words.iter().skip(1);
            keys.try_for_each(|key| grant.require_key(key))
        }
        _ => Ok(()),
    }
}
