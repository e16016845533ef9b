package pdftext

import "github.com/ledongthuc/pdf"

const (
	usualWidth = 0.5   // of a character whose width is not known, in sizes of the font
	maxWidths  = 70000 // widths of a font
)

// font has what is needed of a font.
type font struct {
	enc    pdf.TextEncoding
	wide   bool // a character has two bytes
	widths map[int]float64
	usual  float64 // width of characters that have none in widths
}

// newFont reads a font. A broken one has no widths.
func newFont(v pdf.Value) (out *font) {
	f := pdf.Font{V: v}
	out = &font{widths: make(map[int]float64), usual: usualWidth, enc: f.Encoder()}
	defer func() { _ = recover() }()
	if v.Key("Subtype").Name() == "Type0" {
		out.wide = true
		out.readWide(v.Key("DescendantFonts").Index(0))
		return out
	}
	scale := 1.0 / 1000
	if m := v.Key("FontMatrix"); m.Len() == 6 { // of a font of type 3
		scale = m.Index(0).Float64()
	}
	widths := v.Key("Widths")
	for i := range min(widths.Len(), 256) {
		out.widths[f.FirstChar()+i] = widths.Index(i).Float64() * scale
	}
	return out
}

// readWide reads the widths of a font whose characters have two bytes: first [w w …], or first last w.
func (f *font) readWide(v pdf.Value) {
	f.usual = 1
	if dw := v.Key("DW"); !dw.IsNull() {
		f.usual = dw.Float64() / 1000
	}
	w := v.Key("W")
	for i := 0; i+1 < w.Len(); {
		first := int(w.Index(i).Int64())
		if list := w.Index(i + 1); list.Kind() == pdf.Array {
			for j := range min(list.Len(), maxWidths) {
				f.widths[first+j] = list.Index(j).Float64() / 1000
			}
			i += 2
			continue
		}
		if i+2 >= w.Len() {
			return
		}
		width := w.Index(i+2).Float64() / 1000
		for code := first; code <= int(w.Index(i+1).Int64()) && len(f.widths) < maxWidths; code++ {
			f.widths[code] = width
		}
		i += 3
	}
}

// width returns the width of a text, in sizes of the font, its characters, and its spaces.
func (f *font) width(raw string) (width float64, chars, spaces int) {
	step := 1
	if f.wide {
		step = 2
	}
	for i := 0; i+step <= len(raw); i += step {
		code := int(raw[i])
		if f.wide {
			code = code<<8 | int(raw[i+1])
		} else if code == ' ' {
			spaces++
		}
		w, ok := f.widths[code]
		if !ok {
			w = f.usual
		}
		width += w
		chars++
	}
	return width, chars, spaces
}
