//! The cache of the log's files: blocks of them, and which of them are open.

use std::fs::File;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use quick_cache::Weighter;
use quick_cache::sync::Cache;

/// The bytes of a block. A larger one would cost more of the disk and of memory for each event that
/// is read alone, and no fewer reads.
pub(crate) const BLOCK_BYTES: u64 = 4096;
/// About how much memory a block takes besides its bytes.
const BLOCK_EXTRA_BYTES: u64 = 128;
/// How many files are kept open. Others are opened again when they are read.
const OPEN_FILES_MAX: usize = 256;

/// A block of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct BlockKey {
    /// The number that the file got when it was opened first.
    pub(crate) file: u64,
    pub(crate) number: u64,
}

/// The bytes of a block. They are in a box of their own, because with a count before them they would
/// not fit into a page.
#[derive(Debug, Clone)]
pub(crate) struct FileBlock(Arc<BlockBytes>);

#[derive(Debug)]
struct BlockBytes(Box<[u8]>);

impl FileBlock {
    pub(crate) fn new(bytes: &[u8]) -> Self {
        Self(Arc::new(BlockBytes(bytes.into())))
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        &self.0.0
    }
}

#[derive(Debug, Clone)]
struct BlockWeight;

impl Weighter<BlockKey, FileBlock> for BlockWeight {
    fn weight(&self, _: &BlockKey, block: &FileBlock) -> u64 {
        block.bytes().len() as u64 + BLOCK_EXTRA_BYTES
    }
}

/// Blocks of files that were read lately, and files that are open.
#[derive(Debug)]
pub(crate) struct FileCache {
    blocks: Cache<BlockKey, FileBlock, BlockWeight>,
    files: Cache<u64, Arc<File>>,
    n_files: AtomicU64,
}

impl FileCache {
    /// Returns a cache that takes this many bytes.
    pub(crate) fn new(bytes: u64) -> Self {
        let n_blocks = (bytes / BLOCK_BYTES) as usize;
        Self {
            blocks: Cache::with_weighter(n_blocks, bytes, BlockWeight),
            files: Cache::new(OPEN_FILES_MAX),
            n_files: AtomicU64::new(0),
        }
    }

    /// Returns how many bytes the blocks take.
    pub(crate) fn n_bytes(&self) -> u64 {
        self.blocks.weight()
    }

    /// Returns a number that no file has had.
    pub(crate) fn next_file(&self) -> u64 {
        self.n_files.fetch_add(1, Ordering::Relaxed)
    }

    pub(crate) fn block(&self, key: BlockKey) -> Option<FileBlock> {
        self.blocks.get(&key)
    }

    pub(crate) fn put_block(&self, key: BlockKey, block: FileBlock) {
        self.blocks.insert(key, block);
    }

    pub(crate) fn file(&self, file: u64) -> Option<Arc<File>> {
        self.files.get(&file)
    }

    pub(crate) fn put_file(&self, file: u64, open: Arc<File>) {
        self.files.insert(file, open);
    }

    /// Closes a file that nobody reads any more.
    pub(crate) fn forget_file(&self, file: u64) {
        self.files.remove(&file);
    }
}
