//! The body of a client's request on its way: to the endpoint, or to the node that has the namespace. As
//! long as that node may turn out to be the wrong one, what it was sent is kept, to be sent again.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use hyper::body::{Body, Frame, Incoming, SizeHint};
use parking_lot::Mutex;

use crate::budget::Reservation;
use crate::limits::PEER_KEPT_BODY_BYTES;
use crate::response::StreamError;

/// The body of a request as it is read here.
#[derive(Debug)]
pub(crate) enum ClientBody {
    /// As it comes in.
    Incoming(Incoming),
    /// After a part of it was sent to a node that did not want it.
    Resumed(KeptBody),
}

/// The body of a request as it is sent to a peer.
#[derive(Debug)]
pub(crate) enum SentBody {
    Whole(Bytes),
    Kept(KeptBody),
}

/// A body that can be begun again while little of it has been taken.
#[derive(Debug, Clone)]
pub(crate) struct RepeatableBody(Arc<Mutex<TakenBody>>);

#[derive(Debug)]
struct TakenBody {
    incoming: ClientBody,
    /// What was taken of it; `None` if that was too much to keep.
    kept: Option<Vec<Bytes>>,
    kept_bytes: usize,
    /// How often it was begun. Only the last reader gets anything.
    n_begun: u64,
    /// The memory for what is kept.
    _reservation: Reservation,
}

/// One of those that read such a body.
#[derive(Debug)]
pub(crate) struct KeptBody {
    held: Arc<Mutex<TakenBody>>,
    /// Which time it was begun for this one.
    number: u64,
    /// How many pieces it has had.
    n_taken: usize,
}

impl RepeatableBody {
    /// Takes a body; `reservation` is made as large as what may be kept.
    pub(crate) fn new(
        incoming: ClientBody,
        mut reservation: Reservation,
    ) -> crate::error::Result<Self> {
        reservation.grow_to(PEER_KEPT_BODY_BYTES)?;
        Ok(Self(Arc::new(Mutex::new(TakenBody {
            incoming,
            kept: Some(Vec::new()),
            kept_bytes: 0,
            n_begun: 0,
            _reservation: reservation,
        }))))
    }

    /// Begins the body again. `None` if it cannot be.
    pub(crate) fn begin(&self) -> Option<KeptBody> {
        let mut held = self.0.lock();
        held.kept.as_ref()?;
        held.n_begun += 1;
        Some(KeptBody {
            held: Arc::clone(&self.0),
            number: held.n_begun,
            n_taken: 0,
        })
    }
}

impl TakenBody {
    fn keep(&mut self, bytes: &Bytes) {
        self.kept_bytes += bytes.len();
        match &mut self.kept {
            Some(kept) if self.kept_bytes <= PEER_KEPT_BODY_BYTES => kept.push(bytes.clone()),
            _ => self.kept = None,
        }
    }
}

type PolledFrame = Poll<Option<Result<Frame<Bytes>, StreamError>>>;

impl Body for KeptBody {
    type Data = Bytes;
    type Error = StreamError;

    fn poll_frame(self: Pin<&mut Self>, context: &mut Context<'_>) -> PolledFrame {
        let this = self.get_mut();
        let mut held = this.held.lock();
        if held.n_begun != this.number {
            return Poll::Ready(Some(Err("the request was sent to another node".into())));
        }
        let kept = held.kept.as_ref().and_then(|kept| kept.get(this.n_taken));
        if let Some(bytes) = kept.cloned() {
            this.n_taken += 1;
            return Poll::Ready(Some(Ok(Frame::data(bytes))));
        }
        let frame = ready!(Pin::new(&mut held.incoming).poll_frame(context));
        if let Some(Ok(frame)) = &frame
            && let Some(bytes) = frame.data_ref()
        {
            held.keep(bytes);
            this.n_taken += 1;
        }
        Poll::Ready(frame)
    }
}

impl Body for ClientBody {
    type Data = Bytes;
    type Error = StreamError;

    fn poll_frame(self: Pin<&mut Self>, context: &mut Context<'_>) -> PolledFrame {
        match self.get_mut() {
            Self::Incoming(incoming) => {
                let frame = ready!(Pin::new(incoming).poll_frame(context));
                Poll::Ready(frame.map(|frame| frame.map_err(Into::into)))
            }
            Self::Resumed(kept) => Pin::new(kept).poll_frame(context),
        }
    }

    fn is_end_stream(&self) -> bool {
        matches!(self, Self::Incoming(incoming) if incoming.is_end_stream())
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Self::Incoming(incoming) => incoming.size_hint(),
            Self::Resumed(_) => SizeHint::default(),
        }
    }
}

impl Body for SentBody {
    type Data = Bytes;
    type Error = StreamError;

    fn poll_frame(self: Pin<&mut Self>, context: &mut Context<'_>) -> PolledFrame {
        match self.get_mut() {
            Self::Whole(bytes) if bytes.is_empty() => Poll::Ready(None),
            Self::Whole(bytes) => Poll::Ready(Some(Ok(Frame::data(std::mem::take(bytes))))),
            Self::Kept(kept) => Pin::new(kept).poll_frame(context),
        }
    }

    fn is_end_stream(&self) -> bool {
        matches!(self, Self::Whole(bytes) if bytes.is_empty())
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Self::Whole(bytes) => SizeHint::with_exact(bytes.len() as u64),
            Self::Kept(_) => SizeHint::default(),
        }
    }
}
