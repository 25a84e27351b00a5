//! Clients of databases: SQL on the command line, files of databases, dumps.

use portcullis_core::effect::Verb::{Delete, Read, Send, Write};

use super::super::interpreter::{Interpreter, Stdin};
use super::super::word::Word;
use super::options::Parsed;
use super::spec::*;
use super::words;

const HOST: Opt = does("-h --host", Act::Host(Send));

pub(super) const SPECS: &[Spec] = &[
    spec("psql pgcli cockroach ysqlsh").by(postgres).options(&[
        does("-h --host", Act::Text),
        does("-c --command", Act::Text),
        does("-f --file", READ),
        does("-o --output -L --log-file", WRITE),
        values("-d --dbname -U --username -p --port -v --set --variable -P --pset -F --field-separator -R -T"),
        flags("-a -A -b -e -E -H -l --list -n -q -s -S -t -w -W -x -X -z -0 -1 --no-psqlrc --csv --html --tuples-only"),
        flags("--no-align --quiet --single-transaction --expanded --no-password --password --echo-all --version --help"),
    ]),
    spec("mysql mariadb mycli").by(mysql).lenient().options(&[
        does("-h --host", Act::Host(Send)),
        does("--defaults-file --defaults-extra-file --ssl-ca --ssl-cert --ssl-key", READ),
        does("--tee", WRITE),
        does("--pager", Act::Script),
        does("--init-command", Act::Sql),
        does("-S --socket", WRITE),
        values("-e --execute -u --user -P --port -D --database --default-character-set --protocol"),
        attached("-p --password"),
    ]),
    spec("sqlite3 sqlite litecli duckdb").by(sqlite).single_dash().options(&[
        does("-cmd", Act::Text),
        does("-init", READ),
        values("-separator -nullvalue -newline -maxsize -mmap -pagecache -lookaside -vfs -c -s"),
        flags("-batch -bail -column -csv -html -json -line -list -markdown -table -box -quote -header -noheader -readonly"),
        flags("-echo -interactive -safe -stats -tabs -ascii -deserialize -append -unsigned -help -version -nofollow -memtrace"),
    ]),
    spec("sqlcmd bcp isql clickhouse-client clickhouse snowsql usql trino presto").by(other_sql).lenient().options(&[
        does("-S -h --host", Act::Host(Send)),
        does("-i --queries-file -f --filename", READ),
        does("-o --output-file", WRITE),
        values("-d -U -P -u --user --password --port --database"),
        does("-Q -q --query --execute -e", Act::Sql),
    ]),
    spec("pg_dump pg_dumpall mysqldump mariadb-dump mongodump mongoexport sqldiff").lenient().by(dumps).options(&[
        HOST,
        does("-f --file -o --out --result-file -r --archive", WRITE),
        values("-d --dbname --db -U --username -u --user -p --port -P -t --table -n --schema -F --format -c --collection -T -N"),
        does("--uri", Act::Url(Send)),
    ]),
    spec("pg_restore mongorestore mongoimport mysqlimport").lenient().each(READ).by(restores).options(&[
        HOST,
        does("-f --file --archive", READ),
        values("-d --dbname --db -U --username -u --user -p --port -t --table -n --schema -F --format -c --collection -j"),
        does("--uri", Act::Url(Send)),
        flags("--drop --clean"),
    ]),
    spec("createdb dropdb createuser dropuser vacuumdb reindexdb pg_isready mysqladmin pg_ctl initdb redis-benchmark").lenient().by(admin).options(&[
        HOST,
        values("-U --username -u --user -p --port -P -O --owner -T --template -E"),
        does("-D --pgdata", WRITE),
        does("-l --log", WRITE),
    ]),
    spec("mongosh mongo").by(mongo).lenient().options(&[
        does("--host", Act::Host(Send)),
        does("-f --file", READ),
        values("--eval -u --username -p --password --port --authenticationDatabase"),
    ]),
    spec("redis-cli valkey-cli keydb-cli").by(redis).stops().options(&[
        does("-h", Act::Host(Send)),
        does("-s", WRITE),
        does("-u --uri", Act::Host(Send)),
        does("--cert --key --cacert", READ),
        does("--eval", EXECUTE),
        does("--rdb --functions-rdb", WRITE),
        values("-p -a --pass --user -n -r -i -d --pattern --count --sni"),
        flags("-x -c --raw --no-raw --csv --json --scan --bigkeys --memkeys --hotkeys --stat --latency --tls --pipe --insecure"),
        flags("--no-auth-warning --ldb --replica -2 -3 -4 -6 -e --cluster --verbose --intrinsic-latency"),
    ]),
    spec("cqlsh influx etcdctl consul nats kafka-topics kafka-console-producer rabbitmqctl").by(|_, _| false),
];

/// SQL on standard input.
fn sql_input(call: &Parsed<'_>, shell: &mut Interpreter<'_, '_>) {
    match call.call.stdin {
        Stdin::Text(text) => shell.sql(&words::literal(text, call.call.range.clone())),
        Stdin::Pipe | Stdin::File => {
            shell.unknown("sql", "statements come from the input", call.call.range.clone())
        }
        Stdin::None => {}
    }
}

