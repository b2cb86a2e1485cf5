//! How a stream name splits into category, id and cardinal id, and who of a consumer group it
//! belongs to.
//!
//! `account-123+retry` has category `account`, id `123+retry` and cardinal id `123`. A name without
//! a dash is its own category and has no id.

use md5::{Digest, Md5};

/// Returns the part of a stream name before its first dash, or the whole name.
pub fn category(stream: &str) -> &str {
    stream
        .split_once('-')
        .map_or(stream, |(category, _)| category)
}

/// Returns the part of a stream name after its first dash.
pub fn stream_id(stream: &str) -> Option<&str> {
    stream.split_once('-').map(|(_, id)| id)
}

/// Returns the part of a stream's id before its first plus sign.
pub fn cardinal_id(stream: &str) -> Option<&str> {
    stream_id(stream).map(|id| id.split_once('+').map_or(id, |(cardinal, _)| cardinal))
}

/// Returns the first 64 bits of the MD5 of `text`, as Message DB's `hash_64` computes them.
pub fn group_hash(text: &str) -> i64 {
    let digest = Md5::digest(text.as_bytes());
    let mut first = [0; 8];
    first.copy_from_slice(&digest[..8]);
    i64::from_be_bytes(first)
}

/// Returns the hash that decides which member of a consumer group a stream belongs to; `None` for a
/// stream without an id, which belongs to no member.
pub fn stream_group_hash(stream: &str) -> Option<i64> {
    cardinal_id(stream).map(group_hash)
}

/// Returns whether a stream with this hash belongs to `member` of a group of `size`.
pub fn in_group(hash: i64, member: u64, size: u64) -> bool {
    hash.unsigned_abs() % size == member
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_split_at_the_first_dash() {
        assert_eq!(category("user-profile-456"), "user");
        assert_eq!(stream_id("user-profile-456"), Some("profile-456"));
        assert_eq!(cardinal_id("account-123+retry"), Some("123"));
        assert_eq!(category("account:command-123"), "account:command");
        assert_eq!(
            (category("account"), stream_id("account")),
            ("account", None)
        );
        assert_eq!(cardinal_id("account-"), Some(""));
    }

    /// The published vectors of Message DB's rule: text, hash, and the member of groups of 2, 3, 4.
    #[test]
    fn hashes_are_those_of_message_db() {
        let vectors: &[(&str, i64, [u64; 3])] = &[
            ("", -3162216497309240828, [0, 2, 0]),
            ("1", -4266524885998034046, [0, 0, 2]),
            ("2", -4026655064267673757, [1, 1, 1]),
            ("123", 2318431741638412123, [1, 1, 3]),
            ("abc", -8070080442485551184, [0, 2, 0]),
            ("account-123", 2828383952216582226, [0, 0, 2]),
            (
                "a5eb2a97-84d9-4ccf-8a56-7160338b11e2",
                9208446511280970811,
                [1, 1, 3],
            ),
            ("世界", -4573771556638290182, [0, 2, 2]),
        ];
        for (text, hash, members) in vectors {
            assert_eq!(group_hash(text), *hash, "{text}");
            for (size, member) in (2..=4).zip(members) {
                assert!(
                    in_group(*hash, *member, size),
                    "{text} in a group of {size}"
                );
            }
        }
    }
}
