//! Ids over gRPC, as UmaDB treats them: looked at only when the condition fails.

use trefoil_grpc::{AppendRequest, Client, Code, ErrorType, Event, ReadRequest, TrackingInfo};

use super::{append, append_if, check_failure, connect, event, query, read};
use crate::client::rpc;
use crate::harness::TestServer;

const A: &str = "550e8400-e29b-41d4-a716-44665544000a";
const B: &str = "550e8400-e29b-41d4-a716-44665544000b";
const NIL: &str = "00000000-0000-0000-0000-000000000000";

fn with_id(uuid: &str, tag: &str) -> Event {
    let uuid = uuid.into();
    Event {
        uuid,
        ..event("T", &[tag])
    }
}

/// An append that fails if any event has the tag `t`.
fn guarded(ids: &[&str]) -> AppendRequest {
    let events = ids.iter().map(|id| with_id(id, "t")).collect();
    append_if(events, query(&[], &["t"]), None)
}

async fn check_conflict(client: &mut Client, request: AppendRequest) {
    let refused = client.append(request).await;
    let code = Code::FailedPrecondition;
    check_failure(refused, code, ErrorType::Integrity, "matches");
}

async fn ids(client: &mut Client) -> Vec<String> {
    let stored = read(client, ReadRequest::default()).await;
    let id = |stored: trefoil_grpc::SequencedEvent| stored.event.unwrap().uuid;
    stored.into_iter().map(id).collect()
}

#[tokio::test]
async fn a_known_id_is_stored_again_unless_a_condition_fails() {
    let server = TestServer::production();
    let mut client = connect(&server).await;
    for position in 1..=3 {
        let appended = client.append(append(vec![with_id(A, "t")])).await;
        assert_eq!(appended.unwrap(), position);
    }
    // A condition that holds changes nothing about that, nor does one append with an id twice.
    let holds = append_if(vec![with_id(A, "t")], query(&[], &["other"]), None);
    assert_eq!(client.append(holds).await.unwrap(), 4);
    let twice = append(vec![with_id(B, "u"), with_id(B, "u")]);
    assert_eq!(client.append(twice).await.unwrap(), 6);
    assert_eq!(ids(&mut client).await, [A, A, A, A, B, B]);
}

#[tokio::test]
async fn the_first_matches_must_have_the_ids_in_order() {
    let server = TestServer::production();
    let mut client = connect(&server).await;
    assert_eq!(client.append(guarded(&[A, B])).await.unwrap(), 2);
    client
        .append(append(vec![event("C", &["t"])]))
        .await
        .unwrap();
    assert_eq!(client.append(guarded(&[A, B])).await.unwrap(), 2);
    // UmaDB asks for the first matches: a part of the append is one, too.
    assert_eq!(client.append(guarded(&[A])).await.unwrap(), 1);
    for wrong in [&[B, A][..], &[B], &[A, B, A], &[A, A], &[A, ""], &[""]] {
        check_conflict(&mut client, guarded(wrong)).await;
    }
    // What matches is counted from `after` on.
    let after = |position| AppendRequest {
        condition: append_if(vec![], query(&[], &["t"]), Some(position)).condition,
        ..guarded(&[B])
    };
    assert_eq!(client.append(after(1)).await.unwrap(), 2);
    check_conflict(&mut client, after(0)).await;
    check_conflict(&mut client, after(2)).await;
    assert_eq!(client.append(after(3)).await.unwrap(), 4);
    assert_eq!(client.head().await.unwrap(), Some(4));
}

#[tokio::test]
async fn a_long_append_that_is_sent_again_is_recognised() {
    let server = TestServer::production();
    let mut client = connect(&server).await;
    let many: Vec<String> = (0..5000).map(|n| format!("{A:.24}{n:012}")).collect();
    let many: Vec<&str> = many.iter().map(String::as_str).collect();
    assert_eq!(client.append(guarded(&many)).await.unwrap(), 5000);
    assert_eq!(client.append(guarded(&many)).await.unwrap(), 5000);
    let mut other = many.clone();
    other[4999] = B;
    check_conflict(&mut client, guarded(&other)).await;
    assert_eq!(client.head().await.unwrap(), Some(5000));
}

#[tokio::test]
async fn the_nil_uuid_is_no_id() {
    let server = TestServer::production();
    let mut client = connect(&server).await;
    assert_eq!(client.append(guarded(&[NIL])).await.unwrap(), 1);
    assert_eq!(
        client
            .append(append(vec![with_id(NIL, "t")]))
            .await
            .unwrap(),
        2
    );
    check_conflict(&mut client, guarded(&[NIL])).await;
    assert_eq!(ids(&mut client).await, ["", ""]);
    // Nor is it elsewhere.
    for (position, data) in [(3, "{}"), (4, "{}")] {
        let message = format!(r#"{{"type":"T","data":{data}}}"#);
        let call = format!(r#"["stream.write","s-1",{message},{{"id":"{NIL}"}}]"#);
        let written = rpc(server.address, &call);
        let expected = format!(
            r#"{{"globalPosition":{position},"position":{}}}"#,
            position - 3
        );
        assert_eq!(written.text(), expected);
    }
}

#[tokio::test]
async fn a_repetition_records_a_new_tracked_position() {
    let server = TestServer::production();
    let mut client = connect(&server).await;
    let tracked = |position| AppendRequest {
        tracking_info: Some(TrackingInfo {
            source: "s".into(),
            position,
        }),
        ..guarded(&[A])
    };
    for (position, recorded) in [(5, 5), (5, 5), (9, 9), (7, 9)] {
        assert_eq!(client.append(tracked(position)).await.unwrap(), 1);
        assert_eq!(client.tracking("s").await.unwrap(), Some(recorded));
    }
    assert_eq!(client.head().await.unwrap(), Some(1));
}

#[tokio::test]
async fn over_http_an_id_stands_for_the_first_event_that_has_it() {
    let server = TestServer::production();
    let mut client = connect(&server).await;
    for data in ["1", "2"] {
        let data = data.into();
        let event = Event {
            data,
            ..with_id(A, "t")
        };
        client.append(append(vec![event])).await.unwrap();
    }
    let commit = |data: &str, tags: &str| {
        let event = format!(r#"{{"type":"T","data":{data},"tags":[{tags}],"id":"{A}"}}"#);
        rpc(
            server.address,
            &format!(r#"["commit",{{"events":[{event}]}}]"#),
        )
    };
    let replayed = commit("1", r#""t""#);
    assert!(
        replayed.text().contains(r#""globalPosition":1,"#),
        "{}",
        replayed.text()
    );
    for (data, tags) in [("2", r#""t""#), ("1", ""), ("1.0", r#""t""#)] {
        let refused = commit(data, tags);
        assert_eq!(refused.status, 409);
        let text = "already exists at global position 1\"";
        assert!(refused.text().contains(text), "{}", refused.text());
    }
    assert_eq!(client.head().await.unwrap(), Some(2));
}