/// Statements in a file are not read.
fn sql_files(files: &[Word], shell: &mut Interpreter<'_, '_>) {
    for file in files {
        shell.unknown("sql", "statements stand in a file", file.range.clone());
    }
}

/// A statement or a command of the client itself: `\! COMMAND`, `.shell COMMAND`, `\copy … to 'FILE'`.
fn statement(call: &Parsed<'_>, text: &Word, shell: &mut Interpreter<'_, '_>) {
    let mut sql = String::new();
    for line in words::text(text).lines() {
        let line = line.trim_start();
        if !line.starts_with('\\') && !line.starts_with('.') {
            sql.push_str(line);
            sql.push('\n');
            continue;
        }
        let (command, rest) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
        let rest = words::part(text, rest.trim());
        let file = words::part(
            text,
            words::text(&rest).split_whitespace().last().unwrap_or_default().trim_matches(['\'', '"']),
        );
        match command {
            "\\!" | ".shell" | ".system" | "\\system" => shell.script(&rest),
            "\\o" | "\\g" | "\\w" | ".output" | ".once" | ".dump_to" | ".backup" | ".save" | ".log"
            | ".excel" | "\\T" => match words::text(&rest).trim_matches(['\'', '"']).strip_prefix('|') {
                Some(script) => shell.script(&words::part(text, script)),
                None => call.act(WRITE, &file, shell),
            },
            "\\i" | "\\ir" | "\\include" | ".read" | ".load" | ".open" | ".restore" | "\\source" => {
                call.act(READ, &file, shell);
                shell.unknown("sql", "statements stand in a file", text.range.clone());
            }
            ".import" => {
                let source =
                    words::part(text, words::text(&rest).split_whitespace().next().unwrap_or_default());
                call.act(READ, &source, shell);
                shell.unknown("sql", "rows stand in a file", text.range.clone());
            }
            "\\copy" => {
                let verb =
                    if words::text(&rest).to_ascii_lowercase().contains(" to ") { Write } else { Read };
                call.act(Act::Path(verb), &Word::unknown(text.range.clone()), shell);
            }
            _ if command.starts_with("\\d") || command.starts_with("\\l") => {}
            ".tables" | ".schema" | ".mode" | ".headers" | ".header" | ".databases" | ".indexes"
            | ".indices" | ".width" | ".dump" | ".quit" | ".exit" | ".help" | ".timer" | ".show" | "\\q"
            | "\\x" | "\\c" | "\\timing" | "\\pset" | "\\a" | "\\t" | "\\conninfo" | "\\z" | "\\sf"
            | "\\sv" => {}
            _ => shell.unknown("sql", "a command of the client", text.range.clone()),
        }
    }
    if !sql.trim().is_empty() {
        shell.sql(&words::part(text, sql.trim_end()));
    }
}

fn postgres(call: &Parsed<'_>, shell: &mut Interpreter<'_, '_>) -> bool {
    for host in call.values(&["-h", "--host"]) {
        // A host that is a path is a socket on this machine.
        let act = if words::text(&host).starts_with('/') { WRITE } else { Act::Host(Send) };
        call.act(act, &host, shell);
    }
    let mut places = call.operands.clone();
    places.extend(call.values(&["-d", "--dbname"]));
    for place in &places {
        if words::text(place).contains("://") {
            call.act(Act::Url(Send), place, shell);
        } else {
            let fields =
                words::text(place).split_whitespace().filter_map(|field| field.strip_prefix("host="));
            fields.for_each(|host| call.act(Act::Host(Send), &words::part(place, host), shell));
        }
    }
    let statements = call.values(&["-c", "--command"]);
    statements.iter().for_each(|text| statement(call, text, shell));
    let files = call.values(&["-f", "--file"]);
    sql_files(&files, shell);
    if statements.is_empty() && files.is_empty() && !call.has_any(&["-l", "--list"]) {
        sql_input(call, shell);
    }
    true
}

fn mysql(call: &Parsed<'_>, shell: &mut Interpreter<'_, '_>) -> bool {
    let statements = call.values(&["-e", "--execute"]);
    statements.iter().for_each(|text| statement(call, text, shell));
    if statements.is_empty() {
        sql_input(call, shell);
    }
    true
}

/// `sqlite3 FILE [SQL…]`.
fn sqlite(call: &Parsed<'_>, shell: &mut Interpreter<'_, '_>) -> bool {
    let Some((file, statements)) = call.operands.split_first() else { return true };
    if words::text(file) != ":memory:" {
        let file = words::strip(file, "file:").unwrap_or_else(|| file.clone());
        let file = words::part(&file, words::text(&file).split('?').next().unwrap_or_default());
        call.act(if call.has("-readonly") { READ } else { Act::All(&[READ, WRITE]) }, &file, shell);
    }
    let mut texts = call.values(&["-cmd", "-c", "-s"]);
    texts.extend(statements.iter().cloned());
    texts.iter().for_each(|text| statement(call, text, shell));
    if statements.is_empty() {
        sql_input(call, shell);
    }
    true
}

