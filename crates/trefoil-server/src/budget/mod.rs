//! One memory budget for all that is held for clients: requests that are being read, replies that
//! are being made or not yet taken, pages of subscriptions.
//!
//! Everything that is held has a [`Reservation`], which goes back to the budget when it is dropped. The
//! process has a fixed number of bytes. One namespace may take half of them and one connection a
//! quarter, but a request that is being read may always take as many as the largest needs, if there
//! are. A connection takes memory in steps: most requests are covered by what their connection has
//! already, and touch nothing that all share.

mod namespace;

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Weak};

use bytes::Bytes;
use parking_lot::Mutex;
use tokio::sync::SemaphorePermit;
use tokio::time::sleep;
use trefoil::{Error, NamespaceId, Quota, QuotaKeeper};

use crate::error::Result;
use crate::limits::{
    BUDGET_PAUSE, BUDGET_STEP_BYTES, CONNECTION_BYTES, CONNECTION_FRACTION, CONNECTIONS_FRACTION,
    LARGEST_REQUEST_MEMORY, NAMESPACE_FRACTION, SMALL_RESERVATION_BYTES,
};
use namespace::{NamespaceAccount, NamespaceVisitor};

pub(crate) use namespace::PageTurns;

/// How many bytes are held.
#[derive(Debug, Default)]
struct Account {
    used: AtomicUsize,
}

impl Account {
    /// Takes more, if it is no more than this in all.
    fn take(&self, bytes: usize, bytes_max: usize) -> bool {
        let add = |used: usize| used.checked_add(bytes).filter(|sum| *sum <= bytes_max);
        let relaxed = Ordering::Relaxed;
        self.used.fetch_update(relaxed, relaxed, add).is_ok()
    }

    fn give_back(&self, bytes: usize) {
        self.used.fetch_sub(bytes, Ordering::Relaxed);
    }

    fn used(&self) -> usize {
        self.used.load(Ordering::Relaxed)
    }
}

/// Why memory cannot be had at the moment.
enum Shortage {
    /// By the quota of the namespace.
    OfNamespace(Arc<QuotaKeeper>),
    OfServer(Error),
}

impl Shortage {
    /// Refuses what needs the memory.
    fn refuse(self) -> Error {
        match self {
            Self::OfNamespace(quotas) => quotas.refuse(Quota::MemoryBytes),
            Self::OfServer(error) => error,
        }
    }
}

/// What one of several may take of the budget.
#[derive(Debug, Clone, Copy)]
struct BudgetPart {
    usual: usize,
    of_requests: usize,
}

/// What memory is taken for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Purpose {
    Request,
    Reply,
    /// For what is there already and cannot be refused.
    Forced,
}

impl BudgetPart {
    fn bytes_max(self, purpose: Purpose) -> usize {
        match purpose {
            Purpose::Request => self.of_requests,
            Purpose::Reply => self.usual,
            Purpose::Forced => usize::MAX,
        }
    }
}

/// The memory for all clients.
#[derive(Debug)]
pub(crate) struct Budget {
    bytes_max: usize,
    process: Account,
    /// Of those namespaces that have clients.
    namespaces: Mutex<HashMap<NamespaceId, Weak<NamespaceAccount>>>,
}

impl Budget {
    pub(crate) fn new(bytes_max: usize) -> Arc<Self> {
        Arc::new(Self {
            bytes_max,
            process: Account::default(),
            namespaces: Mutex::default(),
        })
    }

    /// Returns how many bytes are held for clients.
    pub(crate) fn used(&self) -> usize {
        self.process.used()
    }

    /// Returns how many connections there may be: what they take at least is a part of the budget.
    pub(crate) fn connections_max(&self) -> usize {
        self.bytes_max / CONNECTIONS_FRACTION / CONNECTION_BYTES
    }

    /// What one of several may take: its part, and enough for the largest request, which leaves
    /// something to the others.
    fn part(&self, fraction: usize) -> BudgetPart {
        let all = self.bytes_max;
        let largest = LARGEST_REQUEST_MEMORY.min(all - all / CONNECTION_FRACTION);
        BudgetPart {
            usual: all / fraction,
            of_requests: (all / fraction).max(largest),
        }
    }

