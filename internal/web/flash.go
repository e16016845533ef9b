package web

import (
	"encoding/base64"
	"encoding/json"
	"net/http"

	"github.com/parley-server/parley/internal/text"
)

// flash is a notice that the next page shows once.
type flash struct {
	Kind string `json:"k,omitempty"` // "" or bad
	Text string `json:"t"`
}

const (
	flashCookie = "parley_flash"
	maxFlash    = 1000 // characters; a cookie has 4 KiB
)

// flash lets the next page show a sentence.
func (p *page) flash(w http.ResponseWriter, text string) { p.flashKind(w, "", text) }

func (p *page) flashKind(w http.ResponseWriter, kind, words string) {
	data, _ := json.Marshal(flash{kind, text.Truncate(text.Mask(words), maxFlash)})
	http.SetCookie(w, &http.Cookie{Name: flashCookie, Value: base64.RawURLEncoding.EncodeToString(data), Path: "/", MaxAge: 60,
		HttpOnly: true, SameSite: http.SameSiteLaxMode, Secure: p.App.srv.IsSecure(p.Request)})
}

// flashBad lets the next page show why something was not done.
func (p *page) flashBad(w http.ResponseWriter, text string) { p.flashKind(w, "bad", text) }

// takeFlash returns the notice and removes it.
func takeFlash(w http.ResponseWriter, p *page) *flash {
	c, err := p.Cookie(flashCookie)
	if err != nil {
		return nil
	}
	http.SetCookie(w, &http.Cookie{Name: flashCookie, Path: "/", MaxAge: -1, HttpOnly: true, SameSite: http.SameSiteLaxMode})
	data, err := base64.RawURLEncoding.DecodeString(c.Value)
	var f flash
	if err != nil || json.Unmarshal(data, &f) != nil || f.Text == "" {
		return nil
	}
	return &f
}
