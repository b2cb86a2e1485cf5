//! Events with secrets that stand nowhere else, and what becomes of them when they are redacted.

use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use fastrand::Rng;
use serde_json::json;

use super::search::{found, random_text};
use crate::harness::Client;

/// The bytes of a redacted event are gone within a minute, if the disk is not very slow. That of a machine
/// which runs other tests may be.
pub(crate) const PATIENCE: Duration = Duration::from_secs(120);

/// An event of which nobody knows the secrets but this.
pub(crate) struct SecretEvent {
    pub(crate) position: u64,
    data: String,
    metadata: String,
    correlation: String,
    tag: String,
    /// Whether it is redacted with its tags.
    pub(crate) with_tags: bool,
}

impl SecretEvent {
    /// Writes one.
    pub(crate) fn write(client: &mut Client, random: &mut Rng) -> Self {
        let [data, metadata, correlation, tag] = [(); 4].map(|()| random_text(random));
        let event = json!({
            "stream": format!("user-{}", random.u32(..)),
            "type": "Registered",
            "data": {"name": data, "text": "the same words in each of them, which compress well"},
            "metadata": {"by": metadata, "correlationStreamName": format!("{correlation}-1")},
            "tags": [format!("user:{tag}"), "kind:secret"],
        });
        let committed = client.rpc(&json!(["commit", {"events": [event]}])).ok();
        Self {
            position: committed["globalPosition"].as_u64().unwrap(),
            data,
            metadata,
            correlation,
            tag,
            with_tags: random.bool(),
        }
    }

    /// All that it says.
    pub(crate) fn texts(&self) -> [&str; 4] {
        [&self.data, &self.metadata, &self.correlation, &self.tag]
    }

    /// What must not be found once it is redacted.
    fn gone(&self) -> impl Iterator<Item = &str> {
        let n_gone = if self.with_tags { 4 } else { 3 };
        self.texts().into_iter().take(n_gone)
    }

    pub(crate) fn redact(&self, client: &mut Client) {
        let call =
            json!(["event.redact", {"globalPosition": self.position, "tags": self.with_tags}]);
        client.rpc(&call).ok();
    }

    /// Readers get the stub, with the tags that were kept.
    #[track_caller]
    pub(crate) fn check_stub(&self, client: &mut Client) {
        let event = client.rpc(&json!(["events.get", self.position])).ok();
        assert_eq!(event[5], json!(null), "{event}");
        assert!(event[6]["redacted"].is_string(), "{event}");
        let tag = format!("user:{}", self.tag);
        let tags = match self.with_tags {
            true => json!([]),
            false => json!([tag, "kind:secret"]),
        };
        assert_eq!(event[8], tags, "{event}");
        let query = client.rpc(&json!(["events.query", {"items": [{"tags": [tag]}]}]));
        let n_found = query.ok()["events"].as_array().unwrap().len();
        assert_eq!(n_found, usize::from(!self.with_tags));
    }
}

/// All that these events say is in a file. It may have to be looked for again: files are written again while
/// the server runs.
#[track_caller]
pub(crate) fn check_there(directory: &Path, events: &[SecretEvent]) {
    let texts: Vec<&str> = events.iter().flat_map(SecretEvent::texts).collect();
    let n_found = || found(directory, &texts).len();
    let is_there = (0..10).any(|_| n_found() == texts.len());
    assert!(is_there, "the search misses something");
}

/// Waits until nothing of these redacted events is in a file any more, except for tags that were kept.
#[track_caller]
pub(crate) fn wait_until_gone(directory: &Path, events: &[SecretEvent]) {
    let gone = gone_of(events);
    let began = Instant::now();
    loop {
        let left = found(directory, &gone);
        if left.is_empty() {
            break;
        }
        let waited = began.elapsed();
        assert!(waited < PATIENCE, "{} are left: {:?}", left.len(), left[0]);
        thread::sleep(Duration::from_millis(200));
    }
    eprintln!("{} secrets gone after {:?}", gone.len(), began.elapsed());
    check_gone(directory, events);
}

fn gone_of(events: &[SecretEvent]) -> Vec<&str> {
    events.iter().flat_map(SecretEvent::gone).collect()
}

/// Nothing of these redacted events is in a file, except for tags that were kept.
#[track_caller]
pub(crate) fn check_gone(directory: &Path, events: &[SecretEvent]) {
    assert_eq!(found(directory, &gone_of(events)), []);
    let kept = events.iter().filter(|event| !event.with_tags);
    let kept: Vec<&str> = kept.map(|event| event.tag.as_str()).collect();
    assert_eq!(found(directory, &kept).len(), kept.len());
}
