//! What the commands answer, and what plain commands then read.

use bytes::Bytes;
use trefoil_state::Reply;
use trefoil_state::testing::{World, text};

use super::{NOW, assert_sound, new_world, types, world};

#[test]
fn seats_are_reserved_sold_and_released() {
    let mut world = world();
    world.check(&[
        (
            "SEATS.RESERVE 1 A-1 b1 u1 SEATS 1-1 1-2 HOLD 60",
            "%[booking=b1 expires_at=:1060000 position=:1 seats=[1-1 1-2] \
             stats=%[available=:10 reserved=:2 sold=:0 total=:12] status=RESERVED \
             total_price=:100]",
        ),
        (
            "SEATS.FINALIZE b1 u1",
            "%[booking=b1 position=:2 seats=[1-1 1-2] status=SOLD]",
        ),
        (
            "seats.reserve 1 A-1 b2 u2 best 3",
            "%[booking=b2 expires_at=_ position=:3 seats=[2-1 2-2 2-3] \
             stats=%[available=:7 reserved=:3 sold=:2 total=:12] status=RESERVED \
             total_price=:150]",
        ),
        (
            "SEATS.RELEASE b2 u2",
            "%[booking=b2 position=:4 seats=[2-1 2-2 2-3] status=RELEASED]",
        ),
        (
            "SEATS.STATS 1 A-1",
            "%[available=:10 event=1 reserved=:0 section=A-1 sold=:2 total=:12 updated_at=:1000]",
        ),
        (
            "SEATS.STATS 1",
            "%[available=:10 event=1 reserved=:0 sold=:2 total=:12 updated_at=:1000]",
        ),
        (
            "SEATS.BOOKING b1",
            "%[booking=b1 buyer=u1 created_at=:1000000 event=1 expires_at=:1060000 \
             last_position=:2 mode=manual position=:1 seats=[1-1 1-2] section=A-1 status=SOLD \
             total_price=:100 updated_at=:1000000]",
        ),
        ("SEATS.BOOKING b3", "_"),
    ]);
    let expected = [
        "SectionOpened",
        "SeatsReserved",
        "SeatsSold",
        "SeatsReserved",
        "SeatsReleased",
    ];
    assert_eq!(types(&world), expected);
    assert_sound(&mut world, "1");
}

#[test]
fn plain_commands_read_the_same_data() {
    let mut world = world();
    world.run("SEATS.RESERVE 1 A-1 b1 u1 SEATS 1-1 2-2");
    world.run("SEATS.RESERVE 1 A-1 b2 u2 SEATS 1-4");
    world.run("SEATS.FINALIZE b2 u2");
    world.check(&[
        ("STRLEN seats_bf:1:A-1", ":3"),
        (
            "BITFIELD seats_bf:1:A-1 GET u2 #0 GET u2 #1 GET u2 #3 GET u2 #5",
            "[:1 :0 :2 :1]",
        ),
        (
            "HGETALL section_config:1:A-1",
            "%[max_per_booking=4 max_per_buyer=0 price=50 rows=3 seats_per_row=4]",
        ),
        (
            "HGETALL section_stats:1:A-1",
            "%[available=9 event_id=1 reserved=2 section_id=A-1 sold=1 total=12 updated_at=1000]",
        ),
        (
            "HGETALL event_stats:1",
            "%[available=9 event_id=1 reserved=2 sold=1 total=12 updated_at=1000]",
        ),
        (
            "HGET seat_meta:1:A-1:1 1",
            r#"{"buyer_id":"u1","booking_id":"b1","price":50,"reserved_at":1000000}"#,
        ),
        ("HKEYS seat_meta:1:A-1:2", "[2]"),
        ("ZRANGE event_sections:1 0 -1 WITHSCORES", "[A-1=,0]"),
        ("HGETALL buyer_seats:1", "%[u1=2 u2=1]"),
        (
            "HMGET booking:b1 status seats buyer_id",
            r#"[RESERVED ["1-1","2-2"] u1]"#,
        ),
        ("TTL booking:b1", ":-1"),
        ("TTL booking:b2", ":2592000"),
        (
            "SEATS.RELEASE b1 u1",
            "%[booking=b1 position=:4 seats=[1-1 2-2] status=RELEASED]",
        ),
        ("EXISTS seat_meta:1:A-1:2", ":0"),
        ("HGETALL buyer_seats:1", "%[u2=1]"),
    ]);
    assert_sound(&mut world, "1");
}

