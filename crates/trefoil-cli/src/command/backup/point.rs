//! Up to where namespaces are restored, as arguments.

use trefoil::Timestamp;
use trefoil::backup::RestorePoint;

use crate::input::parse_time;

/// A point of the past.
#[derive(Debug, clap::Args)]
pub(super) struct PointArguments {
    /// Restore what was there up to this position, and nothing after it
    #[arg(long, value_name = "POSITION", group = "point")]
    to_position: Option<u64>,
    /// Restore what was there up to this commit
    #[arg(long, value_name = "COMMIT", group = "point")]
    to_commit: Option<u64>,
    /// Restore what was there at this time: 2026-01-31, or RFC 3339
    #[arg(long, value_name = "TIME", group = "point", value_parser = parse_time)]
    to_time: Option<Timestamp>,
}

impl PointArguments {
    /// Returns the point, if one was given.
    pub(super) fn point(&self) -> Option<RestorePoint> {
        let position = self.to_position.map(RestorePoint::Position);
        let commit = self.to_commit.map(RestorePoint::Commit);
        let time = self.to_time.map(RestorePoint::Time);
        position.or(commit).or(time)
    }

    /// Returns whether it is a point of one namespace.
    pub(super) fn is_of_one(&self) -> bool {
        self.to_position.is_some() || self.to_commit.is_some()
    }
}
