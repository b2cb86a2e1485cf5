//! The commands of sorted sets, line by line.

use crate::testing::{World, text};

const WRONG_TYPE: &str = "-WRONGTYPE Operation against a key holding the wrong kind of value";
const NOT_INTEGER: &str = "-ERR value is not an integer or out of range";
const NOT_FLOAT: &str = "-ERR value is not a valid float";
const NOT_SCORES: &str = "-ERR min or max is not a float";
const NOT_NAMES: &str = "-ERR min or max not valid string range item";
const SYNTAX: &str = "-ERR syntax error";

#[test]
fn members_get_scores() {
    let mut world = World::default();
    world.check(&[
        ("ZADD z 1 a 2 b 1.5 a", ":2"),
        ("ZADD z CH 1 a 2 b 3 c", ":2"),
        ("ZADD z NX 9 a 4 d", ":1"),
        ("ZADD z XX CH 9 a 9 e", ":1"),
        ("ZADD z GT CH 8 a 5 d 1 e", ":2"),
        ("ZADD z LT CH 10 a 4 d", ":1"),
        ("ZADD z INCR 1 a", ",10"),
        ("ZADD z NX INCR 1 a", "_"),
        ("ZADD z XX INCR 1 nobody", "_"),
        ("ZADD z GT INCR -1 a", "_"),
        ("ZADD z INCR -0 zero", ",-0"),
        ("ZSCORE z zero", ",0"),
        ("ZINCRBY z -2.5 a", ",7.5"),
        ("ZINCRBY z 1 new", ",1"),
        ("ZCARD z", ":7"),
        ("ZMSCORE z a nobody b", "[,7.5 _ ,2]"),
        ("ZMSCORE x a b", "[_ _]"),
        ("ZADD z inf a", ":0"),
        (
            "ZINCRBY z -inf a",
            "-ERR resulting score is not a number (NaN)",
        ),
        ("ZREM z a b c nobody", ":3"),
        ("ZREM z d e new zero d", ":4"),
        ("ZREM z d", ":0"),
        ("ZADD z XX 1 a", ":0"),
        ("ZCARD z", ":0"),
    ]);
    assert!(world.left().is_empty(), "{:?}", world.left());
}

#[test]
fn what_to_add_is_checked() {
    let both = "-ERR GT, LT, and/or NX options at the same time are not compatible";
    let mut world = World::default();
    world.check(&[
        (
            "ZADD z 1",
            "-ERR wrong number of arguments for 'zadd' command",
        ),
        ("ZADD z 1 a 2", SYNTAX),
        ("ZADD z NX CH", SYNTAX),
        ("ZADD z x a", NOT_FLOAT),
        ("ZADD z nan a", NOT_FLOAT),
        ("ZADD z 1e999 a", NOT_FLOAT),
        ("ZADD z 1e-999 a", NOT_FLOAT),
        ("ZADD z 1 a x b", NOT_FLOAT),
        (
            "ZADD z NX XX 1 a",
            "-ERR XX and NX options at the same time are not compatible",
        ),
        ("ZADD z NX GT 1 a", both),
        ("ZADD z LT GT 1 a", both),
        (
            "ZADD z INCR 1 a 2 b",
            "-ERR INCR option supports a single increment-element pair",
        ),
        ("ZINCRBY z x a", NOT_FLOAT),
        ("ZINCRBY z NX a", SYNTAX),
    ]);
    let long = "m".repeat(65_001);
    world.check(&[(
        &format!("ZADD z 1 a 2 {long}"),
        "-ERR a key, field or member of 65001 bytes is over the limit of 65000",
    )]);
    assert!(world.left().is_empty());
}

#[test]
fn ranges_by_rank() {
    World::default().check(&[
        ("ZADD z 1 a 2 b 2 c -1 d 10 e", ":5"),
        ("ZRANGE z 0 -1", "[d a b c e]"),
        ("ZRANGE z 0 0 WITHSCORES", "[d=,-1]"),
        ("ZRANGE z 3 9", "[c e]"),
        ("ZRANGE z -2 -1 REV", "[a d]"),
        ("ZRANGE z 2 1", "[]"),
        ("ZRANGE x 0 -1", "[]"),
        ("ZREVRANGE z 0 1 WITHSCORES", "[e=,10 c=,2]"),
        ("ZRANGE z x 1", NOT_INTEGER),
        ("ZREVRANGE z 0 1 REV", SYNTAX),
        (
            "ZRANGE z 0 1 LIMIT 0 1",
            "-ERR syntax error, LIMIT is only supported in combination with either BYSCORE or \
             BYLEX",
        ),
        ("ZRANK z d", ":0"),
        ("ZRANK z c", ":3"),
        ("ZREVRANK z c", ":1"),
        ("ZREVRANK z e", ":0"),
        ("ZRANK z nobody", "_"),
        ("ZRANK x a", "_"),
        ("ZRANK z c WITHSCORE", "[:3 ,2]"),
        ("ZREVRANK z nobody WITHSCORE", "*-1"),
        ("ZRANK z c WITHSCORES", SYNTAX),
        (
            "ZRANK z c WITHSCORE 1",
            "-ERR wrong number of arguments for 'zrank' command",
        ),
    ]);
}

