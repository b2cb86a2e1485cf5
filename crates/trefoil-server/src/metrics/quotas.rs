//! The quotas of namespaces, what they have used of them, and what was refused.

use std::sync::Arc;

use trefoil::{NamespaceId, Quota, QuotaKeeper};

use super::exposition::{Exposition, MetricKind};
use crate::service::Shared;

/// So many namespaces have values of their own, the first ones by name. What is refused to the others is
/// counted together, without the label.
const NAMESPACES_MAX: usize = 1000;

pub(super) fn put(out: &mut Exposition, shared: &Shared) {
    let mut keepers = shared.namespaces.quota_keepers();
    let others = keepers.split_off(keepers.len().min(NAMESPACES_MAX));
    put_refusals(out, &keepers, &others);
    let limited: Vec<(&NamespaceId, Quota, u64)> = { keepers.iter() }
        .flat_map(|(id, keeper)| {
            let limit = move |quota| Some((id, quota, keeper.limit(quota)?));
            Quota::EVERY.into_iter().filter_map(limit)
        })
        .collect();
    let help = "Quotas of namespaces";
    let mut limits = out.family(MetricKind::Gauge, "quota_limit", help);
    for (id, quota, limit) in &limited {
        limits.put(&labels(id, *quota), limit);
    }
    let help = "What namespaces have used of their quotas";
    let mut uses = out.family(MetricKind::Gauge, "quota_used", help);
    for (id, quota, _) in &limited {
        if let Some(used) = used(shared, id, *quota) {
            uses.put(&labels(id, *quota), used);
        }
    }
}

type Keepers = [(NamespaceId, Arc<QuotaKeeper>)];

fn put_refusals(out: &mut Exposition, keepers: &Keepers, others: &Keepers) {
    let help = "Requests that were refused because a namespace had used up a quota";
    let mut refusals = out.family(MetricKind::Counter, "quota_refusals", help);
    for (id, keeper) in keepers {
        for quota in Quota::EVERY {
            if keeper.limit(quota).is_some() || keeper.refusals(quota) > 0 {
                refusals.put(&labels(id, quota), keeper.refusals(quota));
            }
        }
    }
    for quota in Quota::EVERY.into_iter().filter(|_| !others.is_empty()) {
        let sum: u64 = others
            .iter()
            .map(|(_, keeper)| keeper.refusals(quota))
            .sum();
        refusals.put(&[("quota", quota.name())], sum);
    }
}

fn labels(id: &NamespaceId, quota: Quota) -> [(&'static str, &str); 2] {
    [("namespace", id.as_str()), ("quota", quota.name())]
}

/// Returns what a namespace has used of a quota, as far as that is known here.
fn used(shared: &Shared, id: &NamespaceId, quota: Quota) -> Option<u64> {
    let (connections, memory) = shared.budget.use_of(id);
    match quota {
        Quota::DiskBytes => shared.namespaces.disk_bytes(id),
        Quota::EventsPerSecond => None,
        Quota::Connections => Some(connections as u64),
        Quota::Subscriptions => Some(shared.subscriptions.count_of(id)),
        Quota::MemoryBytes => Some(memory as u64),
    }
}
