//! `["sys.settings"]`
//!
//! Answers `[{"name", "value", "source"}]`: how the server was started, and where each value came
//! from. A value is `null` if there is none or if it is a secret, which has `"secret": true`. Only for the
//! administrator of the server. It goes beyond EventoDB.

use super::Context;
use crate::config::ShownSetting;
use crate::error::Result;
use crate::json::{ObjectWriter, RpcCall, put_array};
use crate::response::{self, HttpAnswer};

pub(super) async fn run(context: Context<'_>, _: &RpcCall<'_>) -> Result<HttpAnswer> {
    let mut out = Vec::new();
    put_array(&mut out, &context.shared.config.settings, put_setting);
    Ok(response::json(out))
}

fn put_setting(out: &mut Vec<u8>, setting: &ShownSetting) {
    let mut object = ObjectWriter::begin(out);
    object.text("name", &setting.name);
    object.text_or_null("value", setting.value.as_deref());
    object.text("source", &setting.source);
    if setting.is_secret {
        object.flag("secret", true);
    }
    object.end();
}
