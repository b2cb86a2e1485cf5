//! `trefoil backup restore`.

use std::sync::Arc;

use serde_json::json;
use trefoil::backup::{NamespaceBackup, RestoreOrder, Restored, check_backup, restore_namespace};
use trefoil::home::Home;
use trefoil::{KnownRedaction, NamespaceId, Options, Timestamp, Token, tools};

use super::RepositoryArguments;
use super::point::PointArguments;
use crate::backups::{Candidates, Use};
use crate::exit::{self, UsageError};
use crate::input::confirm;
use crate::output::{CommandOutput, count_progress};

pub(super) const EXAMPLES: &str =
    "Stop the server first. A namespace that is there is not touched: \
restore beside it with --as, or in its place with --replace. One whose restoring was cut short is restored \
again. Under another name, or with --new-tokens, a namespace gets a new token, which is printed. A \
commit is restored as a whole or not at all. Events that were redacted since are redacted again, if the \
archive of the repository knows of it, or the namespace itself, if it is still there.

Examples:
  trefoil backup restore /mnt/backups --data-dir data
  trefoil backup restore /mnt/backups --data-dir data --namespace tenant-a --as tenant-a-before
  trefoil backup restore /mnt/backups --data-dir data --replace --to-time 2026-11-16T14:00:00Z
  trefoil backup restore /mnt/backups --storage s3://bucket/prefix --new-tokens";

#[derive(Debug, clap::Args)]
pub(super) struct Arguments {
    #[command(flatten)]
    repository: RepositoryArguments,
    /// The backup [default: the newest]
    #[arg(long, value_name = "BACKUP")]
    backup: Option<String>,
    #[command(flatten)]
    point: PointArguments,
    /// Data directory to restore into; made if it is not there
    #[arg(long, value_name = "DIR", required_unless_present = "storage")]
    data_dir: Option<String>,
    /// The same for an object storage
    #[arg(long, value_name = "URL", conflicts_with = "data_dir")]
    storage: Option<String>,
    /// Only this namespace; may be given several times [default: all]
    #[arg(long, value_name = "NAME")]
    namespace: Vec<String>,
    /// The name that the one namespace gets
    #[arg(long = "as", value_name = "NAME")]
    new_name: Option<String>,
    /// Give every namespace a new token
    #[arg(long)]
    new_tokens: bool,
    /// Replace a namespace that is there, once its backup was found to be sound
    #[arg(long)]
    replace: bool,
    /// Do not ask before something is replaced
    #[arg(long, short)]
    yes: bool,
}

impl Arguments {
    pub(super) fn run(self, output: &mut CommandOutput) -> anyhow::Result<()> {
        if self.new_name.is_some() && self.namespace.len() != 1 {
            return Err(UsageError("--as needs one --namespace".to_owned()).into());
        }
        if self.point.is_of_one() && self.namespace.len() != 1 {
            let text = "--to-position and --to-commit need one --namespace";
            return Err(UsageError(text.to_owned()).into());
        }
        let repository = self.repository.open(Use::Read)?;
        let (id, point) = (self.backup.as_deref(), self.point.point());
        let candidates = Candidates::find(&repository, id, point)?;
        let names = match self.namespace.is_empty() {
            true => candidates.names()?,
            false => self.namespace.clone(),
        };
        let target = self.data_dir.as_ref().or(self.storage.as_ref());
        let target = target.map(String::as_str).unwrap_or_default();
        let home: Arc<dyn Home> = self.repository.place(target)?.open()?;
        output.begin_list();
        let mut last: Option<anyhow::Error> = None;
        for name in names {
            let list = candidates.choose(&name);
            let restored =
                list.and_then(|list| self.restore(&candidates, home.as_ref(), &list, output));
            if let Err(error) = restored {
                let error = error.context(name);
                if let Some(earlier) = last.replace(error) {
                    exit::tell(&earlier, output.format.is_json());
                }
            }
        }
        home.close()?;
        last.map_or(Ok(()), Err)
    }

