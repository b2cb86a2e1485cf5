//! `seats`: sections and bookings.

use serde_json::json;

use super::{Cli, errors, text};
use crate::harness::{Server, Value};

/// A server with a section of three rows of four seats.
fn venue() -> (Server, Cli) {
    let server = Server::in_test_mode();
    let cli = Cli::of(&server);
    let size = ["--rows", "3", "--seats", "4", "--price", "50"];
    cli.ok(&[&["seats", "init", "concert", "A-1"][..], &size].concat());
    (server, cli)
}

/// Runs `trefoil seats` with words that are separated by spaces.
#[track_caller]
fn seats(cli: &Cli, line: &str) -> String {
    cli.ok(&words(line))
}

fn words(line: &str) -> Vec<&str> {
    ["seats"].into_iter().chain(line.split(' ')).collect()
}

#[test]
fn seats_are_reserved_sold_released_and_drawn() {
    let (_server, cli) = venue();
    let table = seats(&cli, "reserve concert A-1 b1 ada 1-1 1-2 --hold 300");
    let head = "BOOKING STATUS SEATS PRICE HELD UNTIL AVAILABLE";
    let cells: Vec<&str> = table.split_whitespace().collect();
    let (told, row) = cells.split_at(head.split(' ').count());
    assert_eq!(told.join(" "), head);
    let [booking, status, first, second, price, until, available] = row[..] else {
        panic!("{table}");
    };
    assert_eq!(
        [booking, status, first, second],
        ["b1", "RESERVED", "1-1", "1-2"]
    );
    assert_eq!([price, available], ["100", "10"]);
    assert!(until.starts_with("20") && until.ends_with('Z'), "{table}");
    assert!(seats(&cli, "reserve concert A-1 b2 grace --best 3").contains("2-1 2-2 2-3"));
    assert_eq!(
        seats(&cli, "map concert A-1"),
        "1  rr..\n2  rrr.\n3  ....\n"
    );
    assert!(seats(&cli, "finalize b1 ada").contains("b1       SOLD    1-1 1-2"));
    assert_eq!(
        seats(&cli, "map concert A-1"),
        "1  ##..\n2  rrr.\n3  ....\n"
    );
    assert_eq!(seats(&cli, "map concert A-1 --row 2"), "2  rrr.\n");
    assert_eq!(
        seats(&cli, "map concert A-1 --range 1-2 2-4"),
        "1  #..\n2  rr.\n"
    );
    let owners = seats(&cli, "map concert A-1 --range 1-2 2-2 --owners");
    let owners: Vec<&str> = owners.lines().skip(1).map(str::trim_end).collect();
    assert_eq!(
        owners,
        ["1-2   sold      ada    b1", "2-2   reserved  grace  b2"]
    );
    assert!(seats(&cli, "release b2 grace").contains("RELEASED"));
    assert_eq!(seats(&cli, "map concert A-1 --row 2"), "2  ....\n");
    assert_eq!(seats(&cli, "sections concert"), "A-1\n");
    assert!(
        seats(&cli, "stats concert").contains("concert  (all)    10         0         2     12")
    );
    assert!(seats(&cli, "stats concert A-1").contains("concert  A-1 "));
    let booking = seats(&cli, "booking b1");
    assert!(
        booking.contains("b1       SOLD    ada    concert  A-1      1-1 1-2  100"),
        "{booking}"
    );
    assert_eq!(seats(&cli, "check concert"), "");
}

