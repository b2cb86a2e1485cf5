//! Holds: they end once, by the command or the timer that comes first.

use trefoil_state::testing::{World, text};

use super::{NOW, assert_sound, new_world, types, world};

const RESERVE: &str = "SEATS.RESERVE 1 A-1 b1 u1 SEATS 1-1 1-2 HOLD 10";

/// Returns a world in which booking b1 has two seats for ten seconds.
fn held() -> World {
    let mut world = world();
    world.run(RESERVE);
    world
}

fn n_of(world: &World, event_type: &str) -> usize {
    types(world)
        .iter()
        .filter(|found| **found == event_type)
        .count()
}

#[test]
fn seats_return_when_their_hold_has_run_out() {
    let mut world = held();
    world.moment.now = NOW + 9_999;
    world.clean();
    world.check(&[("HGET booking:b1 status", "RESERVED")]);
    world.moment.now = NOW + 10_000;
    world.clean();
    world.clean();
    world.check(&[
        ("HGET booking:b1 status", "EXPIRED"),
        (
            "SEATS.MAP 1 A-1 ROW 1",
            "%[rows=:3 seats=[[:0 :0 :0 :0]] seats_per_row=:4]",
        ),
        ("EXISTS seat_meta:1:A-1:1 buyer_seats:1", ":0"),
        ("TTL booking:b1", ":2592000"),
        (
            "SEATS.FINALIZE b1 u1",
            "-EXPIRED the hold of booking b1 has run out",
        ),
    ]);
    assert_eq!(
        types(&world),
        ["SectionOpened", "SeatsReserved", "HoldExpired"]
    );
    assert_sound(&mut world, "1");
}

/// What happens to the held booking, and what becomes of it. Each step is the number of milliseconds
/// after the reservation, what happens then, and what the answer to that contains.
const RACES: &[(&str, &str)] = &[
    (
        "9999 sell SOLD, 10000 clean, 10001 release SEATSTATE",
        "SOLD",
    ),
    (
        "9999 sell SOLD, 9999 release SEATSTATE, 10000 clean",
        "SOLD",
    ),
    (
        "9999 release RELEASED, 10000 clean, 10001 sell SEATSTATE",
        "RELEASED",
    ),
    (
        "9999 release RELEASED, 9999 sell SEATSTATE, 10000 clean",
        "RELEASED",
    ),
    (
        "10000 clean, 10000 sell EXPIRED, 10000 release EXPIRED",
        "EXPIRED",
    ),
    (
        "10000 clean, 10000 release EXPIRED, 10000 sell EXPIRED",
        "EXPIRED",
    ),
    // The time has come, but nothing has been cleaned yet.
    (
        "10000 sell EXPIRED, 10000 release EXPIRED, 10000 clean",
        "EXPIRED",
    ),
    (
        "10000 release EXPIRED, 10000 sell EXPIRED, 10000 clean",
        "EXPIRED",
    ),
    // The first answer is repeated, whatever has become of the booking.
    (
        "10000 clean, 10000 reserve RESERVED, 10000 sell EXPIRED",
        "EXPIRED",
    ),
];

#[test]
fn selling_releasing_and_expiring_race_in_every_order() {
    for (steps, status) in RACES {
        let mut world = held();
        for step in steps.split(", ") {
            let words: Vec<&str> = step.split(' ').collect();
            world.moment.now = NOW + words[0].parse::<u64>().unwrap();
            let line = match words[1] {
                "sell" => "SEATS.FINALIZE b1 u1",
                "release" => "SEATS.RELEASE b1 u1",
                "reserve" => RESERVE,
                _ => {
                    world.clean();
                    continue;
                }
            };
            let answer = text(&world.run(line));
            assert!(answer.contains(words[2]), "{steps}: {answer}");
        }
        let found = text(&world.run("HGET booking:b1 status"));
        assert_eq!(found, *status, "{steps}");
        assert_eq!(world.events.len(), 3, "{steps}: {:?}", types(&world));
        assert_sound(&mut world, "1");
        let owned = if found == "SOLD" { "%[u1=2]" } else { "%[]" };
        world.check(&[("HGETALL buyer_seats:1", owned)]);
    }
}

