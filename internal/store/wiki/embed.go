package wiki

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/parley-server/parley/db"
	"github.com/parley-server/parley/internal/model"
	"github.com/parley-server/parley/internal/pgerr"
)

const (
	embedDocuments = 50          // documents whose passages are read at once
	embedBatch     = 64          // passages of one request
	embedTime      = time.Minute // for one request
	turnSeconds    = 240         // for which other processes leave the work to this one
	embedProbe     = "passage"   // a text that every model accepts
)

// lackingDocument is a document whose passages lack vectors.
type lackingDocument struct {
	db.DocumentsUnembeddedRow
	digests  []uuid.UUID
	passages []string
	vectors  []string // of the passages, in order; "" for one that the provider rejects
	left     int      // passages that were not embedded yet
}

// embedSome makes the vectors of some documents, and reports whether more may lack them.
func (v *vectors) embedSome(ctx context.Context) (more bool, err error) {
	if v == nil {
		return false, nil
	}
	if !v.adopted {
		if err := v.q.VectorsAdopt(ctx, v.embedder.Name(), v.worker); err != nil {
			return false, fmt.Errorf("choose the model of vectors: %w", err)
		}
		v.adopted = true
	}
	size, err := v.takeTurn(ctx)
	if err != nil || size < 0 {
		return false, err
	}
	docs, err := v.lackingDocuments(ctx)
	if err != nil || len(docs) == 0 {
		return false, err
	}
	for _, batch := range batchesOf(docs) {
		reset, err := v.embedBatch(ctx, batch, size)
		if err != nil || reset {
			return reset, err // after a reset, other passages of these documents lack vectors
		}
		if docs, err = v.storeComplete(ctx, docs); err != nil {
			return false, err
		}
	}
	_, err = v.storeComplete(ctx, docs)
	return err == nil, err
}

// storeComplete stores the documents at the beginning of the list that are complete, and returns the
// rest.
func (v *vectors) storeComplete(ctx context.Context, docs []*lackingDocument) ([]*lackingDocument, error) {
	for len(docs) > 0 && docs[0].left == 0 {
		if err := v.storeVectors(ctx, docs[0]); err != nil {
			return docs, err
		}
		docs = docs[1:]
	}
	return docs, nil
}

// takeTurn returns the size of the stored vectors, 0 if there are none, or -1 if this process must not
// make vectors: another one does, the database cannot store them, or a process that started later has
// another model.
func (v *vectors) takeTurn(ctx context.Context) (size int, err error) {
	dimensions, err := v.q.VectorsTurn(ctx, v.worker, turnSeconds, v.embedder.Name())
	if errors.Is(err, pgx.ErrNoRows) {
		return -1, nil
	}
	if err != nil {
		return -1, fmt.Errorf("take the turn to make vectors: %w", err)
	}
	if dimensions > 0 {
		return int(dimensions), nil
	}
	lacks, err := v.q.VectorsAvailable(ctx, true)
	if err != nil {
		return -1, fmt.Errorf("look for pgvector: %w", err)
	}
	if lacks == "yes" {
		return 0, nil
	}
	if lacks != v.lacks {
		v.lacks = lacks
		v.log.WarnContext(ctx, "search without vectors: "+vectorsRemedy(lacks))
	}
	return -1, nil
}

// VectorsLack returns what the database lacks to store vectors: "" for nothing, absent for pgvector 0.8
// or later, or the statement that prepares it. It changes nothing.
func (s *Store) VectorsLack(ctx context.Context) (string, error) {
	lacks, err := s.q.VectorsAvailable(ctx, false)
	if err != nil {
		return "", fmt.Errorf("look for pgvector: %w", err)
	}
	return strings.TrimPrefix(lacks, "yes"), nil
}

// vectorsRemedy explains a result of vectors_available other than yes.
func vectorsRemedy(lacks string) string {
	if lacks == "absent" {
		return "PostgreSQL has no pgvector 0.8 or later. Install it in the server of the database."
	}
	return "the role may not prepare pgvector. Run as a superuser in this database: " + lacks + ";"
}

// lackingDocuments reads documents whose passages may lack vectors, with these passages.
func (v *vectors) lackingDocuments(ctx context.Context) ([]*lackingDocument, error) {
	rows, err := v.q.DocumentsUnembedded(ctx, embedDocuments)
	if err != nil {
		return nil, fmt.Errorf("list documents without vectors: %w", err)
	}
	docs := make([]*lackingDocument, len(rows))
	for i, r := range rows {
		lacking, err := v.q.VectorsLacking(ctx, r.WorkspaceID, r.Path)
		if err != nil {
			return nil, fmt.Errorf("list passages without vectors: %w", err)
		}
		docs[i] = &lackingDocument{DocumentsUnembeddedRow: r, vectors: make([]string, len(lacking)), left: len(lacking)}
		for _, l := range lacking {
			docs[i].digests, docs[i].passages = append(docs[i].digests, l.Digest), append(docs[i].passages, l.Passage)
		}
	}
	return docs, nil
}

