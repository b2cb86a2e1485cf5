//! How often requests failed, by the code of the error.

use hashbrown::HashMap;
use parking_lot::Mutex;

use super::exposition::{Exposition, MetricKind};

/// What stands for all codes beyond the first few, and for what is no code.
const OTHER: &str = "other";

/// An application may have codes of its own. No more than this many are told apart.
const CODES_MAX: usize = 64;
const CODE_BYTES_MAX: usize = 32;

/// Errors by code.
#[derive(Debug, Default)]
pub(crate) struct ErrorTable(Mutex<HashMap<String, u64>>);

impl ErrorTable {
    /// Counts an error.
    pub(crate) fn count(&self, code: &str) {
        let is_code = |byte: u8| byte.is_ascii_uppercase() || byte.is_ascii_digit() || byte == b'_';
        let is_code = code.len() <= CODE_BYTES_MAX && code.bytes().all(is_code);
        let mut counts = self.0.lock();
        if let Some(count) = counts.get_mut(code) {
            *count += 1;
            return;
        }
        let code = match is_code && counts.len() < CODES_MAX {
            true => code,
            false => OTHER,
        };
        *counts.entry_ref(code).or_default() += 1;
    }

    /// Returns how many errors there were.
    pub(crate) fn total(&self) -> u64 {
        self.0.lock().values().sum()
    }

    /// Returns how many there were of each code, in order.
    pub(crate) fn by_code(&self) -> Vec<(String, u64)> {
        let counts = self.0.lock();
        let mut counts: Vec<_> = { counts.iter() }
            .map(|(code, count)| (code.clone(), *count))
            .collect();
        counts.sort_unstable();
        counts
    }

    pub(crate) fn put(&self, out: &mut Exposition, name: &'static str, help: &str) {
        let mut errors = out.family(MetricKind::Counter, name, help);
        for (code, count) in self.by_code() {
            errors.put(&[("code", &code)], count);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_are_never_many_codes() {
        let errors = ErrorTable::default();
        for number in 0..1000 {
            errors.count(&format!("CODE{number}"));
        }
        errors.count("not a code");
        errors.count("CODE1");
        let counts = errors.by_code();
        assert_eq!(counts.len(), CODES_MAX + 1);
        assert_eq!(errors.total(), 1002);
        assert!(counts.contains(&("CODE1".to_owned(), 2)));
        let n_others = 1000 - CODES_MAX as u64 + 1;
        assert!(counts.contains(&(OTHER.to_owned(), n_others)));
    }
}
