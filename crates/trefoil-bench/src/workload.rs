//! The workload: which events are appended, in which order, and which reads follow.
//!
//! - About 324 bytes per event with its names, id and time; two tags; 19 types.
//! - 100,000 streams in 50 categories. Stream `100,000 * u^3` gets the next event, `u` uniform in
//!   [0, 1): the hottest 1 % of the streams get 21 % of the events, the hottest 10 % get 46 %. Of 2
//!   million events about 1,700 streams get 100 or more, the last streams about 7 each. Streams are
//!   dealt to the categories in turn, so every category gets about 2 % of the events.
//! - One tag of 50,000 (`customer:`), skewed by `u^2`, and one of 2,000 (`product:`), uniform.
//! - Bodies come from a pool of 262,144 that differ: some 60 MB, wider than the window of any
//!   compressor in the comparison, so that making an event costs next to nothing beside the timed
//!   work.
//!
//! The same seed gives the same events to every system.

use bytes::Bytes;
use fastrand::Rng;
use trefoil::NewEvent;

use crate::body::{self, pick};

/// How many streams there are.
pub(crate) const STREAMS: usize = 100_000;
/// How many events a read of a stream asks for.
pub(crate) const STREAM_READ: usize = 100;
/// How many events a read of a category asks for.
pub(crate) const CATEGORY_READ: usize = 1000;

const SEED: u64 = 0x7265_666f_696c;
const BODIES: usize = 1 << 18;
const CUSTOMERS: u64 = 50_000;
const PRODUCTS: u64 = 2_000;

/// After a position with this many events behind it, every category has `CATEGORY_READ` more.
pub(crate) const CATEGORY_READ_SPAN: u64 = 80_000;

const CATEGORIES: [&str; 50] = [
    "account",
    "address",
    "auction",
    "basket",
    "booking",
    "campaign",
    "card",
    "cart",
    "catalog",
    "claim",
    "contract",
    "coupon",
    "course",
    "customer",
    "delivery",
    "deposit",
    "device",
    "driver",
    "employee",
    "enrollment",
    "invoice",
    "item",
    "ledger",
    "lesson",
    "license",
    "loan",
    "meter",
    "mission",
    "offer",
    "order",
    "parcel",
    "payment",
    "policy",
    "pricing",
    "product",
    "project",
    "quote",
    "refund",
    "reservation",
    "route",
    "seats",
    "session",
    "shipment",
    "student",
    "subscription",
    "supplier",
    "ticket",
    "transfer",
    "vehicle",
    "warehouse",
];

/// What all runs share: the names of the streams and the bodies.
#[derive(Debug)]
pub(crate) struct Pool {
    streams: Vec<String>,
    bodies: Vec<(&'static str, Bytes)>,
}

impl Pool {
    pub(crate) fn new() -> Self {
        Self::with_bodies(BODIES)
    }

    fn with_bodies(count: usize) -> Self {
        let mut random = Rng::with_seed(SEED);
        let bodies = (0..count).map(|_| body::generate(&mut random));
        Self {
            bodies: bodies
                .map(|(event_type, body)| (event_type, body.into()))
                .collect(),
            streams: (0..STREAMS).map(stream_name).collect(),
        }
    }
}

/// The name of the stream with this index: a category and a number that shows no order.
fn stream_name(index: usize) -> String {
    // The factor has no divisor in common with 10^8: no two streams get the same number.
    let number = (index as u64 * 48_271_937) % 100_000_000;
    format!("{}-{number:08}", CATEGORIES[index % CATEGORIES.len()])
}

/// A source of events, and the memory of how many it gave to each stream.
#[derive(Debug)]
pub(crate) struct Workload<'pool> {
    pool: &'pool Pool,
    random: Rng,
    client_ids: bool,
    counts: Vec<u32>,
    generated: u64,
}

impl<'pool> Workload<'pool> {
    /// Events whose ids the store makes.
    pub(crate) fn new(pool: &'pool Pool) -> Self {
        let random = Rng::with_seed(SEED + 1);
        Self {
            pool,
            random,
            client_ids: false,
            counts: vec![0; STREAMS],
            generated: 0,
        }
    }

    /// Events that bring random ids along.
    pub(crate) fn with_client_ids(mut self) -> Self {
        self.client_ids = true;
        self
    }

    /// The next `length` events.
    pub(crate) fn batch(&mut self, length: usize) -> Vec<NewEvent> {
        (0..length).map(|_| self.event()).collect()
    }

    fn event(&mut self) -> NewEvent {
        let random = &mut self.random;
        let stream = (random.f64().powi(3) * STREAMS as f64) as usize;
        let customer = (random.f64().powi(2) * CUSTOMERS as f64) as u64;
        let product = random.u64(..PRODUCTS);
        let (event_type, body) = &self.pool.bodies[random.usize(..self.pool.bodies.len())];
        self.counts[stream] += 1;
        self.generated += 1;
        let event = NewEvent::new(&*self.pool.streams[stream], *event_type, body.clone())
            .with_tag(format!("customer:{customer}"))
            .with_tag(format!("product:{product}"));
        if self.client_ids {
            return event.with_id(body::random_uuid(random));
        }
        event
    }

    /// How many events were generated so far.
    pub(crate) fn generated(&self) -> u64 {
        self.generated
    }

    /// The reads that the events generated so far allow, from the `streams` hottest streams at most.
    pub(crate) fn reads(&self, streams: usize) -> Reads<'pool> {
        let long = |(_, count): &(usize, &u32)| **count as usize >= STREAM_READ;
        let long_streams = self.counts.iter().enumerate().filter(long).take(streams);
        Reads {
            streams: long_streams
                .map(|(index, count)| (self.pool.streams[index].as_str(), u64::from(*count)))
                .collect(),
            events: self.generated,
            random: Rng::with_seed(SEED + 2),
        }
    }
}

