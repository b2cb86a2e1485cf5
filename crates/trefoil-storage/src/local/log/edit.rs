//! Replacing and dropping items for good: the segments that hold them are written again without them.
//!
//! A segment is written beside the old one and takes its place when it is complete, as a compressed
//! one does. Its dictionary is trained anew, since the old one may hold pieces of what must go.

use trefoil_core::{Error, Result};
use zstd::zstd_safe::CDict;

use crate::Record;
use crate::contract::no_item;
use crate::edits::Edits;
use crate::local::files;
use crate::local::reading::file::ReadPatience;

use super::Log;
use super::blocks::BlockWriter;
use super::codec::ZstdEncoder;
use super::compress::Sampler;
use super::compressed::{CompressedHeader, put_item, table_check};
use super::index::{GrowingIndex, SegmentIndex};
use super::names;
use super::segments::Segment;
use super::summary::Summary;
use super::writer::poison;

impl Log {
    /// Writes every segment again that has something to replace or to drop. One that is damaged does not
    /// keep it from the others.
    pub(crate) fn edit(&self, edits: &Edits<'_>) -> Result<()> {
        let _rewriting = self.rewriting.lock();
        let replaced = edits.replaced();
        self.check_replaced(&replaced)?;
        if !replaced.is_empty() {
            self.remove_torn()?;
        }
        self.leave_active(edits)?;
        let mut damage = None;
        for entry in self.segments().full() {
            if is_touched(&entry.segment, edits) {
                drop(self.hold()?);
                match self.edit_segment(&entry.segment, edits) {
                    Err(error @ Error::Damaged(_)) => damage = damage.or(Some(error)),
                    edited => edited?,
                }
            }
        }
        damage.map_or(Ok(()), Err)
    }

    /// Removes what recovery has cut off the log: a writer that got no answer may have written the same
    /// again, and then it would stay here when it is replaced there.
    fn remove_torn(&self) -> Result<()> {
        let disk = self.options.disk.as_ref();
        let torn = names::torn_paths(&self.dir)?;
        torn.iter().try_for_each(|path| files::remove(disk, path))
    }

    /// Whatever is to be replaced must be there.
    fn check_replaced(&self, positions: &[u64]) -> Result<()> {
        let segments = self.segments();
        let found = segments.find(positions, &self.access, ReadPatience::Waits)?;
        let found = found.unwrap_or_default();
        let found = found.iter().map(|found| found.position);
        let wrong = positions
            .iter()
            .zip(found.map(Some).chain(std::iter::repeat(None)));
        match { wrong }.find(|(wanted, found)| Some(**wanted) != *found) {
            Some((wanted, _)) => Err(no_item(*wanted)),
            None => Ok(()),
        }
    }

    /// Goes on in the next segment if the active one has something to replace or to drop.
    fn leave_active(&self, edits: &Edits<'_>) -> Result<()> {
        let mut writer = self.writer.lock();
        if let Some(reason) = &writer.poison {
            return Err(Error::Poisoned(reason.clone()));
        }
        if !is_touched(&Segment::Plain(writer.active.clone()), edits) {
            return Ok(());
        }
        drop(self.hold()?);
        let is_sealed = writer.is_sealed;
        let left = match is_sealed {
            true => self.break_seal(&mut writer),
            false => Ok(()),
        };
        match left.and_then(|()| self.rotate(&mut writer, 0)) {
            Ok(()) => Ok(()),
            Err(error @ Error::DiskFull(_)) => Err(error),
            Err(error) => Err(poison(&mut writer, error.to_string())),
        }
    }

    fn edit_segment(&self, segment: &Segment, edits: &Edits<'_>) -> Result<()> {
        let bytes = edited(segment, edits, self.options.compression_level)?;
        self.put_compressed(segment, &bytes, &|record| edits.apply(record))
    }
}

/// Whether a segment has a position at which something is replaced or dropped.
fn is_touched(segment: &Segment, edits: &Edits<'_>) -> bool {
    let Summary {
        n_items,
        first_position,
        last_position,
        ..
    } = segment.summary();
    n_items > 0 && edits.touch(&(first_position..last_position + 1))
}

/// Hands the records of a segment to `visit` as they are after the edits.
fn replay_edited(
    segment: &Segment,
    edits: &Edits<'_>,
    visit: &mut dyn FnMut(Record) -> Result<()>,
) -> Result<()> {
    segment.replay(0, &mut |record| {
        let mut record = record.clone();
        edits.apply(&mut record);
        visit(record)
    })
}

/// The bytes of the compressed form of a segment after the edits.
fn edited(segment: &Segment, edits: &Edits<'_>, level: i32) -> Result<Vec<u8>> {
    let (salt, mut summary) = (segment.salt(), segment.summary());
    let mut sampler = Sampler::new(&summary);
    replay_edited(segment, edits, &mut |record| {
        record.items().for_each(|(_, _, item)| sampler.add(item));
        Ok(())
    })?;
    let mut dictionary = sampler.train();
    let prepared = CDict::try_create(&dictionary, level).filter(|_| !dictionary.is_empty());
    if prepared.is_none() {
        dictionary.clear();
    }
    let mut encoder = ZstdEncoder::new(level, prepared.as_ref())?;
    let mut blocks = BlockWriter::new(level, salt)?;
    let (index, mut items) = (GrowingIndex::default(), Vec::new());
    replay_edited(segment, edits, &mut |mut record| {
        let mut offsets = Vec::with_capacity(record.items.len());
        for (position, item) in (record.first_position..).zip(record.items.iter()) {
            offsets.push(items.len() as u64);
            if let Some((label, bytes)) = item {
                let stored = encoder.compress(bytes)?.unwrap_or(bytes);
                let seed = salt.wrapping_add(position);
                put_item(&mut items, seed, label, bytes.len(), stored);
            }
        }
        index.push(record.first_position, offsets.into_iter());
        let n_items = record.items.len() as u32;
        record.items.clear();
        blocks.push(record, n_items)
    })?;
    let (blocks, n_records) = blocks.finish()?;
    summary.n_records = n_records;
    let (mut index, n_ranges) = SegmentIndex::Growing(Box::new(index)).encode()?;
    index.extend_from_slice(&(items.len() as u32).to_le_bytes());
    let header = CompressedHeader {
        number: segment.number(),
        salt,
        summary,
        dropped_commit: segment.dropped_commit(),
        n_ranges,
        dictionary_bytes: dictionary.len() as u64,
        items_bytes: items.len() as u64,
        blocks_bytes: blocks.len() as u64,
        table_check: table_check(&dictionary, &index, salt),
    };
    Ok([header.encode(), dictionary, items, blocks, index].concat())
}
