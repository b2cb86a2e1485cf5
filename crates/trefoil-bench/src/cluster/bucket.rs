//! What is in the bucket: asked of a service that lets anybody list, such as one on this machine.

use std::net::{SocketAddr, ToSocketAddrs as _};

use anyhow::{Context, Result};

use crate::http::get;

/// The environment says where the service is, as it does to every tool.
const ENDPOINT: &str = "AWS_ENDPOINT_URL";

/// Returns the address of the service, which is used without TLS.
pub(super) fn service() -> Result<SocketAddr> {
    let url = std::env::var(ENDPOINT).with_context(|| format!("{ENDPOINT} is not set"))?;
    let host = url.strip_prefix("http://");
    let host = host.with_context(|| format!("{ENDPOINT} must begin with http://"))?;
    let mut addresses = host.trim_end_matches('/').to_socket_addrs()?;
    addresses.next().context("the service has no address")
}

/// Returns the bytes of all objects below a URL like `s3://bucket/prefix`.
pub(super) fn bytes_below(url: &str) -> Result<u64> {
    let path = url
        .strip_prefix("s3://")
        .context("not the URL of a bucket")?;
    let (bucket, prefix) = path.split_once('/').context("the URL has no prefix")?;
    let (mut bytes, mut after) = (0, String::new());
    loop {
        let query =
            format!("/{bucket}?list-type=2&max-keys=1000&prefix={prefix}/&start-after={after}");
        let page = String::from_utf8(get(service()?, &query)?)?;
        let sizes = values(&page, "Size").map(str::parse::<u64>);
        bytes += sizes.sum::<Result<u64, _>>()?;
        let last = values(&page, "Key").last().map(str::to_owned);
        match last.filter(|_| page.contains("<IsTruncated>true")) {
            Some(last) => after = last,
            None => return Ok(bytes),
        }
    }
}

/// What is between the tags of a name.
fn values<'a>(page: &'a str, name: &str) -> impl Iterator<Item = &'a str> {
    let (begin, end) = (format!("<{name}>"), format!("</{name}>"));
    let parts: Vec<&str> = page.split(begin.as_str()).skip(1).collect();
    parts
        .into_iter()
        .filter_map(move |part| Some(part.split_once(end.as_str())?.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_found_in_a_page() {
        let page = "<L><C><Key>a/b</Key><Size>12</Size></C><C><Key>c</Key><Size>3</Size></C></L>";
        assert_eq!(values(page, "Key").collect::<Vec<_>>(), ["a/b", "c"]);
        assert_eq!(values(page, "Size").collect::<Vec<_>>(), ["12", "3"]);
        assert_eq!(values(page, "Other").count(), 0);
    }
}
