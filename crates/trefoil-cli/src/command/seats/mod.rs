//! `trefoil seats`: sections of an event, and the bookings of their seats.
//!
//! ```text
//! sections   to open, to list, to count and to check
//! map        the seats of a section, drawn
//! bookings   to make, to sell, to release, to look up
//! ```

mod bookings;
mod map;
mod sections;

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::client::ConnectionArguments;
use crate::output::CommandOutput;

const EXAMPLES: &str = "\
A section has rows of seats; a seat is written row-number. A booking reserves seats of a section \
for a buyer, all or none. Its id identifies the request, so it can be repeated. Reserved seats are \
then sold with finalize, or released; with --hold they become available again after that time.

Examples:
  trefoil seats init concert A-1 --rows 10 --seats 20 --price 50
  trefoil seats reserve concert A-1 booking-1 ada 3-7 3-8 --hold 300
  trefoil seats reserve concert A-1 booking-2 grace --best 2
  trefoil seats finalize booking-1 ada
  trefoil seats map concert A-1
  trefoil seats check concert";

/// Opens sections, and reserves, sells, releases and shows their seats.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    action: SeatsAction,
}

#[derive(Debug, clap::Subcommand)]
enum SeatsAction {
    /// Open a section, or change one
    Init(sections::Init),
    /// List the sections of an event
    Sections(sections::Sections),
    /// Count the seats of an event or of a section
    Stats(sections::ShowStats),
    /// Draw the seats of a section
    Map(map::Arguments),
    /// Reserve seats: those that are named, or the best that are available
    Reserve(bookings::Reserve),
    /// Sell the seats of a booking
    Finalize(bookings::Finalize),
    /// Release the seats of a booking
    Release(bookings::Release),
    /// Show a booking
    Booking(bookings::BookingLookup),
    /// Check that map, statistics, owners and bookings agree
    Check(sections::CheckSeats),
}

impl Arguments {
    pub(crate) fn run(self, output: &mut CommandOutput) -> anyhow::Result<()> {
        match self.action {
            SeatsAction::Init(arguments) => arguments.run(output),
            SeatsAction::Sections(arguments) => arguments.run(output),
            SeatsAction::Stats(arguments) => arguments.run(output),
            SeatsAction::Map(arguments) => arguments.run(output),
            SeatsAction::Reserve(arguments) => arguments.run(output),
            SeatsAction::Finalize(arguments) => arguments.run(output),
            SeatsAction::Release(arguments) => arguments.run(output),
            SeatsAction::Booking(arguments) => arguments.run(output),
            SeatsAction::Check(arguments) => arguments.run(output),
        }
    }
}

/// What every one of these commands takes.
#[derive(Debug, clap::Args)]
struct Common {
    /// Stands in front of every key
    #[arg(long)]
    prefix: Option<String>,
    #[command(flatten)]
    connection: ConnectionArguments,
}

impl Common {
    /// Calls a method with its own arguments and the prefix.
    fn call<T: DeserializeOwned>(
        &self,
        method: &str,
        arguments: &impl Serialize,
    ) -> anyhow::Result<T> {
        #[derive(Serialize)]
        struct Prefixed<'a, A> {
            #[serde(flatten)]
            arguments: &'a A,
            prefix: Option<&'a str>,
        }
        let arguments = Prefixed {
            arguments,
            prefix: self.prefix.as_deref(),
        };
        self.connection.client()?.call(&(method, arguments))
    }
}
