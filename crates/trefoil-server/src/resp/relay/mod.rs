//! Requests of a client whose namespace is on another node: they are sent there, and the replies come
//! back in the order of the requests.
//!
//! ```text
//! mod       which requests are sent on: all that need the namespace, once one of them was refused here
//! run       finds out where the namespace is, and carries them out there or here
//! errand    a request on its way
//! link      the client's connection to the other node
//! scanner   finds where a reply ends
//! ```
//!
//! The other node knows who the client is, how it wants to be answered and which keys it watches. All
//! else stays here: a transaction is queued here and sent as a whole, so it may move between `MULTI` and
//! `EXEC`. Keys that are watched cannot move: then the connection ends.

mod errand;
mod link;
mod run;
mod scanner;

use std::collections::VecDeque;
use std::io;

use bytes::Bytes;
use trefoil::{Error, Reply, Token};

use super::command::FoundCommand;
use super::failure::of_error;
use super::output::RespOutput;
use super::session::{Outcomes, ReplyShape, ReplySlot, Session};
use super::words::{error, is};
use errand::{ErrandKind, ExecErrand, SingleErrand, needs_owner, writes};
use link::OwnerLink;

pub(super) use errand::Errand;

/// What a client needs whose namespace may be on another node.
#[derive(Debug, Default)]
pub(super) struct Relay {
    /// How it has shown who it is.
    token: Option<Token>,
    /// What is to be sent on, and the replies that come after that.
    errands: VecDeque<Errand>,
    /// The present request, as long as it may have to be sent on.
    present: Option<Errand>,
    link: Option<OwnerLink>,
    /// Whether the namespace was on another node when it was needed last.
    is_away: bool,
    /// Whether keys are watched there.
    is_watching: bool,
    /// Whether errands are being carried out.
    is_running: bool,
    /// Whether the client has got a part of a reply.
    is_passing: bool,
}

impl Relay {
    /// Returns whether there is something to be sent on, and nobody does.
    fn is_due(&self) -> bool {
        !self.errands.is_empty() && !self.is_running
    }
}

/// Returns whether nothing was done because the namespace is on another node.
pub(super) fn is_wrong_node(reply: &Reply) -> bool {
    matches!(reply, Reply::Error(text) if text.starts_with("WRONGNODE "))
}

impl Session {
    /// Returns what a new client needs.
    pub(super) fn new_relay(&self) -> Option<Box<Relay>> {
        let may_relay = self.shared.peers.is_some() && !self.guest.is_peer;
        may_relay.then(Box::default)
    }

    /// The client has shown who it is by this token.
    pub(super) fn keep_token(&mut self, token: Option<Token>) {
        if let Some(relay) = &mut self.relay {
            relay.token = token;
        }
    }

    /// The client is another one from now on.
    pub(super) fn forget_relay(&mut self) {
        if let Some(relay) = &mut self.relay {
            **relay = Relay::default();
        }
    }

    /// Everything that has arrived is answered: nothing of it has to be sent on.
    pub(super) fn forget_present(&mut self) {
        if let Some(relay) = &mut self.relay {
            relay.present = None;
        }
    }

    /// Looks whether the namespace has come here, before requests that have arrived are carried out.
    pub(super) fn look_around(&mut self) {
        if let (Some(relay), Some(namespace)) = (&mut self.relay, &self.namespace)
            && relay.is_away
            && !relay.is_watching
            && self.shared.namespaces.opened(namespace).is_some()
        {
            relay.is_away = false;
            relay.link = None;
        }
    }

    /// Returns whether what is for the namespace is sent on.
    pub(super) fn sends_on(&self) -> bool {
        let relay = self.relay.as_ref();
        relay.is_some_and(|relay| relay.is_away || !relay.errands.is_empty())
    }

    /// Returns whether replies have to wait for those of another node.
    pub(super) fn has_errands(&self) -> bool {
        let relay = self.relay.as_ref();
        relay.is_some_and(|relay| !relay.errands.is_empty())
    }

    /// Returns whether there is something to be sent on now.
    pub(super) fn must_run(&self) -> bool {
        self.relay.as_ref().is_some_and(|relay| relay.is_due())
    }

    /// Sends a request on if its namespace is elsewhere, and otherwise remembers it in case that turns
    /// out. Returns whether it is on its way.
    pub(super) fn send_on(&mut self, found: FoundCommand, words: &[Bytes]) -> bool {
        let sends_on = self.sends_on();
        let Some(relay) = &mut self.relay else {
            return false;
        };
        relay.present = None;
        if self.multi.is_some() || !needs_owner(found) {
            return false;
        }
        let commit_id = match writes(found) {
            true if sends_on => self.wishes.commit_id.take(),
            true => self.wishes.commit_id.clone(),
            false => None,
        };
        let errand = Errand {
            kind: ErrandKind::Single(SingleErrand {
                found,
                words: words.to_vec(),
                commit_id,
            }),
            command: self.tally.last(),
            is_silent: self.is_silent,
        };
        match sends_on {
            true => relay.errands.push_back(errand),
            false => relay.present = Some(errand),
        }
        sends_on
    }

