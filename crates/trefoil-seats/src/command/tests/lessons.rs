//! Mistakes that ticketing systems have made with this model of data, one test each.

use trefoil_state::testing::{World, text};

use super::{assert_sound, new_world, world};

#[test]
fn selling_writes_sold_and_not_reserved() {
    let mut world = world();
    world.run("SEATS.RESERVE 1 A-1 b1 u1 SEATS 1-1");
    world.run("SEATS.FINALIZE b1 u1");
    world.check(&[
        ("BITFIELD seats_bf:1:A-1 GET u2 #0", "[:2]"),
        ("GETBIT seats_bf:1:A-1 0", ":1"),
        ("GETBIT seats_bf:1:A-1 1", ":0"),
    ]);
}

#[test]
fn every_key_has_the_prefix() {
    let mut world = new_world();
    world.run("SEATS.INIT 1 A-1 ROWS 3 SEATS 4 PREFIX p_");
    world.run("SEATS.RESERVE 1 A-1 b1 u1 BEST 1 PREFIX p_");
    let count = |world: &mut World, line| text(&world.run(line)).split(' ').count();
    assert_eq!(count(&mut world, "KEYS *"), 8);
    assert_eq!(count(&mut world, "KEYS p_*"), 8);
}

#[test]
fn rows_are_as_wide_as_the_section_says() {
    let mut world = new_world();
    world.run("SEATS.INIT 1 A ROWS 2 SEATS 7");
    world.run("SEATS.RESERVE 1 A b1 u1 SEATS 2-1");
    world.check(&[("BITFIELD seats_bf:1:A GET u2 #7 GET u2 #20", "[:1 :0]")]);
}

#[test]
fn only_the_owner_releases_seats() {
    let mut world = world();
    world.run("SEATS.RESERVE 1 A-1 b1 u1 SEATS 1-1");
    world.check(&[
        (
            "SEATS.RELEASE b1 u2",
            "-NOTOWNER booking b1 is not one of buyer u2",
        ),
        ("BITFIELD seats_bf:1:A-1 GET u2 #0", "[:1]"),
    ]);
}

#[test]
fn a_booking_frees_only_its_own_seats() {
    let mut world = world();
    world.run("SEATS.RESERVE 1 A-1 b1 u1 SEATS 1-1");
    world.run("SEATS.RELEASE b1 u1");
    world.run("SEATS.RESERVE 1 A-1 b2 u2 SEATS 1-1");
    world.run("SEATS.RELEASE b1 u1");
    world.check(&[
        ("BITFIELD seats_bf:1:A-1 GET u2 #0", "[:1]"),
        ("HGET booking:b2 status", "RESERVED"),
    ]);
    assert_sound(&mut world, "1");
}

#[test]
fn a_reservation_is_all_or_nothing() {
    let mut world = world();
    world.run("SEATS.RESERVE 1 A-1 b1 u1 SEATS 1-3");
    let before = world.entries.clone();
    world.check(&[(
        "SEATS.RESERVE 1 A-1 b2 u2 SEATS 1-1 1-2 1-3",
        "-SEATTAKEN seat 1-3 is reserved",
    )]);
    assert_eq!(world.entries, before);
}

#[test]
fn repeated_releases_do_not_shift_the_statistics() {
    let mut world = world();
    world.run("SEATS.RESERVE 1 A-1 b1 u1 SEATS 1-1");
    for _ in 0..3 {
        world.run("SEATS.RELEASE b1 u1");
    }
    world.check(&[("HMGET section_stats:1:A-1 available reserved", "[12 0]")]);
    assert_sound(&mut world, "1");
}

#[test]
fn seats_outside_of_the_grid_are_no_seats_of_another_row() {
    let mut world = world();
    for seat in ["1-5", "4-1", "0-1", "1-0", "-1-1", "3-4294967297"] {
        let answer = text(&world.run(&format!("SEATS.RESERVE 1 A-1 b1 u1 SEATS {seat}")));
        assert!(answer.starts_with("-BADSEAT"), "{seat}: {answer}");
    }
    world.check(&[
        ("STRLEN seats_bf:1:A-1", ":3"),
        ("BITCOUNT seats_bf:1:A-1", ":0"),
    ]);
}

#[test]
fn a_listing_is_right_for_every_seat() {
    let mut world = world();
    // Sold seats make bytes from 128 on, which text cannot show.
    for (number, seat) in ["1-1", "1-3", "2-2", "2-4", "3-1", "3-4"]
        .iter()
        .enumerate()
    {
        world.run(&format!("SEATS.RESERVE 1 A-1 b{number} u SEATS {seat}"));
        if number % 2 == 0 {
            world.run(&format!("SEATS.FINALIZE b{number} u"));
        }
    }
    world.check(&[(
        "SEATS.MAP 1 A-1",
        "%[rows=:3 seats=[[:2 :0 :1 :0] [:0 :2 :0 :1] [:2 :0 :0 :1]] seats_per_row=:4]",
    )]);
    for index in 0..12 {
        let map = text(&world.run("SEATS.MAP 1 A-1"));
        let states: Vec<&str> = map
            .split(':')
            .skip(2)
            .take(12)
            .map(|rest| &rest[..1])
            .collect();
        let bits = text(&world.run(&format!("BITFIELD seats_bf:1:A-1 GET u2 #{index}")));
        assert_eq!(bits, format!("[:{}]", states[index]));
    }
}

#[test]
fn bits_written_by_plain_commands_are_the_same_bits() {
    let mut world = world();
    world.check(&[
        ("BITFIELD seats_bf:1:A-1 SET u2 #2 1", "[:0]"),
        ("SETBIT seats_bf:1:A-1 10 1", ":0"),
        (
            "SEATS.MAP 1 A-1 ROW 1",
            "%[rows=:3 seats=[[:0 :0 :1 :0]] seats_per_row=:4]",
        ),
        (
            "SEATS.MAP 1 A-1 ROW 2",
            "%[rows=:3 seats=[[:0 :2 :0 :0]] seats_per_row=:4]",
        ),
        (
            "SEATS.RESERVE 1 A-1 b1 u1 SEATS 2-2",
            "-SEATTAKEN seat 2-2 is sold",
        ),
    ]);
}

#[test]
fn opening_again_does_not_free_seats() {
    let mut world = world();
    world.run("SEATS.RESERVE 1 A-1 b1 u1 SEATS 1-1");
    world.run("SEATS.INIT 1 A-1 ROWS 3 SEATS 4 PRICE 60");
    world.check(&[("BITFIELD seats_bf:1:A-1 GET u2 #0", "[:1]")]);
    assert_sound(&mut world, "1");
}

#[test]
fn a_section_that_was_removed_and_opened_again_begins_anew() {
    let mut world = world();
    world.run("SEATS.RESERVE 1 A-1 b1 u1 SEATS 1-1");
    world.run("FLUSHDB");
    world.run("SEATS.INIT 1 A-1 ROWS 3 SEATS 4");
    assert_sound(&mut world, "1");
}
