//! A request on its way to another node.

use bytes::{BufMut as _, Bytes, BytesMut};
use trefoil::{CommandAccess, Reply};

use super::super::command::{AtOnce, CommandAction, FoundCommand};

/// A request, and what is to become of its reply.
#[derive(Debug)]
pub(in super::super) struct Errand {
    pub(super) kind: ErrandKind,
    /// The command, for what is counted.
    pub(super) command: &'static str,
    /// Whether the client does not want the reply.
    pub(super) is_silent: bool,
}

/// What is asked for.
#[derive(Debug)]
pub(super) enum ErrandKind {
    /// Nothing: this is answered when all before it is.
    Ready(Reply),
    Single(SingleErrand),
    Exec(ExecErrand),
    /// The keys that are watched there are not, from now on.
    Unwatch,
}

/// One request.
#[derive(Debug)]
pub(super) struct SingleErrand {
    pub(super) found: FoundCommand,
    pub(super) words: Vec<Bytes>,
    /// The name that its commit is to have.
    pub(super) commit_id: Option<Bytes>,
}

/// A transaction, from `MULTI` to `EXEC`.
#[derive(Debug)]
pub(super) struct ExecErrand {
    pub(super) queued: Vec<Vec<Bytes>>,
    pub(super) exec: Vec<Bytes>,
    pub(super) strict: Option<bool>,
    pub(super) commit_id: Option<Bytes>,
    /// Whether it depends on keys that were watched here.
    pub(super) is_watching: bool,
}

/// Returns whether a command is for the node that has the namespace.
pub(super) fn needs_owner(found: FoundCommand) -> bool {
    match found {
        FoundCommand::State(_) => true,
        FoundCommand::Own(own) => matches!(
            own.action,
            CommandAction::Info
                | CommandAction::Look(_)
                | CommandAction::Require
                | CommandAction::Append
                | CommandAction::WaitForLog
                | CommandAction::AtOnce(AtOnce::Watch)
        ),
    }
}

/// Returns whether a command writes a commit, which may have a name.
pub(super) fn writes(found: FoundCommand) -> bool {
    match found {
        FoundCommand::State(spec) => spec.access == CommandAccess::Write,
        FoundCommand::Own(own) => matches!(own.action, CommandAction::Append),
    }
}

impl Errand {
    /// Returns whether it may be sent again though nobody knows whether it was carried out.
    pub(super) fn changes_nothing(&self) -> bool {
        match &self.kind {
            ErrandKind::Ready(_) => true,
            ErrandKind::Single(single) => match single.found {
                FoundCommand::State(spec) => {
                    matches!(spec.access, CommandAccess::Read | CommandAccess::FastRead)
                }
                FoundCommand::Own(own) => matches!(
                    own.action,
                    CommandAction::Info
                        | CommandAction::Look(_)
                        | CommandAction::Require
                        | CommandAction::WaitForLog
                        | CommandAction::AtOnce(AtOnce::Watch)
                ),
            },
            ErrandKind::Exec(_) | ErrandKind::Unwatch => false,
        }
    }

    /// Returns whether its reply says that keys are watched from now on.
    pub(super) fn watches(&self) -> bool {
        let ErrandKind::Single(single) = &self.kind else {
            return false;
        };
        let FoundCommand::Own(own) = single.found else {
            return false;
        };
        matches!(own.action, CommandAction::AtOnce(AtOnce::Watch))
    }
}

/// Requests as bytes. Long words are not copied.
#[derive(Debug, Default)]
pub(super) struct Parcel {
    parts: Vec<Bytes>,
    last: BytesMut,
}

/// A word that is longer than this is sent from where it is.
const COPIED_WORD_BYTES_MAX: usize = 4 * 1024;

impl Parcel {
    /// Adds a request.
    pub(super) fn add(&mut self, words: &[Bytes]) {
        self.add_length(b'*', words.len());
        for word in words {
            self.add_length(b'$', word.len());
            if word.len() > COPIED_WORD_BYTES_MAX {
                self.parts.push(self.last.split().freeze());
                self.parts.push(word.clone());
            } else {
                self.last.put_slice(word);
            }
            self.last.put_slice(b"\r\n");
        }
    }

    /// Adds a request of short words.
    pub(super) fn add_words(&mut self, words: &[&str]) {
        let words: Vec<Bytes> = words
            .iter()
            .map(|word| Bytes::copy_from_slice(word.as_bytes()))
            .collect();
        self.add(&words);
    }

    fn add_length(&mut self, marker: u8, length: usize) {
        self.last.put_u8(marker);
        let mut digits = itoa::Buffer::new();
        self.last.put_slice(digits.format(length).as_bytes());
        self.last.put_slice(b"\r\n");
    }

    /// Returns the bytes, in parts, and how many of them were copied.
    pub(super) fn close(mut self) -> (Vec<Bytes>, usize) {
        let copied = self.parts.iter().step_by(2).map(Bytes::len).sum::<usize>() + self.last.len();
        self.parts.push(self.last.freeze());
        (self.parts, copied)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_are_sent_as_they_came() {
        let long = vec![b'x'; COPIED_WORD_BYTES_MAX + 1];
        let mut parcel = Parcel::default();
        parcel.add(&[Bytes::from_static(b"SET"), Bytes::from(long.clone())]);
        parcel.add_words(&["GET", ""]);
        let (parts, copied) = parcel.close();
        let expected = [
            &b"*2\r\n$3\r\nSET\r\n$4097\r\n"[..],
            &long,
            b"\r\n*2\r\n$3\r\nGET\r\n$0\r\n\r\n",
        ];
        assert_eq!(parts, expected);
        assert_eq!(copied, expected[0].len() + expected[2].len());
    }
}
