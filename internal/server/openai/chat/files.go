package chat

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"mime"
	"strings"

	"github.com/google/uuid"

	"github.com/parley-server/parley/internal/fault"
	"github.com/parley-server/parley/internal/server"
	"github.com/parley-server/parley/internal/server/request"
	"github.com/parley-server/parley/internal/store/apikey"
	"github.com/parley-server/parley/internal/store/filestore"
)

// inlineFile is a file in a message.
type inlineFile struct {
	name, mime string
	data       []byte
	id         uuid.UUID // an uploaded file, in place of data; uuid.Nil: data
}

// fileData is the content of a part with a file. Completions nest it, responses do not.
type fileData struct {
	Filename string `json:"filename"`
	FileData string `json:"file_data"`
	FileID   string `json:"file_id"`
}

// takeFiles takes the images and files out of the content of a message, and returns the other parts
// at their places.
func (in *Incoming) takeFiles(param string, raw json.RawMessage) (rest json.RawMessage, files []inlineFile) {
	var parts []json.RawMessage
	if len(raw) == 0 || raw[0] != '[' || json.Unmarshal(raw, &parts) != nil {
		return raw, nil
	}
	for i, part := range parts {
		var p struct {
			Type     string          `json:"type"`
			ImageURL json.RawMessage `json:"image_url"`
			File     *fileData       `json:"file"`
			fileData
		}
		if json.Unmarshal(part, &p) != nil {
			continue
		}
		at, f := fmt.Sprintf("%s/%d", param, i), p.fileData
		switch p.Type {
		case "image_url", "input_image":
			f.FileData = imageURL(p.ImageURL)
		case "file", "input_file":
			if p.File != nil {
				f = *p.File
			}
		default:
			continue
		}
		if file, ok := in.parseFile(at, f); ok {
			files = append(files, file)
		}
		parts[i] = json.RawMessage(`{"type":"step-start"}`) // has no text
	}
	rest, _ = json.Marshal(parts) // of valid JSON
	return rest, files
}

// imageURL returns the address of an image: a text, or an object with it.
func imageURL(raw json.RawMessage) (address string) {
	var nested struct{ URL string }
	if json.Unmarshal(raw, &address) != nil && json.Unmarshal(raw, &nested) == nil {
		address = nested.URL
	}
	return address
}

// parseFile parses the content of a file: a data URL, or base64 with a filename.
func (in *Incoming) parseFile(param string, f fileData) (file inlineFile, ok bool) {
	if id, ok := request.ID(f.FileID); ok && f.FileData == "" {
		return inlineFile{id: id}, true
	}
	file.name = f.Filename
	kind, encoded, found := strings.Cut(f.FileData, ",")
	kind, isData := strings.CutPrefix(kind, "data:")
	kind, isBase64 := strings.CutSuffix(kind, ";base64")
	switch {
	case found && isData && isBase64:
		file.mime = kind
	case !found && !isData && f.Filename != "":
		encoded = f.FileData
	default:
		in.Add(fault.Violation{Param: param, Rule: "format",
			Message: "Send a file as a data URL with base64, such as data:image/png;base64,…, or upload it with POST …/files and send its file_id."})
		return file, false
	}
	var err error
	if file.data, err = base64.StdEncoding.DecodeString(encoded); err != nil || len(file.data) == 0 {
		in.Add(fault.Violation{Param: param, Rule: "format", Message: "The base64 of the file cannot be decoded."})
		return file, false
	}
	if file.mime == "" {
		file.mime = filestore.Type(file.name, file.data[:min(len(file.data), 512)])
	}
	if file.name == "" {
		file.name = "image"
		if endings, err := mime.ExtensionsByType(file.mime); err == nil && len(endings) > 0 {
			file.name += endings[len(endings)-1]
		}
	}
	return file, true
}

// storeFiles stores the files of a message and attaches them to it.
func (s Service) storeFiles(r *server.Request, q *requestBody) error {
	for _, f := range q.files {
		if f.id == uuid.Nil {
			stored, err := s.Files.Put(context.WithoutCancel(r.Context()), filestore.Request{Workspace: r.Caller.Workspace.ID, Key: r.Caller.Key,
				Unrestricted: r.Caller.Scopes.Allows(apikey.FilesWriteUnrestricted), Filename: f.name, MIME: f.mime}, f.data)
			if err != nil {
				return err
			}
			f.id = stored.FileID
		}
		q.Attachments = append(q.Attachments, f.id)
	}
	q.files = nil
	return nil
}