    /// Returns the transaction that is being queued, as it is sent on.
    pub(super) fn exec_errand(&mut self, exec: &[Bytes]) -> Option<Errand> {
        self.relay.as_ref()?;
        let queued = self.multi.as_mut()?.take_words();
        let changes_replies = |words: &Vec<Bytes>| {
            let subcommand = words.get(1).filter(|_| is(&words[0], "client"));
            subcommand.is_some_and(|word| is(word, "reply"))
        };
        let kind = match queued.iter().any(changes_replies) {
            true => ErrandKind::Ready(error(
                "EXECABORT CLIENT REPLY cannot be part of a transaction on another node",
            )),
            false => ErrandKind::Exec(ExecErrand {
                queued,
                exec: exec.to_vec(),
                strict: self.wishes.strict,
                commit_id: self.wishes.commit_id.clone(),
                is_watching: self.watched.is_some(),
            }),
        };
        Some(Errand {
            kind,
            command: self.tally.last(),
            is_silent: self.is_silent,
        })
    }

    /// Sends a transaction on if its namespace is elsewhere, and otherwise remembers it. Returns whether
    /// it is on its way.
    pub(super) fn send_exec_on(&mut self, errand: Option<Errand>) -> bool {
        let sends_on = self.sends_on();
        let (Some(relay), Some(errand)) = (&mut self.relay, errand) else {
            return false;
        };
        if !sends_on {
            relay.present = Some(errand);
            return false;
        }
        let is_refused = matches!(errand.kind, ErrandKind::Ready(_));
        relay.errands.push_back(errand);
        if is_refused {
            self.unwatch_there();
        }
        true
    }

    /// Returns the present request, which has become part of a batch.
    pub(super) fn take_present(&mut self) -> Option<Box<Errand>> {
        let relay = self.relay.as_mut()?;
        relay.present.take().map(Box::new)
    }

    /// The present request was refused because its namespace is elsewhere: sends it on. Returns whether
    /// it is on its way.
    pub(super) fn send_present_on(&mut self) -> bool {
        let Some(relay) = &mut self.relay else {
            return false;
        };
        let Some(errand) = relay.present.take() else {
            return false;
        };
        relay.is_away = true;
        relay.errands.push_back(errand);
        // It is opened again where it is.
        self.database = None;
        true
    }

    /// Puts a reply behind those of another node.
    pub(super) fn reply_later(&mut self, reply: Reply, command: &'static str, is_silent: bool) {
        if let Some(relay) = &mut self.relay {
            relay.errands.push_back(Errand {
                kind: ErrandKind::Ready(reply),
                command,
                is_silent,
            });
        }
    }

    /// The keys that are watched on another node are not, from now on.
    pub(super) fn unwatch_there(&mut self) {
        let command = self.tally.last();
        let Some(relay) = &mut self.relay else {
            return;
        };
        // What is to be watched there may still be on its way.
        let was_watching = std::mem::take(&mut relay.is_watching);
        if was_watching || relay.errands.iter().any(Errand::watches) {
            relay.errands.push_back(Errand {
                kind: ErrandKind::Unwatch,
                command,
                is_silent: true,
            });
        }
    }

    /// Replies to the requests of a batch, where several nodes share the namespaces. Those at its end
    /// that were refused because the namespace is elsewhere are sent on; a peer is told, and that is the
    /// last that it is told. One that was refused before others that were carried out cannot be
    /// repeated after them.
    pub(super) async fn settle_among_nodes(
        &mut self,
        slots: Vec<ReplySlot>,
        mut outcomes: Outcomes,
        output: &mut RespOutput,
    ) -> io::Result<()> {
        let mut replies = Vec::with_capacity(slots.len());
        for slot in slots {
            let is_new = !matches!(slot.shape, ReplyShape::Ready(_));
            let reply = outcomes.take(slot.shape);
            replies.push((reply, is_new, slot.command, slot.is_silent, slot.errand));
        }
        let is_done = |reply: &Reply, is_new: bool| is_new && !is_wrong_node(reply);
        let last = { replies.iter() }.rposition(|(reply, is_new, ..)| is_done(reply, *is_new));
        for (index, (mut reply, is_new, command, is_silent, errand)) in
            replies.into_iter().enumerate()
        {
            if is_new && is_wrong_node(&reply) {
                if last.is_some_and(|last| index < last) {
                    let text = "the namespace has moved while it was answered";
                    reply = of_error(&Error::result_lost(text));
                } else if let (Some(relay), Some(errand)) = (&mut self.relay, errand) {
                    relay.is_away = true;
                    relay.errands.push_back(*errand);
                    continue;
                } else {
                    self.is_closing |= self.guest.is_peer;
                }
            }
            if is_new {
                self.note_error(command, &reply);
            }
            if self.has_errands() {
                self.reply_later(reply, command, is_silent);
            } else if !is_silent && !output.put_short(&reply, self.protocol) {
                output.put(&reply, self.protocol).await?;
            }
            if self.is_closing && self.guest.is_peer {
                break;
            }
        }
        if self.has_errands() {
            self.database = None;
        }
        Ok(())
    }
}
