//! `cargo xtask bench dcb`: queries and conditional appends over gRPC, beside UmaDB and Tephra.
//!
//! The published clients come first, unmodified: they are what applications use.

mod appends;
pub(crate) mod asking;
pub(crate) mod connection;
mod elsewhere;
pub(crate) mod events;
mod growth;
mod grpc;
mod history;
pub(crate) mod load;
mod loaded;
mod ready;
mod resp;
pub(crate) mod server;
mod tags;
#[cfg(feature = "peers")]
mod tephra;
#[cfg(feature = "peers")]
mod umadb;

use std::time::Duration;

use anyhow::{Result, ensure};
use clap::{Args, ValueEnum};
use indicatif::ProgressBar;

use crate::machine::Machine;
use crate::options::{Options, TREFOIL, check_clients};
use crate::outcome::{Figure, Outcome, by_turns};
use crate::place::{Place, StorageKind};
use crate::report::{Report, Row, Target};
use connection::Driver;
use events::Bodies;
use server::{Store, System};

/// Measures queries and conditional appends over gRPC, beside UmaDB and Tephra if they are there.
///
/// Starts each store as a server of its own with a new data directory and its default settings,
/// which are durable for all. Events have 256 bytes of data and the tag of one of 10,000 entities.
/// Appends are conditional on a tag and a type after the last known position of the entity. Reads
/// find 500,000 events. Then: how soon a store is ready after a restart, what queries and conditions
/// cost as the log grows, and what tags cost.
///
/// UmaDB and Trefoil are driven by the crate `umadb-client`, unmodified, Tephra by `tephra-client`:
/// both only in a build with `--features peers`. A leaner client of this benchmark stands beside
/// them. Each client has a connection of its own; one thread drives all of them, except Tephra's,
/// whose client blocks. Clients and server share the machine.
#[derive(Debug, Clone, Args)]
pub(crate) struct Arguments {
    #[command(flatten)]
    options: Options,

    #[command(flatten)]
    selection: Selection,
}

/// What is measured.
#[derive(Debug, Clone, Args)]
pub(crate) struct Selection {
    /// Only these systems.
    #[arg(long, value_name = "SYSTEMS", value_enum, value_delimiter = ',')]
    systems: Vec<System>,

    /// The clients that drive the stores.
    #[arg(long, value_name = "DRIVERS", value_enum, value_delimiter = ',', default_values_t = DRIVERS)]
    drivers: Vec<Driver>,

    /// Where Trefoil keeps its data: a row each.
    #[arg(long, value_name = "KINDS", value_enum, value_delimiter = ',', default_values_t = STORAGES)]
    storages: Vec<StorageKind>,

    /// A URL like s3://bucket/prefix, for `--storages s3`; the environment says which service has it.
    /// What is written there is not removed.
    #[arg(long, value_name = "URL")]
    bucket: Option<String>,

    /// Only these cells.
    #[arg(long, value_name = "CELLS", value_enum, value_delimiter = ',')]
    pub(crate) cells: Vec<Cell>,

    /// How many clients append single events, one cell each.
    #[arg(long, value_name = "COUNTS", value_delimiter = ',', default_values_t = CLIENTS)]
    clients: Vec<usize>,

    /// How many events the reads find.
    #[arg(long, value_name = "COUNT", default_value_t = EVENTS)]
    events: u64,
}

const CLIENTS: [usize; 5] = [1, 16, 64, 256, 1000];
const EVENTS: u64 = 500_000;
/// So many are enough for a look.
const EVENTS_QUICK: u64 = 100_000;
const STORAGES: [StorageKind; 1] = [StorageKind::Directory];
/// Published clients come first, if they are built in.
#[cfg(feature = "peers")]
const DRIVERS: [Driver; 2] = [Driver::Published, Driver::Lean];
#[cfg(not(feature = "peers"))]
const DRIVERS: [Driver; 1] = [Driver::Lean];

/// A part of the measurement.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Cell {
    /// Conditional appends of one event.
    Append,
    /// Conditional appends of 64 events, 16 clients.
    #[value(name = "batch-64")]
    Batch64,
    /// Unconditional appends of 1000 events, 1 client.
    #[value(name = "batch-1000")]
    Batch1000,
    /// Reads of all events of an entity, 16 clients.
    EntityReads,
    /// Reads of all events.
    Scan,
    /// The last event of a type that occurs once.
    RareType,
    /// A tag on half of all events and a tag on 20 of them.
    HotAndRare,
    /// The first answer after a restart, and the memory then.
    Ready,
    /// Reads of all events of an entity by a server that has nothing at hand.
    ColdReads,
    /// The first answer of another server on the same storage after a kill.
    TakeOver,
    /// Conditional appends of one event, 64 clients, to a log with many events.
    LoadedAppend,
    /// What queries and conditions cost as the log grows.
    Growth,
    /// Events with ten tags beside events with one.
    Tags,
}

impl Selection {
    /// What the summary of all protocols needs.
    pub(crate) fn summary() -> Self {
        Self {
            systems: Vec::new(),
            drivers: DRIVERS.into(),
            storages: STORAGES.into(),
            bucket: None,
            cells: vec![
                Cell::Append,
                Cell::Batch64,
                Cell::Batch1000,
                Cell::EntityReads,
                Cell::Ready,
                Cell::LoadedAppend,
            ],
            clients: CLIENTS.into(),
            events: EVENTS,
        }
    }
}

