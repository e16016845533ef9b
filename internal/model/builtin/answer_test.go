package builtin_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/parley-server/parley/internal/model"
	"github.com/parley-server/parley/internal/model/builtin"
)

func TestShortAnswers(t *testing.T) {
	bubble(t, func(t *testing.T) {
		for message, want := range map[string]string{
			"":                         "I am the built-in guide.",
			"What can you do?":         "I am the built-in guide.",
			"help":                     "I am the built-in guide.",
			"Hi!":                      "Hello!",
			"Good morning":             "Hello!",
			"Thank you very much":      "You are welcome.",
			"what is 12*7+3":           "12*7+3 = 87",
			"What is 12*7+3?":          "12*7+3 = 87",
			"calculate (2 + 3) × 4.5":  "(2 + 3) × 4.5 = 22.5",
			"1/3":                      "1/3 = 0.3333333333…",
			"2^-2 =":                   "2^-2 = 0.25",
			"-7 % 4":                   "-7 % 4 = -3",
			"what's 1,000,000 * 3":     "1,000,000 * 3 = 3000000",
			"0.1+0.2":                  "0.1+0.2 = 0.3",
			"7/0":                      "7/0 = undefined: a division by zero",
			"9^9^9":                    "", // the calculator does not chain powers
			"9^9999":                   "9^9999 = undefined: the numbers grow too large",
			"(9^999)^999":              "(9^999)^999 = undefined: the numbers grow too large",
			"count to 5":               "1 2 3 4 5",
			"Count from 8 to 10!":      "8 9 10",
			"please count slowly to 3": "1 2 3",
			"count from 5 to 1":        "I count upwards",
			"count to 999999999":       "I count upwards",
		} {
			s := generate(t.Context(), builtin.New(), user(message))
			if !strings.HasPrefix(s.text(), want) || s.Err != nil || len(s.Calls) > 0 && want != "" {
				t.Errorf("%q: %.200q", message, s.text())
			}
		}
	})
}

func TestOrdinaryMessagesAreNotTakenForSums(t *testing.T) {
	bubble(t, func(t *testing.T) {
		for _, message := range []string{"2026-10-05", "call me at 555", "what is 7", "+49 30 1234567 please", "v1.2.3",
			strings.Repeat("1+", 500) + "1"} {
			if s := generate(t.Context(), builtin.New(), user(message)); strings.Contains(s.text(), " = ") {
				t.Errorf("%q: %q", message, s.text())
			}
		}
	})
}

func TestQuestionsAskTheToolsThatAreOffered(t *testing.T) {
	bubble(t, func(t *testing.T) {
		g := builtin.New()
		req := user("What is our hotel policy?")
		s := generate(t.Context(), g, req)
		if got := names(s.Calls); len(got) != 1 || got[0] != `search {"query":"What is our hotel policy?"}` || s.Stop != model.StopTools ||
			s.text() != "" {
			t.Fatalf("%q", got)
		}
		req = answered(req, s, "policies/hotel.txt:4: Hotels | a policy\nwiki/a/travel.md:1: Travel | The hotel policy")
		s = generate(t.Context(), g, req)
		if got := fmt.Sprint(names(s.Calls)); got != `[read {"path":"policies/hotel.txt"} wiki_read {"page":"a/travel"}]` {
			t.Fatal(got)
		}
		s = generate(t.Context(), g, answered(req, s, "Nothing here.", "The hotel policy is simple: sleep well."))
		if !strings.Contains(s.text(), "sleep well") || !strings.Contains(s.text(), "the wiki page a/travel") || s.Stop != model.StopEnd {
			t.Errorf("%+v", s)
		}
		// Without tools, only the documentation is available.
		req = user("What is our hotel breakfast?")
		req.Tools = nil
		if s = generate(t.Context(), g, req); s.Calls != nil || !strings.Contains(s.text(), "I found nothing") {
			t.Errorf("%+v", s)
		}
	})
}

func TestAttachmentsAnswerQuestions(t *testing.T) {
	bubble(t, func(t *testing.T) {
		const travel = "# Hotels\n\nThe limit for a hotel is 140 euros a night. Breakfast is not included.\n\n# Trains\n\nTrains are " +
			"booked in second class."
		quoted, err := json.Marshal(travel)
		if err != nil {
			t.Fatal(err)
		}
		block := fmt.Sprintf(
			"\n\n<attachment name=%q type=%q>\n%s\n</attachment>\n\n[tools find what is attached at attachments/travel.md]", "travel.md",
			"text/markdown", quoted)
		pdf := model.File{Name: "paper.pdf", MIME: "application/pdf", Text: "[page 1]\nThe invoice number is R-4711."}
		for message, want := range map[string]string{
			"What is the limit for a hotel?": "140 euros a night", "Summarise the attachment": "travel.md** in short",
			"": "From the attachment travel.md", "What is the invoice number?": "R-4711",
		} {
			req := user(message + block)
			req.Messages[len(req.Messages)-1].Files = []model.File{pdf}
			if s := generate(t.Context(), builtin.New(), req); !strings.Contains(s.text(), want) || len(s.Calls) > 0 {
				t.Errorf("%q: %q %q", message, s.text(), names(s.Calls))
			}
		}
	})
}

