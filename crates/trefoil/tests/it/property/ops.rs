//! What may happen to a database, described without reference to what it holds.
//!
//! Operations name streams, earlier events and earlier commits by small numbers that the driver
//! resolves against the model, so that any part of a failing sequence is a sequence again and
//! shrinking finds the few operations that matter.

use proptest::prelude::*;
use proptest::sample::select;

/// Names that share categories, cardinal ids, prefixes and bytes beyond ASCII.
pub(crate) const STREAMS: [&str; 9] = [
    "account-1",
    "account-2",
    "account-1+copy",
    "account",
    "account-",
    "order-7",
    "order-café",
    "o",
    "-",
];
pub(crate) const CATEGORIES: [&str; 6] = ["account", "order", "o", "", "acc", "account-1"];
pub(crate) const TYPES: [&str; 3] = ["Opened", "Moved", "Closed"];
/// Metadata and, where there is one, the category it correlates with.
pub(crate) const METADATA: [&str; 5] = [
    r#"{"correlationStreamName":"workflow-1"}"#,
    r#"{ "correlationStreamName" : "workflow" }"#,
    r#"{"correlationStreamName":"saga-1+x","user":7}"#,
    r#"{"correlationStreamName":5}"#,
    "{}",
];
pub(crate) const CORRELATIONS: [&str; 4] = ["workflow", "saga", "workflow-1", "absent"];

#[derive(Debug, Clone)]
pub(crate) enum Op {
    Commit {
        events: Vec<EventSpec>,
        conditions: Vec<ConditionSpec>,
    },
    Resend {
        which: usize,
        how: Resend,
    },
    Import {
        events: Vec<ImportSpec>,
        fault: Fault,
    },
    Read(ReadSpec),
    Last {
        stream: usize,
        event_type: Option<usize>,
    },
    Version {
        stream: usize,
    },
    Streams(ListSpec),
    Categories(ListSpec),
    Info,
    PositionAt {
        event: usize,
        offset: i64,
    },
    Subscribe(ReadSpec),
    Poll {
        which: usize,
    },
    Clear,
    Reopen,
}

#[derive(Debug, Clone)]
pub(crate) struct EventSpec {
    pub(crate) stream: Option<usize>,
    pub(crate) event_type: usize,
    pub(crate) metadata: Option<usize>,
    pub(crate) tags: u8,
    pub(crate) id: IdSpec,
    pub(crate) data: DataSpec,
}

#[derive(Debug, Clone)]
pub(crate) enum IdSpec {
    /// The engine makes one.
    Made,
    /// One of a few ids, so that they come again.
    Client(u8),
    /// The id of an event that is there, whoever made it.
    Existing(usize),
    /// An id of another system that looks as if it had been made here for this position.
    Lookalike(u8),
}

#[derive(Debug, Clone)]
pub(crate) enum DataSpec {
    Json(u16),
    Binary(u16),
    /// Not JSON, to be refused.
    Broken,
}

#[derive(Debug, Clone)]
pub(crate) struct ConditionSpec {
    pub(crate) stream: usize,
    /// What to add to the true version: 0 holds.
    pub(crate) offset: i64,
}

/// What a client does with a commit that was answered before.
#[derive(Debug, Clone)]
pub(crate) enum Resend {
    Same,
    /// The conditions of the first time no longer hold, and must not matter.
    WithFailingCondition,
    Reversed,
    WithoutLast,
    WithNewEvent,
    ToOtherStream,
}

#[derive(Debug, Clone)]
pub(crate) struct ImportSpec {
    pub(crate) event: EventSpec,
    pub(crate) position_gap: u64,
    pub(crate) stream_gap: u64,
    pub(crate) seconds: i64,
}

/// The one thing that is wrong with an import.
#[derive(Debug, Clone)]
pub(crate) enum Fault {
    Nothing,
    PositionTaken(usize),
    PositionInGap(usize),
    NotAscending,
    StreamPositionTaken,
    DuplicateId(usize),
}

#[derive(Debug, Clone)]
pub(crate) struct ReadSpec {
    pub(crate) source: SourceSpec,
    pub(crate) from: FromSpec,
    pub(crate) backwards: bool,
    pub(crate) limit: usize,
    pub(crate) event_type: Option<usize>,
    pub(crate) correlation: Option<usize>,
    pub(crate) group: Option<(u64, u64)>,
}

#[derive(Debug, Clone)]
pub(crate) enum SourceSpec {
    All,
    Category(usize),
    Stream(usize),
}

#[derive(Debug, Clone)]
pub(crate) enum FromSpec {
    Edge,
    /// The position of an event plus an offset.
    Near(usize, i64),
    /// A stream position; a global one for sources that are no stream.
    Number(u64),
}

#[derive(Debug, Clone)]
pub(crate) struct ListSpec {
    pub(crate) prefix: &'static str,
    pub(crate) after: &'static str,
    pub(crate) limit: usize,
}

fn event() -> impl Strategy<Value = EventSpec> {
    let id = prop_oneof![
        6 => Just(IdSpec::Made),
        4 => any::<u8>().prop_map(IdSpec::Client),
        1 => any::<usize>().prop_map(IdSpec::Existing),
        1 => (0..60u8).prop_map(IdSpec::Lookalike),
    ];
    let data = prop_oneof![
        30 => (0..60u16).prop_map(DataSpec::Json),
        6 => (0..3000u16).prop_map(DataSpec::Json),
        6 => (0..600u16).prop_map(DataSpec::Binary),
        1 => Just(DataSpec::Broken),
    ];
    let stream = prop_oneof![9 => (0..STREAMS.len()).prop_map(Some), 1 => Just(None)];
    let metadata = proptest::option::of(0..METADATA.len());
    (stream, 0..TYPES.len(), metadata, 0..3u8, id, data).prop_map(
        |(stream, event_type, metadata, tags, id, data)| EventSpec {
            stream,
            event_type,
            metadata,
            tags,
            id,
            data,
        },
    )
}