#[test]
fn programs_get_json() {
    let (_server, cli) = venue();
    let value = |line: &str| cli.values(&words(line)).remove(0);
    assert_eq!(
        value("init concert B-1 --rows 1 --seats 2 --max-per-booking 2 --max-per-buyer 3"),
        json!({"event": "concert", "section": "B-1", "rows": 1, "seatsPerRow": 2, "price": 0,
            "maxPerBooking": 2, "maxPerBuyer": 3, "created": 1})
    );
    assert_eq!(
        value("reserve concert B-1 b1 ada --best 2 --max 2"),
        json!({"booking": "b1", "status": "RESERVED", "seats": ["1-1", "1-2"], "totalPrice": 0,
            "expiresAt": null, "position": 3,
            "stats": {"available": 0, "reserved": 2, "sold": 0, "total": 2}})
    );
    assert_eq!(
        value("map concert B-1"),
        json!({"rows": 1, "seatsPerRow": 2, "seats": [[1, 1]]})
    );
    assert_eq!(
        value("map concert B-1 --owners")["seats"],
        json!([[[1, "ada", "b1"], [1, "ada", "b1"]]])
    );
    assert_eq!(
        value("finalize b1 ada"),
        json!({"booking": "b1", "status": "SOLD", "seats": ["1-1", "1-2"], "position": 4})
    );
    let booking = value("booking b1");
    assert_eq!(
        (&booking["status"], &booking["lastPosition"]),
        (&json!("SOLD"), &json!(4))
    );
    assert_eq!(value("stats concert")["sold"], 2);
    let sections = cli.values(&words("sections concert"));
    assert_eq!(
        sections,
        [json!({"section": "A-1"}), json!({"section": "B-1"})]
    );
}

#[test]
fn a_prefix_is_a_venue_of_its_own() {
    let (_server, cli) = venue();
    seats(&cli, "init concert A-1 --rows 1 --seats 1 --prefix test:");
    seats(
        &cli,
        "reserve concert A-1 b1 ada 1-1 --prefix test: --hold-ms 60000",
    );
    assert_eq!(seats(&cli, "map concert A-1 --prefix test:"), "1  r\n");
    assert_eq!(seats(&cli, "map concert A-1 --row 1"), "1  ....\n");
    cli.fails(4, &words("booking b1"));
    seats(&cli, "release b1 ada --prefix test:");
}

#[test]
fn what_is_refused_says_why_and_has_its_exit_code() {
    let (_server, cli) = venue();
    seats(&cli, "reserve concert A-1 b1 ada 1-1");
    for (line, code, expected) in [
        (
            "reserve concert A-1 b2 grace 1-1",
            3,
            "seat 1-1 is reserved (SEATTAKEN)",
        ),
        ("reserve concert A-1 b2 grace --best 5", 3, "(LIMIT)"),
        (
            "finalize b1 grace",
            3,
            "booking b1 is not one of buyer grace (NOTOWNER)",
        ),
        ("finalize b9 ada", 4, "there is no booking b9 (NOBOOKING)"),
        ("booking b9", 4, "there is no booking b9"),
        ("map concert Z-9", 4, "(NOSECTION)"),
        ("reserve concert A-1 b2 grace 9-9", 1, "(BADSEAT)"),
        ("reserve concert A-1 b2 grace", 2, ""),
        ("reserve concert A-1 b2 grace 1-2 --best 1", 2, ""),
        (
            "reserve concert A-1 b2 grace 1-2 --hold 1 --hold-ms 1",
            2,
            "",
        ),
        ("map concert A-1 --row 1 --range 1-1 1-2", 2, ""),
        ("map concert A-1 --range 1-1", 2, ""),
        ("init concert A-1 --rows 3", 2, ""),
    ] {
        let told = cli.fails(code, &words(line));
        assert!(told.contains(expected), "{line}: {told}");
    }
}

#[test]
fn what_does_not_agree_is_told_and_fails() {
    let (server, cli) = venue();
    seats(&cli, "check concert A-1");
    let changed = server.resp().line("HSET section_stats:concert:A-1 sold 7");
    assert_eq!(changed, Value::Integer(0));
    for line in ["check concert", "check concert A-1"] {
        let output = cli.run(&words(line));
        assert_eq!(output.status.code(), Some(1), "{}", errors(&output));
        assert!(
            text(&output).contains("section A-1: 0 seats of the map are sold, but 7 are counted")
        );
        assert_eq!(errors(&output), "error: 1 things do not agree\n");
    }
}
