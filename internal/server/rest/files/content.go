package files

import (
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/parley-server/parley/internal/fault"
	"github.com/parley-server/parley/internal/server"
	"github.com/parley-server/parley/internal/server/request"
	"github.com/parley-server/parley/internal/server/rest/call"
	"github.com/parley-server/parley/internal/store/filestore"
)

// uploadFile receives the bytes of a file. Its URL is signed, so no key is needed.
func (s *api) uploadFile(w http.ResponseWriter, r *call.Request) error {
	if err := request.Accepts(r.Request, request.JSONType); err != nil {
		return err
	}
	if enc := r.Header.Get("Content-Encoding"); enc != "" && !strings.EqualFold(enc, "identity") {
		return fault.New(fault.UnsupportedMediaType, "Send the file without Content-Encoding.")
	}
	rc := http.NewResponseController(w)
	body := &steadyBody{r: r.Body, rc: rc, pause: s.WriteTimeout, until: time.Now().Add(filestore.UploadTime)}
	f, err := s.Files.Upload(r.Context(), r.URL.EscapedPath(), r.URL.RawQuery, r.ContentLength, body)
	if err != nil {
		if !body.whole {
			request.HangUp(w)
		}
		return err
	}
	_ = rc.SetReadDeadline(time.Time{}) // otherwise the connection would later count as closed
	return server.WriteData(w, http.StatusOK, f)
}

// steadyBody is a body that may take long, but must not stall.
type steadyBody struct {
	r     io.Reader
	rc    *http.ResponseController
	pause time.Duration
	until time.Time
	whole bool // read to its end
}

func (b *steadyBody) Read(p []byte) (int, error) {
	deadline := time.Now().Add(b.pause)
	if deadline.After(b.until) {
		deadline = b.until
	}
	_ = b.rc.SetReadDeadline(deadline)
	n, err := b.r.Read(p)
	b.whole = err == io.EOF
	return n, err
}

// fetchFile sends the bytes of a file, or a range of them. Its URL is signed, so
// no key is needed. Files are always downloads: a browser never renders foreign content under this
// origin.
func (s *api) fetchFile(w http.ResponseWriter, r *call.Request) error {
	f, err := s.Files.Open(r.Context(), r.URL.EscapedPath(), r.URL.RawQuery)
	if err != nil {
		return err
	}
	if err := request.Accepts(r.Request, f.MIME); err != nil {
		return err
	}
	h := w.Header()
	h.Set("Content-Type", f.MIME)
	h.Set("Content-Disposition", filestore.Disposition(f.Filename))
	h.Set("Content-Security-Policy", "sandbox; default-src 'none'")
	h.Set("Cache-Control", "private, no-cache")
	h.Set("ETag", `"`+f.SHA256+`"`)
	// Unknown units are ignored, and many small ranges would read the file many times: both get the
	// whole file.
	if ranges := r.Header.Get("Range"); !strings.HasPrefix(ranges, "bytes=") || strings.Contains(ranges, ",") {
		r.Header.Del("Range")
	}
	r.Header.Del("If-Match") // the content of an address never changes
	r.Header.Del("If-Unmodified-Since")
	out := &steadyAnswer{ResponseWriter: w, rc: http.NewResponseController(w), pause: s.WriteTimeout}
	http.ServeContent(out, r.Request, "", f.ModTime, f.Reader(r.Context()))
	if out.unsatisfiable {
		h.Del("Content-Disposition")
		h.Del("Content-Security-Policy")
		h.Set("Content-Range", "bytes */"+strconv.FormatInt(f.Size, 10))
		return fault.New(fault.RangeNotSatisfiable, "The file has %d bytes, and none of them in that range.", f.Size)
	}
	return nil
}

// steadyAnswer is a response that may take long, but whose reader must not stall. It suppresses the
// one error of http.ServeContent, whose format differs from the API's.
type steadyAnswer struct {
	http.ResponseWriter
	rc            *http.ResponseController
	pause         time.Duration
	unsatisfiable bool
}

func (a *steadyAnswer) WriteHeader(status int) {
	if a.unsatisfiable = status == http.StatusRequestedRangeNotSatisfiable; !a.unsatisfiable {
		a.ResponseWriter.WriteHeader(status)
	}
}

func (a *steadyAnswer) Write(p []byte) (int, error) {
	if a.unsatisfiable {
		return len(p), nil
	}
	_ = a.rc.SetWriteDeadline(time.Now().Add(a.pause))
	return a.ResponseWriter.Write(p)
}