fn other_sql(call: &Parsed<'_>, shell: &mut Interpreter<'_, '_>) -> bool {
    sql_files(&call.values(&["-i", "--queries-file", "-f", "--filename"]), shell);
    sql_input(call, shell);
    call.call.program != "bcp"
}

fn dumps(call: &Parsed<'_>, shell: &mut Interpreter<'_, '_>) -> bool {
    let table =
        call.operands.first().map_or_else(|| "*".to_owned(), |name| format!("{}.*", words::text(name)));
    let table = if call.operands.first().is_some_and(|name| words::text(name).contains("://")) {
        "*".to_owned()
    } else {
        table
    };
    call.act(
        Act::Named(Read, portcullis_core::effect::ResourceKind::Table, ""),
        &call.literal(&table),
        shell,
    );
    if call.call.program == "mongodump" && !call.has_any(&["-o", "--out", "--archive"]) {
        call.act(WRITE, &call.literal("dump"), shell);
    }
    true
}

fn restores(call: &Parsed<'_>, shell: &mut Interpreter<'_, '_>) -> bool {
    let tables = call.literal("*");
    call.act(Act::Named(Write, portcullis_core::effect::ResourceKind::Table, ""), &tables, shell);
    if call.has_any(&["--drop", "--clean", "-c"]) {
        call.act_plainly(
            Act::Named(Delete, portcullis_core::effect::ResourceKind::Table, ""),
            &tables,
            &["unbounded"],
            shell,
        );
    }
    true
}

fn admin(call: &Parsed<'_>, shell: &mut Interpreter<'_, '_>) -> bool {
    use portcullis_core::effect::ResourceKind::Table;
    let name = call.operands.last().map_or("*", words::text);
    match (call.call.program, call.operand(0)) {
        ("dropdb", _) | ("mysqladmin", "drop") => {
            call.act_plainly(
                Act::Named(Delete, Table, ""),
                &call.literal(&format!("{name}.*")),
                &["unbounded"],
                shell,
            );
        }
        ("pg_isready" | "redis-benchmark" | "vacuumdb" | "reindexdb", _)
        | ("mysqladmin", "status" | "ping" | "version") => {}
        ("createdb", _) | ("mysqladmin", "create") => {
            call.act(Act::Named(Write, Table, ""), &call.literal(&format!("{name}.*")), shell)
        }
        _ => call.act(setting("database/"), &call.literal(name), shell),
    }
    true
}

/// The language of this shell is JavaScript.
fn mongo(call: &Parsed<'_>, shell: &mut Interpreter<'_, '_>) -> bool {
    for place in &call.operands {
        if words::text(place).contains("://") {
            call.act(Act::Url(Send), place, shell);
        } else if words::text(place).ends_with(".js") {
            call.act(EXECUTE, place, shell);
        }
    }
    call.act_on_each(Act::Code("javascript"), &call.values(&["--eval"]), shell);
    !call.has_any(&["-f", "--file"]) && matches!(call.call.stdin, Stdin::None)
}

/// `redis-cli COMMAND KEY…`.
fn redis(call: &Parsed<'_>, shell: &mut Interpreter<'_, '_>) -> bool {
    use portcullis_core::effect::ResourceKind::Table;
    let key = call.operands.get(1).map_or("*", words::text);
    let table = call.literal(&format!("redis.{key}"));
    match call.operand(0).to_ascii_uppercase().as_str() {
        "" | "PING" | "INFO" | "TIME" | "DBSIZE" | "LASTSAVE" | "COMMAND" | "HELLO" | "ECHO" | "SELECT"
        | "AUTH" => {}
        "GET" | "MGET" | "KEYS" | "SCAN" | "HGET" | "HGETALL" | "LRANGE" | "SMEMBERS" | "ZRANGE" | "TTL"
        | "TYPE" | "EXISTS" | "STRLEN" | "LLEN" | "HKEYS" | "HVALS" | "SCARD" | "XRANGE" | "DUMP"
        | "OBJECT" | "MEMORY" => {
            call.act(Act::Named(Read, Table, ""), &table, shell);
        }
        "FLUSHALL" | "FLUSHDB" => {
            call.act_plainly(Act::Named(Delete, Table, ""), &call.literal("redis.*"), &["unbounded"], shell)
        }
        "DEL" | "UNLINK" | "HDEL" | "EXPIRE" | "GETDEL" => {
            call.act(Act::Named(Delete, Table, ""), &table, shell)
        }
        "SET" | "SETEX" | "HSET" | "LPUSH" | "RPUSH" | "SADD" | "ZADD" | "INCR" | "DECR" | "APPEND"
        | "MSET" | "RENAME" | "XADD" => {
            call.act(Act::Named(Write, Table, ""), &table, shell);
        }
        "SHUTDOWN" | "CONFIG" | "SLAVEOF" | "REPLICAOF" | "SAVE" | "BGSAVE" | "ACL" | "MONITOR" => {
            call.act(setting("database/"), &call.literal("redis"), shell);
        }
        _ => return false,
    }
    let fed = call.operands.is_empty() && call.call.stdin != Stdin::None;
    !fed && !call.has_any(&["--pipe", "--cluster", "--eval"])
}
