package vault_test

import (
	"bytes"
	"database/sql/driver"
	"encoding/base64"
	"encoding/gob"
	"encoding/hex"
	"encoding/json"
	"encoding/xml"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"github.com/parley-server/parley/internal/store/vault"
	"github.com/parley-server/parley/internal/testing/dbtest"
)

const hush = "correct-horse-battery"

// shows reports whether text contains the secret in a form that fmt or encoding/json produce.
func shows(text string) bool {
	decimal := strings.Trim(fmt.Sprint([]byte(hush)), "[]")
	list := strings.TrimSuffix(strings.TrimPrefix(fmt.Sprintf("%#v", []byte(hush)), "[]byte{"), "}")
	for _, form := range []string{hush, decimal, list, hex.EncodeToString([]byte(hush)), base64.StdEncoding.EncodeToString([]byte(hush))} {
		if strings.Contains(strings.ToLower(text), strings.ToLower(form)) {
			return true
		}
	}
	return false
}

// holder stores a value in a place where fmt calls no methods.
type holder struct {
	Shown  vault.Value
	hidden vault.Value
	list   []vault.Value
	names  map[string]vault.Value
}

func TestAValueIsNeverPrinted(t *testing.T) {
	t.Parallel()
	v := vault.NewValue([]byte(hush))
	inside := holder{v, v, []vault.Value{v}, map[string]vault.Value{"a": v}}
	_ = inside.hidden
	things := []any{v, &v, []vault.Value{v}, map[string]vault.Value{"a": v}, inside, &inside, struct{ v any }{v}, keyring(t)}
	for _, thing := range things {
		for _, verb := range strings.Split("v +v #v s q x X d b o O U c t e f g p T 20s -20v .3s w z", " ") {
			if text := fmt.Sprintf("%"+verb, thing); shows(text) {
				t.Errorf("%%%s of %T prints %s", verb, thing, text)
			}
		}
		for _, text := range []string{fmt.Sprint(thing), fmt.Sprintln(thing), fmt.Errorf("x: %v", thing).Error()} {
			if shows(text) {
				t.Errorf("%T prints %s", thing, text)
			}
		}
		var out bytes.Buffer
		for _, h := range []slog.Handler{slog.NewTextHandler(&out, nil), slog.NewJSONHandler(&out, nil)} {
			slog.New(h).With("with", thing).Info("message", "key", thing, slog.Group("group", "key", thing))
		}
		if shows(out.String()) {
			t.Errorf("%T is logged as %s", thing, &out)
		}
	}
	if got := fmt.Sprintf("%v %+v %#v %s %q %x %d", v, v, v, v, v, v, v); got != strings.TrimSpace(strings.Repeat("[secret] ", 7)) {
		t.Errorf("a value is printed as %s", got)
	}
	func() {
		defer func() {
			if text := fmt.Sprint(recover()); shows(text) {
				t.Errorf("a panic prints %s", text)
			}
		}()
		panic(v)
	}()
	if string(v.Reveal()) != hush || (vault.Value{}).Reveal() != nil {
		t.Error("Reveal does not return the value")
	}
}

func TestKeysAreNeverPrinted(t *testing.T) {
	t.Parallel()
	text := vault.GenerateKey()
	_, encoded, _ := strings.Cut(text, ":")
	secret, err := base64.StdEncoding.DecodeString(encoded)
	if err != nil {
		t.Fatal(err)
	}
	k := keyring(t, text)
	decimal := strings.Trim(fmt.Sprint(secret[:8]), "[]")
	for _, verb := range []string{"v", "+v", "#v", "s", "x", "d", "p"} {
		for _, thing := range []any{k, *k} {
			got := fmt.Sprintf("%"+verb, thing)
			if strings.Contains(got, decimal) || strings.Contains(got, hex.EncodeToString(secret[:8])) || strings.Contains(got, encoded) {
				t.Errorf("%%%s prints %s", verb, got)
			}
		}
	}
	for _, bad := range []string{encoded, "k1:" + encoded[1:], "K1:" + encoded, text + "\n" + text, "k1:" + encoded + "x"} {
		if _, err := vault.ParseKeys(bad); err == nil || strings.Contains(err.Error(), encoded[1:]) {
			t.Errorf("ParseKeys fails with %v", err)
		}
	}
}

func TestAValueIsNeverMarshalled(t *testing.T) {
	t.Parallel()
	v := vault.NewValue([]byte(hush))
	for name, marshal := range map[string]func(any) ([]byte, error){
		"json": json.Marshal,
		"xml":  xml.Marshal,
		"gob": func(x any) ([]byte, error) {
			var out bytes.Buffer
			err := gob.NewEncoder(&out).Encode(x)
			return out.Bytes(), err
		},
	} {
		for _, thing := range []any{v, &v, struct{ V vault.Value }{v}, []vault.Value{v}} {
			if out, err := marshal(thing); err == nil || shows(string(out)) || shows(err.Error()) {
				t.Errorf("%s of %T: %s, %v", name, thing, out, err)
			}
		}
	}
	if out, err := json.Marshal(map[string]any{"a": v}); err == nil {
		t.Errorf("json of a map: %s", out)
	}
	var valuer driver.Valuer = v
	if got, err := valuer.Value(); err == nil || got != nil {
		t.Errorf("Value() = %v, %v", got, err)
	}
}

func TestAValueIsReadFromJSONAndNeverQuoted(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{`"` + hush + `"`: hush, `"é\n\ud83d\ude00"`: "é\n😀", `""`: "", `null`: ""} {
		var v vault.Value
		if err := json.Unmarshal([]byte(in), &v); err != nil || string(v.Reveal()) != want {
			t.Errorf("%s is read as %q, %v", in, v.Reveal(), err)
		}
	}
	for _, in := range []string{`["` + hush + `"]`, `{"` + hush + `":1}`, `12345678`, `true`, `"` + hush + `\ud800"`,
		"\"" + hush + "\xff\"", `"` + hush + `\ufffd"`} {
		var body struct{ Value vault.Value }
		err := json.Unmarshal([]byte(`{"value":`+in+`}`), &body)
		if err == nil || shows(err.Error()) || strings.Contains(err.Error(), "12345678") {
			t.Errorf("%s: %v", in, err)
		}
		if body.Value.Reveal() != nil {
			t.Errorf("%s is read as %q", in, body.Value.Reveal())
		}
	}
}

func TestAValueIsNeverBound(t *testing.T) {
	t.Parallel()
	pool := dbtest.New(t)
	v := vault.NewValue([]byte(hush))
	for _, typ := range []string{"text", "bytea", "json", "jsonb", "varchar", "uuid", "text[]", "bytea[]", "int", "unknown"} {
		for _, thing := range []any{v, &v, []vault.Value{v}, struct{ V vault.Value }{v}} {
			var got *string
			err := pool.QueryRow(t.Context(), "SELECT ($1::"+typ+")::text", thing).Scan(&got)
			if err == nil {
				t.Errorf("%T is bound as %s: %s", thing, typ, *got)
			} else if shows(err.Error()) {
				t.Errorf("%T as %s: %v", thing, typ, err)
			}
		}
	}
}
