//! The SQLite baseline: EventoDB's table and indexes, WAL, `synchronous = FULL`, one transaction
//! per batch.
//!
//! Tags go into the metadata column and are not indexed, as that table has no place for them; ids
//! are UUIDs in text as there.

use std::collections::HashMap;
use std::path::Path;

use anyhow::Result;
use fastrand::Rng;
use rusqlite::{Connection, params};
use trefoil::NewEvent;
use uuid::Uuid;

use crate::body::random_uuid;
use crate::system::{System, Touched};

const CATEGORY: &str = "CASE WHEN instr(stream_name, '-') > 0 \
    THEN substr(stream_name, 1, instr(stream_name, '-') - 1) ELSE stream_name END";

pub(crate) struct Sqlite {
    connection: Connection,
    /// How many events each stream has.
    lengths: HashMap<String, i64>,
    random: Rng,
}

impl Sqlite {
    pub(crate) fn open(directory: &Path) -> Result<Self> {
        std::fs::create_dir_all(directory)?;
        let connection = Connection::open(directory.join("events.db"))?;
        connection.pragma_update(None, "journal_mode", "WAL")?;
        connection.pragma_update(None, "synchronous", "FULL")?;
        connection.pragma_update(None, "cache_size", -256 * 1024)?;
        connection.execute_batch(&format!(
            "CREATE TABLE IF NOT EXISTS messages (
                id TEXT NOT NULL,
                stream_name TEXT NOT NULL,
                type TEXT NOT NULL,
                position INTEGER NOT NULL,
                global_position INTEGER PRIMARY KEY AUTOINCREMENT,
                data TEXT,
                metadata TEXT,
                time INTEGER NOT NULL
            );
            CREATE UNIQUE INDEX IF NOT EXISTS messages_id ON messages (id);
            CREATE UNIQUE INDEX IF NOT EXISTS messages_stream ON messages (stream_name, position);
            CREATE INDEX IF NOT EXISTS messages_category
                ON messages ({CATEGORY}, global_position);"
        ))?;
        Ok(Self {
            connection,
            lengths: HashMap::new(),
            random: Rng::with_seed(7),
        })
    }

    /// Moves the write-ahead log into the database file.
    pub(crate) fn settle(&self) -> Result<()> {
        let ignore_row = |_: &rusqlite::Row<'_>| Ok(());
        Ok(self
            .connection
            .query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], ignore_row)?)
    }

    fn read(&self, sql: &str, name: &str, from: u64, limit: usize) -> Result<Touched> {
        let mut statement = self.connection.prepare_cached(sql)?;
        let mut rows = statement.query(params![name, from as i64, limit as i64])?;
        let mut touched = Touched::default();
        while let Some(row) = rows.next()? {
            touched.touch(row.get_ref(0)?.as_bytes()?);
        }
        Ok(touched)
    }
}

impl System for Sqlite {
    fn append(&mut self, events: &mut Vec<NewEvent>) -> Result<()> {
        let transaction = self.connection.transaction()?;
        let mut insert = transaction.prepare_cached(
            "INSERT INTO messages (id, stream_name, type, position, data, metadata, time)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
        )?;
        for event in events.iter() {
            let stream = event.stream.as_deref().unwrap_or_default();
            let length = self.lengths.entry(stream.to_owned()).or_default();
            let id: Uuid = event.id.unwrap_or_else(|| random_uuid(&mut self.random));
            let data = std::str::from_utf8(event.data.bytes())?;
            let metadata = format!(r#"{{"tags":["{}"]}}"#, event.tags.join(r#"",""#));
            let id = id.to_string();
            insert.execute(params![
                id,
                stream,
                event.event_type,
                *length,
                data,
                metadata,
                0
            ])?;
            *length += 1;
        }
        drop(insert);
        Ok(transaction.commit()?)
    }

    fn read_stream(&self, stream: &str, from: u64, limit: usize) -> Result<Touched> {
        let sql = "SELECT data, id, type, position, global_position, metadata, time FROM messages
            WHERE stream_name = ?1 AND position >= ?2 ORDER BY position LIMIT ?3";
        self.read(sql, stream, from, limit)
    }

    fn read_category(&self, category: &str, from: u64, limit: usize) -> Result<Touched> {
        let sql = format!(
            "SELECT data, id, stream_name, type, position, global_position, metadata, time
             FROM messages WHERE {CATEGORY} = ?1 AND global_position >= ?2
             ORDER BY global_position LIMIT ?3"
        );
        self.read(&sql, category, from, limit)
    }
}
