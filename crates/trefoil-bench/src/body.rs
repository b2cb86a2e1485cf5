//! Bodies of events: JSON objects of several shapes with names, amounts, ids and times.
//!
//! Keys repeat, values hardly do: a compressor is not given one template.

use std::io::Write;

use fastrand::Rng;
use uuid::Uuid;

const FIRST_NAMES: &[&str] = &[
    "Ada",
    "Alan",
    "Amara",
    "Anil",
    "Barbara",
    "Björn",
    "Chen",
    "Chiara",
    "Dmitri",
    "Edsger",
    "Elif",
    "Fatima",
    "Frances",
    "Grace",
    "Hedy",
    "Ines",
    "Jamal",
    "Jean",
    "Kaito",
    "Katherine",
    "Leslie",
    "Linh",
    "Margaret",
    "Mateo",
    "Niklaus",
    "Noor",
    "Olga",
    "Pedro",
    "Radia",
    "Sophie",
    "Tomasz",
    "Yusuf",
];
const LAST_NAMES: &[&str] = &[
    "Abe",
    "Backus",
    "Bianchi",
    "Chaudhry",
    "Diallo",
    "Dijkstra",
    "Eriksson",
    "Fischer",
    "Garcia",
    "Goldberg",
    "Hamilton",
    "Hopper",
    "Ivanova",
    "Johnson",
    "Kahn",
    "Kowalski",
    "Lamport",
    "Liskov",
    "Moreau",
    "Nakamura",
    "Nguyen",
    "Okafor",
    "Perlman",
    "Quispe",
    "Rossi",
    "Schneider",
    "Tanaka",
    "Turing",
    "Van Dijk",
    "Wirth",
    "Yilmaz",
    "Zhang",
];
const STREETS: &[&str] = &[
    "Station Road",
    "Rue de la Gare",
    "Hauptstraße",
    "Via Roma",
    "Calle Mayor",
    "Oak Avenue",
    "Mill Lane",
    "Kirchweg",
    "Long Acre",
    "Quai Nord",
    "Harbour Street",
    "Elm Close",
];
const CITIES: &[&str] = &[
    "Accra", "Bergen", "Bogotá", "Cairo", "Dublin", "Ghent", "Hanoi", "Izmir", "Kraków", "Lagos",
    "Lyon", "Malmö", "Nairobi", "Osaka", "Porto", "Quito", "Riga", "Seoul", "Tampere", "Turin",
];
const CURRENCIES: &[&str] = &["EUR", "USD", "GBP", "JPY", "CHF", "SEK", "INR", "BRL"];
const METHODS: &[&str] = &["card", "transfer", "invoice", "wallet", "direct_debit"];
const WORDS: &[&str] = &[
    "please",
    "call",
    "before",
    "delivery",
    "leave",
    "with",
    "neighbour",
    "fragile",
    "gift",
    "urgent",
    "second",
    "floor",
    "ring",
    "twice",
    "paid",
    "partly",
    "late",
    "order",
    "from",
    "abroad",
    "new",
    "customer",
    "check",
    "address",
    "again",
    "refund",
    "agreed",
    "by",
    "phone",
];
const CARRIERS: &[&str] = &[
    "northpost",
    "swiftline",
    "cargoloop",
    "bluevan",
    "railexpress",
];

/// The types of events, by the shape of their bodies.
const TYPES: [&[&str]; SHAPES] = [
    &[
        "OrderPlaced",
        "OrderAmended",
        "OrderConfirmed",
        "OrderCancelled",
    ],
    &["PaymentReceived", "PaymentRefused", "PaymentRefunded"],
    &["AddressChanged", "CustomerRegistered", "ContactUpdated"],
    &[
        "ParcelShipped",
        "ParcelDelivered",
        "ParcelReturned",
        "PickupScheduled",
    ],
    &["SeatsReserved", "SeatsReleased", "HoldExpired"],
];

/// How many shapes of bodies there are.
const SHAPES: usize = 5;

/// An event's type and its body.
pub(crate) fn generate(random: &mut Rng) -> (&'static str, Vec<u8>) {
    let shape = random.usize(..SHAPES);
    let mut out = Vec::with_capacity(320);
    // Writing to a vector cannot fail.
    let _ = match shape {
        0 => order(&mut out, random),
        1 => payment(&mut out, random),
        2 => address(&mut out, random),
        3 => parcel(&mut out, random),
        _ => seats(&mut out, random),
    };
    (pick(random, TYPES[shape]), out)
}

