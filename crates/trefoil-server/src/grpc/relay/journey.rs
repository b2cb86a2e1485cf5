//! A stream, over as many nodes as it takes: when its namespace moves, it goes on where that is.

use bytes::Bytes;
use futures_util::stream::{self, StreamExt as _};
use tonic::Status;
use trefoil::Error;

use super::super::body::{GrpcAnswer, MessageFrames};
use super::super::call::Method;
use super::super::status::{Result, of_error};
use super::connections::PeerFailure;
use super::messages::{PeerMessages, failure_of};
use super::progress::StreamProgress;
use super::{RelayedCall, answer_here};
use crate::limits::{MOVE_PATIENCE, SUBSCRIPTION_MOVE_PATIENCE};
use crate::peers::{OwnerSearch, Place};

/// Where the rest of a stream comes from.
enum Leg {
    Here(MessageFrames),
    There(Box<PeerMessages>),
    /// These are the last responses, or none.
    Last(Bytes),
}

/// A stream on its way to a client.
struct Journey {
    call: RelayedCall,
    progress: StreamProgress,
    leg: Leg,
}

/// Begins a stream.
pub(super) async fn begin(call: RelayedCall) -> Result<GrpcAnswer> {
    let mut journey = Journey {
        leg: Leg::Last(Bytes::new()),
        progress: StreamProgress::default(),
        call,
    };
    let mut search = OwnerSearch::new(&journey.call.shared, MOVE_PATIENCE);
    journey.go_on(&mut search).await?;
    if let Leg::Last(frames) = journey.leg {
        return Ok(GrpcAnswer::Whole(frames));
    }
    let frames = stream::unfold(Some(journey), |journey| async move {
        let mut journey = journey?;
        match journey.next().await {
            Ok(Some(frames)) => Some((Ok(frames), Some(journey))),
            Ok(None) => None,
            Err(status) => Some((Err(status), None)),
        }
    });
    Ok(GrpcAnswer::stream(frames.boxed()))
}

impl Journey {
    /// Returns the next responses; `None` at the end.
    async fn next(&mut self) -> Result<Option<Bytes>> {
        let patience = match self.call.method {
            Method::Subscribe => SUBSCRIPTION_MOVE_PATIENCE,
            _ => MOVE_PATIENCE,
        };
        let mut search = None;
        loop {
            let why = match self.leg.next(&self.call).await {
                Ok(Some(frames)) if self.progress.note(&frames) => return Ok(Some(frames)),
                Ok(Some(_)) => continue,
                Ok(None) => return Ok(None),
                Err(failure) => interruption(failure)?,
            };
            let search =
                search.get_or_insert_with(|| OwnerSearch::new(&self.call.shared, patience));
            if !self.call.goes_on(search, &why).await {
                return Err(why);
            }
            self.go_on(search).await?;
        }
    }

    /// Goes on where the namespace is now.
    async fn go_on(&mut self, search: &mut OwnerSearch) -> Result<()> {
        let message = &self.call.request.message;
        let rest = match self.call.method {
            Method::Subscribe => self.progress.rest_of_subscribe(message),
            _ => self.progress.rest_of_read(message),
        };
        let Some(rest) = rest else {
            self.leg = Leg::Last(Bytes::new());
            return Ok(());
        };
        loop {
            let why = match self.begin_leg(&rest, search).await? {
                Ok((leg, as_of)) => {
                    self.leg = leg;
                    self.progress.as_of = self.progress.as_of.or(as_of);
                    return Ok(());
                }
                Err(failure) => interruption(failure)?,
            };
            if !self.call.goes_on(search, &why).await {
                return Err(why);
            }
        }
    }

    /// Asks for what is left where the namespace is. Returns also up to where the log is read, if that
    /// is told.
    async fn begin_leg(
        &mut self,
        rest: &Bytes,
        search: &mut OwnerSearch,
    ) -> Result<Result<(Leg, Option<u64>), PeerFailure>> {
        let known = self.progress.known();
        let database = match self.call.place(search).await? {
            Place::Here(database) => database,
            Place::There(owner) => {
                let sent = self.call.send(&owner, rest, known).await;
                return Ok(sent.map(|(messages, as_of)| (Leg::There(Box::new(messages)), as_of)));
            }
        };
        let request = self.call.request.with_message(rest.clone());
        let answer = answer_here(self.call.task(), database, &request, known).await;
        Ok(match answer {
            Ok(GrpcAnswer::Stream { frames, as_of }) => Ok((Leg::Here(frames), as_of)),
            Ok(GrpcAnswer::Whole(frames)) => Ok((Leg::Last(frames), None)),
            Err(status) => Err(failure_of(status)),
        })
    }
}

/// Returns why a stream goes on elsewhere; an error is one that ends it.
fn interruption(failure: PeerFailure) -> Result<Box<Status>> {
    match failure {
        PeerFailure::Answered(status) => Err(status),
        PeerFailure::Elsewhere(status) => Ok(status),
        PeerFailure::Lost(why) => Ok(of_error(&Error::result_lost(why))),
    }
}

impl Leg {
    /// Returns the next responses; `None` at the end of the whole stream.
    async fn next(&mut self, call: &RelayedCall) -> Result<Option<Bytes>, PeerFailure> {
        match self {
            Self::Last(frames) => {
                let frames = std::mem::take(frames);
                Ok(Some(frames).filter(|frames| !frames.is_empty()))
            }
            Self::Here(frames) => frames.next().await.transpose().map_err(failure_of),
            Self::There(messages) => {
                let follows = call.method == Method::Subscribe;
                let next = tokio::select! {
                    next = messages.next() => next?,
                    // A read is finished while the server stops.
                    () = call.shared.closing.cancelled(), if follows => return Ok(None),
                };
                match next {
                    // A node ends its subscriptions when it stops; the clients of others go on.
                    None if follows => Err(PeerFailure::Lost("the node was stopped".into())),
                    next => Ok(next),
                }
            }
        }
    }
}
