package openai

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"

	"github.com/parley-server/parley/internal/event"
	"github.com/parley-server/parley/internal/model"
)

// maxVectors is the most bytes of a response with vectors.
const maxVectors = 8 << 20

// Embedder makes vectors with a model at one server.
type Embedder struct{ m *Model }

// NewEmbedder returns an embedder. It sends nothing before Embed.
func NewEmbedder(cfg Config) *Embedder { return &Embedder{New(cfg)} }

// Name implements model.Embedder.
func (e *Embedder) Name() string { return e.m.Name() }

type embeddingsRequest struct {
	Model  string   `json:"model"`
	Input  []string `json:"input"`
	Format string   `json:"encoding_format"`
}

type embeddingsResponse struct {
	Data []struct {
		Index     *int      `json:"index"`
		Embedding []float32 `json:"embedding"`
	} `json:"data"`
	Usage struct {
		Tokens int64 `json:"prompt_tokens"`
	} `json:"usage"`
}

// Embed implements model.Embedder.
func (e *Embedder) Embed(ctx context.Context, texts []string) (vectors [][]float32, tokens int64, err error) {
	if e.m.unusable != nil {
		return nil, 0, e.m.unusable
	}
	res, err := e.m.exchange.Post(ctx, "embeddings", embeddingsRequest{e.m.service.Model, texts, "float"})
	if rejected, ok := errors.AsType[*model.Error](err); ok && rejected.Status == http.StatusBadRequest {
		rejected.Hint = fmt.Sprintf("%s did not accept the texts. Check that %s is a model of embeddings.", e.m.service.Name, e.m.service.Model)
	}
	if err != nil {
		return nil, 0, err
	}
	defer res.Body.Close()
	body, err := io.ReadAll(io.LimitReader(res.Body, maxVectors))
	if gone := ctx.Err(); gone != nil {
		return nil, 0, gone
	}
	var read embeddingsResponse
	if err == nil {
		err = json.Unmarshal(body, &read)
	}
	if known, ok := errors.AsType[*model.Error](err); ok {
		return nil, 0, known
	}
	if vectors = read.inOrder(len(texts)); err != nil || vectors == nil {
		return nil, 0, &model.Error{
			Code: event.ModelError, Model: e.Name(), Retryable: true, Message: model.Unavailable,
			Hint: e.m.service.Name + " sent vectors that could not be read.", Err: errors.New("unreadable vectors"), // without the body
		}
	}
	return vectors, read.Usage.Tokens, nil
}

// inOrder returns the n vectors in the order of the texts, or nil if they are not n vectors of one
// size.
func (r embeddingsResponse) inOrder(n int) [][]float32 {
	if len(r.Data) != n || n == 0 {
		return nil
	}
	list := make([][]float32, n)
	for i, d := range r.Data {
		if d.Index != nil {
			i = *d.Index
		}
		if i < 0 || i >= n || list[i] != nil || len(d.Embedding) == 0 || len(d.Embedding) != len(r.Data[0].Embedding) {
			return nil
		}
		list[i] = d.Embedding
	}
	return list
}
