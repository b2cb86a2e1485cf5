//! Queries and conditions on types and tags, at the library's interface.

mod effort;
mod long_log;
mod slow_conditions;
