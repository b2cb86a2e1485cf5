//! Every limit of the product, by name and in one place.
//!
//! What exceeds a limit gets an error that names the limit and the value; nothing is truncated.

/// The longest stream name, in bytes.
pub const STREAM_NAME_BYTES_MAX: usize = 1024;
/// The longest event type, in bytes.
pub const EVENT_TYPE_BYTES_MAX: usize = 4096;
/// The longest tag, in bytes.
pub const TAG_BYTES_MAX: usize = 4096;
/// The most tags on one event.
pub const TAGS_PER_EVENT_MAX: usize = 2048;
/// The most bytes of all tags of one event together.
pub const TAGS_BYTES_PER_EVENT_MAX: usize = 32 * 1024;
/// The largest `data` of one event unless configured: a gRPC client cannot receive more than 4 MiB
/// in one message.
pub const EVENT_DATA_BYTES_DEFAULT: usize = 3 * 1024 * 1024;
/// The largest value to which the limit on `data` can be configured.
pub const EVENT_DATA_BYTES_MAX: usize = 16 * 1024 * 1024;
/// The largest `metadata` of one event.
pub const EVENT_METADATA_BYTES_MAX: usize = 4 * 1024 * 1024;
/// The most events in one commit.
pub const EVENTS_PER_COMMIT_MAX: usize = 100_000;
/// The highest position an import may claim, global or in a stream: what a client that reads JSON
/// numbers as floating point can still tell from the next one.
pub const POSITION_MAX: u64 = (1 << 53) - 1;
/// The most conditions on one commit.
pub const CONDITIONS_PER_COMMIT_MAX: usize = 10_000;
/// The most items in one query.
pub const QUERY_ITEMS_MAX: usize = 10_000;
/// The most types and tags in one query, and in all queries of one commit.
pub const QUERY_TERMS_MAX: usize = 10_000;
/// The longest source of a tracked position, in bytes.
pub const TRACKING_SOURCE_BYTES_MAX: usize = 255;
/// The most bytes of events in one commit.
pub const COMMIT_BYTES_MAX: usize = 100 * 1024 * 1024;
/// The largest HTTP request body (imports stream and have a limit per line instead).
pub const REQUEST_BYTES_MAX: usize = 100 * 1024 * 1024;
/// The most events a client may ask for in one read, other than "all of them".
pub const BATCH_SIZE_MAX: i64 = 10_000;
/// How many events a read returns if the client does not say.
pub const BATCH_SIZE_DEFAULT: usize = 1000;
/// The largest answer, in bytes of event bodies, that one unlimited read may build in memory.
pub const READ_BYTES_MAX: usize = 256 * 1024 * 1024;
/// The most streams in one page of a listing.
pub const STREAM_LIST_MAX: usize = 1000;
/// The longest namespace id, in bytes.
pub const NAMESPACE_ID_BYTES_MAX: usize = 128;
/// The shortest token that may be brought along, in bytes, except in development.
pub const TOKEN_BYTES_MIN: usize = 16;
/// The longest token that may be brought along, in bytes.
pub const TOKEN_BYTES_MAX: usize = 1024;
/// The most tokens of one namespace.
pub const TOKENS_PER_NAMESPACE_MAX: usize = 64;
/// The longest name of a token, in bytes.
pub const TOKEN_NAME_BYTES_MAX: usize = 64;
/// The most prefixes of streams, and of keys, that one token is confined to.
pub const TOKEN_PREFIXES_MAX: usize = 32;
/// The longest namespace description, in bytes.
pub const NAMESPACE_DESCRIPTION_BYTES_MAX: usize = 4096;
/// The largest metadata of a namespace, in bytes of JSON.
pub const NAMESPACE_METADATA_BYTES_MAX: usize = 64 * 1024;
/// The least quota of memory of a namespace, in bytes: twice what the largest step of an answer takes that
/// waits for memory.
pub const MEMORY_QUOTA_MIN: u64 = 16 * 1024 * 1024;
/// The largest consumer group.
pub const CONSUMER_GROUP_SIZE_MAX: u64 = 32_767;
/// The deepest nesting of JSON that is accepted.
pub const JSON_DEPTH_MAX: usize = 128;
/// How many commits may wait for the writer of one namespace before more are refused.
pub const COMMIT_QUEUE_MAX: usize = 16_384;
/// How many bytes of events may wait for the writer of one namespace before more are refused.
pub const COMMIT_QUEUE_BYTES_MAX: usize = 512 * 1024 * 1024;
/// How many reads and conditions of one namespace that take long may wait for a thread before more are
/// refused.
pub const LONG_READ_QUEUE_MAX: usize = 4096;
/// The most commits that share one `fdatasync`.
pub const GROUP_COMMITS_MAX: usize = 2048;
/// The bytes of events after which a group takes no more commits.
pub const GROUP_BYTES_MAX: usize = 8 * 1024 * 1024;
/// The most commands and events in one transaction.
pub const STEPS_PER_TRANSACTION_MAX: usize = 2_000_000;
/// The most bytes of commands and events in one transaction: a million commands on bits fit.
pub const TRANSACTION_BYTES_MAX: usize = 256 * 1024 * 1024;
/// The most bytes of state that one commit may change.
pub const STATE_BYTES_PER_COMMIT_MAX: usize = 256 * 1024 * 1024;
/// The most conditions on state in one transaction.
pub const GUARDS_PER_TRANSACTION_MAX: usize = 10_000;
/// The longest id of a transaction, in bytes.
pub const COMMIT_ID_BYTES_MAX: usize = 255;
/// The most retention policies of a namespace.
pub const RETENTION_POLICIES_MAX: u64 = 1000;
/// The highest maximum age of a retention policy, in seconds: a hundred years.
pub const RETENTION_SECONDS_MAX: u64 = 100 * 365 * 24 * 60 * 60;
