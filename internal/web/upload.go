package web

import (
	"context"
	"errors"
	"io"
	"mime/multipart"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/parley-server/parley/internal/fault"
	"github.com/parley-server/parley/internal/store/wiki"
)

const (
	maxUploads  = 500             // files of one form
	maxUpload   = 64 << 20        // bytes of one form
	maxField    = 1 << 10         // bytes of a field besides the files
	uploadLimit = 2 * time.Minute // for a slow connection
)

// uploadResult is what became of an uploaded file.
type uploadResult struct {
	Name    string
	OK      bool
	Message string
}

// uploadDocuments stores the files of a form as documents of a folder. It reads them one by one, and
// a file that is rejected does not stop the others.
func (a *App) uploadDocuments(w http.ResponseWriter, p *page) error {
	p.Body = http.MaxBytesReader(w, p.Body, maxUpload)
	parts, err := p.MultipartReader()
	if err != nil {
		return unknownForm()
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(p.Context()), uploadLimit)
	defer cancel()
	f, results, stored := emptyForm(), []uploadResult(nil), 0
	for {
		part, err := parts.NextPart()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return uploadError(err)
		}
		if part.FormName() != "file" {
			value, err := io.ReadAll(io.LimitReader(part, maxField))
			if err != nil {
				return uploadError(err)
			}
			f.Values.Set(part.FormName(), string(value))
			continue
		}
		if part.FileName() == "" { // no file was chosen
			continue
		}
		if len(results) == maxUploads {
			return fault.New(fault.PayloadTooLarge, "A form uploads at most %d files. Those before were stored.", maxUploads)
		}
		result, err := a.storeUpload(ctx, p, part, f)
		if err != nil {
			return err
		}
		if results = append(results, result); result.OK {
			stored++
		}
	}
	folder := strings.Trim(f.Value("folder"), "/")
	switch {
	case len(results) == 0:
		f.fail("file", "Choose one or more files.")
	case stored == len(results):
		p.flash(w, plural(stored, "document", "documents")+" uploaded.")
		return p.redirect(w, "/w/"+p.Workspace.Slug+"/knowledge?folder="+url.QueryEscape(folder))
	}
	return a.showKnowledge(w, p, http.StatusUnprocessableEntity, knowledgeView{Folder: folder, Form: f, Results: results})
}

// storeUpload stores one file. A document that exists is replaced only if the form says so.
func (a *App) storeUpload(ctx context.Context, p *page, part *multipart.Part, f *form) (r uploadResult, err error) {
	r.Name = part.FileName()
	content, err := io.ReadAll(io.LimitReader(part, wiki.MaxContent+1))
	if err != nil {
		return r, uploadError(err)
	}
	name, ok := r.Name, true
	if folder := strings.Trim(f.Value("folder"), "/"); folder != "" {
		name = folder + "/" + name
	}
	if f.Value("replace") != "" {
		_, err = a.Wiki.Put(ctx, p.Workspace.ID, name, string(content))
	} else {
		_, ok, err = a.Wiki.Write(ctx, p.Workspace.ID, name, string(content), 0)
	}
	if problem := fault.From(err); problem != nil && problem.Code.Status() < 500 {
		r.Message = problem.Message
		if vs := problem.Detail.Violations; len(vs) > 0 {
			r.Message = vs[0].Message
		}
		return r, nil
	}
	if r.OK = ok && err == nil; !ok {
		r.Message = "There is a document with this name. Tick the box to replace it."
	}
	return r, err
}

// uploadError reports a form that ends too early or is too large.
func uploadError(err error) error {
	if problem := new(http.MaxBytesError); errors.As(err, &problem) {
		return fault.New(fault.PayloadTooLarge, "The files have more than %s together. Those before were stored.", sizeText(maxUpload))
	}
	return fault.New(fault.InvalidRequestBody, "The upload ended too early. Upload the files again.")
}
