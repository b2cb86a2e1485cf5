//! Every reason for which a command is refused; then nothing has changed.

use trefoil_state::Reply;
use trefoil_state::testing::text;

use super::{NOW, assert_sound, world};

#[test]
fn what_cannot_be_is_refused() {
    let mut world = world();
    world.run("SEATS.INIT 1 L ROWS 2 SEATS 5 MAXBOOKING 3 MAXBUYER 4");
    world.run("SEATS.RESERVE 1 A-1 sold u1 SEATS 1-1");
    world.run("SEATS.FINALIZE sold u1");
    world.run("SEATS.RESERVE 1 A-1 held u1 SEATS 1-2 1-3");
    world.run("SEATS.RESERVE 1 A-1 given u2 BEST 1");
    world.run("SEATS.RELEASE given u2");
    world.run("SEATS.RESERVE 1 A-1 late u2 SEATS 3-4 HOLDMS 5");
    world.moment.now = NOW + 5;
    world.clean();
    let before = (world.entries.clone(), world.events.len());
    for (line, expected) in REFUSED {
        assert_eq!(text(&world.run(line)), format!("-{expected}"), "{line}");
    }
    assert_eq!((world.entries.clone(), world.events.len()), before);
    assert_sound(&mut world, "1");
}

const BAD_ID: &str = "must be 1 to 128 letters, digits and any of - _ . @";

