//! Who may open the stores of a namespace: the one who created the object of the highest epoch.
//!
//! The next epoch may be taken if the last one was released, or is this node's, or its node is gone.
//! Two nodes that try at the same time create the same object, and one of them succeeds. Stores are
//! opened with the epoch, so that whoever comes late is refused by the engine.

use serde::{Deserialize, Serialize};
use trefoil::home::Incarnation;
use trefoil_core::{Error, Result};

use super::node::NodeId;
use super::objects::{failed, list_all};
use super::peers::{PeerState, Peers};
use super::{names, small};
use crate::contract::{KvError, KvObjects, ObjectVersion};

/// How often the next epoch is tried, when others take it.
const ATTEMPTS: usize = 8;

/// Who has an epoch.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct OwnerHead {
    #[serde(with = "super::hex")]
    node: u128,
    is_released: bool,
    /// The node that should have it next, in hexadecimal.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    successor: Option<String>,
}

/// The last epoch of a namespace.
struct NamespaceOwner {
    epoch: u64,
    head: OwnerHead,
}

/// Who has a namespace, or should have it next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Holder {
    /// Nobody, and nobody in particular should.
    Nobody,
    /// This node has it, if it is alive.
    Owner(NodeId),
    /// It was released to this node.
    Successor(NodeId),
}

/// An epoch that this node has.
#[derive(Debug, Clone)]
pub(super) struct OwnedEpoch {
    pub(super) number: u64,
    version: ObjectVersion,
}

/// What became of an attempt to own a namespace.
#[derive(Debug)]
pub(super) enum Acquired {
    /// This node has it, after this one that was dead, if it was.
    Owned(OwnedEpoch, Option<NodeId>),
    /// Another node has it, and is alive. This is its address.
    Elsewhere(Option<String>),
    /// Another node has it, this one if that is known, and may be dead: ask again later.
    Later(Option<NodeId>),
}

/// The owners of one namespace.
#[derive(Clone, Copy)]
pub(super) struct NamespaceOwners<'a> {
    pub(super) objects: &'a dyn KvObjects,
    pub(super) incarnation: Incarnation,
    /// This node.
    pub(super) node: NodeId,
}

impl NamespaceOwners<'_> {
    /// Takes the next epoch, if that is possible.
    pub(super) fn acquire(self, peers: &Peers) -> Result<Acquired> {
        for _ in 0..ATTEMPTS {
            let last = self.last()?;
            let mut dead = None;
            if let Some(last) = &last
                && !last.head.is_released
                && last.head.node != self.node.0
            {
                match peers.look(NodeId(last.head.node), self.objects)? {
                    PeerState::Gone => dead = Some(NodeId(last.head.node)),
                    PeerState::Alive(address) => return Ok(Acquired::Elsewhere(address)),
                    PeerState::Silent => {
                        return Ok(Acquired::Later(Some(NodeId(last.head.node))));
                    }
                }
            }
            let next = last.map_or(1, |last| last.epoch + 1);
            if let Some(owned) = self.take(next)? {
                return Ok(Acquired::Owned(owned, dead));
            }
        }
        Ok(Acquired::Later(None))
    }

    /// Returns who has the namespace now.
    pub(super) fn holder(self) -> Result<Holder> {
        let Some(NamespaceOwner { head, .. }) = self.last()? else {
            return Ok(Holder::Nobody);
        };
        if !head.is_released {
            return Ok(Holder::Owner(NodeId(head.node)));
        }
        let successor = head.successor.as_deref();
        let successor = successor.and_then(|text| u128::from_str_radix(text, 16).ok());
        Ok(successor.map_or(Holder::Nobody, |id| Holder::Successor(NodeId(id))))
    }

    /// Takes the epoch after one that this node has. Returns `None` if another node has taken it.
    pub(super) fn take(self, epoch: u64) -> Result<Option<OwnedEpoch>> {
        let name = names::owner(self.incarnation, epoch);
        let head = self.head();
        let version = match self.objects.create(&name, small::encode(&head, b"")?) {
            Ok(created) => created,
            // It may be there all the same, and then it is either this node's or another's.
            Err(KvError::Unknown(_)) => self.find_own(&name)?,
            Err(error) => return Err(failed("owning a namespace")(error)),
        };
        let Some(version) = version else {
            return Ok(None);
        };
        // Lower ones are removed: this one may have been there before, and come to its end.
        let is_last = self.last()?.is_some_and(|last| last.epoch == epoch);
        if !is_last {
            return Ok(None);
        }
        self.remove_below(epoch);
        Ok(Some(OwnedEpoch {
            number: epoch,
            version,
        }))
    }

    fn head(self) -> OwnerHead {
        OwnerHead {
            node: self.node.0,
            is_released: false,
            successor: None,
        }
    }

    fn find_own(self, name: &str) -> Result<Option<ObjectVersion>> {
        let found = self.objects.get(name);
        let Some((bytes, version)) = found.map_err(failed("owning a namespace"))? else {
            return Ok(None);
        };
        let (head, _): (OwnerHead, _) = small::decode(name, &bytes)?;
        Ok((head == self.head()).then_some(version))
    }

    fn last(self) -> Result<Option<NamespaceOwner>> {
        for _ in 0..ATTEMPTS {
            let listed = list_all(self.objects, &names::owners(self.incarnation))?;
            let Some(name) = listed.last() else {
                return Ok(None);
            };
            let found = self.objects.get(name);
            // It may have been removed meanwhile, because there is a higher one.
            let Some((bytes, _)) = found.map_err(failed("looking for an owner"))? else {
                continue;
            };
            let (head, _) = small::decode(name, &bytes)?;
            let epoch = names::last_number(name).and_then(|number| u64::try_from(number).ok());
            let strange = || Error::Internal(format!("{name} is not the name of an epoch"));
            let epoch = epoch.ok_or_else(strange)?;
            return Ok(Some(NamespaceOwner { epoch, head }));
        }
        Err(Error::Overloaded(
            "the owner of the namespace changes all the time".to_owned(),
        ))
    }

    /// Removes the epochs before this one. Those that stay do no harm.
    fn remove_below(self, epoch: u64) {
        let end = names::owner(self.incarnation, epoch);
        let listed = list_all(self.objects, &names::owners(self.incarnation));
        let older = listed.unwrap_or_default().into_iter();
        for name in older.take_while(|name| *name < end) {
            if self.objects.delete(&name).is_err() {
                return;
            }
        }
    }

    /// Lets other nodes have the namespace, one of them first if that is known. If that fails, they have
    /// it when this node is gone.
    pub(super) fn release(self, owned: &OwnedEpoch, successor: Option<NodeId>) -> Result<()> {
        let name = names::owner(self.incarnation, owned.number);
        let head = OwnerHead {
            is_released: true,
            successor: successor.map(|id| format!("{:032x}", id.0)),
            ..self.head()
        };
        let head = small::encode(&head, b"")?;
        let released = self.objects.replace(&name, &owned.version, head);
        released.map(drop).map_err(failed("releasing a namespace"))
    }
}