    /// Returns the share of a new connection; `None` if there is no memory for one more.
    pub(crate) fn connect(self: &Arc<Self>) -> Option<Share> {
        let is_taken = self.process.take(CONNECTION_BYTES, self.bytes_max);
        is_taken.then(|| {
            Share(Arc::new(ConnectionAccount {
                budget: Arc::clone(self),
                held: Mutex::new(ConnectionBytes {
                    used: 0,
                    granted: CONNECTION_BYTES,
                    namespace: None,
                }),
            }))
        })
    }

    /// Returns how many connections the quota of a namespace counts, and how many bytes.
    pub(crate) fn use_of(&self, id: &NamespaceId) -> (usize, usize) {
        let account = self.namespaces.lock().get(id).and_then(Weak::upgrade);
        account.map_or((0, 0), |account| {
            (account.connections.used(), account.held.used())
        })
    }

    /// Returns the turns of a namespace's subscriptions.
    pub(crate) fn page_turns(&self, id: &NamespaceId, quotas: Arc<QuotaKeeper>) -> PageTurns {
        PageTurns::new(self.namespace(id, quotas))
    }

    fn namespace(&self, id: &NamespaceId, quotas: Arc<QuotaKeeper>) -> Arc<NamespaceAccount> {
        let mut namespaces = self.namespaces.lock();
        // One that was deleted and made again is another one.
        let is_same = |account: &Arc<NamespaceAccount>| Arc::ptr_eq(&account.quotas, &quotas);
        if let Some(account) = namespaces.get(id).and_then(Weak::upgrade).filter(is_same) {
            return account;
        }
        namespaces.retain(|_, account| account.strong_count() > 0);
        let account = Arc::new(NamespaceAccount::new(quotas));
        namespaces.insert(id.clone(), Arc::downgrade(&account));
        account
    }
}

/// What one connection holds.
#[derive(Debug)]
struct ConnectionAccount {
    budget: Arc<Budget>,
    held: Mutex<ConnectionBytes>,
}

#[derive(Debug)]
struct ConnectionBytes {
    used: usize,
    /// What was taken of the budget for it, in steps: never less than what is used.
    granted: usize,
    /// The namespace that was used last, for which what is large counts.
    namespace: Option<(NamespaceId, NamespaceVisitor)>,
}

impl ConnectionAccount {
    fn take(&self, bytes: usize, purpose: Purpose) -> Result<(), Shortage> {
        let mut held = self.held.lock();
        let wanted = held.used.saturating_add(bytes);
        let connection_max = self.budget.part(CONNECTION_FRACTION).bytes_max(purpose);
        if wanted > held.granted {
            if wanted > connection_max {
                return Err(full("one connection", connection_max));
            }
            let process_max = match purpose {
                Purpose::Forced => usize::MAX,
                Purpose::Request | Purpose::Reply => self.budget.bytes_max,
            };
            let missing = wanted - held.granted;
            let step = missing.next_multiple_of(BUDGET_STEP_BYTES);
            let process = &self.budget.process;
            let sizes = [step, missing].into_iter();
            let taken = sizes
                .into_iter()
                .find(|size| process.take(*size, process_max));
            held.granted += taken.ok_or_else(|| full("all clients together", process_max))?;
        }
        held.used = wanted;
        Ok(())
    }

    fn give_back(&self, bytes: usize) {
        let mut held = self.held.lock();
        held.used -= bytes;
        let kept = held.used.next_multiple_of(BUDGET_STEP_BYTES) + BUDGET_STEP_BYTES;
        if held.granted > kept.max(CONNECTION_BYTES) {
            let surplus = held.granted - kept.max(CONNECTION_BYTES);
            held.granted -= surplus;
            self.budget.process.give_back(surplus);
        }
    }
}

impl Drop for ConnectionAccount {
    fn drop(&mut self) {
        self.budget.process.give_back(self.held.get_mut().granted);
    }
}