fn order(out: &mut Vec<u8>, random: &mut Rng) -> std::io::Result<()> {
    write!(
        out,
        r#"{{"orderId":"{}","customer":{{"name":"{} {}","number":{}}},"total":{},"currency":"{}","lines":["#,
        random_uuid(random),
        pick(random, FIRST_NAMES),
        pick(random, LAST_NAMES),
        random.u64(..900_000),
        amount(random),
        pick(random, CURRENCIES),
    )?;
    for line in 0..=random.u64(..2) {
        let comma = if line == 0 { "" } else { "," };
        write!(
            out,
            r#"{comma}{{"sku":"{}-{:04}","quantity":{},"price":{}}}"#,
            pick(random, &["BK", "EL", "GR", "HM", "TY"]),
            random.u64(..10_000),
            1 + random.u64(..9),
            amount(random),
        )?;
    }
    write!(out, r#"],"at":"{}"}}"#, time(random))
}

fn payment(out: &mut Vec<u8>, random: &mut Rng) -> std::io::Result<()> {
    write!(
        out,
        r#"{{"paymentId":"{}","reference":"INV-{:08}","amount":{},"currency":"{}","method":"{}","payer":"{} {}","bookedAt":"{}","note":"{}"}}"#,
        random_uuid(random),
        random.u64(..100_000_000),
        amount(random),
        pick(random, CURRENCIES),
        pick(random, METHODS),
        pick(random, FIRST_NAMES),
        pick(random, LAST_NAMES),
        time(random),
        sentence(random, 6),
    )
}

fn address(out: &mut Vec<u8>, random: &mut Rng) -> std::io::Result<()> {
    let (first, last) = (pick(random, FIRST_NAMES), pick(random, LAST_NAMES));
    write!(
        out,
        r#"{{"name":"{first} {last}","email":"{}.{}{}@example.com","street":"{} {}","city":"{}","postcode":"{:05}","since":"{}","verified":{},"note":"{}"}}"#,
        first.to_lowercase(),
        last.to_lowercase().replace(' ', ""),
        random.u64(..1000),
        pick(random, STREETS),
        1 + random.u64(..220),
        pick(random, CITIES),
        random.u64(..100_000),
        time(random),
        random.u64(..2) == 0,
        sentence(random, 5),
    )
}

fn parcel(out: &mut Vec<u8>, random: &mut Rng) -> std::io::Result<()> {
    write!(
        out,
        r#"{{"shipment":"{}","carrier":"{}","tracking":"{:012X}","weightGrams":{},"from":"{}","to":"{}","dueAt":"{}","instructions":"{}"}}"#,
        random_uuid(random),
        pick(random, CARRIERS),
        random.u64(..) >> 16,
        50 + random.u64(..30_000),
        pick(random, CITIES),
        pick(random, CITIES),
        time(random),
        sentence(random, 6),
    )
}

fn seats(out: &mut Vec<u8>, random: &mut Rng) -> std::io::Result<()> {
    write!(
        out,
        r#"{{"bookingId":"{}","section":"{}{}","seats":["#,
        random_uuid(random),
        pick(random, &["North", "South", "East", "West", "Balcony"]),
        random.u64(..40),
    )?;
    let (row, first) = (1 + random.u64(..60), 1 + random.u64(..80));
    for seat in 0..=random.u64(..4) {
        let comma = if seat == 0 { "" } else { "," };
        write!(out, r#"{comma}{{"row":{row},"seat":{}}}"#, first + seat)?;
    }
    write!(
        out,
        r#"],"holder":"{} {}","price":{},"heldUntil":"{}","channel":"{}","note":"{}"}}"#,
        pick(random, FIRST_NAMES),
        pick(random, LAST_NAMES),
        amount(random),
        time(random),
        pick(random, &["web", "app", "box office", "partner"]),
        sentence(random, 6),
    )
}

/// A version 4 UUID.
pub(crate) fn random_uuid(random: &mut Rng) -> Uuid {
    let (high, low) = (random.u64(..), random.u64(..));
    uuid::Builder::from_u128((u128::from(high) << 64) | u128::from(low))
        .with_version(uuid::Version::Random)
        .into_uuid()
}

/// Small amounts are more frequent than large ones.
/// Returns one of `choices`.
pub(crate) fn pick<'a>(random: &mut Rng, choices: &[&'a str]) -> &'a str {
    choices[random.usize(..choices.len())]
}

fn amount(random: &mut Rng) -> String {
    let cents = (random.f64().powi(3) * 500_000.0) as u64 + 99;
    format!("{}.{:02}", cents / 100, cents % 100)
}

fn time(random: &mut Rng) -> String {
    format!(
        "2026-{:02}-{:02}T{:02}:{:02}:{:02}.{:03}Z",
        1 + random.u64(..12),
        1 + random.u64(..28),
        random.u64(..24),
        random.u64(..60),
        random.u64(..60),
        random.u64(..1000),
    )
}

fn sentence(random: &mut Rng, words: u64) -> String {
    let length = 1 + random.u64(..words);
    let picked: Vec<_> = (0..length).map(|_| pick(random, WORDS)).collect();
    picked.join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_body_is_a_json_object_and_hardly_any_two_are_equal() {
        let mut random = Rng::with_seed(1);
        let mut seen = std::collections::HashSet::new();
        for _ in 0..2000 {
            let (_, body) = generate(&mut random);
            let value: serde_json::Value = serde_json::from_slice(&body).unwrap();
            assert!(value.is_object());
            seen.insert(body);
        }
        assert!(seen.len() >= 1999);
    }
}