#[test]
fn ranges_by_score() {
    World::default().check(&[
        ("ZADD z 1 a 2 b 2 c -1 d 10 e -inf low inf high", ":7"),
        ("ZRANGE z 1 2 BYSCORE", "[a b c]"),
        ("ZRANGE z (1 2 BYSCORE", "[b c]"),
        ("ZRANGE z (1 (2 BYSCORE", "[]"),
        ("ZRANGE z -inf +inf BYSCORE", "[low d a b c e high]"),
        ("ZRANGE z (-inf (inf BYSCORE", "[d a b c e]"),
        ("ZRANGE z -inf inf BYSCORE LIMIT 1 2", "[d a]"),
        ("ZRANGE z -inf inf BYSCORE LIMIT 5 -1", "[e high]"),
        ("ZRANGE z -inf inf BYSCORE LIMIT -1 2", "[]"),
        (
            "ZRANGE z 2 -1 BYSCORE REV WITHSCORES",
            "[c=,2 b=,2 a=,1 d=,-1]",
        ),
        ("ZRANGEBYSCORE z -1 1 WITHSCORES LIMIT 0 1", "[d=,-1]"),
        ("ZREVRANGEBYSCORE z 10 (1", "[e c b]"),
        ("ZCOUNT z -0 5", ":3"),
        ("ZCOUNT x 0 5", ":0"),
        ("ZCOUNT z 5 0", ":0"),
        ("ZCOUNT z a 5", NOT_SCORES),
        ("ZRANGE z 0 nan BYSCORE", NOT_SCORES),
        ("ZRANGEBYSCORE z 0 1 LIMIT 0", SYNTAX),
        ("ZRANGEBYSCORE z 0 1 BYLEX", SYNTAX),
    ]);
}

#[test]
fn ranges_by_name() {
    World::default().check(&[
        ("ZADD z 0 a 0 ab 0 b 0 c 0 d", ":5"),
        ("ZRANGE z - + BYLEX", "[a ab b c d]"),
        ("ZRANGE z [a (c BYLEX", "[a ab b]"),
        ("ZRANGE z (a [c BYLEX", "[ab b c]"),
        ("ZRANGE z + [b BYLEX REV LIMIT 1 1", "[c]"),
        ("ZRANGE z + - BYLEX", "[]"),
        ("ZRANGE z - - BYLEX", "[]"),
        ("ZRANGE z [c [a BYLEX", "[]"),
        ("ZRANGE z [a [c BYLEX BYLEX", SYNTAX),
        ("ZRANGE z [a [c BYLEX BYSCORE", SYNTAX),
        ("ZRANGE z 0 1 REV REV", SYNTAX),
        ("ZRANGEBYLEX z [aa (b", "[ab]"),
        ("ZREVRANGEBYLEX z (b -", "[ab a]"),
        ("ZLEXCOUNT z [ab +", ":4"),
        ("ZLEXCOUNT x - +", ":0"),
        ("ZLEXCOUNT z ab +", NOT_NAMES),
        (
            "ZRANGE z - + BYLEX WITHSCORES",
            "-ERR syntax error, WITHSCORES not supported in combination with BYLEX",
        ),
    ]);
}

#[test]
fn ranges_by_name_among_different_scores() {
    World::default().check(&[
        ("ZADD z 1 z 2 f 3 g 4 a", ":4"),
        ("ZREMRANGEBYLEX z [f [g", ":0"),
        ("ZRANGEBYLEX z [f [g", "[]"),
        ("ZLEXCOUNT z [b +", ":0"),
        ("ZLEXCOUNT z - +", ":4"),
        ("ZADD m 1 f 2 z 3 g", ":3"),
        ("ZRANGEBYLEX m [f [g", "[f]"),
        // Those that are skipped are not looked at.
        ("ZRANGEBYLEX m [f [g LIMIT 2 1", "[g]"),
        ("ZREVRANGEBYLEX m [g [f", "[g z f]"),
        ("ZLEXCOUNT m [f [g", ":1"),
        ("ZREMRANGEBYLEX m [f [g", ":1"),
        ("ZRANGE m 0 -1", "[z g]"),
    ]);
}