fn full(who: &str, limit: usize) -> Shortage {
    Shortage::OfServer(Error::Overloaded(format!(
        "{who} may hold {limit} bytes of memory (see client-memory-max)"
    )))
}

/// What a connection may take of the budget.
#[derive(Debug, Clone)]
pub(crate) struct Share(Arc<ConnectionAccount>);

impl Share {
    /// From now on the connection works for this namespace, if it is not counted or the quota allows it.
    pub(crate) fn enter(
        &self,
        id: &NamespaceId,
        is_counted: bool,
        quotas: impl FnOnce(&NamespaceId) -> Arc<QuotaKeeper>,
    ) -> Result<()> {
        let mut held = self.0.held.lock();
        let is_in = |(last, visitor): &(NamespaceId, NamespaceVisitor)| {
            last == id && (visitor.is_counted || !is_counted)
        };
        if !held.namespace.as_ref().is_some_and(is_in) {
            let account = self.0.budget.namespace(id, quotas(id));
            held.namespace = Some((id.clone(), account.enter(is_counted)?));
        }
        Ok(())
    }

    /// Returns a reservation of nothing, which can grow with a request that is being read.
    pub(crate) fn for_request(&self) -> Reservation {
        self.reserve_for(Purpose::Request)
    }

    /// Returns a reservation of nothing, which can grow with a reply that is being made.
    pub(crate) fn for_reply(&self) -> Reservation {
        self.reserve_for(Purpose::Reply)
    }

    fn reserve_for(&self, purpose: Purpose) -> Reservation {
        Reservation {
            connection: Arc::clone(&self.0),
            namespace: None,
            purpose,
            bytes: 0,
        }
    }

    /// Waits until there is room for `bytes` and one of a few may take more than that. How large a
    /// page is, is known only when it has been read: if all were read at once, all would find room
    /// first, and then hold more than there is.
    pub(crate) async fn reserve_for_page<'a>(
        &self,
        bytes: usize,
        turns: &'a PageTurns,
    ) -> (Reservation, Option<SemaphorePermit<'a>>) {
        loop {
            drop(self.reserve_in_turn(bytes).await);
            let turn = turns.next().await;
            if let Ok(reservation) = self.try_reserve(bytes) {
                return (reservation, turn);
            }
        }
    }

    /// Returns a reservation of `bytes` for a reply, or refuses without waiting.
    pub(crate) fn reserve(&self, bytes: usize) -> Result<Reservation> {
        Ok(self.try_reserve(bytes).map_err(Shortage::refuse)?)
    }

    fn try_reserve(&self, bytes: usize) -> Result<Reservation, Shortage> {
        let mut reservation = self.for_reply();
        reservation.grow(bytes, Purpose::Reply)?;
        Ok(reservation)
    }

    /// Returns a reservation of `bytes` when its turn has come.
    pub(crate) async fn reserve_in_turn(&self, bytes: usize) -> Reservation {
        loop {
            match self.try_reserve(bytes) {
                Ok(reservation) => return reservation,
                Err(_) => sleep(BUDGET_PAUSE).await,
            }
        }
    }
}

/// A part of the budget; it goes back when this is dropped.
#[derive(Debug)]
pub(crate) struct Reservation {
    connection: Arc<ConnectionAccount>,
    /// The namespace for which it counts, if it is large.
    namespace: Option<Arc<NamespaceAccount>>,
    purpose: Purpose,
    bytes: usize,
}

impl Reservation {
    /// Makes this reservation `bytes` large in all, or refuses without waiting. It never shrinks.
    pub(crate) fn grow_to(&mut self, bytes: usize) -> Result<()> {
        Ok(self.demand(bytes)?)
    }

    /// The same, with an error of the library.
    pub(crate) fn demand(&mut self, bytes: usize) -> Result<(), Error> {
        self.grow(bytes, self.purpose).map_err(Shortage::refuse)
    }

    /// The same, for callers that can do with less. Returns whether there was room.
    pub(crate) fn try_grow_to(&mut self, bytes: usize) -> bool {
        self.grow(bytes, self.purpose).is_ok()
    }

