package toolset

import (
	"fmt"
	"maps"
	"net/netip"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/parley-server/parley/internal/fault"
	"github.com/parley-server/parley/internal/store/permission"
	"github.com/parley-server/parley/internal/text"
)

// The limits of an entry.
const (
	MaxServerName = 31
	MaxTimeout    = 10 * time.Minute
	maxURL        = 2048
	maxHeaders    = 16
	maxHeader     = 2048 // bytes of a value
)

var (
	serverName = regexp.MustCompile(`^[a-z][a-z0-9]*([-_][a-z0-9]+)*$`)
	headerName = regexp.MustCompile("^[A-Za-z0-9!#$%&'*+.^_`|~-]+$")
)

func isAddress(host string) bool {
	_, err := netip.ParseAddr(host)
	return err == nil
}

// ownHeaders are set by the connection.
var ownHeaders = []string{"accept", "accept-encoding", "connection", "content-length", "content-type", "expect", "host", "last-event-id",
	"mcp-protocol-version", "mcp-session-id", "te", "trailer", "transfer-encoding", "upgrade"}

// Violations returns all violations of an entry.
func (e Entry) Violations() (vs []fault.Violation) {
	wrong := func(param, rule, message string, args ...any) {
		vs = append(vs, fault.Violation{Param: "/" + param, Rule: rule, Message: fmt.Sprintf(message, args...)})
	}
	if e.Kind == HTTP && isBuiltIn(e.Name) {
		wrong("name", "unique", "The agent has a tool %s of its own. Use another name.", e.Name)
	}
	if !serverName.MatchString(e.Name) || len(e.Name) > MaxServerName {
		wrong("name", "format", "The name of a tool server is like crm or issue-tracker: a to z, 0 to 9, single - and _ "+
			"between them, a letter first, at most %d characters.", MaxServerName)
	}
	u, err := url.Parse(e.URL)
	if err != nil || len(e.URL) > maxURL || !text.IsPrintable(e.URL) || u.Scheme != "https" && u.Scheme != "http" || u.Host == "" ||
		u.User != nil || u.RawQuery != "" || u.ForceQuery || u.Fragment != "" {
		wrong("url", "format", "The address of a tool server is like https://crm.example.com/mcp, without a user, a query and a fragment: "+
			"a secret belongs into a header, as ${NAME}.")
	}
	if err == nil && isAddress(u.Hostname()) {
		wrong("url", "format", "The host of a tool server is a name, not an address. A local server is like "+
			"http://localhost:9101/mcp, with PARLEY_EGRESS_ALLOW=http://localhost:9101.")
	}
	if e.Timeout != 0 && (e.Timeout < time.Second || e.Timeout > MaxTimeout) {
		wrong("timeout_seconds", "range", "The time for a call is 1 to %d seconds.", MaxTimeout/time.Second)
	}
	if len(e.Headers) > maxHeaders {
		wrong("headers", "length", "A tool server has at most %d headers.", maxHeaders)
	}
	for _, name := range slices.Sorted(maps.Keys(e.Headers)) {
		value := e.Headers[name]
		at := "headers/" + text.PointerToken(text.Truncate(name, 100))
		switch {
		case !headerName.MatchString(name) || !text.IsPrintable(value) || len(value) > maxHeader:
			wrong(at, "format", "A header has a name of letters, digits and -, and a value of one line of printable ASCII.")
		case slices.Contains(ownHeaders, strings.ToLower(name)), e.Kind == HTTP && isSigned(name):
			wrong(at, "enum", "The connection sets the header %s itself.", name)
		case isCredentialHeader(name) && !reference.MatchString(value):
			wrong(at, "format", "The value of %s is stored as a secret and named here: "+
				"parley secrets set NAME --host HOST, then Bearer ${NAME}.", name)
		}
	}
	return slices.Concat(vs, e.allowedViolations(), e.authViolations())
}

// isSigned reports whether the connection to an HTTP API sets a header of the signature.
func isSigned(name string) bool {
	name = strings.ToLower(name)
	return strings.HasPrefix(name, "webhook-") || strings.HasPrefix(name, "parley-")
}

// isBuiltIn reports whether the agent has a tool of this name.
func isBuiltIn(name string) bool { return permission.IsTool(name) || name == "final_answer" }

// isCredentialHeader reports whether a header carries a credential, which must be in the vault.
func isCredentialHeader(name string) bool {
	name = strings.ToLower(name)
	return slices.ContainsFunc([]string{"auth", "cookie", "key", "token", "secret", "password"},
		func(part string) bool { return strings.Contains(name, part) })
}

func (e Entry) allowedViolations() (vs []fault.Violation) {
	if e.Allowed == nil {
		return nil
	}
	if n := len(e.Allowed); n == 0 || n > MaxTools {
		vs = append(vs, fault.Violation{Param: "/allow", Rule: "length",
			Message: fmt.Sprintf("Choose 1 to %d tools, or leave allow out to take every tool.", MaxTools)})
	}
	for i, name := range e.Allowed {
		if name == "" || len(name) > maxOwnName || !text.IsStorable(name) {
			vs = append(vs, fault.Violation{Param: fmt.Sprintf("/allow/%d", i), Rule: "format",
				Message: "The name of a tool is as the server has it."})
		}
	}
	return vs
}
