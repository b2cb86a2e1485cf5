//! `trefoil seats init | sections | stats | check`

use anyhow::bail;
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::Common;
use crate::output::{Column, CommandOutput, visible};

#[derive(Debug, clap::Args)]
#[command(
    after_help = "A section that is there may get more rows, another price and other limits; other rows only while none
of its seats is reserved or sold.

Example:
  trefoil seats init concert A-1 --rows 10 --seats 20 --price 50 --max-per-buyer 8"
)]
pub(super) struct Init {
    /// The event
    event: String,
    /// The section
    section: String,
    /// How many rows there are
    #[arg(long, value_name = "COUNT")]
    rows: u64,
    /// How many seats a row has
    #[arg(long, value_name = "COUNT")]
    seats: u64,
    /// What a seat costs
    #[arg(long, value_name = "AMOUNT")]
    price: Option<u64>,
    /// The most seats of a booking
    #[arg(long, value_name = "COUNT")]
    max_per_booking: Option<u64>,
    /// The most seats of a buyer in the event; 0: any number
    #[arg(long, value_name = "COUNT")]
    max_per_buyer: Option<u64>,
    #[command(flatten)]
    common: Common,
}

/// A section as it is now.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct ShownSection {
    event: String,
    section: String,
    rows: u64,
    seats_per_row: u64,
    price: i64,
    max_per_booking: u64,
    max_per_buyer: u64,
    /// 1 if it was not there before.
    created: u8,
}

impl Init {
    pub(super) fn run(self, output: &mut CommandOutput) -> anyhow::Result<()> {
        const COLUMNS: &[Column<ShownSection>] = &[
            Column::Text("EVENT", |row| row.event.clone()),
            Column::Text("SECTION", |row| row.section.clone()),
            Column::Text("ROWS", |row| row.rows.to_string()),
            Column::Text("SEATS PER ROW", |row| row.seats_per_row.to_string()),
            Column::Text("PRICE", |row| row.price.to_string()),
            Column::Text("MAX PER BOOKING", |row| row.max_per_booking.to_string()),
            Column::Text("MAX PER BUYER", |row| match row.max_per_buyer {
                0 => "any".to_owned(),
                n => n.to_string(),
            }),
        ];
        let arguments = json!({
            "event": self.event, "section": self.section, "rows": self.rows,
            "seatsPerRow": self.seats, "price": self.price,
            "maxPerBooking": self.max_per_booking, "maxPerBuyer": self.max_per_buyer,
        });
        let config: ShownSection = self.common.call("seats.init", &arguments)?;
        Ok(output.record(&config, COLUMNS)?)
    }
}

#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  trefoil seats sections concert")]
pub(super) struct Sections {
    /// The event
    event: String,
    #[command(flatten)]
    common: Common,
}

impl Sections {
    pub(super) fn run(self, output: &mut CommandOutput) -> anyhow::Result<()> {
        let arguments = json!({ "event": self.event });
        let sections: Vec<String> = self.common.call("seats.sections", &arguments)?;
        output.begin_list();
        for section in sections {
            match output.is_text() {
                false => output.item(&json!({ "section": section }))?,
                true => output.line(visible(&section))?,
            }
        }
        Ok(())
    }
}

#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  trefoil seats stats concert A-1")]
pub(super) struct ShowStats {
    /// The event
    event: String,
    /// The section [default: all of them together]
    section: Option<String>,
    #[command(flatten)]
    common: Common,
}

/// How many seats are in which state.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct ShownStats {
    event: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    section: Option<String>,
    available: i64,
    reserved: i64,
    sold: i64,
    total: i64,
    updated_at: u64,
}

impl ShowStats {
    pub(super) fn run(self, output: &mut CommandOutput) -> anyhow::Result<()> {
        const COLUMNS: &[Column<ShownStats>] = &[
            Column::Text("EVENT", |row| row.event.clone()),
            Column::Text("SECTION", |row| {
                row.section.clone().unwrap_or_else(|| "(all)".to_owned())
            }),
            Column::Text("AVAILABLE", |row| row.available.to_string()),
            Column::Text("RESERVED", |row| row.reserved.to_string()),
            Column::Text("SOLD", |row| row.sold.to_string()),
            Column::Text("TOTAL", |row| row.total.to_string()),
        ];
        let arguments = json!({ "event": self.event, "section": self.section });
        let counted: ShownStats = self.common.call("seats.stats", &arguments)?;
        Ok(output.record(&counted, COLUMNS)?)
    }
}

#[derive(Debug, clap::Args)]
#[command(
    after_help = "Prints what does not agree, a line each, and then ends with exit code 1.

Example:
  trefoil seats check concert"
)]
pub(super) struct CheckSeats {
    /// The event
    event: String,
    /// The section [default: all of them, and what is counted for the event]
    section: Option<String>,
    #[command(flatten)]
    common: Common,
}

impl CheckSeats {
    pub(super) fn run(self, output: &mut CommandOutput) -> anyhow::Result<()> {
        let arguments = json!({ "event": self.event, "section": self.section });
        let violations: Vec<String> = self.common.call("seats.check", &arguments)?;
        output.begin_list();
        for violation in &violations {
            match output.is_text() {
                false => output.item(&json!({ "violation": violation }))?,
                true => output.line(visible(violation))?,
            }
        }
        match violations.len() {
            0 => eprintln!("Everything agrees."),
            n => bail!("{n} things do not agree"),
        }
        Ok(())
    }
}
