package permission

import (
	"maps"
	"slices"
	"strings"
)

// set makes a set of the words of a text.
func set(text string) map[string]bool {
	m := make(map[string]bool)
	for word := range strings.FieldsSeq(text) {
		m[word] = true
	}
	return m
}

func sorted[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }

// runsPrograms reports whether a program runs, loads or fetches what its operands
// say. Versions count as the program: python3.12 is python.
func runsPrograms(name string) bool {
	return runners[name] || runners[strings.TrimRight(name, "0123456789.-")]
}

// runners are interpreters, programs that run other programs, package managers,
// programs that reach other machines, and bash's own words that evaluate what they
// are given.
var runners = set(`
	ash bash csh dash elvish fish ksh mksh nu oksh pwsh powershell rbash sh tcsh xonsh yash zsh

	. alias bind builtin caller command compgen complete compopt coproc declare dirs disown enable eval exec
	exit export fc fg hash history jobs let local logout mapfile printf popd pushd read readarray readonly
	return set shift shopt source suspend test times trap typeset ulimit umask unalias unset wait

	awk bun busybox clisp clojure crystal dart dc deno ed elixir emacs erl escript ex expect gawk gdb gnuplot
	gosh groovy guile iex irb java jjs jruby js jshell julia kotlin lldb lua luajit m4 mawk maxima mono mongo mongosh
	mysql mariadb nano nawk node nodejs nvim ocaml octave osascript perl php psql pypy python qjs R racket rbx red redis-cli
	Rscript ruby runghc sbcl scala sed gsed sqlite sqlite3 swift swipl tclsh toybox ts-node tsx vi view vim vimdiff wish yq

	at batch bwrap capsh catchsegv chpst chroot chrt chronic cpulimit crontab daemon daemonize dbus-run-session doas
	entr env envdir envsubst eatmydata faketime fakeroot fd fdfind find firejail flatpak flock gosu hyperfine ifne ionice
	ld.so linux32 linux64 ltrace nice nohup nsenter numactl parallel perf pee pkexec prlimit proot rlwrap run0 run-parts
	runcon runuser rush script scriptreplay screen setarch setpriv setsid setuidgid softlimit stdbuf start-stop-daemon
	strace su su-exec sudo systemd-run taskset tini time timeout tmux torsocks unbuffer unshare valgrind watch watchexec
	xargs xvfb-run 

	ant bazel bmake bundle cabal cargo cmake composer conan ctest dotnet flutter gem ghci gmake go gradle gradlew grunt gulp
	invoke just lein make mage meson mix mocha mvn mvnw ninja nox npm npx nx pip pipenv pipx pnpm pnpx poetry pytest rails
	rake rebar rustup sbt scons stack task tox tsc turbo uv uvx yarn bunx corepack
	apk apt apt-get aptitude brew conda dnf dpkg guix mamba nix nix-build nix-env nix-shell pacman port rpm snap yum zypper

	7z ansible ansible-playbook aria2c aws axel az bash-static buildah crane crictl ctr curl dd docker docker-compose doctl
	exim ftp gcloud gh glab gsutil gpg helm http httpie https hub kubectl lftp lynx lxc mail minikube mosh mutt nc ncat
	nerdctl netcat nmap oc openssl podman pulumi rclone rsh rsync scp sendmail sftp skopeo socat ssh ssh-add ssh-agent svn
	systemctl service tar bsdtar telnet terraform tofu vagrant virsh w3m wget xdg-open open zip cpio rar sort hg fossil
	iptables ip mount nft journalctl less man more most pg pager`)

// keyword are the words of bash's grammar: in quotes they would be programs.
var keyword = set(`if then elif else fi time for in until while do done case esac coproc select function`)

// gitReads are the sub-commands of git after which a * may stand: an alias cannot take
// their names, and with operands alone they neither run programs nor change the
// configuration.
var gitReads = set(`add annotate blame branch cat-file check-ignore cherry count-objects describe diff diff-files
	diff-index diff-tree for-each-ref grep log ls-files ls-tree merge-base mv name-rev range-diff restore rev-list
	rev-parse rm shortlog show show-branch show-ref stage status tag whatchanged`)

// gitLooks are those of them that change nothing: what a suggestion may open.
var gitLooks = set(`annotate blame cat-file cherry describe diff diff-files diff-index diff-tree grep log ls-files
	ls-tree merge-base name-rev range-diff rev-list rev-parse shortlog show show-ref status whatchanged`)

// looksOnly are programs that only look at what their operands name.
var looksOnly = set(`basename cat cksum cmp comm cut df diff dirname du echo egrep fgrep file fold grep head hexdump
	id ls md5sum nl od paste pwd readlink realpath rev rg seq sha1sum sha256sum sha512sum stat strings sum tac tail
	tr tree wc which whoami zcat`)

// flags are options that take no value, in every program that one would allow.
var flags = set(`-- -1 -A -a -al -h -i -in -l -la -lah -lh -q -R -r -rn -v -w --all --cached --check --color
	--decorate --first-parent --follow --graph --ignore-case --line-number --merges --name-only --name-status --no-color
	--no-merges --numstat --oneline --patch --porcelain --quiet --recursive --short --shortstat --staged
	--stat --summary --verbose`)
