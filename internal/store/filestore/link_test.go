package filestore_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/parley-server/parley/internal/fault"
	"github.com/parley-server/parley/internal/store/filestore"
	"github.com/parley-server/parley/internal/store/vault"
)

// An address with any changed, added or missing byte opens nothing.
func TestEveryByteOfAnAddressCounts(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	d, err := w.Download(t.Context(), w.ws, w.put(t, "a.txt", "Hello").FileID)
	if err != nil {
		t.Fatal(err)
	}
	path, query := split(t, d.DownloadURL)
	if _, err := w.Open(t.Context(), path, query); err != nil {
		t.Fatal(err)
	}
	whole := path + "?" + query
	var forged []string
	for i := range whole {
		forged = append(forged, whole[:i]+whole[i+1:])
		for _, c := range []byte("0aA-_%/?&=.+ \x00\xff") {
			forged = append(forged, whole[:i]+string(c)+whole[i:])
			if whole[i] != c {
				forged = append(forged, whole[:i]+string(c)+whole[i+1:])
			}
		}
	}
	for _, f := range forged {
		path, query, _ := strings.Cut(f, "?")
		if _, err := w.Open(t.Context(), path, query); code(err) != fault.FileNotFound {
			t.Errorf("%q: %v", f, err)
		}
	}
}

func TestForgedAddresses(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	f := w.put(t, "a.txt", "Hello")
	other := w.put(t, "b.txt", "Another")
	d, err := w.Download(t.Context(), w.ws, f.FileID)
	if err != nil {
		t.Fatal(err)
	}
	path, query := split(t, d.DownloadURL)
	put, putQuery := split(t, w.ticket(t, w.request(5)).Upload.URL)
	stranger := filestore.New(w.pool, keyring(t, vault.GenerateKey()), filestore.Options{})
	strange, err := stranger.Download(t.Context(), w.ws, f.FileID)
	if err != nil {
		t.Fatal(err)
	}
	_, strangeQuery := split(t, strange.DownloadURL)
	far := w.Sign(filestore.GetMethod, w.ws, f.FileID, time.Now().Add(filestore.MaxTTL+time.Hour))
	_, farQuery := split(t, far)
	for name, c := range map[string][2]string{
		"no query":             {path, ""},
		"no path":              {"", query},
		"another file":         {strings.Replace(path, f.FileID.String(), other.FileID.String(), 1), query},
		"another workspace":    {strings.Replace(path, w.ws.String(), uuid.NewString(), 1), query},
		"upper case":           {strings.Replace(path, f.FileID.String(), strings.ToUpper(f.FileID.String()), 1), query},
		"escaped":              {strings.Replace(path, "/files/", "/%66iles/", 1), query},
		"escaped twice":        {strings.Replace(path, "-", "%252d", 1), query},
		"a slash more":         {path + "/", query},
		"one more parameter":   {path, query + "&x=1"},
		"one more before":      {path, "x=1&" + query},
		"a parameter twice":    {path, query + "&" + query[strings.LastIndex(query, "signature="):]},
		"another order":        {path, "key=" + strings.Join(strings.Split(query, "&key="), "&")},
		"a semicolon":          {path, strings.ReplaceAll(query, "&", ";")},
		"a second more":        {path, strings.Replace(query, "expires=", "expires=1", 1)},
		"a sign":               {path, strings.Replace(query, "expires=", "expires=+", 1)},
		"padding":              {path, query + "="},
		"another service's":    {path, strangeQuery},
		"an upload's":          {put, putQuery},
		"longer than any":      {path, farQuery},
		"an unknown key":       {path, strings.Replace(query, "key=", "key=x", 1)},
		"no key":               {path, query[:strings.Index(query, "key=")] + "key=" + query[strings.Index(query, "&signature"):]},
		"an empty signature":   {path, query[:strings.LastIndex(query, "=")+1]},
		"the query in capital": {path, strings.ToUpper(query)},
	} {
		if _, err := w.Open(t.Context(), c[0], c[1]); code(err) != fault.FileNotFound {
			t.Errorf("%s: %v", name, err)
		}
	}
	// A download address cannot upload.
	if _, err := w.Upload(t.Context(), path, query, 5, strings.NewReader("Hello")); code(err) != fault.FileNotFound {
		t.Errorf("upload: %v", err)
	}
}