#[test]
fn nobody_is_refused_a_seat_whose_hold_has_run_out() {
    for wanted in ["SEATS 1-1 1-2", "BEST 12 MAX 12"] {
        let mut world = held();
        let request = format!("SEATS.RESERVE 1 A-1 b2 u2 {wanted}");
        assert!(text(&world.run(&request)).starts_with('-'));
        world.moment.now = NOW + 10_000;
        let answer = text(&world.run(&request));
        assert!(answer.contains("position=:3"), "{answer}");
        assert_eq!(types(&world)[2..], ["HoldExpired", "SeatsReserved"]);
        world.clean();
        assert_eq!(n_of(&world, "HoldExpired"), 1);
        assert_sound(&mut world, "1");
    }
}

#[test]
fn a_section_may_shrink_when_the_last_hold_has_run_out() {
    let mut world = held();
    let shrink = "SEATS.INIT 1 A-1 ROWS 1 SEATS 3";
    assert!(text(&world.run(shrink)).starts_with("-SEATSTATE"));
    world.moment.now = NOW + 10_000;
    assert!(text(&world.run(shrink)).contains("rows=:1"));
    assert_eq!(types(&world)[2..], ["HoldExpired", "SectionOpened"]);
    assert_sound(&mut world, "1");
}

#[test]
fn many_holds_end_a_part_at_a_time() {
    let mut world = new_world();
    world.moment.now = NOW;
    world.run("SEATS.INIT 1 A ROWS 10 SEATS 20");
    // Other things expire as well, before, between and after.
    for n in 0..200 {
        world.run(&format!("SET k{n} v PX {}", 1 + n * 7));
        world.run(&format!(
            "SEATS.RESERVE 1 A b{n} u BEST 1 HOLDMS {}",
            100 + n
        ));
    }
    world.moment.now = NOW + 1_000;
    world.run("SEATS.RESERVE 1 A c1 u SEATS 1-1");
    assert_eq!(n_of(&world, "HoldExpired"), 64);
    assert_sound(&mut world, "1");
    world.run("SEATS.RESERVE 1 A c2 u BEST 1");
    assert_eq!(n_of(&world, "HoldExpired"), 128);
    world.clean();
    assert_eq!(n_of(&world, "HoldExpired"), 200);
    world.run("SEATS.RESERVE 1 A c3 u BEST 1 HOLDMS 5");
    world.moment.now = NOW + 1_005;
    world.run("SEATS.RESERVE 1 A c4 u BEST 1");
    assert_eq!(n_of(&world, "HoldExpired"), 201);
    assert_sound(&mut world, "1");
}

#[test]
fn a_hold_that_plain_commands_spoiled_is_let_go() {
    for spoil in [
        "DEL booking:b1",
        "SET booking:b1 x",
        "HSET booking:b1 seats none",
        "HSET booking:b1 expires_at 5",
        "SET section_stats:1:A-1 x",
        "HSET event_stats:1 reserved x",
        "SET seats_bf:1:A-1 x",
        "DEL seat_meta:1:A-1:1",
        "SET seat_meta:1:A-1:1 x",
        "DEL section_config:1:A-1",
        "SET buyer_seats:1 x",
        "FLUSHDB",
    ] {
        let mut world = held();
        assert!(!text(&world.run(spoil)).starts_with('-'), "{spoil}");
        world.moment.now = NOW + 10_000;
        world.clean();
        world.clean();
        assert_eq!(n_of(&world, "HoldExpired"), 0, "{spoil}");
        let holds = world
            .entries
            .keys()
            .filter(|name| name.ends_with(b"\x02booking:b1"));
        assert_eq!(holds.count(), 0, "{spoil}");
    }
}

#[test]
fn a_booking_is_remembered_for_thirty_days() {
    const DAY: u64 = 24 * 60 * 60 * 1000;
    let mut world = held();
    world.run("SEATS.RESERVE 1 A-1 b2 u2 SEATS 2-1");
    world.run("SEATS.FINALIZE b1 u1");
    world.moment.now = NOW + 30 * DAY - 1;
    world.clean();
    assert!(text(&world.run(RESERVE)).contains("RESERVED"));
    world.moment.now = NOW + 30 * DAY;
    world.clean();
    world.check(&[
        ("SEATS.BOOKING b1", "_"),
        (RESERVE, "-SEATTAKEN seat 1-1 is sold"),
        // As long as seats are reserved, their booking is there.
        ("HGET booking:b2 status", "RESERVED"),
        ("SEATS.CHECK 1", "[]"),
    ]);
}
