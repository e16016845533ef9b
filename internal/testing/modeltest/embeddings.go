package modeltest

import (
	"encoding/json"
	"hash/fnv"
	"math"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"unicode"
)

// Embedding is the behavior of a fake model of embeddings. The vector of a text is the sum of the
// vectors of its words, so that texts with the same words, or with synonyms, are near to each other. It
// must not be copied once a server uses it.
type Embedding struct {
	Size     int               // of the vectors
	Synonyms map[string]string // words, and the word that has their vector
	Reject   string            // a word; a request with a text that has it is 400

	mu     sync.Mutex
	status int
	texts  []string
}

// Fail makes the server answer with this status; 200 ends it.
func (e *Embedding) Fail(status int) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.status = status
}

// Texts returns the texts that were embedded or failed since the last call.
func (e *Embedding) Texts() []string {
	e.mu.Lock()
	defer e.mu.Unlock()
	texts := e.texts
	e.texts = nil
	return texts
}

// Embeddings starts a server of OpenAI's API of embeddings. Its base URL is URL+"/v1". It returns the
// vectors in another order than the texts, which the format allows.
func Embeddings(e *Embedding) *httptest.Server {
	mux := http.NewServeMux()
	mux.HandleFunc("POST /v1/embeddings", func(w http.ResponseWriter, r *http.Request) {
		var asked struct {
			Model string   `json:"model"`
			Input []string `json:"input"`
		}
		if json.NewDecoder(r.Body).Decode(&asked) != nil {
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		if status := e.receive(asked.Input); status != http.StatusOK {
			w.WriteHeader(status)
			_ = json.NewEncoder(w).Encode(object{"error": object{"message": "the input is not accepted", "type": "invalid_request_error"}})
			return
		}
		data, tokens := []object{}, 0
		for i, text := range slices.Backward(asked.Input) {
			data = append(data, object{"object": "embedding", "index": i, "embedding": e.vector(text)})
			tokens += len(strings.Fields(text))
		}
		_ = json.NewEncoder(w).Encode(object{"object": "list", "model": asked.Model, "data": data, "usage": object{"prompt_tokens": tokens,
			"total_tokens": tokens}})
	})
	return httptest.NewServer(mux)
}

// receive records texts and returns the status of the answer.
func (e *Embedding) receive(texts []string) int {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.texts = append(e.texts, texts...)
	if e.Reject != "" && slices.ContainsFunc(texts, func(s string) bool { return strings.Contains(s, e.Reject) }) {
		return http.StatusBadRequest
	}
	if e.status != 0 {
		return e.status
	}
	return http.StatusOK
}

func (e *Embedding) vector(text string) []float32 {
	v := make([]float32, e.Size)
	for word := range strings.FieldsFuncSeq(strings.ToLower(text), func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) }) {
		if same, ok := e.Synonyms[word]; ok {
			word = same
		}
		h := fnv.New64a()
		_, _ = h.Write([]byte(word))
		x := h.Sum64()
		for i := range v { // a direction of its own for each word
			x = x*6364136223846793005 + 1442695040888963407
			v[i] += float32(math.Sin(float64(x >> 40)))
		}
	}
	return v
}
