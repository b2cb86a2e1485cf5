//! The limits of the server itself, by name and in one place. Those of events and requests are in
//! `trefoil::limits`.

use std::time::Duration;

use trefoil::limits::{EVENT_DATA_BYTES_MAX, EVENT_METADATA_BYTES_MAX, REQUEST_BYTES_MAX};

/// The most connections at once, unless configured.
pub(crate) const CONNECTIONS_DEFAULT: usize = 10_000;
/// The most requests under way on one HTTP/2 connection.
pub(crate) const HTTP2_STREAMS_MAX: u32 = 256;
/// The largest head of a request, and the unit in which bodies are read.
pub(crate) const HEAD_BYTES_MAX: usize = 64 * 1024;
/// The same for HTTP/2, which counts in another type.
pub(crate) const HTTP2_HEAD_BYTES_MAX: u32 = 64 * 1024;
/// How long the head of a request may take to arrive.
pub(crate) const HEAD_TIMEOUT: Duration = Duration::from_secs(30);
/// How long a connection may stay open without a request.
pub(crate) const IDLE_TIMEOUT: Duration = Duration::from_secs(120);
/// How long the sender of a request body may be silent.
pub(crate) const BODY_TIMEOUT: Duration = Duration::from_secs(30);
/// How long requests under way may take to finish at shutdown.
pub(crate) const DRAIN_TIMEOUT: Duration = Duration::from_secs(10);
/// Requests that take this long are slow, unless something else is configured.
pub(crate) const SLOW_AFTER_DEFAULT: Duration = Duration::from_millis(250);

/// How often a silent subscription says that it is alive.
pub(crate) const KEEP_ALIVE_DEFAULT: Duration = Duration::from_secs(15);
/// The memory for clients, unless configured, is what the process may use, divided by this.
pub(crate) const CLIENT_MEMORY_FRACTION: u64 = 4;
/// But at least this.
pub const CLIENT_MEMORY_MIN: usize = 64 * 1024 * 1024;
/// The clients of one namespace may hold all of it, divided by this.
pub(crate) const NAMESPACE_FRACTION: usize = 2;
/// One connection may hold all of it, divided by this.
pub(crate) const CONNECTION_FRACTION: usize = 4;
/// What one request of the largest size needs: no share is less than that, if there is as much. A
/// buffer that grows by doubling may take twice what is in it.
pub(crate) const LARGEST_REQUEST_MEMORY: usize = 2 * RESP_REQUEST_BYTES_MAX;
/// What every connection takes of the memory for clients from the beginning.
pub(crate) const CONNECTION_BYTES: usize = 32 * 1024;
/// Connections by themselves take at most the memory for clients divided by this: there are no more
/// of them than that allows.
pub(crate) const CONNECTIONS_FRACTION: usize = 2;
/// In which steps a connection takes memory for clients.
pub(crate) const BUDGET_STEP_BYTES: usize = 64 * 1024;
/// What is smaller than this counts for its connection, but not for its namespace.
pub(crate) const SMALL_RESERVATION_BYTES: usize = 64 * 1024;
/// How long to wait before looking again whether there is memory for clients.
pub(crate) const BUDGET_PAUSE: Duration = Duration::from_millis(20);
/// What every request over HTTP or gRPC takes of the memory for clients, for its head, a small body
/// and a small answer.
pub(crate) const REQUEST_BYTES: usize = 8 * 1024;
/// Each protocol has all connections divided by this to itself.
pub(crate) const PROTOCOL_FRACTION: usize = 8;
/// The most HTTP connections beyond the limit, which may ask for `/health` and its like.
pub(crate) const SURPLUS_CONNECTIONS_MAX: usize = 16;
/// How long such a connection lasts.
pub(crate) const SURPLUS_TIMEOUT: Duration = Duration::from_secs(5);
/// How much of a refused body is read and thrown away, so that its sender sees the answer.
pub(crate) const DISCARD_BYTES_MAX: usize = 256 * 1024 * 1024;
/// How long a refused body is thrown away.
pub(crate) const DISCARD_TIMEOUT: Duration = Duration::from_secs(10);
/// The longest line of an import: the largest event in base64 with its metadata, names and tags.
pub(crate) const IMPORT_LINE_BYTES_MAX: usize =
    EVENT_DATA_BYTES_MAX / 3 * 4 + EVENT_METADATA_BYTES_MAX + 128 * 1024;
