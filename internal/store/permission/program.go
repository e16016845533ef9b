package permission

// runners are programs that run, load, evaluate or fetch their operands, or the contents of a file
// in their working directory: interpreters, programs that run other programs, package managers,
// builders, editors and pagers, programs that connect to other machines, and bash's own words that
// evaluate their operands.
var runners = newSet(`
	ash bash bosh csh dash elvish es fish git hush ion ksh lksh mksh nu oksh osh posh powershell pwsh rbash rc sash scsh
	sh static-sh tcsh xonsh yash zsh

	. alias bind builtin caller command compgen complete compopt coproc declare dirs disown enable eval exec
	exit export fc fg hash history jobs let local logout mapfile printf popd pushd read readarray readonly
	return set shift shopt source suspend test times trap typeset ulimit umask unalias unset wait

	awk bpython bun chicken clisp clojure coffee cython csc csi crystal dart dc deno dotnet elixir erl escript
	evcxr expect fennel fsharpi gap gawk gdb gjs gnuplot goawk gosh groovy gs ghostscript gsc gsi gst guile hugs iex
	ipython irb janet java jjs jrunscript js jshell julia jupyter kotlin lean lldb lli lua luajit m4 mawk maxima mono
	mongo mongosh mysql mariadb nawk nim node nodejs numbat ocaml octave optscript osascript pdb perl petite php pike
	poly postgres psql ptpython pry pydoc pypy python qjs R racket rbx red redis-cli regina rexx Rscript ruby runghc
	runhaskell sage sbcl scala scheme scilab sed gsed sml sqlcmd sqlite sqlite3 sqlplus duckdb swift swipl tclsh
	tcc tectonic ts-node tsx v wish wolframscript xq tomlq xsltproc yq zig

	busybox toybox ed editor e3 emacs emacsclient evim eview ex gedit gview gvim gvimdiff helix hx jed joe jmacs jove jpico
	kak mcedit mg micro nano ne nvi nvim pico rgview rgvim rjoe rview rvim sensible select-editor vi view vile
	vim vimdiff vimtutor vimx vipw vigr vidir vipe zile code codium bzless bzmore less lessfile lesspipe lzless
	lzmore man more most pager pg perldoc w3m xzless xzmore zless zmore zstdless

	aarch64 alpha arm armv5tel armv6l armv7b armv7l armv8b armv8l athlon hppa hppa64 i386 i486 i586 i686 ia64 linux32 linux64
	loongarch64 mips mips32 mips64 parisc parisc32 parisc64 ppc ppc32 ppc64 ppc64le ppcle powerpc riscv32 riscv64 s390
	s390x setarch sparc sparc32 sparc32bash sparc64 uname26 x86_64

	aa-exec abduco agetty at autoexpect autossh batch bpftool bpftrace bubblewrap bwrap byobu callgrind_control capsh catchsegv
	cg_annotate cg_diff cg_merge cgexec choom chpst chroot chrt chronic concurrently cpulimit crontab crun daemon
	daemonize dbus debconf detach direnv distrobox doas dotenv dotenvx dtach dumb-init eatmydata entr env envchain
	envdir envsubst fakechroot faked faketime fakeroot fd fdfind find firejail flatpak flock foreman forever fsck fstab-decode gapplication
	gcore gdbserver gdbtui gdbus getty gio gosu gtime gtimeout gum gxargs genv gfind hivemind honcho hyperfine heaptrack ifne init
	ionice isolate kernel-install ld ldd lckdo login logsave logrotate ltrace luit machinectl memusage minijail0 mispipe mtrace multilog
	newgrp nice nodemon nohup not nq nsenter nsjail numactl overmind parallel perf pee pkcon pkexec pkttyagent pm2
	prename prlimit procmail proot qemu rename reptyr retry rlwrap rr run0 run-parts runalarm runc runcon runlock runsv
	runuser rush s6 schroot screen script scriptlive scriptreplay sem setlock setpriv setsid setuidgid sg slattach
	softlimit sotruss start-stop-daemon stap startx stdbuf strace su su-exec sudo sulogin supervisorctl supervisord sv svc
	switch_root sysdig systemd taskset telinit tini time timeout tmux toolbox torify torsocks trickle tsocks uclampset uftrace
	unbuffer unshare valgrind vgdb viddy watch watchexec watchman wine xargs xauth xdotool xinit xterm uxterm
	xvfb-run Xvfb zellij

	asdf fnm goenv jenv mise n nodeenv nodenv nvm phpenv pixi plenv proto pyenv rbenv rtx rvm sdk sdkman tfenv tgenv
	virtualenv venv volta

	aclocal agda ant arara as asciidoc autoconf autom4te automake autopoint autoreconf autoscan autoupdate bazel
	bison bmake bugpoint buck bundle byacc c++ c89 c99 cabal cargo cc clang clang-tidy cmake composer conan configure context
	cpack cpan cpp ctags ctest cscope dmd dune enc2xs etags f77 f95 fig flex flutter fpc g++ gcc gcov gem gettextize gfortran ghc ghci
	gmake gnat go gold gopls golangci-lint gotestsum gprofng gp gradle gradlew grog groff grunt gulp h2ph h2xs idris
	instmodsh invoke just icupkg jar jarsigner javac javadoc jcmd jconsole jdb jdeps jexec jhsdb jlink jmod jpackage jstatd kotlinc
	lake latex latexmk lein lex libtool libtoolize lipo llc llvm lto lualatex luatex mage make meson mix mocha mockgen mvn
	mvnDebug mvnw nasm nimble ninja nroff nox npm npx nx opam opt pdflatex pdftex perlbug perlivp perlthanks pic gpic pip
	pipenv pipx pkgdata pnpm pnpx poetry prove ptar pygmentize py3compile py3clean rails rake rdmd rebar rpcgen rspec rustc
	rustdoc rustup rye sbt scalac scons serialver shards stack task tex tox troff tsc turbo uv uvx xelatex xetex
	xsubpp yacc yarn yasm bunx corepack dlv ginkgo gcj

	alembic arc astro ava babel bats behave celery changeset commitlint coverage cucumber daphne django-admin
	eslint fab fabric fastlane flake8 flask gatsby gunicorn hatch husky hypercorn jest k6 karma knex lerna lint-staged
	locust mkdocs mypy nest next ng nose nosetests nuxt parcel pdm phpcs phpstan phpunit playwright pod postcss
	prettier prisma psalm puma pylint pytest rackup release-it remix robot rollup rubocop scrapy sequelize sphinx
	storybook stylelint tailwindcss tap thor twine typeorm uvicorn vite vitest vue webpack xo pre-commit

	add-apt-repository apk apt aptitude brew cron conda deb debootstrap dh dnf dpkg guix installkernel kpt mamba
	micromamba nix pacman pbuilder pkg port rpm sbuild snap update yum zypper

	a2ps avconv blender convert dot ffmpeg ffplay ffprobe gimp gnome identify inkscape libreoffice magick mogrify
	montage mplayer mpv pandoc plantuml povray ps2pdf soffice sox unoconv vlc wkhtmltoimage wkhtmltopdf

	brave chrome chromium chromedriver cypress electron elinks epiphany falkon firefox geckodriver google konqueror links
	links2 lynx microsoft-edge netsurf opera puppeteer qutebrowser surf vivaldi www-browser x-www-browser
	x-terminal-emulator alacritty foot gnome-terminal kitty konsole

	7z 7za 7zr ab anthoscli ansible aria2c aws axel az boundary bq bridge buildah busctl cbt cdk chef claude
	clickhouse clusterdb codex consul cqlsh crane createdb createlang createuser crictl ctr curl dcb dd debugfs delv
	dev_appserver.py devlink dig dirmngr dnsdomainname docker doctl doppler drill dropdb droplang dropuser
	eksctl etcdctl exim finger firebase flyctl ftp gcloud gh glab grpcurl gsutil gpg gpgconf gpgsm gpgtar helm helmfile
	heroku host http httpie https hub hurl incus infisical influx iperf k3d k3s kind kops kubectl lazygit lftp lxc
	mail mailx minikube mosh msgexec msgfilter msmtp mtr mutt nc ncat nerdctl netcat netlify nmap nomad nslookup oc
	ollama op openssl packer pgbench pgcli ping podman pulumi puppet railway rclone rcp rdma reindexdb rexec rlogin
	rmiregistry rmt route rsh rsync s3cmd s5cmd salt sam scalar scp sendmail serverless sftp skaffold skopeo sls slogin
	smbclient socat sops ssh sshfs sshpass sshuttle stunnel supabase svn swaks systemctl service tar
	bsdtar gtar star tc tcpdump telnet terraform terragrunt tftp tig tilt tipc tofu traceroute tshark vacuumdb
	vacuumlo vagrant vault vdpa vercel virsh websocat wget whois wrangler wrk wscat xdg xh yt-dlp youtube-dl zip
	zipgrep open cpio rar sort hg fossil darcs bzr cvs
	iptables ip mount nft journalctl`)

// writers are programs that write the data of one operand into a file named by another: copies,
// archives and filters with an output file.
var writers = newSet(`
	ar brotli bunzip2 bzexe bzip2 cabextract compress cp csplit docx2txt e2image e2undo fallocate gdk-pixbuf-thumbnailer gencat gendict gunzip gzexe
	gzip indent install jpegtran link ln localedef lrzip lz4 lz4c lzip lzma lzop memusagestat mke2fs mkfs mkswap mmv mv objcopy
	osslsigncode patch pax pbzip2 pdftk pdfseparate pdftocairo pdftohtml pdftops pdftotext pdfunite pigz pixz plzip ptargrep
	pzstd qpdf ranlib savelog shar split sponge strip tee tic ucf ucfq ucfr unar uncompress uniq unlz4 unlzma unrar
	unshar unsquashfs unxz unzip unzipsfx unzstd uudecode xxd xz zforce znew zipcloak zipnote zipsplit zopfli zstd zstdmt`)
