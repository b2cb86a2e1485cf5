//! The names of the protocol's services and methods.

/// The name of the service.
pub const SERVICE: &str = "umadb.v1.DCB";
/// The name it had before; its methods are the same.
pub const LEGACY_SERVICE: &str = "umadb.UmaDBService";
/// The name of the service that tells whether the others answer.
pub const HEALTH_SERVICE: &str = "grpc.health.v1.Health";

/// The path of `Read`.
pub const READ: &str = "/umadb.v1.DCB/Read";
/// The path of `Subscribe`.
pub const SUBSCRIBE: &str = "/umadb.v1.DCB/Subscribe";
/// The path of `Append`.
pub const APPEND: &str = "/umadb.v1.DCB/Append";
/// The path of `Head`.
pub const HEAD: &str = "/umadb.v1.DCB/Head";
/// The path of `GetTrackingInfo`.
pub const GET_TRACKING_INFO: &str = "/umadb.v1.DCB/GetTrackingInfo";
/// The path of the health service's `Check`.
pub const HEALTH_CHECK: &str = "/grpc.health.v1.Health/Check";
/// The path of the health service's `Watch`.
pub const HEALTH_WATCH: &str = "/grpc.health.v1.Health/Watch";
