//! The commands of bitmaps, line by line.

use crate::testing::World;

const OFFSET: &str = "-ERR bit offset is not an integer or out of range";
const SYNTAX: &str = "-ERR syntax error";

#[test]
fn bits_are_set_and_read() {
    let mut world = World::default();
    world.check(&[
        ("SETBIT a 7 1", ":0"),
        ("GET a", "\u{1}"),
        ("SETBIT a 7 0", ":1"),
        ("GET a", "\0"),
        ("SETBIT a 15 0", ":0"),
        ("STRLEN a", ":2"),
        ("GETBIT a 7", ":0"),
        ("GETBIT a 1000", ":0"),
        ("GETBIT x 0", ":0"),
        ("SETBIT a 4294967295 1", ":0"),
        ("STRLEN a", ":536870912"),
        ("GETBIT a 4294967295", ":1"),
        ("BITCOUNT a", ":1"),
        ("BITPOS a 1", ":4294967295"),
        ("BITPOS a 0", ":0"),
        ("SETBIT a 4294967296 1", OFFSET),
        ("SETBIT a -1 1", OFFSET),
        ("GETBIT a x", OFFSET),
        ("SETBIT a 0 2", "-ERR bit is not an integer or out of range"),
    ]);
    assert_eq!(world.left().len(), 2, "the key and one chunk");
    world.check(&[("SETBIT a 4294967295 0", ":1"), ("STRLEN a", ":536870912")]);
    assert_eq!(world.left().len(), 1, "the key alone");
}

#[test]
fn a_bit_that_is_as_it_was_changes_nothing() {
    let mut world = World::default();
    world.check(&[("SETBIT a 40000 1", ":0"), ("SETBIT b 3 1", ":0")]);
    let before = world.entries.clone();
    world.check(&[
        ("SETBIT a 40000 1", ":1"),
        ("SETBIT a 5 0", ":0"),
        ("BITFIELD b SET u1 3 1 GET u8 100", "[:1 :0]"),
        ("BITFIELD x GET u8 0", "[:0]"),
        ("BITFIELD b OVERFLOW FAIL SET u1 3 7", "[_]"),
    ]);
    assert_eq!(world.entries, before);
}

#[test]
fn bits_are_counted_and_found() {
    World::default().check(&[
        ("SET a foobar", "+OK"),
        ("BITCOUNT a", ":26"),
        ("BITCOUNT a 0 0", ":4"),
        ("BITCOUNT a 1 1 BYTE", ":6"),
        ("BITCOUNT a 5 30 BIT", ":17"),
        ("BITCOUNT a -10 -2 bit", ":5"),
        ("BITCOUNT a -1 -2", ":0"),
        ("BITCOUNT x", ":0"),
        ("BITCOUNT a 1", SYNTAX),
        ("BITCOUNT a 1 2 FOO", SYNTAX),
        ("BITFIELD b SET i64 0 -1 SET u16 64 65280", "[:0 :0]"),
        ("BITPOS b 0", ":72"),
        ("BITPOS b 0 0 7", ":-1"),
        ("BITPOS b 1 9", ":-1"),
        ("BITPOS b 1 3 5 BIT", ":3"),
        ("BITPOS b 0 70 75 BIT", ":72"),
        ("BITPOS b 0 70 71 BIT", ":-1"),
        ("BITPOS x 0", ":0"),
        ("BITPOS x 1", ":-1"),
        ("BITFIELD c SET i16 0 -1", "[:0]"),
        ("BITPOS c 0", ":16"),
        ("BITPOS c 0 1", ":16"),
        ("BITPOS c 0 0 -1", ":-1"),
        ("BITPOS c 2", "-ERR The bit argument must be 1 or 0."),
        ("BITPOS c 1 0 1 FOO", SYNTAX),
    ]);
}

