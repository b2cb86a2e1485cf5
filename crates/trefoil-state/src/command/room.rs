//! Which commands take room. Redis refuses those when it is out of memory (`denyoom`), and takes the others.

use super::{CommandAccess, CommandSpec};

/// Commands that change something and take no room.
const WITHOUT_ROOM: [&str; 33] = [
    "del",
    "delex",
    "expire",
    "expireat",
    "flushall",
    "flushdb",
    "getdel",
    "getex",
    "hdel",
    "hgetdel",
    "hgetex",
    "hpersist",
    "lmpop",
    "lpop",
    "lrem",
    "ltrim",
    "persist",
    "pexpire",
    "pexpireat",
    "rename",
    "renamenx",
    "rpop",
    "smove",
    "spop",
    "srem",
    "unlink",
    "zmpop",
    "zpopmax",
    "zpopmin",
    "zrem",
    "zremrangebylex",
    "zremrangebyrank",
    "zremrangebyscore",
];

impl CommandSpec {
    /// Returns whether it may take room: all commands of applications that write may.
    pub fn takes_room(&self) -> bool {
        self.access == CommandAccess::Write && !WITHOUT_ROOM.contains(&self.name)
    }
}
