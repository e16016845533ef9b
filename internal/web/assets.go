package web

import (
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"fmt"
	"io/fs"
	"mime"
	"net/http"
	"path"
	"regexp"
	"strconv"
	"sync"

	"github.com/parley-server/parley/internal/fault"
)

//go:embed static
var staticFiles embed.FS

// assets are the static files. Their addresses contain the hash of all of them, so that browsers
// keep them for ever and modules can import each other by relative names.
type assets struct {
	hash  string
	files map[string][]byte
}

// loadAssets returns the static files, which all servers of a process share.
var loadAssets = sync.OnceValues(readAssets)

func readAssets() (assets, error) {
	a := assets{files: make(map[string][]byte)}
	sum := sha256.New()
	err := fs.WalkDir(staticFiles, "static", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		data, err := staticFiles.ReadFile(name)
		if err != nil {
			return err
		}
		switch {
		case path.Ext(name) == ".css":
			data = shrinkCSS(data)
		case path.Ext(name) == ".js" && path.Dir(name) == "static": // those in vendor are small already
			data = jsMargin.ReplaceAll(data, nil)
		}
		fmt.Fprintf(sum, "%s %d\n", name, len(data))
		_, _ = sum.Write(data)
		a.files[name[len("static/"):]] = data
		return nil
	})
	a.hash = hex.EncodeToString(sum.Sum(nil))[:12]
	return a, err
}

func (a assets) path(name string) string { return "/static/" + a.hash + "/" + name }

var (
	cssComment = regexp.MustCompile(`(?s)/\*.*?\*/`)
	cssSpace   = regexp.MustCompile(`\s+`)
	cssAround  = regexp.MustCompile(`\s*([{};,>/!])\s*`)
	cssLast    = regexp.MustCompile(`;}`)
	cssValue   = regexp.MustCompile(`: `)

	// jsMargin are the comments that fill or end a line, indentation and empty lines. Our scripts have
	// no text that goes over several lines, in which they would have a meaning.
	jsMargin = regexp.MustCompile("(?m)^[ \\t]*(//.*|/\\*\\*[^*]*(\\*+[^*/][^*]*)*\\*+/)[ \\t]*\\n|^[ \\t]+|^\\n| // [^\"'`\\n]*$")
)

// shrinkCSS removes comments and the spaces that have no meaning. It relies on the style of our
// files: a colon that is followed by a space ends the name of a property.
func shrinkCSS(data []byte) []byte {
	data = cssComment.ReplaceAll(data, nil)
	data = cssSpace.ReplaceAll(data, []byte(" "))
	data = cssAround.ReplaceAll(data, []byte("$1"))
	data = cssLast.ReplaceAll(data, []byte("}"))
	return cssValue.ReplaceAll(data, []byte(":"))
}

// static serves a file. An address with the hash of another release gets the present file, but may
// not be kept.
func (a *App) static(w http.ResponseWriter, r *http.Request) error {
	name := r.PathValue("name")
	data, ok := a.assets.files[name]
	if !ok || r.Method != http.MethodGet && r.Method != http.MethodHead {
		return fault.New(fault.RouteNotFound, "The file does not exist.")
	}
	h := w.Header()
	setHeaders(h)
	if r.PathValue("hash") == a.assets.hash {
		h.Set("Cache-Control", "public, max-age=31536000, immutable")
	}
	kind := mime.TypeByExtension(path.Ext(name))
	if path.Ext(name) == ".js" {
		kind = "text/javascript; charset=utf-8"
	}
	h.Set("Content-Type", kind)
	h.Set("Content-Length", strconv.Itoa(len(data)))
	w.WriteHeader(http.StatusOK)
	if r.Method == http.MethodGet {
		_, _ = w.Write(data)
	}
	return nil
}
