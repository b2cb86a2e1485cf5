//! The words that arguments are chosen from: few keys and few elements, so that commands meet,
//! and the edges of what is a number.

use proptest::prelude::*;
use proptest::sample::select;

/// A strategy for one word.
pub(super) type Words = BoxedStrategy<Vec<u8>>;

const STRINGS: &[&str] = &["s1", "s2", "s3"];
const HASHES: &[&str] = &["h1", "h2"];
const SETS: &[&str] = &["m1", "m2", "m3"];
const SORTED_SETS: &[&str] = &["z1", "z2", "z3"];
/// Sorted sets whose members all have one score.
const EQUAL: &[&str] = &["e1", "e2"];
/// Sorted sets of few members with different scores.
const MIXED: &[&str] = &["x1", "x2"];
const LISTS: &[&str] = &["l1", "l2"];
const OTHER_KEYS: &[&str] = &["other", ""];

const VALUES: &[&[u8]] = &[
    b"v",
    b"",
    b"hello world",
    b"abcabcabdx",
    b"xabdabc",
    b"10",
    b"-1",
    b"3.5",
    b"9223372036854775807",
    b"-9223372036854775808",
    b"\x01\x00\xfe\xff",
    b"\r\n",
    b"\xc3\xa4\xf0\x9f\x8d\x80",
    b"\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff",
    b"OK",
];

/// No two of these are the same up to a zero byte, where C ends a text when it sorts.
const MEMBERS: &[&[u8]] = &[
    b"a",
    b"b",
    b"c",
    b"d",
    b"aa",
    b"ab",
    b"1",
    b"2",
    b"3",
    b"10",
    b"-7",
    b"1.5",
    b"",
    b"\xff\x00",
    b"\xff\xff",
    b"A",
];

const FIELDS: &[&[u8]] = &[b"f", b"g", b"h", b"1", b"count", b"", b"\xff\x00"];

/// Numbers at the edges, and what is none. Nothing here lies between 1e5 and 1e18: a server would
/// do what it says.
const ODD_INTEGERS: &[&str] = &[
    "9223372036854775807",
    "9223372036854775808",
    "-9223372036854775809",
    "18446744073709551615",
    "99999999999999999999",
    "abc",
    "",
    "1.5",
    " 1",
    "1 ",
    "+1",
    "01",
    "1e3",
    "-",
];

const FLOATS: &[&str] = &[
    "1",
    "-1",
    "0",
    "0.1",
    "0.2",
    "1.5",
    "-2.25",
    "3.0e2",
    "1e-5",
    "5.0e3",
    "100",
    "1e17",
    "1e21",
    "0.3",
    "123456.789",
    "9007199254740993",
];

/// Nothing that is too large or too small for C: Redis itself forgets to forget such an error.
const ODD_FLOATS: &[&str] = &[
    "inf",
    "-inf",
    "+inf",
    "infinity",
    "nan",
    "abc",
    "",
    " 1",
    "1 ",
    "1e",
    "0x10",
    "1e308",
    "1.7976931348623157e308",
    "+2.5",
    ".5",
    "1.",
    "1,5",
];

const OPTIONS: &[&str] = &[
    "NX",
    "XX",
    "GT",
    "LT",
    "CH",
    "INCR",
    "GET",
    "EX",
    "PX",
    "EXAT",
    "KEEPTTL",
    "PERSIST",
    "WITHSCORES",
    "WITHVALUES",
    "LIMIT",
    "COUNT",
    "MATCH",
    "TYPE",
    "REV",
    "BYSCORE",
    "BYLEX",
    "WEIGHTS",
    "AGGREGATE",
    "SUM",
    "MIN",
    "BEFORE",
    "LEFT",
    "RANK",
    "MAXLEN",
    "SET",
    "OVERFLOW",
    "FAIL",
    "BIT",
    "BYTE",
    "STORE",
    "ASC",
    "ALPHA",
    "REPLACE",
    "nx",
    "Ex",
    "nonsense",
];

fn of(words: &'static [&'static str]) -> Words {
    select(words)
        .prop_map(|word| word.as_bytes().to_vec())
        .boxed()
}

fn of_bytes(words: &'static [&'static [u8]]) -> Words {
    select(words).prop_map(<[u8]>::to_vec).boxed()
}

/// A number out of a range, mostly from its beginning.
fn number(range: std::ops::Range<i64>) -> Words {
    range.prop_map(|n| n.to_string().into_bytes()).boxed()
}

fn any_key() -> Words {
    let all = [STRINGS, HASHES, SETS, SORTED_SETS, LISTS, OTHER_KEYS].concat();
    select(all)
        .prop_map(|word| word.as_bytes().to_vec())
        .boxed()
}

/// A key under which a value of a kind mostly is.
fn keys(usual: &'static [&'static str]) -> Words {
    prop_oneof![12 => of(usual), 1 => any_key()].boxed()
}

fn integer() -> Words {
    let lowest = of(&["-9223372036854775808", "-0"]);
    prop_oneof![16 => amount(), 1 => lowest].boxed()
}

