//! Seats on the real server: sold out under crashes, raced for, and refused in the same words over
//! RESP and HTTP.
//!
//! ```text
//! line       a client that speaks either protocol
//! replayed   the keys, compared with what their events lead to
//! sell_out   many buyers, a server that is killed, and every seat sold once
//! buyer      what one of them does
//! races      two who want the same at the same time, and holds that end meanwhile
//! refusals   every error, over both protocols
//! unvisited  holds in namespaces that nobody opens
//! ```

mod buyer;
mod line;
mod races;
mod refusals;
mod replayed;
mod sell_out;
mod unvisited;