#[test]
fn events_say_everything() {
    let mut world = world();
    world.run("SEATS.RESERVE 1 A-1 b1 u1 SEATS 1-1 HOLDMS 500 PREFIX t:");
    world.run("SEATS.INIT 1 A-1 ROWS 1 SEATS 2 PREFIX t:");
    world.run("SEATS.RESERVE 1 A-1 b1 u1 SEATS 1-1 HOLDMS 500 PREFIX t:");
    let [opened, prefixed, reserved] = world.events.as_slice() else {
        panic!("{:?}", world.events);
    };
    assert_eq!(opened.stream.as_deref(), Some("seats-1+A-1"));
    assert_eq!(opened.tags, ["event:1", "section:1/A-1"]);
    let data = |event: &trefoil_core::NewEvent| text(&Reply::Bulk(event.data.bytes().clone()));
    assert_eq!(
        data(opened),
        r#"{"event":"1","section":"A-1","rows":3,"seats_per_row":4,"price":50,"max_per_booking":4,"max_per_buyer":0,"created":true,"at":1000000}"#
    );
    assert_eq!(prefixed.stream.as_deref(), Some("seats-t:1+A-1"));
    assert_eq!(
        reserved.tags,
        ["event:t:1", "section:t:1/A-1", "booking:t:b1", "buyer:t:u1"]
    );
    assert_eq!(
        data(reserved),
        r#"{"prefix":"t:","event":"1","section":"A-1","booking":"b1","buyer":"u1","seats":["1-1"],"price":0,"total_price":0,"expires_at":1000500,"at":1000000}"#
    );
}

#[test]
fn a_section_is_opened_once_and_may_grow() {
    let mut world = world();
    let same = "%[created=:0 event=1 max_per_booking=:4 max_per_buyer=:0 price=:50 rows=:3 \
                seats_per_row=:4 section=A-1]";
    world.check(&[
        ("SEATS.INIT 1 A-1 ROWS 3 SEATS 4 PRICE 50", same),
        ("SEATS.INIT 1 A-1 SEATS 4 ROWS 3", same),
    ]);
    assert_eq!(world.events.len(), 1);
    assert!(world.touched.is_empty());
    // While every seat is available, everything may change.
    world.check(&[
        (
            "SEATS.INIT 1 A-1 ROWS 2 SEATS 5 PRICE 60 MAXBOOKING 5 MAXBUYER 6",
            "%[created=:0 event=1 max_per_booking=:5 max_per_buyer=:6 price=:60 rows=:2 \
             seats_per_row=:5 section=A-1]",
        ),
        ("STRLEN seats_bf:1:A-1", ":3"),
    ]);
    world.run("SEATS.RESERVE 1 A-1 b1 u1 SEATS 2-5");
    let in_use = "-SEATSTATE seats of the section are reserved or sold: it can get more rows, but \
                  not fewer, and no other number of seats per row";
    world.check(&[
        ("SEATS.INIT 1 A-1 ROWS 1 SEATS 5", in_use),
        ("SEATS.INIT 1 A-1 ROWS 2 SEATS 6", in_use),
        (
            "SEATS.INIT 1 A-1 ROWS 4 SEATS 5 PRICE 70",
            "%[created=:0 event=1 max_per_booking=:5 max_per_buyer=:6 price=:70 rows=:4 \
             seats_per_row=:5 section=A-1]",
        ),
        ("STRLEN seats_bf:1:A-1", ":5"),
        (
            "SEATS.INIT 1 B-2 ROWS 1 SEATS 1",
            "%[created=:1 event=1 max_per_booking=:4 max_per_buyer=:0 price=:0 rows=:1 \
             seats_per_row=:1 section=B-2]",
        ),
        ("SEATS.SECTIONS 1", "[A-1 B-2]"),
        ("SEATS.SECTIONS 2", "[]"),
        (
            "SEATS.STATS 1",
            "%[available=:20 event=1 reserved=:1 sold=:0 total=:21 updated_at=:1000]",
        ),
    ]);
    assert_sound(&mut world, "1");
}

#[test]
fn the_map_shows_seats_and_owners() {
    let mut world = world();
    world.run("SEATS.RESERVE 1 A-1 b1 u1 SEATS 1-2 3-4");
    world.run("SEATS.FINALIZE b1 u1");
    world.run("SEATS.RESERVE 1 A-1 b2 u2 SEATS 2-1");
    let map = |seats: &str| format!("%[rows=:3 seats={seats} seats_per_row=:4]");
    let row = "-BADSEAT there is no seat 4-1: the section has 3 rows of 4 seats";
    let corner = "-BADSEAT there is no seat 3-5: the section has 3 rows of 4 seats";
    world.check(&[
        (
            "SEATS.MAP 1 A-1",
            &map("[[:0 :2 :0 :0] [:1 :0 :0 :0] [:0 :0 :0 :2]]"),
        ),
        ("SEATS.MAP 1 A-1 ROW 3", &map("[[:0 :0 :0 :2]]")),
        ("SEATS.MAP 1 A-1 RANGE 1-2 2-3", &map("[[:2 :0] [:0 :0]]")),
        (
            "SEATS.MAP 1 A-1 RANGE 1-1 2-2 OWNERS",
            &map("[[[:0 _ _] [:2 u1 b1]] [[:1 u2 b2] [:0 _ _]]]"),
        ),
        ("SEATS.MAP 1 A-1 ROW 4", row),
        ("SEATS.MAP 1 A-1 RANGE 1-1 3-5", corner),
        (
            "SEATS.MAP 1 A-1 RANGE 2-1 1-1",
            "-BADSEAT the range from 2-1 to 1-1 is empty",
        ),
        (
            "SEATS.MAP 1 A-1 ROW 0",
            "-ERR ROW must be a number from 1 to 1000000",
        ),
        (
            "SEATS.MAP 1 A-2",
            "-NOSECTION there is no section A-2 of event 1",
        ),
        ("SEATS.MAP 1 A-1 X", "-ERR syntax error"),
    ]);
}

