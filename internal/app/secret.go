package app

import (
	"log/slog"
	"net/url"
)

// Secret is a setting that must not be printed: formatted, logged or marshaled it is "[secret]".
// Only Reveal returns its value.
type Secret string

// Reveal returns the value.
func (s Secret) Reveal() string { return string(s) }

const hidden = "[secret]"

func (Secret) String() string               { return hidden }
func (Secret) GoString() string             { return hidden }
func (Secret) LogValue() slog.Value         { return slog.StringValue(hidden) }
func (Secret) MarshalText() ([]byte, error) { return []byte(hidden), nil }

// redactURL hides the password of a database address and leaves the rest readable.
func redactURL(value string) string {
	u, err := url.Parse(value)
	if err != nil || u.Scheme == "" {
		return hidden // host=… password=… has no part that is certainly harmless
	}
	q := u.Query()
	for _, name := range []string{"password", "sslpassword"} {
		if q.Has(name) {
			q.Set(name, "xxxxx")
		}
	}
	u.RawQuery = q.Encode()
	return u.Redacted()
}