/// A source of reads of which every one finds as many events as it asks for.
#[derive(Debug, Clone)]
pub(crate) struct Reads<'pool> {
    streams: Vec<(&'pool str, u64)>,
    events: u64,
    random: Rng,
}

impl<'pool> Reads<'pool> {
    /// How many streams are long enough to be read.
    pub(crate) fn stream_count(&self) -> usize {
        self.streams.len()
    }

    /// A stream and a position in it with [`STREAM_READ`] events from there on; `None` if there is
    /// none.
    pub(crate) fn stream(&mut self) -> Option<(&'pool str, u64)> {
        if self.streams.is_empty() {
            return None;
        }
        let (stream, count) = self.streams[self.random.usize(..self.streams.len())];
        Some((stream, self.random.u64(..count - STREAM_READ as u64 + 1)))
    }

    /// A category and a global position with [`CATEGORY_READ`] events from there on; `None` if
    /// there is none.
    pub(crate) fn category(&mut self) -> Option<(&'static str, u64)> {
        let last = self.events.checked_sub(CATEGORY_READ_SPAN)?;
        Some((
            pick(&mut self.random, &CATEGORIES),
            1 + self.random.u64(..last + 1),
        ))
    }
}

/// Appends a plain form of an event: what the baselines store and what the raw limit writes.
pub(crate) fn encode(event: &NewEvent, id: u128, position: u64, time: u64, out: &mut Vec<u8>) {
    let begin = out.len();
    out.extend_from_slice(&[0; 2]);
    out.extend_from_slice(&id.to_le_bytes());
    out.extend_from_slice(&time.to_le_bytes());
    out.extend_from_slice(&position.to_le_bytes());
    let names = [
        event.stream.as_deref().unwrap_or_default(),
        &event.event_type,
    ];
    for name in names
        .into_iter()
        .chain(event.tags.iter().map(String::as_str))
    {
        out.push(name.len() as u8);
        out.extend_from_slice(name.as_bytes());
    }
    let header = (out.len() - begin) as u16;
    out[begin..begin + 2].copy_from_slice(&header.to_le_bytes());
    out.extend_from_slice(event.data.bytes());
}

/// The body inside the plain form of an event.
pub(crate) fn encoded_body(stored: &[u8]) -> Option<&[u8]> {
    let header = u16::from_le_bytes(*stored.first_chunk()?);
    stored.get(usize::from(header)..)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_are_of_the_promised_size_and_shape() {
        let pool = Pool::with_bodies(10_000);
        let events = Workload::new(&pool).batch(20_000);
        let mut bytes = Vec::new();
        for event in &events {
            let begin = bytes.len();
            encode(event, 0, 0, 0, &mut bytes);
            assert_eq!(encoded_body(&bytes[begin..]), Some(&event.data.bytes()[..]));
            assert_eq!(event.tags.len(), 2);
            event.validate(1024).unwrap();
        }
        let mean = bytes.len() as f64 / events.len() as f64;
        assert!((mean - 324.0).abs() < 6.0, "mean size {mean}");
    }

    #[test]
    fn streams_and_categories_are_as_many_and_as_skewed_as_documented() {
        let pool = Pool::with_bodies(10_000);
        let names: std::collections::HashSet<_> = pool.streams.iter().collect();
        assert_eq!(names.len(), STREAMS);
        let mut workload = Workload::new(&pool);
        for _ in 0..20 {
            workload.batch(10_000);
        }
        let share = |streams: usize| {
            let events: u32 = workload.counts[..streams].iter().sum();
            f64::from(events) / workload.generated() as f64
        };
        assert!((share(1_000) - 0.215).abs() < 0.01, "{}", share(1_000));
        assert!((share(10_000) - 0.464).abs() < 0.01, "{}", share(10_000));
        let mut categories = [0_u32; CATEGORIES.len()];
        for (index, count) in workload.counts.iter().enumerate() {
            categories[index % CATEGORIES.len()] += count;
        }
        let least = categories.iter().min().copied().unwrap_or_default();
        assert!(
            f64::from(least) / workload.generated() as f64 > 0.015,
            "{categories:?}"
        );
    }

    #[test]
    fn the_same_seed_gives_the_same_events_and_reads_stay_within_them() {
        let pool = Pool::with_bodies(10_000);
        let (mut one, mut other) = (Workload::new(&pool), Workload::new(&pool));
        let (first, second) = (one.batch(1000), other.batch(1000));
        let same = |(a, b): (&NewEvent, &NewEvent)| a.stream == b.stream && a.data == b.data;
        assert!(first.iter().zip(&second).all(same));
        assert!(
            one.reads(10).category().is_none(),
            "too few events for a read of a category"
        );
        one.batch(200_000);
        let mut reads = one.reads(usize::MAX);
        assert!(reads.stream_count() > 20, "{}", reads.stream_count());
        for _ in 0..1000 {
            let (stream, from) = reads.stream().unwrap();
            let index = pool.streams.iter().position(|name| name == stream).unwrap();
            assert!(from + STREAM_READ as u64 <= u64::from(one.counts[index]));
            let (_, position) = reads.category().unwrap();
            assert!((1..=one.generated() - CATEGORY_READ_SPAN + 1).contains(&position));
        }
    }

    #[test]
    fn ids_are_given_only_if_asked_for() {
        let pool = Pool::with_bodies(10_000);
        assert!(
            Workload::new(&pool)
                .batch(10)
                .iter()
                .all(|event| event.id.is_none())
        );
        let given = Workload::new(&pool).with_client_ids().batch(10);
        assert!(given.iter().all(|event| event.id.is_some()));
    }
}
