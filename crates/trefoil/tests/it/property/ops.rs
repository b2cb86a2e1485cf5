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
pub(crate) const TYPES: [&str; 4] = ["Opened", "Moved", "Closed", "Move"];
/// Tags that begin alike, one of them with nothing in common with the others.
pub(crate) const TAGS: [&str; 6] = ["tag:1", "tag:10", "tag", "tag:1 ", "étiquette", "hot"];
/// What no event has, to be asked for.
pub(crate) const ABSENT: &str = "absent";
pub(crate) const SOURCES: [&str; 2] = ["upstream", "étranger"];
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
    Commit(CommitSpec),
    /// Commits handed in at the same moment, so that some of them share a group.
    Together(Vec<CommitSpec>),
    /// Conditions without a commit.
    Check(Vec<ConditionSpec>),
    Tracking {
        source: usize,
    },
    Resend {
        which: usize,
        how: Resend,
    },
    Import {
        events: Vec<ImportSpec>,
        fault: Fault,
    },
    /// Events of a stream are removed. The version is that of the stream plus an offset.
    Remove {
        stream: usize,
        before: BeforeSpec,
        version: Option<i64>,
    },
    /// What an event says is removed.
    Redact {
        event: usize,
        drops_tags: bool,
    },
    Read(ReadSpec),
    /// The same in pages of at most so many events and about so many bytes.
    Pages {
        read: ReadSpec,
        limit: usize,
        bytes: usize,
    },
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
    Checkpoint,
    Compact,
    Reopen,
}

#[derive(Debug, Clone)]
pub(crate) struct CommitSpec {
    pub(crate) events: Vec<EventSpec>,
    pub(crate) conditions: Vec<ConditionSpec>,
    /// The source, and what to add to the position recorded for it: 1 is the next one.
    pub(crate) tracking: Option<(usize, i64)>,
    /// Whether known ids may be stored again.
    pub(crate) has_repeatable_ids: bool,
}

