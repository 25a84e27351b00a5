//! What of a command line is judged by its text, and what is only presumed to do nothing.

use portcullis_core::bundle::EffectSettings;
use portcullis_core::effect::Effects;
use portcullis_effects::{Sink, Surroundings, shell};

use crate::cases::describe;

fn effects(text: &str) -> Effects {
    let settings = EffectSettings::default();
    let surroundings = Surroundings {
        settings: &settings,
        workspace: Some("/home/u/project"),
        home: Some("/home/u"),
        directory: Some("/home/u/project"),
    };
    let mut effects = Effects::none();
    shell::read(text, &surroundings, &mut Sink::new(&mut effects, "/arguments/command"));
    effects
}

fn is_seen(text: &str) -> bool {
    effects(text).are_seen()
}

/// Asserts that each command has an effect that reads so.
fn each_does(lines: &[(&str, &str)]) {
    for (command, expected) in lines {
        let found: Vec<String> = effects(command).iter().map(describe).collect();
        assert!(found.iter().any(|effect| effect == expected), "`{command}` does {found:#?}");
    }
}

/// What agents run all day, a command a line.
const ORDINARY: &str = "
ls -la
ls --color=auto src
which -a cargo
locale -a
date -u +%F
date -d yesterday +%s
seq -f %03g 1 5
seq -w 1 10
uname -a
id -un
nproc --all
ps aux
ps -ef
pgrep -fl cargo
free -h
df -h
du -sh target
uptime -p
hostname -f
tty -s
expr 1 + 2
sleep 1
stat -c %s Cargo.toml
wc -l src/main.rs
head -n 20 README.md
tail -f log.txt
cat -n a.txt
tac a.txt
nl -ba a.txt
fold -w 80 a.txt
od -A x -t x1z a.bin
xxd -l 64 a.bin
hexdump -C a.bin
strings -n 8 a.bin
file -b a.bin
sha256sum -c sums.txt
md5sum a.txt
diff -u a b
diff -ru a b
cmp -s a b
comm -12 a b
join -t, a b
paste -d, a b
cut -d: -f1 a
sort -u a
uniq -c a
tr -d x < a
tr a-z A-Z < a
grep -rn todo src
grep -E -o 'x+' a
rg -n todo src
rg --files -g '*.rs'
rg -l --hidden x
fd -e rs
find . -name '*.rs' -type f
tree -L 2
sed -n 1,5p a
awk '{print $1}' a
jq -r .name package.json
yq -r .name a.yaml
basename -s .rs a.rs
realpath -m a
readlink -f a
mkdir -p build/x
touch -c a
cp -r a b
mv -n a b
rm -rf build
ln -sf a b
chmod +x a.sh
chmod -R u+w build
tar -czf a.tgz src
tar -tzf a.tgz
tar -xzf a.tgz -C build
gzip -9k a
gzip -dc a.gz
zcat a.gz
unzip -l a.zip
zip -r a.zip src
git status -sb
git status --porcelain=v2
git log --oneline -5
git log --graph --all --decorate
git log -p -- src/main.rs
git diff --stat
git diff --cached
git diff --name-only HEAD~1
git show --stat HEAD
git show HEAD:README.md
git blame -L 1,5 README.md
git branch -a
git branch --show-current
git add -A
git commit -m x
git commit --amend --no-edit
git checkout -b x
git switch -c x
git stash list
git rev-parse --short HEAD
git rev-parse --abbrev-ref HEAD
git ls-files -o --exclude-standard
git grep -n todo
git grep -in todo -- src
git grep -l todo
git tag -l
git remote -v
git config --get user.name
git merge-base HEAD main
git describe --tags --always
git shortlog -sn
git reflog -n 5
git worktree list
git cat-file -p HEAD
git -C src status
git -c color.ui=never log
git -c core.quotepath=off status
git --no-pager log -3
LC_ALL=C sort a
LANG=C ls
TZ=UTC date
NO_COLOR=1 ls
RUST_BACKTRACE=1 ls
DEBUG=1 ls
FOO=bar; echo $FOO
for f in *.rs; do echo $f; done
export RUST_LOG=debug
env | sort
printenv HOME
test -f a && echo yes
echo -e 'a\\tb'
printf '%s\\n' x
bc -l <<< '1+1'
dc -e '2 3 + p'
tee -a log.txt < a
xargs -n1 echo < a
gzip -cr src
column -t -s, a.csv
ss -tlnp
lsof -i :8080
command -v cargo
type -a ls
man ls
kill -0 1
timeout 5 ls
nice -n 5 ls
time ls -l
cat @(a|b).txt
";

#[test]
fn ordinary_work_is_seen() {
    let doubtful: Vec<&str> = ORDINARY.lines().filter(|line| !line.is_empty() && !is_seen(line)).collect();
    assert!(doubtful.is_empty(), "presumed:\n{}", doubtful.join("\n"));
}

