package vault

import (
	"bytes"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/parley-server/parley/internal/fault"
)

// The limits of a credential.
const (
	MinValue = 4        // bytes
	MaxValue = 64 << 10 // bytes
	MaxHosts = 32
)

var nameShape = regexp.MustCompile(`^[A-Z][A-Z0-9_]{0,63}$`)

// reserved are variables that the sandbox sets, or that change how shells, loaders, runtimes and common
// programs run.
var reserved = regexp.MustCompile(`^(` + strings.Join([]string{
	`PATH|CDPATH|HOME|USER|LOGNAME|SHELL|PWD|OLDPWD|ENV|IFS|PS4|PROMPT_COMMAND|LANG|LANGUAGE|TERM|TERMINFO|TZ|TZDIR|TMP|TEMP|TMPDIR`,
	`(LD|LC|XDG)_.*|(BASH|PYTHON).*|GCONV_PATH|LOCPATH|NLSPATH|GLIBC_TUNABLES|MALLOC_.*|HOSTALIASES|LOCALDOMAIN|RES_OPTIONS`,
	`(HTTPS?|FTP|ALL|NO)_PROXY|SSL_CERT_(FILE|DIR)|SSLKEYLOGFILE|OPENSSL_(CONF|ENGINES|MODULES)|CURL_(CA_BUNDLE|HOME|SSL_BACKEND)|WGETRC`,
	`REQUESTS_CA_BUNDLE|PIP_CERT|AWS_CA_BUNDLE|DENO_CERT|NODE_(EXTRA_CA_CERTS|USE_ENV_PROXY|OPTIONS|PATH|TLS_REJECT_UNAUTHORIZED)`,
	`GIT_(SSH.*|SSL.*|CONFIG.*|EXEC_PATH|PROXY_COMMAND|ASKPASS|EDITOR|PAGER|EXTERNAL_DIFF|TEMPLATE_DIR|DIR|WORK_TREE)|SSH_ASKPASS`,
	`(JAVA_TOOL|JDK_JAVA)_OPTIONS|RUBY(OPT|LIB)|PERL5?(OPT|LIB|DB)|PHPRC|PHP_INI_SCAN_DIR|GO(FLAGS|ENV|PATH|ROOT|PROXY)|LUA_(PATH|INIT)`,
	`EDITOR|VISUAL|PAGER|BROWSER|LESS(OPEN|CLOSE)`,
}, "|") + `)$`)

// checkRegistration returns all violations of a registration, and its hosts as they are stored.
func (r Registration) checkRegistration() (hosts []string, vs []fault.Violation) {
	switch {
	case !nameShape.MatchString(r.Name):
		vs = append(vs, fault.Violation{Param: "/name", Rule: "format",
			Message: "A secret's name is like GITHUB_TOKEN: A to Z, 0 to 9 and _, a letter first, 64 characters at most."})
	case reserved.MatchString(r.Name):
		vs = append(vs, fault.Violation{Param: "/name", Rule: "format",
			Message: r.Name + " already means something to the programs that an agent runs; choose another name."})
	}
	if n := len(r.Hosts); n == 0 || n > MaxHosts {
		vs = append(vs, fault.Violation{Param: "/allowed_hosts", Rule: "length",
			Message: fmt.Sprintf("A secret has 1 to %d hosts, the only ones that its value is ever sent to.", MaxHosts)})
	}
	for i, text := range r.Hosts {
		host, wrong := Host(text)
		if wrong != "" {
			vs = append(vs, fault.Violation{Param: fmt.Sprintf("/allowed_hosts/%d", i), Rule: "format",
				Message: fmt.Sprintf("%.80q is not a host: %s", text, wrong)})
		}
		hosts = append(hosts, host)
	}
	slices.Sort(hosts)
	if r.Value.Reveal() != nil {
		vs = append(vs, CheckValue(r.Value)...)
	}
	return slices.Compact(hosts), vs
}

// CheckValue returns the violations of a value, and reveals neither it nor its length.
func CheckValue(v Value) []fault.Violation {
	wrong := func(rule, message string) []fault.Violation {
		return []fault.Violation{{Param: "/value", Rule: rule, Message: message}}
	}
	plain := v.Reveal()
	switch {
	case len(plain) < MinValue:
		return wrong("min_length", fmt.Sprintf("The value of a secret is at least %d bytes long.", MinValue))
	case len(plain) > MaxValue:
		return wrong("max_length", fmt.Sprintf("The value of a secret is at most %d bytes long.", MaxValue))
	case !utf8.Valid(plain) || bytes.ContainsFunc(bytes.ReplaceAll(plain, []byte("\r\n"), []byte("\n")), isRefusedControl):
		return wrong("format", "The value of a secret is UTF-8 without control characters. Lines end with LF or CRLF.")
	case len(bytes.TrimSpace(plain)) != len(trimLastLineEnd(plain)):
		return wrong("format", "The value of a secret does not begin or end with a blank. "+
			"Only a value of several lines may end with one line end.")
	}
	return nil
}

// isRefusedControl reports whether a character cannot be part of a value.
func isRefusedControl(c rune) bool { return unicode.IsControl(c) && c != '\n' }

// trimLastLineEnd removes the last line end of a value of several lines, as a PEM file has it.
func trimLastLineEnd(plain []byte) []byte {
	trimmed := bytes.TrimSuffix(bytes.TrimSuffix(plain, []byte("\n")), []byte("\r"))
	if bytes.IndexByte(trimmed, '\n') < 0 {
		return plain
	}
	return trimmed
}

var (
	labelShape = regexp.MustCompile(`^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$`)
	portShape  = regexp.MustCompile(`^[1-9][0-9]{0,4}$`)
	numberLike = regexp.MustCompile(`^(0x[0-9a-f]*|[0-9]+)$`)
)

// Host parses a host or *.host with an optional port into its canonical form, or describes the
// violation. It rejects every text that any involved program could read as an IP address. A name
// without a domain, such as localhost, is one of the operator's network: requests reach it only if
// the operator allows it.
func Host(text string) (host, wrong string) {
	host = lowerASCII(text)
	name, port, hasPort := strings.Cut(host, ":")
	if strings.Contains(host, "/") {
		return "", "write the name alone, without https:// and without a path."
	}
	if hasPort && (!portShape.MatchString(port) || len(port) == 5 && port > "65535") {
		return "", "after the colon there is a port from 1 to 65535."
	}
	name = strings.TrimSuffix(name, ".")
	suffix, wild := strings.CutPrefix(name, "*.")
	labels := strings.Split(suffix, ".")
	for _, label := range labels {
		if !labelShape.MatchString(label) {
			return "", "it is like api.example.com or *.example.com; names in other alphabets are written as xn--…"
		}
	}
	switch {
	case numberLike.MatchString(labels[len(labels)-1]):
		return "", "IP addresses are not accepted. Use a name such as api.example.com."
	case wild && len(labels) < 2 || len(suffix) > 253:
		return "", "it needs a domain, as in *.example.com."
	case wild:
		suffix = "*." + suffix
	}
	if hasPort {
		suffix += ":" + port
	}
	return suffix, ""
}

// lowerASCII is for ASCII only: strings.ToLower maps the Kelvin sign to k.
func lowerASCII(s string) string {
	return strings.Map(func(r rune) rune {
		if 'A' <= r && r <= 'Z' {
			r += 'a' - 'A'
		}
		return r
	}, s)
}

func refusedValue(vs []fault.Violation) error {
	if len(vs) == 0 {
		return nil
	}
	return fault.Invalid(vs...)
}