const REFUSED: &[(&str, &str)] = &[
    // Seats that are not available, and seats that are not there.
    (
        "SEATS.RESERVE 1 A-1 x u SEATS 1-4 1-1 1-2",
        "SEATTAKEN seat 1-1 is sold",
    ),
    (
        "SEATS.RESERVE 1 A-1 x u SEATS 1-4 1-2",
        "SEATTAKEN seat 1-2 is reserved",
    ),
    (
        "SEATS.RESERVE 1 A-1 x u SEATS 4-1",
        "BADSEAT there is no seat 4-1: the section has 3 rows of 4 seats",
    ),
    (
        "SEATS.RESERVE 1 A-1 x u SEATS 1-1 2-5",
        "BADSEAT there is no seat 2-5: the section has 3 rows of 4 seats",
    ),
    (
        "SEATS.RESERVE 1 A-1 x u SEATS 2-1 2-1",
        "BADSEAT seat 2-1 is named twice",
    ),
    (
        "SEATS.RESERVE 1 A-1 x u SEATS 0-1",
        "BADSEAT '0-1' is not a seat: one is written row-number, such as 3-7",
    ),
    (
        "SEATS.RESERVE 1 A-1 x u SEATS A-1-1-1",
        "BADSEAT 'A-1-1-1' is not a seat: one is written row-number, such as 3-7",
    ),
    (
        "SEATS.RESERVE 1 A-1 x u SEATS 2-01",
        "BADSEAT '2-01' is not a seat: one is written row-number, such as 3-7",
    ),
    (
        "SEATS.RESERVE 1 A-1 x u BEST 10 MAX 10",
        "NOSEATS 10 seats are wanted and 9 are available",
    ),
    // Limits.
    (
        "SEATS.RESERVE 1 A-1 x u BEST 5",
        "LIMIT 5 seats are wanted and a booking has at most 4",
    ),
    (
        "SEATS.RESERVE 1 A-1 x u SEATS 2-1 2-2 MAX 1",
        "LIMIT 2 seats are wanted and a booking has at most 1",
    ),
    (
        "SEATS.RESERVE 1 L x u BEST 4",
        "LIMIT 4 seats are wanted and a booking has at most 3",
    ),
    (
        "SEATS.RESERVE 1 L x u1 BEST 2",
        "LIMIT buyer u1 has 3 seats, wants 2 more, and may have at most 4",
    ),
    // Bookings.
    (
        "SEATS.RESERVE 1 A-1 held u2 SEATS 1-2 1-3",
        "BOOKINGEXISTS booking held is one of another request",
    ),
    (
        "SEATS.RESERVE 1 A-1 held u1 SEATS 1-2 1-4",
        "BOOKINGEXISTS booking held is one of another request",
    ),
    (
        "SEATS.RESERVE 1 A-1 held u1 BEST 2",
        "BOOKINGEXISTS booking held is one of another request",
    ),
    (
        "SEATS.RESERVE 1 A-1 given u2 BEST 2",
        "BOOKINGEXISTS booking given is one of another request",
    ),
    (
        "SEATS.RESERVE 1 L held u1 SEATS 1-2 1-3",
        "BOOKINGEXISTS booking held is one of another request",
    ),
    ("SEATS.FINALIZE x u1", "NOBOOKING there is no booking x"),
    ("SEATS.RELEASE x u1", "NOBOOKING there is no booking x"),
    (
        "SEATS.FINALIZE held u2",
        "NOTOWNER booking held is not one of buyer u2",
    ),
    (
        "SEATS.RELEASE held u2",
        "NOTOWNER booking held is not one of buyer u2",
    ),
    ("SEATS.RELEASE sold u1", "SEATSTATE booking sold is sold"),
    (
        "SEATS.FINALIZE given u2",
        "SEATSTATE booking given is released",
    ),
    (
        "SEATS.FINALIZE late u2",
        "EXPIRED the hold of booking late has run out",
    ),
    (
        "SEATS.RELEASE late u2",
        "EXPIRED the hold of booking late has run out",
    ),
    // Sections.
    (
        "SEATS.RESERVE 1 B x u BEST 1",
        "NOSECTION there is no section B of event 1",
    ),
    (
        "SEATS.STATS 1 B",
        "NOSECTION there is no section B of event 1",
    ),
    ("SEATS.STATS 2", "NOSECTION event 2 has no sections"),
    (
        "SEATS.CHECK 1 B",
        "NOSECTION there is no section B of event 1",
    ),
    (
        "SEATS.INIT 1 B ROWS 1001 SEATS 1000",
        "ERR a section of 1001000 seats is over the limit of 1000000",
    ),
    (
        "SEATS.INIT 1 B ROWS 0 SEATS 1",
        "ERR ROWS must be a number from 1 to 1000000",
    ),
    (
        "SEATS.INIT 1 B ROWS 1 SEATS x",
        "ERR SEATS must be a number from 1 to 1000000",
    ),
    (
        "SEATS.INIT 1 B ROWS 1 SEATS 1 PRICE -1",
        "ERR PRICE must be a number from 0 to 1000000000000",
    ),
    (
        "SEATS.INIT 1 B ROWS 1 SEATS 1 MAXBOOKING 0",
        "ERR MAXBOOKING must be a number from 1 to 1000",
    ),
    (
        "SEATS.INIT 1 B ROWS 1 SEATS 1 MAXBUYER x",
        "ERR MAXBUYER must be a number from 0 to 1000000",
    ),
    ("SEATS.INIT 1 B ROWS 1 PRICE 1", "ERR syntax error"),
    (
        "SEATS.INIT 1 B ROWS 1 SEATS",
        "ERR wrong number of arguments for 'seats.init' command",
    ),
    // Arguments.
    (
        "SEATS.RESERVE 1 A-1 x u BEST 0",
        "ERR BEST must be a number from 1 to 1000",
    ),
    (
        "SEATS.RESERVE 1 A-1 x u BEST 1001",
        "ERR BEST must be a number from 1 to 1000",
    ),
    ("SEATS.RESERVE 1 A-1 x u SOME 1", "ERR syntax error"),
    (
        "SEATS.RESERVE 1 A-1 x u BEST 1 HOLD 1 HOLDMS 1",
        "ERR syntax error",
    ),
    (
        "SEATS.RESERVE 1 A-1 x u BEST 1 HOLD 0",
        "ERR HOLD must be a number from 1 to 31536000",
    ),
    (
        "SEATS.RESERVE 1 A-1 x u BEST 1 HOLDMS 1.5",
        "ERR HOLDMS must be a number from 1 to 31536000000",
    ),
    ("SEATS.RESERVE 1 A-1 x u BEST 1 HOLD", "ERR syntax error"),
    (
        "SEATS.RESERVE 1 A-1 x u BEST 1 MAX 0",
        "ERR MAX must be a number from 1 to 1000",
    ),
    (
        "SEATS.FINALIZE held",
        "ERR wrong number of arguments for 'seats.finalize' command",
    ),
    ("SEATS.FINALIZE held u1 more", "ERR syntax error"),
    ("SEATS.STATS 1 A-1 more", "ERR syntax error"),
    (
        "SEATS.STATS 1 PREFIX a+b",
        "ERR the prefix must be at most 64 letters, digits and any of - _ . @ :",
    ),
];

#[test]
fn ids_are_checked() {
    let mut world = world();
    let long = "x".repeat(129);
    for (line, what) in [
        (format!("SEATS.STATS {long}"), "event"),
        ("SEATS.STATS a:b".to_owned(), "event"),
        ("SEATS.STATS a+b".to_owned(), "event"),
        ("SEATS.STATS 1 a/b".to_owned(), "section"),
        ("SEATS.BOOKING é".to_owned(), "booking"),
        ("SEATS.RELEASE b1 a:b".to_owned(), "buyer"),
    ] {
        let expected = format!("-ERR the {what} {BAD_ID}");
        assert_eq!(text(&world.run(&line)), expected, "{line}");
    }
}