/// Returns a reply as the bytes that are kept of it.
fn bytes(reply: &Reply) -> Vec<u8> {
    let mut bytes = Vec::new();
    reply.encode(&mut bytes);
    bytes
}

#[test]
fn a_repeated_request_gets_the_identical_answer() {
    let mut world = world();
    let requests = [
        "SEATS.RESERVE 1 A-1 b1 u1 SEATS 1-2 1-1 HOLD 60",
        "SEATS.RESERVE 1 A-1 b2 u2 BEST 2",
        "SEATS.RESERVE 1 A-1 b3 u3 BEST 1 HOLDMS 10",
    ];
    let first = requests.map(|request| bytes(&world.run(request)));
    let again = |world: &mut World| {
        let n_events = world.events.len();
        for (request, first) in requests.iter().zip(&first) {
            assert_eq!(bytes(&world.run(request)), *first, "{request}");
            assert!(world.touched.is_empty(), "{:?}", world.touched);
        }
        assert_eq!(world.events.len(), n_events);
    };
    again(&mut world);
    let settled = ["SEATS.FINALIZE b1 u1", "SEATS.RELEASE b2 u2"];
    let answers = settled.map(|line| bytes(&world.run(line)));
    world.moment.now = NOW + 11;
    world.clean();
    again(&mut world);
    let n_events = world.events.len();
    for (line, answer) in settled.iter().zip(&answers) {
        assert_eq!(bytes(&world.run(line)), *answer);
    }
    assert_eq!(world.events.len(), n_events);
    assert_sound(&mut world, "1");
}

#[test]
fn prefixes_keep_the_same_ids_apart() {
    let mut world = world();
    world.check(&[
        (
            "SEATS.STATS 1 A-1 PREFIX test_",
            "-NOSECTION there is no section A-1 of event 1",
        ),
        (
            "SEATS.INIT 1 A-1 ROWS 1 SEATS 1 PREFIX test_",
            "%[created=:1 event=1 max_per_booking=:4 max_per_buyer=:0 price=:0 rows=:1 \
             seats_per_row=:1 section=A-1]",
        ),
        (
            "EXISTS test_section_config:1:A-1 test_seats_bf:1:A-1 test_event_sections:1",
            ":3",
        ),
        (
            "SEATS.RESERVE 1 A-1 b1 u1 BEST 1 HOLDMS 10 PREFIX test_",
            "%[booking=b1 expires_at=:1000010 position=:2 seats=[1-1] \
             stats=%[available=:0 reserved=:1 sold=:0 total=:1] status=RESERVED total_price=:0]",
        ),
        ("SEATS.BOOKING b1", "_"),
        ("SEATS.FINALIZE b1 u1", "-NOBOOKING there is no booking b1"),
        ("SEATS.CHECK 1 PREFIX test_", "[]"),
        (
            "SEATS.MAP 1 A-1 PREFIX test_",
            "%[rows=:1 seats=[[:1]] seats_per_row=:1]",
        ),
        ("SEATS.SECTIONS 1 PREFIX other", "[]"),
    ]);
    world.moment.now = NOW + 10;
    world.clean();
    assert_eq!(types(&world).last(), Some(&"HoldExpired"));
    world.check(&[
        ("HGET test_booking:b1 status", "EXPIRED"),
        ("SEATS.CHECK 1 PREFIX test_", "[]"),
        // A word that could be the option is an id where one is needed.
        (
            "SEATS.FINALIZE PREFIX u1",
            "-NOBOOKING there is no booking PREFIX",
        ),
        (
            "SEATS.STATS PREFIX",
            "-NOSECTION event PREFIX has no sections",
        ),
    ]);
    assert_sound(&mut world, "1");
}

#[test]
fn a_large_section_works_as_a_small_one() {
    let mut world = new_world();
    world.run("SEATS.INIT 1 A ROWS 1000 SEATS 1000");
    world.check(&[
        ("STRLEN seats_bf:1:A", ":250000"),
        (
            "SEATS.RESERVE 1 A b1 u1 SEATS 1000-1000 500-1",
            "%[booking=b1 expires_at=_ position=:1 seats=[1000-1000 500-1] \
             stats=%[available=:999998 reserved=:2 sold=:0 total=:1000000] status=RESERVED \
             total_price=:0]",
        ),
        ("GETBIT seats_bf:1:A 1999999", ":1"),
        (
            "SEATS.MAP 1 A RANGE 1000-999 1000-1000",
            "%[rows=:1000 seats=[[:0 :1]] seats_per_row=:1000]",
        ),
        ("SEATS.CHECK 1", "[]"),
    ]);
    // A map in chunks takes only as much room as has seats that are not available.
    let n_bytes: usize = world.entries.values().map(Bytes::len).sum();
    assert!(n_bytes < 20_000, "{n_bytes}");
}
