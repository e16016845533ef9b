package redact_test

import (
	"fmt"
	"io"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/parley-server/parley/internal/redact"
)

func BenchmarkReader(b *testing.B) {
	random := rand.New(rand.NewPCG(1, 2))
	token := func() []byte {
		v := make([]byte, 40)
		for i := range v {
			v[i] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"[random.IntN(62)]
		}
		return v
	}
	var prose, inJSON, inBase64 strings.Builder
	for prose.Len() < 1<<20 {
		prose.WriteString("The quick brown fox jumps over the lazy dog, and nobody knows why it does. ")
		fmt.Fprintf(&inJSON, `{"id":%d,"name":"a \"quoted\" name","url":"https:\/\/example.com\/a?b=%%2F&c=1"},`, random.Int())
		fmt.Fprintf(&inBase64, "%s%s\n", token(), token()[:36])
	}
	for _, n := range []int{1, 10, 100} {
		var secrets []redact.Secret
		for i := range n {
			secrets = append(secrets, redact.Secret{Name: fmt.Sprint("S", i), Value: token()})
		}
		r := redact.New(secrets...)
		for name, text := range map[string]string{"prose": prose.String(), "json": inJSON.String(), "base64": inBase64.String()} {
			b.Run(fmt.Sprintf("%s/%d", name, n), func(b *testing.B) {
				b.SetBytes(int64(len(text)))
				for b.Loop() {
					if _, err := io.Copy(io.Discard, r.Reader(strings.NewReader(text))); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
		b.Run(fmt.Sprintf("new/%d", n), func(b *testing.B) {
			for b.Loop() {
				redact.New(secrets...)
			}
		})
	}
}
