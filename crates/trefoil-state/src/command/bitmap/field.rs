//! Integers of any width within strings.

use bytes::Bytes;

use super::bit::offset;
use crate::command::arguments::{ArgumentReader, check_name, integer, is_word};
use crate::error::{CommandError, Result, SYNTAX};
use crate::keyspace::Keyspace;
use crate::number::parse_integer;
use crate::reply::Reply;
use crate::string::StringDraft;

/// What becomes of a number that does not fit.
#[derive(Debug, Clone, Copy)]
enum Overflow {
    Wrap,
    Saturate,
    Fail,
}

/// A field: where its bits are, how many, and whether the first one is a sign.
#[derive(Debug, Clone, Copy)]
struct BitField {
    offset: u64,
    width: u32,
    is_signed: bool,
}

/// What is done with a field.
#[derive(Debug, Clone, Copy)]
enum BitfieldAction {
    Get,
    Set(i64, Overflow),
    Add(i64, Overflow),
}

/// `BITFIELD key [GET type offset | [OVERFLOW WRAP | SAT | FAIL] SET type offset value |
/// INCRBY type offset increment …]`
pub(super) fn bitfield(keyspace: &mut Keyspace<'_>, arguments: &[Bytes]) -> Result<Reply> {
    let actions = parse(&arguments[2..])?;
    run(keyspace, &arguments[1], &actions)
}

/// `BITFIELD_RO key [GET type offset …]`
pub(super) fn bitfield_ro(keyspace: &mut Keyspace<'_>, arguments: &[Bytes]) -> Result<Reply> {
    let actions = parse(&arguments[2..])?;
    if actions
        .iter()
        .any(|(_, action)| !matches!(action, BitfieldAction::Get))
    {
        return Err(CommandError::refused(
            "ERR BITFIELD_RO only supports the GET subcommand",
        ));
    }
    run(keyspace, &arguments[1], &actions)
}

/// Reads everything that is to be done before any of it is.
fn parse(arguments: &[Bytes]) -> Result<Vec<(BitField, BitfieldAction)>> {
    let mut rest = ArgumentReader::new(arguments);
    let mut overflow = Overflow::Wrap;
    let mut actions = Vec::new();
    while let Some(word) = rest.word() {
        if is_word(word, "OVERFLOW") {
            overflow = Overflow::parse(rest.word().ok_or(SYNTAX)?)?;
            continue;
        }
        let (n_arguments, action): (usize, fn(i64, Overflow) -> BitfieldAction) = match word {
            word if is_word(word, "GET") => (2, |_, _| BitfieldAction::Get),
            word if is_word(word, "SET") => (3, BitfieldAction::Set),
            word if is_word(word, "INCRBY") => (3, BitfieldAction::Add),
            _ => return Err(SYNTAX),
        };
        if rest.all().len() < n_arguments {
            return Err(SYNTAX);
        }
        let (Some(kind), Some(offset)) = (rest.word(), rest.word()) else {
            return Err(SYNTAX);
        };
        let field = BitField::parse(kind, offset)?;
        let value = match n_arguments {
            2 => 0,
            _ => integer(rest.word().ok_or(SYNTAX)?)?,
        };
        actions.push((field, action(value, overflow)));
    }
    Ok(actions)
}

impl Overflow {
    fn parse(word: &[u8]) -> Result<Self> {
        match word {
            word if is_word(word, "WRAP") => Ok(Self::Wrap),
            word if is_word(word, "SAT") => Ok(Self::Saturate),
            word if is_word(word, "FAIL") => Ok(Self::Fail),
            _ => Err(CommandError::refused("ERR Invalid OVERFLOW type specified")),
        }
    }
}

fn run(
    keyspace: &mut Keyspace<'_>,
    key: &Bytes,
    actions: &[(BitField, BitfieldAction)],
) -> Result<Reply> {
    let text = keyspace.string(key)?;
    let written = actions
        .iter()
        .filter(|(_, action)| !matches!(action, BitfieldAction::Get));
    let end = written.map(|(field, _)| field.offset + u64::from(field.width));
    let mut draft = StringDraft::new(text);
    if let Some(end) = end.max() {
        check_name(key)?;
        draft.grow(end.div_ceil(8))?;
    }
    let act =
        |(field, action): &(BitField, BitfieldAction)| field.act(keyspace, &mut draft, *action);
    let replies = actions.iter().map(act).collect::<Result<_>>()?;
    draft.save(keyspace, key)?;
    Ok(Reply::Array(replies))
}