// TestEmptyAttachment summarizes a file without content.
func TestEmptyAttachment(t *testing.T) {
	bubble(t, func(t *testing.T) {
		req := user(
			"Summarise the attachment\n\n<attachment name=\"a.txt\" type=\"text/plain\">\n\"\"\n</attachment>\n\n[tools find what is " +
				"attached at attachments/a.txt]")
		if got := generate(t.Context(), builtin.New(), req).text(); got != "The attachment a.txt is empty." {
			t.Error(got)
		}
	})
}

// TestAttachmentsWithoutText attaches files that have no text: every answer names them and the reason.
func TestAttachmentsWithoutText(t *testing.T) {
	bubble(t, func(t *testing.T) {
		for note, want := range map[string]string{
			"[The PDF has no text that can be read: it is not a valid PDF, or of a kind that is not supported.]": "The attachment " +
				"a.pdf has no text that can be read: it is not a valid PDF, or of a kind that is not supported.",
			"[The PDF has no text: its pages are images, or empty.]": "The attachment a.pdf has no text: its pages are images, or empty.",
			"\n[cut here: the text has 9 bytes]":                     "I cannot read the attachment a.pdf: cut here: the text has 9 bytes.",
			"":                                                       "I cannot read the attachment a.pdf.",
		} {
			for question, rest := range map[string]string{"Summarise the attached PDF": "", "": "", "What is 12*7+3?": "\n\n12*7+3 = 87"} {
				req := user(question + "\n\n[attached: a.pdf, application/pdf, 16 bytes]\n\n[tools find what is attached at " +
					"\"/workspace/attachments/a.pdf\"]")
				if note == "" {
					req = user(question + "\n\n[attached: a.pdf, application/pdf, 16 bytes; its content is not shown]")
				} else {
					req.Messages[len(req.Messages)-1].Files = []model.File{{Name: "a.pdf", MIME: "application/pdf", Text: note}}
				}
				if s := generate(t.Context(), builtin.New(), req); s.text() != want+rest || len(s.Calls) > 0 {
					t.Errorf("%q with %q: %q, want %q", question, note, s.text(), want+rest)
				}
			}
		}
	})
}

// TestSentencesOfPDFs summarizes a PDF: sentences end neither at abbreviations nor with marks of pages.
func TestSentencesOfPDFs(t *testing.T) {
	bubble(t, func(t *testing.T) {
		const first,
			second = "Mr. Miller of the U.S. office ordered goods, e.g. Trains and chairs, as shown in fig. 3 on p. 4 of the order.",
			"Prof. J. Smith paid the invoice."
		req := user("Summarise the attachment")
		req.Messages[len(req.Messages)-1].Files = []model.File{{Name: "a.pdf", MIME: "application/pdf",
			Text: "[page 1]\n" + first + " He paid in May.\n\n[page 2]\n" + second + "\n"}}
		got := generate(t.Context(), builtin.New(), req).text()
		if !strings.Contains(got, "- "+first+"\n") || !strings.Contains(got, "- "+second+"\n") || strings.Contains(got, "[page") {
			t.Errorf("%s", got)
		}
		req.Messages[len(req.Messages)-1].Text = "Is there an invoice of Smith?"
		if got := generate(t.Context(), builtin.New(), req).text(); !strings.Contains(got, second) || strings.Contains(got, "[page") {
			t.Errorf("%s", got)
		}
	})
}

// TestQuestionsWithoutBlanks asks in languages that write no blanks between words.
func TestQuestionsWithoutBlanks(t *testing.T) {
	bubble(t, func(t *testing.T) {
		for question, page := range map[string]string{
			"東京都の年次有給休暇は何日ですか": "年次有給休暇は三十日です。", "年假有多少天?": "员工的年假有三十天。", "연차휴가는 며칠입니까?": "연차휴가는 삼십일입니다.",
		} {
			g, req := builtin.New(), user(question)
			s := generate(t.Context(), g, req)
			if got := names(s.Calls); len(got) != 1 || !strings.Contains(got[0], question) {
				t.Fatalf("%s: %q %q", question, got, s.text())
			}
			req = answered(req, s, "wiki/leave.md:1: "+page)
			s = generate(t.Context(), g, req)
			if got := fmt.Sprint(names(s.Calls)); got != `[wiki_read {"page":"leave"}]` {
				t.Fatalf("%s: %s %q", question, got, s.text())
			}
			if s = generate(t.Context(), g, answered(req, s, page)); !strings.Contains(s.text(), page) {
				t.Errorf("%s: %q", question, s.text())
			}
		}
	})
}

// Every conversation ends, whatever the messages and the tool results are.
func TestEveryConversationEnds(t *testing.T) {
	bubble(t, func(t *testing.T) {
		check(t, func(r *rapid.T) {
			g := builtin.New()
			req := user(rapid.OneOf(rapid.String(), rapid.StringMatching(`(what|how|summarise|count|read) [a-z ():*?{}]{0,40}`)).Draw(r, "message"))
			for range 4 {
				s := generate(t.Context(), g, req)
				if s.Err != nil {
					r.Fatal(s.Err)
				}
				if s.Stop == model.StopEnd {
					return
				}
				var outputs []string
				for range s.Calls {
					outputs = append(outputs, rapid.OneOf(rapid.String(),
						rapid.StringMatching(`([a-z/]{1,9}(\.md|\.csv)?:[0-9]{1,2}: [a-z ]{0,20}\n){0,5}`)).Draw(r, "output"))
				}
				req = answered(req, s, outputs...)
			}
			r.Fatal("four steps and no end")
		})
	})
}
