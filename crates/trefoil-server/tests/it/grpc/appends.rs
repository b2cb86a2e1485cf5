//! `Append`: positions, ids, metadata, tracked positions, and what is refused.

use trefoil_grpc::{
    AppendRequest, Client, Code, ErrorType, Event, MetadataEntry, ReadRequest, Status, TrackingInfo,
};

use super::{append, append_if, check_failure, connect, event, query, read, responses};
use crate::harness::TestServer;

const ID: &str = "550e8400-e29b-41d4-a716-446655440000";

fn with_id(event: Event, uuid: &str) -> Event {
    let uuid = uuid.into();
    Event { uuid, ..event }
}

fn track(events: Vec<Event>, source: &str, position: u64) -> AppendRequest {
    AppendRequest {
        tracking_info: Some(TrackingInfo {
            source: source.into(),
            position,
        }),
        ..append(events)
    }
}

#[track_caller]
fn check_invalid<T>(result: Result<T, Status>, text: &str) {
    let (code, error_type) = (Code::InvalidArgument, ErrorType::InvalidArgument);
    check_failure(result, code, error_type, text);
}

#[tokio::test]
async fn an_append_answers_the_last_position_and_comes_back_as_it_was() {
    let server = TestServer::production();
    let mut client = connect(&server).await;
    let entry = |key: &str, value: &str| MetadataEntry {
        key: key.into(),
        value: value.into(),
    };
    let events = vec![
        Event {
            event_type: "Ä".into(),
            tags: vec!["b".into(), "a".into(), "b".into()],
            data: b"\0\xff not JSON"[..].into(),
            uuid: ID.into(),
            metadata: vec![entry("z", "1"), entry("a", "\"quoted\"\n"), entry("", "")],
        },
        Event {
            data: Default::default(),
            ..event("Empty", &[])
        },
        event("Json", &["t"]),
    ];
    let position = client.append(append(events.clone())).await.unwrap();
    assert_eq!(position, 3);
    let stored = read(&mut client, ReadRequest::default()).await;
    for (index, (stored, sent)) in stored.into_iter().zip(events).enumerate() {
        assert_eq!(stored.position, index as u64 + 1);
        assert_eq!(stored.event.unwrap(), sent);
        assert_eq!(stored.tracking_info, None);
    }
}

#[tokio::test]
async fn ids_are_checked_and_those_the_server_makes_are_not_shown() {
    let server = TestServer::production();
    let mut client = connect(&server).await;
    let wrong = append(vec![with_id(event("A", &[]), "not-a-uuid")]);
    check_invalid(client.append(wrong).await, "\"not-a-uuid\" is not a UUID");
    let upper = ID.to_uppercase();
    let both = vec![with_id(event("A", &[]), &upper), event("A", &[])];
    client.append(append(both)).await.unwrap();
    let stored = read(&mut client, ReadRequest::default()).await;
    let ids = stored.into_iter().map(|stored| stored.event.unwrap().uuid);
    assert!(ids.eq([ID.to_owned(), String::new()]));
}

#[tokio::test]
async fn what_breaks_a_limit_is_refused_by_name_and_nothing_is_written() {
    let server = TestServer::production();
    let mut client = connect(&server).await;
    let entry = |key: &str| MetadataEntry {
        key: key.into(),
        value: "v".into(),
    };
    let twice = Event {
        metadata: vec![entry("k"), entry("j"), entry("k")],
        ..event("T", &[])
    };
    let many: Vec<String> = (0..2049).map(|n| n.to_string()).collect();
    let many: Vec<&str> = many.iter().map(String::as_str).collect();
    let large = Event {
        data: vec![0; 3 * 1024 * 1024 + 1].into(),
        ..event("T", &[])
    };
    for (wrong, text) in [
        (event(&"t".repeat(4097), &[]), "event type length is 4097"),
        (event("T", &[&"t".repeat(4097)]), "tag length is 4097"),
        (
            event("T", &["t".repeat(4096).as_str(); 9]),
            "bytes of all tags is 36864",
        ),
        (
            event("T", &many),
            "number of tags is 2049, the limit is 2048",
        ),
        (twice, "invalid argument: metadata contains duplicate keys"),
        (large, "event data length is 3145729"),
    ] {
        let refused = client.append(append(vec![event("Good", &[]), wrong])).await;
        check_invalid(refused, text);
    }
    assert_eq!(client.head().await.unwrap(), None);
}

