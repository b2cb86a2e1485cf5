//! Takes both servers through a sequence and compares every reply.

use std::thread;
use std::time::{Duration, Instant};

use proptest::test_runner::TestCaseError;

use super::compare::How;
use super::grammar::Command;
use super::random;
use super::sequence::Step;
use super::walk;
use super::world::{CONNECTIONS, Words, World, words};
use crate::harness::Value;

pub(super) type Outcome<T = ()> = Result<T, TestCaseError>;

/// So many commands are sent at once.
const PIPELINE: usize = 16;
/// How long a key that expires may stay.
const EXPIRY: Duration = Duration::from_millis(20);
/// How long it may take until expired keys are no longer counted.
const CLEANING: Duration = Duration::from_secs(10);

/// A run of one sequence.
pub(super) struct Driver<'a> {
    world: &'a mut World,
    /// What is still to be sent, and on which connection.
    waiting: Vec<Command>,
    connection: usize,
    /// Of each connection in a transaction: how the replies of its commands are compared.
    queued: [Option<Vec<How>>; CONNECTIONS],
}

/// Runs a sequence and compares, in the end, everything that is stored.
pub(super) fn run(world: &mut World, is_resp3: bool, steps: &[Step]) -> Outcome {
    world.reset(is_resp3);
    let mut driver = Driver {
        world,
        waiting: Vec::new(),
        connection: 0,
        queued: [const { None }; CONNECTIONS],
    };
    for step in steps {
        driver.step(step)?;
    }
    driver.flush()?;
    driver.leave_transactions()?;
    driver.compare_everything()
}

