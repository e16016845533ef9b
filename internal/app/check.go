package app

import (
	"cmp"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"net/url"
	"reflect"
	"strings"
	"time"

	"github.com/parley-server/parley/internal/egress"
	"github.com/parley-server/parley/internal/store/filestore"
	"github.com/parley-server/parley/internal/store/vault"
)

// hintFor returns the values that a setting of a type accepts.
func hintFor(t reflect.Type) string {
	switch t {
	case reflect.TypeFor[time.Duration]():
		return "it takes a duration such as 500ms, 15s, 10m or 24h."
	case reflect.TypeFor[Period]():
		return "it takes a length of time such as 90m, 24h or 400d."
	case reflect.TypeFor[bool]():
		return "it takes true or false."
	case reflect.TypeFor[int]():
		return "it takes a whole number."
	case reflect.TypeFor[slog.Level]():
		return "it takes DEBUG, INFO, WARN or ERROR."
	}
	return "it cannot be read."
}

// listProblems lists the invalid values, each checked alone.
func (c Config) listProblems() []string {
	var list []string
	bad := func(name string, value any, takes string) {
		list = append(list, fmt.Sprintf("%s is %q: it takes %s.", name, fmt.Sprint(value), takes))
	}
	if _, port, err := net.SplitHostPort(c.Listen); err != nil || port == "" {
		bad("PARLEY_LISTEN", c.Listen, "host:port, such as :8080 or 127.0.0.1:8080")
	}
	if _, port, err := net.SplitHostPort(c.MetricsListen); c.MetricsListen != "" && (err != nil || port == "") {
		bad("PARLEY_METRICS_LISTEN", c.MetricsListen, "host:port, such as 127.0.0.1:9090")
	}
	for _, u := range []struct{ name, value string }{
		{"PARLEY_BASE_URL", c.BaseURL}, {"OPENAI_BASE_URL", c.OpenAIBaseURL}, {"ANTHROPIC_BASE_URL", c.AnthropicBase}, {"PARLEY_URL", c.URL},
	} {
		if u.value != "" && !webURL(u.value) {
			bad(u.name, u.value, "an address with http:// or https://")
		}
	}
	if c.Workers < 0 || c.Workers > 20_000 {
		bad("PARLEY_WORKERS", c.Workers, "0 to 20000")
	}
	if c.Connections < 4 || c.Connections > 1000 {
		bad("PARLEY_DATABASE_CONNECTIONS", c.Connections, "4 to 1000")
	}
	if c.Queue < 1 || c.Queue > 100_000 {
		bad("PARLEY_MESSAGE_QUEUE", c.Queue, "1 to 100000")
	}
	if c.BodyMemory < 8 || c.BodyMemory > 65_536 {
		bad("PARLEY_EGRESS_BODY_MIB", c.BodyMemory, "8 to 65536")
	}
	if c.ModelCalls < 0 || c.ModelCalls > 20_000 {
		bad("PARLEY_MODEL_CALLS", c.ModelCalls, "1 to 20000")
	}
	for _, n := range []struct {
		name  string
		value int
	}{
		{"PARLEY_MESSAGES_PER_MINUTE", c.MessagesPerMinute}, {"PARLEY_CALLS_PER_MINUTE", c.CallsPerMinute},
		{"PARLEY_OPEN_STREAMS", c.OpenStreams},
		{"PARLEY_FAILED_KEYS_PER_MINUTE", c.FailedKeysPerMinute},
	} {
		if n.value < 0 || n.value > 1_000_000 {
			bad(n.name, n.value, "0 to 1000000")
		}
	}
	for _, d := range []struct {
		name     string
		value    time.Duration
		min, max time.Duration
	}{
		{"PARLEY_MODEL_TIMEOUT", c.ModelTimeout, time.Second, 10 * time.Minute},
		{"PARLEY_TURN_LEASE", c.TurnLease, 500 * time.Millisecond, 10 * time.Minute},
		{"PARLEY_DRAIN", c.Drain, 0, time.Hour},
		{"PARLEY_SSE_KEEPALIVE", c.SSEKeepAlive, 10 * time.Millisecond, 5 * time.Minute},
		{"PARLEY_SSE_WRITE_TIMEOUT", c.SSEWriteTimeout, 10 * time.Millisecond, time.Hour},
		{"PARLEY_SIGNED_URL_TTL", c.SignedURLTTL, time.Minute, filestore.MaxTTL},
	} {
		if d.value < d.min || d.value > d.max {
			bad(d.name, cmp.Or(c.rawValue(d.name), d.value.String()), fmt.Sprintf("%s to %s", d.min, d.max))
		}
	}
	for _, p := range []struct {
		name  string
		value Period
		min   Period
	}{
		{"PARLEY_REPLAY_WINDOW", c.ReplayWindow, Period(time.Minute)}, {"PARLEY_AUDIT_RETENTION", c.AuditRetention, c.ReplayWindow},
	} {
		if p.value < p.min || p.value > maxPeriod {
			bad(p.name, cmp.Or(c.rawValue(p.name), p.value.String()), fmt.Sprintf("%s to %s", p.min, maxPeriod))
		}
	}
	if _, err := c.newGuard(); err != nil {
		list = append(list, "PARLEY_EGRESS_ALLOW: "+strings.ReplaceAll(err.Error(), "\n", "; ")+".")
	}
	if u := c.PostgresRepository.Reveal(); u != "" && !webURL(u) {
		list = append(list, "PARLEY_POSTGRES_REPOSITORY takes an address with http:// or https://.")
	}
	if _, err := c.trustedProxies(); err != nil {
		list = append(list, "PARLEY_TRUSTED_PROXIES: "+err.Error()+".")
	}
	for _, origin := range c.CORSOrigins {
		if !isOrigin(origin) {
			bad("PARLEY_CORS_ORIGINS", origin, "origins as browsers send them, such as https://app.example or http://localhost:3000: "+
				"lower case, no path, no * and no usual port")
		}
	}
	if c.VaultKey != "" {
		if _, err := vault.ParseKeys(c.VaultKey.Reveal()); err != nil {
			list = append(list, "PARLEY_VAULT_KEY: "+err.Error()+".")
		}
	}
	if _, err := c.headStores(); err != nil {
		list = append(list, "PARLEY_AUDIT_HEADS: "+strings.ReplaceAll(err.Error(), "\n", "; ")+".")
	}
	if c.Model != "" {
		if _, err := parseModel(c.Model); err != nil {
			list = append(list, "PARLEY_MODEL: "+err.Error()+".")
		}
	}
	list = append(list, c.listRunnerProblems()...)
	return append(list, c.listProviderProblems()...)
}

