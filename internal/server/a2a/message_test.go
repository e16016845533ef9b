package a2a_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/parley-server/parley/internal/store/skill"
)

// TestNothingOfAMessageIsLost checks that a part that is not supported is rejected, with its place
// in the message.
func TestNothingOfAMessageIsLost(t *testing.T) {
	versions(t, func(t *testing.T, c *caller) {
		for _, name := range []string{"weekly-report", "other"} {
			doc := "---\nname: " + name + "\ndescription: Reports.\ninterface:\n  inputs:\n    week: {type: integer}\n---\n@say Reported.\n"
			if _, err := c.Skills.Push(t.Context(), c.Workspace.ID, skill.Upload{Document: doc, By: "test"}); err != nil {
				t.Fatal(err)
			}
		}
		method := c.name("SendMessage", "message/send")
		request := func(params, metadata string) string {
			return strings.TrimSuffix(params, "}") + `,"metadata":` + metadata + "}"
		}
		file := upload(t, c)
		for _, test := range []struct{ params, place string }{
			{c.params(unique(), data(`{"skill":"other"}`), "", `"metadata":{"skill":"weekly-report"}`), "message/parts/0/data/skill"},
			{c.params(unique(), data(`{"skill":"weekly-report","input":{"week":7}}`), "", `"metadata":{"input":{"week":8}}`),
				"message/parts/0/data/input"},
			{request(c.params(unique(), data(`{"week":7}`), "", `"metadata":{"skill":"other"}`), `{"skill":"weekly-report"}`),
				"message/metadata/skill"},
			{c.params(unique(), data(`{"skill":"weekly-report","inputs":{"week":7}}`), ""), "message/parts/0/data/inputs"},
			{c.params(unique(), `[{"kind":"data","data":{"skill":"other"}},{"kind":"data","data":{"skill":"weekly-report"}}]`, ""),
				"message/parts/1"},
			{c.params(unique(), fmt.Sprintf(`[{"kind":"text","text":"@say Hi."},{"kind":"data","data":{"file_id":%q,"note":"Mine."}}]`,
				file), ""), "message/parts/1/data/note"},
			{c.params(unique(), `[{"kind":"text","text":"@say Hi."},{"kind":"data","data":{"file_id":"x"}}]`, ""), "message/parts/1/data/file_id"},
			{c.params(unique(), `[{"kind":"data","data":{"file_id":"x"}}]`, ""), "message/parts/0/data/file_id"},
			{c.params(unique(), text("@say Hi."), "", `"message_id":"another"`), "message/message_id"},
			{c.params(unique(), text("@say Hi."), "", `"contextId":"00000000-0000-0000-0000-000000000000"`), "message/contextId"},
			{c.params(unique(), text("@say Hi."), c.name(`{"blocking":false}`, `{"returnImmediately":true}`)),
				c.name("configuration/blocking", "configuration/returnImmediately")},
			{c.params(unique(), text("@say Hi."), c.name(`{"pushNotificationConfig":{"url":"https://example.com/"}}`,
				`{"taskPushNotificationConfig":{"url":"https://example.com/"}}`)),
				c.name("configuration/pushNotificationConfig", "configuration/taskPushNotificationConfig")},
			{c.params(unique(), c.name(`[{"text":"@say Hi.","file":{"uri":"https://example.com/"}}]`,
				`[{"kind":"text","text":"@say Hi.","url":"https://example.com/"}]`), ""), c.name("message/parts/0/file", "message/parts/0/url")},
		} {
			e := c.refused(-32602, method, test.params)
			if e.Data == nil {
				continue
			}
			if at := e.places(t); len(at) != 1 || slices.ContainsFunc(at, func(at string) bool { return at != test.place }) {
				t.Errorf("%s is wrong at %v", test.params, at)
			}
		}
		bytes := fmt.Sprintf(c.name(`{"raw":"aGk=","metadata":{"file_id":%q}}`,
			`{"kind":"file","file":{"bytes":"aGk="},"metadata":{"file_id":%q}}`), file)
		c.refused(-32005, method, c.params(unique(), `[{"kind":"text","text":"@say Hi."},`+bytes+`]`, ""))
		for _, params := range []string{
			c.params(unique(), data(`{"skill":"Weekly_Report","input":{"week":7}}`), "", `"metadata":{"skill":"weekly-report"}`),
			request(c.params(unique(), data(`{"week":7}`), "", `"metadata":{"skill":"weekly-report"}`), `{"skill":"weekly-report"}`),
		} {
			if got := c.read(c.ask(method, params)); got.state() != "TASK_STATE_COMPLETED" {
				t.Errorf("%+v", got)
			}
		}
	})
}

// TestPartsKeepTheirOrder checks that the model reads the text before a table before the table.
func TestPartsKeepTheirOrder(t *testing.T) {
	versions(t, func(t *testing.T, c *caller) {
		parts := `[{"kind":"text","text":"First table:"},{"kind":"data","data":{"rows":"A"}},{"kind":"text","text":"Second table:"},` +
			`{"kind":"data","data":{"rows":"B"}},{"kind":"text","text":"What is 2+2?"}]`
		const want = "First table:\n{\"rows\":\"A\"}\nSecond table:\n{\"rows\":\"B\"}\nWhat is 2+2?"
		if got := c.read(c.ask(c.name("SendMessage", "message/send"), c.params(unique(), parts, ""))); *got.History[0].Parts[0].Text != want {
			t.Errorf("%q", *got.History[0].Parts[0].Text)
		}
	})
}

// TestAllThatIsWrongIsTold checks that one response reports all mistakes, in the shape of a message
// and in its metadata.
func TestAllThatIsWrongIsTold(t *testing.T) {
	versions(t, func(t *testing.T, c *caller) {
		params := c.params("", `[{"kind":"text"}]`, "", `"metadata":{"multitask_strategy":"wait","limits":{"max_turns":0}}`)
		at := c.refused(-32602, c.name("SendMessage", "message/send"), params).places(t)
		for _, want := range []string{"message/messageId", "message/parts/0", "message/metadata/multitask_strategy",
			"message/metadata/limits/max_turns"} {
			if !slices.Contains(at, want) {
				t.Errorf("%s is not among %v", want, at)
			}
		}
		if slices.Contains(at, "message/parts") {
			t.Errorf("a consequence of another mistake is among %v", at)
		}
	})
}
