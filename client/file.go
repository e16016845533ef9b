package client

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"time"
)

// NewFile describes a file to upload. SHA256, in hexadecimal, may be empty; with it the server
// rejects other bytes.
type NewFile struct {
	Filename string `json:"filename"`
	MIME     string `json:"mime"`
	Size     int64  `json:"size"`
	SHA256   string `json:"sha256,omitempty"`
}

// File describes a file of the workspace.
type File struct {
	FileID    string    `json:"file_id"`
	Status    string    `json:"status"`    // pending, fetching, ready, rejected, expired
	Direction string    `json:"direction"` // in, out
	Filename  string    `json:"filename"`
	MIME      string    `json:"mime"`
	Size      int64     `json:"size"`
	SHA256    string    `json:"sha256"`
	SessionID string    `json:"session_id"`
	TurnID    string    `json:"turn_id"`
	CreatedAt time.Time `json:"created_at"`
	// Raw is the response as the server sent it.
	Raw json.RawMessage `json:"-"`
}

// SendFile uploads a file: it requests a signed address and sends the body there.
func (c *Client) SendFile(ctx context.Context, f NewFile, body io.Reader) (File, error) {
	ticket, err := callJSON[struct {
		Data struct {
			Upload struct {
				Method, URL string
				Headers     map[string]string
			}
		}
	}](ctx, c, http.MethodPost, c.workspaceURL("files"), f)
	if err != nil {
		return File{}, err
	}
	up := ticket.Data.Upload
	req, err := c.signedRequest(ctx, up.Method, up.URL, io.NopCloser(body))
	if err != nil {
		return File{}, err
	}
	req.ContentLength = f.Size
	if f.Size == 0 {
		req.Body = http.NoBody // or the length would count as unknown
	}
	for name, value := range up.Headers {
		req.Header.Set(name, value)
	}
	answer, err := c.doRequest(req)
	if err != nil {
		return File{}, err
	}
	var out struct{ Data json.RawMessage }
	sent := File{}
	if json.Unmarshal(answer, &out) != nil || json.Unmarshal(out.Data, &sent) != nil {
		return sent, foreignError(req.URL, http.StatusOK, answer)
	}
	sent.Raw = out.Data
	return sent, nil
}

// signedRequest returns a request for a signed address. It carries no key: the address suffices.
func (c *Client) signedRequest(ctx context.Context, method, address string, body io.Reader) (*http.Request, error) {
	req, err := http.NewRequestWithContext(ctx, method, address, body)
	if err != nil {
		return nil, fmt.Errorf("make request: %w", err)
	}
	req.Header.Set("User-Agent", c.opt.UserAgent)
	return req, nil
}

// FileQuery filters the list of files. The zero value lists all, newest first.
type FileQuery struct {
	Direction string // in, out
	Limit     int
	Cursor    string
}

// Files lists the workspace's files.
func (c *Client) Files(ctx context.Context, q FileQuery) (Page[File], error) {
	u := withQuery(c.workspaceURL("files"), q.Limit, map[string]string{"direction": q.Direction, "cursor": q.Cursor})
	return callJSON[Page[File]](ctx, c, http.MethodGet, u, nil)
}

// DownloadQuery names a file, or the files that a session produced, filtered by Turn and
// Filename.
type DownloadQuery struct {
	File     string `json:"file_id,omitempty"`
	Session  string `json:"session_id,omitempty"`
	Turn     string `json:"turn_id,omitempty"`
	Filename string `json:"filename,omitempty"`
}

// Download is a file and a signed address that opens it.
type Download struct {
	FileID      string    `json:"file_id"`
	Filename    string    `json:"filename"`
	MIME        string    `json:"mime"`
	Size        int64     `json:"size"`
	DownloadURL string    `json:"download_url"`
	CreatedAt   time.Time `json:"created_at"`
	ExpiresAt   time.Time `json:"expires_at"`
}

// Downloads returns fresh addresses of files.
func (c *Client) Downloads(ctx context.Context, q DownloadQuery) ([]Download, error) {
	out, err := callJSON[struct{ Data []Download }](ctx, c, http.MethodPost, c.workspaceURL("files", "download"), q)
	return out.Data, err
}

// Fetch writes the bytes of a file to w. It fails if bytes are missing.
func (c *Client) Fetch(ctx context.Context, d Download, w io.Writer) error {
	req, err := c.signedRequest(ctx, http.MethodGet, d.DownloadURL, nil)
	if err != nil {
		return err
	}
	res, err := c.sendRequest(req)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK {
		body, _ := io.ReadAll(io.LimitReader(res.Body, 64<<10))
		return decodeFailure(res, body)
	}
	n, err := io.Copy(w, res.Body)
	if err == nil && n != d.Size {
		err = fmt.Errorf("received %d bytes instead of %d", n, d.Size)
	}
	if err != nil {
		return fmt.Errorf("download %s: %w", d.Filename, err)
	}
	return nil
}
