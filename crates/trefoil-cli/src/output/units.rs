//! Numbers as people read them.

use indicatif::{DecimalBytes, HumanBytes, HumanCount};

/// Bytes, in steps of 1024.
pub(crate) fn size(bytes: f64) -> String {
    HumanBytes(whole(bytes)).to_string()
}

/// A count with commas.
pub(crate) fn count(number: u64) -> String {
    HumanCount(number).to_string()
}

/// A number in a few characters: 950, 1.2k, 35M.
pub(crate) fn short(number: f64) -> String {
    if number < 10.0 && number.fract() > 0.005 {
        return format!("{number:.1}");
    }
    if number < 1000.0 {
        return format!("{number:.0}");
    }
    let text = DecimalBytes(whole(number)).to_string();
    let (digits, unit) = text.split_once(' ').unwrap_or((&text, ""));
    let digits = match digits.parse::<f64>() {
        Ok(digits) if digits < 10.0 => format!("{digits:.1}"),
        Ok(digits) => format!("{digits:.0}"),
        Err(_) => digits.to_owned(),
    };
    format!("{digits}{}", unit.trim_end_matches('B'))
}

/// A time that something takes, from microseconds to days.
pub(crate) fn duration(seconds: f64) -> String {
    match seconds {
        s if s < 0.001 => format!("{:.0}us", s * 1e6),
        s if s < 0.01 => format!("{:.1}ms", s * 1e3),
        s if s < 1.0 => format!("{:.0}ms", s * 1e3),
        s if s < 60.0 => format!("{s:.1}s"),
        s if s < 3600.0 => format!("{:.0}m", s / 60.0),
        s if s < 172_800.0 => format!("{:.0}h", s / 3600.0),
        s => format!("{:.0}d", s / 86_400.0),
    }
}

/// What is not negative and fits, without its fraction.
fn whole(number: f64) -> u64 {
    // A cast of this kind stops at the ends of its range.
    number as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_short() {
        let shorts = [0.0, 0.5, 12.34, 999.0, 1234.0, 35_000_000.0].map(short);
        assert_eq!(shorts, ["0", "0.5", "12", "999", "1.2k", "35M"]);
        let times = [0.000_012, 0.0034, 0.25, 2.0, 600.0, 7200.0, 1e6].map(duration);
        assert_eq!(
            times,
            ["12us", "3.4ms", "250ms", "2.0s", "10m", "2h", "12d"]
        );
        assert_eq!(size(1_572_864.0), "1.50 MiB");
        assert_eq!((count(1_234_567).as_str(), whole(-1.0)), ("1,234,567", 0));
    }
}
