package permission_test

import (
	"encoding/json"
	"testing"
)

func TestPatternsOfRequestsMeanOneHost(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		pattern, method, url string
		want                 bool
	}{
		{"GET api.example.com/**", "GET", "https://api.example.com/v1/items", true},
		{"GET api.example.com/**", "GET", "https://api.example.com/", true},
		{"GET api.example.com/**", "GET", "https://api.example.com", true},
		{"GET api.example.com/**", "GET", "https://api.example.com/v1/?page=2", true},
		{"GET api.example.com/**", "GET", "https://API.Example.com:443/v1", true},
		{"GET api.example.com/**", "GET", "https://api.example.com/.well-known/x", true},
		{"GET api.example.com/**", "GET", "https://api.example.com/a%20b", true},
		{"GET api.example.com/**", "POST", "https://api.example.com/v1", false},
		{"GET api.example.com/**", "get", "https://api.example.com/v1", false},
		{"GET api.example.com/**", "GET", "http://api.example.com/v1", false},
		{"GET api.example.com/**", "GET", "HTTPS://api.example.com/v1", false},
		{"GET api.example.com/**", "GET", "//api.example.com/v1", false},
		{"GET api.example.com/**", "GET", "api.example.com/v1", false},
		{"GET api.example.com/**", "GET", "https://api.example.com:8443/v1", false},
		{"GET api.example.com/**", "GET", "https://api.example.com.evil.test/v1", false},
		{"GET api.example.com/**", "GET", "https://evil.test/api.example.com/v1", false},
		{"GET api.example.com/**", "GET", "https://api.example.com@evil.test/v1", false},
		{"GET api.example.com/**", "GET", "https://user:pw@api.example.com/v1", false},
		{"GET api.example.com/**", "GET", `https://evil.test\@api.example.com/v1`, false},
		{"GET api.example.com/**", "GET", "https://api.example.com./v1", false},
		{"GET api.example.com/**", "GET", "https://xapi.example.com/v1", false},
		{"GET api.example.com/**", "GET", "https://аpi.example.com/v1", false}, // a Cyrillic a
		{"GET api.example.com/**", "GET", "https://api.example.com/v1#x", false},
		{"GET api.example.com/**", "GET", "https://api.example.com/v1?_method=DELETE", false},
		{"GET api.example.com/**", "GET", "https://api.example.com/v1?%5fmethod=DELETE", false},
		{"GET api.example.com/v1/**", "GET", "https://api.example.com/v1/a/b", true},
		{"GET api.example.com/v1/**", "GET", "https://api.example.com/v1", false},
		{"GET api.example.com/v1/**", "GET", "https://api.example.com/v1/", true},
		{"GET api.example.com/v1/**", "GET", "https://api.example.com/v2/a", false},
		{"GET api.example.com/v1/**", "GET", "https://api.example.com/v1/../admin", false},
		{"GET api.example.com/v1/**", "GET", "https://api.example.com/v1/%2e%2e/admin", false},
		{"GET api.example.com/v1/**", "GET", "https://api.example.com/v1/..%2Fadmin", false},
		{"GET api.example.com/v1/**", "GET", "https://api.example.com/v1/..;/admin", false},
		{"GET api.example.com/v1/**", "GET", "https://api.example.com/v1//admin", false},
		{"GET api.example.com/v1/**", "GET", "https://api.example.com//v1/a", false},
		{"POST api.example.com/v1/items", "POST", "https://api.example.com/v1/items", true},
		{"POST api.example.com/v1/items", "POST", "https://api.example.com/v1/items?x=1", false},
		{"POST api.example.com/v1/items", "POST", "https://api.example.com/v1/items?", false},
		{"POST api.example.com/v1/items", "POST", "https://api.example.com/v1/items/", false},
		{"POST api.example.com/v1/items/", "POST", "https://api.example.com/v1/items/", true},
		{"POST api.example.com/v1/*/run", "POST", "https://api.example.com/v1/7/run", true},
		{"POST api.example.com/v1/*/run", "POST", "https://api.example.com/v1/7/8/run", false},
		{"GET api.example.com:8443/*", "GET", "https://api.example.com:8443/a", true},
		{"GET api.example.com:443/*", "GET", "https://api.example.com/a", true},
		{"GET api.example.com/", "GET", "https://api.example.com", true},
	} {
		if got := must(t, "http_request("+c.pattern+")").Matches("http_request", fetch(c.method, c.url)); got != c.want {
			t.Errorf("http_request(%s) covers %s %s: %t", c.pattern, c.method, c.url, got)
		}
	}
	all := must(t, "http_request(POST api.example.com/**)")
	for rest, want := range map[string]bool{
		`"body":"x=1"`: true, `"headers":{"Authorization":"Bearer ph_abcdefghijklmnop"}`: true, `"body":{"a":[1]}`: true,
		`"headers":{"X-HTTP-Method-Override":"DELETE"}`: false, `"headers":{"Host":"evil.test"}`: false,
		`"headers":{"x-original-url":"/admin"}`: false,
		`"headers":{"A":"b\r\nHost: evil"}`:     false, `"headers":{"A":1}`: false, `"headers":[]`: false,
		`"body":"_method=delete"`: false, `"body":"\u005fmethod=delete"`: false, `"body":"%5Fmethod=delete"`: false,
		`"body":{"_method":"delete"}`: false,
		`"Method":"DELETE"`:           false, `"method":"POST"`: false,
	} {
		input := json.RawMessage(`{"method":"POST","url":"https://api.example.com/v1",` + rest + `}`)
		if got := all.Matches("http_request", input); got != want {
			t.Errorf("%s covers %s: %t", all, input, got)
		}
	}
}
