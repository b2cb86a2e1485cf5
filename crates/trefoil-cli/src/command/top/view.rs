//! How `trefoil top` looks. It has room on a terminal of 80 columns and 24 lines.

use std::collections::VecDeque;

use ratatui_core::layout::{Constraint, Layout, Rect};
use ratatui_core::style::Stylize as _;
use ratatui_core::terminal::Frame;
use ratatui_core::text::{Line, Span, Text};

use super::model::{LiveModel, MethodLine, MethodOrder};
use crate::output::{duration, short, size, visible};

/// How many lines a curve has below its name.
const CURVE_LINES: u64 = 3;

/// What fills an eighth of a character, two eighths, and so on.
const EIGHTHS: [char; 9] = [' ', '▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];

/// Draws everything.
pub(super) fn draw(frame: &mut Frame<'_>, model: &LiveModel) {
    let [head, numbers, curves, _, methods, foot] = Layout::vertical([
        Constraint::Length(2),
        Constraint::Length(7),
        Constraint::Length(4),
        Constraint::Length(1),
        Constraint::Fill(1),
        Constraint::Length(1),
    ])
    .areas(frame.area());
    frame.render_widget(head_line(model), head);
    draw_numbers(frame, numbers, model);
    let halves = Layout::horizontal([Constraint::Fill(1); 2]).spacing(2);
    let [left, right] = halves.areas(curves);
    frame.render_widget(curve("commits/s", &model.commits, left.width), left);
    frame.render_widget(curve("reads/s", &model.reads, right.width), right);
    draw_methods(frame, methods, model);
    frame.render_widget(foot_line(model), foot);
}

fn head_line(model: &LiveModel) -> Line<'_> {
    let server = format!("  {}  {}", visible(&model.url), visible(&model.version));
    let mut parts = vec![Span::from("trefoil top").bold(), Span::from(server)];
    if let Some(seconds) = model.uptime {
        parts.push(Span::from(format!("  up {}", duration(seconds))));
    }
    if model.is_paused {
        parts.push(Span::from("  PAUSED").yellow().bold());
    }
    if let Some(trouble) = &model.trouble {
        parts.push(Span::from(format!("  {}", visible(trouble))).red());
    }
    Line::from(parts)
}

/// A value, or a dash for what did not happen or is not known.
fn known(value: Option<f64>, show: impl Fn(f64) -> String) -> String {
    value.map_or_else(|| "-".to_owned(), show)
}

fn draw_numbers(frame: &mut Frame<'_>, area: Rect, model: &LiveModel) {
    let [left, right] =
        Layout::horizontal([Constraint::Length(48), Constraint::Fill(1)]).areas(area);
    let three = |time: &dyn Fn(f64) -> Option<f64>| {
        let [median, most, nearly_all] =
            [0.5, 0.95, 0.99].map(|share| known(time(share), duration));
        format!("p50 {median}  p95 {most}  p99 {nearly_all}")
    };
    let writes = format!(
        "{} commits  {} events",
        short(model.commit_rate()),
        short(model.rate("trefoil_events_written_total"))
    );
    let reads = format!(
        "{} reads  {} requests",
        short(model.read_rate()),
        short(model.request_rate())
    );
    let sync = |share| model.time("trefoil_group_sync_seconds", share, |_| true);
    let group = known(model.mean("trefoil_group_commits"), short);
    let facts = [
        ("writes/s", writes),
        ("reads/s", reads),
        ("write time", three(&|share| model.write_time(share))),
        ("read time", three(&|share| model.read_time(share))),
        ("sync time", three(&sync)),
        ("group", format!("{group} commits per sync")),
    ];
    frame.render_widget(fact_lines(&facts), left);
    let bytes = |name: &str| known(model.gauge(name).filter(|bytes| *bytes > 0.0), size);
    let number = |name: &str| known(model.gauge(name), short);
    let facts = [
        ("memory", bytes("trefoil_memory_bytes")),
        ("for clients", bytes("trefoil_client_memory_bytes")),
        ("disk free", bytes("trefoil_disk_free_bytes")),
        ("connections", short(model.connections())),
        ("subscriptions", number("trefoil_subscribers")),
        ("namespaces", namespaces(model)),
    ];
    frame.render_widget(fact_lines(&facts), right);
}

fn namespaces(model: &LiveModel) -> String {
    let all = known(model.gauge("trefoil_namespaces"), short);
    match model.gauge("trefoil_namespaces_refusing_writes") {
        Some(refusing) if refusing > 0.0 => format!("{all}, {} refuse writes", short(refusing)),
        _ => all,
    }
}

