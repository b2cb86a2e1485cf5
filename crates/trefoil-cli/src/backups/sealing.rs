//! How a piece of a repository is stored: compressed, if that makes it smaller, and encrypted, if there
//! is a key.
//!
//! ```text
//! packed       method: u8 (0 as it is, 1 zstd) | for zstd, length of the content: u32 | content
//! encrypted    nonce: 12 bytes | ChaCha20-Poly1305 of what is packed, for this name
//! ```
//!
//! With a key, the names of parts are keyed hashes: who does not have it cannot tell whether a part that
//! he knows is there.

use std::path::Path;

use anyhow::{Context as _, anyhow};
use ring::aead::{Aad, CHACHA20_POLY1305, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};
use ring::hkdf::{HKDF_SHA256, KeyType, Salt};
use ring::rand::{SecureRandom as _, SystemRandom};
use ring::{hkdf, hmac};
use zstd::bulk;

use crate::exit::UsageError;

const PLAIN: u8 = 0;
const ZSTD: u8 = 1;
const LEVEL: i32 = 3;
/// No content is longer than this, whatever a damaged piece says.
const CONTENT_BYTES_MAX: usize = 1024 * 1024 * 1024;
const KEY_BYTES: usize = 32;

/// How pieces are stored.
#[derive(Debug, Default)]
pub(super) struct Sealing {
    key: Option<SealingKey>,
}

/// What encrypts pieces and hides their names.
struct SealingKey {
    pieces: LessSafeKey,
    names: hmac::Key,
}

impl std::fmt::Debug for SealingKey {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("SealingKey")
    }
}

/// The length of a key that is derived.
struct DerivedLength;

impl KeyType for DerivedLength {
    fn len(&self) -> usize {
        KEY_BYTES
    }
}

impl SealingKey {
    fn derive(secret: &[u8]) -> anyhow::Result<Self> {
        let root = Salt::new(HKDF_SHA256, b"trefoil backup").extract(secret);
        let pieces = UnboundKey::new(&CHACHA20_POLY1305, &derived(&root, b"pieces")?);
        Ok(Self {
            pieces: LessSafeKey::new(pieces.map_err(|_| no_key())?),
            names: hmac::Key::new(hmac::HMAC_SHA256, &derived(&root, b"names")?),
        })
    }

    fn name(&self, text: &str) -> String {
        let tag = hmac::sign(&self.names, text.as_bytes());
        tag.as_ref()
            .iter()
            .map(|byte| format!("{byte:02x}"))
            .collect()
    }
}

fn derived(root: &hkdf::Prk, purpose: &[u8]) -> anyhow::Result<[u8; KEY_BYTES]> {
    let mut key = [0; KEY_BYTES];
    let purposes = [purpose];
    let expanded = root
        .expand(&purposes, DerivedLength)
        .map_err(|_| no_key())?;
    expanded.fill(&mut key).map_err(|_| no_key())?;
    Ok(key)
}

fn no_key() -> anyhow::Error {
    anyhow!("the key cannot be used")
}

impl Sealing {
    /// Encrypts with the key in a file: 64 hexadecimal digits.
    pub(super) fn with_key_file(file: &Path) -> anyhow::Result<Self> {
        let shown = file.display();
        let text = std::fs::read_to_string(file);
        let text = text.with_context(|| format!("cannot read the key in {shown}"))?;
        let secret = parse_key(text.trim()).ok_or_else(|| {
            UsageError(format!("{shown} is no key: it needs 64 hexadecimal digits"))
        })?;
        let key = SealingKey::derive(&secret)?;
        Ok(Self { key: Some(key) })
    }

    /// Returns the name that a part or a note has.
    pub(super) fn name(&self, plain: &str) -> String {
        match &self.key {
            Some(key) => key.name(plain),
            None => plain.to_owned(),
        }
    }

    /// Returns what tells the key from others; `None` without one.
    pub(super) fn check(&self) -> Option<String> {
        self.key.as_ref().map(|key| key.name("which key this is"))
    }

    /// Returns what is stored of a content under a name.
    pub(super) fn seal(&self, name: &str, content: &[u8]) -> anyhow::Result<Vec<u8>> {
        let packed = pack(content)?;
        let Some(key) = &self.key else {
            return Ok(packed);
        };
        let mut nonce = [0; NONCE_LEN];
        SystemRandom::new()
            .fill(&mut nonce)
            .map_err(|_| anyhow!("no random numbers"))?;
        let mut sealed = packed;
        let sealing = Nonce::assume_unique_for_key(nonce);
        let done = { &key.pieces }.seal_in_place_append_tag(sealing, Aad::from(name), &mut sealed);
        done.map_err(|_| anyhow!("{name} cannot be encrypted"))?;
        Ok([&nonce[..], &sealed].concat())
    }

