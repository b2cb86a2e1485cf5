//! URLs of stores.

use std::path::PathBuf;
use std::str::FromStr;

use object_store::path::Path;

use super::ConnectError;

/// Says where a store is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StoreUrl {
    /// In memory, and gone with the process: `memory:`.
    Memory,
    /// In a directory, for one process at a time: `file:///path`.
    File(PathBuf),
    /// In a bucket: `s3://bucket/prefix`. Who may use it, and where the service is, is said by the
    /// environment.
    Bucket {
        /// Which sort of service has it.
        service: BucketService,
        /// The bucket, which Azure calls a container.
        bucket: String,
        /// What the names of all objects begin with; may be empty.
        prefix: Path,
    },
}

/// A sort of service that keeps objects in buckets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BucketService {
    /// Amazon S3, and all that speak its protocol: `s3:`.
    S3,
    /// Google Cloud Storage: `gs:`.
    Google,
    /// Azure Blob Storage: `az:`.
    Azure,
}

impl BucketService {
    const ALL: [Self; 3] = [Self::S3, Self::Google, Self::Azure];

    fn scheme(self) -> &'static str {
        match self {
            Self::S3 => "s3",
            Self::Google => "gs",
            Self::Azure => "az",
        }
    }

    /// Returns the variables that say who asks.
    fn variables(self) -> &'static str {
        match self {
            Self::S3 => "AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY and AWS_ENDPOINT_URL",
            Self::Google => "GOOGLE_APPLICATION_CREDENTIALS",
            Self::Azure => "AZURE_STORAGE_ACCOUNT_NAME and AZURE_STORAGE_ACCOUNT_KEY",
        }
    }
}

impl FromStr for StoreUrl {
    type Err = ConnectError;

    fn from_str(text: &str) -> Result<Self, ConnectError> {
        let Some((scheme, rest)) = text.split_once(':') else {
            return Err(ConnectError(format!(
                "'{text}' is not a URL; use s3:, gs: or az://bucket/prefix, file:///path or memory:"
            )));
        };
        // What is before an `@` may be a secret.
        let shown = if text.contains('@') { scheme } else { text };
        let wrong = |what: &str| ConnectError(format!("'{shown}': {what}"));
        match scheme {
            "memory" if rest.is_empty() => Ok(Self::Memory),
            "memory" => Err(wrong("nothing may follow memory:")),
            "file" => file(rest).map_err(|what| wrong(&what)),
            _ => {
                let mut services = BucketService::ALL.into_iter();
                let service = services.find(|service| service.scheme() == scheme);
                let unknown = || {
                    wrong(&format!(
                        "{scheme}: is not known; use s3:, gs: or az://bucket/prefix, file:///path or memory:"
                    ))
                };
                let service = service.ok_or_else(unknown)?;
                bucket(service, rest).map_err(|what| wrong(&what))
            }
        }
    }
}

impl std::fmt::Display for StoreUrl {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Memory => formatter.write_str("memory:"),
            Self::File(path) => write!(formatter, "file://{}", path.display()),
            Self::Bucket {
                service,
                bucket,
                prefix,
            } => write!(formatter, "{}://{bucket}/{prefix}", service.scheme()),
        }
    }
}

fn file(rest: &str) -> Result<StoreUrl, String> {
    let Some(path) = rest.strip_prefix("//") else {
        return Err("a path is missing: file:///path".to_owned());
    };
    if !path.starts_with('/') {
        return Err("the path must be absolute, with three slashes: file:///path".to_owned());
    }
    if path.contains(['?', '#', '%']) {
        return Err("'?', '#' and '%' cannot be part of the path".to_owned());
    }
    Ok(StoreUrl::File(PathBuf::from(path)))
}

fn bucket(service: BucketService, rest: &str) -> Result<StoreUrl, String> {
    let missing = || format!("a bucket is missing: {}://bucket/prefix", service.scheme());
    let rest = rest.strip_prefix("//").ok_or_else(missing)?;
    let (bucket, prefix) = rest.split_once('/').unwrap_or((rest, ""));
    if bucket.is_empty() {
        return Err(missing());
    }
    if bucket.contains(['@', ':']) {
        return Err(format!(
            "keys and addresses do not belong into the URL: set {}",
            service.variables()
        ));
    }
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
    if !bucket.bytes().all(is_plain) {
        return Err("the bucket may have letters, digits, '-', '_' and '.'".to_owned());
    }
    let prefix = prefix.trim_end_matches('/');
    if !prefix.bytes().all(|byte| is_plain(byte) || byte == b'/') {
        return Err("the prefix may have letters, digits, '-', '_', '.' and '/'".to_owned());
    }
    let prefix = Path::parse(prefix).map_err(|error| format!("the prefix: {error}"))?;
    Ok(StoreUrl::Bucket {
        service,
        bucket: bucket.to_owned(),
        prefix,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(text: &str) -> String {
        text.parse::<StoreUrl>().unwrap_err().to_string()
    }

    #[test]
    fn urls_are_read_and_written() {
        for text in [
            "memory:",
            "file:///var/lib/a b",
            "s3://bucket/",
            "s3://b/a/c-1",
            "gs://bucket/p",
            "az://container/p",
        ] {
            assert_eq!(text.parse::<StoreUrl>().unwrap().to_string(), text);
        }
        assert_eq!(
            "s3://bucket".parse::<StoreUrl>().unwrap(),
            "s3://bucket/".parse::<StoreUrl>().unwrap()
        );
    }

    #[test]
    fn what_is_wrong_is_named() {
        assert!(refused("/var/lib").contains("is not a URL"));
        assert!(refused("memory:x").contains("nothing may follow"));
        assert!(refused("file:/var").contains("file:///path"));
        assert!(refused("file://var").contains("three slashes"));
        assert!(refused("file:///a?b").contains("cannot be part"));
        assert!(refused("s3:bucket").contains("bucket is missing"));
        assert!(refused("s3:///prefix").contains("bucket is missing"));
        assert!(refused("s3://key:secret@bucket/p").contains("AWS_ACCESS_KEY_ID"));
        assert!(refused("s3://buc ket").contains("the bucket may have"));
        assert!(refused("s3://bucket/a?b").contains("the prefix may have"));
        assert!(refused("s3://bucket/a//b").contains("the prefix"));
        assert!(refused("s3://bucket/../b").contains("the prefix"));
        assert!(refused("gs:///p").contains("a bucket is missing: gs://bucket/prefix"));
        assert!(refused("az://account:key@c/p").contains("AZURE_STORAGE_ACCOUNT_KEY"));
        assert!(refused("ftp://bucket/p").contains("ftp: is not known"));
    }

    #[test]
    fn a_secret_in_a_url_is_not_repeated() {
        assert!(!refused("s3://key:hidden@bucket/p").contains("hidden"));
    }
}
