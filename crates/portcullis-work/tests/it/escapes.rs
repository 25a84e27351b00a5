//! Commands of criteria that try to get out: each is contained or an error, and nothing of what it tried has happened.

use std::collections::BTreeMap;
use std::io::Read as _;
use std::net::{TcpListener, UdpSocket};
use std::os::unix::net::UnixListener;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use portcullis_core::work::Came::{Error, Fail};
use serde_json::json;

use crate::world::World;

/// Scripts of a shell. `OUT` is a folder beside the project, with a file `kept` in it. Each ends with a failure where what it
/// tries does not work.
const WRITES: [&str; 30] = [
    "echo x > OUT/new",
    "echo x >> OUT/kept",
    "echo x > ../project-of-others/new",
    "cd .. && cd project-of-others && echo x > new",
    "cp build.sh OUT/new",
    "mv build.sh OUT/new",
    "mv OUT/kept stolen",
    "rm -f OUT/kept && ! test -e OUT/kept",
    "rm -rf OUT --no-preserve-root && ! test -e OUT/kept",
    "rm -fr OUT/ && ! test -e OUT/kept",
    "rm -r -f ../project-of-others && ! test -e OUT/kept",
    "find OUT -type f -delete && ! test -e OUT/kept",
    "ln -s OUT link && echo x > link/new",
    "ln OUT/kept hard && echo x > hard",
    "dd if=/dev/zero of=OUT/kept bs=1 count=4",
    "truncate -s 0 OUT/kept",
    "touch OUT/new",
    "mkdir OUT/new",
    "chmod 777 OUT/kept",
    "echo x > /proc/self/root$PWD/../project-of-others/new",
    "echo x > /proc/self/cwd/../project-of-others/new",
    "echo x > /proc/1/root$PWD/../project-of-others/new",
    "exec 3>OUT/new; echo x >&3",
    "sh -c 'sh -c \"echo x > OUT/new\"'",
    "env -i sh -c 'echo x > OUT/new'",
    "tar -cf OUT/new.tar build.sh",
    "git init --quiet OUT/repository",
    "git config --file OUT/kept a.b c",
    "printf '#!/bin/sh\\necho x > OUT/new\\n' > t && chmod +x t && ./t",
    "echo x > /etc/portcullis-work-test",
];
/// The same, of processes that outlive the command.
const LATER: [&str; 3] = [
    "(sleep 1; echo x > OUT/new) & exit 1",
    "setsid sh -c 'sleep 1; echo x > OUT/new' & exit 1",
    "nohup sh -c 'sleep 1; echo x > OUT/new' > /dev/null 2>&1 & exit 1",
];
/// What bends the confinement itself.
const BENDS: [&str; 6] = [
    "mount --bind OUT . && echo x > new",
    "unshare --user --map-root-user --mount sh -c 'mount --bind OUT /mnt && echo x > /mnt/new'",
    "chroot OUT /bin/true",
    "mkdir d && chroot . sh -c 'cd ../../..; echo x > OUT/new'",
    "nsenter --target 1 --mount sh -c 'echo x > OUT/new'",
    "echo x > /proc/sys/kernel/hostname",
];
/// Connections: of TCP, UDP, and to sockets that are files or have a name alone.
const CONNECTS: [&str; 6] = [
    "bash -c 'echo x > /dev/tcp/127.0.0.1/TCP'",
    "bash -c 'echo x > /dev/udp/127.0.0.1/UDP' && exit 1",
    "python3 -c 'import socket; socket.create_connection((\"127.0.0.1\", TCP)).send(b\"x\")'",
    "python3 -c 'import socket; s = socket.socket(socket.AF_UNIX); s.connect(\"OUT/socket\"); s.send(b\"x\")'",
    "python3 -c 'import socket; s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); s.sendto(b\"x\", (\"127.0.0.1\", UDP))' && exit 1",
    "env -i bash -c 'exec 3<>/dev/tcp/127.0.0.1/TCP; echo x >&3'",
];

/// All files below a folder, with their rights and content.
fn listing(folder: &Path) -> BTreeMap<String, (u32, Vec<u8>)> {
    use std::os::unix::fs::{FileTypeExt as _, PermissionsExt as _};
    let mut found = BTreeMap::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let entry = entry.unwrap();
        let metadata = entry.metadata().unwrap();
        let readable = !metadata.is_dir() && !metadata.file_type().is_socket();
        let content = if readable { std::fs::read(entry.path()).unwrap() } else { Vec::new() };
        let name = entry.file_name().to_string_lossy().into_owned();
        if metadata.is_dir() {
            found.extend(
                listing(&entry.path()).into_iter().map(|(below, file)| (format!("{name}/{below}"), file)),
            );
        }
        found.insert(name, (metadata.permissions().mode(), content));
    }
    found
}

/// Listeners that count what reaches them.
struct Listeners {
    tcp: u16,
    udp: u16,
    reached: Arc<AtomicUsize>,
}

