//! `cargo xtask bench cluster`: several nodes on one bucket, one of which is killed or stopped under
//! load; what they reach together; and what they ask of the store.

mod bucket;
mod cost;
mod counting;
mod load;
mod nodes;
mod plot;
mod timeline;

use std::fmt::Write as _;
use std::path::PathBuf;
use std::sync::atomic::AtomicBool;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use clap::Args;

use crate::machine::Machine;
use crate::options::beside;
use load::{Became, Load, Sample};
use nodes::BenchCluster;
use plot::Plot;

/// Measures nodes that share a bucket: one of three killed under load, one stopped, 1, 2 and 3 of them
/// side by side, and what is asked of the store.
///
/// Prints Markdown and writes a plot. Takes about ten minutes, with --quick two. AWS_ENDPOINT_URL and
/// credentials come from the environment; what is written below the bucket's URL stays there.
#[derive(Debug, Clone, Args)]
pub(crate) struct Arguments {
    /// The URL of a bucket or of a part of one, like s3://bucket/bench.
    #[arg(long, value_name = "URL")]
    bucket: String,

    /// The program `trefoil` to measure [default: the one beside this program].
    #[arg(long, value_name = "PROGRAM")]
    trefoil: Option<PathBuf>,

    /// Where the nodes have their caches; directories in it are made and removed.
    #[arg(long, value_name = "DIRECTORY", default_value = ".")]
    dir: PathBuf,

    /// How many namespaces there are when a node is killed or stopped.
    #[arg(long, value_name = "COUNT", default_value_t = 200)]
    namespaces: usize,

    /// From one write of a namespace to the next, when a node is killed or stopped.
    #[arg(long, value_name = "MILLISECONDS", default_value_t = 500)]
    pace_ms: u64,

    /// How many namespaces are written to as fast as it goes, by 1, 2 and 3 nodes.
    #[arg(long, value_name = "COUNT", default_value_t = 64)]
    busy_namespaces: usize,

    /// Only these parts.
    #[arg(long, value_name = "PARTS", value_enum, value_delimiter = ',', default_values_t = Part::ALL)]
    parts: Vec<Part>,

    /// Where the plot of the kill is written.
    #[arg(long, value_name = "FILE", default_value = "cluster-kill.svg")]
    plot: PathBuf,

    /// A look instead of a measurement: a quarter of the time.
    #[arg(long)]
    quick: bool,
}

/// A part of the measurement.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Part {
    /// One of three nodes is killed under load.
    Kill,
    /// One of three nodes is stopped under load.
    Stop,
    /// One, two and three nodes side by side.
    Nodes,
    /// Requests, bytes and memory.
    Cost,
}

impl Part {
    const ALL: [Self; 4] = [Self::Kill, Self::Stop, Self::Nodes, Self::Cost];
}

impl std::fmt::Display for Part {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let name = match self {
            Self::Kill => "kill",
            Self::Stop => "stop",
            Self::Nodes => "nodes",
            Self::Cost => "cost",
        };
        formatter.write_str(name)
    }
}

/// What is measured, for how long.
struct Plan {
    bucket: String,
    program: PathBuf,
    directory: PathBuf,
    namespaces: usize,
    busy_namespaces: usize,
    pace: Duration,
    /// How long a steady load is measured.
    time: Duration,
    /// How long after a fault.
    after: Duration,
    idle: Duration,
}

/// After this time every node knows every namespace.
const KNOWN: Duration = Duration::from_secs(3);
const NODES: usize = 3;
/// The largest thing that is not a mistake.
const NAMESPACES_MAX: usize = 2_000;

/// Runs the measurement and prints it.
pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    let plan = plan(arguments)?;
    let machine = Machine::this();
    println!("{}\n", machine.text());
    for part in &arguments.parts {
        let text = match part {
            Part::Kill => kill(&plan, &arguments.plot),
            Part::Stop => stop(&plan),
            Part::Nodes => side_by_side(&plan),
            Part::Cost => cost::measure(&plan),
        };
        println!(
            "{}",
            text.with_context(|| format!("{part} cannot be measured"))?
        );
    }
    Ok(())
}

fn plan(arguments: &Arguments) -> Result<Plan> {
    let counts = [arguments.namespaces, arguments.busy_namespaces];
    let is_possible = |count: &usize| (1..=NAMESPACES_MAX).contains(count);
    ensure!(
        counts.iter().all(is_possible),
        "the number of namespaces must be 1 to {NAMESPACES_MAX}"
    );
    let program = match &arguments.trefoil {
        Some(program) => program.clone(),
        None => beside("trefoil")?,
    };
    ensure!(program.is_file(), "{} is not there", program.display());
    let scale = if arguments.quick { 0.25 } else { 1.0 };
    let seconds = |seconds: f64| Duration::from_secs_f64(seconds * scale);
    Ok(Plan {
        bucket: arguments.bucket.clone(),
        program,
        directory: arguments.dir.clone(),
        namespaces: arguments.namespaces,
        busy_namespaces: arguments.busy_namespaces,
        pace: Duration::from_millis(arguments.pace_ms),
        time: seconds(20.0),
        after: seconds(40.0).max(Duration::from_secs(20)),
        idle: seconds(60.0),
    })
}

/// A load on three nodes, to the first of which something is done in the middle.
struct Struck {
    samples: Vec<Sample>,
    fault: Duration,
    seconds: usize,
}

