//! `["ns.settings", id, {cacheShare?, warm?, quotas?: {diskBytes?, eventsPerSecond?, connections?,
//! subscriptions?, memoryBytes?}}]`
//!
//! Changes how a namespace is operated, and answers `{"namespace", "settings"}`. What is left out stays as
//! it is; a quota that is `null` is removed. Without changes it only answers. Only for the administrator
//! of the server. It goes beyond EventoDB.

use serde_json::value::RawValue;
use trefoil::{NamespaceSettings, Namespaces, Quota};

use super::Context;
use super::arguments::namespace_id;
use super::audit::AuditedCall;
use crate::error::{Failure, Result};
use crate::json::{ObjectWriter, RpcCall, present};
use crate::response::{self, HttpAnswer};
use crate::strict;

pub(super) async fn run(context: Context<'_>, call: &RpcCall<'_>) -> Result<HttpAnswer> {
    let missing = "ns.settings requires at least 1 argument: namespace ID";
    let id = namespace_id(call, missing)?.into_owned();
    let settings = match present(call.argument(1)) {
        None => context.shared.namespaces.entry(&id)?.settings,
        Some(changes) => {
            let change = SettingsChange::parse(changes, "settings")?;
            let audited = AuditedCall::new(&context, "ns.settings", &id);
            let audited = audited.with_details(|details| change.put(details));
            let wanted = id.clone();
            let apply = move |namespaces: &Namespaces| {
                namespaces.change_settings(&wanted, |settings| change.apply(settings))
            };
            audited.run(&context, apply).await?
        }
    };
    let mut out = Vec::new();
    let mut object = ObjectWriter::begin(&mut out);
    object.text("namespace", &id);
    object.json("settings", &settings_json(&settings)?);
    object.end();
    Ok(response::json(out))
}

/// Settings as JSON.
pub(super) fn settings_json(settings: &NamespaceSettings) -> Result<String> {
    serde_json::to_string(settings).map_err(|error| Failure::internal(error.to_string()))
}

/// What is to be changed; `None` for what is left as it is.
#[derive(Default)]
pub(super) struct SettingsChange {
    cache_share: Option<u32>,
    warm: Option<bool>,
    quotas: Vec<(Quota, Option<u64>)>,
}

impl SettingsChange {
    /// Reads what is to be changed, which errors call `what`.
    pub(super) fn parse(changes: &RawValue, what: &str) -> Result<Self> {
        let names = ["cacheShare", "warm", "quotas"];
        let [share, warm, quotas] = strict::object(changes, what, names)?.map(present);
        let mut change = Self::default();
        if let Some(share) = strict::optional_position(share, &format!("{what}.cacheShare"))? {
            // What is too large is refused where the limit is.
            change.cache_share = Some(u32::try_from(share).unwrap_or(u32::MAX));
        }
        if warm.is_some() {
            change.warm = Some(strict::flag(warm, &format!("{what}.warm"))?);
        }
        if let Some(quotas) = quotas {
            let what = format!("{what}.quotas");
            let values = strict::object(quotas, &what, Quota::EVERY.map(Quota::name))?;
            for (quota, value) in Quota::EVERY.into_iter().zip(values) {
                if value.is_some() {
                    let what = format!("{what}.{}", quota.name());
                    let limit = strict::optional_position(present(value), &what)?;
                    change.quotas.push((quota, limit));
                }
            }
        }
        Ok(change)
    }

    pub(super) fn apply(&self, settings: &mut NamespaceSettings) {
        settings.cache_share = self.cache_share.unwrap_or(settings.cache_share);
        settings.warm = self.warm.unwrap_or(settings.warm);
        for (quota, limit) in &self.quotas {
            settings.quotas.set(*quota, *limit);
        }
    }

    /// Writes it as it is read.
    fn put(&self, object: &mut ObjectWriter<'_>) {
        if let Some(share) = self.cache_share {
            object.number("cacheShare", u64::from(share));
        }
        if let Some(warm) = self.warm {
            object.json("warm", if warm { "true" } else { "false" });
        }
        if !self.quotas.is_empty() {
            let mut quotas = ObjectWriter::begin(object.field("quotas"));
            for (quota, limit) in &self.quotas {
                match limit {
                    Some(limit) => quotas.number(quota.name(), *limit),
                    None => quotas.json(quota.name(), "null"),
                }
            }
            quotas.end();
        }
    }
}
