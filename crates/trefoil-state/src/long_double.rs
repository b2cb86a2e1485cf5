//! Floating-point numbers with a mantissa of 64 bits, which Redis adds with.
//!
//! They are what C calls `long double` where Redis runs most. Sums of them are strings that clients
//! see and compare, so they are reckoned as exactly here.

use std::fmt;

use num_bigint::{BigInt, BigUint, Sign};

/// A text of this many bytes or more is no number.
pub(crate) const FLOAT_BYTES_MAX: usize = 5 * 1024;

/// Bits of a mantissa.
const MANTISSA_BITS: u64 = 64;

/// The power of two that no number reaches.
const TOP: i64 = 16_384;

/// The power of two of the smallest number.
const BOTTOM: i64 = -16_445;

/// No number has a decimal exponent this far from zero.
const DECIMAL_EXPONENT_MAX: i64 = 5_000;

/// Digits after the point, of which zeros at the end are left out.
const DECIMALS: u32 = 17;

/// A number: an integer times a power of two, or infinite.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum LongDouble {
    /// `mantissa` times two to the power of `exponent`.
    Finite { mantissa: BigInt, exponent: i64 },
    /// Beyond all numbers, in either direction.
    Infinite,
}

impl LongDouble {
    /// Reads a number the way C does: decimal or hexadecimal, with or without exponent, or
    /// infinite; but no space around it, nothing out of range, and never `nan`.
    pub(crate) fn parse(text: &[u8]) -> Option<Self> {
        if text.len() >= FLOAT_BYTES_MAX {
            return None;
        }
        let (sign, text) = match text {
            [b'-', text @ ..] => (Sign::Minus, text),
            [b'+', text @ ..] | text => (Sign::Plus, text),
        };
        if text.eq_ignore_ascii_case(b"inf") || text.eq_ignore_ascii_case(b"infinity") {
            return Some(Self::Infinite);
        }
        match text {
            [b'0', b'x' | b'X', digits @ ..] => {
                let written = WrittenNumber::parse(digits, 16, b'p')?;
                let exponent = written.scale * 4 + written.exponent;
                Self::round(sign, written.digits, exponent)
            }
            digits => Self::from_decimal(sign, WrittenNumber::parse(digits, 10, b'e')?),
        }
    }

    fn from_decimal(sign: Sign, written: WrittenNumber) -> Option<Self> {
        let WrittenNumber { digits, .. } = written;
        let scale = written.scale + written.exponent;
        // A digit takes between three and four bits.
        let n_digits = (digits.bits() / 3) as i64;
        if digits.bits() == 0 {
            return Self::round(sign, digits, 0);
        }
        if scale > DECIMAL_EXPONENT_MAX || scale + n_digits < -DECIMAL_EXPONENT_MAX {
            return None;
        }
        let power = BigUint::from(10_u8).pow(scale.unsigned_abs() as u32);
        if scale >= 0 {
            return Self::round(sign, digits * power, 0);
        }
        // Enough bits for a mantissa, and then some; what is left over is more than nothing.
        let shift = (power.bits() + MANTISSA_BITS + 2).saturating_sub(digits.bits());
        let dividend = digits << shift;
        let mut quotient = &dividend / &power;
        let is_exact = &quotient * &power == dividend;
        quotient.set_bit(0, quotient.bit(0) || !is_exact);
        Self::round(sign, quotient, -(shift as i64))
    }

    /// Returns the number nearest to this one, the even one of two; `None` if it is out of range.
    fn round(sign: Sign, mantissa: BigUint, exponent: i64) -> Option<Self> {
        let is_zero = mantissa.bits() == 0;
        let extra = mantissa.bits().saturating_sub(MANTISSA_BITS);
        let (mantissa, exponent) = (shift_right(mantissa, extra), exponent + extra as i64);
        let top = exponent + mantissa.bits() as i64;
        if !is_zero && !(BOTTOM..=TOP).contains(&top) {
            return None;
        }
        let mantissa = BigInt::from_biguint(sign, mantissa);
        Some(Self::Finite { mantissa, exponent })
    }

    /// Returns the number as one of 53 bits; `None` if it is out of their range.
    pub(crate) fn to_double(&self) -> Option<f64> {
        let Self::Finite { mantissa, exponent } = self else {
            return None;
        };
        let exponent = i32::try_from(*exponent).ok()?;
        let magnitude = u64::try_from(mantissa.magnitude()).ok()? as f64;
        // In two steps, because half of the exponent is always in range.
        let (half, rest) = (exponent / 2, exponent - exponent / 2);
        let value = magnitude * 2_f64.powi(half) * 2_f64.powi(rest);
        let is_in_range = value.is_finite() && (value == 0.0) == (magnitude == 0.0);
        let signed = if mantissa.sign() == Sign::Minus {
            -value
        } else {
            value
        };
        is_in_range.then_some(signed)
    }

    /// Returns the sum; `None` if it is infinite or no number.
    pub(crate) fn add(&self, other: &Self) -> Option<Self> {
        let (
            Self::Finite {
                mantissa: a,
                exponent: m,
            },
            Self::Finite {
                mantissa: b,
                exponent: n,
            },
        ) = (self, other)
        else {
            return None;
        };
        let exponent = *m.min(n);
        let sum = (a << (m - exponent)) + (b << (n - exponent));
        let (sign, sum) = sum.into_parts();
        Self::round(sign, sum, exponent)
    }
}