    /// Returns the content of a name; `None` if this is not what was stored there.
    pub(super) fn open(&self, name: &str, sealed: &[u8]) -> Option<Vec<u8>> {
        let Some(key) = &self.key else {
            return unpack(sealed);
        };
        let (nonce, sealed) = sealed.split_first_chunk::<NONCE_LEN>()?;
        let nonce = Nonce::assume_unique_for_key(*nonce);
        let mut sealed = sealed.to_vec();
        let opened = key
            .pieces
            .open_in_place(nonce, Aad::from(name), &mut sealed);
        unpack(opened.ok()?)
    }
}

fn parse_key(text: &str) -> Option<[u8; KEY_BYTES]> {
    let mut key = [0; KEY_BYTES];
    if text.len() != 2 * KEY_BYTES || !text.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return None;
    }
    for (index, byte) in key.iter_mut().enumerate() {
        *byte = u8::from_str_radix(text.get(2 * index..2 * index + 2)?, 16).ok()?;
    }
    Some(key)
}

fn pack(content: &[u8]) -> anyhow::Result<Vec<u8>> {
    let length = u32::try_from(content.len()).context("a part of more than 4 GiB")?;
    let packed = bulk::compress(content, LEVEL)?;
    Ok(
        match packed.len() + length.to_le_bytes().len() < content.len() {
            true => [&[ZSTD], &length.to_le_bytes()[..], &packed].concat(),
            false => [&[PLAIN], content].concat(),
        },
    )
}

fn unpack(packed: &[u8]) -> Option<Vec<u8>> {
    match packed.split_first()? {
        (&PLAIN, content) => Some(content.to_vec()),
        (&ZSTD, rest) => {
            let (length, packed) = rest.split_first_chunk()?;
            let length = u32::from_le_bytes(*length) as usize;
            let content = bulk::decompress(packed, length.min(CONTENT_BYTES_MAX)).ok()?;
            (content.len() == length).then_some(content)
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sealings() -> [Sealing; 2] {
        let key = SealingKey::derive(&[7; 32]).unwrap();
        [Sealing::default(), Sealing { key: Some(key) }]
    }

    #[test]
    fn what_was_sealed_is_opened_and_nothing_else() {
        for sealing in sealings() {
            for content in [&b""[..], b"short", &[7; 100_000]] {
                let sealed = sealing.seal("a", content).unwrap();
                assert_eq!(sealing.open("a", &sealed).as_deref(), Some(content));
            }
            let sealed = sealing.seal("a", &[7; 100_000]).unwrap();
            assert!(sealed.len() < 1000);
            for end in 0..sealed.len() {
                assert_eq!(sealing.open("a", &sealed[..end]), None, "{end}");
            }
            assert_eq!(sealing.open("a", b"\x02unknown"), None);
        }
    }

    #[test]
    fn a_key_hides_content_and_names() {
        let [plain, sealing] = sealings();
        let content = b"a secret that nobody may read";
        let sealed = sealing.seal("a", content).unwrap();
        assert!(!sealed.windows(6).any(|window| window == b"secret"));
        // Not under another name, not changed anywhere, and not with another key.
        assert_eq!(sealing.open("b", &sealed), None);
        for at in 0..sealed.len() {
            let mut changed = sealed.clone();
            changed[at] ^= 1;
            assert_eq!(sealing.open("a", &changed), None, "{at}");
        }
        let key = SealingKey::derive(&[8; 32]).unwrap();
        let other = Sealing { key: Some(key) };
        assert_eq!(other.open("a", &sealed), None);
        assert_ne!(sealing.check(), other.check());
        assert_ne!(sealing.name("a"), other.name("a"));
        assert_eq!(plain.name("a"), "a");
    }

    #[test]
    fn a_key_has_64_digits() {
        assert_eq!(parse_key(&"0F".repeat(32)), Some([15; 32]));
        for text in [
            "",
            "0f",
            &"0f".repeat(33),
            &"xy".repeat(32),
            &"é".repeat(32),
        ] {
            assert_eq!(parse_key(text), None);
        }
    }
}
