//! The nodes that share this home: what they tell each other, and what is kept for all of them.

use bytes::Bytes;
use trefoil::Timestamp;
use trefoil::home::{Cluster, ClusterMember, ClusterStats, MemberState};
use trefoil_core::{Error, NamespaceId, Result};

use super::node::{NodeId, NodeWord};
use super::objects::failed;
use super::ownership::Holder;
use super::{HomeShared, names, small};
use crate::contract::KvError;

/// The longest address and name, in bytes.
const TEXT_MAX: usize = 255;

impl Cluster for HomeShared {
    fn announce(&self, address: &str) -> Result<()> {
        if address.is_empty() || address.len() > TEXT_MAX {
            let text = format!("the address of a node has 1 to {TEXT_MAX} bytes: {address:?}");
            return Err(Error::invalid(text));
        }
        self.word.lock().address = Some(address.to_owned());
        self.node().tell(self.told(), self.objects())
    }

    fn shared_bytes(&self, name: &str, make: &mut dyn FnMut() -> Result<Vec<u8>>) -> Result<Bytes> {
        let is_allowed = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-';
        if name.is_empty() || name.len() > TEXT_MAX || !name.bytes().all(is_allowed) {
            let text = format!("{name:?} cannot be the name of something that nodes share");
            return Err(Error::invalid(text));
        }
        let object = names::shared(name);
        if let Some(found) = self.find_shared(&object)? {
            return Ok(found);
        }
        let made = small::encode(&name, &make()?)?;
        match self.objects().create(&object, made) {
            // Whoever created it, that one counts.
            Ok(_) | Err(KvError::Unknown(_)) => {}
            Err(error) => return Err(failed("keeping what nodes share")(error)),
        }
        let gone = || Error::Internal(format!("{object} was created and is not there"));
        self.find_shared(&object)?.ok_or_else(gone)
    }

    fn members(&self) -> Vec<ClusterMember> {
        let node = self.node();
        let own = member(node.id, self.told(), node.has_lease());
        let mut others = self.peers.all();
        others.sort_by_key(|peer| peer.id);
        let others = others
            .into_iter()
            .map(|peer| member(peer.id, peer.word, peer.seems_alive));
        let own = ClusterMember {
            is_this: true,
            ..own
        };
        std::iter::once(own).chain(others).collect()
    }

    fn owner(&self, id: &NamespaceId) -> Result<Option<String>> {
        let Some(entry) = self.entries().read(&names::entry(id))? else {
            return Err(Error::NamespaceNotFound(id.to_string()));
        };
        let own = self.node().id;
        let holder = self.owners(entry.stamp.incarnation, own).holder()?;
        let is_member = |id| id == own || self.peers.all().iter().any(|peer| peer.id == id);
        Ok(match holder {
            Holder::Owner(id) if is_member(id) => Some(format!("{:032x}", id.0)),
            _ => None,
        })
    }

    fn stats(&self) -> ClusterStats {
        let node = self.node();
        ClusterStats {
            lease_left: node.lease_left(),
            clock_ahead_millis: node.store_clock.ahead_millis(),
            is_clock_off: node.store_clock.is_off(),
            requests: self.engine.request_counts(),
            ..self.moves.stats()
        }
    }

    fn leave(&self) -> Result<bool> {
        let mut word = self.word.lock();
        word.is_leaving = true;
        let has_address = word.address.is_some();
        drop(word);
        let node = self.node();
        node.tell(self.told(), self.objects())?;
        // Somebody may have joined a moment ago.
        if let Err(error) = self.peers.watch_now(node.id, self.objects()) {
            tracing::warn!(%error, "cannot look at the other nodes");
        }
        Ok(has_address && !self.others().is_empty())
    }

    fn surplus(&self) -> usize {
        self.n_to_give()
    }

    fn gifts(&self) -> Vec<NamespaceId> {
        self.gifts_of_others()
    }
}

fn member(id: NodeId, word: NodeWord, is_alive: bool) -> ClusterMember {
    ClusterMember {
        id: format!("{:032x}", id.0),
        address: word.address,
        version: word.version,
        started: Timestamp(
            i64::try_from(word.started)
                .unwrap_or(0)
                .saturating_mul(1_000_000),
        ),
        state: match (is_alive, word.is_leaving) {
            (false, _) => MemberState::Silent,
            (true, true) => MemberState::Leaving,
            (true, false) => MemberState::Alive,
        },
        n_owned: word.n_owned,
        is_this: false,
    }
}

impl HomeShared {
    fn find_shared(&self, object: &str) -> Result<Option<Bytes>> {
        let found = self.objects().get(object);
        let found = found.map_err(failed("reading what nodes share"))?;
        let bytes = |(bytes, _)| small::decode::<String>(object, &bytes).map(|(_, bytes)| bytes);
        found.map(bytes).transpose()
    }
}

#[cfg(test)]
mod tests {
    use trefoil::home::Home as _;

    use super::*;
    use crate::contract::KvEngine as _;
    use crate::home::tests::TestNode;
    use crate::memory::{CutOff, Fate, MemoryEngine};

    fn share(node: &TestNode, name: &str, text: &str) -> Result<Bytes> {
        let cluster = node.home.cluster().unwrap();
        cluster.shared_bytes(name, &mut || Ok(text.into()))
    }

    #[test]
    fn what_nodes_share_is_made_once() {
        let data = MemoryEngine::default();
        let (first, second) = (TestNode::join(&data, 1), TestNode::join(&data, 2));
        // The answer is lost, which is the same as if another one had made it.
        let lost = CutOff::after(1, Fate::FailsAfter);
        first.engine.set_fates(Some(Box::new(lost)));
        assert!(share(&first, "ca", "first").is_err());
        first.engine.set_fates(None);
        assert_eq!(share(&second, "ca", "second").unwrap(), "first");
        assert_eq!(share(&first, "ca", "again").unwrap(), "first");
        assert_eq!(share(&first, "other", "other").unwrap(), "other");
        for name in ["", "a/b", "..", &"a".repeat(256)] {
            let refused = share(&first, name, "text");
            assert!(matches!(refused, Err(Error::Invalid(_))), "{refused:?}");
        }
    }

    #[test]
    fn what_was_damaged_is_not_made_again() {
        let data = MemoryEngine::default();
        let node = TestNode::join(&data, 1);
        share(&node, "ca", "text").unwrap();
        let (bytes, version) = data.objects().get("cluster/ca").unwrap().unwrap();
        let cut = bytes.slice(..bytes.len() - 1);
        data.objects()
            .replace("cluster/ca", &version, cut)
            .unwrap()
            .unwrap();
        let refused = share(&node, "ca", "another");
        assert!(matches!(refused, Err(Error::Damaged(_))), "{refused:?}");
    }
}