func TestAddressesExpire(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	f := w.put(t, "a.txt", "Hello")
	now := time.Now()
	for late, want := range map[time.Duration]fault.Code{
		time.Hour:                        "",
		time.Second:                      "",
		-30 * time.Second:                "", // tolerated difference of clocks
		-90 * time.Second:                fault.FileExpired,
		-24 * time.Hour:                  fault.FileExpired,
		filestore.MaxTTL:                 "",
		filestore.MaxTTL + time.Minute*2: fault.FileNotFound,
	} {
		path, query := split(t, w.Sign(filestore.GetMethod, w.ws, f.FileID, now.Add(late)))
		if _, err := w.Open(t.Context(), path, query); code(err) != want {
			t.Errorf("%s before its end: %v", late, err)
		}
	}
	d, err := w.Download(t.Context(), w.ws, f.FileID)
	if err != nil {
		t.Fatal(err)
	}
	if left := time.Until(d.ExpiresAt); left > 7*24*time.Hour || left < 7*24*time.Hour-time.Minute {
		t.Errorf("valid for %s", left)
	}
	short := filestore.New(w.pool, w.keys, filestore.Options{TTL: time.Hour})
	long := filestore.New(w.pool, w.keys, filestore.Options{TTL: 30 * 24 * time.Hour})
	for s, want := range map[*filestore.Store]time.Duration{short: time.Hour, long: filestore.MaxTTL} {
		d, err := s.Download(t.Context(), w.ws, f.FileID)
		if left := time.Until(d.ExpiresAt); err != nil || left > want || left < want-time.Minute {
			t.Errorf("valid for %s, want %s: %v", left, want, err)
		}
	}
}

// An address works as long as the key that signed it is in the keyring.
func TestAddressesOutliveARotation(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	f := w.put(t, "a.txt", "Hello")
	old, next := vault.GenerateKey(), vault.GenerateKey()
	at := func(keys ...string) *filestore.Store {
		return filestore.New(w.pool, keyring(t, keys...), filestore.Options{})
	}
	before, after, gone := at(old), at(next, old), at(next)
	d, err := before.Download(t.Context(), w.ws, f.FileID)
	if err != nil {
		t.Fatal(err)
	}
	path, query := split(t, d.DownloadURL)
	for name, c := range map[string]struct {
		store *filestore.Store
		want  fault.Code
	}{"before": {before, ""}, "after": {after, ""}, "when the key is gone": {gone, fault.FileNotFound}} {
		if _, err := c.store.Open(t.Context(), path, query); code(err) != c.want {
			t.Errorf("%s: %v", name, err)
		}
	}
	if d, err = after.Download(t.Context(), w.ws, f.FileID); err != nil {
		t.Fatal(err)
	}
	path, query = split(t, d.DownloadURL)
	if _, err := gone.Open(t.Context(), path, query); err != nil {
		t.Errorf("signed with the new key: %v", err)
	}
}

func TestAddressesBeginWithTheBase(t *testing.T) {
	t.Parallel()
	keys := keyring(t, vault.GenerateKey())
	for base, want := range map[string]string{
		"":                              "/api/v1/workspaces/",
		"https://parley.example":        "https://parley.example/api/v1/workspaces/",
		"https://parley.example/below/": "https://parley.example/below/api/v1/workspaces/",
	} {
		s := filestore.New(nil, keys, filestore.Options{Base: base})
		if got := s.Sign(http.MethodGet, uuid.New(), uuid.New(), time.Now()); !strings.HasPrefix(got, want) {
			t.Errorf("%q: %s", base, got)
		}
	}
}

// FuzzAddress checks promise F10: only signed addresses pass.
func FuzzAddress(f *testing.F) {
	s := filestore.New(nil, keyring(f, "k1:"+strings.Repeat("A", 43)+"="), filestore.Options{})
	ws, file := uuid.MustParse("0192f0aa-0000-7000-8000-000000000001"), uuid.MustParse("0192f0aa-0000-7000-8000-000000000002")
	good := s.Sign(http.MethodGet, ws, file, time.Unix(1790000000, 0))
	path, query, _ := strings.Cut(good, "?")
	f.Add("GET", path, query)
	f.Add("PUT", path, query)
	f.Add("GET", path+"/", query+"&x=1")
	f.Add("GET", strings.ToUpper(path), strings.ToUpper(query))
	f.Add("GET", "/api/v1/workspaces//files//content", "expires=&key=&signature=")
	f.Add("GET", path, "expires=-1&key=k1&signature=")
	f.Add("GET", path, "expires=9223372036854775808&key=k1&signature=AAAA")
	f.Fuzz(func(t *testing.T, method, path, query string) {
		if s.Verify(method, path, query) != (method == "GET" && path+"?"+query == good) {
			t.Errorf("%q %q %q", method, path, query)
		}
	})
}
