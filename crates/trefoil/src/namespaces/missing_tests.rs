//! Namespaces of which something is missing, and registry files that are damaged.

use std::fs;

use super::tests::{create, id, open, write};
use super::*;

/// What may go missing of a namespace, as when a volume is not mounted.
const MISSING: [&str; 4] = ["", "generation", "1", "1/log"];

#[test]
fn a_namespace_that_is_missing_is_not_taken_for_an_empty_one() {
    for missing in MISSING {
        let data = tempfile::tempdir().unwrap();
        let namespaces = open(data.path());
        create(&namespaces, "side");
        create(&namespaces, "other");
        create(&namespaces, "unused");
        write(&namespaces, "side");
        write(&namespaces, "other");
        namespaces.close().unwrap();
        let path = data.path().join("side").join(missing);
        match path.is_dir() {
            true => fs::remove_dir_all(&path).unwrap(),
            false => fs::remove_file(&path).unwrap(),
        }
        let before = fs::read_dir(data.path()).unwrap().count();
        let namespaces = open(data.path());
        let error = namespaces.database(&id("side")).unwrap_err();
        assert!(matches!(error, Error::Damaged(_)), "{missing}: {error}");
        assert!(error.to_string().contains("missing"), "{missing}: {error}");
        assert_eq!(fs::read_dir(data.path()).unwrap().count(), before);
        // The others are not concerned, used before or not.
        write(&namespaces, "other");
        write(&namespaces, "unused");
        namespaces.delete("side").unwrap();
        namespaces.close().unwrap();
    }
}

#[test]
fn a_directory_from_before_opens_as_it_did_and_is_missed_from_then_on() {
    let data = tempfile::tempdir().unwrap();
    let namespaces = open(data.path());
    create(&namespaces, "side");
    write(&namespaces, "side");
    namespaces.close().unwrap();
    let file = data.path().join("_meta/side.json");
    let text = fs::read_to_string(&file).unwrap();
    let lines = text.lines();
    let old: Vec<&str> = lines
        .filter(|line| !line.contains("\"made\"") && !line.contains("\"check\""))
        .collect();
    let old = old.join("\n").replace("],\n}", "]\n}");
    fs::write(&file, old).unwrap();
    let namespaces = open(data.path());
    write(&namespaces, "side");
    namespaces.close().unwrap();
    assert_eq!(fs::read_to_string(&file).unwrap(), text);
    fs::remove_dir_all(data.path().join("side")).unwrap();
    let namespaces = open(data.path());
    namespaces.database(&id("side")).unwrap_err();
    namespaces.close().unwrap();
}

#[test]
fn every_flipped_bit_of_a_registry_file_is_noticed() {
    let data = tempfile::tempdir().unwrap();
    let namespaces = open(data.path());
    create(&namespaces, "side");
    write(&namespaces, "side");
    namespaces.close().unwrap();
    let text = fs::read(data.path().join("_meta/side.json")).unwrap();
    entry::RegistryRecord::decode(&text).unwrap();
    for at in 0..text.len() {
        for bit in 0..8 {
            let mut flipped = text.clone();
            flipped[at] ^= 1 << bit;
            assert!(
                entry::RegistryRecord::decode(&flipped).is_err(),
                "bit {bit} of byte {at}"
            );
        }
    }
}

#[test]
fn a_broken_registry_file_costs_its_namespace_alone_and_is_never_overwritten() {
    let data = tempfile::tempdir().unwrap();
    let namespaces = open(data.path());
    let token = create(&namespaces, "side");
    create(&namespaces, "other");
    write(&namespaces, "side");
    namespaces.close().unwrap();
    let path = data.path().join("_meta/side.json");
    let sound = fs::read(&path).unwrap();
    for (text, expected) in [
        ("{", "EOF"),
        (r#"{"format":3}"#, "format is 3, this version reads 1 to 2"),
    ] {
        fs::write(&path, text).unwrap();
        let namespaces = open(data.path());
        write(&namespaces, "other");
        let create = namespaces.create(&id("side"), NewNamespace::default());
        for error in [
            namespaces.database(&id("side")).unwrap_err(),
            namespaces.counts("side").unwrap_err(),
            namespaces.delete("side").unwrap_err(),
            namespaces.reopen("side").unwrap_err(),
            create.unwrap_err(),
        ] {
            let error = error.to_string();
            assert!(error.contains("side.json"), "{error}");
            assert!(error.contains(expected), "{error}");
        }
        assert_eq!(namespaces.authenticate(&token), None);
        assert_eq!(namespaces.list().unwrap().len(), 1);
        let refusing = namespaces.refusing_writes();
        assert_eq!(refusing.len(), 1);
        assert_eq!(refusing[0].0, id("side"));
        assert_eq!(fs::read_to_string(&path).unwrap(), text);
        // Once the file is restored, the namespace is what it was.
        fs::write(&path, &sound).unwrap();
        namespaces.reopen("side").unwrap();
        assert_eq!(namespaces.counts("side").unwrap().events, 1);
        assert_eq!(namespaces.authenticate(&token), Some(id("side")));
        assert_eq!(namespaces.refusing_writes(), []);
        namespaces.close().unwrap();
    }
}

#[test]
fn a_default_namespace_whose_entry_is_broken_is_not_made_anew() {
    let data = tempfile::tempdir().unwrap();
    let namespaces = open(data.path());
    namespaces.ensure_default(None).unwrap();
    namespaces.close().unwrap();
    let path = data.path().join("_meta/default.json");
    fs::write(&path, "{").unwrap();
    let error = open(data.path()).ensure_default(None).unwrap_err();
    assert!(error.to_string().contains("default.json"), "{error}");
    assert_eq!(fs::read_to_string(&path).unwrap(), "{");
}
