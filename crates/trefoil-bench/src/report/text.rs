//! Numbers as people read them.

use std::time::Duration;

pub(super) fn figure_text(figure: f64) -> String {
    match figure {
        value if value >= 1000.0 => thousands(value as u64),
        value if value >= 100.0 => format!("{value:.0}"),
        value if value >= 1.0 => format!("{value:.1}"),
        value => format!("{value:.3}"),
    }
}

fn thousands(value: u64) -> String {
    let digits = value.to_string();
    let mut out = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

pub(super) fn duration_text(duration: Duration) -> String {
    let micros = duration.as_secs_f64() * 1e6;
    match micros {
        value if value < 10.0 => format!("{value:.1} us"),
        value if value < 1000.0 => format!("{value:.0} us"),
        value if value < 10_000.0 => format!("{:.2} ms", value / 1e3),
        value => format!("{:.0} ms", value / 1e3),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_short_and_readable() {
        assert_eq!(figure_text(1_234_567.8), "1,234,567");
        assert_eq!(figure_text(12.34), "12.3");
        assert_eq!(duration_text(Duration::from_micros(1500)), "1.50 ms");
        assert_eq!(duration_text(Duration::from_nanos(2500)), "2.5 us");
    }
}
