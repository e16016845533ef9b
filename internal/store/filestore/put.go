package filestore

import (
	"bytes"
	"context"
	"fmt"
	"net/url"
)

// Put stores a file whose content came with a message.
func (s *Store) Put(ctx context.Context, n Request, data []byte) (File, error) {
	n.Size = new(int64(len(data)))
	ticket, err := s.Create(ctx, n)
	if err != nil {
		return File{}, err
	}
	address, err := url.Parse(ticket.Upload.URL)
	if err != nil {
		return File{}, fmt.Errorf("parse the address of an upload: %w", err)
	}
	return s.Upload(ctx, address.Path, address.RawQuery, *n.Size, bytes.NewReader(data))
}
