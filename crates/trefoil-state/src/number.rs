//! Numbers as Redis reads and writes them.

use bytes::Bytes;

use crate::long_double::LongDouble;

/// Reads an integer the way Redis does: no sign but `-`, no leading zeros, no space.
pub fn parse_integer(text: &[u8]) -> Option<i64> {
    let (is_negative, digits) = match text {
        [b'-', digits @ ..] => (true, digits),
        digits => (false, digits),
    };
    let is_plain = match digits {
        [] => false,
        [b'0'] => !is_negative,
        [first, ..] => (b'1'..=b'9').contains(first),
    };
    if !is_plain || digits.len() > 19 {
        return None;
    }
    let mut value: i64 = 0;
    for digit in digits {
        let digit = i64::from(digit.checked_sub(b'0').filter(|digit| *digit < 10)?);
        // Counted downwards, because the lowest integer has no counterpart.
        value = value.checked_mul(10)?.checked_sub(digit)?;
    }
    match is_negative {
        true => Some(value),
        false => value.checked_neg(),
    }
}

/// Reads a floating-point number the way C does: decimal or hexadecimal, with or without exponent,
/// or `inf`; but no space around it, nothing out of range, and never `nan`.
pub fn parse_double(text: &[u8]) -> Option<f64> {
    let is_hexadecimal = text.iter().any(|byte| byte.eq_ignore_ascii_case(&b'x'));
    if is_hexadecimal {
        return LongDouble::parse(text)?.to_double();
    }
    let text = std::str::from_utf8(text).ok()?;
    let value: f64 = text.parse().ok()?;
    let is_out_of_range = match value {
        value if value.is_infinite() => text.contains(|c: char| c.is_ascii_digit()),
        0.0 => {
            let digits = text.split(['e', 'E']).next().unwrap_or_default();
            digits.contains(|c: char| c.is_ascii_digit() && c != '0')
        }
        _ => value.is_nan(),
    };
    (!is_out_of_range).then_some(value)
}

/// Writes a floating-point number the way Redis does, which is C's `%.17g`: seventeen digits
/// without the zeros at their end, with an exponent if it is large.
pub fn format_double(value: f64) -> String {
    if value.is_infinite() {
        return if value > 0.0 { "inf" } else { "-inf" }.to_owned();
    }
    if value == value.trunc() && value.abs() < 1e17 {
        // All digits, not only those that tell it from its neighbours. Negative zero keeps its sign.
        return format!("{value:.0}");
    }
    let scientific = format!("{value:.16e}");
    let (digits, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    let exponent: i32 = exponent.parse().unwrap_or_default();
    if (-4..17).contains(&exponent) {
        let n_decimals = (16 - exponent) as usize;
        return trim(&format!("{value:.n_decimals$}")).to_owned();
    }
    let sign = if exponent < 0 { '-' } else { '+' };
    format!("{}e{sign}{:02}", trim(digits), exponent.abs())
}

/// Returns a number with a point, without the zeros at its end.
fn trim(digits: &str) -> &str {
    match digits.contains('.') {
        true => digits.trim_end_matches('0').trim_end_matches('.'),
        false => digits,
    }
}

/// Returns an integer as bytes.
pub(crate) fn integer_bytes(value: i64) -> Bytes {
    Bytes::from(value.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn doubles_are_written_as_redis_does() {
        for (value, expected) in [
            (0.1, "0.10000000000000001"),
            (2.7, "2.7000000000000002"),
            (0.5, "0.5"),
            (-2.25, "-2.25"),
            (1e16, "10000000000000000"),
            (-0.0, "-0"),
            (36_028_797_018_963_968.0, "36028797018963968"),
            (-99_999_999_999_999_984.0, "-99999999999999984"),
            (1e17, "1e+17"),
            (123_456_789_012_345_678.0, "1.2345678901234568e+17"),
            (1e21, "1e+21"),
            (1e-4, "0.0001"),
            (1e-5, "1.0000000000000001e-05"),
            (0.000_012_34, "1.234e-05"),
            (5e-324, "4.9406564584124654e-324"),
            (f64::MAX, "1.7976931348623157e+308"),
            (0.1 + 0.2, "0.30000000000000004"),
            (f64::INFINITY, "inf"),
            (f64::NEG_INFINITY, "-inf"),
        ] {
            assert_eq!(format_double(value), expected);
            assert_eq!(parse_double(expected.as_bytes()), Some(value));
        }
    }

    #[test]
    fn doubles_are_read_as_redis_does() {
        for (text, expected) in [
            ("+5", 5.0),
            (".5", 0.5),
            ("5.", 5.0),
            ("1E5", 1e5),
            ("-Infinity", f64::NEG_INFINITY),
            ("+inf", f64::INFINITY),
            ("0x10", 16.0),
            ("-0x1.8p1", -3.0),
            ("0e-999", 0.0),
            ("0x1p-1074", 5e-324),
        ] {
            assert_eq!(parse_double(text.as_bytes()), Some(expected), "{text}");
        }
        let bad = [
            "",
            " 1",
            "1 ",
            "nan",
            "-nan",
            "1e",
            "x",
            "1e400",
            "-1e400",
            "1e-400",
            "0x",
            "0x1p1024",
            "0x1p-1080",
        ];
        for text in bad {
            assert_eq!(parse_double(text.as_bytes()), None, "{text}");
        }
    }

    #[test]
    fn integers_are_read_as_redis_does() {
        assert_eq!(parse_integer(b"-9223372036854775808"), Some(i64::MIN));
        assert_eq!(parse_integer(b"9223372036854775807"), Some(i64::MAX));
        for text in [
            "",
            "-",
            "-0",
            "+1",
            "01",
            " 1",
            "1 ",
            "9223372036854775808",
            "1.0",
            "x",
        ] {
            assert_eq!(parse_integer(text.as_bytes()), None, "{text}");
        }
    }
}
