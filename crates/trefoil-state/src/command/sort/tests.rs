//! `SORT`, line by line.

use crate::testing::World;

const SYNTAX: &str = "-ERR syntax error";
const NOT_NUMBERS: &str = "-ERR One or more scores can't be converted into double";

#[test]
fn elements_are_sorted() {
    World::default().check(&[
        ("RPUSH l 3 1 2.5 10 -inf", ":5"),
        ("SORT l", "[-inf 1 2.5 3 10]"),
        ("SORT l DESC", "[10 3 2.5 1 -inf]"),
        ("SORT l DESC ASC ALPHA", "[-inf 1 10 2.5 3]"),
        ("SORT l LIMIT 1 2", "[1 2.5]"),
        ("RPUSH ended 7\0x 1\0", ":2"),
        ("SORT ended", "[1\0 7\0x]"),
        ("SORT l LIMIT -1 2", "[-inf 1]"),
        ("SORT l LIMIT 4 -1", "[10]"),
        ("SORT l LIMIT 9 9", "[]"),
        ("SORT l BY nosort", "[3 1 2.5 10 -inf]"),
        ("SORT l BY nosort DESC LIMIT 0 2", "[-inf 10]"),
        ("SADD s c a b", ":3"),
        ("SORT s", NOT_NUMBERS),
        ("SORT s ALPHA DESC", "[c b a]"),
        ("ZADD z 3 a 1 b 2 c", ":3"),
        ("SORT z ALPHA", "[a b c]"),
        ("SORT z BY nosort", "[b c a]"),
        ("SORT z BY nosort DESC LIMIT 1 1", "[c]"),
        ("SORT_RO l LIMIT 0 1", "[-inf]"),
        ("SORT none", "[]"),
    ]);
}

#[test]
fn other_keys_say_the_order_and_the_answer() {
    World::default().check(&[
        ("RPUSH l 1 2 3", ":3"),
        ("MSET w_1 30 w_2 20 name_1 one name_3 three", "+OK"),
        ("HSET h_1 weight 1 name eins", ":2"),
        ("HSET h_2 weight 3 name zwei", ":2"),
        ("SORT l BY w_*", "[3 2 1]"),
        ("SORT l BY w_* DESC", "[1 2 3]"),
        ("SORT l BY h_*->weight", "[3 1 2]"),
        ("SORT l BY h_*->name ALPHA", "[3 1 2]"),
        ("SORT l BY name_*", NOT_NUMBERS),
        ("SORT l GET name_*", "[one _ three]"),
        (
            "SORT l GET # GET h_*->name GET w_1",
            "[1 eins _ 2 zwei _ 3 _ _]",
        ),
        // Values of other types are not there.
        ("SORT l GET h_* GET w_*->name", "[_ _ _ _ _ _]"),
        ("SORT l GET h_*->", "[_ _ _]"),
    ]);
}

#[test]
fn what_is_sorted_is_stored() {
    let mut world = World::default();
    world.check(&[
        ("RPUSH l 3 1 2", ":3"),
        ("SORT l STORE t", ":3"),
        ("LRANGE t 0 -1", "[1 2 3]"),
        ("SORT l STORE l GET # GET none_*", ":6"),
        ("LRANGE l 0 -1", "[1  2  3 ]"),
        ("SADD s c a b", ":3"),
        ("SORT s BY nosort DESC STORE s", ":3"),
        ("LRANGE s 0 -1", "[c b a]"),
        ("SORT none STORE l", ":0"),
        ("SORT none STORE t", ":0"),
        ("LTRIM s 1 0", "+OK"),
    ]);
    assert!(world.left().is_empty(), "{:?}", world.left());
}

#[test]
fn options_and_types_are_checked() {
    World::default().check(&[
        ("HSET h f v", ":1"),
        ("SORT h FOO", SYNTAX),
        ("SORT h LIMIT 0", SYNTAX),
        ("SORT h BY", SYNTAX),
        ("SORT h GET", SYNTAX),
        ("SORT h STORE", SYNTAX),
        ("SORT_RO h STORE t", SYNTAX),
        (
            "SORT h LIMIT 0 x",
            "-ERR value is not an integer or out of range",
        ),
        (
            "SORT h",
            "-WRONGTYPE Operation against a key holding the wrong kind of value",
        ),
    ]);
}