// passage is one of a document's.
type passage struct {
	doc *lackingDocument
	i   int
}

// batchesOf returns the passages of documents, those of one request together.
func batchesOf(docs []*lackingDocument) (batches [][]passage) {
	var all []passage
	for _, d := range docs {
		for i := range d.passages {
			all = append(all, passage{d, i})
		}
	}
	return slices.Collect(slices.Chunk(all, embedBatch))
}

// embedBatch makes the vectors of a batch. If they have another size than the stored ones, it makes a
// new index instead, and reports that.
func (v *vectors) embedBatch(ctx context.Context, batch []passage, size int) (reset bool, err error) {
	texts := make([]string, len(batch))
	for i, p := range batch {
		texts[i] = p.doc.passages[p.i]
	}
	list, err := v.embedPassages(ctx, texts)
	if err != nil {
		return false, fmt.Errorf("make the vectors of passages: %w", err)
	}
	for i, vector := range list {
		if len(vector) > 0 && len(vector) != size {
			if err := v.q.VectorsReset(ctx, int32(len(vector)), v.embedder.Name(), v.worker); err != nil {
				return false, fmt.Errorf("make the index of vectors: %w", err)
			}
			v.log.InfoContext(ctx, "new index of vectors", "model", v.embedder.Name(), "dimensions", len(vector))
			return true, nil
		}
		batch[i].doc.left--
		if !fitsHalf(vector) {
			v.log.WarnContext(ctx, "a passage has no vector: a component is too large", "path", batch[i].doc.Path)
			continue
		}
		if len(vector) > 0 {
			batch[i].doc.vectors[batch[i].i] = vectorText(vector)
		}
	}
	if _, err = v.q.VectorsTurn(ctx, v.worker, turnSeconds, v.embedder.Name()); err != nil { // the next request may take its time
		return false, fmt.Errorf("keep the turn to make vectors: %w", err)
	}
	return false, nil
}

// embedPassages makes the vectors of texts. A text that the provider rejects has none, if the provider
// accepts another text.
func (v *vectors) embedPassages(ctx context.Context, texts []string) ([][]float32, error) {
	list, err := v.embedTimed(ctx, texts)
	if !isRejected(err) {
		return list, err
	}
	if _, probe := v.embedTimed(ctx, []string{embedProbe}); probe != nil {
		return nil, err
	}
	if len(texts) == 1 {
		v.log.WarnContext(ctx, "a passage has no vector: the provider rejects it", "err", err)
		return [][]float32{nil}, nil
	}
	half := len(texts) / 2
	first, err := v.embedPassages(ctx, texts[:half])
	if err != nil {
		return nil, err
	}
	second, err := v.embedPassages(ctx, texts[half:])
	return append(first, second...), err
}

func (v *vectors) embedTimed(ctx context.Context, texts []string) ([][]float32, error) {
	ctx, cancel := context.WithTimeout(ctx, embedTime)
	defer cancel()
	return v.embed(ctx, "index", texts)
}

// isRejected reports whether a provider rejects the texts of a request.
func isRejected(err error) bool {
	e, ok := errors.AsType[*model.Error](err)
	return ok && slices.Contains([]int{http.StatusBadRequest, http.StatusRequestEntityTooLarge, http.StatusUnprocessableEntity}, e.Status)
}

// maxHalf is the largest number of PostgreSQL's type halfvec.
const maxHalf = 65504

// fitsHalf reports whether PostgreSQL can store a vector.
func fitsHalf(vector []float32) bool {
	return !slices.ContainsFunc(vector, func(x float32) bool { return x > maxHalf || x < -maxHalf })
}

// storeVectors stores the vectors of a document, and records that it has them.
func (v *vectors) storeVectors(ctx context.Context, d *lackingDocument) error {
	var digests []uuid.UUID
	var vectors []string
	for i, vector := range d.vectors {
		if vector != "" {
			digests, vectors = append(digests, d.digests[i]), append(vectors, vector)
		}
	}
	if len(vectors) > 0 {
		mine, err := v.q.VectorsStore(ctx, db.VectorsStoreParams{Model: v.embedder.Name(), Worker: v.worker, WorkspaceID: d.WorkspaceID,
			Path: d.Path, Digests: digests, Vectors: vectors})
		switch state, refused := pgerr.IsInvalidValue(err); {
		case refused: // otherwise no later document would get vectors
			v.log.WarnContext(ctx, "a document has no vectors: PostgreSQL does not accept them", "path", d.Path, "sqlstate", state)
		case err != nil:
			return fmt.Errorf("store vectors: %w", err)
		case !mine:
			return nil // another process makes them
		}
	}
	if err := v.q.DocumentEmbedded(ctx, d.WorkspaceID, d.Path, d.Version); err != nil {
		return fmt.Errorf("store vectors: %w", err)
	}
	return nil
}
