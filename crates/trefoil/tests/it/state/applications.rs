//! Applications that do not do what they say.

use trefoil::application::{Application, Bytes, Keyspace, Timer};
use trefoil::{
    CommandAccess, CommandError, CommandSpec, Database, Error, Keys, Namespaces, NamespacesOptions,
    Options, Reply, cmd,
};

fn write(keyspace: &mut Keyspace<'_>, arguments: &[Bytes]) -> Result<Reply, CommandError> {
    keyspace.run(&[b"SET", &arguments[1], b"written"])
}

fn do_nothing(_: &mut Keyspace<'_>, _: &Bytes, _: u64) -> Result<(), CommandError> {
    Ok(())
}

#[test]
fn a_command_that_says_it_reads_and_writes_is_an_error() {
    const READ: CommandAccess = CommandAccess::FastRead;
    static LIAR: Application = Application::new(
        "liar",
        "Says it reads",
        &[CommandSpec::new("liar.read", 2, READ, Keys::ONE, write)],
        &[],
    );
    let db = Database::in_memory(&Options::default().with_application(&LIAR)).unwrap();
    let refused = db.look(&[cmd!(db, "LIAR.READ", "key").unwrap()]);
    assert!(matches!(refused, Err(Error::Invalid(_))), "{refused:?}");
    let replies = db.look(&[cmd!(db, "GET", "key").unwrap()]).unwrap();
    assert!(replies[0].is_nil());
}

#[test]
fn applications_that_are_in_the_way_of_each_other_do_not_open() {
    static TIMER: Timer = Timer::new(2, do_nothing);
    static THIEF: Application =
        Application::new("thief", "Takes the timer of seats", &[], &[&TIMER]);
    let options = Options::default().with_application(&THIEF);
    let expected = "application thief: the kind of timer 2 is taken";
    let error = Database::in_memory(&options).unwrap_err();
    assert!(error.to_string().contains(expected), "{error}");
    let options = NamespacesOptions::default().with_database(options);
    let error = Namespaces::in_memory(options).unwrap_err();
    assert!(error.to_string().contains(expected), "{error}");
}
