//! `MULTI`, `EXEC`, `DISCARD`, `WATCH`, and what else never waits for `EXEC`.
//!
//! ```text
//! MULTI | DISCARD | WATCH key … | QUIT | RESET
//! EXEC [STRICT] [condition | guard]…
//! ```

use std::io;

use bytes::Bytes;
use trefoil::{Error, Reply};

use super::command::{Action, AtOnce};
use super::criteria::ExecOptions;
use super::dispatch::flat;
use super::failure::of_error;
use super::multi::{Multi, Plan};
use super::output::Output;
use super::pending::Shape;
use super::session::{Session, Watched};
use super::words::{Answer, Words, error, syntax_error};

impl Session {
    /// Carries out what never waits for `EXEC`. `None`: its reply is still to come.
    pub(super) async fn at_once(
        &mut self,
        action: AtOnce,
        words: &[Bytes],
        output: &mut Output<'_>,
    ) -> io::Result<Option<Reply>> {
        let answer = match action {
            AtOnce::Multi => self.begin(),
            AtOnce::Discard => self.discard(),
            AtOnce::Quit => {
                self.is_closing = true;
                Ok(Reply::OK)
            }
            AtOnce::Reset => {
                self.settle(output).await?;
                self.reset();
                Ok(Reply::Simple("RESET"))
            }
            AtOnce::Watch => {
                self.settle(output).await?;
                self.watch(&words[1..]).await
            }
            AtOnce::Exec => match self.plan(words) {
                Ok(plan) if plan.own.is_empty() => {
                    let shape = Shape::Exec(plan.extra);
                    self.transact(plan.transaction, shape, output).await?;
                    return Ok(None);
                }
                Ok(plan) => {
                    self.settle(output).await?;
                    Ok(self.execute_with_own(plan).await)
                }
                Err(reply) => Err(reply),
            },
        };
        Ok(Some(flat(answer)))
    }

    fn begin(&mut self) -> Answer {
        if self.multi.is_some() {
            return Err(error("ERR MULTI calls can not be nested"));
        }
        self.multi = Some(Multi::new(&self.guest.share));
        Ok(Reply::OK)
    }

    fn discard(&mut self) -> Answer {
        let multi = self.multi.take();
        multi.ok_or_else(|| error("ERR DISCARD without MULTI"))?;
        self.unwatch();
        Ok(Reply::OK)
    }

    async fn watch(&mut self, keys: &[Bytes]) -> Answer {
        if self.multi.is_some() {
            return Err(error("ERR WATCH inside MULTI is not allowed"));
        }
        let database = self.database().await?;
        let refused = |failure| of_error(&failure);
        match &mut self.watched {
            Some(watched) => {
                let database = &watched.database;
                database
                    .watch_more(&mut watched.watch, keys)
                    .map_err(refused)?;
            }
            None => {
                let watch = database.watch(keys).map_err(refused)?;
                self.watched = Some(Watched { watch, database });
            }
        }
        Ok(Reply::OK)
    }

    /// What this `EXEC` has to do. Whatever it is, nothing is queued or watched after it.
    fn plan(&mut self, words: &[Bytes]) -> Answer<Plan> {
        let multi = self.multi.take();
        let multi = multi.ok_or_else(|| error("ERR EXEC without MULTI"))?;
        let (watched, id) = (self.watched.take(), self.wishes.commit_id.take());
        let options = ExecOptions::parse(Words::after(words, 1)).map_err(|reply| abort(&reply))?;
        if multi.is_broken {
            let text = "EXECABORT Transaction discarded because of previous errors.";
            return Err(error(text));
        }
        let (mut plan, wishes) = multi.plan();
        let transaction = &mut plan.transaction;
        transaction.conditions.extend(options.conditions);
        transaction.guards = options.guards;
        let is_strict = wishes.strict.or(self.wishes.strict).unwrap_or(false);
        transaction.is_strict = is_strict || options.is_strict;
        transaction.id = wishes.commit_id.or(id);
        if let Some(Watched { watch, database }) = watched {
            transaction.watch = Some(watch);
            // The keys are watched in the database that is open now.
            self.database = Some(database);
        }
        Ok(plan)
    }

    /// A transaction with requests that the server itself carries out: those that look at events
    /// before it, the others after it.
    async fn execute_with_own(&mut self, plan: Plan) -> Reply {
        let Plan {
            mut transaction,
            mut extra,
            own,
        } = plan;
        let (looks, others): (Vec<_>, Vec<_>) = own
            .into_iter()
            .partition(|(_, own, _)| matches!(own.action, Action::Look(_)));
        for (index, own, words) in looks {
            let reply = flat(self.carry_out(own.action, &words).await);
            if let (Reply::Error(text), true) = (&reply, transaction.is_strict) {
                let text = text.clone().into_owned();
                return of_error(&Error::CommandFailed { index, text });
            }
            extra.push((index, reply));
        }
        // Their replies are put in later, but they count already.
        let places = others.iter().map(|(index, ..)| (*index, Reply::Nil));
        extra.extend(places);
        extra.sort_by_key(|(index, _)| *index);
        let database = match self.database().await {
            Ok(database) => database,
            Err(reply) => return reply,
        };
        transaction.allowance = Some(self.reply_allowance());
        let mut outcomes = self.execute(&database, vec![transaction]).await;
        let mut reply = outcomes.take(Shape::Exec(extra));
        if let Reply::Array(replies) = &mut reply {
            for (index, own, words) in others {
                if let Some(place) = replies.get_mut(index) {
                    *place = flat(self.carry_out(own.action, &words).await);
                }
            }
        }
        reply
    }
}

/// An `EXEC` that is itself at fault discards the transaction.
fn abort(reply: &Reply) -> Reply {
    let Reply::Error(text) = reply else {
        return syntax_error();
    };
    let text = text.strip_prefix("ERR ").unwrap_or(text);
    error(format!(
        "EXECABORT Transaction discarded because of: {text}"
    ))
}
