//! `trefoil seats map`: the seats of a section, drawn.

use serde::{Deserialize, Serialize};
use serde_json::json;

use super::Common;
use crate::output::{Column, CommandOutput};

#[derive(Debug, clap::Args)]
#[command(
    after_help = "A line is a row: its number, and a character per seat: '.' available, 'r' reserved, '#' sold.
With --owners there is a line per seat that somebody has instead.

Examples:
  trefoil seats map concert A-1
  trefoil seats map concert A-1 --row 3 --owners
  trefoil seats map concert A-1 --range 1-1 3-10"
)]
pub(super) struct Arguments {
    /// The event
    event: String,
    /// The section
    section: String,
    /// Only this row
    #[arg(long, value_name = "ROW", conflicts_with = "range")]
    row: Option<u64>,
    /// Only the seats between these two corners
    #[arg(long, num_args = 2, value_names = ["FIRST", "LAST"])]
    range: Option<Vec<String>>,
    /// Whose the seats are
    #[arg(long)]
    owners: bool,
    #[command(flatten)]
    common: Common,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct ShownMap {
    rows: u64,
    seats_per_row: u64,
    seats: Vec<Vec<ShownSeat>>,
}

/// A seat's state, or that with its buyer and its booking.
#[derive(Serialize, Deserialize)]
#[serde(untagged)]
enum ShownSeat {
    Plain(u8),
    Owned(u8, Option<String>, Option<String>),
}

/// A line of the list of seats that somebody has.
#[derive(Serialize)]
struct OwnedSeat {
    seat: String,
    status: &'static str,
    buyer: String,
    booking: String,
}

impl Arguments {
    pub(super) fn run(self, output: &mut CommandOutput) -> anyhow::Result<()> {
        let arguments = json!({
            "event": self.event, "section": self.section, "row": self.row,
            "range": self.range, "owners": self.owners,
        });
        let map: ShownMap = self.common.call("seats.map", &arguments)?;
        if !output.is_text() {
            return Ok(output.value(&map)?);
        }
        let (first_row, first_number) = self.corner();
        match self.owners {
            true => list(&map, first_row, first_number, output),
            false => draw(&map, first_row, output),
        }
    }

    /// The row and the number of the first seat that is shown.
    fn corner(&self) -> (u64, u64) {
        let first = self.range.as_ref().and_then(|range| range.first());
        let parts = first.and_then(|seat| seat.split_once('-'));
        let (row, number) = parts.unwrap_or(("1", "1"));
        // The server has understood them, so these are numbers.
        let number_of = |text: &str| text.parse().unwrap_or(1);
        (
            self.row.unwrap_or_else(|| number_of(row)),
            number_of(number),
        )
    }
}

fn draw(map: &ShownMap, first_row: u64, output: &mut CommandOutput) -> anyhow::Result<()> {
    let width = (first_row + map.seats.len() as u64 - 1).to_string().len();
    for (row, seats) in (first_row..).zip(&map.seats) {
        let seats: String = seats.iter().map(ShownSeat::character).collect();
        output.line(format_args!("{row:>width$}  {seats}"))?;
    }
    Ok(())
}

fn list(
    map: &ShownMap,
    first_row: u64,
    first_number: u64,
    output: &mut CommandOutput,
) -> anyhow::Result<()> {
    const COLUMNS: &[Column<OwnedSeat>] = &[
        Column::Text("SEAT", |row| row.seat.clone()),
        Column::Text("STATUS", |row| row.status.to_owned()),
        Column::Text("BUYER", |row| row.buyer.clone()),
        Column::Text("BOOKING", |row| row.booking.clone()),
    ];
    let mut owned = Vec::new();
    for (row, seats) in (first_row..).zip(&map.seats) {
        for (number, seat) in (first_number..).zip(seats) {
            if let ShownSeat::Owned(_, Some(buyer), Some(booking)) = seat {
                owned.push(OwnedSeat {
                    seat: format!("{row}-{number}"),
                    status: seat.status(),
                    buyer: buyer.clone(),
                    booking: booking.clone(),
                });
            }
        }
    }
    Ok(output.table(&owned, COLUMNS)?)
}

impl ShownSeat {
    fn state(&self) -> u8 {
        match self {
            Self::Plain(state) | Self::Owned(state, ..) => *state,
        }
    }

    fn character(&self) -> char {
        match self.state() {
            0 => '.',
            1 => 'r',
            2 => '#',
            _ => '?',
        }
    }

    fn status(&self) -> &'static str {
        match self.state() {
            0 => "available",
            1 => "reserved",
            2 => "sold",
            _ => "unknown",
        }
    }
}
