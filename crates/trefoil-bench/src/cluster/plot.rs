//! A picture of writes per second, as SVG that looks right on light and dark pages.

use std::fmt::Write as _;

const WIDTH: f64 = 760.0;
const HEIGHT: f64 = 300.0;
const LEFT: f64 = 56.0;
const RIGHT: f64 = 16.0;
const TOP: f64 = 34.0;
const BOTTOM: f64 = 44.0;

/// What is shown.
pub(super) struct Plot<'a> {
    pub(super) title: &'a str,
    /// Of each second.
    pub(super) written: &'a [u32],
    pub(super) failed: &'a [u32],
    /// When something happened, in seconds, and what.
    pub(super) marks: &'a [(f64, &'a str)],
}

impl Plot<'_> {
    /// Returns the text of the file.
    pub(super) fn svg(&self) -> String {
        let mut svg = format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" \
             font-family=\"sans-serif\" font-size=\"12\">\n\
             <rect width=\"{WIDTH}\" height=\"{HEIGHT}\" fill=\"#fff\"/>\n\
             <text x=\"{LEFT}\" y=\"20\" font-size=\"14\" fill=\"#222\">{}</text>\n",
            self.title
        );
        self.axes(&mut svg);
        self.line(&mut svg, self.written, "#1f77b4", "acknowledged");
        self.line(&mut svg, self.failed, "#d62728", "failed");
        for (at, text) in self.marks {
            let x = self.x(*at);
            let _ = writeln!(
                svg,
                "<line x1=\"{x:.1}\" y1=\"{TOP}\" x2=\"{x:.1}\" y2=\"{:.1}\" stroke=\"#555\" \
                 stroke-dasharray=\"4 3\"/>\n<text x=\"{:.1}\" y=\"{:.1}\" fill=\"#555\">{text}</text>",
                HEIGHT - BOTTOM,
                x + 4.0,
                TOP + 12.0
            );
        }
        svg.push_str("</svg>\n");
        svg
    }

    fn axes(&self, svg: &mut String) {
        let top = self.top();
        for step in 0..=4 {
            let value = top * f64::from(step) / 4.0;
            let y = self.y(value);
            let _ = writeln!(
                svg,
                "<line x1=\"{LEFT}\" y1=\"{y:.1}\" x2=\"{:.1}\" y2=\"{y:.1}\" stroke=\"#ddd\"/>\n\
                 <text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"end\" fill=\"#555\">{value:.0}</text>",
                WIDTH - RIGHT,
                LEFT - 6.0,
                y + 4.0
            );
        }
        for second in (0..=self.written.len()).step_by(10) {
            let _ = writeln!(
                svg,
                "<text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"middle\" fill=\"#555\">{second}</text>",
                self.x(second as f64),
                HEIGHT - BOTTOM + 16.0
            );
        }
        let _ = writeln!(
            svg,
            "<text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"middle\" fill=\"#555\">seconds; requests per \
             second, <tspan fill=\"#1f77b4\">acknowledged</tspan> and <tspan \
             fill=\"#d62728\">failed</tspan></text>",
            WIDTH / 2.0,
            HEIGHT - 8.0
        );
    }

    fn line(&self, svg: &mut String, counts: &[u32], colour: &str, name: &str) {
        let point = |(second, count): (usize, &u32)| {
            let (x, y) = (self.x(second as f64 + 0.5), self.y(f64::from(*count)));
            format!("{x:.1},{y:.1}")
        };
        let points: Vec<String> = counts.iter().enumerate().map(point).collect();
        let _ = writeln!(
            svg,
            "<polyline points=\"{}\" fill=\"none\" stroke=\"{colour}\" \
             stroke-width=\"2\"><title>{name}</title></polyline>",
            points.join(" ")
        );
    }

    /// The end of the scale: a round number that is not exceeded.
    fn top(&self) -> f64 {
        let most = self.written.iter().chain(self.failed).max().copied();
        let most = f64::from(most.unwrap_or(0).max(4));
        let unit = 10_f64.powf(most.log10().floor());
        let factor = [1.0, 2.0, 4.0, 5.0, 10.0].into_iter();
        let mut tops = factor.map(|factor| factor * unit);
        tops.find(|top| *top >= most).unwrap_or(most)
    }

    fn x(&self, second: f64) -> f64 {
        let seconds = self.written.len().max(1) as f64;
        LEFT + (WIDTH - LEFT - RIGHT) * second / seconds
    }

    fn y(&self, value: f64) -> f64 {
        HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * value / self.top()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_second_is_a_point_within_the_picture() {
        let plot = Plot {
            title: "title",
            written: &[10, 380, 0],
            failed: &[0, 0, 7],
            marks: &[(1.0, "killed")],
        };
        let svg = plot.svg();
        assert!(
            svg.starts_with("<svg ") && svg.ends_with("</svg>\n"),
            "{svg}"
        );
        assert!(svg.contains(">400</text>"), "{svg}");
        let lines: Vec<&str> = svg
            .lines()
            .filter(|line| line.contains("<polyline"))
            .collect();
        assert_eq!(lines.len(), 2);
        let points = lines[0].split('"').nth(1).unwrap();
        let points: Vec<(f64, f64)> = points
            .split(' ')
            .map(|point| point.split_once(',').unwrap())
            .map(|(x, y)| (x.parse().unwrap(), y.parse().unwrap()))
            .collect();
        assert_eq!(points.len(), 3);
        let within = |(x, y): &(f64, f64)| (0.0..WIDTH).contains(x) && (0.0..HEIGHT).contains(y);
        assert!(points.iter().all(within), "{points:?}");
        assert!(points[1].1 < points[0].1 && points[0].1 < points[2].1);
    }
}