#[test]
fn files_that_git_reads_and_writes_by_options_are_told() {
    each_does(&[
        ("git grep --no-index x ~/.ssh", "read path /home/u/.ssh (recursive, secret)"),
        ("git -C ~/.ssh grep --no-index x", "read path /home/u/.ssh (recursive, secret)"),
        ("git grep --untracked x", "read path /home/u/project (inside, recursive)"),
        ("git grep x -- .env", "read path /home/u/project/.env (inside, secret)"),
        ("git diff --no-index /dev/null ~/.aws", "read path /home/u/.aws (recursive, secret)"),
        ("git -C ~ diff --no-index a .aws", "read path /home/u/.aws (recursive, secret)"),
        ("git -C ~ diff a .aws", "read path /home/u/.aws (recursive, secret)"),
        ("git interpret-trailers ~/.netrc", "read path /home/u/.netrc (secret)"),
        ("git interpret-trailers --in-place --trailer 'x: y' ~/.bashrc", "write path /home/u/.bashrc"),
        ("git notes add -F ~/.netrc", "read path /home/u/.netrc (secret)"),
        ("git blame --contents ~/.netrc README.md", "read path /home/u/.netrc (secret)"),
        ("git index-pack -o ~/.bashrc p.pack", "write path /home/u/.bashrc"),
        ("echo ~/.netrc | git hash-object -w --stdin-paths", "read path /home/u/.netrc (secret)"),
    ]);
    assert!(!is_seen("git interpret-trailers --frob ~/x"));
}

#[test]
fn listed_and_swept_files_are_read() {
    each_does(&[
        ("gzip -cr /home/u/.ssh", "read path /home/u/.ssh (recursive, secret)"),
        ("zstd -r /home/u/.ssh -o x", "read path /home/u/.ssh (recursive, secret)"),
        ("echo ~/.netrc | zip x.zip -@", "read path /home/u/.netrc (secret)"),
        ("echo ~/.netrc | cpio -o", "read path /home/u/.netrc (secret)"),
        ("cat list | cpio -o", "execute unknown list"),
        ("echo ~/.netrc | sort --files0-from=-", "read path /home/u/.netrc (secret)"),
        ("sort --files0-from=list", "execute unknown list"),
        ("zip x.zip -@ < list", "execute unknown list"),
        ("rsync --files-from=list ~ out", "read path /home/u (recursive)"),
        ("wall /home/u/.netrc", "read path /home/u/.netrc (secret)"),
        ("xclip /home/u/.netrc", "read path /home/u/.netrc (secret)"),
        ("xclip -selection clipboard ~/.netrc", "read path /home/u/.netrc (secret)"),
        ("date -f ~/.netrc", "read path /home/u/.netrc (secret)"),
        ("lolcat ~/.netrc", "read path /home/u/.netrc (secret)"),
        ("cat src/**", "read path /home/u/project/src/** (glob, inside, recursive)"),
        ("dc -e '!id'", "execute unknown dc"),
    ]);
}

#[test]
fn an_extended_pattern_is_any_text() {
    each_does(&[
        ("cat ~/.ssh/@(id_rsa)", "read path /home/u/.ssh/* (glob, secret)"),
        ("shopt -s extglob; cat /etc/sha@(d)ow", "read path /etc/sha*ow (glob, secret)"),
        ("cat ~/.net+(r)c", "read path /home/u/.net*c (glob, secret)"),
        ("cat ~/!(x)", "read path /home/u/* (glob)"),
        ("cat ~/?(x).netrc", "read path /home/u/*.netrc (glob, secret)"),
        ("cat \"@(a)\"", "read path /home/u/project/@(a) (glob, inside)"),
        ("cat @(..)/x", "read path /home/u/project/*/x (glob, not resolved)"),
        ("cat '@(..)/x'", "read path /home/u/project/@(..)/x (glob, not resolved)"),
        ("cat @($(rm x))", "delete path /home/u/project/x (inside)"),
        ("cat 'app/(auth)/page.tsx'", "read path /home/u/project/app/(auth)/page.tsx (inside)"),
    ]);
}

#[test]
fn a_long_path_is_read_whole_or_held() {
    let dots = "./".repeat(3000);
    each_does(&[
        (&format!("cat /home/u/{dots}.netrc"), "read path /home/u/.netrc (secret)"),
        (&format!("cat /{}../home/u/.netrc", "a/../".repeat(900)), "read path /home/u/.netrc (secret)"),
        (&format!("cat /{}etc/passwd", "a/".repeat(2500)), "execute unknown path"),
        (&format!("cat {dots}README.md"), "read path /home/u/project/README.md (inside)"),
    ]);
}

#[test]
fn settings_and_variables_that_nobody_knows_are_not_seen() {
    each_does(&[("git -c submodule.x.update='!id' submodule update", "execute command id")]);
    for command in [
        "git -c gc.recentObjectsHook=/tmp/x status",
        "git -c frob.nicate=x status",
        "KUBECTL_EXTERNAL_DIFF=/tmp/x ls",
        "RIPGREP_CONFIG_PATH=/tmp/x rg y",
        "CLOUDSDK_PYTHON=/tmp/x ls",
        "SHELL=/tmp/x ls",
        "HELM_PLUGINS=/tmp/x ls",
        "FROBNICATE=/tmp/x ls",
        "env FROBNICATE=/tmp/x ls",
        "clang -Xclang -load -Xclang x.so a.c",
        "prettier --plugin ./x.js a.js",
        "eslint -c /tmp/x.js src",
        "mysql --defaults-file=/tmp/x",
        "docker --config /tmp/x ps",
    ] {
        assert!(!is_seen(command), "{command}");
    }
}
