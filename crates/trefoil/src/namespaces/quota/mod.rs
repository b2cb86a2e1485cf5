//! How much of everything a namespace may take: what there are quotas of, and what they are.

mod keeper;

use serde::{Deserialize, Serialize};
use trefoil_core::limits::{MEMORY_QUOTA_MIN, POSITION_MAX};
use trefoil_core::{Error, NamespaceId, Result};

pub use keeper::QuotaKeeper;
pub(crate) use keeper::{WriteSize, WrittenLog};

use super::{NamespaceSettings, Namespaces};

/// What there are quotas of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Quota {
    /// Bytes on disk, of the log, the index and the state.
    DiskBytes = 0,
    /// Events that are appended within a second, on the average.
    EventsPerSecond = 1,
    /// Connections of its clients, at each node.
    Connections = 2,
    /// Subscriptions that are open.
    Subscriptions = 3,
    /// Bytes of memory that are held for its clients, at each node.
    MemoryBytes = 4,
}

impl Quota {
    /// All of them.
    pub const EVERY: [Self; 5] = [
        Self::DiskBytes,
        Self::EventsPerSecond,
        Self::Connections,
        Self::Subscriptions,
        Self::MemoryBytes,
    ];

    /// Returns its name in settings, errors and metrics.
    pub fn name(self) -> &'static str {
        match self {
            Self::DiskBytes => "diskBytes",
            Self::EventsPerSecond => "eventsPerSecond",
            Self::Connections => "connections",
            Self::Subscriptions => "subscriptions",
            Self::MemoryBytes => "memoryBytes",
        }
    }

    /// Returns the least that it can be. What is sent piece by piece waits for memory for the next piece,
    /// so there must be enough for the largest.
    fn least(self) -> u64 {
        match self {
            Self::MemoryBytes => MEMORY_QUOTA_MIN,
            _ => 0,
        }
    }
}

/// The quotas of a namespace; `None` is no limit but those of the server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
pub struct Quotas {
    /// Of [`Quota::DiskBytes`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub disk_bytes: Option<u64>,
    /// Of [`Quota::EventsPerSecond`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub events_per_second: Option<u64>,
    /// Of [`Quota::Connections`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub connections: Option<u64>,
    /// Of [`Quota::Subscriptions`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub subscriptions: Option<u64>,
    /// Of [`Quota::MemoryBytes`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub memory_bytes: Option<u64>,
}

impl Quotas {
    /// Returns whether there is none.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Returns one of them.
    pub fn get(mut self, quota: Quota) -> Option<u64> {
        *self.place(quota)
    }

    /// Sets or removes one of them.
    pub fn set(&mut self, quota: Quota, limit: Option<u64>) {
        *self.place(quota) = limit;
    }

    fn place(&mut self, quota: Quota) -> &mut Option<u64> {
        match quota {
            Quota::DiskBytes => &mut self.disk_bytes,
            Quota::EventsPerSecond => &mut self.events_per_second,
            Quota::Connections => &mut self.connections,
            Quota::Subscriptions => &mut self.subscriptions,
            Quota::MemoryBytes => &mut self.memory_bytes,
        }
    }

    pub(super) fn validate(self) -> Result<()> {
        for quota in Quota::EVERY {
            let range = quota.least()..=POSITION_MAX;
            if let Some(limit) = self.get(quota).filter(|limit| !range.contains(limit)) {
                return Err(Error::invalid(format!(
                    "quota {} is {limit}, it must lie between {} and {POSITION_MAX}",
                    quota.name(),
                    quota.least()
                )));
            }
        }
        Ok(())
    }
}

impl Namespaces {
    /// Returns what keeps a namespace to its quotas; one without quotas if there is no such namespace.
    pub fn quota_keeper(&self, id: &NamespaceId) -> std::sync::Arc<QuotaKeeper> {
        self.inner.registry.quota_keeper(id).unwrap_or_default()
    }

    /// Returns the namespaces by id that have quotas, or had some that refused something.
    pub fn quota_keepers(&self) -> Vec<(NamespaceId, std::sync::Arc<QuotaKeeper>)> {
        self.inner.registry.quota_keepers()
    }

    /// Returns how many bytes a namespace takes on disk, as its quota counts them; `None` if that is not
    /// known here. It asks the file system.
    pub fn disk_bytes(&self, id: &NamespaceId) -> Option<u64> {
        self.inner.pool.disk_bytes(id)
    }

    /// Changes how a namespace is operated, and returns how it is then. Quotas count at once, the rest
    /// when it is opened the next time.
    pub fn change_settings(
        &self,
        id: &str,
        change: impl Fn(&mut NamespaceSettings),
    ) -> Result<NamespaceSettings> {
        let registry = &self.inner.registry;
        let id = registry.get(id)?.entry.id;
        registry.change(&id, |record| {
            change(&mut record.entry.settings);
            record.entry.settings.validate()
        })?;
        Ok(registry.get(id.as_str())?.entry.settings)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_quota_has_its_own_place() {
        let mut quotas = Quotas::default();
        for (number, quota) in Quota::EVERY.into_iter().enumerate() {
            assert_eq!(quota as usize, number);
            assert_eq!(quotas.get(quota), None);
            quotas.set(quota, Some(number as u64));
        }
        let text = r#"{"diskBytes":0,"eventsPerSecond":1,"connections":2,"subscriptions":3,"memoryBytes":4}"#;
        assert_eq!(serde_json::to_string(&quotas).unwrap(), text);
        for quota in Quota::EVERY {
            assert_eq!(quotas.get(quota), Some(quota as u64));
        }
    }

    #[test]
    fn what_is_out_of_range_is_named() {
        let refused = |quota, limit| {
            let mut quotas = Quotas::default();
            quotas.set(quota, Some(limit));
            quotas.validate().err().map(|error| error.to_string())
        };
        assert_eq!(refused(Quota::DiskBytes, 0), None);
        assert_eq!(refused(Quota::MemoryBytes, MEMORY_QUOTA_MIN), None);
        let small = refused(Quota::MemoryBytes, MEMORY_QUOTA_MIN - 1).unwrap();
        let told =
            "quota memoryBytes is 16777215, it must lie between 16777216 and 9007199254740991";
        assert!(small.ends_with(told), "{small}");
        assert!(refused(Quota::Connections, u64::MAX).is_some());
    }
}
