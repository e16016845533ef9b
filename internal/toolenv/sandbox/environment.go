package sandbox

import "strings"

const (
	proxy  = "http://127.0.0.1:3128"
	search = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
)

// commandEnvironment returns the command's environment: the sandbox's own variables and those of
// env with other names.
func commandEnvironment(c Command) []string {
	own := []string{
		"PATH=" + search, "HOME=/workspace", "LANG=C.UTF-8",
		// Without this, git treats files named HEAD, config, objects and refs as a repository and
		// runs the commands in that config.
		"GIT_CONFIG_COUNT=1", "GIT_CONFIG_KEY_0=safe.bareRepository", "GIT_CONFIG_VALUE_0=explicit",
	}
	if c.Serve != nil {
		for _, name := range []string{"HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy"} {
			own = append(own, name+"="+proxy)
		}
		own = append(own, "NO_PROXY=", "no_proxy=", "NODE_USE_ENV_PROXY=1")
	}
	if len(c.CA) > 0 {
		for _, name := range []string{
			"SSL_CERT_FILE", "CURL_CA_BUNDLE", "REQUESTS_CA_BUNDLE", "NODE_EXTRA_CA_CERTS", "GIT_SSL_CAINFO",
			"PIP_CERT", "AWS_CA_BUNDLE", "DENO_CERT",
		} {
			own = append(own, name+"=/etc/ssl/certs/ca-certificates.crt")
		}
	}
	taken := make(map[string]bool)
	for _, v := range own {
		name, _, _ := strings.Cut(v, "=")
		taken[name] = true
	}
	for _, v := range c.Env {
		if name, _, ok := strings.Cut(v, "="); ok && !taken[name] {
			own = append(own, v)
		}
	}
	return own
}
