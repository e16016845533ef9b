package pdftext

import (
	"math"
	"strings"
	"unicode"

	"github.com/ledongthuc/pdf"
)

// matrix is the affine map of (x, y) to (a·x + c·y + e, b·x + d·y + f).
type matrix struct{ a, b, c, d, e, f float64 }

var identity = matrix{a: 1, d: 1}

// then returns the map that applies m, then n.
func (m matrix) then(n matrix) matrix {
	return matrix{m.a*n.a + m.b*n.c, m.a*n.b + m.b*n.d, m.c*n.a + m.d*n.c, m.c*n.b + m.d*n.d, m.e*n.a + m.f*n.c + n.e, m.e*n.b + m.f*n.d + n.f}
}

// The distances, in sizes of the font, from which a move of the position is a new line or a space.
const (
	newLine  = 0.4
	newSpace = 0.15
)

// layout writes the texts of a page in the order in which the page draws them, which is the reading
// order of most programs. A move to another height is a line, and a gap is a space.
type layout struct {
	strings.Builder
	x, y  float64 // end of the last text
	begun bool
}

// textState is the state that q saves and Q restores.
type textState struct {
	ctm                           matrix
	font                          *font
	size, leading, char, word, th float64
}

// draw reads a stream of a page, or of a form that the page draws.
func (l *layout) draw(stream, resources pdf.Value, ctm matrix, depth int) {
	fonts := make(map[string]*font)
	s := textState{ctm: ctm, th: 1}
	var saved []textState
	var line, at matrix // of the line's beginning, and of the next text
	move := func(x, y float64) {
		line = matrix{1, 0, 0, 1, x, y}.then(line)
		at = line
	}
	show := func(raw string) { at = l.show(s, at, raw) }
	pdf.Interpret(stream, func(stack *pdf.Stack, op string) {
		args := make([]pdf.Value, stack.Len())
		for i := len(args) - 1; i >= 0; i-- {
			args[i] = stack.Pop()
		}
		arg := func(i int) float64 {
			if i < len(args) {
				return args[i].Float64()
			}
			return 0
		}
		six := func() matrix { return matrix{arg(0), arg(1), arg(2), arg(3), arg(4), arg(5)} }
		switch op {
		case "q":
			if len(saved) < 1000 {
				saved = append(saved, s)
			}
		case "Q":
			if n := len(saved); n > 0 {
				s, saved = saved[n-1], saved[:n-1]
			}
		case "cm":
			s.ctm = six().then(s.ctm)
		case "BT":
			line, at = identity, identity
		case "Tf":
			if len(args) == 2 {
				name := args[0].Name()
				if fonts[name] == nil {
					fonts[name] = newFont(resources.Key("Font").Key(name))
				}
				s.font, s.size = fonts[name], arg(1)
			}
		case "Tc":
			s.char = arg(0)
		case "Tw":
			s.word = arg(0)
		case "Tz":
			s.th = arg(0) / 100
		case "TL":
			s.leading = arg(0)
		case "TD":
			s.leading = -arg(1)
			move(arg(0), arg(1))
		case "Td":
			move(arg(0), arg(1))
		case "Tm":
			line = six()
			at = line
		case "T*":
			move(0, -s.leading)
		case "\"":
			if len(args) == 3 {
				s.word, s.char = arg(0), arg(1)
				move(0, -s.leading)
				show(args[2].RawString())
			}
		case "'":
			if len(args) == 1 {
				move(0, -s.leading)
				show(args[0].RawString())
			}
		case "Tj":
			if len(args) == 1 {
				show(args[0].RawString())
			}
		case "TJ":
			if len(args) != 1 {
				return
			}
			for i := range args[0].Len() {
				if v := args[0].Index(i); v.Kind() == pdf.String {
					show(v.RawString())
				} else {
					at = matrix{1, 0, 0, 1, -v.Float64() / 1000 * s.size * s.th, 0}.then(at)
				}
			}
		case "Do":
			if len(args) == 1 && depth < maxForms {
				l.drawForm(resources.Key("XObject").Key(args[0].Name()), resources, s.ctm, depth)
			}
		}
	})
}

// drawForm draws a form.
func (l *layout) drawForm(form, resources pdf.Value, ctm matrix, depth int) {
	if form.Key("Subtype").Name() != "Form" {
		return
	}
	if m := form.Key("Matrix"); m.Len() == 6 {
		v := func(i int) float64 { return m.Index(i).Float64() }
		ctm = matrix{v(0), v(1), v(2), v(3), v(4), v(5)}.then(ctm)
	}
	l.draw(form, resourcesOf(form, resources), ctm, depth+1)
}

var ligatures = strings.NewReplacer("\uFB00", "ff", "\uFB01", "fi", "\uFB02", "fl", "\uFB03", "ffi", "\uFB04", "ffl")

// show writes a text and returns the place after it.
func (l *layout) show(s textState, at matrix, raw string) matrix {
	if s.font == nil || l.Len() > MaxText {
		return at
	}
	where := at.then(s.ctm)
	size := math.Hypot(where.c, where.d) * math.Abs(s.size)
	switch dx, dy := where.e-l.x, where.f-l.y; {
	case !l.begun:
	case math.Abs(dy) > newLine*size:
		l.write("\n")
	case math.Abs(dx) > newSpace*size:
		l.write(" ")
	}
	text := ligatures.Replace(strings.Map(func(r rune) rune {
		if unicode.IsControl(r) && r != '\n' && r != '\t' {
			return -1
		}
		return r
	}, s.font.enc.Decode(raw)))
	l.write(text)
	width, chars, spaces := s.font.width(raw)
	at = matrix{1, 0, 0, 1, (width*s.size + float64(chars)*s.char + float64(spaces)*s.word) * s.th, 0}.then(at)
	where = at.then(s.ctm)
	l.x, l.y, l.begun = where.e, where.f, true
	return at
}

// write writes text, with at most one blank between two texts.
func (l *layout) write(text string) {
	if text == "\n" || text == " " {
		if s := l.String(); s == "" || strings.HasSuffix(s, " ") && text == " " || strings.HasSuffix(s, "\n") {
			return
		}
	}
	l.WriteString(text)
}
