package workdir

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"iter"
)

// chunksAtOnce is how many chunks one query reads.
const chunksAtOnce = 4

// errBroken is the error for stored bytes that differ from the saved ones.
var errBroken = errors.New("what is stored of a file is not what was saved")

// checkContent compares a file's content with its hash.
func (k known) checkContent(data []byte) error {
	if int64(len(data)) != k.size || sha256.Sum256(data) != k.sum {
		return errBroken
	}
	return nil
}

// readChunks reads a file. It holds no connection while the consumer works; its last
// value is an error if the bytes differ from the saved ones.
func (s *Store) readChunks(ctx context.Context, k known) iter.Seq2[[]byte, error] {
	return func(yield func([]byte, error) bool) {
		hash, left := sha256.New(), k.size
		for n := int32(0); left > 0; n += chunksAtOnce {
			list, err := s.q.WorkChunks(ctx, k.blob, n, chunksAtOnce)
			if err != nil {
				yield(nil, fmt.Errorf("read chunks: %w", err))
				return
			}
			if len(list) == 0 {
				break
			}
			for _, chunk := range list {
				hash.Write(chunk)
				left -= int64(len(chunk))
				if !yield(chunk, nil) {
					return
				}
			}
		}
		if left != 0 || sum(hash.Sum(nil)) != k.sum {
			yield(nil, errBroken)
		}
	}
}
