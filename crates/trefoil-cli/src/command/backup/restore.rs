//! `trefoil backup restore`.

use std::sync::Arc;

use serde_json::json;
use trefoil::backup::{NamespaceBackup, Restored, check_backup, restore_namespace};
use trefoil::home::Home;
use trefoil::{KnownRedaction, NamespaceId, Options, Token, tools};

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
archive of the repository or the namespace that is replaced knows of it.

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
        let mut redactions = candidates.redactions(list)?;
        if self.replace
            && let Some(known) = self.make_room(candidates, home, &id, list)?
        {
            redactions.get_or_insert_default().extend(known);
        }
        let bar = count_progress()?;
        bar.set_length(list.parts().count() as u64);
        bar.set_message(format!("parts of {id}"));
        let listened = bar.clone();
        let options = Options::default().with_replay_listener(move |done, total| {
            listened.set_length(total);
            listened.set_position(done);
        });
        let known = redactions.as_deref();
        let restored = restore_namespace(
            home,
            &id,
            list,
            known.unwrap_or_default(),
            self.new_tokens,
            &options,
            &mut |part| {
                bar.inc(1);
                candidates.fetch(part)
            },
        );
        bar.finish_and_clear();
        print(&id, list, &restored?, known.is_some(), output)
    }
}

impl Arguments {
    /// Deletes the namespace that is there, if the backup can take its place. Returns what it knows of
    /// redactions, if it can be read.
    fn make_room(
        &self,
        candidates: &Candidates<'_>,
        home: &dyn Home,
        id: &NamespaceId,
        list: &NamespaceBackup,
    ) -> anyhow::Result<Option<Vec<KnownRedaction>>> {
        let Some(entry) = home.entry(id)? else {
            return Ok(None);
        };
        check_backup(list, &mut |part| candidates.fetch(part))?;
        let commit = list.commit;
        let question = format!("Replace namespace '{id}' by the backup of commit {commit}?");
        confirm(&question, self.yes)?;
        // What is damaged is replaced all the same.
        let redactions = tools::redactions(home, id, &Options::default()).ok();
        let erase = home.delete(id, entry.stamp.incarnation)?;
        erase()?;
        Ok(redactions)
    }
}

fn print(
    id: &NamespaceId,
    list: &NamespaceBackup,
    restored: &Restored,
    knows_redactions: bool,
    output: &mut CommandOutput,
) -> anyhow::Result<()> {
    let (commit, position) = (list.commit, list.position);
    let token = restored.token.as_ref().map(Token::reveal);
    match output.is_text() {
        true => {
            let redacted = match (restored.redacted, knows_redactions) {
                (0, true) => String::new(),
                (0, false) => ", later redactions are not known".to_owned(),
                (n, true) => format!(", {n} events redacted again"),
                (n, false) => {
                    format!(", {n} events redacted again, later redactions are not known")
                }
            };
            let token = token.as_ref().map(|token| format!("  {token}"));
            let token = token.unwrap_or_default();
            output.line(format_args!("{id}  commit {commit}{redacted}{token}"))?;
        }
        false => {
            let id = id.as_str();
            output.item(&json!({
                "namespace": id,
                "commit": commit,
                "position": position,
                "redacted": restored.redacted,
                "knowsLaterRedactions": knows_redactions,
                "token": token,
            }))?;
        }
    }
    Ok(output.flush()?)
}