#[derive(Debug, Clone)]
pub(crate) struct EventSpec {
    pub(crate) stream: Option<usize>,
    pub(crate) event_type: usize,
    pub(crate) metadata: Option<usize>,
    pub(crate) tags: Vec<usize>,
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
pub(crate) enum ConditionSpec {
    Version {
        stream: usize,
        /// What to add to the true version: 0 holds.
        offset: i64,
    },
    NoMatch {
        source: SourceSpec,
        query: QuerySpec,
        after: AfterSpec,
    },
}

/// Items of types and tags; a number beyond the lists stands for a name that no event has.
pub(crate) type QuerySpec = Vec<(Vec<usize>, Vec<usize>)>;

#[derive(Debug, Clone)]
pub(crate) enum AfterSpec {
    /// Every event counts.
    Nothing,
    /// The position of an event plus an offset.
    Near(usize, i64),
    /// The head plus an offset, so that little counts or nothing.
    Head(i64),
}

/// Up to where events are removed.
#[derive(Debug, Clone)]
pub(crate) enum BeforeSpec {
    /// A position in the stream.
    StreamPosition(u64),
    /// The position of an event plus an offset.
    Near(usize, i64),
    /// The end of the stream.
    End,
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
    WithOtherData,
    /// The order of tags means nothing.
    WithTagsTurned,
    WithNewTracking(usize),
    /// The events are stored again.
    Repeatable,
}

#[derive(Debug, Clone)]
pub(crate) struct ImportSpec {
    pub(crate) event: EventSpec,
    pub(crate) position_gap: u64,
    pub(crate) stream_gap: u64,
    pub(crate) seconds: i64,
    pub(crate) tracking: Option<(usize, u64)>,
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
    pub(crate) query: QuerySpec,
    /// The position of an event plus an offset.
    pub(crate) as_of: Option<(usize, i64)>,
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

/// Tags by their numbers, the last one the most frequent, now and then one twice.
fn tags(n: std::ops::Range<usize>) -> impl Strategy<Value = Vec<usize>> {
    let tag = prop_oneof![3 => 0..TAGS.len(), 1 => Just(TAGS.len() - 1)];
    proptest::collection::vec(tag, n)
}

fn query() -> impl Strategy<Value = QuerySpec> {
    let types = proptest::collection::vec(0..=TYPES.len(), 0..4);
    let tag = prop_oneof![8 => 0..TAGS.len(), 1 => Just(TAGS.len())];
    let tags = proptest::collection::vec(tag, 0..4);
    proptest::collection::vec((types, tags), 0..4)
}

fn source() -> impl Strategy<Value = SourceSpec> {
    prop_oneof![
        4 => Just(SourceSpec::All),
        3 => (0..CATEGORIES.len()).prop_map(SourceSpec::Category),
        4 => (0..STREAMS.len()).prop_map(SourceSpec::Stream),
    ]
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
    let stream = prop_oneof![7 => (0..STREAMS.len()).prop_map(Some), 3 => Just(None)];
    let metadata = proptest::option::of(0..METADATA.len());
    (stream, 0..TYPES.len(), metadata, tags(0..4), id, data).prop_map(
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

fn condition() -> impl Strategy<Value = ConditionSpec> {
    let offset = prop_oneof![6 => Just(0), 1 => -3..4i64];
    let version = (0..STREAMS.len(), offset)
        .prop_map(|(stream, offset)| ConditionSpec::Version { stream, offset });
    let after = prop_oneof![
        1 => Just(AfterSpec::Nothing),
        2 => (any::<usize>(), -1..2i64).prop_map(|(event, offset)| AfterSpec::Near(event, offset)),
        4 => (-6..3i64).prop_map(AfterSpec::Head),
    ];
    let no_match =
        (source(), query(), after).prop_map(|(source, query, after)| ConditionSpec::NoMatch {
            source,
            query,
            after,
        });
    prop_oneof![1 => version, 2 => no_match]
}

fn commit() -> impl Strategy<Value = CommitSpec> {
    let events = proptest::collection::vec(event(), 0..6);
    let conditions = prop_oneof![
        2 => Just(Vec::new()),
        3 => proptest::collection::vec(condition(), 1..4),
    ];
    let tracked = (0..SOURCES.len(), prop_oneof![4 => 1..4i64, 1 => -2..1i64]);
    let tracking = prop_oneof![4 => Just(None), 1 => tracked.prop_map(Some)];
    (events, conditions, tracking, prop::bool::weighted(0.2)).prop_map(
        |(events, conditions, tracking, has_repeatable_ids)| CommitSpec {
            events,
            conditions,
            tracking,
            has_repeatable_ids,
        },
    )
}

fn resend() -> impl Strategy<Value = Op> {
    let how = prop_oneof![
        4 => Just(Resend::Same),
        2 => Just(Resend::WithFailingCondition),
        1 => Just(Resend::Reversed),
        1 => Just(Resend::WithoutLast),
        1 => Just(Resend::WithNewEvent),
        1 => Just(Resend::ToOtherStream),
        1 => Just(Resend::WithOtherData),
        1 => Just(Resend::WithTagsTurned),
        1 => (0..SOURCES.len()).prop_map(Resend::WithNewTracking),
        2 => Just(Resend::Repeatable),
    ];
    (any::<usize>(), how).prop_map(|(which, how)| Op::Resend { which, how })
}

fn remove() -> impl Strategy<Value = Op> {
    let before = prop_oneof![
        3 => (0..12u64).prop_map(BeforeSpec::StreamPosition),
        4 => (any::<usize>(), -1..2i64).prop_map(|(event, offset)| BeforeSpec::Near(event, offset)),
        2 => Just(BeforeSpec::End),
    ];
    let version = prop_oneof![3 => Just(None), 1 => (-1..2i64).prop_map(Some)];
    (0..STREAMS.len(), before, version).prop_map(|(stream, before, version)| Op::Remove {
        stream,
        before,
        version,
    })
}

fn import() -> impl Strategy<Value = Op> {
    let gap = || prop_oneof![4 => Just(0), 1 => 0..50u64];
    let tracked = (0..SOURCES.len(), 0..20u64);
    let tracking = prop_oneof![4 => Just(None), 1 => tracked.prop_map(Some)];
    let imported = (event(), gap(), gap(), -1000..1000i64, tracking).prop_map(
        |(event, position_gap, stream_gap, seconds, tracking)| ImportSpec {
            event,
            position_gap,
            stream_gap,
            seconds,
            tracking,
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
    let as_of = (any::<usize>(), -1..2i64);
    let as_of = prop_oneof![3 => Just(None), 1 => as_of.prop_map(Some)];
    let query = prop_oneof![1 => Just(Vec::new()), 2 => query()];
    let place = (source(), from, any::<bool>(), limit, as_of);
    (place, event_type, correlation, group, query).prop_map(
        |((source, from, backwards, limit, as_of), event_type, correlation, group, query)| {
            ReadSpec {
                source,
                from,
                backwards,
                limit,
                event_type,
                correlation,
                group,
                query,
                as_of,
            }
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
        36 => commit().prop_map(Op::Commit),
        8 => proptest::collection::vec(commit(), 2..6).prop_map(Op::Together),
        4 => proptest::collection::vec(condition(), 1..4).prop_map(Op::Check),
        2 => (0..SOURCES.len()).prop_map(|source| Op::Tracking { source }),
        8 => resend(),
        6 => import(),
        6 => remove(),
        3 => (any::<usize>(), any::<bool>())
            .prop_map(|(event, drops_tags)| Op::Redact { event, drops_tags }),
        30 => read().prop_map(Op::Read),
        8 => (read(), 1..8usize, 1..2000usize)
            .prop_map(|(read, limit, bytes)| Op::Pages { read, limit, bytes }),
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
        2 => Just(Op::Checkpoint),
        1 => Just(Op::Compact),
        4 => Just(Op::Reopen),
    ]
}
