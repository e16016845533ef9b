package permission_test

import (
	"strings"
	"testing"

	"github.com/parley-server/parley/internal/fault"
	"github.com/parley-server/parley/internal/store/permission"
)

// TestStarIsRefusedAfterProgramsThatDoMoreThanLook has a program of every kind, with the names that
// distributions install it under.
func TestStarIsRefusedAfterProgramsThatDoMoreThanLook(t *testing.T) {
	t.Parallel()
	for why, names := range map[string]string{
		"runs whatever its operands say": `
			x86_64 i386 i486 i586 i686 ppc ppc32 ppc64 ppc64le s390x armv7l armv8l aarch64 riscv64 sparc64 uname26 linux32 setarch
			logsave pyenv rbenv nodenv goenv asdf mise direnv uclampset choom debconf run0 sg newgrp luit scriptlive
			rvim rview ex vimtutor vim.basic vim.tiny vi view editor sensible-editor vipw
			chromium chromium-browser chrome google-chrome firefox firefox-esr x-www-browser sensible-browser
			nc.openbsd nc.traditional ssh-copy-id ssh-keygen slogin apt-key apt-cache dpkg-source debconf-communicate
			perl5.36-x86_64-linux-gnu cpan5.36-x86_64-linux-gnu pdb3.11 pydoc3 python3-config pip3.11
			gcc gcc-12 g++-12 x86_64-linux-gnu-gcc x86_64-linux-gnu-ld.bfd i686-w64-mingw32-gcc c99-gcc ld.so ld-linux-x86-64.so.2
			lli-14 llvm-rtdyld-14 not-14 opt-14 javac serialver jar ldd gdbtui valgrind.bin
			systemd-cat systemd-inhibit systemd-socket-activate systemd-run dbus-send busctl gdbus gio xdg-mime
			git-shell git-upload-pack tig ctags-universal etags cscope prove xsubpp perldoc zless bzmore lesspipe man
			fstab-decode login getty c++ cpack msgexec msgfilter rename.ul latex xelatex pandoc convert ffmpeg gs eslint mypy pylint sphinx-build docker-credential-gcloud
			pg_dump pgbench createdb dig ping host update-alternatives ip tc`,
		"writes to the file that its operands say": `
			cp mv install ln link tee split split-file-14 csplit patch uniq xxd gzip gunzip bzip2 xz unxz zstd lz4 unzip
			unrar ar objcopy strip mkfs.ext4 ptargrep unzipsfx tic sponge pdftotext`,
		"sub-commands": "git",
	} {
		for name := range strings.FieldsSeq(names) {
			_, err := permission.Parse("bash(" + name + " *)")
			f := fault.From(err)
			if err == nil || len(f.Detail.Violations) == 0 || !strings.Contains(f.Detail.Violations[0].Message, why) {
				t.Errorf("bash(%s *): %v, want %s", name, err, why)
			}
			if _, err := permission.Parse("bash(" + name + " status)"); err != nil {
				t.Errorf("bash(%s status): %v", name, err)
			}
		}
	}
	if _, err := permission.Parse("bash(git mv *)"); err == nil {
		t.Error("bash(git mv *) is accepted, although it writes files of any name")
	}
}

func TestStarStandsAfterProgramsThatLook(t *testing.T) {
	t.Parallel()
	for _, name := range append(permission.Looks(), "cd", "mkdir", "touch", "rm", "rmdir", "jq", "bzcat", "xzcat", "zgrep", "date", "ps",
		"mytool") {
		must(t, "bash("+name+" *)")
	}
}
