//! `trefoil backup restore`.

use std::sync::Arc;

use serde_json::json;
use trefoil::backup::{NamespaceBackup, check_backup, restore_namespace};
use trefoil::home::Home;
use trefoil::{NamespaceId, Options, Token};

use super::RepositoryArguments;
use super::verify::fetch;
use crate::backups::{BackedUpNamespace, BackupDocument, Repository, Use};
use crate::exit::{self, NotFound, UsageError};
use crate::input::confirm;
use crate::output::{CommandOutput, count_progress};

pub(super) const EXAMPLES: &str =
    "Stop the server first. A namespace that is there is not touched: \
restore beside it with --as, or in its place with --replace. One whose restoring was cut short is restored \
again. Under another name, or with --new-tokens, a namespace gets a new token, which is printed.

Examples:
  trefoil backup restore /mnt/backups --data-dir data
  trefoil backup restore /mnt/backups --data-dir data --namespace tenant-a --as tenant-a-before
  trefoil backup restore /mnt/backups --storage s3://bucket/prefix --new-tokens";

#[derive(Debug, clap::Args)]
pub(super) struct Arguments {
    #[command(flatten)]
    repository: RepositoryArguments,
    /// The backup [default: the newest]
    #[arg(long, value_name = "BACKUP")]
    backup: Option<String>,
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
        let repository = self.repository.open(Use::Read)?;
        let backup = repository.backup(self.backup.as_deref())?;
        let chosen = self.chosen(&backup)?;
        let target = self.data_dir.as_ref().or(self.storage.as_ref());
        let target = target.map(String::as_str).unwrap_or_default();
        let home: Arc<dyn Home> = self.repository.place(target)?.open()?;
        output.begin_list();
        let mut last: Option<anyhow::Error> = None;
        for namespace in chosen {
            if let Err(error) = self.restore(&repository, home.as_ref(), namespace, output) {
                let error = error.context(namespace.namespace.clone());
                if let Some(earlier) = last.replace(error) {
                    exit::tell(&earlier, output.format.is_json());
                }
            }
        }
        home.close()?;
        last.map_or(Ok(()), Err)
    }

    fn chosen<'a>(&self, backup: &'a BackupDocument) -> anyhow::Result<Vec<&'a BackedUpNamespace>> {
        let all = backup.namespaces.iter();
        if self.namespace.is_empty() {
            return Ok(all.collect());
        }
        let find = |name: &String| {
            let found = all.clone().find(|namespace| namespace.namespace == *name);
            let missing = || NotFound(format!("backup {} has no namespace '{name}'", backup.id));
            Ok(found.ok_or_else(missing)?)
        };
        self.namespace.iter().map(find).collect()
    }

    fn restore(
        &self,
        repository: &Repository,
        home: &dyn Home,
        namespace: &BackedUpNamespace,
        output: &mut CommandOutput,
    ) -> anyhow::Result<()> {
        let list = repository.list_of(namespace)?;
        let name = self.new_name.as_ref().unwrap_or(&namespace.namespace);
        let id = NamespaceId::new(name)?;
        if self.replace {
            self.make_room(repository, home, &id, &list)?;
        }
        let bar = count_progress()?;
        bar.set_length(list.parts().count() as u64);
        bar.set_message(format!("parts of {id}"));
        let listened = bar.clone();
        let options = Options::default().with_replay_listener(move |done, total| {
            listened.set_length(total);
            listened.set_position(done);
        });
        let restored =
            restore_namespace(home, &id, &list, self.new_tokens, &options, &mut |part| {
                bar.inc(1);
                fetch(repository, part)
            });
        bar.finish_and_clear();
        print(&id, namespace, restored?.as_ref(), output)
    }
}

impl Arguments {
    /// Deletes the namespace that is there, if the backup can take its place.
    fn make_room(
        &self,
        repository: &Repository,
        home: &dyn Home,
        id: &NamespaceId,
        list: &NamespaceBackup,
    ) -> anyhow::Result<()> {
        let Some(entry) = home.entry(id)? else {
            return Ok(());
        };
        check_backup(list, &mut |part| fetch(repository, part))?;
        let commit = list.commit;
        let question = format!("Replace namespace '{id}' by the backup of commit {commit}?");
        confirm(&question, self.yes)?;
        let erase = home.delete(id, entry.stamp.incarnation)?;
        Ok(erase()?)
    }
}

fn print(
    id: &NamespaceId,
    namespace: &BackedUpNamespace,
    token: Option<&Token>,
    output: &mut CommandOutput,
) -> anyhow::Result<()> {
    let commit = namespace.commit;
    let token = token.map(Token::reveal);
    match output.is_text() {
        true => match token {
            Some(token) => output.line(format_args!("{id}  commit {commit}  {token}"))?,
            None => output.line(format_args!("{id}  commit {commit}"))?,
        },
        false => {
            let id = id.as_str();
            output.item(&json!({"namespace": id, "commit": commit, "token": token}))?;
        }
    }
    Ok(output.flush()?)
}
