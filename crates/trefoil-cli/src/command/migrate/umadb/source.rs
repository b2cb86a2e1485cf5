//! A UmaDB that is read, over its gRPC API.

use std::ops::RangeInclusive;

use tokio::runtime::Runtime;
use tokio::sync::mpsc;
use trefoil_grpc::{Connect, ReadRequest, ReadResponse, SequencedEvent, Status};

/// How many responses of UmaDB are read ahead while the server here writes.
const READ_AHEAD: usize = 4;

/// The UmaDB that is read.
pub(super) struct UmaDb {
    runtime: Runtime,
    client: trefoil_grpc::Client,
    pub(super) url: String,
}

impl UmaDb {
    pub(super) fn connect(connect: Connect) -> anyhow::Result<Self> {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .enable_all()
            .build()?;
        let url = connect.url.clone();
        let client = runtime.block_on(trefoil_grpc::Client::connect(connect));
        let client = client.map_err(|status| told(&url, &status))?;
        Ok(Self {
            runtime,
            client,
            url,
        })
    }

    /// The position of the last event, 0 if there is none.
    pub(super) fn head(&mut self) -> anyhow::Result<u64> {
        let head = self.runtime.block_on(self.client.head());
        let head = head.map_err(|status| told(&self.url, &status))?;
        Ok(head.unwrap_or(0))
    }

    /// The position that was last recorded for a source of tracked positions.
    pub(super) fn tracking(&mut self, source: &str) -> anyhow::Result<Option<u64>> {
        let tracking = self.runtime.block_on(self.client.tracking(source));
        tracking.map_err(|status| told(&self.url, &status))
    }

    /// The event at a position.
    pub(super) fn event_at(&mut self, position: u64) -> anyhow::Result<Option<SequencedEvent>> {
        let request = ReadRequest {
            start: Some(position),
            limit: Some(1),
            ..ReadRequest::default()
        };
        let client = &mut self.client;
        let response = self.runtime.block_on(async {
            let mut responses = client.read(request).await?;
            responses.message().await
        });
        let response = response.map_err(|status| told(&self.url, &status))?;
        let event = response.and_then(|response| response.events.into_iter().next());
        Ok(event.filter(|event| event.position == position))
    }

    /// Calls `visit` with each event of a range of positions, in order.
    pub(super) fn for_each(
        &mut self,
        positions: RangeInclusive<u64>,
        mut visit: impl FnMut(&SequencedEvent) -> anyhow::Result<()>,
    ) -> anyhow::Result<()> {
        let mut responses = self.read(*positions.start());
        while let Some(response) = responses.blocking_recv() {
            let response = response.map_err(|status| told(&self.url, &status))?;
            for event in &response.events {
                // What was appended meanwhile is for the next import.
                if !positions.contains(&event.position) {
                    return Ok(());
                }
                visit(event)?;
            }
        }
        Ok(())
    }

    /// Returns all events from a position on, which a task of its own reads ahead.
    fn read(&mut self, start: u64) -> mpsc::Receiver<Result<ReadResponse, Status>> {
        let (sender, receiver) = mpsc::channel(READ_AHEAD);
        let mut client = self.client.clone();
        self.runtime.spawn(async move {
            let request = ReadRequest {
                start: Some(start),
                ..ReadRequest::default()
            };
            let mut responses = match client.read(request).await {
                Ok(responses) => responses,
                Err(status) => return drop(sender.send(Err(status)).await),
            };
            while let Some(response) = responses.message().await.transpose() {
                let is_last = response.is_err();
                if sender.send(response).await.is_err() || is_last {
                    return;
                }
            }
        });
        receiver
    }
}

fn told(url: &str, status: &Status) -> anyhow::Error {
    let (code, message) = (status.code(), status.message());
    anyhow::anyhow!("{url}: {message} ({code:?})")
}
