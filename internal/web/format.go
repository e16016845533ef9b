package web

import (
	"fmt"
	"html/template"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/parley-server/parley/internal/text"
)

// ago renders a time for a list: relative, with the absolute time as its title.
func ago(t any) template.HTML {
	at, ok := timeOf(t)
	if !ok {
		return "–"
	}
	return template.HTML(fmt.Sprintf(`<time datetime="%s" title="%s">%s</time>`,
		at.UTC().Format(time.RFC3339), at.UTC().Format("2006-01-02 15:04:05 UTC"), relative(time.Since(at), at)))
}

func relative(d time.Duration, at time.Time) string {
	switch {
	case d < -time.Minute:
		return "in " + span(-d)
	case d < 45*time.Second:
		return "now"
	case d < 7*24*time.Hour:
		return span(d) + " ago"
	case at.Year() == time.Now().Year():
		return at.UTC().Format("2 Jan")
	}
	return at.UTC().Format("2 Jan 2006")
}

// span rounds a duration to its largest unit.
func span(d time.Duration) string {
	switch {
	case d < time.Hour:
		return fmt.Sprintf("%d min", max(1, int(d.Round(time.Minute)/time.Minute)))
	case d < 48*time.Hour:
		return fmt.Sprintf("%d h", int(d.Round(time.Hour)/time.Hour))
	}
	return fmt.Sprintf("%d d", int(d.Round(24*time.Hour)/(24*time.Hour)))
}

// day renders a date.
func day(t any) string {
	at, ok := timeOf(t)
	if !ok {
		return "–"
	}
	return at.UTC().Format("2 Jan 2006")
}

// clock renders a time of a log.
func clock(t any) string {
	at, ok := timeOf(t)
	if !ok {
		return "–"
	}
	return at.UTC().Format("15:04:05.000")
}

func timeOf(t any) (time.Time, bool) {
	switch t := t.(type) {
	case time.Time:
		return t, !t.IsZero()
	case *time.Time:
		if t != nil {
			return *t, true
		}
	}
	return time.Time{}, false
}

// num renders an integer with commas.
func num(n any) string {
	s := fmt.Sprint(n)
	sign := ""
	if strings.HasPrefix(s, "-") {
		sign, s = "-", s[1:]
	}
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return sign + s
}

// money renders an amount in USD without its sign: two digits in reports, four per turn.
func money(amount float64, digits int) string {
	s := strconv.FormatFloat(amount, 'f', digits, 64)
	whole, rest, _ := strings.Cut(s, ".")
	return num(whole) + "." + rest
}

// maskText writes characters that cannot be seen as escapes: with them a text could look like another.
func maskText(s any) string {
	hidden := func(r rune) bool { return text.IsInvisible(r) && r != '\n' && r != '\t' }
	switch s := s.(type) {
	case *string:
		if s != nil {
			return text.EscapeFunc(*s, hidden)
		}
	case string:
		return text.EscapeFunc(s, hidden)
	}
	return ""
}

// costText renders what turns cost, which may be unknown.
func costText(usd *float64) string {
	if usd == nil {
		return "–"
	}
	return money(*usd, 4)
}

// byteSize renders a size.
func byteSize(n int64) string {
	switch {
	case n < 1<<10:
		return fmt.Sprintf("%d B", n)
	case n < 1<<20:
		return fmt.Sprintf("%.1f KiB", float64(n)/(1<<10))
	case n < 1<<30:
		return fmt.Sprintf("%.1f MiB", float64(n)/(1<<20))
	}
	return fmt.Sprintf("%.1f GiB", float64(n)/(1<<30))
}

// duration renders how long something took.
func duration(d time.Duration) string {
	switch {
	case d < time.Second:
		return fmt.Sprintf("%d ms", d.Milliseconds())
	case d < time.Minute:
		return fmt.Sprintf("%.1f s", d.Seconds())
	case d < time.Hour:
		return fmt.Sprintf("%d:%02d min", int(d.Minutes()), int(d.Seconds())%60)
	}
	return fmt.Sprintf("%d:%02d h", int(d.Hours()), int(d.Minutes())%60)
}

// encode returns pairs as the query of an address.
func encode(pairs ...string) string {
	q := make(url.Values)
	for i := 0; i+1 < len(pairs); i += 2 {
		q.Set(pairs[i], pairs[i+1])
	}
	return q.Encode()
}

// plural chooses between two words.
func plural(n int, one, many string) string {
	if n == 1 {
		return num(n) + " " + one
	}
	return num(n) + " " + many
}