// newGuard returns the policy for the requests that callers cause.
func (c Config) newGuard() (*egress.Guard, error) {
	return egress.New(egress.Config{Allow: c.EgressAllow, BodyMemory: int64(c.BodyMemory) << 20})
}

// trustedProxies returns the networks that may name the client of a request.
func (c Config) trustedProxies() ([]netip.Prefix, error) {
	var list []netip.Prefix
	for _, text := range c.TrustedProxies {
		text = strings.TrimSpace(text)
		p, err := netip.ParsePrefix(text)
		if addr, failed := netip.ParseAddr(text); failed == nil {
			p, err = netip.PrefixFrom(addr, addr.BitLen()), nil
		}
		if err != nil {
			return nil, fmt.Errorf("%q is not an address or a range such as 10.0.0.0/8", text)
		}
		list = append(list, p)
	}
	return list, nil
}

// isOrigin reports whether a text is an origin as browsers send it.
func isOrigin(s string) bool {
	u, err := url.Parse(s)
	return err == nil && webURL(s) && s == u.Scheme+"://"+u.Host && s == strings.ToLower(s) && !strings.Contains(u.Host, "*") &&
		!(u.Scheme == "https" && u.Port() == "443") && !(u.Scheme == "http" && u.Port() == "80") && u.Hostname() != ""
}

func webURL(s string) bool {
	u, err := url.Parse(s)
	return err == nil && (u.Scheme == "http" || u.Scheme == "https") && u.Host != "" && !strings.ContainsAny(s, " \n")
}