#[test]
fn what_plain_commands_spoiled_is_told() {
    let mut world = world();
    world.run("SEATS.RESERVE 1 A-1 b1 u1 SEATS 1-1");
    world.check(&[
        ("HSET section_stats:1:A-1 available 5", ":0"),
        ("HSET seat_meta:1:A-1:2 3 me", ":1"),
        ("HSET seat_meta:1:A-1:2 9 me", ":1"),
        (
            "BITFIELD seats_bf:1:A-1 SET u2 #1 2 SET u2 #11 3",
            "[:0 :0]",
        ),
        ("HSET buyer_seats:1 u2 7", ":1"),
        ("HSET booking:b1 status SOLD", ":0"),
        (
            "SEATS.CHECK 1",
            "[section A-1: 9 seats of the map are available, but 5 are counted \
             section A-1: 1 seats of the map are sold, but 0 are counted \
             section A-1: seat 1-2 is sold without owner \
             section A-1: seat 2-3 is available, but has an owner \
             section A-1: 2-9 has an owner, but is no seat \
             section A-1: seat 3-4 is blocked \
             booking b1 does not agree with the seats it has \
             event 1: 9 seats of the sections are available, but 11 are counted \
             event 1: 1 seats of the sections are sold, but 0 are counted \
             event 1: buyer u2 has 0 seats, but 7 are counted]",
        ),
        (
            "SEATS.RESERVE 1 A-1 b2 u1 SEATS 3-4",
            "-SEATTAKEN seat 3-4 is blocked",
        ),
        ("HSET booking:b1 status RESERVED", ":0"),
        ("HDEL seat_meta:1:A-1:1 1", ":1"),
        (
            "SEATS.FINALIZE b1 u1",
            "-SEATSTATE seat 1-1 is not reserved by booking b1",
        ),
        ("HSET section_stats:1:A-1 available many", ":0"),
        (
            "SEATS.RESERVE 1 A-1 b2 u1 BEST 1",
            "-ERR field available under section_stats:1:A-1 is not as it should be",
        ),
        ("SET section_config:1:A-1 x", "+OK"),
        (
            "SEATS.RESERVE 1 A-1 b2 u1 BEST 1",
            "-WRONGTYPE Operation against a key holding the wrong kind of value",
        ),
    ]);
}

#[test]
fn bookings_that_have_none_of_their_seats_are_told() {
    let mut world = world();
    for line in [
        "SEATS.INIT 1 B ROWS 1 SEATS 2",
        "SEATS.INIT 2 B ROWS 1 SEATS 2",
        "SEATS.RESERVE 1 A-1 b1 u1 SEATS 1-1",
        "SEATS.RESERVE 1 A-1 b2 u1 SEATS 1-2",
        "SEATS.RESERVE 1 B b3 u1 SEATS 1-1",
        "SEATS.RESERVE 2 B b4 u1 SEATS 1-1",
        // The seat of this one has another owner, that of the next one has none.
        "COPY booking:b1 booking:robbed",
        "COPY booking:b2 booking:free",
        "SEATS.RELEASE b2 u1",
        "SEATS.FINALIZE b3 u1",
        "COPY booking:b3 booking:sold",
        // These say nothing of seats of event 1.
        "COPY booking:b2 booking:released",
        "COPY booking:b4 booking:of-event-2",
        "COPY booking:b1 t:booking:of-prefix",
        "SET booking:string x",
        "HSET booking:half status RESERVED",
    ] {
        let reply = text(&world.run(line));
        assert!(!reply.starts_with('-'), "{line}: {reply}");
    }
    let free = "booking free is reserved, but has no seats";
    let robbed = "booking robbed is reserved, but has no seats";
    let sold = "booking sold is sold, but has no seats";
    let of_event_2 = "booking of-event-2 is reserved, but has no seats";
    for (place, expected) in [
        ("1", vec![free, robbed, sold]),
        ("1 A-1", vec![free, robbed]),
        ("1 B", vec![sold]),
        ("2", vec![of_event_2]),
    ] {
        let Reply::Array(told) = world.run(&format!("SEATS.CHECK {place}")) else {
            panic!("no list of what is wrong with {place}");
        };
        let mut told: Vec<String> = told.iter().map(text).collect();
        told.sort();
        assert_eq!(told, expected, "{place}");
    }
}
