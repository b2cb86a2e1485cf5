//! Bodies of events: JSON objects of several shapes with names, amounts, ids and times.
//!
//! Keys repeat, values hardly do: a compressor is not given one template.

use std::io::Write;

use uuid::Uuid;

use crate::random::Random;

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
pub(crate) fn generate(random: &mut Random) -> (&'static str, Vec<u8>) {
    let shape = random.index(SHAPES);
    let mut out = Vec::with_capacity(320);
    // Writing to a vector cannot fail.
    let _ = match shape {
        0 => order(&mut out, random),
        1 => payment(&mut out, random),
        2 => address(&mut out, random),
        3 => parcel(&mut out, random),
        _ => seats(&mut out, random),
    };
    (random.pick(TYPES[shape]), out)
}

fn order(out: &mut Vec<u8>, random: &mut Random) -> std::io::Result<()> {
    write!(
        out,
        r#"{{"orderId":"{}","customer":{{"name":"{} {}","number":{}}},"total":{},"currency":"{}","lines":["#,
        random_uuid(random),
        random.pick(FIRST_NAMES),
        random.pick(LAST_NAMES),
        random.below(900_000),
        amount(random),
        random.pick(CURRENCIES),
    )?;
    for line in 0..=random.below(2) {
        let comma = if line == 0 { "" } else { "," };
        write!(
            out,
            r#"{comma}{{"sku":"{}-{:04}","quantity":{},"price":{}}}"#,
            random.pick(&["BK", "EL", "GR", "HM", "TY"]),
            random.below(10_000),
            1 + random.below(9),
            amount(random),
        )?;
    }
    write!(out, r#"],"at":"{}"}}"#, time(random))
}

fn payment(out: &mut Vec<u8>, random: &mut Random) -> std::io::Result<()> {
    write!(
        out,
        r#"{{"paymentId":"{}","reference":"INV-{:08}","amount":{},"currency":"{}","method":"{}","payer":"{} {}","bookedAt":"{}","note":"{}"}}"#,
        random_uuid(random),
        random.below(100_000_000),
        amount(random),
        random.pick(CURRENCIES),
        random.pick(METHODS),
        random.pick(FIRST_NAMES),
        random.pick(LAST_NAMES),
        time(random),
        sentence(random, 6),
    )
}

fn address(out: &mut Vec<u8>, random: &mut Random) -> std::io::Result<()> {
    let (first, last) = (random.pick(FIRST_NAMES), random.pick(LAST_NAMES));
    write!(
        out,
        r#"{{"name":"{first} {last}","email":"{}.{}{}@example.com","street":"{} {}","city":"{}","postcode":"{:05}","since":"{}","verified":{},"note":"{}"}}"#,
        first.to_lowercase(),
        last.to_lowercase().replace(' ', ""),
        random.below(1000),
        random.pick(STREETS),
        1 + random.below(220),
        random.pick(CITIES),
        random.below(100_000),
        time(random),
        random.below(2) == 0,
        sentence(random, 5),
    )
}

fn parcel(out: &mut Vec<u8>, random: &mut Random) -> std::io::Result<()> {
    write!(
        out,
        r#"{{"shipment":"{}","carrier":"{}","tracking":"{:012X}","weightGrams":{},"from":"{}","to":"{}","dueAt":"{}","instructions":"{}"}}"#,
        random_uuid(random),
        random.pick(CARRIERS),
        random.next() >> 16,
        50 + random.below(30_000),
        random.pick(CITIES),
        random.pick(CITIES),
        time(random),
        sentence(random, 6),
    )
}

fn seats(out: &mut Vec<u8>, random: &mut Random) -> std::io::Result<()> {
    write!(
        out,
        r#"{{"bookingId":"{}","section":"{}{}","seats":["#,
        random_uuid(random),
        random.pick(&["North", "South", "East", "West", "Balcony"]),
        random.below(40),
    )?;
    let (row, first) = (1 + random.below(60), 1 + random.below(80));
    for seat in 0..=random.below(4) {
        let comma = if seat == 0 { "" } else { "," };
        write!(out, r#"{comma}{{"row":{row},"seat":{}}}"#, first + seat)?;
    }
    write!(
        out,
        r#"],"holder":"{} {}","price":{},"heldUntil":"{}","channel":"{}","note":"{}"}}"#,
        random.pick(FIRST_NAMES),
        random.pick(LAST_NAMES),
        amount(random),
        time(random),
        random.pick(&["web", "app", "box office", "partner"]),
        sentence(random, 6),
    )
}

/// A version 4 UUID.
pub(crate) fn random_uuid(random: &mut Random) -> Uuid {
    let (high, low) = (random.next(), random.next());
    uuid::Builder::from_u128((u128::from(high) << 64) | u128::from(low))
        .with_version(uuid::Version::Random)
        .into_uuid()
}

/// Small amounts are more frequent than large ones.
fn amount(random: &mut Random) -> String {
    let cents = (random.fraction().powi(3) * 500_000.0) as u64 + 99;
    format!("{}.{:02}", cents / 100, cents % 100)
}

fn time(random: &mut Random) -> String {
    format!(
        "2026-{:02}-{:02}T{:02}:{:02}:{:02}.{:03}Z",
        1 + random.below(12),
        1 + random.below(28),
        random.below(24),
        random.below(60),
        random.below(60),
        random.below(1000),
    )
}

fn sentence(random: &mut Random, words: u64) -> String {
    let length = 1 + random.below(words);
    let picked: Vec<_> = (0..length).map(|_| random.pick(WORDS)).collect();
    picked.join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_body_is_a_json_object_and_hardly_any_two_are_equal() {
        let mut random = Random::new(1);
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