#[tokio::test]
async fn types_and_tags_may_be_what_umadb_takes() {
    let server = TestServer::production();
    let mut client = connect(&server).await;
    let long = "t".repeat(4000);
    let many: Vec<String> = (0..2000).map(|n| format!("{n}")).collect();
    let many: Vec<&str> = many.iter().map(String::as_str).collect();
    let events = vec![
        event("", &["", ""]),
        event(&long, &[]),
        event("T", &[&long]),
        event("T", &many),
    ];
    client.append(append(events.clone())).await.unwrap();
    let mut find = async |types: &[&str], tags: &[&str]| {
        let query = Some(query(types, tags));
        let found = read(
            &mut client,
            ReadRequest {
                query,
                ..ReadRequest::default()
            },
        )
        .await;
        let [found] = &found[..] else {
            panic!("{types:?} {tags:?}: {} events", found.len());
        };
        assert_eq!(
            found.event.as_ref(),
            events.get(found.position as usize - 1)
        );
        found.position
    };
    assert_eq!(find(&[""], &[]).await, 1);
    assert_eq!(find(&[], &[""]).await, 1);
    assert_eq!(find(&[&long], &[]).await, 2);
    assert_eq!(find(&[], &[&long]).await, 3);
    assert_eq!(find(&["T"], &["1999", "7"]).await, 4);
}

async fn recorded(client: &mut Client, source: &str) -> Option<u64> {
    client.tracking(source).await.unwrap()
}

#[tokio::test]
async fn tracked_positions_rise_and_are_stored_with_every_event() {
    let server = TestServer::production();
    let mut client = connect(&server).await;
    assert_eq!(recorded(&mut client, "s").await, None);
    let two = vec![event("A", &[]), event("B", &[])];
    assert_eq!(client.append(track(two, "s", 5)).await.unwrap(), 2);
    assert_eq!(recorded(&mut client, "s").await, Some(5));
    for position in [0, 4, 5] {
        let late = client.append(track(vec![event("C", &[])], "s", position));
        let text = format!("non-increasing tracking position for source 's': {position} <= 5");
        let expected = format!("integrity error: condition failed: {text}");
        let late = late.await;
        assert_eq!(late.as_ref().unwrap_err().message(), expected);
        check_failure(late, Code::FailedPrecondition, ErrorType::Integrity, &text);
    }
    assert_eq!(client.head().await.unwrap(), Some(2));
    let other = client.append(track(vec![event("D", &[])], "", 0)).await;
    assert_eq!(other.unwrap(), 3);
    assert_eq!(recorded(&mut client, "").await, Some(0));
    let stored = read(&mut client, ReadRequest::default()).await;
    let tracked = stored.into_iter().map(|stored| {
        let info = stored.tracking_info.unwrap();
        (info.source, info.position)
    });
    assert!(tracked.eq([("s", 5), ("s", 5), ("", 0)].map(|(s, p)| (s.to_owned(), p))));
}

#[tokio::test]
async fn an_append_without_events_records_a_tracked_position() {
    let server = TestServer::production();
    let mut client = connect(&server).await;
    assert_eq!(client.append(track(vec![], "s", 7)).await.unwrap(), 0);
    assert_eq!(recorded(&mut client, "s").await, Some(7));
    let late = client.append(track(vec![], "s", 7)).await;
    let code = Code::FailedPrecondition;
    check_failure(late, code, ErrorType::Integrity, "7 <= 7");
    // Its condition counts too.
    client.append(append(vec![event("A", &[])])).await.unwrap();
    let guarded = AppendRequest {
        condition: append_if(vec![], query(&["A"], &[]), None).condition,
        ..track(vec![], "s", 8)
    };
    let refused = client.append(guarded).await;
    check_failure(refused, code, ErrorType::Integrity, "position 1 matches");
    assert_eq!(recorded(&mut client, "s").await, Some(7));
}

#[tokio::test]
async fn sources_have_at_most_255_bytes() {
    let server = TestServer::production();
    let mut client = connect(&server).await;
    let (longest, longer) = ("s".repeat(255), "s".repeat(256));
    client.append(track(vec![], &longest, 1)).await.unwrap();
    assert_eq!(recorded(&mut client, &longest).await, Some(1));
    let refused = client.append(track(vec![], &longer, 1)).await;
    check_invalid(refused, "length of a tracking source is 256");
    assert_eq!(recorded(&mut client, &longer).await, None);
}

#[tokio::test]
async fn an_append_of_nothing_answers_zero() {
    let server = TestServer::production();
    let mut client = connect(&server).await;
    assert_eq!(client.append(append(vec![])).await.unwrap(), 0);
    assert_eq!(client.head().await.unwrap(), None);
    let all = responses(&mut client, ReadRequest::default())
        .await
        .unwrap();
    assert_eq!(all.len(), 1);
}