impl BitField {
    fn parse(kind: &[u8], at: &[u8]) -> Result<Self> {
        let (is_signed, digits) = match kind {
            [b'i', digits @ ..] => (true, digits),
            [b'u', digits @ ..] => (false, digits),
            digits => (false, &digits[..0]),
        };
        let width_max = if is_signed { 64 } else { 63 };
        let width = parse_integer(digits)
            .filter(|width| (1..=width_max).contains(width))
            .and_then(|width| u32::try_from(width).ok())
            .ok_or(CommandError::refused(
                "ERR Invalid bitfield type. Use something like i16 u8. Note that u64 is not \
                 supported but i64 is.",
            ))?;
        Ok(Self {
            offset: offset(at, Some(width))?,
            width,
            is_signed,
        })
    }

    fn act(
        self,
        keyspace: &Keyspace<'_>,
        draft: &mut StringDraft,
        action: BitfieldAction,
    ) -> Result<Reply> {
        let before = self.read(keyspace, draft)?;
        let (wanted, overflow) = match action {
            BitfieldAction::Get => return Ok(Reply::Integer(before as i64)),
            BitfieldAction::Set(value, overflow) if self.is_signed => (i128::from(value), overflow),
            // A negative number is a large one where there is no sign.
            BitfieldAction::Set(value, overflow) => (i128::from(value as u64), overflow),
            BitfieldAction::Add(value, overflow) => (before + i128::from(value), overflow),
        };
        let Some(after) = self.fit(wanted, overflow) else {
            return Ok(Reply::Nil);
        };
        self.write(keyspace, draft, after)?;
        Ok(Reply::Integer(match action {
            BitfieldAction::Add(..) => after as i64,
            _ => before as i64,
        }))
    }

    /// Returns the number that is stored for a wanted one; `None` if that is to fail.
    fn fit(self, wanted: i128, overflow: Overflow) -> Option<i128> {
        let (low, high) = match self.is_signed {
            true => (-(1 << (self.width - 1)), (1 << (self.width - 1)) - 1),
            false => (0, (1 << self.width) - 1),
        };
        match overflow {
            _ if (low..=high).contains(&wanted) => Some(wanted),
            Overflow::Wrap => Some(self.extend(wanted as u128)),
            Overflow::Saturate => Some(wanted.clamp(low, high)),
            Overflow::Fail => None,
        }
    }

    /// Returns the number that the lowest bits say.
    fn extend(self, bits: u128) -> i128 {
        let shift = u128::BITS - self.width;
        match self.is_signed {
            true => (bits << shift) as i128 >> shift,
            false => (bits << shift >> shift) as i128,
        }
    }

    /// Returns how many bytes the field touches, and how many bits of the last one follow it.
    fn bytes(self) -> (usize, u32) {
        let end = (self.offset % 8) as u32 + self.width;
        let n = end.div_ceil(8);
        (n as usize, n * 8 - end)
    }

    /// Returns the bytes that the field touches, as one number.
    fn word(self, keyspace: &Keyspace<'_>, draft: &mut StringDraft) -> Result<u128> {
        let (n, _) = self.bytes();
        let mut bytes = [0; size_of::<u128>()];
        let begin = bytes.len() - n;
        draft.read(keyspace, self.offset / 8, &mut bytes[begin..])?;
        Ok(u128::from_be_bytes(bytes))
    }

    fn read(self, keyspace: &Keyspace<'_>, draft: &mut StringDraft) -> Result<i128> {
        let (_, after) = self.bytes();
        Ok(self.extend(self.word(keyspace, draft)? >> after))
    }

    fn write(self, keyspace: &Keyspace<'_>, draft: &mut StringDraft, value: i128) -> Result<()> {
        let (n, after) = self.bytes();
        let mask = ((1_u128 << self.width) - 1) << after;
        let kept = self.word(keyspace, draft)? & !mask;
        let word = kept | (value as u128) << after & mask;
        let bytes = word.to_be_bytes();
        draft.write(keyspace, self.offset / 8, &bytes[bytes.len() - n..])
    }
}