fn fact_lines(facts: &[(&'static str, String)]) -> Text<'static> {
    let lines = facts.iter().map(|(name, fact)| {
        let name = Span::from(format!("{name:<14}")).dim();
        Line::from(vec![name, Span::from(fact.clone())])
    });
    Text::from_iter(lines)
}

/// A name, and columns as high as their values. The newest is at the right end.
fn curve(name: &str, points: &VecDeque<u64>, width: u16) -> Text<'static> {
    let skipped = points.len().saturating_sub(usize::from(width));
    let shown = || points.iter().skip(skipped).copied();
    let highest = shown().max().unwrap_or(0);
    let title = format!("{name}, up to {}", short(highest as f64));
    let mut lines = vec![Line::from(title).dim()];
    for line in (0..CURVE_LINES).rev() {
        let character = |value: u64| {
            let height = value * 8 * CURVE_LINES;
            let eighths = height.checked_div(highest).unwrap_or(0);
            let eighths = eighths.saturating_sub(8 * line).min(8);
            EIGHTHS[usize::try_from(eighths).unwrap_or(0)]
        };
        lines.push(Line::from(shown().map(character).collect::<String>()).green());
    }
    Text::from(lines)
}

fn draw_methods(frame: &mut Frame<'_>, area: Rect, model: &LiveModel) {
    let head = |name: &str, order: Option<MethodOrder>| {
        let mark = match (order == Some(model.order), model.is_reversed) {
            (true, false) => "▼",
            (true, true) => "▲",
            (false, _) => "",
        };
        format!("{name}{mark}")
    };
    let names = [
        head("PROTOCOL", None),
        head("METHOD", Some(MethodOrder::Name)),
        head("CALLS/S", Some(MethodOrder::Calls)),
        head("ERRORS/S", Some(MethodOrder::Errors)),
        head("P50", None),
        head("P99", Some(MethodOrder::Time)),
    ];
    let mut lines = vec![Line::from(columns(&names, area.width)).bold()];
    lines.extend(model.methods().iter().map(|line| {
        let row = Line::from(columns(&cells(line), area.width));
        match line.errors {
            Some(errors) if errors > 0.0 => row.red(),
            _ => row,
        }
    }));
    frame.render_widget(Text::from(lines), area);
}

fn cells(line: &MethodLine) -> [String; 6] {
    [
        line.protocol.to_owned(),
        visible(&line.method).into_owned(),
        short(line.calls),
        known(line.errors, short),
        known(line.median, duration),
        known(line.slowest, duration),
    ]
}

/// Cells below each other; the method has the room that is left.
fn columns(cells: &[String; 6], width: u16) -> String {
    let method = usize::from(width)
        .saturating_sub(10 + 10 + 11 + 9 + 7)
        .max(10);
    let [protocol, name, calls, errors, median, slowest] = cells;
    let name: String = name.chars().take(method - 1).collect();
    format!("{protocol:<10}{name:<method$}{calls:<10}{errors:<11}{median:<9}{slowest:<7}")
}

fn foot_line(model: &LiveModel) -> Line<'static> {
    let order = match model.order {
        MethodOrder::Calls => "calls",
        MethodOrder::Errors => "errors",
        MethodOrder::Time => "time",
        MethodOrder::Name => "name",
    };
    let every = model.every.as_secs();
    let keys = format!("q quit  p pause  s sort: {order}  r reverse  + - every {every}s");
    Line::from(keys).dim()
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use ratatui_core::backend::TestBackend;
    use ratatui_core::terminal::Terminal;

    use super::*;
    use crate::client::MetricsReading;

    fn shown(model: &LiveModel, width: u16, height: u16) -> String {
        let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
        terminal.draw(|frame| draw(frame, model)).unwrap();
        terminal.backend().to_string()
    }

    #[test]
    fn everything_fits_on_a_small_terminal_and_nothing_breaks_on_a_tiny_one() {
        let reading = |seconds: u64, count: u64| {
            let text = format!(
                "trefoil_http_requests_total{{endpoint=\"/rpc\",method=\"commit\",status=\"200\"}} {count}\n\
                 trefoil_memory_bytes 1048576\n"
            );
            MetricsReading::parse(&text, Duration::from_secs(seconds))
        };
        let every = Duration::from_secs(1);
        let mut model = LiveModel::new("http://127.0.0.1:8080", "0.1.0", every, reading(0, 0));
        model.note(Ok(reading(1, 1500)));
        let text = shown(&model, 80, 24);
        for expected in [
            "writes/s",
            "sync time",
            "1.00 MiB",
            "namespaces",
            "HTTP",
            "commit",
            "1.5k",
            "q quit",
            "CALLS/S▼",
            "P99",
        ] {
            assert!(text.contains(expected), "{expected}:\n{text}");
        }
        // What the server does not have is a dash, and an empty server is drawn too.
        assert!(text.contains("disk free     -"), "{text}");
        let empty = MetricsReading::parse("", Duration::ZERO);
        let empty = LiveModel::new("u", "v", every, empty);
        for (width, height) in [(80, 24), (20, 5), (1, 1)] {
            shown(&empty, width, height);
        }
    }

    #[test]
    fn a_curve_is_as_high_as_its_values() {
        let points = VecDeque::from([0, 1, 6, 12, 24]);
        let text = curve("x", &points, 4);
        let lines: Vec<String> = text.lines.iter().map(ToString::to_string).collect();
        assert_eq!(lines, ["x, up to 24", "   █", "  ▄█", "▁▆██"]);
    }
}
