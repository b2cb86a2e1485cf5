//! Carries out what is to be sent on: where the namespace is.

use std::io;
use std::pin::pin;
use std::sync::Arc;

use futures_util::future::BoxFuture;
use tokio::time::sleep;
use trefoil::{Error, NamespaceId, OpenDatabase, Reply, Token, Trace};

use super::super::command::AtOnce;
use super::super::failure::{of_error, of_failure};
use super::super::multi::Multi;
use super::super::output::RespOutput;
use super::super::session::Session;
use super::super::wishes::Wishes;
use super::super::words::error;
use super::errand::{Errand, ErrandKind, ExecErrand, Parcel, writes};
use super::is_wrong_node;
use super::link::{Introduction, LinkEnd, LinkReader, LinkReply, NoLink, OwnerLink, send};
use crate::connections::Protocol;
use crate::limits::{MOVE_PATIENCE, RESP_LINK_BYTES, RESP_LINK_PATIENCE};
use crate::peers::{ForwardOutcome, OwnerSearch, Place};
use crate::service::Shared;

impl Session {
    /// Carries out everything that waits to be sent on, and replies to it.
    pub(in super::super) fn run_errands<'s>(
        &'s mut self,
        output: &'s mut RespOutput,
    ) -> BoxFuture<'s, io::Result<()>> {
        Box::pin(async move {
            // The request that has to wait for these is still to come.
            let present = self.begin_run();
            let (command, is_silent) = (self.tally.last(), self.is_silent);
            let ran = self.find_and_run(output).await;
            self.tally.turn_to(command);
            self.is_silent = is_silent;
            if let Some(relay) = &mut self.relay {
                relay.is_running = false;
                relay.present = present;
            }
            ran
        })
    }

    fn begin_run(&mut self) -> Option<Errand> {
        let relay = self.relay.as_mut()?;
        relay.is_running = true;
        relay.present.take()
    }

    async fn find_and_run(&mut self, output: &mut RespOutput) -> io::Result<()> {
        let Some(namespace) = self.namespace.clone() else {
            return Ok(());
        };
        let mut search = OwnerSearch::new(&self.shared, MOVE_PATIENCE);
        loop {
            self.put_ready(output).await?;
            if !self.has_errands() {
                return Ok(());
            }
            if let Err(reply) = self.check_not_revoked() {
                return self.fail_errands(&reply, output).await;
            }
            let place = search.place(&self.shared, &namespace, &self.trace).await;
            match place {
                Err(failure) => return self.fail_errands(&of_failure(&failure), output).await,
                Ok(Place::Here(database)) => self.run_here(database, output).await?,
                Ok(Place::There(owner)) => self.run_there(&namespace, &owner, output).await?,
            }
            if self.has_errands() && !search.goes_on(&self.shared, &namespace, None).await {
                let elsewhere = Error::NotOwner {
                    namespace: namespace.to_string(),
                    owner: None,
                };
                return self.fail_errands(&of_error(&elsewhere), output).await;
            }
        }
    }

    fn next_errand(&mut self) -> Option<Errand> {
        self.relay.as_mut()?.errands.pop_front()
    }

    /// Puts the replies that need not wait any more.
    async fn put_ready(&mut self, output: &mut RespOutput) -> io::Result<()> {
        while let Some(relay) = &mut self.relay {
            let is_ready = |errand: &mut Errand| matches!(errand.kind, ErrandKind::Ready(_));
            let Some(errand) = relay.errands.pop_front_if(is_ready) else {
                break;
            };
            self.put_for(&errand, None, output).await?;
        }
        Ok(())
    }

    /// Replies to an errand: with its own reply, or this one.
    async fn put_for(
        &self,
        errand: &Errand,
        reply: Option<&Reply>,
        output: &mut RespOutput,
    ) -> io::Result<()> {
        let reply = match (&errand.kind, reply) {
            (ErrandKind::Ready(reply), _) => reply,
            (_, Some(reply)) => {
                self.note_error(errand.command, reply);
                reply
            }
            (_, None) => return Ok(()),
        };
        match errand.is_silent {
            true => Ok(()),
            false => output.put(reply, self.protocol).await,
        }
    }

    /// Replies with an error to everything that waits.
    async fn fail_errands(&mut self, reply: &Reply, output: &mut RespOutput) -> io::Result<()> {
        while let Some(errand) = self.next_errand() {
            self.put_for(&errand, Some(reply), output).await?;
        }
        Ok(())
    }

    /// Ends the connection, because what the client watches is not watched any more.
    async fn break_off(&mut self, output: &mut RespOutput) -> io::Result<()> {
        let namespace = self.user();
        let reply = error(format!(
            "WRONGNODE namespace '{namespace}' has moved to another node while keys of it were \
             watched: connect again"
        ));
        while let Some(errand) = self.next_errand() {
            let is_ready = matches!(errand.kind, ErrandKind::Ready(_));
            self.put_for(&errand, Some(&reply), output).await?;
            if !is_ready {
                break;
            }
        }
        self.forget_relay();
        self.is_closing = true;
        Ok(())
    }

    /// Carries out everything here. What is refused because the namespace has gone meanwhile waits again.
    async fn run_here(
        &mut self,
        database: OpenDatabase,
        output: &mut RespOutput,
    ) -> io::Result<()> {
        let Some(relay) = &mut self.relay else {
            return Ok(());
        };
        if relay.is_watching {
            return self.break_off(output).await;
        }
        relay.is_away = false;
        relay.link = None;
        let errands = std::mem::take(&mut relay.errands);
        self.database = Some(database.traced(&self.trace));
        // What came later has been noted already.
        let (multi, wishes) = (self.multi.take(), std::mem::take(&mut self.wishes));
        for errand in errands {
            self.run_one_here(errand, output).await?;
        }
        self.settle_batch(output).await?;
        (self.multi, self.wishes) = (multi, wishes);
        Ok(())
    }

    async fn run_one_here(&mut self, errand: Errand, output: &mut RespOutput) -> io::Result<()> {
        self.is_silent = errand.is_silent;
        self.tally.turn_to(errand.command);
        match errand.kind {
            ErrandKind::Ready(reply) => self.put_in_order(reply, output).await,
            ErrandKind::Unwatch => {
                self.watched = None;
                Ok(())
            }
            ErrandKind::Single(single) => {
                if writes(single.found) {
                    self.wishes.commit_id = single.commit_id;
                }
                self.dispatch(single.found, single.words, output).await
            }
            ErrandKind::Exec(exec) => {
                let mut multi = Multi::new(&self.guest.share, true);
                for words in exec.queued {
                    if let Ok(found) = self.shared.resp.catalogue.find(&words) {
                        // It was queued before, so it can be queued.
                        let _ = multi.queue(found, words);
                    }
                }
                self.multi = Some(multi);
                self.wishes = Wishes {
                    strict: exec.strict,
                    commit_id: exec.commit_id,
                };
                self.at_once(AtOnce::Exec, &exec.exec, output).await
            }
        }
    }

    /// Has another node carry out everything. What it did certainly not carry out waits again.
    async fn run_there(
        &mut self,
        namespace: &NamespaceId,
        owner: &Arc<str>,
        output: &mut RespOutput,
    ) -> io::Result<()> {
        let depends_on_here = |errand: &Errand| {
            matches!(
                &errand.kind,
                ErrandKind::Exec(ExecErrand {
                    is_watching: true,
                    ..
                })
            )
        };
        let Some(relay) = &mut self.relay else {
            return Ok(());
        };
        relay.is_away = true;
        let link = relay.link.take();
        let link = link.and_then(|link| link.usable_for(owner));
        let is_lost = relay.is_watching && link.is_none();
        let was_here = self.watched.is_some() || relay.errands.iter().any(depends_on_here);
        if is_lost || was_here {
            return self.break_off(output).await;
        }
        let link = match link {
            Some(link) => Ok(link),
            None => self.open_link(namespace, owner).await,
        };
        match link {
            Ok(link) => self.use_link(link, namespace, output).await,
            Err(NoLink::Unreachable(why)) => {
                tracing::debug!(why, "another node cannot be reached");
                self.count_forwarded(ForwardOutcome::NotExecuted);
                Ok(())
            }
            Err(NoLink::Refused(text)) => self.fail_errands(&error(text), output).await,
        }
    }

    fn count_forwarded(&self, outcome: ForwardOutcome) {
        if let Some(peers) = &self.shared.peers {
            peers.counts.count(Protocol::Resp, outcome);
        }
    }

    async fn open_link(
        &mut self,
        namespace: &NamespaceId,
        owner: &Arc<str>,
    ) -> Result<OwnerLink, NoLink> {
        let (Some(peers), Some(relay)) = (&self.shared.peers, &self.relay) else {
            return Err(NoLink::Unreachable("there is no other node".into()));
        };
        let mut memory = self.guest.share.for_request();
        if let Err(failure) = memory.grow_to(RESP_LINK_BYTES) {
            return Err(NoLink::Refused(format!("BUSY {}", failure.message)));
        }
        let stream = peers.dial(owner, Protocol::Resp).await;
        let stream = stream.map_err(|error| NoLink::Unreachable(format!("{owner}: {error}")))?;
        let name = self.client.known.lock().name.clone();
        let client = Introduction {
            protocol: self.protocol,
            token: { relay.token.as_ref() }
                .map(|token: &Token| (namespace.as_str(), token.reveal())),
            name: &name,
        };
        OwnerLink::begin(stream, owner, client, memory).await
    }

    /// Sends everything over a connection, and passes the replies on.
    async fn use_link(
        &mut self,
        mut link: OwnerLink,
        namespace: &NamespaceId,
        output: &mut RespOutput,
    ) -> io::Result<()> {
        let (parcel, n_skipped) = self.pack(&mut link);
        let (parts, copied) = parcel.close();
        if let Err(failure) = link.memory.grow_to(RESP_LINK_BYTES + copied) {
            return self.fail_errands(&of_failure(&failure), output).await;
        }
        let ended = {
            let moved = until_moved(Arc::clone(&self.shared), namespace, &link.address);
            let mut moved = pin!(moved);
            let mut sent = pin!(send(&mut link.requests, parts));
            let mut is_sent = false;
            let mut taken = pin!(self.take_replies(&mut link.replies, &n_skipped, output));
            loop {
                tokio::select! {
                    biased;
                    taken = &mut taken => break taken?,
                    // If this fails, so does reading.
                    _ = &mut sent, if !is_sent => is_sent = true,
                    () = &mut moved => break Err(LinkEnd::Broken("the namespace has moved".into())),
                }
            }
        };
        link.memory.shrink_to(RESP_LINK_BYTES);
        self.after_replies(ended, link, namespace, output).await
    }

    /// Goes on after the replies that came.
    async fn after_replies(
        &mut self,
        ended: Result<(), LinkEnd>,
        link: OwnerLink,
        namespace: &NamespaceId,
        output: &mut RespOutput,
    ) -> io::Result<()> {
        let Some(relay) = &mut self.relay else {
            return Ok(());
        };
        if relay.is_passing {
            return Err(io::Error::other("a reply of another node was cut short"));
        }
        let why = match ended {
            Ok(()) => {
                if let Some(peers) = &self.shared.peers {
                    peers.found(namespace, &link.address);
                }
                relay.link = Some(link);
                return Ok(());
            }
            Err(LinkEnd::Proper) if relay.is_watching => return self.break_off(output).await,
            Err(LinkEnd::Proper) => {
                self.count_forwarded(ForwardOutcome::NotExecuted);
                return Ok(());
            }
            Err(LinkEnd::Broken(why)) => why,
        };
        let was_watching = std::mem::take(&mut relay.is_watching);
        if !was_watching && relay.errands.iter().all(Errand::changes_nothing) {
            self.count_forwarded(ForwardOutcome::NotExecuted);
            return Ok(());
        }
        self.count_forwarded(ForwardOutcome::Lost);
        self.is_closing |= was_watching;
        let text = format!("the connection to the node that has the namespace was lost: {why}");
        let unknown = of_error(&Error::result_lost(text));
        self.fail_errands(&unknown, output).await
    }

    /// Returns all requests as bytes, and how many replies nobody wants before that of each that is sent.
    fn pack(&mut self, link: &mut OwnerLink) -> (Parcel, Vec<usize>) {
        let mut parcel = Parcel::default();
        let mut first = 0;
        if link.protocol != self.protocol {
            parcel.add_words(&["HELLO", &self.protocol.number().to_string()]);
            link.protocol = self.protocol;
            first = 1;
        }
        let errands = self.relay.iter().flat_map(|relay| &relay.errands);
        let errands = errands.filter(|errand| !matches!(errand.kind, ErrandKind::Ready(_)));
        let n_skipped = errands.map(|errand| {
            std::mem::take(&mut first) + pack_one(errand, &mut parcel, &mut link.strict)
        });
        let n_skipped = n_skipped.collect();
        (parcel, n_skipped)
    }

    /// Passes replies on until everything is answered.
    async fn take_replies(
        &mut self,
        replies: &mut LinkReader,
        n_skipped: &[usize],
        output: &mut RespOutput,
    ) -> io::Result<Result<(), LinkEnd>> {
        for n_skipped in n_skipped {
            for _ in 0..*n_skipped {
                if let Err(end) = skip_one(replies).await {
                    return Ok(Err(end));
                }
            }
            self.put_ready(output).await?;
            let reply = match replies.next().await {
                Ok(LinkReply::Error(text)) => Some(error(text)),
                Ok(LinkReply::Other) => None,
                Err(end) => return Ok(Err(end)),
            };
            if reply.as_ref().is_some_and(is_wrong_node) {
                return Ok(Err(LinkEnd::Proper));
            }
            if let Err(end) = self.pass_on(reply, replies, output).await? {
                return Ok(Err(end));
            }
        }
        Ok(Ok(()))
    }

    /// Replies to the first errand: with this error, or with what another node sends.
    async fn pass_on(
        &mut self,
        reply: Option<Reply>,
        replies: &mut LinkReader,
        output: &mut RespOutput,
    ) -> io::Result<Result<(), LinkEnd>> {
        let Some(errand) = self.next_errand() else {
            return Ok(Ok(()));
        };
        self.count_forwarded(ForwardOutcome::Answered);
        if let Some(relay) = &mut self.relay {
            match errand.kind {
                ErrandKind::Exec(_) | ErrandKind::Unwatch => relay.is_watching = false,
                _ if errand.watches() => relay.is_watching |= reply.is_none(),
                _ => {}
            }
        }
        match reply {
            Some(reply) => self.put_for(&errand, Some(&reply), output).await.map(Ok),
            None if errand.is_silent => Ok(replies.skip().await),
            None => {
                self.set_passing(true);
                replies.pass(output).await?;
                self.set_passing(false);
                Ok(Ok(()))
            }
        }
    }

    fn set_passing(&mut self, is_passing: bool) {
        if let Some(relay) = &mut self.relay {
            relay.is_passing = is_passing;
        }
    }
}