/// The events of one atomic batch of an import.
pub(crate) const IMPORT_BATCH_EVENTS: usize = 1000;
/// The bytes of lines after which a batch of an import is written although it is not full.
pub(crate) const IMPORT_BATCH_BYTES: usize = 32 * 1024 * 1024;
/// Reads of at most this many events are carried out at once, on the thread that asks.
pub(crate) const SHORT_READ_EVENTS_MAX: usize = 1000;
/// About how many bytes of events a read takes from the database at a time.
pub(crate) const PAGE_BYTES: usize = 1024 * 1024;
/// Answers that grow beyond this are sent while they are being read.
pub(crate) const ANSWER_BUFFER_BYTES: usize = 1024 * 1024;
/// What the next part of such an answer takes of the memory for clients while it is made: a page of
/// events, and what is written of them.
pub(crate) const ANSWER_CHUNK_MEMORY: usize = PAGE_BYTES + 2 * ANSWER_BUFFER_BYTES;
/// About how many bytes of events a subscription takes from the database at a time.
pub(crate) const SUBSCRIPTION_PAGE_BYTES: usize = 64 * 1024;
/// How many pages of the subscriptions of one namespace are read at a time.
pub(crate) const PAGE_READS_MAX: usize = 4;
/// How many backups are made at a time.
pub(crate) const BACKUPS_MAX: usize = 4;
/// What the next part of a backup takes of the memory for clients while it is made.
pub(crate) const BACKUP_STEP_MEMORY: usize = 8 * 1024 * 1024;
/// How many namespaces are opened at a time for clients that ask for them.
pub(crate) const OPENINGS_MAX: usize = 16;
/// How many addresses of namespaces that are on other nodes are remembered.
pub(crate) const OWNER_HINTS_MAX: usize = 100_000;
/// How long it may take to open a connection to another node.
pub(crate) const PEER_DIAL_TIMEOUT: Duration = Duration::from_secs(2);
/// How long whoever knocks at the door for other nodes may take to show that it is one.
pub(crate) const PEER_HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(5);
/// How many may be about to show that at the same time.
pub(crate) const PEER_HANDSHAKES_MAX: usize = 256;
/// How long the owner of a namespace is looked for while the namespace moves: longer than a take-over lasts.
pub(crate) const MOVE_PATIENCE: Duration = Duration::from_secs(15);
/// The same for a subscription, which nobody waits for.
pub(crate) const SUBSCRIPTION_MOVE_PATIENCE: Duration = Duration::from_secs(60);
/// How long the answer of another node may take to begin.
pub(crate) const PEER_ANSWER_TIMEOUT: Duration = Duration::from_secs(60);
/// How often another node is asked whether it is alive, while a connection to it is open.
pub(crate) const PEER_PING_INTERVAL: Duration = Duration::from_secs(2);
/// How long the answer to that may take.
pub(crate) const PEER_PING_TIMEOUT: Duration = Duration::from_secs(4);
/// What a RESP client takes of the memory for clients whose requests are sent on to another node.
pub(crate) const RESP_LINK_BYTES: usize = 32 * 1024;
/// How long another node may take for a RESP request until it is asked for who has the namespace now.
pub(crate) const RESP_LINK_PATIENCE: Duration = Duration::from_secs(2);
/// The most gRPC calls that share one connection to another node.
pub(crate) const GRPC_PEER_CALLS_MAX: usize = 64;
/// The most HTTP connections to one other node.
pub(crate) const PEER_CONNECTIONS_MAX: usize = 64;
/// The most requests under way on one of them: fewer than [`HTTP2_STREAMS_MAX`].
pub(crate) const PEER_CONNECTION_REQUESTS_MAX: usize = 200;
/// How long such a connection is kept when nobody uses it.
pub(crate) const PEER_CONNECTION_IDLE: Duration = Duration::from_secs(60);
/// How many bytes nodes may send each other ahead for one request.
pub(crate) const PEER_WINDOW_BYTES: u32 = 64 * 1024;
/// And for all requests of a connection: none waits for another one.
pub(crate) const PEER_CONNECTION_WINDOW_BYTES: u32 = PEER_WINDOW_BYTES * HTTP2_STREAMS_MAX;
/// How many bytes of a body are kept to be sent again: what another node takes before it looks at the
/// request, and a piece besides.
pub(crate) const PEER_KEPT_BODY_BYTES: usize = 4 * PEER_WINDOW_BYTES as usize;
/// Answers below this are not compressed: they fit into the first flight of a connection.
pub(crate) const COMPRESS_BYTES_MIN: usize = 16 * 1024;
/// How many bytes of a path are written to the log.
pub(crate) const LOGGED_PATH_BYTES: usize = 128;
/// The most calls under way on one gRPC connection.
pub(crate) const GRPC_STREAMS_MAX: u32 = 1024;
/// The most calls that a gRPC client may cancel before they have begun: one that cancels more at once
/// is an attacker.
pub(crate) const GRPC_CANCELLED_CALLS_MAX: usize = 256;
/// The most calls that a gRPC connection begins before other connections of its thread have their
/// turn.
pub(crate) const GRPC_CALLS_PER_TURN_MAX: usize = 64;
/// How many bytes a gRPC client may send ahead in one call.
pub(crate) const GRPC_STREAM_WINDOW_BYTES: u32 = 4 * 1024 * 1024;
/// How many bytes a gRPC client may send ahead in all calls of a connection.
pub(crate) const GRPC_CONNECTION_WINDOW_BYTES: u32 = 8 * 1024 * 1024;
/// The most bytes of a call that a client may send in one piece; what comes in one piece is not
/// copied again.
pub(crate) const GRPC_FRAME_BYTES_MAX: u32 = 512 * 1024;
/// The bytes of answers after which a gRPC connection waits until the client has taken them.
pub(crate) const GRPC_OUTGOING_BYTES_MAX: usize = 64 * 1024;
/// How long a gRPC connection may be silent before it is asked whether it is alive.
pub(crate) const GRPC_PING_INTERVAL: Duration = Duration::from_secs(5);
/// How long the answer to that may take.
pub(crate) const GRPC_PING_TIMEOUT: Duration = Duration::from_secs(10);
/// How many events a gRPC response holds if the client does not say.
pub(crate) const GRPC_BATCH_DEFAULT: usize = 1024;
/// The most events in a gRPC response.
pub(crate) const GRPC_BATCH_MAX: usize = 4096;
/// About how many bytes a gRPC response has; a larger event gets one of its own.
pub(crate) const GRPC_MESSAGE_BYTES: usize = 1024 * 1024;
/// The largest gRPC response: what clients accept unless they are told otherwise.
pub(crate) const GRPC_MESSAGE_BYTES_MAX: usize = 4 * 1024 * 1024;
/// The most words of one command in a commit over HTTP.
pub(crate) const WORDS_PER_COMMAND_MAX: usize = 1_000_000;
/// What a word of such a command takes of the memory for clients besides its bytes.
pub(crate) const WORD_MEMORY: usize = 64;
/// The most commands in one commit over HTTP.
pub(crate) const COMMANDS_PER_COMMIT_MAX: usize = 1_000_000;
/// The most threads that serve a protocol.
pub const CONNECTION_THREADS_MAX: usize = 1024;
/// The longest line of a RESP client that does not end: a length, or a line of words.
pub(crate) const RESP_LINE_BYTES_MAX: usize = 64 * 1024;
/// The largest RESP request: one word of the largest length, and what goes with it.
pub(crate) const RESP_REQUEST_BYTES_MAX: usize = REQUEST_BYTES_MAX + 1024 * 1024;
/// RESP requests up to this size are copied out of the buffer they came in.
pub(crate) const RESP_COPIED_REQUEST_BYTES_MAX: usize = 4 * 1024;
/// The most words in a request of a RESP client that has not authenticated.
pub(crate) const RESP_STRANGER_WORDS_MAX: usize = 10;
/// The longest word in a request of a RESP client that has not authenticated.
pub(crate) const RESP_STRANGER_WORD_BYTES_MAX: usize = 16 * 1024;
/// The largest request of a RESP client that has not authenticated.
pub(crate) const RESP_STRANGER_REQUEST_BYTES_MAX: usize = 1024 * 1024;
/// How many bytes are read from a RESP connection at a time, at first and at most.
pub(crate) const RESP_READ_BYTES: (usize, usize) = (4 * 1024, 64 * 1024);
/// What every RESP connection keeps of the memory for clients to read requests.
pub(crate) const RESP_INPUT_BYTES: usize = 16 * 1024;
/// The most requests of a RESP client that are carried out together.
pub(crate) const RESP_BATCH_REQUESTS_MAX: usize = 1024;
/// The most bytes of such requests.
pub(crate) const RESP_BATCH_BYTES_MAX: usize = 4 * 1024 * 1024;
/// A RESP command that reads a whole collection does so at once if it has at most this many elements.
pub(crate) const RESP_SHORT_ELEMENTS_MAX: usize = 256;
/// And one that reads a whole string if it has at most this many bytes.
pub(crate) const RESP_SHORT_STRING_BYTES_MAX: usize = 1024 * 1024;
/// The bytes of replies that every RESP connection may keep before they are sent.
pub(crate) const RESP_OUTPUT_BYTES: usize = 16 * 1024;
/// Of them, those that may wait for the end of a turn to be sent: more are sent at once.
pub(crate) const RESP_OUTBOX_BYTES_MAX: usize = RESP_OUTPUT_BYTES / 2;
/// A RESP reply that takes more memory than this is made elsewhere, in pieces if it can be.
pub(crate) const RESP_SHORT_REPLY_BYTES: usize = 1024 * 1024;
/// How many bytes of a long string are read at a time.
pub(crate) const RESP_PIECE_BYTES: u64 = 256 * 1024;
/// How many elements of a large collection are read at a time, and how much memory they may take
/// unless there is only one of them.
pub(crate) const RESP_PIECE_ELEMENTS: usize = 512;
/// How many bytes of a long reply a client must take in a second, on average, after the time that it
/// may take nothing: it keeps the state of a moment meanwhile.
pub(crate) const RESP_REPLY_BYTES_PER_SECOND: u64 = 64 * 1024;
/// The bytes of replies after which they are sent before more are made.
pub(crate) const RESP_REPLY_BYTES: usize = 256 * 1024;
/// How long a RESP client may take nothing of the replies that are sent to it. Until then, nothing
/// more is read from it.
pub(crate) const RESP_REPLY_TIMEOUT: Duration = Duration::from_secs(60);
/// The longest name of a RESP client, of its library and of the library's version.
pub(crate) const RESP_NAME_BYTES_MAX: usize = 1024;
/// How much of a command that is not known is repeated in the error, as Redis does.
pub(crate) const RESP_REPEATED_BYTES_MAX: usize = 128;
/// How long what a RESP client still sends is thrown away after its connection has been ended, so
/// that it can read why.
pub(crate) const RESP_DISCARD_TIMEOUT: Duration = Duration::from_secs(2);
