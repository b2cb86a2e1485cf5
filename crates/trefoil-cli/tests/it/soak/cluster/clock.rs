//! The wall clock of a process, which can jump while it runs.

use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A library that moves the clock of whoever loads it.
pub(super) struct Clocks(PathBuf);

impl Clocks {
    /// Compiles it. A C compiler is there: the product is built with one.
    pub(super) fn build(directory: &Path) -> Self {
        let library = directory.join("clock.so");
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/soak/cluster/clock.c");
        let built = Command::new("cc")
            .args(["-shared", "-fPIC", "-O1", "-Wall", "-Werror", "-o"])
            .args([&library, &source])
            .status();
        assert!(built.unwrap().success());
        Self(library)
    }

    /// A clock that is right.
    pub(super) fn clock(&self, file: PathBuf) -> NodeClock {
        std::fs::write(&file, 0_i64.to_ne_bytes()).unwrap();
        NodeClock {
            library: self.0.clone(),
            file,
        }
    }
}

/// The clock of one node.
pub(super) struct NodeClock {
    library: PathBuf,
    file: PathBuf,
}

impl NodeClock {
    pub(super) fn give_to(&self, command: &mut Command) {
        command
            .env("LD_PRELOAD", &self.library)
            .env("SOAK_CLOCK", &self.file);
    }

    /// It is off by so much from now on.
    pub(super) fn jump(&self, milliseconds: i64) {
        let file = std::fs::File::options().write(true).open(&self.file);
        let written = file.unwrap().write_all_at(&milliseconds.to_ne_bytes(), 0);
        written.unwrap();
    }
}