    /// The same, whatever the limits say: for what is there already and cannot be refused.
    pub(crate) fn grow_anyway(&mut self, bytes: usize) {
        // What is forced does not fail.
        let _ = self.grow(bytes, Purpose::Forced);
    }

    fn grow(&mut self, bytes: usize, purpose: Purpose) -> Result<(), Shortage> {
        let Some(more) = bytes.checked_sub(self.bytes).filter(|more| *more > 0) else {
            return Ok(());
        };
        let was_counted = self.namespace.is_some();
        if !was_counted && bytes > SMALL_RESERVATION_BYTES {
            let held = self.connection.held.lock();
            let visitor = held.namespace.as_ref();
            self.namespace = visitor.map(|(_, visitor)| Arc::clone(&visitor.account));
        }
        let in_namespace = if was_counted { more } else { bytes };
        if let Some(account) = &self.namespace {
            let part = self.connection.budget.part(NAMESPACE_FRACTION);
            let bytes_max = part.bytes_max(purpose);
            let quota = match purpose {
                Purpose::Forced => usize::MAX,
                Purpose::Request | Purpose::Reply => account.limit(Quota::MemoryBytes),
            };
            if !account.held.take(in_namespace, bytes_max.min(quota)) {
                let shortage = match quota < bytes_max {
                    true => Shortage::OfNamespace(Arc::clone(&account.quotas)),
                    false => full("the clients of one namespace", bytes_max),
                };
                self.uncount(was_counted, 0);
                return Err(shortage);
            }
        }
        if let Err(shortage) = self.connection.take(more, purpose) {
            self.uncount(was_counted, in_namespace);
            return Err(shortage);
        }
        self.bytes = bytes;
        Ok(())
    }

    /// Takes back what was counted for the namespace.
    fn uncount(&mut self, was_counted: bool, bytes: usize) {
        if let Some(account) = &self.namespace {
            account.held.give_back(bytes);
        }
        if !was_counted {
            self.namespace = None;
        }
    }

    /// Gives back what is more than `bytes`.
    pub(crate) fn shrink_to(&mut self, bytes: usize) {
        let Some(less) = self.bytes.checked_sub(bytes).filter(|less| *less > 0) else {
            return;
        };
        if let Some(account) = &self.namespace {
            account.held.give_back(less);
        }
        self.connection.give_back(less);
        self.bytes = bytes;
    }