#[test]
fn walks_cross_chunks() {
    World::default().check(&[
        ("SETBIT a 100000 1", ":0"),
        ("SETBIT a 32767 1", ":0"),
        ("SETBIT a 200000 1", ":0"),
        ("BITCOUNT a", ":3"),
        ("BITCOUNT a 32767 100000 BIT", ":2"),
        ("BITCOUNT a 32768 99999 BIT", ":0"),
        ("BITPOS a 1", ":32767"),
        ("BITPOS a 1 4096", ":100000"),
        ("BITPOS a 1 100001 -1 BIT", ":200000"),
        ("BITPOS a 0 32767 -1 BIT", ":32768"),
        ("BITOP NOT b a", ":25001"),
        ("BITCOUNT b", ":200005"),
        ("BITPOS b 0", ":32767"),
        ("BITPOS b 0 100000 -1 BIT", ":100000"),
    ]);
}

#[test]
fn bitmaps_are_combined() {
    let mut world = World::default();
    world.check(&[
        ("MSET a foobar b abcdef", "+OK"),
        ("BITOP AND d a b", ":6"),
        ("GET d", "`bc`ab"),
        ("BITOP OR d a b", ":6"),
        ("GET d", "goofev"),
        ("SET c a", "+OK"),
        ("BITOP XOR d c c a", ":6"),
        ("GET d", "foobar"),
        ("BITOP AND a a c", ":6"),
        ("GET a", "`\0\0\0\0\0"),
        ("EXPIRE d 10", ":1"),
        ("BITOP NOT d d", ":6"),
        ("TTL d", ":-1"),
        ("BITCOUNT d", ":22"),
        ("BITOP OR d x y", ":0"),
        ("EXISTS d", ":0"),
        (
            "BITOP NOT d a b",
            "-ERR BITOP NOT must be called with a single source key.",
        ),
        ("BITOP FOO d a", SYNTAX),
        ("DEL a b c", ":3"),
    ]);
    assert!(world.left().is_empty(), "{:?}", world.left());
}

#[test]
fn fields_of_any_width_are_read_and_changed() {
    let kind = "-ERR Invalid bitfield type. Use something like i16 u8. Note that u64 is not \
                supported but i64 is.";
    World::default().check(&[
        ("BITFIELD a", "[]"),
        ("BITFIELD a SET u2 #3 2", "[:0]"),
        ("GETBIT a 6", ":1"),
        ("BITFIELD a GET u2 6 GET u2 #3 GET i2 #3", "[:2 :2 :-2]"),
        ("BITFIELD a INCRBY u2 #3 1 INCRBY u2 #3 1", "[:3 :0]"),
        (
            "BITFIELD a OVERFLOW SAT INCRBY i5 100 20 INCRBY i5 100 -50",
            "[:15 :-16]",
        ),
        (
            "BITFIELD a OVERFLOW FAIL INCRBY u2 0 4 OVERFLOW WRAP SET u8 0 300",
            "[_ :0]",
        ),
        ("BITFIELD a SET u8 0 -1 GET u8 0", "[:44 :255]"),
        (
            "BITFIELD a SET i64 3 -9223372036854775808 GET i64 3",
            "[:-576460752303423488 :-9223372036854775808]",
        ),
        (
            "BITFIELD a SET u63 32740 9223372036854775807 GET u63 32740",
            "[:0 :9223372036854775807]",
        ),
        (
            "BITFIELD_RO a GET u63 32740 GET u8 99999",
            "[:9223372036854775807 :0]",
        ),
        (
            "BITFIELD_RO a SET u8 0 1",
            "-ERR BITFIELD_RO only supports the GET subcommand",
        ),
        ("BITFIELD b OVERFLOW FAIL SET u8 8 256", "[_]"),
        ("STRLEN b", ":2"),
        ("BITFIELD c SET u8 0 1 GET u64 0", kind),
        ("BITFIELD c SET u8 0 1 GET", SYNTAX),
        ("EXISTS c", ":0"),
        ("BITFIELD c GET i65 0", kind),
        ("BITFIELD c GET u0 0", kind),
        ("BITFIELD c GET u8 -1", OFFSET),
        ("BITFIELD c GET u8 #x", OFFSET),
        ("BITFIELD c GET u8 4294967296", OFFSET),
        (
            "BITFIELD c SET u8 0 x",
            "-ERR value is not an integer or out of range",
        ),
        (
            "BITFIELD c OVERFLOW FOO",
            "-ERR Invalid OVERFLOW type specified",
        ),
    ]);
}
