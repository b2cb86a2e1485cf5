//! `["sys.nodes", {namespace?}]`
//!
//! Answers `{"nodes": [{"id", "address", "version", "started", "state", "namespaces", "this"}]}`: the nodes
//! of the cluster as this one sees them, itself first; none if the server is alone. With `namespace` also
//! `"owner"`, the id of the node that has it, or `null`. Only for the administrator of the server. It
//! goes beyond EventoDB.

use trefoil::NamespaceId;
use trefoil::home::{ClusterMember, MemberState};

use super::Context;
use super::arguments::text_option;
use crate::error::Result;
use crate::json::{ObjectWriter, RpcCall, present, put_array, put_string, put_time};
use crate::response::{self, HttpAnswer};
use crate::service::blocking;
use crate::strict;

pub(super) async fn run(context: Context<'_>, call: &RpcCall<'_>) -> Result<HttpAnswer> {
    let [namespace] = match present(call.argument(0)) {
        None => [None],
        Some(options) => strict::object(options, "options", ["namespace"])?.map(present),
    };
    let namespace = text_option(namespace, "namespace")?;
    let namespace = namespace.map(|name| NamespaceId::new(&name)).transpose()?;
    let cluster = context.shared.namespaces.cluster();
    let members = cluster.as_ref().map(|cluster| cluster.members());
    let mut out = Vec::new();
    let mut object = ObjectWriter::begin(&mut out);
    put_array(
        object.field("nodes"),
        &members.unwrap_or_default(),
        put_node,
    );
    if let Some(id) = namespace {
        // One that does not exist is said to be missing, cluster or not.
        context.shared.namespaces.entry(id.as_str())?;
        let owner = match cluster {
            Some(cluster) => blocking(move || cluster.owner(&id)).await??,
            None => None,
        };
        object.text_or_null("owner", owner.as_deref());
    }
    object.end();
    Ok(response::json(out))
}

fn put_node(out: &mut Vec<u8>, member: &ClusterMember) {
    let mut object = ObjectWriter::begin(out);
    object.text("id", &member.id);
    object.text_or_null("address", member.address.as_deref());
    object.text("version", &member.version);
    put_time(object.field("started"), member.started);
    let state = match member.state {
        MemberState::Alive => "alive",
        MemberState::Leaving => "leaving",
        MemberState::Silent => "silent",
    };
    put_string(object.field("state"), state);
    object.number("namespaces", member.n_owned);
    object.flag("this", member.is_this);
    object.end();
}
