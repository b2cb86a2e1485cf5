//! Events on their way into the namespace, in requests of a few megabytes.

use indicatif::ProgressBar;
use serde::Serialize;

use crate::client::HttpClient;
use crate::command::import::{ImportFailure, ImportRequests, REQUEST_BYTES};

/// Lines of an import, each of an event.
pub(super) struct LineTransfer {
    import: ImportRequests,
    body: Vec<u8>,
    /// The positions of the events in the body.
    positions: Vec<u64>,
    /// Shows how many were imported.
    tell: fn(&ProgressBar, u64),
}

impl LineTransfer {
    pub(super) fn new(
        client: HttpClient,
        new_ids: bool,
        bar: ProgressBar,
        tell: fn(&ProgressBar, u64),
    ) -> Self {
        Self {
            import: ImportRequests {
                client,
                force: false,
                new_ids,
                with_state: false,
                imported: 0,
                state: 0,
                bar,
            },
            body: Vec::new(),
            positions: Vec::new(),
            tell,
        }
    }

    pub(super) fn client(&self) -> &HttpClient {
        &self.import.client
    }

    pub(super) fn bar(&self) -> &ProgressBar {
        &self.import.bar
    }

    /// How many events were imported.
    pub(super) fn imported(&self) -> u64 {
        self.import.imported
    }

    /// Whether the next event is the first of a request.
    pub(super) fn is_empty(&self) -> bool {
        self.body.is_empty()
    }

    /// Adds an event. It is on one line, whatever line breaks its JSON has between its tokens.
    pub(super) fn add(&mut self, position: u64, line: &impl Serialize) -> anyhow::Result<()> {
        let begin = self.body.len();
        serde_json::to_writer(&mut self.body, line)?;
        for byte in &mut self.body[begin..] {
            if matches!(byte, b'\n' | b'\r') {
                *byte = b' ';
            }
        }
        self.body.push(b'\n');
        self.positions.push(position);
        match self.body.len() >= REQUEST_BYTES {
            true => self.send(),
            false => Ok(()),
        }
    }

    /// Sends what there is.
    pub(super) fn send(&mut self) -> anyhow::Result<()> {
        if self.body.is_empty() {
            return Ok(());
        }
        let sent = self.import.send(&self.body, self.tell);
        sent.map_err(|failure| match failure {
            ImportFailure::Other(error) => error,
            ImportFailure::Stopped { line, error } => {
                let index = usize::try_from(line).unwrap_or(0).saturating_sub(1);
                let position = self.positions.get(index).copied().unwrap_or(0);
                let what = format!("the event at position {position} cannot be imported");
                anyhow::Error::new(error).context(what)
            }
        })?;
        self.body.clear();
        self.positions.clear();
        Ok(())
    }

    pub(super) fn so_far(&self) -> String {
        format!("the migration stopped after {} events", self.imported())
    }
}