fn commit() -> impl Strategy<Value = Op> {
    let offset = prop_oneof![6 => Just(0), 1 => -3..4i64];
    let condition =
        (0..STREAMS.len(), offset).prop_map(|(stream, offset)| ConditionSpec { stream, offset });
    let conditions = proptest::collection::vec(condition, 0..3);
    (proptest::collection::vec(event(), 0..6), conditions)
        .prop_map(|(events, conditions)| Op::Commit { events, conditions })
}

fn resend() -> impl Strategy<Value = Op> {
    let how = prop_oneof![
        4 => Just(Resend::Same),
        2 => Just(Resend::WithFailingCondition),
        1 => Just(Resend::Reversed),
        1 => Just(Resend::WithoutLast),
        1 => Just(Resend::WithNewEvent),
        1 => Just(Resend::ToOtherStream),
    ];
    (any::<usize>(), how).prop_map(|(which, how)| Op::Resend { which, how })
}

fn import() -> impl Strategy<Value = Op> {
    let gap = || prop_oneof![4 => Just(0), 1 => 0..50u64];
    let imported = (event(), gap(), gap(), -1000..1000i64).prop_map(
        |(event, position_gap, stream_gap, seconds)| ImportSpec {
            event,
            position_gap,
            stream_gap,
            seconds,
        },
    );
    let fault = prop_oneof![
        8 => Just(Fault::Nothing),
        1 => any::<usize>().prop_map(Fault::PositionTaken),
        1 => any::<usize>().prop_map(Fault::PositionInGap),
        1 => Just(Fault::NotAscending),
        1 => Just(Fault::StreamPositionTaken),
        1 => any::<usize>().prop_map(Fault::DuplicateId),
    ];
    (proptest::collection::vec(imported, 1..6), fault)
        .prop_map(|(events, fault)| Op::Import { events, fault })
}

fn read() -> impl Strategy<Value = ReadSpec> {
    let source = prop_oneof![
        2 => Just(SourceSpec::All),
        3 => (0..CATEGORIES.len()).prop_map(SourceSpec::Category),
        4 => (0..STREAMS.len()).prop_map(SourceSpec::Stream),
    ];
    let from = prop_oneof![
        2 => Just(FromSpec::Edge),
        4 => (any::<usize>(), -2..3i64).prop_map(|(event, offset)| FromSpec::Near(event, offset)),
        2 => prop_oneof![0..40u64, Just(u64::MAX)].prop_map(FromSpec::Number),
    ];
    let limit = prop_oneof![1 => Just(0), 2 => Just(1), 3 => 2..20usize, 3 => Just(usize::MAX)];
    let group = prop_oneof![
        3 => Just(None),
        1 => (0..3u64, 1..4u64).prop_map(|(member, size)| Some((member % size, size))),
    ];
    let event_type = prop_oneof![3 => Just(None), 1 => (0..TYPES.len()).prop_map(Some)];
    let correlation = prop_oneof![3 => Just(None), 1 => (0..CORRELATIONS.len()).prop_map(Some)];
    (
        source,
        from,
        any::<bool>(),
        limit,
        event_type,
        correlation,
        group,
    )
        .prop_map(
            |(source, from, backwards, limit, event_type, correlation, group)| ReadSpec {
                source,
                from,
                backwards,
                limit,
                event_type,
                correlation,
                group,
            },
        )
}

fn list() -> impl Strategy<Value = ListSpec> {
    let prefix = select(vec![
        "",
        "",
        "a",
        "account-",
        "order",
        "-",
        "zzz",
        "account-1",
    ]);
    let after = select(vec![
        "",
        "",
        "account",
        "account-1",
        "o",
        "order-café",
        "zzz",
    ]);
    let limit = prop_oneof![Just(0), Just(1), 2..6usize, Just(usize::MAX)];
    (prefix, after, limit).prop_map(|(prefix, after, limit)| ListSpec {
        prefix,
        after,
        limit,
    })
}

/// One operation; writes are frequent, `clear` is rare.
pub(crate) fn op() -> impl Strategy<Value = Op> {
    prop_oneof![
        40 => commit(),
        8 => resend(),
        6 => import(),
        30 => read().prop_map(Op::Read),
        4 => (0..STREAMS.len(), proptest::option::of(0..TYPES.len()))
            .prop_map(|(stream, event_type)| Op::Last { stream, event_type }),
        4 => (0..STREAMS.len()).prop_map(|stream| Op::Version { stream }),
        4 => list().prop_map(Op::Streams),
        4 => list().prop_map(Op::Categories),
        2 => Just(Op::Info),
        3 => (any::<usize>(), -1..2i64).prop_map(|(event, offset)| Op::PositionAt { event, offset }),
        4 => read().prop_map(Op::Subscribe),
        8 => any::<usize>().prop_map(|which| Op::Poll { which }),
        1 => Just(Op::Clear),
        4 => Just(Op::Reopen),
    ]
}
