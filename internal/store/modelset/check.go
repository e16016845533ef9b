package modelset

import (
	"cmp"
	"fmt"
	"net/netip"
	"net/url"
	"regexp"
	"time"

	"github.com/parley-server/parley/internal/fault"
	"github.com/parley-server/parley/internal/text"
)

// The limits of a provider.
const (
	MaxProviders   = 32 // of a workspace
	MaxName        = 31
	DefaultTimeout = 2 * time.Minute
	MaxTimeout     = 10 * time.Minute
	maxURL         = 2048
)

// builtIn is the provider of the offline model, which needs no other.
const builtIn = "builtin"

// officialURLs are the addresses of the services after which the protocols are named.
var officialURLs = map[Kind]string{OpenAI: "https://api.openai.com/v1", Anthropic: "https://api.anthropic.com"}

var (
	providerName   = regexp.MustCompile(`^[a-z][a-z0-9]*([-_][a-z0-9]+)*$`)
	credentialName = regexp.MustCompile(`^[A-Z][A-Z0-9_]{0,63}$`)
)

// IsName reports whether a text can be the name of a provider.
func IsName(s string) bool { return len(s) <= MaxName && providerName.MatchString(s) && s != builtIn }

// Complete returns a provider with defaults in place of absent values: the protocol of its name, the
// official address, and the default time-out.
func (p Provider) Complete() Provider {
	if p.Kind == "" && p.Name == string(Anthropic) {
		p.Kind = Anthropic
	}
	p.Kind = cmp.Or(p.Kind, OpenAI)
	if p.BaseURL == "" && p.Name == string(p.Kind) {
		p.BaseURL = officialURLs[p.Kind]
	}
	p.Timeout = cmp.Or(p.Timeout, DefaultTimeout)
	return p
}

// violations returns all violations of a complete provider.
func (p Provider) violations() (vs []fault.Violation) {
	wrong := func(param, rule, message string, args ...any) {
		vs = append(vs, fault.Violation{Param: "/" + param, Rule: rule, Message: fmt.Sprintf(message, args...)})
	}
	if !IsName(p.Name) {
		wrong("name", "format", "The name of a provider is like vllm or azure-eu: a to z, 0 to 9, single - and _ between them, a letter "+
			"first, at most %d characters, and not %s.", MaxName, builtIn)
	}
	if p.Kind != OpenAI && p.Kind != Anthropic {
		wrong("kind", "enum", "The protocol of a provider is openai or anthropic.")
	}
	if problem := addressProblem(p.BaseURL); problem != "" {
		wrong("base_url", "format", "%s", problem)
	}
	if p.Credential != "" && !credentialName.MatchString(p.Credential) {
		wrong("credential", "format",
			"%.80q is not the name of a secret. A name is like OPENAI_KEY; parley secrets list shows those that exist.", p.Credential)
	}
	if p.Timeout < time.Second || p.Timeout > MaxTimeout {
		wrong("timeout_seconds", "range", "The longest silence of a reply is 1 to %d seconds.", MaxTimeout/time.Second)
	}
	return vs
}

// addressProblem describes the problem of a base URL, or returns "".
func addressProblem(base string) string {
	u, err := url.Parse(base)
	switch {
	case base == "":
		return "A provider has the address of its API, such as https://models.example.com/v1. Only openai and anthropic have one of their own."
	case err != nil || len(base) > maxURL || !text.IsPrintable(base) || u.Scheme != "https" && u.Scheme != "http" || u.Host == "" ||
		u.User != nil || u.RawQuery != "" || u.ForceQuery || u.Fragment != "":
		return "The address of a provider is like https://models.example.com/v1, without a user, a query and a fragment. " +
			"Its key is a secret: parley secrets set NAME --host HOST."
	case isAddress(u.Hostname()):
		return "The host of a provider is a name, not an address. A local server is like http://localhost:8000/v1, " +
			"with PARLEY_EGRESS_ALLOW=http://localhost:8000."
	}
	return ""
}

func isAddress(host string) bool {
	_, err := netip.ParseAddr(host)
	return err == nil
}
