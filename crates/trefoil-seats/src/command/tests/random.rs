//! Whatever happens in whatever order: nothing contradicts anything, and the events say it all.

use proptest::prelude::*;
use trefoil_state::testing::text;

use super::{NOW, assert_sound, new_world};

/// Something that happens.
#[derive(Debug, Clone)]
enum Step {
    Run(String),
    Wait(u64),
    Clean,
}

fn step() -> impl Strategy<Value = Step> {
    let section = prop_oneof![Just("A-1"), Just("B-1")];
    // Each booking has its buyer, but now and then somebody else comes.
    let wrong = || prop_oneof![7 => Just(0_u8), 1 => Just(1)];
    let ids = (0..16_u8, wrong());
    let seats = prop::collection::vec((1..5_u8, 1..6_u8), 1..4).prop_map(|seats| {
        let seats = seats.iter().map(|(row, number)| format!(" {row}-{number}"));
        format!("SEATS{}", seats.collect::<String>())
    });
    let choice = prop_oneof![seats, (1..5_u8).prop_map(|n| format!("BEST {n}"))];
    let hold = prop_oneof![
        Just(String::new()),
        (1..200_u64).prop_map(|hold| format!(" HOLDMS {hold}"))
    ];
    let reserve =
        (section, ids, choice, hold).prop_map(|(section, (booking, wrong), choice, hold)| {
            let buyer = (booking + wrong) % 4;
            format!("SEATS.RESERVE 1 {section} b{booking} u{buyer} {choice}{hold}")
        });
    let settle = (any::<bool>(), 0..16_u8, wrong()).prop_map(|(is_sale, booking, wrong)| {
        let buyer = (booking + wrong) % 4;
        let command = if is_sale { "FINALIZE" } else { "RELEASE" };
        format!("SEATS.{command} b{booking} u{buyer}")
    });
    let init = (1..5_u8, 3..6_u8, 0..3_u8).prop_map(|(rows, seats, price)| {
        format!("SEATS.INIT 1 B-1 ROWS {rows} SEATS {seats} PRICE {price}")
    });
    prop_oneof![
        6 => reserve.prop_map(Step::Run),
        6 => settle.prop_map(Step::Run),
        1 => init.prop_map(Step::Run),
        2 => (1..150_u64).prop_map(Step::Wait),
        1 => Just(Step::Clean),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn everything_agrees_after_every_step(steps in prop::collection::vec(step(), 1..60)) {
        let mut world = new_world();
        world.moment.now = NOW;
        world.run("SEATS.INIT 1 A-1 ROWS 3 SEATS 4 PRICE 50 MAXBUYER 8");
        world.run("SEATS.INIT 1 B-1 ROWS 2 SEATS 5");
        for step in &steps {
            match step {
                Step::Run(line) => {
                    let n_events = world.events.len();
                    let answer = text(&world.run(line));
                    if answer.starts_with('-') {
                        prop_assert_eq!(world.events.len(), n_events);
                    }
                    let again = text(&world.run(line));
                    prop_assert!(answer == again || line.contains("INIT") || answer.starts_with('-'));
                }
                Step::Wait(millis) => world.moment.now += millis,
                Step::Clean => world.clean(),
            }
            assert_sound(&mut world, "1");
        }
        // In the end, no hold is left that has run out.
        world.moment.now += 1_000;
        world.clean();
        assert_sound(&mut world, "1");
        let holds = world.entries.keys().filter(|name| name.windows(9).any(|part| part == b"\x02booking:"));
        prop_assert_eq!(holds.count(), 0);
    }
}