impl Driver<'_> {
    fn step(&mut self, step: &Step) -> Outcome {
        match step {
            Step::Command(connection, command) => self.command(*connection, command),
            Step::Expire(key) => self.expire(key),
            Step::Checkpoint => {
                self.flush()?;
                self.world.checkpoint();
                Ok(())
            }
            Step::Restart => {
                self.flush()?;
                self.world.restart();
                self.queued.fill(None);
                self.compare_everything()
            }
        }
    }

    fn command(&mut self, connection: usize, command: &Command) -> Outcome {
        if connection != self.connection || self.waiting.len() >= PIPELINE {
            self.flush()?;
            self.connection = connection;
        }
        let needs_more = matches!(command.how, How::Pick | How::Take | How::Scan | How::Count);
        if !needs_more {
            self.waiting.push(command.clone());
            return Ok(());
        }
        self.flush()?;
        let in_transaction = self.queued[connection].is_some();
        match command.how {
            How::Pick if !in_transaction => random::pick(self.world, connection, &command.words),
            How::Take if !in_transaction => random::take(self.world, connection, &command.words),
            How::Scan if !in_transaction => walk::scan(self.world, connection, &command.words),
            How::Count if !in_transaction => self.count(connection, &command.words),
            // In a transaction, only what changes nothing may be left to chance.
            How::Take => Ok(()),
            _ => {
                self.waiting.push(command.clone());
                Ok(())
            }
        }
    }

    /// Sends what is waiting and compares the replies.
    fn flush(&mut self) -> Outcome {
        let commands = std::mem::take(&mut self.waiting);
        if commands.is_empty() {
            return Ok(());
        }
        let all: Vec<Words> = commands
            .iter()
            .map(|command| command.words.clone())
            .collect();
        let replies = self.world.pipeline(self.connection, &all);
        for (command, [redis, trefoil]) in commands.iter().zip(replies) {
            let agree = self.agree(command, &redis, &trefoil);
            check(agree, &command.words, &redis, &trefoil)?;
        }
        Ok(())
    }

    /// Compares two replies, and follows how the connection enters and leaves transactions.
    fn agree(&mut self, command: &Command, redis: &Value, trefoil: &Value) -> bool {
        let name = command.words[0].to_ascii_uppercase();
        let queued = &mut self.queued[self.connection];
        if name == b"MULTI" && *redis == Value::ok() {
            *queued = Some(Vec::new());
        } else if name == b"EXEC" || name == b"DISCARD" && *redis == Value::ok() {
            if let (Some(hows), Value::Array(redis), Value::Array(trefoil)) =
                (queued.take(), redis, trefoil)
            {
                let pairs = redis.iter().zip(trefoil).zip(hows);
                let mut agreed = pairs.map(|((redis, trefoil), how)| how.agree(redis, trefoil));
                return redis.len() == trefoil.len() && agreed.all(|agrees| agrees);
            }
        } else if let Some(hows) = queued {
            if *redis == Value::Simple("QUEUED".to_owned()) {
                hows.push(command.how);
            }
            return redis == trefoil;
        }
        command.how.agree(redis, trefoil)
    }

    fn leave_transactions(&mut self) -> Outcome {
        for connection in 0..CONNECTIONS {
            if self.queued[connection].take().is_some() {
                let [redis, trefoil] = self.world.both(connection, &words("DISCARD"));
                check(redis == trefoil, &words("DISCARD"), &redis, &trefoil)?;
            }
        }
        Ok(())
    }

    /// Lets a key expire by the clock.
    fn expire(&mut self, key: &[u8]) -> Outcome {
        self.flush()?;
        let Some(connection) = self.queued.iter().position(Option::is_none) else {
            return Ok(());
        };
        let expire = vec![b"PEXPIRE".to_vec(), key.to_vec(), b"1".to_vec()];
        let [redis, trefoil] = self.world.both(connection, &expire);
        check(redis == trefoil, &expire, &redis, &trefoil)?;
        thread::sleep(EXPIRY);
        let exists = vec![b"EXISTS".to_vec(), key.to_vec()];
        let [redis, trefoil] = self.world.both(connection, &exists);
        check(redis == trefoil, &exists, &redis, &trefoil)
    }

    /// Expired keys count until they are cleaned away.
    fn count(&mut self, connection: usize, count: &Words) -> Outcome {
        let started = Instant::now();
        loop {
            let [redis, trefoil] = self.world.both(connection, count);
            if redis == trefoil || started.elapsed() > CLEANING {
                return check(redis == trefoil, count, &redis, &trefoil);
            }
            thread::sleep(Duration::from_millis(5));
        }
    }

    /// Every key: its type, its value and when it expires.
    fn compare_everything(&mut self) -> Outcome {
        let keys = words("KEYS *");
        let [redis, trefoil] = self.world.both(0, &keys);
        check(How::Set.agree(&redis, &trefoil), &keys, &redis, &trefoil)?;
        for key in redis.elements().unwrap_or_default() {
            self.compare_key(key.bytes())?;
        }
        self.count(0, &words("DBSIZE"))
    }

    fn compare_key(&mut self, key: &[u8]) -> Outcome {
        let about = |line: &str| {
            let mut all = words(line);
            all.insert(1, key.to_vec());
            all
        };
        let kind = about("TYPE");
        let [redis, trefoil] = self.world.both(0, &kind);
        check(redis == trefoil, &kind, &redis, &trefoil)?;
        let (content, how) = match redis.bytes() {
            b"string" => ("GET", How::Exact),
            b"hash" => ("HGETALL", How::Map),
            b"list" => ("LRANGE 0 -1", How::Exact),
            b"set" => ("SMEMBERS", How::Set),
            b"zset" => ("ZRANGE 0 -1 WITHSCORES", How::Exact),
            _ => return Ok(()),
        };
        for (line, how) in [(content, how), ("PTTL", How::Near)] {
            let command = about(line);
            let [redis, trefoil] = self.world.both(0, &command);
            check(how.agree(&redis, &trefoil), &command, &redis, &trefoil)?;
        }
        Ok(())
    }
}

/// Fails with both replies unless they agree.
pub(super) fn check(agree: bool, words: &Words, redis: &Value, trefoil: &Value) -> Outcome {
    match agree {
        true => Ok(()),
        false => {
            let shown: Vec<String> = words
                .iter()
                .map(|word| word.escape_ascii().to_string())
                .collect();
            let text = format!("{shown:?}\n  redis:   {redis:?}\n  trefoil: {trefoil:?}");
            Err(TestCaseError::fail(text))
        }
    }
}
