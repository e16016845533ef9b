package a2a_test

import (
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/parley-server/parley/internal/server"
	"github.com/parley-server/parley/internal/server/a2a"
	"github.com/parley-server/parley/internal/store/skill"
)

// card gets the agent card.
func (c *caller) card() (*http.Response, string) {
	c.t.Helper()
	r, err := http.NewRequestWithContext(c.t.Context(), http.MethodGet, c.URL+a2a.CardPath, nil)
	if err != nil {
		c.t.Fatal(err)
	}
	res, err := c.do(r)
	if err != nil {
		c.t.Fatal(err)
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err != nil {
		c.t.Fatal(err)
	}
	return res, string(text)
}

// agentCard has the fields of both versions that they demand.
type agentCard struct {
	Name, Description, Version            string
	SupportedInterfaces                   []struct{ URL, ProtocolBinding, ProtocolVersion string }
	ProtocolVersion, URL                  string
	Capabilities                          struct{ Streaming, PushNotifications, ExtendedAgentCard bool }
	SupportsAuthenticatedExtendedCard     bool
	SecuritySchemes                       map[string]map[string]any
	SecurityRequirements, Security        []map[string]any
	DefaultInputModes, DefaultOutputModes []string
	Skills                                []struct {
		ID, Name, Description string
		Tags, Examples        []string
	}
}

func TestTheCard(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	for name, draft := range map[string]bool{"month-end": false, "secret-draft": true} {
		doc := "---\nname: " + name + "\ndescription: Reports.\n---\nReport.\n"
		if _, err := s.Skills.Push(t.Context(), s.Workspace.ID, skill.Upload{Document: doc, Draft: draft, By: "test"}); err != nil {
			t.Fatal(err)
		}
	}
	for _, v := range []string{"", "1.0", "0.3", "9"} {
		for _, key := range []string{"", s.key} {
			c := s.speaks(t, v).by(key)
			res, text := c.card()
			var card agentCard
			if err := json.Unmarshal([]byte(text), &card); err != nil || res.StatusCode != 200 {
				t.Fatalf("%d %s", res.StatusCode, text)
			}
			newer, older := v != "0.3", v != "1.0" // the error for an unknown version lists the supported ones
			if card.Name == "" || card.Description == "" || card.Version != "1.2.3" || !card.Capabilities.Streaming ||
				!card.Capabilities.PushNotifications || len(card.DefaultInputModes) == 0 ||
				len(card.DefaultOutputModes) == 0 || len(card.Skills) == 0 || len(card.Skills[0].Tags) == 0 {
				t.Errorf("%s: %s", v, text)
			}
			if (len(card.SupportedInterfaces) == 3) != newer || newer && (card.SupportedInterfaces[0].URL != s.URL+"/a2a" ||
				card.SupportedInterfaces[0].ProtocolVersion != "1.0" || card.SupportedInterfaces[1].URL != s.URL+a2a.PlainPath ||
				!card.Capabilities.ExtendedAgentCard ||
				card.SecuritySchemes["apiKey"]["httpAuthSecurityScheme"] == nil || len(card.SecurityRequirements) != 1) {
				t.Errorf("%s: %s", v, text)
			}
			if (card.URL == s.URL+"/a2a") != older || older && (card.ProtocolVersion != "0.3.0" ||
				!card.SupportsAuthenticatedExtendedCard || card.SecuritySchemes["apiKey"]["type"] != "http" || len(card.Security) != 1) {
				t.Errorf("%s: %s", v, text)
			}
			if strings.Contains(text, "secret-draft") || strings.Contains(text, "month-end") != (key != "") ||
				strings.Contains(text, "Demo") != (key != "") || strings.Contains(text, s.Workspace.ID.String()) {
				t.Errorf("with %q: %s", key, text)
			}
			if cc := res.Header.Get("Cache-Control"); strings.Contains(cc, "public") || !strings.Contains(res.Header.Get("Vary"), "Authorization") {
				t.Errorf("%v", res.Header)
			}
			if again, rest := c.with("If-None-Match", res.Header.Get("ETag")).card(); again.StatusCode != 304 || rest != "" {
				t.Errorf("%d %s", again.StatusCode, rest)
			}
			if key != "" && (v == "1.0" || v == "0.3") {
				if extended := c.ask(c.name("GetExtendedAgentCard", "agent/getAuthenticatedExtendedCard"), "{}"); string(extended)+"\n" != text {
					t.Errorf("%s, want %s", extended, text)
				}
			}
		}
	}
}

func TestTheCardCanBeKeptFromStrangers(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	srv := s.Server(t, nil)
	s.Serve(t, srv.NewRouter(a2a.New(srv, false)))
	s.client = &http.Client{Transport: s.Checked(t)}
	if res, text := s.speaks(t, "1.0").by("").card(); res.StatusCode != 401 || !strings.Contains(text, "MISSING_API_KEY") {
		t.Errorf("%d %s", res.StatusCode, text)
	}
	if res, text := s.speaks(t, "1.0").card(); res.StatusCode != 200 || !strings.Contains(text, "Demo") {
		t.Errorf("%d %s", res.StatusCode, text)
	}
}

// TestASkillIsCalledAsItsCardSays checks that the card is sufficient for another agent to call a
// skill.
func TestASkillIsCalledAsItsCardSays(t *testing.T) {
	versions(t, func(t *testing.T, c *caller) {
		doc := "---\nname: report\ndescription: Reports.\ninterface:\n  inputs:\n    month: {type: string, format: month, required: " +
			"true, description: The month to report on.}\n" +
			"    team: {type: enum, values: [sales, support], default: sales}\n---\n@say Reported.\n"
		if _, err := c.Skills.Push(t.Context(), c.Workspace.ID, skill.Upload{Document: doc, By: "test"}); err != nil {
			t.Fatal(err)
		}
		_, text := c.card()
		var card agentCard
		if err := json.Unmarshal([]byte(text), &card); err != nil || len(card.Skills) != 2 || len(card.Skills[0].Examples) == 0 ||
			len(card.Skills[1].Examples) != 1 {
			t.Fatal(text)
		}
		want := "Reports.\nInputs:\n- month: month, required. The month to report on.\n- team: one of sales, support, else \"sales\""
		if got := card.Skills[1].Description; got != want {
			t.Errorf("%q, want %q", got, want)
		}
		got := c.read(c.ask(c.name("SendMessage", "message/send"), c.params(unique(), data(card.Skills[1].Examples[0]), "")))
		if got.state() != "TASK_STATE_COMPLETED" || *got.History[0].Parts[0].Text != "/report (month)" {
			t.Errorf("%+v", got)
		}
	})
}

// TestACardIsPublicUnderAnAddressOfItsOwn checks that a shared cache may keep only a card that is
// the same for all clients. Without a configured address the card is built from the request.
func TestACardIsPublicUnderAnAddressOfItsOwn(t *testing.T) {
	t.Parallel()
	c := start(t, func(cfg *server.Config) { cfg.BaseURL = "https://parley.example" }).speaks(t, "1.0")
	for key, public := range map[string]bool{"": true, c.key: false} {
		res, text := c.by(key).card()
		if strings.Contains(res.Header.Get("Cache-Control"), "public") != public || !strings.Contains(text, "https://parley.example/a2a") {
			t.Errorf("%v %s", res.Header, text)
		}
	}
}
