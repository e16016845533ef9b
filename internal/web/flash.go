package web

import (
	"encoding/base64"
	"encoding/json"
	"net/http"
)

// flash is a notice that the next page shows once.
type flash struct {
	Kind string `json:"k,omitempty"` // "" or bad
	Text string `json:"t"`
}

const flashCookie = "parley_flash"

// flash lets the next page show a sentence.
func (p *page) flash(w http.ResponseWriter, text string) {
	data, _ := json.Marshal(flash{Text: text})
	http.SetCookie(w, &http.Cookie{Name: flashCookie, Value: base64.RawURLEncoding.EncodeToString(data), Path: "/", MaxAge: 60,
		HttpOnly: true, SameSite: http.SameSiteLaxMode, Secure: p.App.srv.IsSecure(p.Request)})
}

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
