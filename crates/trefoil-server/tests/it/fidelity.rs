//! Data and metadata come back byte for byte.

use crate::client::rpc;
use crate::harness::TestServer;

const OBJECTS: [&str; 12] = [
    "{}",
    r#"{"amount":1.0}"#,
    r#"{"big":9223372036854775807,"bigger":123456789012345678901234567890,"e":1E+2}"#,
    r#"{"z":1,"a":2,"m":3}"#,
    r#"{"same":1,"same":2}"#,
    r#"{"escaped":"\u00e9\u4e16\ud83c\udf89","slash":"\/","lone":"\ud800"}"#,
    r#"{"plain":"é世界🎉","html":"<b>&</b>"}"#,
    r#"{ "spaces" : [ 1 ,	2 ] , "deep":{"a":{"b":[[[[]]]]}} }"#,
    "{\n  \"lines\": [\n    1\n  ]\r\n}",
    r#"{"empty":"","null":null,"true":true,"list":[],"number":-0.0}"#,
    r#"{"":"","\"":"\\"}"#,
    r#"{"nul":"\u0000","control":"\u001f\t\n"}"#,
];

#[test]
fn objects_come_back_as_they_were_sent() {
    let server = TestServer::production();
    for (index, object) in OBJECTS.iter().enumerate() {
        let stream = format!("fidelity-{index}");
        let call = format!(
            " [ \"stream.write\" , \"{stream}\" , {{ \"type\" : \"T\" , \"data\" :  {object}  , \"metadata\":\t{object} }} ] "
        );
        let reply = rpc(server.address, &call);
        assert_eq!(reply.status, 200, "{object}: {}", reply.text());
        let row = format!(",{object},{object},\"");
        for call in [
            format!(r#"["stream.get","{stream}"]"#),
            format!(r#"["stream.last","{stream}"]"#),
            format!(
                r#"["category.get","fidelity",{{"position":{}}}]"#,
                index + 1
            ),
        ] {
            let reply = rpc(server.address, &call);
            assert!(reply.text().contains(&row), "{object}: {}", reply.text());
        }
    }
}

#[test]
fn names_come_back_as_they_were_sent() {
    let server = TestServer::production();
    let names = [
        r#"a\"b-1"#,
        r"a\\b-1",
        "世界-🎉",
        r"tab\t-1",
        r"nul\u0000-1",
        "a b-1",
        "<&>-1",
    ];
    for (index, name) in names.iter().enumerate() {
        let write = format!(r#"["stream.write","{name}",{{"type":"{name}","data":{{}}}}]"#);
        assert_eq!(rpc(server.address, &write).status, 200, "{name}");
        let read = format!(r#"["category.get","",{{"position":{}}}]"#, index + 1);
        let rows: Vec<Vec<serde_json::Value>> =
            serde_json::from_slice(&rpc(server.address, &read).body).unwrap();
        let expected: String = serde_json::from_str(&format!("\"{name}\"")).unwrap();
        assert_eq!(
            (&rows[0][1], &rows[0][2]),
            (&expected.clone().into(), &expected.into())
        );
    }
}

#[test]
fn an_escaped_name_is_the_same_stream() {
    let server = TestServer::production();
    let write = r#"["stream.write","\u0061ccount-1",{"\u0074ype":"T","d\u0061ta":{}}]"#;
    assert_eq!(
        rpc(server.address, write).text(),
        r#"{"globalPosition":1,"position":0}"#
    );
    assert_eq!(
        rpc(server.address, r#"["stream.version","account-1"]"#).text(),
        "0"
    );
}