fn strike(plan: &Plan, strike: impl FnOnce(&mut BenchCluster) -> Result<()>) -> Result<Struck> {
    let mut cluster = BenchCluster::start(plan, NODES)?;
    let tokens = cluster.create_namespaces(plan.namespaces)?;
    thread::sleep(KNOWN);
    // Every namespace is opened once, so that what is measured does not begin with that.
    let addresses = cluster.addresses();
    let write =
        |time: Duration, pace: Duration, meanwhile: &mut dyn FnMut(Instant) -> Result<()>| {
            let load = Load {
                nodes: &addresses,
                tokens: &tokens,
                pace,
                is_over: &AtomicBool::new(false),
            };
            load.run(|began| {
                thread::sleep(time);
                meanwhile(began)
            })
        };
    write(plan.time, plan.pace, &mut |_| Ok(()))?;
    let mut strike = Some(strike);
    let mut fault = Duration::ZERO;
    let samples = write(plan.time, plan.pace, &mut |began| {
        fault = began.elapsed();
        if let Some(strike) = strike.take() {
            strike(&mut cluster)?;
        }
        thread::sleep(plan.after);
        Ok(())
    })?;
    Ok(Struck {
        samples,
        fault,
        seconds: (plan.time + plan.after).as_secs() as usize,
    })
}

fn kill(plan: &Plan, plot: &std::path::Path) -> Result<String> {
    let struck = strike(plan, |cluster| cluster.nodes[0].kill())?;
    let (written, failed) = timeline::per_second(&struck.samples, struck.seconds);
    let (hit, lost) = timeline::recoveries(&struck.samples, struck.fault);
    let at = struck.fault.as_secs() as usize;
    let picture = Plot {
        title: &format!(
            "{} namespaces on 3 nodes, one of which is killed",
            plan.namespaces
        ),
        written: &written,
        failed: &failed,
        marks: &[(struck.fault.as_secs_f64(), "kill -9")],
    };
    std::fs::write(plot, picture.svg())
        .with_context(|| format!("cannot write {}", plot.display()))?;
    let seconds = |fraction| timeline::share(&hit, fraction).as_secs_f64();
    let mut text = String::from("| one of three nodes is killed | |\n|---|---:|\n");
    let mut row = |name: &str, value: String| {
        let _ = writeln!(text, "| {name} | {value} |");
    };
    row(
        "namespaces that were away",
        format!("{} of {}", hit.len(), plan.namespaces),
    );
    row(
        "seconds from the kill to the first write, p50",
        format!("{:.1}", seconds(0.5)),
    );
    row("p99", format!("{:.1}", seconds(0.99)));
    row("max", format!("{:.1}", seconds(1.0)));
    row("namespaces that did not come back", lost.to_string());
    let rates = [
        (
            "writes per second in the 10 seconds before",
            at.saturating_sub(10),
            at,
        ),
        ("in the 10 seconds after the kill", at + 1, at + 11),
        (
            "in the last 10 seconds",
            struck.seconds.saturating_sub(10),
            struck.seconds,
        ),
    ];
    for (name, from, to) in rates {
        row(name, format!("{:.0}", timeline::rate(&written, from, to)));
    }
    let (failed, elsewhere) = timeline::failures(&struck.samples);
    row("requests that failed", failed.to_string());
    row("that found no node at their address", elsewhere.to_string());
    Ok(text)
}

fn stop(plan: &Plan) -> Result<String> {
    let struck = strike(plan, |cluster| cluster.nodes[0].stop())?;
    let (failed, elsewhere) = timeline::failures(&struck.samples);
    let (hit, lost) = timeline::recoveries(&struck.samples, struck.fault);
    let after = struck
        .samples
        .iter()
        .filter(|sample| sample.ended >= struck.fault);
    let slowest = after.map(|sample| sample.ended - sample.begun).max();
    let mut text = String::from("| one of three nodes is stopped with SIGTERM | |\n|---|---:|\n");
    let mut row = |name: &str, value: String| {
        let _ = writeln!(text, "| {name} | {value} |");
    };
    row("requests", struck.samples.len().to_string());
    row("of them failed", failed.to_string());
    row(
        "that found no node at their address and went to the next",
        elsewhere.to_string(),
    );
    row(
        "namespaces that were away for more than a second",
        (hit.len() + lost).to_string(),
    );
    let slowest = slowest.unwrap_or_default().as_secs_f64();
    row(
        "the slowest request from then on, seconds",
        format!("{slowest:.2}"),
    );
    Ok(text)
}

fn side_by_side(plan: &Plan) -> Result<String> {
    let mut text = format!(
        "| nodes, {} namespaces with one writer each | writes per second |\n|---|---:|\n",
        plan.busy_namespaces
    );
    for count in 1..=NODES {
        let cluster = BenchCluster::start(plan, count)?;
        let tokens = cluster.create_namespaces(plan.busy_namespaces)?;
        thread::sleep(KNOWN);
        let load = |time: Duration| {
            let load = Load {
                nodes: &cluster.addresses(),
                tokens: &tokens,
                pace: Duration::ZERO,
                is_over: &AtomicBool::new(false),
            };
            load.run(|_| {
                thread::sleep(time);
                Ok(())
            })
        };
        load(plan.time / 4)?;
        let samples = load(plan.time)?;
        let written = samples
            .iter()
            .filter(|sample| sample.became == Became::Written);
        let rate = written.count() as f64 / plan.time.as_secs_f64();
        let _ = writeln!(text, "| {count} | {rate:.0} |");
    }
    Ok(text)
}
