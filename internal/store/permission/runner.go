package permission

import (
	"maps"
	"slices"
	"strings"
)

// newSet returns a set of the words of a text.
func newSet(text string) map[string]bool {
	m := make(map[string]bool)
	for word := range strings.FieldsSeq(text) {
		m[word] = true
	}
	return m
}

func sortedNames[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }

// isIn reports whether a program is in a set. Its versions and variants count as the program:
// python3.12 is python, vim.basic is vim and ssh-copy-id is ssh.
func isIn(programs map[string]bool, name string) bool {
	for i, c := range name + "." {
		if strings.ContainsRune(".-_", c) && (programs[name[:i]] || programs[strings.TrimRight(name[:i], "0123456789.-")]) {
			return true
		}
	}
	return false
}

// keyword are the words of bash's grammar: in quotes they would be programs.
var keyword = newSet(`if then elif else fi time for in until while do done case esac coproc select function`)

// gitReads are the sub-commands of git that a * may follow: an alias cannot use their names, and
// with operands alone they neither run programs nor change the configuration.
var gitReads = newSet(`add annotate blame branch cat-file check-ignore cherry count-objects describe diff diff-files
	diff-index diff-tree for-each-ref grep log ls-files ls-tree merge-base name-rev range-diff restore rev-list
	rev-parse rm shortlog show show-branch show-ref stage status tag whatchanged`)

// gitLooks are those of gitReads that change nothing: a suggestion may end in * after them.
var gitLooks = newSet(`annotate blame cat-file cherry describe diff diff-files diff-index diff-tree grep log ls-files
	ls-tree merge-base name-rev range-diff rev-list rev-parse shortlog show show-ref status whatchanged`)

// looksOnly are programs that only read their operands.
var looksOnly = newSet(`basename cat cksum cmp comm cut df diff dirname du echo egrep fgrep file fold grep head hexdump
	id ls md5sum nl od paste pwd readlink realpath rev rg seq sha1sum sha256sum sha512sum stat strings sum tac tail
	tr tree wc which whoami zcat`)

// flags are options without a value, in every program that would be allowed.
var flags = newSet(`-- -1 -A -a -al -h -i -in -l -la -lah -lh -q -R -r -rn -v -w --all --cached --check --color
	--decorate --first-parent --follow --graph --ignore-case --line-number --merges --name-only --name-status --no-color
	--no-merges --numstat --oneline --patch --porcelain --quiet --recursive --short --shortstat --staged
	--stat --summary --verbose`)