/// What all cells need.
struct Bench<'a> {
    options: &'a Options,
    selection: &'a Selection,
    /// The stores, Trefoil last.
    stores: Vec<Store>,
    bodies: Bodies,
    time: Duration,
    events: u64,
    progress: ProgressBar,
}

/// A store and who drives it.
#[derive(Debug, Clone, Copy)]
struct Entry {
    /// The place of the store in the list.
    store: usize,
    name: &'static str,
    driver: Driver,
}

impl Entry {
    fn name(&self) -> String {
        format!("{}{}", self.name, self.driver.suffix())
    }
}

const UMADB: &str = "UmaDB";
const TEPHRA: &str = "Tephra";

impl<'a> Bench<'a> {
    fn new(options: &'a Options, selection: &'a Selection) -> Result<Self> {
        let events = match options.quick {
            true => selection.events.min(EVENTS_QUICK),
            false => selection.events,
        };
        ensure!(
            events > 0 && events.is_multiple_of(loaded::EVENTS_STEP),
            "--events must be a multiple of {}",
            loaded::EVENTS_STEP
        );
        check_clients(&selection.clients)?;
        let progress = ProgressBar::new_spinner();
        progress.enable_steady_tick(Duration::from_millis(200));
        Ok(Self {
            options,
            selection,
            stores: stores(options, selection)?,
            bodies: Bodies::new(),
            time: options.time(),
            events,
            progress,
        })
    }

    /// Whether a cell was asked for: all are if none is named.
    fn wants(&self, cell: Cell) -> bool {
        self.selection.cells.is_empty() || self.selection.cells.contains(&cell)
    }

    /// Says what is being done.
    fn doing(&self, what: impl Into<String>) {
        self.progress.set_message(what.into());
    }

    /// Every store with every client that can drive it, the published clients first.
    fn entries(&self) -> Vec<Entry> {
        let drivers = self.selection.drivers.iter();
        let entries = drivers.flat_map(|driver| {
            let stores = self.stores.iter().enumerate();
            let stores = stores.filter(|(_, store)| store.system.speaks(*driver));
            stores.map(|(index, store)| Entry {
                store: index,
                name: store.name,
                driver: *driver,
            })
        });
        entries.collect()
    }

    /// Every store with the first client that can drive it.
    fn first_entries(&self) -> Vec<Entry> {
        let mut entries = self.entries();
        entries.sort_by_key(|entry| entry.store);
        entries.dedup_by_key(|entry| entry.store);
        entries
    }

    /// Measures entries by turns: a row each.
    fn rows(
        &self,
        title: &str,
        mut entries: Vec<Entry>,
        figure: Figure,
        mut measure: impl FnMut(Entry) -> Result<Outcome>,
    ) -> Result<Vec<Row>> {
        let rounds = by_turns(&mut entries, self.options.rounds(), |entry| {
            self.doing(format!("{title}: {}", entry.name()));
            measure(*entry)
        })?;
        let rows = entries.iter().zip(rounds);
        rows.map(|(entry, rounds)| rounds.row(entry.name(), figure))
            .collect()
    }
}

/// Sets the targets of Trefoil, driven by the published client.
fn aim(rows: &mut [Row], targets: &[Target]) {
    for row in rows.iter_mut().filter(|row| row.system == TREFOIL) {
        row.targets.extend(targets);
    }
}

fn stores(options: &Options, selection: &Selection) -> Result<Vec<Store>> {
    let mut stores = Vec::new();
    for (system, name, program) in [
        (System::Umadb, UMADB, "umadb"),
        (System::Tephra, TEPHRA, "tephra-server"),
    ] {
        if let Some(program) = options.peer(program)? {
            stores.push(Store {
                system,
                name,
                program,
                place: Place::Directory,
            });
        }
    }
    for (name, program) in options.trefoils()? {
        for storage in &selection.storages {
            let is_before = name != TREFOIL;
            stores.push(Store {
                system: System::Trefoil,
                name: if is_before { name } else { storage.system() },
                program: program.clone(),
                place: storage.place(selection.bucket.as_deref())?,
            });
            if is_before {
                // One row of it is enough to compare with.
                break;
            }
        }
    }
    let is_wanted = |system| selection.systems.is_empty() || selection.systems.contains(&system);
    stores.retain(|store| is_wanted(store.system));
    Ok(stores)
}

/// Runs the measurement and prints the report.
pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    let Arguments { options, selection } = arguments;
    let machine = Machine::this();
    let mut report = Report::new(options.json);
    report.line(&machine.text());
    measure(options, selection, &mut report)?;
    report.finish(&options.context(&machine))
}

/// Measures what is selected.
pub(crate) fn measure(options: &Options, selection: &Selection, report: &mut Report) -> Result<()> {
    options.check()?;
    let bench = Bench::new(options, selection)?;
    report.part("Events over gRPC");
    let names: Vec<&str> = bench.stores.iter().map(|store| store.name).collect();
    report.line(&format!(
        "Events: {}. CPU: microseconds of the server and of the clients per event or request.",
        names.join(", ")
    ));
    appends::run(&bench, report)?;
    loaded::run(&bench, report)?;
    // The rows of what follows are no systems, so there is no summary of them.
    report.part("");
    growth::run(&bench, report)?;
    tags::run(&bench, report)?;
    bench.progress.finish_and_clear();
    Ok(())
}
