//! `trefoil seats reserve | finalize | release | booking`

use serde::{Deserialize, Serialize};
use serde_json::json;
use trefoil::Timestamp;

use super::Common;
use crate::exit::NotFound;
use crate::output::{Column, CommandOutput};

#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  trefoil seats reserve concert A-1 booking-1 ada 3-7 3-8 --hold 300
  trefoil seats reserve concert A-1 booking-2 grace --best 2")]
pub(super) struct Reserve {
    /// The event
    event: String,
    /// The section
    section: String,
    /// The booking: a repetition of the same request with the same id changes nothing
    booking: String,
    /// The buyer
    buyer: String,
    /// The seats, as row-number
    #[arg(value_name = "SEAT", required_unless_present = "best")]
    seats: Option<Vec<String>>,
    /// So many of the best that are available, if possible side by side
    #[arg(long, value_name = "COUNT", conflicts_with = "seats")]
    best: Option<u64>,
    /// Seconds after which the seats return by themselves
    #[arg(long, value_name = "SECONDS")]
    hold: Option<u64>,
    /// The same in milliseconds
    #[arg(long, value_name = "MILLISECONDS", conflicts_with = "hold")]
    hold_ms: Option<u64>,
    /// The most seats of this booking, instead of the section's limit
    #[arg(long, value_name = "COUNT")]
    max: Option<u64>,
    #[command(flatten)]
    common: Common,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Reserved {
    booking: String,
    status: String,
    seats: Vec<String>,
    total_price: i64,
    /// In milliseconds since 1970.
    expires_at: Option<i64>,
    position: u64,
    stats: CountsAfter,
}

/// How many seats of the section are in which state.
#[derive(Serialize, Deserialize)]
struct CountsAfter {
    available: i64,
    reserved: i64,
    sold: i64,
    total: i64,
}

impl Reserve {
    pub(super) fn run(self, output: &mut CommandOutput) -> anyhow::Result<()> {
        const COLUMNS: &[Column<Reserved>] = &[
            Column::Text("BOOKING", |row| row.booking.clone()),
            Column::Text("STATUS", |row| row.status.clone()),
            Column::Text("SEATS", |row| row.seats.join(" ")),
            Column::Text("PRICE", |row| row.total_price.to_string()),
            Column::Time("HELD UNTIL", |row| held_until(row.expires_at)),
            Column::Text("AVAILABLE", |row| row.stats.available.to_string()),
        ];
        let arguments = json!({
            "event": self.event, "section": self.section, "booking": self.booking,
            "buyer": self.buyer, "seats": self.seats, "best": self.best, "hold": self.hold,
            "holdMs": self.hold_ms, "max": self.max,
        });
        let reserved: Reserved = self.common.call("seats.reserve", &arguments)?;
        Ok(output.record(&reserved, COLUMNS)?)
    }
}

fn held_until(expires_at: Option<i64>) -> String {
    expires_at.map_or_else(|| "-".to_owned(), time)
}

fn time(millis: i64) -> String {
    Timestamp(millis.saturating_mul(1_000_000)).to_string()
}

#[derive(Debug, clap::Args)]
struct BookingArguments {
    /// The booking
    booking: String,
    /// Its buyer
    buyer: String,
    #[command(flatten)]
    common: Common,
}

#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  trefoil seats finalize booking-1 ada")]
pub(super) struct Finalize {
    #[command(flatten)]
    owned: BookingArguments,
}

#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  trefoil seats release booking-2 grace")]
pub(super) struct Release {
    #[command(flatten)]
    owned: BookingArguments,
}

#[derive(Serialize, Deserialize)]
struct Settled {
    booking: String,
    status: String,
    seats: Vec<String>,
    position: u64,
}

impl Finalize {
    pub(super) fn run(self, output: &mut CommandOutput) -> anyhow::Result<()> {
        self.owned.settle("seats.finalize", output)
    }
}

impl Release {
    pub(super) fn run(self, output: &mut CommandOutput) -> anyhow::Result<()> {
        self.owned.settle("seats.release", output)
    }
}

impl BookingArguments {
    fn settle(self, method: &str, output: &mut CommandOutput) -> anyhow::Result<()> {
        const COLUMNS: &[Column<Settled>] = &[
            Column::Text("BOOKING", |row| row.booking.clone()),
            Column::Text("STATUS", |row| row.status.clone()),
            Column::Text("SEATS", |row| row.seats.join(" ")),
        ];
        let arguments = json!({ "booking": self.booking, "buyer": self.buyer });
        let settled: Settled = self.common.call(method, &arguments)?;
        Ok(output.record(&settled, COLUMNS)?)
    }
}

#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  trefoil seats booking booking-1")]
pub(super) struct BookingLookup {
    /// The booking
    booking: String,
    #[command(flatten)]
    common: Common,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct ShownBooking {
    booking: String,
    buyer: String,
    event: String,
    section: String,
    status: String,
    mode: String,
    seats: Vec<String>,
    total_price: i64,
    created_at: i64,
    updated_at: i64,
    expires_at: Option<i64>,
    position: u64,
    last_position: u64,
}

impl BookingLookup {
    pub(super) fn run(self, output: &mut CommandOutput) -> anyhow::Result<()> {
        const COLUMNS: &[Column<ShownBooking>] = &[
            Column::Text("BOOKING", |row| row.booking.clone()),
            Column::Text("STATUS", |row| row.status.clone()),
            Column::Text("BUYER", |row| row.buyer.clone()),
            Column::Text("EVENT", |row| row.event.clone()),
            Column::Text("SECTION", |row| row.section.clone()),
            Column::Text("SEATS", |row| row.seats.join(" ")),
            Column::Text("PRICE", |row| row.total_price.to_string()),
            Column::Time("CHANGED", |row| time(row.updated_at)),
        ];
        let arguments = json!({ "booking": self.booking });
        let found: Option<ShownBooking> = self.common.call("seats.booking", &arguments)?;
        let text = || format!("there is no booking {}", self.booking);
        let booking = found.ok_or_else(|| NotFound(text()))?;
        Ok(output.record(&booking, COLUMNS)?)
    }
}