    /// Bytes that hold this reservation for as long as anybody has them.
    pub(crate) fn hold(self, bytes: impl AsRef<[u8]> + Send + 'static) -> Bytes {
        struct Reserved<B>(B, #[expect(dead_code, reason = "held")] Reservation);
        impl<B: AsRef<[u8]>> AsRef<[u8]> for Reserved<B> {
            fn as_ref(&self) -> &[u8] {
                self.0.as_ref()
            }
        }
        Bytes::from_owner(Reserved(bytes, self))
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        self.shrink_to(0);
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt as _;

    use super::*;
    use crate::limits::PAGE_READS_MAX;

    const MIB: usize = 1024 * 1024;

    fn namespace(name: &str) -> NamespaceId {
        NamespaceId::new(name).unwrap()
    }

    #[test]
    fn what_is_dropped_can_be_reserved_again() {
        let budget = Budget::new(1024 * MIB);
        let share = budget.connect().unwrap();
        let base = budget.used();
        let mut first = share.reserve(150 * MIB).unwrap();
        let mut second = share.reserve(0).unwrap();
        assert!(second.grow_to(150 * MIB).is_err());
        assert!(second.grow_to(50 * MIB).is_ok());
        first.shrink_to(0);
        assert!(second.grow_to(256 * MIB).is_ok());
        assert!(second.grow_to(257 * MIB).is_err());
        second.grow_anyway(300 * MIB);
        assert!(budget.used() >= 300 * MIB);
        drop((first, second));
        assert!(budget.used() <= base + 2 * BUDGET_STEP_BYTES);
        drop(share);
        assert_eq!(budget.used(), 0);
    }

    #[test]
    fn a_namespace_has_half_and_the_process_all() {
        let budget = Budget::new(1024 * MIB);
        let keeper = Arc::<QuotaKeeper>::default();
        let connect = |name: &str| {
            let share = budget.connect().unwrap();
            let entered = share.enter(&namespace(name), true, |_| Arc::clone(&keeper));
            entered.unwrap();
            share
        };
        let shares: Vec<Share> = ["a", "a", "a", "b", "b"].map(connect).into();
        let take = |share: &Share| share.reserve(200 * MIB);
        let held: Vec<Reservation> = shares[..2].iter().map(|s| take(s).unwrap()).collect();
        let refused = take(&shares[2]).unwrap_err();
        assert!(refused.message.contains("one namespace"), "{refused:?}");
        let more: Vec<Reservation> = shares[3..].iter().map(|s| take(s).unwrap()).collect();
        let other = connect("c");
        assert!(take(&other).is_ok());
        drop(held);
        assert!(take(&shares[2]).is_ok());
        drop(more);
    }

    #[test]
    fn pages_that_turn_out_large_leave_no_room_to_those_that_wait_their_turn() {
        const PAGE: usize = MIB / 8;
        let mut runtime = tokio::runtime::Builder::new_current_thread();
        let runtime = runtime.enable_time().build().unwrap();
        let _context = runtime.enter();
        let budget = Budget::new(64 * MIB);
        let share = budget.connect().unwrap();
        let turns = budget.page_turns(&namespace("a"), Arc::default());
        let reserve = || share.reserve_for_page(PAGE, &turns);
        let read = |_| reserve().now_or_never().unwrap();
        let mut pages: Vec<_> = (0..PAGE_READS_MAX).map(read).collect();
        assert!(share.reserve(PAGE).is_ok());
        let mut waiting = Box::pin(reserve());
        assert!((&mut waiting).now_or_never().is_none(), "there is no turn");
        for (reservation, turn) in &mut pages {
            reservation.grow_anyway(16 * MIB / PAGE_READS_MAX);
            drop(turn.take());
        }
        assert!((&mut waiting).now_or_never().is_none(), "there is no room");
        drop((waiting, pages));
        assert!(reserve().now_or_never().is_some());
    }

    #[test]
    fn a_namespace_whose_pages_take_long_keeps_its_own_turns_alone() {
        let mut runtime = tokio::runtime::Builder::new_current_thread();
        let runtime = runtime.enable_time().build().unwrap();
        let _context = runtime.enter();
        let budget = Budget::new(64 * MIB);
        let share = budget.connect().unwrap();
        let keeper = Arc::<QuotaKeeper>::default();
        let turns = |name| budget.page_turns(&namespace(name), Arc::clone(&keeper));
        let (slow, other, again) = (turns("slow"), turns("other"), turns("slow"));
        let read = |turns| share.reserve_for_page(1, turns).now_or_never();
        let _held: Vec<_> = (0..PAGE_READS_MAX).map(|_| read(&slow).unwrap()).collect();
        assert!(read(&slow).is_none());
        assert!(read(&other).is_some());
        assert!(read(&again).is_none(), "all its subscriptions share them");
    }

    #[test]
    fn a_request_may_take_more_of_a_small_budget_than_a_reply() {
        let budget = Budget::new(64 * MIB);
        let share = budget.connect().unwrap();
        assert!(share.reserve(16 * MIB).is_ok());
        let refused = share.reserve(17 * MIB).unwrap_err();
        assert_eq!(refused.code, "OVERLOADED");
        assert!(share.for_request().grow_to(48 * MIB).is_ok());
        assert!(share.for_request().grow_to(49 * MIB).is_err());
    }

    #[test]
    fn bytes_hold_their_reservation_until_the_last_of_them_is_gone() {
        let budget = Budget::new(64 * MIB);
        let share = budget.connect().unwrap();
        let bytes = share.reserve(10 * MIB).unwrap().hold(vec![7; 10 * MIB]);
        let part = bytes.slice(..3);
        drop(bytes);
        assert!(budget.used() >= 10 * MIB);
        drop(part);
        assert!(budget.used() < MIB);
    }
}