impl Listeners {
    fn start(socket: &Path) -> Self {
        let reached: Arc<AtomicUsize> = Arc::default();
        let (tcp, udp) = (TcpListener::bind("127.0.0.1:0").unwrap(), UdpSocket::bind("127.0.0.1:0").unwrap());
        let unix = UnixListener::bind(socket).unwrap();
        let ports = (tcp.local_addr().unwrap().port(), udp.local_addr().unwrap().port());
        let count = |reached: &Arc<AtomicUsize>| {
            let reached = Arc::clone(reached);
            move || reached.fetch_add(1, Ordering::SeqCst)
        };
        let of_tcp = count(&reached);
        std::thread::spawn(move || tcp.incoming().for_each(|stream| drop((of_tcp(), stream))));
        let of_unix = count(&reached);
        std::thread::spawn(move || unix.incoming().for_each(|stream| drop((of_unix(), stream))));
        let of_udp = count(&reached);
        std::thread::spawn(move || {
            while udp.recv(&mut [0; 16]).is_ok() {
                of_udp();
            }
        });
        Self { tcp: ports.0, udp: ports.1, reached }
    }

    fn reached(&self) -> usize {
        self.reached.load(Ordering::SeqCst)
    }
}

/// C6: a command of a criterion can do no more than one of the agent's, and has no network.
#[test]
fn c6_whatever_a_command_tries_nothing_outside_is_written_or_reached() {
    let world = World::new();
    if !world.contains() {
        return;
    }
    let outside = world.outside();
    std::fs::create_dir(&outside).unwrap();
    std::fs::write(outside.join("kept"), "kept").unwrap();
    let listeners = Listeners::start(&outside.join("socket"));
    world.write("build.sh", "exit 0\n");
    world.commit();
    let before = listing(&outside);
    // The listeners can be reached by who may, or the test would show nothing.
    std::os::unix::net::UnixStream::connect(outside.join("socket")).unwrap();
    std::net::TcpStream::connect(("127.0.0.1", listeners.tcp)).unwrap();
    UdpSocket::bind("127.0.0.1:0").unwrap().send_to(b"x", ("127.0.0.1", listeners.udp)).unwrap();
    let began = std::time::Instant::now();
    while listeners.reached() < 3 {
        assert!(began.elapsed() < Duration::from_secs(10));
        std::thread::sleep(Duration::from_millis(5));
    }

    let scripts = WRITES.iter().chain(&LATER).chain(&BENDS).chain(&CONNECTS);
    for script in scripts {
        let written = script
            .replace("OUT", outside.to_str().unwrap())
            .replace("TCP", &listeners.tcp.to_string())
            .replace("UDP", &listeners.udp.to_string());
        world.write("build.sh", "exit 0\n");
        let criterion =
            json!({"type": "command_exit_zero", "command": ["sh", "-c", written], "timeout_seconds": 20});
        let result = world.check(criterion);
        assert!(matches!(result.came, Fail | Error), "`{script}` gave {result:?}");
        if LATER.contains(script) {
            std::thread::sleep(Duration::from_millis(1_200));
        }
        assert_eq!(listing(&outside), before, "`{script}`");
        assert_eq!(listeners.reached(), 3, "`{script}` reached a listener");
        assert!(!Path::new("/etc/portcullis-work-test").exists(), "`{script}`");
    }
}

/// What a check leaves where git or the user's tools run it is no way out either.
#[test]
fn c6_a_command_leaves_no_hook_behind() {
    let world = World::new();
    if !world.contains() {
        return;
    }
    world.commit();
    let script = "echo x > made && mkdir -p .git/hooks && echo x > .git/hooks/pre-commit";
    world.check(json!({"type": "command_exit_zero", "command": ["sh", "-c", script]}));
    assert!(world.project().join("made").exists(), "what it may do it can");
    let mut hook = String::new();
    let read = std::fs::File::open(world.project().join(".git/hooks/pre-commit"))
        .and_then(|mut file| file.read_to_string(&mut hook));
    assert!(read.is_err() || hook != "x\n", "a hook was left");
}

/// C8: paths that are not where they seem to be.
#[test]
fn c8_paths_that_begin_like_the_project_or_climb_out_of_it_are_not_in_it() {
    let world = World::new();
    let outside = world.outside();
    std::fs::create_dir(&outside).unwrap();
    std::fs::write(outside.join("kept"), "root").unwrap();
    let contains = |path: &str| json!({"type": "file_contains", "path": path, "text": "root"});
    for path in
        ["../project-of-others/kept", "../../../../../../etc/shadow", "./x/../../project-of-others/kept"]
    {
        let result = world.check(contains(path));
        assert!(matches!(result.came, Fail | Error) && !result.detail.contains("byte"), "{path}: {result:?}");
    }
    // Named whole it is what its author named, and not looked up in the project.
    let named = outside.join("kept");
    world.expect(contains(named.to_str().unwrap()), portcullis_core::work::Came::Pass, "byte 0");
}
