package apikey

import (
	"hash/crc32"
	"regexp"
	"strings"
	"testing"
)

func TestKeysHaveTheDocumentedShape(t *testing.T) {
	t.Parallel()
	for _, prefix := range []string{"prl_", "whtok_", "brtok_"} {
		shape := regexp.MustCompile(`^` + prefix + `([0-9A-Za-z]{8})([0-9A-Za-z]{32})[0-9A-Za-z]{6}$`)
		seen := make(map[string]bool)
		for range 1000 {
			key, id, secret := generateSecret(prefix)
			parts := shape.FindStringSubmatch(key)
			if parts == nil || parts[1] != id || parts[2] != secret || seen[id] {
				t.Fatalf("key %q, id %q", key, id)
			}
			seen[id] = true
			if gotID, gotSecret, ok := Parse(key); !ok || gotID != id || gotSecret != secret {
				t.Fatalf("Parse(%q) = %q, %q, %v", key, gotID, gotSecret, ok)
			}
		}
	}
}

// The typos are any single wrong, missing or doubled character, any two swapped neighbours, and
// another prefix.
func TestParseRefusesTypos(t *testing.T) {
	t.Parallel()
	for prefix, other := range map[string]string{keyPrefix: tokenPrefix, tokenPrefix: browserPrefix, browserPrefix: keyPrefix} {
		key, _, _ := generateSecret(prefix)
		typos := []string{strings.Replace(key, prefix, other, 1), strings.TrimPrefix(key, prefix)}
		for i := range len(key) {
			typos = append(typos, key[:i]+key[i+1:], key[:i+1]+key[i:])
			for _, c := range base62 + " -_é\x00" {
				typos = append(typos, key[:i]+string(c)+key[i+1:])
			}
			if i > 0 {
				typos = append(typos, key[:i-1]+key[i:i+1]+key[i-1:i]+key[i+1:])
			}
		}
		for _, typo := range typos {
			if _, _, ok := Parse(typo); ok && typo != key {
				t.Errorf("Parse took %q for %q", typo, key)
			}
		}
	}
}

func FuzzParse(f *testing.F) {
	key, _, _ := generateSecret(keyPrefix)
	token, _, _ := generateSecret(tokenPrefix)
	for _, s := range []string{key, token, "", "prl_", "whtok_", key[:49], key + "x", strings.ToUpper(key), "Bearer " + key,
		strings.Repeat("é", 25)} {
		f.Add(s)
	}
	// A valid checksum does not make every character valid.
	odd := keyPrefix + strings.Repeat("-", 40)
	f.Add(odd + keyChecksum(odd))
	f.Fuzz(func(t *testing.T, s string) {
		id, secret, ok := Parse(s)
		if !ok {
			if id != "" || secret != "" {
				t.Fatalf("refused, yet %q and %q", id, secret)
			}
			return
		}
		if len(s) < 46 {
			t.Fatalf("%q was taken", s)
		}
		sent, sum := s[:len(s)-6], s[len(s)-6:]
		if (sent != "prl_"+id+secret && sent != "whtok_"+id+secret && sent != "brtok_"+id+secret) || len(id) != 8 || len(secret) != 32 ||
			strings.Trim(id+secret, base62) != "" {
			t.Fatalf("%q was parsed as %q, %q", s, id, secret)
		}
		n := uint32(0)
		for _, c := range sum {
			n = n*62 + uint32(strings.IndexRune(base62, c))
		}
		if n != crc32.ChecksumIEEE([]byte(sent)) {
			t.Fatalf("%q has a wrong checksum", s)
		}
	})
}

func TestScopesImplyTheLowerOnes(t *testing.T) {
	t.Parallel()
	implies := map[Scope]Scopes{
		"tools:write": {"tools:read"}, "mcp": {"mcp:read", "wiki:write"}, "files:write:unrestricted": {"files:write"},
		"config:write": {"config:read"}, "admin": {"config:read", "config:write"},
	}
	for _, have := range All {
		for _, want := range All {
			expected := have == want
			for _, lower := range implies[have] {
				expected = expected || lower == want
			}
			if got := (Scopes{have}).Allows(want); got != expected {
				t.Errorf("%s allows %s: %v", have, want, got)
			}
		}
	}
	if got := (Scopes{Chat, MCP, "everything"}).Expand().String(); got != "chat, mcp, mcp:read, wiki:write" {
		t.Errorf("expanded: %q", got)
	}
	if Scopes(nil).Allows(Chat) || (Scopes{"everything"}).Allows(Chat) || Scope("everything").Known() {
		t.Error("an unknown scope allows something")
	}
	if got := MCPRead.Accepted().String(); got != "mcp:read, mcp" {
		t.Errorf("accepted for mcp:read: %q", got)
	}
}

// TestAllLeavesOutAdministration checks that the name all never grants the scopes of
// administrators, and that lists show them beside it.
func TestAllLeavesOutAdministration(t *testing.T) {
	t.Parallel()
	usual, err := ParseScopes([]string{"all"})
	if err != nil || usual.Allows(Admin) || usual.Allows(ServerAdmin) || !usual.Allows(ConfigWrite) || len(usual) != len(All)-2 {
		t.Errorf("all stands for %s: %v", usual, err)
	}
	for names, want := range map[string]string{"all": "all", "all,admin": "all, admin", "server:admin": "server:admin",
		"chat,admin": "chat, admin"} {
		scopes, err := ParseScopes(strings.Split(names, ","))
		if err != nil || scopes.Names() != want {
			t.Errorf("%s is shown as %s: %v", names, scopes.Names(), err)
		}
	}
}