/// Divides by a power of two and rounds to the nearest integer, the even one of two.
fn shift_right(number: BigUint, bits: u64) -> BigUint {
    let Some(half) = bits.checked_sub(1) else {
        return number;
    };
    let is_more = number.trailing_zeros().is_some_and(|zeros| zeros < half);
    let rounds_up = number.bit(half) && (is_more || number.bit(bits));
    (number >> bits) + u8::from(rounds_up)
}

/// A number as it is written: `digits` times the base to the power of `scale`, and its exponent.
struct WrittenNumber {
    digits: BigUint,
    scale: i64,
    exponent: i64,
}

impl WrittenNumber {
    /// `digits[.digits][e[+|-]digits]`
    fn parse(text: &[u8], base: u32, exponent_mark: u8) -> Option<Self> {
        let is_mark = |byte: &u8| byte.eq_ignore_ascii_case(&exponent_mark);
        let (text, exponent) = match text.iter().position(is_mark) {
            Some(at) => (&text[..at], parse_exponent(&text[at + 1..])?),
            None => (text, 0),
        };
        let (whole, fraction) = match text.iter().position(|byte| *byte == b'.') {
            Some(at) => (&text[..at], &text[at + 1..]),
            None => (text, &[][..]),
        };
        let digits = [whole, fraction].concat();
        if !digits.iter().all(|digit| char::from(*digit).is_digit(base)) {
            return None;
        }
        Some(Self {
            digits: BigUint::parse_bytes(&digits, base)?,
            scale: -(fraction.len() as i64),
            exponent,
        })
    }
}

/// `[+|-]digits`; one that is too large for any number is as good as any other.
fn parse_exponent(text: &[u8]) -> Option<i64> {
    let (is_negative, digits) = match text {
        [b'-', digits @ ..] => (true, digits),
        [b'+', digits @ ..] | digits => (false, digits),
    };
    if digits.is_empty() || !digits.iter().all(u8::is_ascii_digit) {
        return None;
    }
    let value = digits.iter().fold(0_i64, |value, digit| {
        (value * 10 + i64::from(digit - b'0')).min(1_000_000)
    });
    Some(if is_negative { -value } else { value })
}

impl fmt::Display for LongDouble {
    /// Writes it without exponent, with as many of 17 decimals as are not zeros at the end.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self::Finite { mantissa, exponent } = self else {
            return f.write_str("inf");
        };
        let scaled = mantissa.magnitude() * BigUint::from(10_u8).pow(DECIMALS);
        let scaled = match u64::try_from(*exponent) {
            Ok(exponent) => scaled << exponent,
            Err(_) => shift_right(scaled, exponent.unsigned_abs()),
        };
        let is_negative = mantissa.sign() == Sign::Minus && scaled.bits() > 0;
        let digits = format!("{scaled:0>width$}", width = DECIMALS as usize + 1);
        let (whole, decimals) = digits.split_at(digits.len() - DECIMALS as usize);
        let decimals = decimals.trim_end_matches('0');
        let sign = if is_negative { "-" } else { "" };
        let point = if decimals.is_empty() { "" } else { "." };
        write!(f, "{sign}{whole}{point}{decimals}")
    }
}

#[cfg(test)]
mod tests {
    use super::LongDouble;

    fn sum(a: &str, b: &str) -> Option<String> {
        let [a, b] = [a, b].map(|text| LongDouble::parse(text.as_bytes()));
        Some(a?.add(&b?)?.to_string())
    }

    #[test]
    fn reckons_as_c_does() {
        for (a, b, expected) in [
            ("0", "0.1", "0.1"),
            ("3.14", "0.1", "3.24"),
            ("1e5", "0.1", "100000.10000000000000142"),
            ("1e17", "0.1", "100000000000000000.1015625"),
            ("5.0e3", "0.1", "5000.10000000000000009"),
            ("0", "-0", "0"),
            ("0", "-4e-18", "0"),
            ("0", "5e-18", "0"),
            ("0", "6e-18", "0.00000000000000001"),
            ("0", "0x10", "16"),
            ("0", "0x1p3", "8"),
            ("0", "0x.8", "0.5"),
            ("0", "0x1p-1", "0.5"),
            ("+.5", "5.", "5.5"),
            ("-1.5", "1.25", "-0.25"),
            ("0", "1e-4940", "0"),
            (
                "0",
                "123456789.123456789123456789",
                "123456789.12345678912242875",
            ),
            (
                "123456789.12345678912242875",
                "0.1",
                "123456789.22345678912097355",
            ),
        ] {
            assert_eq!(sum(a, b).as_deref(), Some(expected), "{a} + {b}");
        }
    }

    #[test]
    fn refuses_what_is_no_number() {
        for text in [
            "", " 1", "1 ", "nan", "1e", "e1", ".", "-", "--1", "0x", "1.2.3", "1_000", "1e5000",
            "1e-5000", "x", "1e+", "+-1", "0x1p",
        ] {
            assert_eq!(LongDouble::parse(text.as_bytes()), None, "{text:?}");
        }
        assert_eq!(sum("inf", "1"), None);
        assert_eq!(sum("1e4932", "1e4932"), None);
    }
}