#[test]
fn ranges_are_removed_and_stored() {
    let mut world = World::default();
    world.check(&[
        ("ZADD z 1 a 2 b 3 c 4 d 5 e", ":5"),
        ("ZRANGESTORE t z 1 3", ":3"),
        ("ZRANGE t 0 -1 WITHSCORES", "[b=,2 c=,3 d=,4]"),
        ("ZRANGESTORE t t (2 9 BYSCORE", ":2"),
        ("ZRANGE t 0 -1", "[c d]"),
        ("ZRANGESTORE t z 0 -1 WITHSCORES", SYNTAX),
        ("ZRANGESTORE t none 0 -1", ":0"),
        ("ZCARD t", ":0"),
        ("RPUSH t 1", ":1"),
        ("ZRANGESTORE t z 2 -inf BYSCORE REV LIMIT 0 1", ":1"),
        ("ZRANGE t 0 -1", "[b]"),
        ("ZREMRANGEBYRANK t 0 -1", ":1"),
        ("ZREMRANGEBYRANK z 0 0", ":1"),
        ("ZREMRANGEBYRANK z 9 9", ":0"),
        ("ZREMRANGEBYSCORE z (4 inf", ":1"),
        ("ZREMRANGEBYSCORE z 4 x", NOT_SCORES),
        ("ZADD n 0 a 0 b 0 c", ":3"),
        ("ZREMRANGEBYLEX n (a [b", ":1"),
        ("ZREMRANGEBYLEX n - +", ":2"),
        ("ZRANGE z 0 -1", "[b c d]"),
        ("ZPOPMIN z", "[b ,2]"),
        ("ZPOPMAX z 1", "[d=,4]"),
        ("ZPOPMAX z 0", "[]"),
        (
            "ZPOPMAX z -1",
            "-ERR value is out of range, must be positive",
        ),
        ("ZPOPMAX z 1 2", SYNTAX),
        ("ZPOPMIN none", "[]"),
        ("ZMPOP 2 none z MIN COUNT 5", "[z [[c ,3]]]"),
        ("ZMPOP 2 none z MAX", "*-1"),
        ("ZMPOP 1 z UP", SYNTAX),
        ("ZMPOP x z MAX", "-ERR numkeys should be greater than 0"),
    ]);
    assert!(world.left().is_empty(), "{:?}", world.left());
}

#[test]
fn sets_are_combined() {
    let mut world = World::default();
    world.check(&[
        ("ZADD a 1 x 2 y 3 z", ":3"),
        ("ZADD b 10 y 20 z 30 w", ":3"),
        ("ZUNION 2 a b WITHSCORES", "[x=,1 y=,12 z=,23 w=,30]"),
        (
            "ZUNION 2 a b WEIGHTS 2 -1 WITHSCORES",
            "[w=,-30 z=,-14 y=,-6 x=,2]",
        ),
        ("ZUNION 2 a b AGGREGATE MAX", "[x y z w]"),
        ("ZUNION 3 a none a WITHSCORES", "[x=,2 y=,4 z=,6]"),
        ("ZINTER 2 a b WITHSCORES", "[y=,12 z=,23]"),
        (
            "ZINTER 2 a b AGGREGATE MIN WEIGHTS 1 0.1 WITHSCORES",
            "[y=,1 z=,2]",
        ),
        ("ZINTER 2 a none", "[]"),
        ("ZDIFF 2 a b WITHSCORES", "[x=,1]"),
        ("ZDIFF 2 a none", "[x y z]"),
        ("ZDIFF 2 a a", "[]"),
        ("ZINTERCARD 2 a b", ":2"),
        ("ZINTERCARD 2 a b LIMIT 1", ":1"),
        ("ZINTERCARD 2 a b LIMIT -1", "-ERR LIMIT can't be negative"),
        ("ZUNIONSTORE a 2 a b", ":4"),
        ("ZRANGE a 0 -1", "[x y z w]"),
        ("ZINTERSTORE t 2 a b", ":3"),
        ("ZDIFFSTORE t 2 a b", ":1"),
        ("ZDIFFSTORE t 2 none b", ":0"),
        ("ZCARD t", ":0"),
        (
            "ZUNION 0 a",
            "-ERR at least 1 input key is needed for 'zunion' command",
        ),
        ("ZUNION x a", NOT_INTEGER),
        ("ZUNION 2 a", SYNTAX),
        ("ZUNION 1 a WEIGHTS", SYNTAX),
        ("ZUNION 1 a WEIGHTS x", "-ERR weight value is not a float"),
        ("ZUNION 1 a AGGREGATE AVG", SYNTAX),
        ("ZDIFF 1 a WEIGHTS 1", SYNTAX),
        ("ZUNIONSTORE t 1 a WITHSCORES", SYNTAX),
        ("SADD s x y", ":2"),
        ("ZINTER 2 s a WITHSCORES", "[x=,2 y=,13]"),
        ("ZDIFF 2 a s", "[z w]"),
        ("ZADD i inf m", ":1"),
        ("ZADD j -inf m", ":1"),
        ("ZUNION 2 i j WITHSCORES", "[m=,0]"),
        ("ZUNION 1 i WEIGHTS 0 WITHSCORES", "[m=,0]"),
        ("RPUSH l 1", ":1"),
        ("ZUNION 2 a l FOO", WRONG_TYPE),
    ]);
}

