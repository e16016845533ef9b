package toolset

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"unicode"

	"github.com/parley-server/parley/internal/text"
)

// The limits of what a server offers: all of it can reach the model.
const (
	MaxTools       = 116      // of a workspace: with the built-in ones these are 128, which every provider takes
	MaxDescription = 4096     // characters; the rest is cut off
	MaxSchema      = 64 << 10 // bytes
	maxTitle       = 200      // characters
	maxOwnName     = 200      // bytes
)

// Definition describes a tool to the model, and has the server's hints about it.
type Definition struct {
	Title       string          `json:"title,omitempty"`
	Description string          `json:"description"`
	Schema      json.RawMessage `json:"input_schema"` // JSON Schema of the input, an object
	Annotations Annotations     `json:"annotations"`
	HTTP        *Request        `json:"http,omitempty"` // of a tool of an HTTP API
}

// Annotations are the server's hints. They are shown to administrators.
type Annotations struct {
	ReadOnly    bool  `json:"read_only_hint"`
	Destructive *bool `json:"destructive_hint,omitempty"`
	Idempotent  bool  `json:"idempotent_hint"`
	OpenWorld   *bool `json:"open_world_hint,omitempty"`
}

// Offer is a tool as a server describes it.
type Offer struct {
	OwnName string
	Definition
}

// Skipped is a tool of a server that cannot be used.
type Skipped struct {
	OwnName string `json:"name"`
	Reason  string `json:"reason"`
}

// encode returns a definition as it is stored, and its hash.
func (d Definition) encode() (raw, hash []byte, err error) {
	if raw, err = json.Marshal(d); err != nil {
		return nil, nil, fmt.Errorf("encode the definition of a tool: %w", err)
	}
	sum := sha256.Sum256(raw)
	return raw, sum[:], nil
}

// foreignEscape matches escapes in JSON that jsonb of PostgreSQL may reject.
var foreignEscape = regexp.MustCompile(`(?i)\\u(0000|d[89a-f])`)

// cleanOffer returns an offer as it can be stored, or the reason why it cannot be used.
func cleanOffer(o Offer) (_ Offer, wrong string) {
	if o.OwnName == "" || len(o.OwnName) > maxOwnName || !text.IsStorable(o.OwnName) || strings.ContainsFunc(o.OwnName, unicode.IsControl) {
		return o, fmt.Sprintf("Its name is not 1 to %d bytes of printable text.", maxOwnName)
	}
	o.Title, o.Description = cleanText(o.Title, maxTitle), cleanText(o.Description, MaxDescription)
	var shape struct {
		Type any `json:"type"`
	}
	var compact bytes.Buffer
	switch {
	case len(o.Schema) > MaxSchema:
		return o, fmt.Sprintf("Its input schema is larger than %d KiB.", MaxSchema>>10)
	case json.Compact(&compact, o.Schema) != nil || json.Unmarshal(o.Schema, &shape) != nil || shape.Type != "object" ||
		!text.IsStorable(compact.String()):
		return o, "Its input schema is not that of an object."
	case foreignEscape.Match(compact.Bytes()):
		return o, "Its input schema contains a NUL or half a surrogate pair, which cannot be stored."
	}
	o.Schema = compact.Bytes()
	return o, ""
}

// cleanText returns a text for the model without characters that administrators cannot see, and
// with at most n characters.
func cleanText(s string, n int) string {
	s = strings.ToValidUTF8(s, "\uFFFD")
	s = strings.Map(func(r rune) rune {
		if r != '\n' && r != '\t' && text.IsInvisible(r) {
			return -1
		}
		return r
	}, s)
	return text.Prefix(strings.TrimSpace(s), n)
}

// chooseOffers returns the usable offers that an entry takes, by name, and the others with the
// reason.
func chooseOffers(allowed []string, offers []Offer) (chosen []Offer, skipped []Skipped) {
	offers = slices.Clone(offers)
	slices.SortStableFunc(offers, func(a, b Offer) int { return strings.Compare(a.OwnName, b.OwnName) })
	for i, o := range offers {
		if allowed != nil && !slices.Contains(allowed, o.OwnName) {
			continue
		}
		o, wrong := cleanOffer(o)
		switch {
		case wrong != "":
		case i > 0 && offers[i-1].OwnName == o.OwnName:
			wrong = "The server lists it twice."
		case len(chosen) == MaxTools:
			wrong = fmt.Sprintf("A workspace has at most %d tools of its own. Choose some of them.", MaxTools)
		}
		if wrong != "" {
			skipped = append(skipped, Skipped{text.Truncate(text.Mask(o.OwnName), maxOwnName), wrong})
			continue
		}
		chosen = append(chosen, o)
	}
	return chosen, skipped
}

// Unchanged returns the names of the tools whose accepted definitions are those that the server offers.
func (s Server) Unchanged(offers []Offer) []string {
	chosen, _ := chooseOffers(s.Allowed, offers)
	names := []string{}
	for _, t := range s.Tools {
		i := slices.IndexFunc(chosen, func(o Offer) bool { return o.OwnName == t.OwnName })
		if i < 0 || t.Definition == nil {
			continue
		}
		_, accepted, err := t.Definition.encode()
		_, offered, failed := chosen[i].encode()
		if err == nil && failed == nil && bytes.Equal(accepted, offered) {
			names = append(names, t.Name)
		}
	}
	return names
}

// maxName is the longest name of a tool that every provider accepts.
const maxName = 64

var plainName = regexp.MustCompile(`^[A-Za-z0-9_-]+$`)

// ModelName returns the name of a server's tool as the model sees it: server__tool. A name that
// some provider would reject is made valid, and kept apart from others by a part of its hash. No
// built-in tool has two underscores in its name.
func ModelName(server, own string) string {
	name := server + "__" + own
	if plainName.MatchString(own) && len(name) <= maxName {
		return name
	}
	sum := sha256.Sum256([]byte(own))
	suffix := "_" + hex.EncodeToString(sum[:4])
	valid := strings.Map(func(r rune) rune {
		if r > unicode.MaxASCII || !plainName.MatchString(string(r)) {
			return '_'
		}
		return r
	}, own)
	name = server + "__" + valid
	return name[:min(len(name), maxName-len(suffix))] + suffix
}