    fn restore(
        &self,
        candidates: &Candidates<'_>,
        home: &dyn Home,
        list: &NamespaceBackup,
        output: &mut CommandOutput,
    ) -> anyhow::Result<()> {
        let name = self.new_name.as_ref().unwrap_or(&list.namespace);
        let id = NamespaceId::new(name)?;
        let known = LaterRedactions::find(candidates, home, &id, list)?;
        let replaces = self.replace && home.entry(&id)?.is_some();
        if replaces {
            check_backup(list, &mut |part| candidates.fetch(part))?;
            let commit = list.commit;
            let question = format!("Replace namespace '{id}' by the backup of commit {commit}?");
            confirm(&question, self.yes)?;
        }
        let bar = count_progress()?;
        bar.set_length(list.parts().count() as u64);
        bar.set_message(format!("parts of {id}"));
        let listened = bar.clone();
        let options = Options::default().with_replay_listener(move |done, total| {
            listened.set_length(total);
            listened.set_position(done);
        });
        let order = RestoreOrder {
            redactions: &known.redactions,
            with_new_token: self.new_tokens,
            replaces,
        };
        let restored = restore_namespace(home, &id, list, order, &options, &mut |part| {
            bar.inc(1);
            candidates.fetch(part)
        });
        bar.finish_and_clear();
        print(&id, list, &restored?, &known, output)
    }
}

/// What is known of redactions that were made since the backup.
#[derive(Default)]
struct LaterRedactions {
    redactions: Vec<KnownRedaction>,
    /// Whether these are all: the namespace that the backup is of is there.
    are_all: bool,
    /// Up to when the archive knows of them.
    until: Option<Timestamp>,
}

impl LaterRedactions {
    /// Asks the archive, the namespace of the name that the backup was made of, and the one that has the
    /// place of what is restored.
    fn find(
        candidates: &Candidates<'_>,
        home: &dyn Home,
        id: &NamespaceId,
        list: &NamespaceBackup,
    ) -> anyhow::Result<Self> {
        let followed = candidates.redactions(list)?;
        let mut known = Self {
            redactions: followed.redactions,
            are_all: false,
            until: followed.until,
        };
        let origin = NamespaceId::new(&list.namespace)?;
        let place = (*id != origin).then_some(id);
        for living in [&origin].into_iter().chain(place) {
            if home.entry(living)?.is_none() {
                continue;
            }
            // What is damaged tells nothing, and may be replaced all the same.
            let Ok(found) = tools::redactions(home, living, &Options::default()) else {
                continue;
            };
            // Another namespace may have got the name since.
            let is_it = found.origin.is_some() && found.origin == list.origin;
            known.are_all |= *living == origin && is_it;
            known.redactions.extend(found.redactions);
        }
        Ok(known)
    }

    /// Says what is not known of them.
    fn told(&self) -> String {
        match (self.are_all, self.until) {
            (true, _) => String::new(),
            (false, Some(until)) => format!(", redactions are known up to {until}"),
            (false, None) => ", later redactions are not known".to_owned(),
        }
    }
}

fn print(
    id: &NamespaceId,
    list: &NamespaceBackup,
    restored: &Restored,
    known: &LaterRedactions,
    output: &mut CommandOutput,
) -> anyhow::Result<()> {
    let (commit, position) = (list.commit, list.position);
    let token = restored.token.as_ref().map(Token::reveal);
    match output.is_text() {
        true => {
            let redacted = match restored.redacted {
                0 => String::new(),
                n => format!(", {n} events redacted again"),
            };
            let missing = match restored.missing {
                0 => String::new(),
                n => format!(", {n} events are missing that were removed later"),
            };
            let known = known.told();
            let token = token.as_ref().map(|token| format!("  {token}"));
            let token = token.unwrap_or_default();
            output.line(format_args!(
                "{id}  commit {commit}{missing}{redacted}{known}{token}"
            ))?;
        }
        false => {
            let id = id.as_str();
            output.item(&json!({
                "namespace": id,
                "commit": commit,
                "position": position,
                "redacted": restored.redacted,
                "missing": restored.missing,
                "knowsLaterRedactions": known.are_all,
                "redactionsKnownUntil": known.until.map(|until| until.to_string()),
                "token": token,
            }))?;
        }
    }
    Ok(output.flush()?)
}
