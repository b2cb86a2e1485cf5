//! When a machine is lost: reads of a server that has nothing at hand, and how soon another one takes over.

use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};

use super::Bench;
use super::load::{Clients, Until};
use super::loaded::{Loaded, entity_reader};
use super::server::Server;
use crate::http::{ask, post};
use crate::machine::drop_pages;
use crate::outcome::Figure;
use crate::place::Place;
use crate::report::{Report, Row};

/// How many entities are read after each restart.
const READS: u64 = 200;

/// Reads entities one after the other just after a restart, with no page of a file in memory, and no copy
/// of what is in an object storage.
pub(super) fn cold_reads(
    bench: &Bench<'_>,
    loaded: &mut [Loaded],
    report: &mut Report,
) -> Result<()> {
    let title = format!("The first {READS} entities that are read after a restart, cold");
    let mut seed = 0;
    let rows = bench.rows(
        &title,
        bench.first_entries(),
        Figure::MedianMilliseconds,
        |entry| {
            let Loaded { server, .. } = &mut loaded[entry.store];
            server.running.stop()?;
            server.running.remove_cache()?;
            drop_pages()?;
            server.start_again()?;
            seed += 1;
            let until = Until {
                time: Duration::MAX,
                requests: READS,
            };
            Clients::connect(server, entry.driver, [entity_reader(bench, seed)])?.run(until)
        },
    )?;
    report.table(&title, "ms", rows);
    Ok(())
}

/// Kills the server that has the data while another one on the same storage is running.
pub(super) fn take_over(
    bench: &Bench<'_>,
    loaded: &mut [Loaded],
    report: &mut Report,
) -> Result<()> {
    let title = "The other server answers after kill -9 of the one that has the data";
    let mut rows = Vec::new();
    for Loaded { server, .. } in loaded.iter_mut() {
        bench.doing(format!("{title}: {}", server.store.name));
        let (name, place) = (server.store.name, &server.store.place);
        let url = place.url(server.running.directory());
        rows.push(match url.filter(|_| place.is_shared()) {
            None => Row::missing(name, "one server at a time"),
            Some(url) => take_over_row(bench, server, url)?,
        });
    }
    report.table(title, "ms", rows);
    Ok(())
}

fn take_over_row(bench: &Bench<'_>, server: &mut Server, url: String) -> Result<Row> {
    let mut store = server.store.clone();
    store.place = Place::Shared(url);
    let mut other = Server::start(&store, &bench.options.dir)?;
    let mut millis = Vec::new();
    for _ in 0..bench.options.rounds() {
        let (owner, heir) = match has_the_data(server)? {
            true => (&mut *server, &mut other),
            false => (&mut other, &mut *server),
        };
        owner.running.kill()?;
        let begin = Instant::now();
        heir.wait_for_an_answer()?;
        millis.push(begin.elapsed().as_secs_f64() * 1e3);
        owner.start_again()?;
    }
    // It hands over what it has.
    other.running.stop()?;
    server.wait_for_an_answer()?;
    millis.sort_by(f64::total_cmp);
    ensure!(!millis.is_empty(), "no round was measured");
    let mut row = Row::new(server.store.name, millis[millis.len() / 2]);
    row.spread = Some((millis[0], millis[millis.len() - 1]));
    Ok(row)
}

/// Returns whether it is this server that has the data.
fn has_the_data(server: &Server) -> Result<bool> {
    let address = server.http();
    let call = json!(["sys.nodes", {"namespace": "default"}]).to_string();
    let answer: Value = serde_json::from_slice(&ask(address, &post(address, &call))?)?;
    let nodes = answer["nodes"].as_array().context("there are no nodes")?;
    let this = nodes.iter().find(|node| node["this"] == true);
    Ok(this.is_some_and(|node| node["id"] == answer["owner"]))
}