/// Adds the requests of an errand. Returns how many replies nobody wants before its own.
fn pack_one(errand: &Errand, parcel: &mut Parcel, strict: &mut Option<bool>) -> usize {
    let mut n_before = 0;
    let mut name = |parcel: &mut Parcel, commit_id: &Option<bytes::Bytes>| {
        if let Some(id) = commit_id {
            parcel.add(&["TREFOIL.COMMITID".into(), id.clone()]);
            n_before += 1;
        }
    };
    match &errand.kind {
        ErrandKind::Ready(_) => {}
        ErrandKind::Unwatch => parcel.add_words(&["UNWATCH"]),
        ErrandKind::Single(single) => {
            name(parcel, &single.commit_id);
            parcel.add(&single.words);
        }
        ErrandKind::Exec(exec) => {
            name(parcel, &exec.commit_id);
            if exec.strict.unwrap_or(false) != strict.unwrap_or(false) {
                let wanted = exec.strict.unwrap_or(false);
                parcel.add_words(&["TREFOIL.STRICT", if wanted { "ON" } else { "OFF" }]);
                *strict = Some(wanted);
                n_before += 1;
            }
            parcel.add_words(&["MULTI"]);
            for words in &exec.queued {
                parcel.add(words);
            }
            parcel.add(&exec.exec);
            n_before += 1 + exec.queued.len();
        }
    }
    n_before
}

/// Skips a reply that nobody wants.
async fn skip_one(replies: &mut LinkReader) -> Result<(), LinkEnd> {
    match replies.next().await? {
        LinkReply::Error(_) => Ok(()),
        LinkReply::Other => replies.skip().await,
    }
}

/// Waits until a namespace is not at this address any more: a node that has been paused or cut off does
/// not say so itself.
async fn until_moved(shared: Arc<Shared>, namespace: &NamespaceId, owner: &str) {
    loop {
        sleep(RESP_LINK_PATIENCE).await;
        if let Some(peers) = &shared.peers {
            peers.forget(namespace);
        }
        let found = shared.database(namespace, &Trace::default(), false).await;
        let elsewhere = match &found {
            Ok(_) => return,
            Err(failure) => failure.elsewhere.as_ref(),
        };
        let now = elsewhere.and_then(|elsewhere| elsewhere.owner.as_deref());
        if now.is_some_and(|now| now != owner) {
            return;
        }
    }
}
