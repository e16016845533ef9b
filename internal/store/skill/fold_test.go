package skill_test

import (
	"regexp"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/parley-server/parley/internal/store/skill"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestNamesThatFoldTheSameAreTheSame(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", skill.MaxName)
	for name, want := range map[string]string{
		"refund-order":                     "refund-order",
		"Refund_Order":                     "refund-order",
		"REFUND_ORDER":                     "refund-order",
		"monthly_report":                   "monthly-report",
		"a":                                "a",
		"7":                                "7",
		"ＡＢ":                               "ab",    // fullwidth letters
		"ａ＿ｂ－ｃ":                            "a-b-c", // fullwidth punctuation
		"①":                                "1",
		long:                               long,
		strings.Repeat("Ｘ", skill.MaxName): long,

		"":                      "",
		"-a":                    "",
		"a-":                    "",
		"_a":                    "",
		"a--b":                  "",
		"a-_b":                  "",
		"a__b":                  "",
		"a b":                   "",
		"a.b":                   "",
		"a/b":                   "",
		"a\x00b":                "",
		"a\u2010b":              "", // a hyphen that looks like ASCII's
		"a\u00adb":              "", // a soft hyphen
		"a\u200bb":              "", // a zero-width space
		"\u212aey":              "", // Kelvin sign
		"\u017fkill":            "", // long s
		"\u0130ndex":            "", // I with a dot
		"\u0131ndex":            "", // i without one
		"sk\u0456ll":            "", // Cyrillic
		"größe":                 "",
		"\xff":                  "",
		long + "x":              "",
		strings.Repeat("ﷺ", 64): "", // 18 characters each, after NFKC
	} {
		got, ok := skill.Fold(name)
		if got != want || ok != (want != "") {
			t.Errorf("Fold(%q) = %q, %t; want %q", name, got, ok, want)
		}
	}
}

func FuzzFold(f *testing.F) {
	for _, seed := range []string{
		"Refund_Order", "refund-order", "ＡＢ", "\u212a", "\u017f", "\u0130", "\u0131", "a--b", "-a", "a-", "a\u2010b", "a\u200bb",
		"a\x00", "\xff\xfe", "ﷺ", "e\u0301", "\u1e9e", "ﬁnd", "x\u20e3", "__proto__", "constructor", "CON", strings.Repeat("aB_", 30),
	} {
		f.Add(seed)
	}
	shape := regexp.MustCompile(`^[a-z0-9-]{1,64}$`)
	f.Fuzz(func(t *testing.T, name string) {
		fold, ok := skill.Fold(name)
		if !ok {
			if fold != "" {
				t.Fatalf("Fold(%q) fails, but returns %q", name, fold)
			}
			return
		}
		if !shape.MatchString(fold) {
			t.Fatalf("Fold(%q) = %q", name, fold)
		}
		for _, same := range []string{fold, strings.ToUpper(fold), strings.ReplaceAll(fold, "-", "_"), strings.ReplaceAll(name, "-", "_"),
			strings.ReplaceAll(name, "_", "-")} {
			if again, ok := skill.Fold(same); !ok || again != fold {
				t.Fatalf("Fold(%q) = %q, but Fold(%q) = %q", name, fold, same, again)
			}
		}
	})
}
