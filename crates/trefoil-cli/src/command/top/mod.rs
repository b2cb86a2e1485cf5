//! `trefoil top`: what a server does, live.
//!
//! ```text
//! model    the newest readings of the metrics, and what follows from them
//! view     how that is drawn
//! screen   the terminal
//! ```

mod model;
mod screen;
mod view;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, SyncSender};
use std::thread;
use std::time::Duration;

use anyhow::Context as _;
use ratatui_core::terminal::Terminal;
use trefoil::Clock;

use super::serve::stop_signal;
use crate::client::{ConnectionArguments, HttpClient, MetricsReading};
use crate::exit::UsageError;
use crate::output::CommandOutput;
use model::{LiveModel, MethodOrder};
use screen::{Screen, read_keys};

/// How long a key may wait until it is noticed that the server answered.
const PATIENCE: Duration = Duration::from_millis(100);

/// How seldom and how often the server is asked.
const EVERY_MAX: Duration = Duration::from_secs(3600);
const EVERY_MIN: Duration = Duration::from_secs(1);

/// The byte of ^C, which is no signal while the terminal is ours.
const CONTROL_C: u8 = 3;

const EXAMPLES: &str = "Keys: q or ^C ends it, p pauses, s sorts the methods by calls, errors, time or name, r turns the order
around, + and - change how often the server is asked.

Examples:
  trefoil top
  trefoil top --context prod --every 5";

/// Shows live what a server does: writes, reads, times, memory, connections, busiest methods.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Arguments {
    /// Ask the server once in so many seconds
    #[arg(long, value_name = "SECONDS", default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..=3600))]
    every: u16,
    #[command(flatten)]
    connection: ConnectionArguments,
}

/// What the thread that asks the server tells.
type AskedMetrics = Result<MetricsReading, String>;

impl Arguments {
    pub(crate) fn run(self, output: &CommandOutput) -> anyhow::Result<()> {
        if !output.is_text() || !output.look.is_terminal() {
            let text =
                "top draws on a terminal; for programs there are `trefoil info` and /metrics";
            return Err(UsageError(text.to_owned()).into());
        }
        let client = self.connection.client()?;
        let clock = Clock::default();
        // What is wrong from the start is said on the screen that stays.
        let version = client.version()?;
        let first = client.metrics(clock.steady())?;
        let every = Duration::from_secs(u64::from(self.every));
        let mut model = LiveModel::new(client.url(), &version, every, first);
        let is_stopped = stop_flag()?;
        let has_colour = output.look.has_colour();
        let screen = Screen::enter(has_colour).context("cannot draw on this terminal")?;
        let mut terminal = Terminal::new(screen)?;
        show(&mut terminal, &mut model, client, &clock, &is_stopped)
    }
}

/// Set when somebody wants the process to end: the terminal must be given back first.
fn stop_flag() -> anyhow::Result<Arc<AtomicBool>> {
    let flag = Arc::new(AtomicBool::new(false));
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let stopped = {
        let _inside = runtime.enter();
        stop_signal()?
    };
    let set = Arc::clone(&flag);
    thread::spawn(move || {
        runtime.block_on(stopped);
        set.store(true, Ordering::Relaxed);
    });
    Ok(flag)
}

fn show(
    terminal: &mut Terminal<Screen>,
    model: &mut LiveModel,
    client: HttpClient,
    clock: &Clock,
    is_stopped: &AtomicBool,
) -> anyhow::Result<()> {
    let (asks, asked) = mpsc::sync_channel(1);
    let (answers, answered) = mpsc::sync_channel(1);
    thread::spawn({
        let clock = clock.clone();
        move || answer(&client, &clock, &asked, &answers)
    });
    let keys = read_keys();
    let mut due = clock.steady() + model.every;
    let mut is_waiting = false;
    loop {
        terminal.draw(|frame| view::draw(frame, model))?;
        let is_ended = match keys.recv_timeout(PATIENCE) {
            Ok(key) => handle(key, model),
            Err(RecvTimeoutError::Timeout) => false,
            // Nobody can press a key any more.
            Err(RecvTimeoutError::Disconnected) => true,
        };
        if is_ended || is_stopped.load(Ordering::Relaxed) {
            return Ok(());
        }
        if !is_waiting && clock.steady() >= due {
            is_waiting = asks.try_send(()).is_ok();
        }
        if let Ok(answer) = answered.try_recv() {
            is_waiting = false;
            due = clock.steady() + model.every;
            model.note(answer);
        }
    }
}

/// Reads the metrics whenever it is asked to. A server that hangs holds up nothing but this.
fn answer(
    client: &HttpClient,
    clock: &Clock,
    asked: &Receiver<()>,
    answers: &SyncSender<AskedMetrics>,
) {
    while asked.recv().is_ok() {
        let answer = client.metrics(clock.steady());
        let answer = answer.map_err(|error| format!("{error:#}"));
        if answers.send(answer).is_err() {
            return;
        }
    }
}

/// Returns whether the key ends it.
fn handle(key: u8, model: &mut LiveModel) -> bool {
    match key {
        CONTROL_C | b'q' => return true,
        b'p' | b' ' => model.pause(),
        b's' => model.order = model.order.next(),
        b'r' => model.is_reversed = !model.is_reversed,
        b'+' => model.every = (model.every * 2).min(EVERY_MAX),
        b'-' => model.every = (model.every / 2).max(EVERY_MIN),
        _ => {}
    }
    false
}

/// Orders follow each other as the key is pressed.
impl MethodOrder {
    fn next(self) -> Self {
        match self {
            Self::Calls => Self::Errors,
            Self::Errors => Self::Time,
            Self::Time => Self::Name,
            Self::Name => Self::Calls,
        }
    }
}
