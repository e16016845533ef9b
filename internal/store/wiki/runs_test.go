package wiki_test

import (
	"strings"
	"testing"

	"github.com/parley-server/parley/internal/store/wiki"
	"github.com/parley-server/parley/internal/testing/dbtest"
)

// TestSearchFindsWordsInRuns searches Chinese, Japanese and Korean, whose words have no blanks between
// them.
func TestSearchFindsWordsInRuns(t *testing.T) {
	t.Parallel()
	pool := dbtest.New(t)
	s, ws := wiki.New(pool), tenant(t, pool, "acme")
	put(t, s, ws, "ja/leave.md", "# 休暇制度\n\n年次有給休暇は入社後六か月で十日付与されます。申請はHRポータルで行います。")
	put(t, s, ws, "ja/travel.md", "# 出張\n\n出張の際は電車を優先してください。猫は連れて行けません。")
	put(t, s, ws, "zh/expenses.md", "# 报销\n\n员工应在三十天内提交报销申请，并附上发票。")
	put(t, s, ws, "ko/security.md", "# 보안\n\n비밀번호는 관리자에게도 알려주지 마세요.")
	put(t, s, ws, "en/leave.md", "# Leave\n\nThirty days.")
	for query, want := range map[string]string{
		"有給休暇":       "ja/leave.md: 有給|休暇",
		"有給休暇は何日ですか": "ja/leave.md: 有給",
		"休暇制度":       "ja/leave.md: 休暇",
		"猫":          "ja/travel.md: 猫",
		"电车":         "",
		"電車":         "ja/travel.md: 電車",
		"HRポータル":     "ja/leave.md: HR|ポータル",
		"报销 发票":      "zh/expenses.md: 报销|发票",
		"비밀번호":       "ko/security.md: 비밀번호",
		`"優先してください"`: "ja/travel.md: 優先",
		`"優先ください"`:   "",
		"休暇 -入社":     "",
		"申请 -发票":     "",
		"年次有給休暇、申請、ポータル、付与": "ja/leave.md: 申請",
	} {
		hits, err := s.Search(t.Context(), ws, query, "", 3)
		if err != nil {
			t.Fatal(err)
		}
		if len(hits) == 0 || want == "" {
			if len(hits) > 0 || want != "" {
				t.Errorf("%q finds %+v, want %q", query, hits, want)
			}
			continue
		}
		doc, words, _ := strings.Cut(want, ": ")
		var marked, passage strings.Builder
		for _, p := range hits[0].Snippet {
			passage.WriteString(p.Text)
			if p.Match {
				marked.WriteString(p.Text + "|")
			}
		}
		if hits[0].Doc != doc {
			t.Errorf("%q finds %s first, want %s", query, hits[0].Doc, doc)
		}
		for word := range strings.SplitSeq(words, "|") {
			if strings.Contains(hits[0].Text, word) && !strings.Contains(marked.String(), word) {
				t.Errorf("%q marks %q, want %q", query, marked.String(), word)
			}
		}
		if text := strings.Trim(passage.String(), " …"); !strings.Contains(hits[0].Text, text) {
			t.Errorf("the snippet %q is not in %q", text, hits[0].Text)
		}
	}
}