/// An integer that is not the lowest, with which Redis itself miscalculates in `BITFIELD`.
fn amount() -> Words {
    prop_oneof![6 => number(-20..20), 1 => number(-70000..70000), 2 => of(ODD_INTEGERS)].boxed()
}

fn float() -> Words {
    prop_oneof![8 => of(FLOATS), 2 => number(-9..9), 2 => of(ODD_FLOATS)].boxed()
}

/// A span or a moment that is certainly in the future, whatever its unit; times that differ do so by
/// more than a test takes.
fn hundreds(base: i64) -> Words {
    let certain = (1..9_999i64).prop_map(move |n| (base + n * 200_000).to_string().into_bytes());
    prop_oneof![9 => certain, 1 => of(&["0", "-1", "-1000"]), 1 => of(ODD_INTEGERS)].boxed()
}

fn long(length: usize) -> Vec<u8> {
    (0..length).map(|n| (n % 251) as u8).collect()
}

fn width() -> Words {
    let signed = (1..=64u32).prop_map(|n| format!("i{n}").into_bytes());
    let unsigned = (1..=63u32).prop_map(|n| format!("u{n}").into_bytes());
    let usual = of(&["u2", "u8", "i8", "u1", "i64", "u63", "i5"]);
    let odd = of(&["u64", "i65", "u0", "i0", "x8", "8", "u", ""]);
    prop_oneof![6 => usual, 3 => signed, 3 => unsigned, 1 => odd].boxed()
}

fn place() -> Words {
    let counted = (0..20u32).prop_map(|n| format!("#{n}").into_bytes());
    let odd = of(&[
        "-1",
        "#-1",
        "#",
        "abc",
        "",
        "4294967296",
        "#4294967296",
        "9223372036854775807",
    ]);
    prop_oneof![6 => number(0..130), 4 => counted, 1 => odd].boxed()
}

/// The pool of this name.
pub(super) fn pool(name: &str) -> Words {
    match name {
        "key" => any_key(),
        "string" => keys(STRINGS),
        "hash" => keys(HASHES),
        "set" => keys(SETS),
        "zset" => keys(SORTED_SETS),
        "equal" => of(EQUAL),
        "mixed" => of(MIXED),
        "list" => keys(LISTS),
        "collection" => prop_oneof![keys(SORTED_SETS), keys(SETS)].boxed(),
        "value" => prop_oneof![5 => of_bytes(VALUES), 2 => integer(), 1 => float()].boxed(),
        "lines" => of(&["two\r\nlines", "\n", "end\r\n", "-ERR no"]),
        "member" => of_bytes(MEMBERS),
        "field" => of_bytes(FIELDS),
        "integer" => integer(),
        "amount" => amount(),
        "float" => float(),
        "score" => prop_oneof![3 => number(-3..6), 2 => float()].boxed(),
        "index" => prop_oneof![12 => number(-8..8), 1 => of(ODD_INTEGERS)].boxed(),
        "few" => prop_oneof![12 => number(-4..8), 1 => of(ODD_INTEGERS)].boxed(),
        "offset" => {
            prop_oneof![9 => number(0..40), 1 => of(ODD_INTEGERS), 1 => of(&["-1", "536870912"])]
                .boxed()
        }
        "bit" => {
            prop_oneof![9 => number(0..90), 1 => of(ODD_INTEGERS), 1 => of(&["-1", "4294967296"])]
                .boxed()
        }
        // Beyond what a string or a list keeps in one piece.
        "distant" => prop_oneof![9 => number(0..13_000), 2 => number(-9_000..0)].boxed(),
        "distantbit" => number(0..100_000),
        "long" => (1..10_000usize).prop_map(long).boxed(),
        "name" => (0..300u32)
            .prop_map(|n| format!("name:{n}").into_bytes())
            .boxed(),
        "by" => of(&["s*", "h1->*", "*", "h*->f", "*->", "nothing*"]),
        "fixed" => of(&["NOSORT", "s1", "h2->f", ""]),
        "width" => width(),
        "place" => place(),
        "seconds" => hundreds(0),
        "time" => hundreds(4_102_444_800_000),
        "glob" => of(&[
            "*", "?", "*1", "s*", "[hm]?", "[^s]*", "[a-l]*", "h1", "\\h1", "**", "", "a*", "[",
            "\\", "?1?", "[a",
        ]),
        "type" => of(&[
            "string", "hash", "list", "set", "zset", "STRING", "stream", "nonsense",
        ]),
        "bound" => {
            let open = (-3..6i64).prop_map(|n| format!("({n}").into_bytes());
            let edges = of(&[
                "-inf", "+inf", "inf", "(-inf", "(inf", "nan", "(", "(abc", "abc", "", "1.5",
                "(1.5",
            ]);
            prop_oneof![5 => number(-3..6), 3 => open, 3 => edges].boxed()
        }
        "lex" => of(&[
            "-", "+", "[a", "(a", "[b", "(b", "[c", "[aa", "(ab", "[1", "[", "(", "a", "",
            "[\u{e4}",
        ]),
        "word" => prop_oneof![of(OPTIONS), of(ODD_INTEGERS), of(FLOATS)].boxed(),
        _ => panic!("no pool {name:?} in pools.rs"),
    }
}
