//! The longest common subsequence of two strings.

use bytes::Bytes;

use crate::command::arguments::{ArgumentReader, integer, is_word};
use crate::error::{CommandError, Result, SYNTAX};
use crate::keyspace::Keyspace;
use crate::layout::STRING_BYTES_MAX;
use crate::meta::ValueKind;
use crate::reply::Reply;
use crate::string::StoredString;

#[derive(Default)]
struct LcsOptions {
    answers_len: bool,
    answers_matches: bool,
    len_min: i64,
    with_lens: bool,
}

impl LcsOptions {
    fn parse(arguments: &[Bytes]) -> Result<Self> {
        let mut options = Self::default();
        let mut rest = ArgumentReader::new(arguments);
        while let Some(word) = rest.word() {
            if is_word(word, "IDX") {
                options.answers_matches = true;
            } else if is_word(word, "LEN") {
                options.answers_len = true;
            } else if is_word(word, "WITHMATCHLEN") {
                options.with_lens = true;
            } else if is_word(word, "MINMATCHLEN") {
                options.len_min = integer(rest.word().ok_or(SYNTAX)?)?.max(0);
            } else {
                return Err(SYNTAX);
            }
        }
        if options.answers_len && options.answers_matches {
            return Err(CommandError::refused(
                "ERR If you want both the length and indexes, please just use IDX.",
            ));
        }
        Ok(options)
    }
}

/// `LCS key key [LEN | IDX] [MINMATCHLEN length] [WITHMATCHLEN]`
pub(super) fn lcs(keyspace: &mut Keyspace<'_>, arguments: &[Bytes]) -> Result<Reply> {
    for key in &arguments[1..3] {
        let meta = keyspace.find(key)?;
        if meta.is_some_and(|meta| meta.kind() != ValueKind::String) {
            return Err(CommandError::refused(
                "ERR The specified keys must contain string values",
            ));
        }
    }
    let options = LcsOptions::parse(&arguments[3..])?;
    let texts = [
        keyspace.string(&arguments[1])?,
        keyspace.string(&arguments[2])?,
    ];
    let cells = texts.iter().flatten().map(|text| text.len() + 1);
    if cells.product::<u64>() * size_of::<u32>() as u64 > STRING_BYTES_MAX as u64 {
        return Err(CommandError::refused(
            "ERR Insufficient memory, transient memory for LCS exceeds proto-max-bulk-len",
        ));
    }
    let [a, b] = texts.map(|text| keyspace.read(&text.unwrap_or(StoredString::EMPTY)));
    let (a, b) = (a?, b?);
    let table = LcsTable::new(&a, &b);
    if options.answers_len {
        return Ok(Reply::Integer(i64::from(table.len)));
    }
    let matches = table.matches(&a, &b);
    if options.answers_matches {
        return Ok(reply_matches(&matches, &options, table.len));
    }
    let common = matches
        .iter()
        .rev()
        .flat_map(|run| &a[run.a..run.a + run.len]);
    Ok(Reply::Bulk(common.copied().collect()))
}

/// A run of bytes that both strings have: where it begins in either, and how long it is.
struct CommonRun {
    a: usize,
    b: usize,
    len: usize,
}

/// Which way a longest common subsequence goes, for any beginnings of both strings: a bit says
/// whether the last byte of the first one can be left out rather than that of the second.
struct LcsTable {
    leaves_first: Vec<u64>,
    width: usize,
    len: u32,
}

impl LcsTable {
    fn new(a: &[u8], b: &[u8]) -> Self {
        let width = b.len();
        let mut leaves_first = vec![0; (a.len() * width).div_ceil(64)];
        // How long it is for the beginning of `a` so far and each beginning of `b`.
        let mut above = vec![0_u32; width + 1];
        let mut row = above.clone();
        for (i, left) in a.iter().enumerate() {
            for (j, right) in b.iter().enumerate() {
                row[j + 1] = if left == right {
                    above[j] + 1
                } else {
                    if above[j + 1] > row[j] {
                        let cell = i * width + j;
                        leaves_first[cell / 64] |= 1 << (cell % 64);
                    }
                    above[j + 1].max(row[j])
                };
            }
            std::mem::swap(&mut above, &mut row);
        }
        Self {
            leaves_first,
            width,
            len: above.last().copied().unwrap_or_default(),
        }
    }

    /// Returns the runs of the common subsequence, the last one first.
    fn matches(&self, a: &[u8], b: &[u8]) -> Vec<CommonRun> {
        let mut runs: Vec<CommonRun> = Vec::new();
        let (mut i, mut j) = (a.len(), b.len());
        while i > 0 && j > 0 {
            if a[i - 1] == b[j - 1] {
                match runs.last_mut() {
                    Some(run) if (run.a, run.b) == (i, j) => {
                        (run.a, run.b) = (i - 1, j - 1);
                        run.len += 1;
                    }
                    _ => runs.push(CommonRun {
                        a: i - 1,
                        b: j - 1,
                        len: 1,
                    }),
                }
                (i, j) = (i - 1, j - 1);
                continue;
            }
            let cell = (i - 1) * self.width + j - 1;
            match self.leaves_first[cell / 64] >> (cell % 64) & 1 {
                1 => i -= 1,
                _ => j -= 1,
            }
        }
        runs
    }
}

fn reply_matches(matches: &[CommonRun], options: &LcsOptions, len: u32) -> Reply {
    let range = |from: usize, len: usize| {
        Reply::Array(vec![Reply::count(from), Reply::count(from + len - 1)])
    };
    let selected = matches
        .iter()
        .filter(|run| run.len as i64 >= options.len_min);
    let matches = selected.map(|run| {
        let mut parts = vec![range(run.a, run.len), range(run.b, run.len)];
        if options.with_lens {
            parts.push(Reply::count(run.len));
        }
        Reply::Array(parts)
    });
    let matches = Reply::Array(matches.collect());
    let len = Reply::Integer(i64::from(len));
    Reply::Map(vec![
        (Reply::bulk("matches"), matches),
        (Reply::bulk("len"), len),
    ])
}
