//! Looking for random text in every file below a directory: as it is, and in all that is compressed in segments,
//! snapshots and repositories (docs/format.md, docs/backup.md).
//!
//! The blocks of maps are compressed by LZ4, which keeps what does not repeat as it is. Most of a text that is
//! random is found in them.

use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};

use fastrand::Rng;
use zstd::zstd_safe::{DCtx, DDict, DParameter, FrameFormat};

const SEGMENT: &[u8] = b"TREFCMP\0";
const SEGMENT_HEADER: usize = 144;
const SEGMENT_BLOCK_HEADER: usize = 48;
const SNAPSHOT: &[u8] = b"TREFSNP\0";
const SNAPSHOT_HEADER: usize = 64;
const SNAPSHOT_BLOCK_HEADER: usize = 16;
const ITEM_HEADER: usize = 17;

/// All files below a directory. Those that go while it is read are left out.
fn files(directory: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    let files = entries.flat_map(|entry| match entry.path() {
        path if path.is_dir() => files(&path),
        path => vec![path],
    });
    files.collect()
}

/// A text that can be looked for: random hexadecimal digits.
pub(crate) fn random_text(random: &mut Rng) -> String {
    format!("{:032x}{:032x}", random.u128(..), random.u128(..))
}

/// A text is found if so many of its digits are, one after the other: LZ4 may find a few of them elsewhere.
const DIGITS: usize = 16;

/// The texts that a file below a directory has in it, each with the first such file.
pub(crate) fn found<'a>(directory: &Path, texts: &[&'a str]) -> Vec<(&'a str, PathBuf)> {
    let parts = |text: &'a str| {
        text.as_bytes()
            .windows(DIGITS)
            .map(move |part| (part, text))
    };
    let parts: HashMap<&[u8], &str> = texts.iter().flat_map(|text| parts(text)).collect();
    let mut found = HashMap::new();
    for path in files(directory) {
        for content in contents(&fs::read(&path).unwrap_or_default()) {
            let runs = content.split(|byte| !byte.is_ascii_hexdigit());
            for digits in runs.flat_map(|run| run.windows(DIGITS)) {
                if let Some(text) = parts.get(digits) {
                    found.entry(*text).or_insert_with(|| path.clone());
                }
            }
        }
    }
    found.into_iter().collect()
}

/// What a file holds: its bytes, and what they are the compressed form of.
fn contents(bytes: &[u8]) -> Vec<Vec<u8>> {
    let mut contents = vec![bytes.to_vec()];
    if bytes.starts_with(SEGMENT) {
        contents.extend(of_segment(bytes));
    } else if bytes.starts_with(SNAPSHOT) {
        contents.extend(of_blocks(&bytes[SNAPSHOT_HEADER..], SNAPSHOT_BLOCK_HEADER));
    } else if bytes.first() == Some(&1) && bytes.len() > 5 {
        // A piece of a repository that is compressed.
        contents.extend(zstd::bulk::decompress(&bytes[5..], u32_at(bytes, 1)));
    }
    contents
}

fn u32_at(bytes: &[u8], at: usize) -> usize {
    u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap()) as usize
}

fn decompress(stored: &[u8], length: usize, dictionary: Option<&DDict<'_>>) -> Vec<u8> {
    let mut context = DCtx::create();
    let magicless = DParameter::Format(FrameFormat::Magicless);
    context.set_parameter(magicless).unwrap();
    let mut out = Vec::with_capacity(length);
    let done = match dictionary {
        Some(dictionary) => context.decompress_using_ddict(&mut out, stored, dictionary),
        None => context.decompress(&mut out, stored),
    };
    assert_eq!(done.unwrap(), length);
    out
}

fn of_segment(bytes: &[u8]) -> Vec<Vec<u8>> {
    let n_ranges = u32_at(bytes, 12);
    let n_items = u32_at(bytes, 32 + 40);
    let [dictionary, items, blocks] = [104, 112, 120].map(|at| u32_at(bytes, at));
    let (dictionary, rest) = bytes[SEGMENT_HEADER..].split_at(dictionary);
    let (items, rest) = rest.split_at(items);
    let (blocks, index) = rest.split_at(blocks);
    let prepared = (!dictionary.is_empty()).then(|| DDict::create(dictionary));
    let offset = |ordinal: usize| u32_at(index, 16 * n_ranges + 4 * ordinal);
    let item = |ordinal: usize| {
        let item = &items[offset(ordinal)..offset(ordinal + 1)];
        let (length, stored) = item_length(item.get(ITEM_HEADER..)?);
        let is_compressed = length % 2 == 1;
        Some(match is_compressed {
            true => decompress(stored, length / 2, prepared.as_ref()),
            false => stored.to_vec(),
        })
    };
    let mut contents: Vec<Vec<u8>> = (0..n_items).filter_map(item).collect();
    contents.extend(of_blocks(blocks, SEGMENT_BLOCK_HEADER));
    contents
}

fn item_length(bytes: &[u8]) -> (usize, &[u8]) {
    let end = bytes.iter().position(|byte| *byte < 128).unwrap();
    let digits = bytes[..=end].iter().rev();
    let length = digits.fold(0, |length, byte| length * 128 + usize::from(byte % 128));
    (length, &bytes[end + 1..])
}

fn of_blocks(mut bytes: &[u8], header: usize) -> Vec<Vec<u8>> {
    let mut contents = Vec::new();
    while bytes.len() > header {
        let (length, stored) = (u32_at(bytes, 0), u32_at(bytes, 4));
        let (block, rest) = bytes[header..].split_at(stored);
        contents.push(match stored < length {
            true => decompress(block, length, None),
            false => block.to_vec(),
        });
        bytes = rest;
    }
    contents
}
