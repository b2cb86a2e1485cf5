//! Operations as bytes, one after the other, and the clients that send them.

use anyhow::{Result, ensure};

use super::wire::{Incoming, Reply, put_command};
use crate::closed_loop::{Client, Progress};

/// Operations that are made before the measurement: a pipeline is a slice of them.
#[derive(Debug, Default)]
pub(crate) struct Requests {
    bytes: Vec<u8>,
    n_replies: usize,
    /// Where each operation ends: in the bytes, and in the replies.
    ends: Vec<(usize, usize)>,
}

impl Requests {
    pub(crate) fn new() -> Self {
        Self::default()
    }

    /// Adds a command, which gets one reply.
    pub(crate) fn command(&mut self, words: &[&[u8]]) {
        put_command(&mut self.bytes, words);
        self.n_replies += 1;
    }

    /// The commands since the last end are one operation.
    pub(crate) fn end_operation(&mut self) {
        self.ends.push((self.bytes.len(), self.n_replies));
    }

    pub(crate) fn len(&self) -> usize {
        self.ends.len()
    }

    /// The bytes of an operation.
    #[cfg(test)]
    pub(super) fn operation(&self, number: usize) -> &[u8] {
        self.slice(number, 1).map_or(&[], |(bytes, ..)| bytes)
    }

    /// Up to `n` operations from one on: their bytes, how many replies they get, and how many they
    /// are.
    fn slice(&self, first: usize, n: usize) -> Option<(&[u8], usize, u64)> {
        let operations = self.ends.get(first..(first + n).min(self.ends.len()))?;
        let (bytes, replies) = *operations.last()?;
        let before = first.checked_sub(1).map(|before| self.ends[before]);
        let before = before.unwrap_or_default();
        let n = operations.len() as u64;
        Some((&self.bytes[before.0..bytes], replies - before.1, n))
    }
}

/// A client that sends pipelines of operations.
pub(crate) struct Sender<'a> {
    requests: &'a Requests,
    next: usize,
    step: usize,
    pipeline: usize,
    is_endless: bool,
    /// What is on its way.
    operations: u64,
    replies: usize,
    incoming: Incoming,
}

impl<'a> Sender<'a> {
    /// One of `clients` clients, each of which sends its share of the operations again and again.
    pub(crate) fn endless(
        requests: &'a Requests,
        index: usize,
        clients: usize,
        pipeline: usize,
    ) -> Self {
        Self {
            is_endless: true,
            ..Self::once(requests, index, clients, pipeline)
        }
    }

    /// One of `clients` clients, each of which sends its share of the operations once.
    pub(crate) fn once(
        requests: &'a Requests,
        index: usize,
        clients: usize,
        pipeline: usize,
    ) -> Self {
        Self {
            requests,
            next: index * pipeline,
            step: clients * pipeline,
            pipeline,
            is_endless: false,
            operations: 0,
            replies: 0,
            incoming: Incoming::default(),
        }
    }
}

impl Client for Sender<'_> {
    fn request(&mut self) -> Option<&[u8]> {
        let first = match self.is_endless {
            true => self.next % self.requests.len(),
            false => self.next,
        };
        self.next += self.step;
        let (bytes, replies, operations) = self.requests.slice(first, self.pipeline)?;
        (self.replies, self.operations) = (replies, operations);
        Some(bytes)
    }

    fn pipeline(&self) -> u64 {
        self.operations
    }

    fn receive(&mut self, bytes: &[u8]) -> Result<Progress> {
        let Self { replies, .. } = self;
        self.incoming.take(bytes, |reply| {
            reply.check()?;
            ensure!(reply != Reply::Nil, "the server answered nothing");
            ensure!(*replies > 0, "the server answered more than it was asked");
            *replies -= 1;
            Ok(())
        })?;
        Ok(match self.replies {
            0 => Progress::Done(self.operations),
            _ => Progress::Waiting,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn three() -> Requests {
        let mut requests = Requests::new();
        for key in [b"a", b"b", b"c"] {
            requests.command(&[b"MULTI"]);
            requests.command(&[b"GET", key]);
            requests.end_operation();
        }
        requests
    }

    #[test]
    fn every_operation_is_sent_once() {
        let requests = three();
        for (clients, pipeline) in [(1, 1), (1, 2), (2, 1), (3, 16)] {
            let mut sent = Vec::new();
            for index in 0..clients {
                let mut sender = Sender::once(&requests, index, clients, pipeline);
                while let Some(bytes) = sender.request() {
                    sent.extend_from_slice(bytes);
                }
            }
            assert_eq!(sent.len(), requests.bytes.len(), "{clients} x {pipeline}");
        }
    }

    #[test]
    fn a_client_knows_when_it_is_answered() {
        let requests = three();
        let mut sender = Sender::endless(&requests, 0, 1, 2);
        assert!(sender.request().unwrap().ends_with(b"b\r\n"));
        assert_eq!(
            sender.receive(b"+OK\r\n+QUEUED\r\n+O").unwrap(),
            Progress::Waiting
        );
        assert_eq!(
            sender.receive(b"K\r\n+QUEUED\r\n").unwrap(),
            Progress::Done(2)
        );
        assert!(sender.request().is_some());
        assert!(sender.receive(b"-ERR no\r\n").is_err());
    }
}
