//! The sets that `ZUNION` and its kin take, and what the options say of them.

use bytes::Bytes;

use super::algebra::AlgebraOperation;
use super::scores::{Scored, read_score};
use crate::command::arguments::{ArgumentReader, integer, integer_from, is_word};
use crate::error::{CommandError, Result, SYNTAX, WRONG_TYPE};
use crate::keyspace::Keyspace;
use crate::meta::{Collection, StoredValue, ValueKind};
use crate::parse_double;

/// A sorted set, a plain set, whose members all have the score 1, or nothing.
#[derive(Debug)]
pub(super) struct AlgebraInput {
    collection: Option<Collection>,
    pub(super) weight: f64,
}

/// What is made of the scores of a member that is in several sets.
#[derive(Debug, Clone, Copy)]
pub(super) enum Aggregate {
    Sum,
    Min,
    Max,
}

/// The sets, from small to large unless their order matters, and the options.
#[derive(Debug)]
pub(super) struct Inputs {
    pub(super) inputs: Vec<AlgebraInput>,
    pub(super) aggregate: Aggregate,
    pub(super) with_scores: bool,
    /// How many members are counted at most; 0 for all.
    pub(super) limit: usize,
}

impl AlgebraInput {
    fn find(keyspace: &Keyspace<'_>, key: &[u8]) -> Result<Self> {
        let collection = match keyspace.find(key)?.map(|meta| meta.value) {
            None => None,
            Some(StoredValue::Collection(collection))
                if matches!(collection.kind, ValueKind::Set | ValueKind::SortedSet) =>
            {
                Some(collection)
            }
            Some(_) => return Err(WRONG_TYPE),
        };
        let weight = 1.0;
        Ok(Self { collection, weight })
    }

    fn len(&self) -> u64 {
        self.collection.map_or(0, |collection| collection.len)
    }

    /// Returns the score of a member, without the weight.
    pub(super) fn score(&self, keyspace: &Keyspace<'_>, member: &[u8]) -> Result<Option<f64>> {
        let Some(collection) = self.collection else {
            return Ok(None);
        };
        let value = keyspace.named(collection.id, member)?;
        value
            .map(|value| score(collection.kind, &value))
            .transpose()
    }

    /// Returns the members with their scores, without the weight.
    pub(super) fn members<'s, 'a>(
        &self,
        keyspace: &'s Keyspace<'a>,
    ) -> impl Iterator<Item = Result<Scored>> + use<'s, 'a> {
        self.collection.into_iter().flat_map(|collection| {
            keyspace.all_named(collection.id).map(move |named| {
                let (member, value) = named?;
                Ok((member, score(collection.kind, &value)?))
            })
        })
    }
}

fn score(kind: ValueKind, value: &Bytes) -> Result<f64> {
    match kind {
        ValueKind::Set => Ok(1.0),
        _ => read_score(value),
    }
}

impl Aggregate {
    fn parse(word: &[u8]) -> Result<Self> {
        if is_word(word, "SUM") {
            Ok(Self::Sum)
        } else if is_word(word, "MIN") {
            Ok(Self::Min)
        } else if is_word(word, "MAX") {
            Ok(Self::Max)
        } else {
            Err(SYNTAX)
        }
    }

    pub(super) fn apply(self, total: f64, score: f64) -> f64 {
        match self {
            // Infinities of both signs make nothing.
            Self::Sum if (total + score).is_nan() => 0.0,
            Self::Sum => total + score,
            Self::Min if score < total => score,
            Self::Max if score > total => score,
            Self::Min | Self::Max => total,
        }
    }
}

impl Inputs {
    /// `numkeys key [key …]` from this index of the arguments on, and the options of the operation.
    pub(super) fn parse(
        keyspace: &Keyspace<'_>,
        arguments: &[Bytes],
        at: usize,
        operation: AlgebraOperation,
    ) -> Result<Self> {
        let (mut inputs, mut rest) = Self::find(keyspace, arguments, at)?;
        let may_weigh = operation != AlgebraOperation::Difference;
        let is_stored = at > 1;
        while let Some(word) = rest.word() {
            if may_weigh && is_word(word, "WEIGHTS") {
                inputs.weigh(&mut rest)?;
            } else if may_weigh && is_word(word, "AGGREGATE") {
                inputs.aggregate = Aggregate::parse(rest.word().ok_or(SYNTAX)?)?;
            } else if !is_stored && is_word(word, "WITHSCORES") {
                inputs.with_scores = true;
            } else {
                return Err(SYNTAX);
            }
        }
        if may_weigh {
            inputs.inputs.sort_by_key(AlgebraInput::len);
        }
        Ok(inputs)
    }

    /// `numkeys key [key …] [LIMIT limit]`
    pub(super) fn parse_counted(keyspace: &Keyspace<'_>, arguments: &[Bytes]) -> Result<Self> {
        let (mut inputs, mut rest) = Self::find(keyspace, arguments, 1)?;
        while let Some(word) = rest.word() {
            let limit = rest.word().filter(|_| is_word(word, "LIMIT"));
            let limit = limit.ok_or(SYNTAX)?;
            inputs.limit = integer_from(0, limit, "ERR LIMIT can't be negative")?;
        }
        inputs.inputs.sort_by_key(AlgebraInput::len);
        Ok(inputs)
    }

    fn find<'w>(
        keyspace: &Keyspace<'_>,
        arguments: &'w [Bytes],
        at: usize,
    ) -> Result<(Self, ArgumentReader<'w>)> {
        let n_keys = integer(&arguments[at])?;
        if n_keys < 1 {
            let name = String::from_utf8_lossy(&arguments[0]).to_lowercase();
            return Err(CommandError::because(format!(
                "ERR at least 1 input key is needed for '{name}' command"
            )));
        }
        let n_keys = usize::try_from(n_keys).map_err(|_| SYNTAX)?;
        let split = arguments[at + 1..].split_at_checked(n_keys);
        let (keys, rest) = split.ok_or(SYNTAX)?;
        let inputs = keys.iter().map(|key| AlgebraInput::find(keyspace, key));
        let inputs = Self {
            inputs: inputs.collect::<Result<_>>()?,
            aggregate: Aggregate::Sum,
            with_scores: false,
            limit: 0,
        };
        Ok((inputs, ArgumentReader::new(rest)))
    }

    /// `weight [weight …]`, one for each set.
    fn weigh(&mut self, rest: &mut ArgumentReader<'_>) -> Result<()> {
        if rest.all().len() < self.inputs.len() {
            return Err(SYNTAX);
        }
        for input in &mut self.inputs {
            let weight = parse_double(rest.word().ok_or(SYNTAX)?);
            input.weight =
                weight.ok_or(CommandError::refused("ERR weight value is not a float"))?;
        }
        Ok(())
    }
}