#[test]
fn a_walk_finds_every_member_once() {
    let mut world = World::default();
    for member in 0..300 {
        world.run(&format!("ZADD z {member} m{member}"));
    }
    let mut cursor = "0".to_owned();
    let mut found = Vec::new();
    loop {
        let reply = text(&world.run(&format!("ZSCAN z {cursor} COUNT 7")));
        let words = reply.trim_matches(['[', ']']).split([' ', '[', ']']);
        let mut words = words.filter(|word| !word.is_empty());
        cursor = words.next().unwrap().to_owned();
        found.extend(words.map(str::to_owned));
        if cursor == "0" {
            break;
        }
    }
    let mut members: Vec<String> = found.chunks(2).map(|pair| pair.concat()).collect();
    members.sort();
    let mut expected: Vec<String> = (0..300).map(|n| format!("m{n}{n}")).collect();
    expected.sort();
    assert_eq!(members, expected);
}

#[test]
fn members_are_chosen_at_random() {
    let mut world = World::default();
    world.check(&[
        ("ZRANDMEMBER z", "_"),
        ("ZRANDMEMBER z 1", "[]"),
        ("ZADD z 1 a", ":1"),
        ("ZRANDMEMBER z", "a"),
        ("ZRANDMEMBER z 3 WITHSCORES", "[a=,1]"),
        ("ZRANDMEMBER z -3", "[a a a]"),
        ("ZRANDMEMBER z 0", "[]"),
        ("ZRANDMEMBER z x", NOT_INTEGER),
        ("ZRANDMEMBER z 1 SCORES", SYNTAX),
        (
            "ZRANDMEMBER z 9223372036854775807 WITHSCORES",
            "-ERR value is out of range",
        ),
        ("ZSCAN none 0 FOO", "[0 []]"),
        ("ZSCAN none x", "-ERR invalid cursor"),
        ("ZSCAN z 0 FOO", SYNTAX),
        ("ZSCAN z 0 MATCH b*", "[0 []]"),
        ("ZSCAN z 0 MATCH a*", "[0 [a 1]]"),
        ("ZADD large 1e17 a", ":1"),
        ("ZSCAN large 0", "[0 [a 100000000000000000]]"),
    ]);
    for member in 0..400 {
        world.run(&format!("ZADD z {member} m{member}"));
    }
    let chosen = text(&world.run("ZRANDMEMBER z 50"));
    let mut chosen: Vec<&str> = chosen.trim_matches(['[', ']']).split(' ').collect();
    chosen.sort_unstable();
    chosen.dedup();
    assert_eq!(chosen.len(), 50);
}

/// Ranks from either end, and that each member is one entry, besides the key and a few blocks.
#[test]
fn many_members_are_in_order() {
    let mut world = World::default();
    for n in 0..200_i64 {
        let score = (n * 77) % 200 - 100;
        world.run(&format!("ZADD z {score} m{score}"));
    }
    let n_entries = world.left().len();
    assert!((202..208).contains(&n_entries), "{n_entries}");
    for rank in 0..200_i64 {
        let score = rank - 100;
        world.check(&[
            (&format!("ZRANK z m{score}"), &format!(":{rank}")),
            (
                &format!("ZRANGE z {rank} {rank} WITHSCORES"),
                &format!("[m{score}=,{score}]"),
            ),
            (
                &format!("ZREVRANGE z {rank} {rank}"),
                &format!("[m{}]", 99 - rank),
            ),
        ]);
    }
}

#[test]
fn what_has_expired_is_not_there() {
    let mut world = World::default();
    world.moment.now = 1000;
    world.check(&[
        ("ZADD z 1 a", ":1"),
        ("RPUSH l a", ":1"),
        ("PEXPIRE z 10", ":1"),
        ("PEXPIRE l 10", ":1"),
        ("ZADD z 2 b", ":1"),
        ("LMOVE l l LEFT RIGHT", "a"),
    ]);
    world.moment.now = 1010;
    world.check(&[
        ("ZCARD z", ":0"),
        ("LLEN l", ":0"),
        ("ZADD z 3 c", ":1"),
        ("RPUSH l b", ":1"),
        ("ZRANGE z 0 -1", "[c]"),
        ("LRANGE l 0 -1", "[b]"),
    ]);
}
