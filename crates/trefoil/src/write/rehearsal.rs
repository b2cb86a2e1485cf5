//! Rehearsals: a request is staged for show, to find out what staging it needs to read.

use super::decide::attempt;
use super::request::WriteRequest;
use super::stage::{Front, Stage};
use super::writer::Writer;

impl Writer {
    /// Stages a request and discards the result, so that the storage has read what the writer will
    /// read again. Blocks the thread for as long as the storage waits.
    pub(crate) fn rehearse(&self, request: &mut WriteRequest) {
        self.rehearse_on(request, &|_| {}, |_| ());
    }

    /// Returns whether all entries of the state are in memory that staging a request needs.
    pub(crate) fn has_at_hand(&self, request: &mut WriteRequest) -> bool {
        let read_at_hand = |stage: &mut Stage<'_>| stage.view().read_at_hand();
        self.rehearse_on(request, &read_at_hand, |mut stage| !stage.view().is_short())
    }

    /// Stages a request on a stage of its own, and hands that to `then`.
    fn rehearse_on<T>(
        &self,
        request: &mut WriteRequest,
        prepare: &dyn Fn(&mut Stage<'_>),
        then: impl FnOnce(Stage<'_>) -> T,
    ) -> T {
        let allowances = request.take_allowances();
        let demands = std::slice::from_ref(&request.demand);
        // Nothing of it is written, so it may begin where readers are, and waits for no leader.
        let front = Front {
            commit: self.last_commit(),
            position: self.head(),
            clock: self.clock.now(),
        };
        let rehearsed = self.with_durable(|durable| {
            let new_stage = || {
                let mut stage = self.new_stage(durable, (front, 0));
                prepare(&mut stage);
                stage
            };
            then(attempt(demands, 0, &new_stage).stage)
        });
        request.put_allowances(allowances);
        rehearsed
    }
}
