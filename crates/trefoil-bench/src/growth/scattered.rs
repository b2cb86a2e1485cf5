//! Commands on names that are scattered over all that there are, made while they are sent.
//!
//! Ten million commands would not fit into the memory that the servers need.

use anyhow::{Result, ensure};

use crate::closed_loop::{Client, Progress};
use crate::resp::wire::{Incoming, Reply, put_command};

/// The name with a number: numbers that follow each other have names that do not.
pub(super) fn name(number: u64) -> String {
    // Multiplying by an odd number gives no name twice.
    format!("{:016x}", number.wrapping_mul(0x9e37_79b9_7f4a_7c15))
}

/// A client that sends pipelines of commands, as many as there are in a range of numbers.
pub(super) struct Scattered<F> {
    /// Makes the words of the command with a number.
    words: F,
    numbers: std::ops::Range<u64>,
    /// How many commands are sent together.
    depth: u64,
    /// Whether each reply must be nothing, or must not be.
    expects_nil: bool,
    bytes: Vec<u8>,
    on_their_way: u64,
    answered: u64,
    incoming: Incoming,
}

impl<F: FnMut(u64) -> Vec<Vec<u8>> + Send> Scattered<F> {
    pub(super) fn new(numbers: std::ops::Range<u64>, depth: u64, words: F) -> Self {
        Self {
            words,
            numbers,
            depth,
            expects_nil: false,
            bytes: Vec::new(),
            on_their_way: 0,
            answered: 0,
            incoming: Incoming::default(),
        }
    }

    /// Expects that nothing is found.
    pub(super) fn expecting_nil(self, expects_nil: bool) -> Self {
        Self {
            expects_nil,
            ..self
        }
    }
}

impl<F: FnMut(u64) -> Vec<Vec<u8>> + Send> Client for Scattered<F> {
    fn request(&mut self) -> Option<&[u8]> {
        self.bytes.clear();
        (self.on_their_way, self.answered) = (0, 0);
        for number in self.numbers.by_ref().take(self.depth as usize) {
            let words = (self.words)(number);
            let words: Vec<&[u8]> = words.iter().map(Vec::as_slice).collect();
            put_command(&mut self.bytes, &words);
            self.on_their_way += 1;
        }
        (self.on_their_way > 0).then_some(&self.bytes)
    }

    fn receive(&mut self, bytes: &[u8]) -> Result<Progress> {
        let (expects_nil, answered) = (self.expects_nil, &mut self.answered);
        self.incoming.take(bytes, |reply| {
            reply.check()?;
            ensure!(
                (reply == Reply::Nil) == expects_nil,
                "the server answered {reply:?}"
            );
            *answered += 1;
            Ok(())
        })?;
        ensure!(
            self.answered <= self.on_their_way,
            "the server answered more than it was asked"
        );
        Ok(match self.answered == self.on_their_way {
            true => Progress::Done(self.on_their_way),
            false => Progress::Waiting,
        })
    }

    fn pipeline(&self) -> u64 {
        self.on_their_way
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_number_is_sent_once_and_answered_as_expected() {
        let words = |number| vec![b"GET".to_vec(), name(number).into_bytes()];
        let mut client = Scattered::new(0..3, 2, words).expecting_nil(true);
        assert!(client.request().unwrap().ends_with(b"9e3779b97f4a7c15\r\n"));
        assert_eq!(client.receive(b"$-1\r\n").unwrap(), Progress::Waiting);
        assert_eq!(client.receive(b"$-1\r\n").unwrap(), Progress::Done(2));
        assert!(client.request().is_some());
        assert!(client.receive(b"$1\r\na\r\n").is_err());
        assert!(client.request().is_none());
    }
}
